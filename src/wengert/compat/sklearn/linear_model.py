"""Linear regression: without penalty and Ridge in closed form, Lasso and ElasticNet iteratively.

    minimize  |y - X w - b|**2                                               LinearRegression
    minimize  |y - X w - b|**2 + alpha |w|**2                                           Ridge
    minimize  |y - X w - b|**2 / (2 n) + alpha r |w|_1 + alpha (1 - r) |w|**2 / 2       the others

The iteration is the proximal gradient method with Nesterov momentum, restarted when the momentum
increases the objective [1]_, [2]_.  It stops when the duality gap, an upper bound of the remaining
decrease, is small enough.  It is one compiled while loop.

References
----------
.. [1] A. Beck, M. Teboulle, "A fast iterative shrinkage-thresholding algorithm for linear inverse
   problems", SIAM J. Imaging Sciences 2, 2009.
.. [2] B. O'Donoghue, E. Candes, "Adaptive restart for accelerated gradient schemes", Foundations
   of Computational Mathematics 15, 2015.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg

from wengert._engine.control_flow import while_loop
from wengert._engine.jit import jit
from wengert.errors import ArgumentError, at, user_line

from .validation import (
    Array,
    BaseEstimator,
    MultiOutputMixin,
    RegressorMixin,
    at_least,
    pairs,
    samples,
    stopped_early,
    weights,
)


class _Linear(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Base of linear regressors: prediction and centered data."""

    coef_: Any
    intercept_: Any

    def predict(self, X: Any) -> Array:
        """X w + b, shape (n,) or (n, targets)."""
        return np.asarray(samples(self, X) @ self.coef_.T + self.intercept_)

    def _centered(self, x: Array, y: Array, weight: Array) -> tuple[Array, Array, Array, Array]:
        if not self.fit_intercept:  # type: ignore[attr-defined]
            return x, y, np.zeros(x.shape[1], x.dtype), np.zeros(y.shape[1:], x.dtype)
        share = weight / weight.sum()
        middle, level = share @ x, share @ y
        return x - middle, y - level, middle, level


class LinearRegression(MultiOutputMixin, _Linear):  # type: ignore[misc]
    """Ordinary least squares.

    Parameters
    ----------
    fit_intercept : bool, default True
        Whether to fit an intercept.

    Attributes
    ----------
    coef_ : array of shape (features,) or (targets, features)
        If they are not determined by the samples, those of the least norm.
    intercept_ : float or array of shape (targets,)
    rank_ : int
        The rank of the centered samples.
    singular_ : array of shape (min(n, features),)
        Their singular values.

    Notes
    -----
    Solved by singular values, O(n p min(n, p)).

    Examples
    --------
    >>> import numpy as np
    >>> from wengert.compat.sklearn import LinearRegression
    >>> model = LinearRegression().fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0])
    >>> model.coef_.round(6), round(float(model.intercept_), 6)
    (array([2.]), 1.0)
    """

    def __init__(self, *, fit_intercept: bool = True) -> None:
        self.fit_intercept = fit_intercept

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> LinearRegression:
        """Find the weights.

        Parameters
        ----------
        X : array of shape (n, features)
        y : array of shape (n,) or (n, targets)
        sample_weight : array of shape (n,), optional
        """
        x, y = pairs(self, X, y)
        weight = weights(sample_weight, x)
        x, y, middle, level = self._centered(x, y, weight)
        root = np.sqrt(weight)
        rows, right = x * root[:, None], (y.T * root).T
        # The rank of centered rows is less than their number, except for rounding errors.
        least = max(rows.shape) * np.finfo(rows.dtype).eps
        found, _, self.rank_, self.singular_ = scipy.linalg.lstsq(rows, right, cond=least)
        self.coef_ = np.asarray(found.T, x.dtype)
        self.intercept_ = level - middle @ found
        return self


