"""Logistic regression by penalized maximum likelihood.

The loss is convex, so L-BFGS with exact compiled gradients finds its minimum from any initial
value.  Two classes share one row of weights; more classes have a row each (softmax).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert._engine.ops.elementwise.exponential import softplus
from wengert._engine.ops.neural.softmax import softmax
from wengert._engine.ops.reductions import logsumexp
from wengert.optim import minimize

from .validation import (
    Array,
    BaseEstimator,
    ClassifierMixin,
    above,
    at_least,
    labeled,
    samples,
    stopped_early,
    weights,
)


class LogisticRegression(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A linear classifier with probabilities.

    Minimizes ``C sum_i w_i loss_i + |weights|**2 / 2``, where the loss is the negative logarithm
    of the probability of the correct class.

    Parameters
    ----------
    C : float, default 1.0
        Inverse of the weight of the penalty; inf for none.
    fit_intercept : bool, default True
        Whether to fit intercepts, which are not penalized.
    tol : float, default 1e-6
        The largest element of the gradient, per sample, to stop at.
    max_iter : int, default 500
        Maximal number of iterations.

    Attributes
    ----------
    classes_ : array
    coef_ : array of shape (1, features) for two classes, else (classes, features)
    intercept_ : array of shape (1,) or (classes,)
    n_iter_ : array of shape (1,)

    Examples
    --------
    >>> import numpy as np
    >>> from wengert.compat.sklearn import LogisticRegression
    >>> model = LogisticRegression().fit([[-2.0], [-1.0], [1.0], [2.0]], ["no", "no", "yes", "yes"])
    >>> model.predict([[-3.0], [3.0]]).tolist()
    ['no', 'yes']
    """

    def __init__(
        self,
        C: float = 1.0,
        *,
        fit_intercept: bool = True,
        tol: float = 1e-6,
        max_iter: int = 500,
    ) -> None:
        self.C = C
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> LogisticRegression:
        """Find the weights.

        Parameters
        ----------
        X : array of shape (n, features)
        y : array of shape (n,)
            Classes: numbers or strings.
        sample_weight : array of shape (n,), optional
        """
        above(self, C=0)
        at_least(self, tol=0, max_iter=1)
        x, codes = labeled(self, X, y)
        weight = weights(sample_weight, x).astype(float)
        many = len(self.classes_) > 2
        rows = len(self.classes_) if many else 1
        start = [np.zeros((rows, x.shape[1])), np.zeros(rows if self.fit_intercept else 0)]
        target = np.eye(rows)[codes] if many else codes[:, None].astype(float)
        total = weight.sum()
        penalty = 1.0 / (self.C * total)
        found = minimize(
            _of_many if many else _of_two,
            start,
            (x.astype(float), target, weight / total, penalty),
            options={"maxiter": self.max_iter, "gtol": self.tol, "ftol": 1e-15, "maxls": 50},
        )
        if found.nit >= self.max_iter:
            stopped_early(self, f"it did not converge in {found.nit} iterations")
        self.coef_ = found.x[0].astype(x.dtype)
        constants = found.x[1] if self.fit_intercept else np.zeros(rows)
        self.intercept_ = constants.astype(x.dtype)
        self.n_iter_ = np.array([max(found.nit, 1)])
        return self

    def decision_function(self, X: Any) -> Array:
        """Scores, shape (n,) for two classes (positive for the second), else (n, classes)."""
        scores = samples(self, X) @ self.coef_.T + self.intercept_
        return np.asarray(scores[:, 0] if len(self.classes_) == 2 else scores)

    def predict_log_proba(self, X: Any) -> Array:
        """Logarithms of the probabilities, shape (n, classes), without underflow."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return np.stack([-softplus(scores), -softplus(-scores)], axis=1)
        return np.asarray(scores - logsumexp(scores, axis=1, keepdims=True))

    def predict_proba(self, X: Any) -> Array:
        """Probabilities, shape (n, classes)."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            return np.exp(self.predict_log_proba(X))
        return np.asarray(softmax(scores, axis=1))

    def predict(self, X: Any) -> Array:
        """The most probable class of each sample."""
        scores = self.decision_function(X)
        best = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes_[best])


def _scores(parameters: Any, x: Any) -> Any:
    matrix, constants = parameters
    scores = x @ matrix.T
    return scores + constants if constants.size else scores


def _of_two(parameters: Any, x: Any, target: Any, weight: Any, penalty: Any) -> Any:
    z = _scores(parameters, x)
    losses = softplus(z) - target * z
    return np.sum(weight * losses[:, 0]) + 0.5 * penalty * np.sum(parameters[0] ** 2)


def _of_many(parameters: Any, x: Any, target: Any, weight: Any, penalty: Any) -> Any:
    z = _scores(parameters, x)
    losses = logsumexp(z, axis=1) - np.sum(target * z, axis=1)
    return np.sum(weight * losses) + 0.5 * penalty * np.sum(parameters[0] ** 2)
