"""Multivariate distributions, with SciPy's names and signatures.

    multivariate_normal, multivariate_t    by a Cholesky factor
    dirichlet, multinomial                 distributions on the simplex, and of counts
    matrix_normal, wishart, invwishart     distributions of matrices

The log-density can be differentiated with respect to the point and all parameters.  Of a positive
definite matrix only the lower triangle is read; the derivative with respect to it is symmetrized.

Formulas: K. V. Mardia, J. T. Kent, J. M. Bibby, Multivariate Analysis (1979).
"""

from __future__ import annotations

from math import log, pi
from typing import Any

import numpy as np

from wengert._engine.core.handle import is_traced, shape_of
from wengert._engine.tensor.numpy_dispatch import as_array, values
from wengert.random import functions
from wengert.random.keys import as_key, key

from ...errors import ArgumentError, MatrixError, ShapeError, at, user_line
from ..special import betaln, gammaln, multigammaln, psi, xlogy
from .continuous_distribution import real

__all__ = """
    multivariate_normal multivariate_t dirichlet multinomial matrix_normal wishart invwishart
""".split()


def _cholesky(matrix: Any, what: str) -> tuple[Any, Any]:
    """The Cholesky factor of a matrix and half its log-determinant."""
    shape = shape_of(matrix)
    if len(shape) != 2 or shape[0] != shape[1]:
        raise ShapeError(f"{what} has the shape {shape}, but must be square{at(user_line())}.")
    lower = np.linalg.cholesky(matrix)
    return lower, np.sum(np.log(np.diagonal(lower)))


def _as_covariance(x: Any, count: int | None) -> Any:
    """Convert a number, a vector of variances or a matrix to a covariance matrix."""
    x = real(x, "a covariance")
    shape = shape_of(x)
    if len(shape) == 2:
        return x
    if len(shape) == 1:
        return np.diag(x)
    return x * np.eye(1 if count is None else count)


def _squared_distances(deviations: Any, lower: Any) -> Any:
    """Squared Mahalanobis distances, for the covariance with this Cholesky factor."""
    shape = shape_of(deviations)
    rows = np.reshape(deviations, (-1, shape[-1]))
    scaled = np.linalg.solve(lower, np.swapaxes(rows, 0, 1))
    return np.reshape(np.sum(scaled * scaled, axis=0), shape[:-1])


def _singular_logpdf(deviations: Any, matrix: Any) -> Any:
    """The log-density on the range of a singular covariance; cutoffs are those of SciPy."""
    w, v = np.linalg.eigh(matrix)
    sizes = values(w)
    limit = (1e3 if w.dtype.char == "f" else 1e6) * np.finfo(w.dtype).eps * np.max(np.abs(sizes))
    if not is_traced(sizes) and np.min(sizes) < -limit:
        raise MatrixError(
            f"cov has the eigenvalue {np.min(sizes):.3g}, but must be positive semidefinite"
            f"{at(user_line())}."
        )
    nonzero = sizes > limit
    scales = np.where(nonzero, 1.0 / np.sqrt(np.where(nonzero, w, 1.0)), 0.0)
    length = np.sum((deviations @ (v * scales)) ** 2, axis=-1)
    logdet = np.sum(np.where(nonzero, np.log(np.where(nonzero, w, 1.0)), 0.0))
    out = -0.5 * (np.sum(nonzero) * log(2.0 * pi) + logdet + length)
    off_range = values(deviations) @ np.where(nonzero, 0.0, values(v))
    return np.where(np.sqrt(np.sum(off_range**2, axis=-1)) < 1e3 * limit, out, -np.inf)


def _length_of(mean: Any) -> Any:
    """The number of components of a mean; None if it is a number or not given."""
    shape = () if mean is None else as_array(mean).shape
    return shape[-1] if shape else None


def _key_of(random_state: Any, what: str) -> Any:
    """The key of `random_state`."""
    if random_state is None:
        raise ArgumentError(
            f"{what}.rvs is a function of a key. Pass random_state=wengert.random.key(0)"
            f"{at(user_line())}."
        )
    return key(random_state) if isinstance(random_state, int) else as_key(random_state)


