"""Gaussian process regression; the parameters of the covariance functions are fitted.

    y = f(x) + noise,    cov(f(x), f(z)) = s k(r)
    rbf                  exp(-r**2 / 2)                                       smooth to any order
    matern52             (1 + sqrt(5) r + 5 r**2 / 3) exp(-sqrt(5) r)         twice differentiable
    matern32             (1 + sqrt(3) r) exp(-sqrt(3) r)                      once
    matern12             exp(-r)                                              continuous

with r the distance in units of a length scale for each feature.  The logarithms of s, of the length
scales and of the noise variance maximize the marginal likelihood (Rasmussen and Williams, 2006,
equation 2.30 and algorithm 2.1), found by L-BFGS with the exact compiled gradient of the Cholesky
factorization.

r is the distance in units of the length scales (Rasmussen and Williams, "Gaussian Processes for
Machine Learning", 2006, chapter 4).  All are functions of r**2 whose derivatives are finite where
samples coincide.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.linalg

from wengert._engine.ops.linalg.factorizations import solve_triangular
from wengert.errors import ArgumentError, at, user_line
from wengert.optim import minimize

from .validation import (
    Array,
    BaseEstimator,
    MultiOutputMixin,
    RegressorMixin,
    above,
    at_least,
    check_random_state,
    pairs,
    samples,
)


def squared_distances(x: Any, z: Any, scales: Any) -> Any:
    """Squared distances of all pairs, in units of the length scales, shape (n, m)."""
    difference = x[:, None, :] / scales - z[None, :, :] / scales
    return np.sum(difference * difference, axis=2)


def rbf(squares: Any) -> Any:
    """The Gaussian kernel."""
    return np.exp(-0.5 * squares)


def matern12(squares: Any) -> Any:
    """The Matern kernel of order 1/2, the exponential kernel."""
    return np.exp(-_root(squares))


def matern32(squares: Any) -> Any:
    """The Matern kernel of order 3/2."""
    r = math.sqrt(3.0) * _root(squares)
    return (1.0 + r) * np.exp(-r)


def matern52(squares: Any) -> Any:
    """The Matern kernel of order 5/2."""
    r = math.sqrt(5.0) * _root(squares)
    return (1.0 + r + 5.0 / 3.0 * squares) * np.exp(-r)


def _root(squares: Any) -> Any:
    apart = squares > 0
    return np.where(apart, np.sqrt(np.where(apart, squares, 1.0)), 0.0)


KERNELS = {"rbf": rbf, "matern12": matern12, "matern32": matern32, "matern52": matern52}


LOWEST, HIGHEST = math.log(1e-5), math.log(1e5)


class GaussianProcessRegressor(MultiOutputMixin, RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Gaussian process regression with fitted length scales.

    Parameters
    ----------
    kernel : {"rbf", "matern52", "matern32", "matern12"}, default "rbf"
    length_scale : float or array of shape (features,), default 1.0
        Initial length scales, or the ones used without optimization.
    noise : float, default 1e-2
        Initial variance of the noise, or the one used without optimization.
    optimize : bool, default True
        Whether to fit the length scales and the noise.
    n_restarts : int, default 0
        Number of further optimizations from random initial values.
    alpha : float, default 1e-10
        Added to the diagonal of the covariance, so that samples may coincide.
    normalize_y : bool, default False
        Normalize the targets to mean 0 and standard deviation 1.
    random_state : int, RandomState or None
        Seed of restarts and samples.

    Attributes
    ----------
    variance_, noise_ : float
    length_scale_ : array of shape (features,)
    log_marginal_likelihood_ : float

    Notes
    -----
    O(n**3) time and O(n**2) memory for each evaluation.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert.compat.sklearn import GaussianProcessRegressor
    >>> x = np.linspace(0, 6, 12)[:, None]
    >>> model = GaussianProcessRegressor().fit(x, np.sin(x[:, 0]))
    >>> mean, deviation = model.predict([[1.5]], return_std=True)
    >>> bool(abs(mean[0] - np.sin(1.5)) < 0.01 and deviation[0] < 0.05)
    True
    """

    def __init__(
        self,
        kernel: str = "rbf",
        *,
        length_scale: Any = 1.0,
        noise: float = 1e-2,
        optimize: bool = True,
        n_restarts: int = 0,
        alpha: float = 1e-10,
        normalize_y: bool = False,
        random_state: Any = None,
    ) -> None:
        self.kernel = kernel
        self.length_scale = length_scale
        self.noise = noise
        self.optimize = optimize
        self.n_restarts = n_restarts
        self.alpha = alpha
        self.normalize_y = normalize_y
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> GaussianProcessRegressor:
        """Fit the parameters, and factorize the covariance of the samples.

        Parameters
        ----------
        X : array of shape (n, features)
        y : array of shape (n,) or (n, targets)
        """
        above(self, noise=0)
        at_least(self, alpha=0, n_restarts=0)
        if self.kernel not in KERNELS:
            raise ArgumentError(
                f"GaussianProcessRegressor(kernel={self.kernel!r}): expected one of "
                f"{list(KERNELS)}{at(user_line())}."
            )
        x, y = pairs(self, X, y)
        self._flat, self._dtype = y.ndim == 1, x.dtype
        x, y = x.astype(float), y.reshape(len(y), -1).astype(float)
        self._middle = y.mean(axis=0) if self.normalize_y else np.zeros(y.shape[1])
        spread = y.std(axis=0) if self.normalize_y else np.ones(y.shape[1])
        self._spread = np.where(spread > 0, spread, 1.0)
        y = (y - self._middle) / self._spread
        scales = self._start(x.shape[1])
        scales = self._learned(scales, x, y) if self.optimize else scales
        self.log_marginal_likelihood_ = -float(_loss(self.kernel)(scales, x, y, self.alpha))
        self.variance_ = math.exp(scales["variance"])
        self.length_scale_ = np.exp(scales["lengths"])
        self.noise_ = math.exp(scales["noise"])
        self._x, self._scales = x, scales
        self._factor = scipy.linalg.cholesky(
            _covariance(self.kernel, scales, x, self.alpha), lower=True
        )
        self._dual = scipy.linalg.cho_solve((self._factor, True), y)
        return self

    def _start(self, features: int) -> dict[str, Any]:
        lengths = np.broadcast_to(np.asarray(self.length_scale, float), (features,))
        if np.any(lengths <= 0):
            raise ArgumentError(
                f"GaussianProcessRegressor(length_scale={self.length_scale!r}): length_scale must "
                f"be positive. Change it{at(user_line())}."
            )
        return {"lengths": np.log(lengths), "noise": math.log(self.noise), "variance": 0.0}

    def _learned(self, start: dict[str, Any], x: Array, y: Array) -> dict[str, Any]:
        random = check_random_state(self.random_state)
        starts = [start]
        for _ in range(self.n_restarts):
            lengths = random.uniform(-3, 3, x.shape[1])
            noise, variance = random.uniform(-8, 0), random.uniform(-2, 2)
            starts.append({"lengths": lengths, "noise": noise, "variance": variance})
        found = [
            minimize(_loss(self.kernel), s, (x, y, self.alpha), bounds=(LOWEST, HIGHEST))
            for s in starts
        ]
        best: dict[str, Any] = min(found, key=lambda f: float(f.fun)).x
        return best

    # ---- prediction ----------------------------------------------------------------------------

    def predict(self, X: Any, return_std: bool = False, return_cov: bool = False) -> Any:
        """The mean of the process, optionally with its standard deviation or covariance.

        Parameters
        ----------
        X : array of shape (n, features)
        return_std, return_cov : bool
            Also return the standard deviation, of the shape of the mean, or the covariance, shape
            (n, n) or (n, n, targets), of the process without noise.
        """
        if return_std and return_cov:
            raise ArgumentError(
                "predict(return_std=True, return_cov=True): pass only one of them; standard "
                "deviations are the square roots of the diagonal of the covariance"
                f"{at(user_line())}."
            )
        z = samples(self, X).astype(float)
        across = self._between(z, self._x)
        mean = self._scaled(across @ self._dual) + self._middle
        mean = self._shaped(mean)
        if not (return_std or return_cov):
            return mean
        half = scipy.linalg.solve_triangular(self._factor, across.T, lower=True)
        if return_std:
            left = np.maximum(self.variance_ - np.sum(half * half, axis=0), 0.0)
            return mean, self._shaped(np.sqrt(left)[:, None] * self._spread)
        left = self._between(z, z) - half.T @ half
        return mean, self._shaped(left[:, :, None] * self._spread**2)

    def sample_y(self, X: Any, n_samples: int = 1, random_state: Any = 0) -> Array:
        """Samples from the posterior, shape (n, n_samples); for a single target only."""
        mean, covariance = self.predict(X, return_cov=True)
        if not self._flat:
            raise ArgumentError(
                "sample_y supports a single target, but this process has several. Fit one for "
                f"each{at(user_line())}."
            )
        random = check_random_state(random_state)
        return np.asarray(random.multivariate_normal(mean, covariance, n_samples).T)

    def _between(self, x: Array, z: Array) -> Array:
        squares = squared_distances(x, z, self.length_scale_)
        return np.asarray(self.variance_ * KERNELS[self.kernel](squares))

    def _scaled(self, y: Array) -> Array:
        return y * self._spread

    def _shaped(self, values: Array) -> Array:
        values = values[..., 0] if self._flat else values
        return values.astype(self._dtype)


# ---- the likelihood ----------------------------------------------------------------------------


def _covariance(kernel: str, scales: Any, x: Any, alpha: Any) -> Any:
    squares = squared_distances(x, x, np.exp(scales["lengths"]))
    known = np.exp(scales["variance"]) * KERNELS[kernel](squares)
    return known + (np.exp(scales["noise"]) + alpha) * np.eye(x.shape[0])


def _loss(kernel: str) -> Any:
    """The negative log marginal likelihood as a function of the logarithms of the parameters."""
    return _LOSSES[kernel]


def _loss_of(kernel: str) -> Any:
    def loss(scales: Any, x: Any, y: Any, alpha: Any) -> Any:
        factor = np.linalg.cholesky(_covariance(kernel, scales, x, alpha))
        half = solve_triangular(factor, y, lower=True)
        n, targets = y.shape
        determinant = np.sum(np.log(np.diagonal(factor)))
        constant = 0.5 * n * math.log(2 * math.pi)
        return 0.5 * np.sum(half * half) + targets * (determinant + constant)

    return loss


_LOSSES = {name: _loss_of(name) for name in KERNELS}
