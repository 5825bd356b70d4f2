"""Correlation, regression, hypothesis tests and distances of samples, with SciPy's signatures.

    pearsonr linregress                     correlation and linear regression
    ttest_1samp ttest_rel ttest_ind f_oneway
    power_divergence chisquare              test statistics and p-values
    wasserstein_distance energy_distance    distances between the distributions of two samples
    gaussian_kde                            kernel density estimation

Plain arrays are passed to SciPy's functions; for tensors the result has the same fields, each a
tensor.  At the minimum of a statistic the derivative of the p-value is that of its formula.
Formulas: Y. Dodge, The Concise Encyclopedia of Statistics (2008); S. Vallender (1974) and
G. Szekely (2002) for the distances; D. W. Scott, Multivariate Density Estimation (1992).
"""

from __future__ import annotations

from math import log, pi
from typing import Any, NamedTuple

import numpy as np

from wengert._engine.core import display
from wengert._engine.core.handle import shape_of
from wengert._engine.tensor.numpy_dispatch import as_array, values
from wengert.errors import ArgumentError, ShapeError, at, user_line

from ..dispatch import known_length
from ..special import betainc, chdtrc, fdtrc, logsumexp, stdtr, xlogy
from .descriptive_statistics import counterpart

__all__ = """
    pearsonr linregress ttest_1samp ttest_rel ttest_ind f_oneway power_divergence chisquare
    wasserstein_distance energy_distance gaussian_kde
""".split()


@display.shown_fields
class Significance(NamedTuple):
    """A test statistic and its p-value."""

    statistic: Any
    pvalue: Any


@display.shown_fields
class LinregressResult(NamedTuple):
    """Slope, intercept, correlation, p-value and standard errors of a linear regression."""

    slope: Any
    intercept: Any
    rvalue: Any
    pvalue: Any
    stderr: Any
    intercept_stderr: Any


def _require_two_sided(alternative: str, name: str) -> None:
    if alternative != "two-sided":
        raise ArgumentError(
            f"{name} of tensors with alternative={alternative!r}: only 'two-sided' is supported. "
            f"One-sided p-values of a t statistic are stdtr(df, t) and stdtr(df, -t)"
            f"{at(user_line())}."
        )


@counterpart
def pearsonr(x: Any, y: Any, *, alternative: str = "two-sided", axis: int = 0) -> Significance:
    """Pearson's correlation coefficient of two samples and its p-value."""
    _require_two_sided(alternative, "pearsonr")
    count = known_length(shape_of(x)[axis], "pearsonr")
    x, y = x - np.mean(x, axis=axis, keepdims=True), y - np.mean(y, axis=axis, keepdims=True)
    sizes = np.sqrt(np.sum(x * x, axis=axis)) * np.sqrt(np.sum(y * y, axis=axis))
    r = np.sum(x * y, axis=axis) / sizes
    shape = 0.5 * count - 1.0
    return Significance(r, 2.0 * betainc(shape, shape, 0.5 * (1.0 - np.abs(r))))


@counterpart
def linregress(x: Any, y: Any, alternative: str = "two-sided") -> LinregressResult:
    """Linear least-squares regression."""
    _require_two_sided(alternative, "linregress")
    count = known_length(shape_of(x)[0], "linregress")
    x_mean, y_mean = np.mean(x), np.mean(y)
    dx, dy = x - x_mean, y - y_mean
    xx, xy, yy = np.mean(dx * dx), np.mean(dx * dy), np.mean(dy * dy)
    r, slope = xy / np.sqrt(xx * yy), xy / xx
    df = count - 2
    residual = yy - xy * slope
    error = np.sqrt(residual / (xx * df))
    t = r * np.sqrt(df / ((1.0 - r) * (1.0 + r)))
    return LinregressResult(
        slope,
        y_mean - slope * x_mean,
        r,
        2.0 * stdtr(1.0 * df, -np.abs(t)),
        error,
        error * np.sqrt(xx + x_mean * x_mean),
    )


def _t_test(t: Any, df: Any) -> Significance:
    return Significance(t, 2.0 * stdtr(df, -np.abs(t)))


@counterpart
def ttest_1samp(
    a: Any,
    popmean: Any,
    axis: int = 0,
    nan_policy: str = "propagate",
    alternative: str = "two-sided",
) -> Significance:
    """The t-test of the mean of one sample."""
    _require_two_sided(alternative, "ttest_1samp")
    count = known_length(shape_of(a)[axis], "ttest_1samp")
    error = np.sqrt(np.var(a, axis=axis, ddof=1) / count)
    return _t_test((np.mean(a, axis=axis) - popmean) / error, count - 1.0)