class Ridge(MultiOutputMixin, _Linear):  # type: ignore[misc]
    """Least squares with an l2 penalty.

    Parameters
    ----------
    alpha : float, default 1.0
        Weight of the penalty, at least 0.
    fit_intercept : bool, default True
        Whether to fit an intercept, which is not penalized.

    Attributes
    ----------
    coef_ : array of shape (features,) or (targets, features)
    intercept_ : float or array of shape (targets,)

    Notes
    -----
    Solved by a Cholesky factorization of the smaller of the two Gram matrices, O(n p min(n, p));
    by singular values if that matrix is not positive definite.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert.compat.sklearn import Ridge
    >>> model = Ridge(alpha=0.0).fit([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0])
    >>> model.coef_.round(6), round(float(model.intercept_), 6)
    (array([2.]), 1.0)
    """

    def __init__(self, alpha: float = 1.0, *, fit_intercept: bool = True) -> None:
        self.alpha = alpha
        self.fit_intercept = fit_intercept

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Ridge:
        """Find the weights.

        Parameters
        ----------
        X : array of shape (n, features)
        y : array of shape (n,) or (n, targets)
        sample_weight : array of shape (n,), optional
        """
        at_least(self, alpha=0)
        x, y = pairs(self, X, y)
        weight = weights(sample_weight, x)
        x, y, middle, level = self._centered(x, y, weight)
        root = np.sqrt(weight)
        x, flat = x * root[:, None], y.ndim == 1
        y = y.reshape(len(y), -1) * root[:, None]
        found = self._solve(x, y)
        self.coef_ = found[:, 0] if flat else found.T
        self.intercept_ = level - middle @ found[:, 0] if flat else level - middle @ found
        return self

    def _solve(self, x: Array, y: Array) -> Array:
        wide = x.shape[1] > x.shape[0]
        gram = x @ x.T if wide else x.T @ x
        gram[np.diag_indices_from(gram)] += self.alpha
        right = y if wide else x.T @ y
        if self.alpha > 0:
            try:
                inner = scipy.linalg.solve(gram, right, assume_a="pos")
                return np.asarray(x.T @ inner if wide else inner)
            except scipy.linalg.LinAlgError:
                pass
        rows = np.vstack([x, np.sqrt(self.alpha) * np.eye(x.shape[1], dtype=x.dtype)])
        zeros = np.zeros((x.shape[1], y.shape[1]), x.dtype)
        return np.asarray(scipy.linalg.lstsq(rows, np.vstack([y, zeros]))[0])


class ElasticNet(_Linear):
    """Least squares with l1 and l2 penalties, which gives sparse weights.

    Parameters
    ----------
    alpha : float, default 1.0
        Weight of the penalty, at least 0.
    l1_ratio : float, default 0.5
        Share of the l1 penalty, from 0 to 1.
    fit_intercept : bool, default True
        Whether to fit an intercept, which is not penalized.
    max_iter : int, default 10,000
        Maximal number of iterations.
    tol : float, default 1e-4
        The duality gap to stop at, relative to the mean of y squared.

    Attributes
    ----------
    coef_ : array of shape (features,)
    intercept_ : float
    n_iter_ : int
    dual_gap_ : float
        Upper bound of the remaining decrease of the objective.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert.compat.sklearn import ElasticNet
    >>> x = np.eye(3)[[0, 1, 2, 0, 1, 2]]
    >>> y = [3.0, 0.1, 0.0, 3.0, 0.1, 0.0]
    >>> ElasticNet(alpha=0.1, fit_intercept=False).fit(x, y).coef_[1:]
    array([0., 0.])
    """

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        l1_ratio: float = 0.5,
        fit_intercept: bool = True,
        max_iter: int = 10_000,
        tol: float = 1e-4,
    ) -> None:
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.tol = tol

    def fit(self, X: Any, y: Any) -> ElasticNet:
        """Find the weights.

        Parameters
        ----------
        X : array of shape (n, features)
        y : array of shape (n,)
        """
        share = self.l1_ratio
        at_least(self, alpha=0, tol=0, max_iter=1)
        if not 0 <= share <= 1:
            raise ArgumentError(
                f"{type(self).__name__}(l1_ratio={share!r}): l1_ratio must be from 0 to 1. Change "
                f"it{at(user_line())}."
            )
        x, y = pairs(self, X, y, several=False)
        x, y, middle, level = self._centered(x, y, np.ones(len(y), x.dtype))
        n = len(y)
        sharp, smooth = n * self.alpha * share, n * self.alpha * (1 - share)
        steepness = float(np.linalg.norm(x, 2)) ** 2 + smooth
        x64, y64 = x.astype(float), y.astype(float)
        if steepness == 0:  # all features are constant
            found, gap, count = np.zeros(x.shape[1]), 0.0, 0
        else:
            enough = self.tol * float(y64 @ y64)
            found, gap, count = _descend(
                x64, y64, sharp, smooth, 1.0 / steepness, enough, float(self.max_iter)
            )
        if gap > self.tol * float(y64 @ y64):
            stopped_early(self, f"the duality gap is {gap / n:.3g}")
        self.coef_ = np.asarray(found, x.dtype)
        self.intercept_ = level - middle @ self.coef_
        self.n_iter_, self.dual_gap_ = max(int(count), 1), float(gap) / n
        return self


