"""Dispersion, trimmed and circular statistics of samples, with SciPy's names and signatures.

    gstd gzscore                   geometric standard deviation and z-score
    iqr median_abs_deviation       robust measures of dispersion
    trim_mean tmean tvar tstd tsem tmin tmax    trimmed statistics
    circmean circvar circstd directional_stats  statistics of angles and directions
    kstat kstatvar                 R. A. Fisher's unbiased estimates of cumulants
    differential_entropy           O. Vasicek's estimate of the entropy
    boxcox yeojohnson yeojohnson_llf    power transforms with a given power

Plain arrays are passed to SciPy's own functions.  The selection and the order of the elements are
piecewise constant (docs/conventions.md, 4), so only the selected elements have nonzero derivatives.
Limits are not differentiable.
"""

from __future__ import annotations

from math import log, pi, sqrt
from typing import Any, NamedTuple

import numpy as np

from wengert._engine.core.handle import dtype_of, shape_of
from wengert._engine.tensor.numpy_dispatch import values
from wengert.errors import ArgumentError, at, user_line

from .. import special
from ..dispatch import known_length
from .descriptive_statistics import counterpart

__all__ = """
    gstd gzscore iqr median_abs_deviation trim_mean tmean tvar tstd tsem tmin tmax
    circmean circvar circstd directional_stats kstat kstatvar differential_entropy
    boxcox yeojohnson yeojohnson_llf
""".split()


def _flatten(a: Any, axis: Any) -> tuple[Any, int]:
    """The array and the axis; with axis None the flattened array and axis 0."""
    return (np.reshape(a, (-1,)), 0) if axis is None else (a, axis)


@counterpart
def gstd(a: Any, axis: Any = 0, ddof: int = 1, *, keepdims: bool = False) -> Any:
    """The geometric standard deviation: exp of the standard deviation of the logarithms."""
    return np.exp(np.std(np.log(a), axis=axis, ddof=ddof, keepdims=keepdims))


@counterpart
def gzscore(a: Any, *, axis: Any = 0, ddof: int = 0) -> Any:
    """The geometric z-score: the z-score of the logarithms."""
    logs = np.log(a)
    middle = np.mean(logs, axis=axis, keepdims=True)
    return (logs - middle) / np.std(logs, axis=axis, ddof=ddof, keepdims=True)


@counterpart
def iqr(
    x: Any,
    axis: Any = None,
    rng: tuple[float, float] = (25, 75),
    scale: Any = 1.0,
    nan_policy: str = "propagate",
    interpolation: str = "linear",
    keepdims: bool = False,
) -> Any:
    """The difference between two percentiles, divided by `scale`."""
    percentile: Any = np.percentile
    low, high = (percentile(x, q, axis=axis, method=interpolation, keepdims=keepdims) for q in rng)
    if isinstance(scale, str):
        scale = 2.0 * sqrt(2.0) * float(special.erfinv(0.5)) if scale == "normal" else scale
    return (high - low) / scale


@counterpart
def median_abs_deviation(
    x: Any, axis: Any = 0, center: Any = np.median, scale: Any = 1.0, nan_policy: str = "propagate"
) -> Any:
    """The median of the absolute deviations from the median, divided by `scale`."""
    x, axis = _flatten(x, axis)
    middle = np.expand_dims(center(x, axis=axis), axis)
    if scale == "normal":
        scale = 0.6744897501960817
    return np.median(np.abs(x - middle), axis=axis) / scale


@counterpart
def trim_mean(a: Any, proportiontocut: float, axis: Any = 0) -> Any:
    """The mean after a proportion of the sorted elements is removed at each end."""
    a, axis = _flatten(a, axis)
    count = known_length(shape_of(a)[axis], "trim_mean")
    cut = int(proportiontocut * count)
    if 2 * cut >= count:
        raise ArgumentError(
            f"trim_mean with proportiontocut={proportiontocut}: no elements remain if {cut} of "
            f"{count} are removed at each end{at(user_line())}."
        )
    ordered = np.moveaxis(np.sort(a, axis=axis), axis, 0)
    return np.mean(ordered[cut : count - cut], axis=0)