@counterpart
def ttest_rel(
    a: Any, b: Any, axis: int = 0, nan_policy: str = "propagate", alternative: str = "two-sided"
) -> Significance:
    """The t-test of two related samples."""
    return ttest_1samp(a - b, 0.0, axis, nan_policy, alternative)


@counterpart
def ttest_ind(
    a: Any,
    b: Any,
    *,
    axis: int = 0,
    equal_var: bool = True,
    nan_policy: str = "propagate",
    alternative: str = "two-sided",
) -> Significance:
    """Student's or Welch's t-test of the means of two independent samples."""
    _require_two_sided(alternative, "ttest_ind")
    n, m = (float(known_length(shape_of(s)[axis], "ttest_ind")) for s in (a, b))
    var_a, var_b = (np.var(s, axis=axis, ddof=1) for s in (a, b))
    difference = np.mean(a, axis=axis) - np.mean(b, axis=axis)
    if equal_var:
        df = n + m - 2.0
        pooled = ((n - 1.0) * var_a + (m - 1.0) * var_b) / df
        return _t_test(difference / np.sqrt(pooled * (1.0 / n + 1.0 / m)), df)
    of_a, of_b = var_a / n, var_b / m
    df = (of_a + of_b) ** 2 / (of_a * of_a / (n - 1.0) + of_b * of_b / (m - 1.0))
    return _t_test(difference / np.sqrt(of_a + of_b), df)


@counterpart
def f_oneway(*samples: Any, axis: int = 0) -> Significance:
    """One-way analysis of variance: the F statistic of several samples and its p-value."""
    counts = [float(known_length(shape_of(s)[axis], "f_oneway")) for s in samples]
    total, groups = sum(counts), len(samples)
    means = [np.mean(s, axis=axis, keepdims=True) for s in samples]
    grand_mean = sum(n * m for n, m in zip(counts, means, strict=True)) / total
    between = sum(n * (m - grand_mean) ** 2 for n, m in zip(counts, means, strict=True))
    within = sum(
        np.sum((s - m) ** 2, axis=axis, keepdims=True) for s, m in zip(samples, means, strict=True)
    )
    dfn, dfd = groups - 1.0, total - groups
    f = np.squeeze((between / dfn) / (within / dfd), axis=axis)
    return Significance(f, fdtrc(dfn, dfd, f))


_POWERS = {
    "pearson": 1.0,
    "log-likelihood": 0.0,
    "freeman-tukey": -0.5,
    "mod-log-likelihood": -1.0,
    "neyman": -2.0,
    "cressie-read": 2.0 / 3.0,
}


@counterpart
def power_divergence(
    f_obs: Any, f_exp: Any = None, ddof: Any = 0, axis: int = 0, lambda_: Any = None
) -> Significance:
    """Cressie and Read's power divergence statistic and its p-value."""
    power = _POWERS[lambda_] if isinstance(lambda_, str) else 1.0 if lambda_ is None else lambda_
    if f_exp is None:
        f_exp = np.mean(f_obs, axis=axis, keepdims=True)
    if power == 1:
        terms = (f_obs - f_exp) ** 2 / f_exp
    elif power == 0:
        terms = 2.0 * xlogy(f_obs, f_obs / f_exp)
    elif power == -1:
        terms = 2.0 * xlogy(f_exp, f_exp / f_obs)
    else:
        terms = f_obs * ((f_obs / f_exp) ** power - 1.0) * (2.0 / (power * (power + 1.0)))
    statistic = np.sum(terms, axis=axis)
    count = known_length(shape_of(f_obs)[axis], "power_divergence")
    return Significance(statistic, chdtrc(count - 1.0 - ddof, statistic))


@counterpart
def chisquare(
    f_obs: Any, f_exp: Any = None, ddof: Any = 0, axis: int = 0, *, sum_check: bool = True
) -> Significance:
    """Pearson's chi-square statistic of frequencies and its p-value."""
    return power_divergence(f_obs, f_exp, ddof, axis, "pearson")


def _cdf_differences(u: Any, v: Any, u_weights: Any, v_weights: Any) -> tuple[Any, Any]:
    """The differences of two empirical cdfs between the sorted points, and the interval widths."""
    points = np.sort(np.concatenate([u, v]))
    widths = points[1:] - points[:-1]
    cdfs = []
    for sample, weights in ((u, u_weights), (v, v_weights)):
        order = np.argsort(values(sample))
        counts = np.searchsorted(values(sample)[order], values(points)[:-1], side="right")
        if weights is None:
            cdfs.append(counts / known_length(shape_of(sample)[0], "a distance"))
            continue
        sums = np.concatenate([np.zeros(1), np.cumsum(as_array(weights)[order])])
        cdfs.append(sums[counts] / sums[-1])
    return cdfs[0] - cdfs[1], widths