class _MultivariateNormal:
    """The multivariate normal distribution, with mean and covariance."""

    def _deviations_and_covariance(self, x: Any, mean: Any, cov: Any) -> tuple[Any, Any]:
        """The deviations from the mean as vectors, and the covariance as a matrix."""
        count = _length_of(mean)
        matrix = _as_covariance(cov, count)
        size = shape_of(matrix)[0]
        x = real(x, "x")
        if len(shape_of(x)) == 0:
            x = np.reshape(x, (1,))
        elif len(shape_of(x)) == 1 and size == 1:
            x = x[..., None]
        return (x if mean is None else x - real(mean, "mean")), matrix

    @np.errstate(all="ignore")
    def logpdf(self, x: Any, mean: Any = None, cov: Any = 1, allow_singular: bool = False) -> Any:
        """The logarithm of the density; `x` is (..., n), `cov` positive definite.

        With `allow_singular` the covariance may have any rank: the density is the one on its range
        (the log-density is -inf outside of it), and the derivative with respect to `cov` is the
        one on the manifold of matrices of the same rank.
        """
        deviations, matrix = self._deviations_and_covariance(x, mean, cov)
        if allow_singular:
            return _singular_logpdf(deviations, matrix)
        lower, half_logdet = _cholesky(matrix, "cov")
        count = shape_of(lower)[0]
        return -0.5 * (count * log(2.0 * pi) + _squared_distances(deviations, lower)) - half_logdet

    def pdf(self, x: Any, mean: Any = None, cov: Any = 1, allow_singular: bool = False) -> Any:
        """The density."""
        return np.exp(self.logpdf(x, mean, cov, allow_singular))

    def entropy(self, mean: Any = None, cov: Any = 1) -> Any:
        """The differential entropy."""
        count = _length_of(mean)
        lower, half_logdet = _cholesky(_as_covariance(cov, count), "cov")
        return 0.5 * shape_of(lower)[0] * (log(2.0 * pi) + 1.0) + half_logdet

    def rvs(self, mean: Any = None, cov: Any = 1, size: Any = (), random_state: Any = None) -> Any:
        """Random vectors, (*size, n), differentiable with respect to mean and covariance."""
        rng_key = _key_of(random_state, "multivariate_normal")
        count = _length_of(mean)
        matrix = _as_covariance(cov, count)
        mean = np.zeros(shape_of(matrix)[0]) if mean is None else mean
        return functions.multivariate_normal(rng_key, mean, matrix, size)


class _MultivariateT:
    """The multivariate Student's t distribution: loc, shape (a matrix), df."""

    @np.errstate(all="ignore")
    def logpdf(self, x: Any, loc: Any = None, shape: Any = 1, df: Any = 1) -> Any:
        """The logarithm of the density; `x` is (..., n), `shape` positive definite."""
        deviations, matrix = multivariate_normal._deviations_and_covariance(x, loc, shape)
        lower, half_logdet = _cholesky(matrix, "shape")
        count = shape_of(lower)[0]
        df = real(df, "df")
        exponent = 0.5 * (df + count)
        distances = _squared_distances(deviations, lower)
        out = -exponent * np.log1p(distances / df) - 0.5 * count * np.log(df) - half_logdet
        return out - betaln(0.5 * df, 0.5 * count) - 0.5 * count * log(pi) + gammaln(0.5 * count)

    def pdf(self, x: Any, loc: Any = None, shape: Any = 1, df: Any = 1) -> Any:
        """The density."""
        return np.exp(self.logpdf(x, loc, shape, df))


class _Dirichlet:
    """The Dirichlet distribution of vectors of probabilities, which sum to 1."""

    @np.errstate(all="ignore")
    def logpdf(self, x: Any, alpha: Any) -> Any:
        """The logarithm of the density.

        `x` is (k,) or (k, n), as in SciPy: points are columns. If `x` is (k - 1,), the last
        component is 1 minus the sum of the others.
        """
        x, alpha = real(x, "x"), real(alpha, "alpha")
        count = shape_of(alpha)[0]
        if shape_of(x)[0] == count - 1:
            x = np.concatenate([x, 1.0 - np.sum(x, axis=0, keepdims=True)])
        if shape_of(x)[0] != count:
            raise ShapeError(
                f"dirichlet of points with {shape_of(x)[0]} components, but alpha has {count}: "
                f"points must be columns, as in SciPy{at(user_line())}."
            )
        known = values(x)
        if not isinstance(known, np.ndarray) or np.all(np.abs(np.sum(known, 0) - 1.0) <= 1e-9):
            weights = np.reshape(alpha, (count, *(1 for _ in shape_of(x)[1:])))
            log_norm = np.sum(gammaln(alpha)) - gammaln(np.sum(alpha))
            return np.sum(xlogy(weights - 1.0, x), axis=0) - log_norm
        raise ArgumentError(
            f"dirichlet of points whose components do not sum to 1: divide them by their sum"
            f"{at(user_line())}."
        )

    def pdf(self, x: Any, alpha: Any) -> Any:
        """The density."""
        return np.exp(self.logpdf(x, alpha))

    def mean(self, alpha: Any) -> Any:
        """The mean of each component."""
        return alpha / np.sum(alpha)

    def var(self, alpha: Any) -> Any:
        """The variance of each component."""
        total = np.sum(alpha)
        return alpha * (total - alpha) / (total * total * (total + 1.0))

    def entropy(self, alpha: Any) -> Any:
        """The differential entropy."""
        total, count = np.sum(alpha), shape_of(alpha)[-1]
        out = np.sum(gammaln(alpha)) - gammaln(total) + (total - count) * psi(total)
        return out - np.sum((alpha - 1.0) * psi(alpha))

    def rvs(self, alpha: Any, size: Any = None, random_state: Any = None) -> Any:
        """Random vectors, (*size, k), differentiable with respect to `alpha`."""
        return functions.dirichlet(_key_of(random_state, "dirichlet"), alpha, size)