def _within_limits(a: Any, limits: Any, inclusive: Any) -> Any:
    """The mask of elements between the limits."""
    known = values(a)
    inside = known == known
    low, high = (None, None) if limits is None else limits
    if low is not None:
        inside = inside & (known >= low if inclusive[0] else known > low)
    if high is not None:
        inside = inside & (known <= high if inclusive[1] else known < high)
    return inside


def _count(inside: Any, a: Any, axis: Any, keepdims: bool = False) -> Any:
    """The number of elements in the mask, in the dtype of the elements."""
    dtype = dtype_of(a) if dtype_of(a).kind == "f" else np.dtype(float)
    return np.sum(inside, axis=axis, keepdims=keepdims).astype(dtype)


@counterpart
def tmean(a: Any, limits: Any = None, inclusive: Any = (True, True), axis: Any = None) -> Any:
    """The mean of the elements between limits."""
    inside = _within_limits(a, limits, inclusive)
    return np.sum(np.where(inside, a, 0.0), axis=axis) / _count(inside, a, axis)


@counterpart
def tvar(
    a: Any, limits: Any = None, inclusive: Any = (True, True), axis: Any = 0, ddof: int = 1
) -> Any:
    """The variance of the elements between limits."""
    a, axis = _flatten(a, axis)
    inside = _within_limits(a, limits, inclusive)
    count = _count(inside, a, axis, keepdims=True)
    middle = np.sum(np.where(inside, a, 0.0), axis=axis, keepdims=True) / count
    squares = np.sum(np.where(inside, a - middle, 0.0) ** 2, axis=axis, keepdims=True)
    return np.squeeze(squares / (count - ddof), axis=axis)


@counterpart
def tstd(
    a: Any, limits: Any = None, inclusive: Any = (True, True), axis: Any = 0, ddof: int = 1
) -> Any:
    """The standard deviation of the elements between limits."""
    return np.sqrt(tvar(a, limits, inclusive, axis, ddof))


@counterpart
def tsem(
    a: Any, limits: Any = None, inclusive: Any = (True, True), axis: Any = 0, ddof: int = 1
) -> Any:
    """The standard error of the mean of the elements between limits."""
    a, axis = _flatten(a, axis)
    count = _count(_within_limits(a, limits, inclusive), a, axis)
    return np.sqrt(tvar(a, limits, inclusive, axis, ddof) / count)


@counterpart
def tmin(
    a: Any,
    lowerlimit: Any = None,
    axis: Any = 0,
    inclusive: bool = True,
    nan_policy: str = "propagate",
) -> Any:
    """The smallest element above a limit."""
    a, axis = _flatten(a, axis)
    inside = _within_limits(a, (lowerlimit, None), (inclusive, True))
    return np.min(np.where(inside, a, np.inf), axis=axis)


@counterpart
def tmax(
    a: Any,
    upperlimit: Any = None,
    axis: Any = 0,
    inclusive: bool = True,
    nan_policy: str = "propagate",
) -> Any:
    """The largest element below a limit."""
    a, axis = _flatten(a, axis)
    inside = _within_limits(a, (None, upperlimit), (True, inclusive))
    return np.max(np.where(inside, a, -np.inf), axis=axis)


def _mean_sin_cos(samples: Any, high: Any, low: Any, axis: Any) -> tuple[Any, Any, Any]:
    """The means of the sines and cosines of the angles, and the period divided by 2 pi."""
    scale = (high - low) / (2.0 * pi)
    angles = (samples - low) / scale
    return np.mean(np.sin(angles), axis=axis), np.mean(np.cos(angles), axis=axis), scale


