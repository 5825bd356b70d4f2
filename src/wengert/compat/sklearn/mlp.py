"""Multilayer perceptrons for classification and regression.

They are trained by Adam on shuffled batches.  A step (value, gradient and update) is compiled if
the training has enough steps.  All random numbers depend on `random_state`.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from wengert import nn, optim
from wengert._engine.core.recording import no_grad
from wengert._engine.jit import jit
from wengert.errors import ArgumentError, at, user_line
from wengert.nn import functional as F

from .validation import (
    Array,
    BaseEstimator,
    ClassifierMixin,
    MultiOutputMixin,
    RegressorMixin,
    above,
    at_least,
    check_random_state,
    labeled,
    pairs,
    samples,
    stopped_early,
)

ACTIVATIONS: dict[str, Any] = {
    "identity": lambda x: x,
    "logistic": F.sigmoid,
    "tanh": np.tanh,
    "relu": F.relu,
}
MIN_COMPILED_STEPS = 300  # fewer steps take less time than their compilation


class Network(nn.Module):
    """Linear layers with a nonlinearity between them."""

    def __init__(self, sizes: list[int], activation: str, rng: Any, dtype: Any) -> None:
        self.activation = activation
        self.layers = [nn.Linear(n, m, rng=rng, dtype=dtype) for n, m in itertools.pairwise(sizes)]

    def forward(self, x: Any) -> Any:
        """Scores, a row for each sample."""
        for layer in self.layers[:-1]:
            x = ACTIVATIONS[self.activation](layer(x))
        return self.layers[-1](x)


class _Perceptron(BaseEstimator):  # type: ignore[misc]
    """Training and its options, for classification and regression."""

    def __init__(
        self,
        hidden_layer_sizes: Any = (100,),
        activation: str = "relu",
        *,
        alpha: float = 1e-4,
        batch_size: int | str = "auto",
        learning_rate_init: float = 1e-3,
        max_iter: int = 200,
        tol: float = 1e-4,
        n_iter_no_change: int = 10,
        random_state: Any = None,
    ) -> None:
        self.hidden_layer_sizes = hidden_layer_sizes
        self.activation = activation
        self.alpha = alpha
        self.batch_size = batch_size
        self.learning_rate_init = learning_rate_init
        self.max_iter = max_iter
        self.tol = tol
        self.n_iter_no_change = n_iter_no_change
        self.random_state = random_state

    def _check(self) -> list[int]:
        above(self, learning_rate_init=0)
        at_least(self, alpha=0, max_iter=1, tol=0, n_iter_no_change=1)
        if self.activation not in ACTIVATIONS:
            raise ArgumentError(
                f"{type(self).__name__}(activation={self.activation!r}): expected one of "
                f"{list(ACTIVATIONS)}{at(user_line())}."
            )
        hidden = [int(n) for n in np.atleast_1d(self.hidden_layer_sizes)]
        if any(n < 1 for n in hidden):
            raise ArgumentError(
                f"{type(self).__name__}(hidden_layer_sizes={self.hidden_layer_sizes!r}): sizes "
                f"must be at least 1. Change them{at(user_line())}."
            )
        return hidden

    def _train(self, x: Array, y: Array, outputs: int, loss: Any, hidden: list[int]) -> None:
        random = check_random_state(self.random_state)
        seed = int(random.randint(2**31))
        sizes = [x.shape[1], *hidden, outputs]
        self.network_ = Network(sizes, self.activation, np.random.default_rng(seed), x.dtype)
        optimizer = optim.Adam(self.network_.parameters(), lr=self.learning_rate_init)
        n = len(x)
        batch = min(200, n) if self.batch_size == "auto" else min(int(self.batch_size), n)
        matrices = [layer.weight for layer in self.network_.layers]

        def step(x: Any, y: Any) -> Any:
            optimizer.zero_grad()
            value = loss(self.network_(x), y)
            if self.alpha:
                squares = sum(np.sum(np.square(w)) for w in matrices)
                value = value + (0.5 * self.alpha / x.shape[0]) * squares
            value.backward()
            optimizer.step()
            return value

        compiled = jit(step)
        self.loss_curve_: list[float] = []
        best, since, taken = np.inf, 0, 0
        for _ in range(self.max_iter):
            order, total = random.permutation(n), 0.0
            for begin in range(0, n, batch):
                rows = order[begin : begin + batch]
                run = compiled if taken >= MIN_COMPILED_STEPS else step
                total += run(x[rows], y[rows]).item() * len(rows)
                taken += 1
            self.loss_curve_.append(total / n)
            since = since + 1 if self.loss_curve_[-1] > best - self.tol else 0
            best = min(best, self.loss_curve_[-1])
            if since >= self.n_iter_no_change:
                break
        else:
            stopped_early(self, f"the loss was still decreasing after {self.max_iter} epochs")
        self.n_iter_, self.loss_ = len(self.loss_curve_), self.loss_curve_[-1]

    def _scores(self, x: Any) -> Array:
        x = samples(self, x)
        weight = self.network_.layers[0].weight
        with no_grad():
            return np.asarray(self.network_(x.astype(weight.dtype)).numpy())


class MLPClassifier(ClassifierMixin, _Perceptron):  # type: ignore[misc]
    """A multilayer perceptron classifier, trained with cross-entropy.

    Parameters
    ----------
    hidden_layer_sizes : sequence of int, default (100,)
    activation : {"identity", "logistic", "tanh", "relu"}, default "relu"
    alpha : float, default 1e-4
        Weight of the l2 penalty, per sample of a batch.
    batch_size : int or "auto", default "auto"
        "auto" means 200, or all samples if there are fewer.
    learning_rate_init : float, default 1e-3
        Learning rate of Adam.
    max_iter : int, default 200
        Maximal number of epochs.
    tol, n_iter_no_change : float, int
        Training stops when the loss has not decreased by `tol` for `n_iter_no_change` epochs.
    random_state : int, RandomState or None
        Seed of the initial weights and the order of samples.

    Attributes
    ----------
    classes_ : array
    network_ : wengert.nn.Module
    loss_curve_ : list of float
    n_iter_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from wengert.compat.sklearn import MLPClassifier
    >>> x = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    >>> model = MLPClassifier((16,), learning_rate_init=0.05, random_state=0)
    >>> model.fit(x, [0, 1, 1, 0]).predict(x)
    array([0, 1, 1, 0])
    """

    def fit(self, X: Any, y: Any) -> MLPClassifier:
        """Train the network.

        Parameters
        ----------
        X : array of shape (n, features)
        y : array of shape (n,)
            Classes: numbers or strings.
        """
        hidden = self._check()
        x, codes = labeled(self, X, y)
        self._train(x, codes, len(self.classes_), F.cross_entropy, hidden)
        return self

    def predict_log_proba(self, X: Any) -> Array:
        """Logarithms of the probabilities, shape (n, classes)."""
        return np.asarray(F.log_softmax(self._scores(X)))

    def predict_proba(self, X: Any) -> Array:
        """Probabilities, shape (n, classes)."""
        return np.asarray(F.softmax(self._scores(X)))

    def predict(self, X: Any) -> Array:
        """The most probable class of each sample."""
        best = self._scores(X).argmax(axis=1)
        return np.asarray(self.classes_[best])


class MLPRegressor(MultiOutputMixin, RegressorMixin, _Perceptron):  # type: ignore[misc]
    """A multilayer perceptron regressor, trained with half the mean squared error.

    Parameters
    ----------
    hidden_layer_sizes, activation, alpha, batch_size, learning_rate_init, max_iter, tol, \