class Lasso(ElasticNet):
    """Least squares with an l1 penalty.

    Parameters
    ----------
    alpha, fit_intercept, max_iter, tol
        As in `ElasticNet`, whose `l1_ratio` is 1 here.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert.compat.sklearn import Lasso
    >>> x = np.eye(2)[[0, 1, 0, 1]]
    >>> Lasso(alpha=0.25, fit_intercept=False).fit(x, [2.0, 0.1, 2.0, 0.1]).coef_
    array([1.5, 0. ])
    """

    l1_ratio = 1.0

    def __init__(
        self,
        alpha: float = 1.0,
        *,
        fit_intercept: bool = True,
        max_iter: int = 10_000,
        tol: float = 1e-4,
    ) -> None:
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.max_iter = max_iter
        self.tol = tol


# ---- the iteration -----------------------------------------------------------------------------


@jit
def _descend(
    x: Any, y: Any, sharp: Any, smooth: Any, rate: Any, enough: Any, most: Any
) -> tuple[Any, Any, Any]:
    """Weights, duality gap and iterations of n times the objective."""
    zeros = np.zeros(x.shape[1], like=x)

    def gap_at(w: Any) -> Any:
        # Two bounds from two dual points: residuals scaled until no correlation exceeds the l1
        # penalty, and the residuals themselves, which are feasible with an l2 penalty.
        residual = y - x @ w
        size, common = residual @ residual, sharp * np.sum(np.abs(w))
        slope = x.T @ residual
        steepest = np.max(np.abs(slope - smooth * w))
        shrink = np.where(steepest > sharp, sharp / np.maximum(steepest, 1e-300), 1.0)
        shrunk = 0.5 * (1.0 + shrink**2) * (size + smooth * (w @ w)) - shrink * (residual @ y)
        beyond = np.maximum(np.abs(slope) - sharp, 0.0)
        conjugate = (beyond @ beyond) / (2.0 * np.maximum(smooth, 1e-300))
        whole = size + 0.5 * smooth * (w @ w) - residual @ y + conjugate
        return common + np.minimum(shrunk, np.where(smooth > 0, whole, np.inf))

    def goes_on(state: Any) -> Any:
        _, _, _, gap, count = state
        return np.logical_and(gap > enough, count < most)

    def step(state: Any) -> Any:
        w, ahead, pace, _, count = state
        moved = ahead - rate * (x.T @ (x @ ahead - y) + smooth * ahead)
        new = np.sign(moved) * np.maximum(np.abs(moved) - rate * sharp, 0.0)
        uphill = (ahead - new) @ (new - w) > 0
        faster = np.where(uphill, 1.0, 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * pace**2)))
        share = np.where(uphill, 0.0, (pace - 1.0) / faster)
        return new, new + share * (new - w), faster, gap_at(new), count + 1.0

    start = (zeros, zeros, 1.0, gap_at(zeros), 0.0)
    found, _, _, gap, count = while_loop(goes_on, step, start)
    return found, gap, count