def _resultant_length(samples: Any, high: Any, low: Any, axis: Any) -> tuple[Any, Any, Any]:
    """1 - R and log R, for the mean resultant length R, and the scale of the angles.

    If R > 1/2, 1 - R is computed without cancellation, as the mean of 2 sin^2 of half the angles
    from the mean direction.
    """
    sin, cos, scale = _mean_sin_cos(samples, high, low, axis)
    length = np.hypot(sin, cos)
    concentrated = length > 0.5
    mean = np.arctan2(np.where(concentrated, sin, 0.0), np.where(concentrated, cos, 1.0))
    mean = mean if axis is None else np.expand_dims(mean, axis)
    versine = np.mean(2.0 * np.sin(0.5 * ((samples - low) / scale - mean)) ** 2, axis=axis)
    versine = np.where(concentrated, versine, 0.5)
    one_minus_r = np.where(concentrated, versine, 1.0 - length)
    log_r = np.where(concentrated, np.log1p(-versine), np.log(np.where(concentrated, 0.5, length)))
    return one_minus_r, log_r, scale


@counterpart
def circmean(
    samples: Any,
    high: Any = 2.0 * pi,
    low: Any = 0.0,
    axis: Any = None,
    nan_policy: str = "propagate",
) -> Any:
    """The circular mean, between low and high."""
    sin, cos, scale = _mean_sin_cos(samples, high, low, axis)
    return np.arctan2(sin, cos) % (2.0 * pi) * scale + low


@counterpart
def circvar(
    samples: Any,
    high: Any = 2.0 * pi,
    low: Any = 0.0,
    axis: Any = None,
    nan_policy: str = "propagate",
) -> Any:
    """The circular variance: 1 minus the mean resultant length."""
    return _resultant_length(samples, high, low, axis)[0]


@counterpart
def circstd(
    samples: Any,
    high: Any = 2.0 * pi,
    low: Any = 0.0,
    axis: Any = None,
    nan_policy: str = "propagate",
    *,
    normalize: bool = False,
) -> Any:
    """The circular standard deviation: that of a wrapped normal with the same circvar."""
    _, log_length, scale = _resultant_length(samples, high, low, axis)
    out = np.sqrt(-2.0 * log_length)
    return out if normalize else out * scale


class Directions(NamedTuple):
    """The mean direction and the mean resultant length."""

    mean_direction: Any
    mean_resultant_length: Any


@counterpart
def directional_stats(samples: Any, *, axis: int = 0, normalize: bool = True) -> Directions:
    """The mean direction of vectors along the last axis, and the mean resultant length."""
    samples = np.moveaxis(samples, axis, 0)
    if normalize:
        samples = samples / np.sqrt(np.sum(samples * samples, axis=-1, keepdims=True))
    mean = np.mean(samples, axis=0)
    length = np.sqrt(np.sum(mean * mean, axis=-1, keepdims=True))
    return Directions(mean / length, length[..., 0])


@counterpart
def kstat(data: Any, n: int = 2, *, axis: Any = None) -> Any:
    """The unbiased estimate of the cumulant of order n, 1 to 4."""
    data, axis = _flatten(data, axis)
    count = float(known_length(shape_of(data)[axis], "kstat"))
    if n not in (1, 2, 3, 4):
        raise ArgumentError(f"kstat of order {n}: n must be 1, 2, 3 or 4{at(user_line())}.")
    middle = np.mean(data, axis=axis, keepdims=True)
    second, third, fourth = (np.sum((data - middle) ** k, axis=axis) for k in (2, 3, 4))
    if n == 1:
        return np.squeeze(middle, axis=axis)
    if n == 2:
        return second / (count - 1.0)
    if n == 3:
        return count * third / ((count - 1.0) * (count - 2.0))
    inner = count * (count + 1.0) * fourth - 3.0 * (count - 1.0) * second * second
    return inner / ((count - 1.0) * (count - 2.0) * (count - 3.0))