n_iter_no_change, random_state
        As in `MLPClassifier`.

    Attributes
    ----------
    network_ : wengert.nn.Module
    loss_curve_ : list of float
    n_iter_ : int

    Examples
    --------
    >>> import numpy as np
    >>> from wengert.compat.sklearn import MLPRegressor
    >>> x = np.linspace(-1, 1, 20)[:, None]
    >>> model = MLPRegressor((8,), "tanh", learning_rate_init=0.05, random_state=0)
    >>> model.fit(x, 2 * x[:, 0]).score(x, 2 * x[:, 0]) > 0.9
    True
    """

    def fit(self, X: Any, y: Any) -> MLPRegressor:
        """Train the network.

        Parameters
        ----------
        X : array of shape (n, features)
        y : array of shape (n,) or (n, targets)
        """
        hidden = self._check()
        x, y = pairs(self, X, y)
        self._flat = y.ndim == 1
        columns = y.reshape(len(y), -1)
        self._train(x, columns, columns.shape[1], _half_squares, hidden)
        return self

    def predict(self, X: Any) -> Array:
        """Predictions, shape (n,) or (n, targets)."""
        scores = self._scores(X)
        return scores[:, 0] if self._flat else scores


def _half_squares(prediction: Any, target: Any) -> Any:
    return 0.5 * F.mse_loss(prediction, target)