class _Multinomial:
    """The multinomial distribution: counts of each class in `n` independent trials."""

    @np.errstate(all="ignore")
    def logpmf(self, x: Any, n: Any, p: Any) -> Any:
        """The logarithm of the probability of the counts `x`, (..., k)."""
        x, n, p = values(real(x, "x")), values(real(n, "n")), real(p, "p")
        fits = np.logical_and(np.all(np.logical_and(x >= 0, x == np.floor(x)), axis=-1),
                              np.sum(x, axis=-1) == n)  # fmt: skip
        safe = np.where(fits[..., None], x, 0.0)
        out = gammaln(n + 1.0) + np.sum(xlogy(safe, p) - gammaln(safe + 1.0), axis=-1)
        return np.where(fits, out, -np.inf)[()]

    def pmf(self, x: Any, n: Any, p: Any) -> Any:
        """The probability of the counts `x`."""
        return np.exp(self.logpmf(x, n, p))

    def rvs(self, n: Any, p: Any, size: Any = None, random_state: Any = None) -> Any:
        """Random counts, (*size, k)."""
        return functions.multinomial(_key_of(random_state, "multinomial"), n, p, size)


class _MatrixNormal:
    """The matrix normal distribution, with a row and a column covariance."""

    @np.errstate(all="ignore")
    def logpdf(self, X: Any, mean: Any = None, rowcov: Any = 1, colcov: Any = 1) -> Any:
        """The logarithm of the density; `X` is (..., m, n)."""
        x = as_array(X) if mean is None else X - real(mean, "mean")
        rows, columns = shape_of(x)[-2:]
        left, half_logdet_left = _cholesky(_as_covariance(rowcov, rows), "rowcov")
        right, half_logdet_right = _cholesky(_as_covariance(colcov, columns), "colcov")
        inner = np.linalg.solve(left, x)
        scaled = np.linalg.solve(right, np.swapaxes(inner, -1, -2))
        size = np.sum(scaled * scaled, axis=(-2, -1))
        out = -0.5 * (rows * columns * log(2.0 * pi) + size)
        return out - columns * half_logdet_left - rows * half_logdet_right

    def pdf(self, X: Any, mean: Any = None, rowcov: Any = 1, colcov: Any = 1) -> Any:
        """The density."""
        return np.exp(self.logpdf(X, mean, rowcov, colcov))


class _Wishart:
    """The Wishart distribution of scatter matrices: df, scale (a matrix)."""

    inverse = False

    @np.errstate(all="ignore")
    def logpdf(self, x: Any, df: Any, scale: Any) -> Any:
        """The logarithm of the density; `x` is (n, n) or, as in SciPy, (n, n, batch)."""
        x, df = real(x, "x"), real(df, "df")
        if len(shape_of(x)) == 3:
            logs = [self.logpdf(x[..., k], df, scale) for k in range(shape_of(x)[-1])]
            return np.stack(logs)
        lower, half_logdet = _cholesky(x if len(shape_of(x)) else np.reshape(x, (1, 1)), "x")
        count = shape_of(lower)[0]
        scale_cholesky, half_logdet_scale = _cholesky(_as_covariance(scale, count), "scale")
        inner, outer = (lower, scale_cholesky) if self.inverse else (scale_cholesky, lower)
        ratio = np.linalg.solve(inner, outer)
        size = np.sum(ratio * ratio)
        out = -0.5 * df * count * log(2.0) - multigammaln(0.5 * df, count) - 0.5 * size
        if self.inverse:
            return out + df * half_logdet_scale - (df + count + 1.0) * half_logdet
        return out + (df - count - 1.0) * half_logdet - df * half_logdet_scale

    def pdf(self, x: Any, df: Any, scale: Any) -> Any:
        """The density."""
        return np.exp(self.logpdf(x, df, scale))


class _InvWishart(_Wishart):
    """The inverse Wishart distribution."""

    inverse = True


multivariate_normal = _MultivariateNormal()
multivariate_t = _MultivariateT()
dirichlet = _Dirichlet()
multinomial = _Multinomial()
matrix_normal = _MatrixNormal()
wishart = _Wishart()
invwishart = _InvWishart()