@counterpart
def kstatvar(data: Any, n: int = 2, *, axis: Any = None) -> Any:
    """The unbiased estimate of the variance of kstat, of order 1 or 2."""
    data, axis = _flatten(data, axis)
    count = float(known_length(shape_of(data)[axis], "kstatvar"))
    second = kstat(data, 2, axis=axis)
    if n == 1:
        return second / count
    if n == 2:
        fourth = kstat(data, 4, axis=axis)
        top = 2.0 * count * second * second + (count - 1.0) * fourth
        return top / (count * (count + 1.0))
    raise ArgumentError(f"kstatvar of order {n}: n must be 1 or 2{at(user_line())}.")


@counterpart
def differential_entropy(
    values: Any,
    *,
    window_length: int | None = None,
    base: Any = None,
    axis: int = 0,
    method: str = "auto",
) -> Any:
    """The differential entropy, estimated from the spacings of the sorted elements.

    ``method``: "vasicek", "van es", "ebrahimi" or "auto", which depends on the sample size.
    """
    count = known_length(shape_of(values)[axis], "differential_entropy")
    width = int(sqrt(count) + 0.5) if window_length is None else window_length
    if not 0 < 2 * width < count:
        raise ArgumentError(
            f"differential_entropy of {count} elements with window_length={width}: it must be at "
            f"least 1 and less than half the number of elements{at(user_line())}."
        )
    if method == "auto":
        method = "van es" if count <= 10 else "ebrahimi" if count <= 1000 else "vasicek"
    ordered = np.moveaxis(np.sort(values, axis=axis), axis, -1)
    if method == "van es":
        spacings = ordered[..., width:] - ordered[..., :-width]
        mean = np.mean(np.log((count + 1.0) / width * spacings), axis=-1)
        harmonic = sum(1.0 / k for k in range(width, count + 1))
        out = mean + harmonic + log(width) - log(count + 1.0)
    elif method in ("vasicek", "ebrahimi"):
        i = np.arange(count)
        high = ordered[..., np.minimum(i + width, count - 1)]
        spacings = high - ordered[..., np.maximum(i - width, 0)]
        edge = np.minimum(np.minimum(i, count - 1 - i), width) / width
        factor = 2.0 if method == "vasicek" else 1.0 + edge
        out = np.mean(np.log(count / (factor * width) * spacings), axis=-1)
    else:
        raise ArgumentError(
            f"differential_entropy with method={method!r}: for tensors it must be 'vasicek', "
            f"'van es', 'ebrahimi' or 'auto'{at(user_line())}."
        )
    return out if base is None else out / np.log(base)


def _require_power(lmbda: Any, name: str) -> None:
    if lmbda is None:
        raise ArgumentError(
            f"{name} of a tensor without lmbda: maximizing the likelihood is not differentiable. "
            f"Compute lmbda with scipy.stats.{name} and pass it{at(user_line())}."
        )


@counterpart
def boxcox(x: Any, lmbda: Any = None, alpha: Any = None, optimizer: Any = None) -> Any:
    """The Box-Cox transform with power `lmbda`, which is required."""
    _require_power(lmbda, "boxcox")
    return special.boxcox(x, lmbda)


@counterpart
def yeojohnson(x: Any, lmbda: Any = None) -> Any:
    """The Yeo-Johnson transform with power `lmbda`, which is also defined for negative numbers.

    For x >= 0 it is the Box-Cox transform of x + 1 with power lmbda; for x < 0 it is minus that of
    1 - x with power 2 - lmbda.
    """
    _require_power(lmbda, "yeojohnson")
    positive = values(x) >= 0
    right = special.boxcox1p(np.where(positive, x, 0.0), lmbda)
    left = -special.boxcox1p(np.where(positive, 0.0, -x), 2.0 - lmbda)
    return np.where(positive, right, left)


@counterpart
def yeojohnson_llf(lmb: Any, data: Any) -> Any:
    """The log-likelihood of the Yeo-Johnson power `lmb`."""
    count = shape_of(data)[0]
    variance = np.var(yeojohnson(data, lmb), axis=0)
    jacobian = np.sum(np.sign(values(data)) * np.log1p(np.abs(data)), axis=0)
    return -0.5 * count * np.log(variance) + (lmb - 1.0) * jacobian