@counterpart
def wasserstein_distance(
    u_values: Any, v_values: Any, u_weights: Any = None, v_weights: Any = None
) -> Any:
    """The area between the empirical cdfs of two samples."""
    differences, widths = _cdf_differences(u_values, v_values, u_weights, v_weights)
    return np.sum(np.abs(differences) * widths)


@counterpart
def energy_distance(
    u_values: Any, v_values: Any, u_weights: Any = None, v_weights: Any = None
) -> Any:
    """The square root of twice the integral of the squared difference of the empirical cdfs."""
    differences, widths = _cdf_differences(u_values, v_values, u_weights, v_weights)
    return np.sqrt(2.0 * np.sum(differences * differences * widths))


class _GaussianKDE:
    """A Gaussian kernel density estimate; see `gaussian_kde`."""

    def __init__(self, dataset: Any, bw_method: Any, weights: Any) -> None:
        dataset = as_array(dataset)
        self.dataset = dataset if len(shape_of(dataset)) == 2 else np.reshape(dataset, (1, -1))
        self.d, self.n = (known_length(k, "gaussian_kde") for k in shape_of(self.dataset))
        normalized = np.full(self.n, 1.0 / self.n) if weights is None else weights / np.sum(weights)
        self.weights, self.neff = normalized, 1.0 / np.sum(normalized * normalized)
        self.factor = self._bandwidth_factor(bw_method)
        mean = np.sum(normalized * self.dataset, axis=1, keepdims=True)
        deviations = self.dataset - mean
        scatter = (normalized * deviations) @ np.swapaxes(deviations, 0, 1)
        scatter = scatter / (1.0 - 1.0 / self.neff)
        self.covariance = scatter * self.factor**2
        self.cholesky = np.linalg.cholesky(self.covariance)

    def _bandwidth_factor(self, method: Any) -> Any:
        if method is None or method == "scott":
            return self.neff ** (-1.0 / (self.d + 4.0))
        if isinstance(method, str) and method == "silverman":
            return (self.neff * (self.d + 2.0) / 4.0) ** (-1.0 / (self.d + 4.0))
        return method(self) if callable(method) else method

    def logpdf(self, x: Any) -> Any:
        """The logarithm of the density at points (d, m), or (m,) in one dimension."""
        x = as_array(x)
        points = x if len(shape_of(x)) == 2 else np.reshape(x, (self.d, -1))
        if shape_of(points)[0] != self.d:
            raise ShapeError(
                f"gaussian_kde of points with {shape_of(points)[0]} dimensions, but the dataset "
                f"has {self.d}: points must be columns, as in SciPy{at(user_line())}."
            )
        scaled = np.linalg.solve(self.cholesky, points)
        scaled_data = np.linalg.solve(self.cholesky, self.dataset)
        squares = np.sum((scaled[:, :, None] - scaled_data[:, None, :]) ** 2, axis=0)
        logs = np.log(np.where(values(self.weights) > 0, self.weights, 1.0))
        logs = np.where(values(self.weights) > 0, logs, -np.inf)
        scale = np.sum(np.log(np.diagonal(self.cholesky))) + 0.5 * self.d * log(2.0 * pi)
        return logsumexp(logs - 0.5 * squares, axis=1) - scale

    def evaluate(self, points: Any) -> Any:
        """The density at points."""
        return np.exp(self.logpdf(points))

    __call__ = pdf = evaluate


def gaussian_kde(dataset: Any, bw_method: Any = None, weights: Any = None) -> Any:
    """Kernel density estimation with Gaussian kernels, as ``scipy.stats.gaussian_kde``.

    Parameters
    ----------
    dataset : array or Tensor
        Shape (n,), or (d, n) with points as columns.
    bw_method : str, number or callable, optional
        "scott" (the default), "silverman", or the bandwidth factor.
    weights : array or Tensor, optional
        The weight of each point, of shape (n,).

    Returns
    -------
    object
        Calling it with points returns the density; `logpdf` returns the logarithm. Both can be
        differentiated with respect to points, sample and weights.

    Raises
    ------
    ShapeError
        The points and the sample have different numbers of dimensions.

    Notes
    -----
    D. W. Scott, Multivariate Density Estimation (1992). *Cost.* d times n times the number of
    points.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy.stats import gaussian_kde
    >>> sample = np.array([-1.0, 0.0, 1.0])
    >>> float(wg.grad(lambda x: gaussian_kde(sample)(x)[0])(np.array([0.0]))[0])
    0.0
    """
    return _GaussianKDE(dataset, bw_method, weights)
