"""Dispersion, trimmed and circular statistics of samples, with SciPy's names and signatures.

    gstd gzscore                   geometric ones
    iqr median_abs_deviation       robust spreads
    trim_mean tmean tvar tstd tsem tmin tmax    of what is left when the ends are taken off
    circmean circvar circstd directional_stats  of angles and directions
    kstat kstatvar                 R. A. Fisher's unbiased estimates of cumulants
    differential_entropy           O. Vasicek's estimate of the entropy
    boxcox yeojohnson yeojohnson_llf    powers of a sample, for a power that is given

Of plain arrays they are SciPy's own functions.  Which elements are left, and how they are ordered,
is a choice (docs/conventions.md, 4): the derivative is that of what is left.  A limit has none.
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
from .continuous_distribution import chosen
from .descriptive_statistics import counterpart

__all__ = """
    gstd gzscore iqr median_abs_deviation trim_mean tmean tvar tstd tsem tmin tmax
    circmean circvar circstd directional_stats kstat kstatvar differential_entropy
    boxcox yeojohnson yeojohnson_llf
""".split()


def _flat(a: Any, axis: Any) -> tuple[Any, int]:
    """An array and an axis of it; of None all elements in one row."""
    return (np.reshape(a, (-1,)), 0) if axis is None else (a, axis)


@counterpart
def gstd(a: Any, axis: Any = 0, ddof: int = 1, *, keepdims: bool = False) -> Any:
    """The geometric standard deviation: exp of the deviation of logarithms."""
    return np.exp(np.std(np.log(a), axis=axis, ddof=ddof, keepdims=keepdims))


@counterpart
def gzscore(a: Any, *, axis: Any = 0, ddof: int = 0) -> Any:
    """Deviations of logarithms from their mean, in units of their standard deviation."""
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
    """The median of the distances from the median, divided by `scale`."""
    x, axis = _flat(x, axis)
    middle = np.expand_dims(center(x, axis=axis), axis)
    if scale == "normal":
        scale = 0.6744897501960817
    return np.median(np.abs(x - middle), axis=axis) / scale


@counterpart
def trim_mean(a: Any, proportiontocut: float, axis: Any = 0) -> Any:
    """The mean of what is left when a share is taken off both ends."""
    a, axis = _flat(a, axis)
    count = known_length(shape_of(a)[axis], "trim_mean")
    cut = int(proportiontocut * count)
    if 2 * cut >= count:
        raise ArgumentError(
            f"trim_mean takes {cut} of {count} numbers off both ends: nothing is left"
            f"{at(user_line())}."
        )
    ordered = np.moveaxis(np.sort(a, axis=axis), axis, 0)
    return np.mean(ordered[cut : count - cut], axis=0)


def _kept(a: Any, limits: Any, inclusive: Any) -> Any:
    """Which elements are between the limits."""
    shown = values(a)
    inside = shown == shown
    low, high = (None, None) if limits is None else limits
    if low is not None:
        inside = inside & (shown >= low if inclusive[0] else shown > low)
    if high is not None:
        inside = inside & (shown <= high if inclusive[1] else shown < high)
    return inside


def _count(inside: Any, a: Any, axis: Any, keepdims: bool = False) -> Any:
    """How many are inside, in the precision of the elements."""
    dtype = dtype_of(a) if dtype_of(a).kind == "f" else np.dtype(float)
    return np.sum(inside, axis=axis, keepdims=keepdims).astype(dtype)


@counterpart
def tmean(a: Any, limits: Any = None, inclusive: Any = (True, True), axis: Any = None) -> Any:
    """The mean of the elements between limits."""
    inside = _kept(a, limits, inclusive)
    return np.sum(chosen(inside, a, 0.0), axis=axis) / _count(inside, a, axis)


@counterpart
def tvar(
    a: Any, limits: Any = None, inclusive: Any = (True, True), axis: Any = 0, ddof: int = 1
) -> Any:
    """The variance of the elements between limits."""
    a, axis = _flat(a, axis)
    inside = _kept(a, limits, inclusive)
    count = _count(inside, a, axis, keepdims=True)
    middle = np.sum(chosen(inside, a, 0.0), axis=axis, keepdims=True) / count
    squares = np.sum(chosen(inside, a - middle, 0.0) ** 2, axis=axis, keepdims=True)
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
    a, axis = _flat(a, axis)
    count = _count(_kept(a, limits, inclusive), a, axis)
    return np.sqrt(tvar(a, limits, inclusive, axis, ddof) / count)


@counterpart
def tmin(
    a: Any,
    lowerlimit: Any = None,
    axis: Any = 0,
    inclusive: bool = True,
    nan_policy: str = "propagate",
) -> Any:
    """The least element above a limit."""
    a, axis = _flat(a, axis)
    inside = _kept(a, (lowerlimit, None), (inclusive, True))
    return np.min(chosen(inside, a, np.inf), axis=axis)


@counterpart
def tmax(
    a: Any,
    upperlimit: Any = None,
    axis: Any = 0,
    inclusive: bool = True,
    nan_policy: str = "propagate",
) -> Any:
    """The largest element below a limit."""
    a, axis = _flat(a, axis)
    inside = _kept(a, (None, upperlimit), (True, inclusive))
    return np.max(chosen(inside, a, -np.inf), axis=axis)


def _turned(samples: Any, high: Any, low: Any, axis: Any) -> tuple[Any, Any, Any]:
    """The means of sines and cosines of angles, and how much of the period an angle of 1 is."""
    scale = (high - low) / (2.0 * pi)
    angles = (samples - low) / scale
    return np.mean(np.sin(angles), axis=axis), np.mean(np.cos(angles), axis=axis), scale


def _spread(samples: Any, high: Any, low: Any, axis: Any) -> tuple[Any, Any, Any]:
    """1 less the length of the mean, the logarithm of the length, and the scale of angles.

    Where points are close to each other, by their angles with the mean direction: the mean of
    2 sin^2 of half of them is what is missing of 1, and none of its digits.
    """
    sin, cos, scale = _turned(samples, high, low, axis)
    length = np.hypot(sin, cos)
    close = length > 0.5
    middle = np.arctan2(chosen(close, sin, 0.0), chosen(close, cos, 1.0))
    middle = middle if axis is None else np.expand_dims(middle, axis)
    apart = np.mean(2.0 * np.sin(0.5 * ((samples - low) / scale - middle)) ** 2, axis=axis)
    apart = chosen(close, apart, 0.5)
    missing = chosen(close, apart, 1.0 - length)
    return missing, chosen(close, np.log1p(-apart), np.log(chosen(close, 0.5, length))), scale


@counterpart
def circmean(
    samples: Any,
    high: Any = 2.0 * pi,
    low: Any = 0.0,
    axis: Any = None,
    nan_policy: str = "propagate",
) -> Any:
    """The direction of the mean of points of the unit circle, as a number from low to high."""
    sin, cos, scale = _turned(samples, high, low, axis)
    return np.arctan2(sin, cos) % (2.0 * pi) * scale + low


@counterpart
def circvar(
    samples: Any,
    high: Any = 2.0 * pi,
    low: Any = 0.0,
    axis: Any = None,
    nan_policy: str = "propagate",
) -> Any:
    """1 less the length of the mean of points of the unit circle."""
    return _spread(samples, high, low, axis)[0]


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
    """The standard deviation that a wrapped normal distribution of that circvar has."""
    _, log_length, scale = _spread(samples, high, low, axis)
    found = np.sqrt(-2.0 * log_length)
    return found if normalize else found * scale


class Directions(NamedTuple):
    """The mean of directions, and the length of the mean of the vectors."""

    mean_direction: Any
    mean_resultant_length: Any


@counterpart
def directional_stats(samples: Any, *, axis: int = 0, normalize: bool = True) -> Directions:
    """The mean direction of vectors along the last axis, and its length."""
    samples = np.moveaxis(samples, axis, 0)
    if normalize:
        samples = samples / np.sqrt(np.sum(samples * samples, axis=-1, keepdims=True))
    mean = np.mean(samples, axis=0)
    length = np.sqrt(np.sum(mean * mean, axis=-1, keepdims=True))
    return Directions(mean / length, length[..., 0])


@counterpart
def kstat(data: Any, n: int = 2, *, axis: Any = None) -> Any:
    """The unbiased estimate of the cumulant of order n, 1 to 4."""
    data, axis = _flat(data, axis)
    count = float(known_length(shape_of(data)[axis], "kstat"))
    if n not in (1, 2, 3, 4):
        raise ArgumentError(f"kstat of order {n}: there are those of 1 to 4{at(user_line())}.")
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
    data, axis = _flat(data, axis)
    count = float(known_length(shape_of(data)[axis], "kstatvar"))
    second = kstat(data, 2, axis=axis)
    if n == 1:
        return second / count
    if n == 2:
        fourth = kstat(data, 4, axis=axis)
        top = 2.0 * count * second * second + (count - 1.0) * fourth
        return top / (count * (count + 1.0))
    raise ArgumentError(f"kstatvar of order {n}: there are those of 1 and 2{at(user_line())}.")


@counterpart
def differential_entropy(
    values: Any,
    *,
    window_length: int | None = None,
    base: Any = None,
    axis: int = 0,
    method: str = "auto",
) -> Any:
    """The entropy of a sample's density by the spacings of its ordered elements.

    ``method``: "vasicek", "van es", "ebrahimi" or "auto", which decides by the number of elements.
    """
    count = known_length(shape_of(values)[axis], "differential_entropy")
    width = int(sqrt(count) + 0.5) if window_length is None else window_length
    if not 0 < 2 * width < count:
        raise ArgumentError(
            f"differential_entropy of {count} numbers with window_length={width}: it is less than "
            f"half of their number, and 1 at least{at(user_line())}."
        )
    if method == "auto":
        method = "van es" if count <= 10 else "ebrahimi" if count <= 1000 else "vasicek"
    ordered = np.moveaxis(np.sort(values, axis=axis), axis, -1)
    if method == "van es":
        apart = ordered[..., width:] - ordered[..., :-width]
        inner = np.mean(np.log((count + 1.0) / width * apart), axis=-1)
        harmonic = sum(1.0 / k for k in range(width, count + 1))
        found = inner + harmonic + log(width) - log(count + 1.0)
    elif method in ("vasicek", "ebrahimi"):
        places = np.arange(count)
        high = ordered[..., np.minimum(places + width, count - 1)]
        apart = high - ordered[..., np.maximum(places - width, 0)]
        edge = np.minimum(np.minimum(places, count - 1 - places), width) / width
        share = 2.0 if method == "vasicek" else 1.0 + edge
        found = np.mean(np.log(count / (share * width) * apart), axis=-1)
    else:
        raise ArgumentError(
            f"differential_entropy with method={method!r}: of tensors it is 'vasicek', 'van es', "
            f"'ebrahimi' or 'auto'{at(user_line())}."
        )
    return found if base is None else found / np.log(base)


def _given(lmbda: Any, what: str) -> None:
    if lmbda is None:
        raise ArgumentError(
            f"{what} of a tensor without lmbda, which would be a search for the best one. Find it "
            f"with scipy.stats.{what} of the values, and pass it{at(user_line())}."
        )


@counterpart
def boxcox(x: Any, lmbda: Any = None, alpha: Any = None, optimizer: Any = None) -> Any:
    """Box and Cox's transform of a sample by the power `lmbda`, which is to be given."""
    _given(lmbda, "boxcox")
    return special.boxcox(x, lmbda)


@counterpart
def yeojohnson(x: Any, lmbda: Any = None) -> Any:
    """Yeo and Johnson's transform, of negative numbers too, by the power `lmbda`.

    Above 0 it is Box and Cox's of x + 1 by lmbda, below minus that of 1 - x by 2 - lmbda.
    """
    _given(lmbda, "yeojohnson")
    above = values(x) >= 0
    up = special.boxcox1p(chosen(above, x, 0.0), lmbda)
    return chosen(above, up, -special.boxcox1p(chosen(above, 0.0, -x), 2.0 - lmbda))


@counterpart
def yeojohnson_llf(lmb: Any, data: Any) -> Any:
    """The logarithm of the likelihood of Yeo and Johnson's power `lmb`."""
    count = shape_of(data)[0]
    spread = np.var(yeojohnson(data, lmb), axis=0)
    jacobian = np.sum(np.sign(values(data)) * np.log1p(np.abs(data)), axis=0)
    return -0.5 * count * np.log(spread) + (lmb - 1.0) * jacobian
