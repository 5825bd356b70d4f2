"""Descriptive statistics, with SciPy's names and signatures; compositions of NumPy functions.

    gmean, hmean, pmean               geometric, harmonic and power mean
    moment, skew, kurtosis, variation moments about the mean
    sem, zscore, zmap                 standard error of the mean, and standard scores
    boxcox_llf, entropy               Box-Cox log-likelihood; entropy of probabilities

Plain arrays are passed to SciPy's functions; tensors support the arguments `a`, `axis`, `ddof`,
`bias` and the power.  Where all elements are equal the derivative is that of the formula: NaN for
functions that divide by the standard deviation.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy  # scipy.stats is loaded when it is first used

from wengert._engine.core.handle import Handle, shape_of

from ..dispatch import holds_tensors
from ..special import entr, rel_entr

__all__ = """
    gmean hmean pmean moment skew kurtosis variation sem zscore zmap boxcox_llf entropy
""".split()


def counterpart(ours: Callable[..., Any]) -> Callable[..., Any]:
    """Dispatch to SciPy's function of the same name if no argument is a tensor."""

    @functools.wraps(ours)
    def public(*args: Any, **kwargs: Any) -> Any:
        if any(map(holds_tensors, (*args, *kwargs.values()))):
            return ours(*args, **kwargs)
        return getattr(scipy.stats, ours.__name__)(*args, **kwargs)

    return public


def _mean(a: Any, axis: Any, weights: Any, keepdims: bool) -> Any:
    if weights is None:
        return np.mean(a, axis=axis, keepdims=keepdims)
    total = np.sum(weights * np.ones(shape_of(a)), axis=axis, keepdims=keepdims)
    return np.sum(weights * a, axis=axis, keepdims=keepdims) / total


@counterpart
def gmean(a: Any, axis: Any = 0, *, weights: Any = None, keepdims: bool = False) -> Any:
    """The geometric mean: exp of the mean of the logarithms."""
    return np.exp(_mean(np.log(a), axis, weights, keepdims))


@counterpart
def hmean(a: Any, axis: Any = 0, *, weights: Any = None, keepdims: bool = False) -> Any:
    """The harmonic mean: one divided by the mean of 1 / a."""
    return 1.0 / _mean(1.0 / a, axis, weights, keepdims)


@counterpart
def pmean(a: Any, p: Any, *, axis: Any = 0, weights: Any = None, keepdims: bool = False) -> Any:
    """The power mean; p = 1 is the arithmetic and p = -1 the harmonic mean."""
    if not isinstance(p, Handle) and p == 0:
        return gmean(a, axis, weights=weights, keepdims=keepdims)
    return _mean(a**p, axis, weights, keepdims) ** (1.0 / p)


def _sample_size(a: Any, axis: Any) -> Any:
    axes = range(len(shape_of(a))) if axis is None else [axis]
    return np.prod([shape_of(a)[k] for k in axes])


def _central_moment(a: Any, order: Any, axis: Any, keepdims: bool = False) -> Any:
    deviations = a - np.mean(a, axis=axis, keepdims=True)
    return np.mean(deviations**order, axis=axis, keepdims=keepdims)


@counterpart
def moment(
    a: Any, order: int = 1, axis: Any = 0, *, center: Any = None, keepdims: bool = False
) -> Any:
    """The mean of powers of deviations from the mean, or from `center`."""
    if center is None:
        return _central_moment(a, order, axis, keepdims)
    return np.mean((a - center) ** order, axis=axis, keepdims=keepdims)


@counterpart
def skew(a: Any, axis: Any = 0, bias: bool = True, *, keepdims: bool = False) -> Any:
    """The skewness: the third central moment divided by the cubed standard deviation."""
    out = _central_moment(a, 3, axis, keepdims) / _central_moment(a, 2, axis, keepdims) ** 1.5
    if bias:
        return out
    n = _sample_size(a, axis)
    return out * np.sqrt(n * (n - 1.0)) / (n - 2.0)


@counterpart
def kurtosis(
    a: Any, axis: Any = 0, fisher: bool = True, bias: bool = True, *, keepdims: bool = False
) -> Any:
    """The fourth central moment divided by the squared variance; minus 3 if `fisher`."""
    out = _central_moment(a, 4, axis, keepdims) / _central_moment(a, 2, axis, keepdims) ** 2
    if not bias:
        n = _sample_size(a, axis)
        inner = (n * n - 1.0) * out - 3.0 * (n - 1.0) ** 2
        out = inner / ((n - 2.0) * (n - 3.0)) + 3.0
    return out - 3.0 if fisher else out


@counterpart
def variation(a: Any, axis: Any = 0, *, ddof: int = 0, keepdims: bool = False) -> Any:
    """The standard deviation divided by the mean."""
    std = np.std(a, axis=axis, ddof=ddof, keepdims=keepdims)
    return std / np.mean(a, axis=axis, keepdims=keepdims)


@counterpart
def sem(a: Any, axis: Any = 0, ddof: int = 1, *, keepdims: bool = False) -> Any:
    """The standard error of the mean."""
    return np.std(a, axis=axis, ddof=ddof, keepdims=keepdims) / np.sqrt(_sample_size(a, axis))


@counterpart
def zscore(a: Any, axis: Any = 0, ddof: int = 0) -> Any:
    """Deviations from the mean in units of the standard deviation."""
    return zmap(a, a, axis=axis, ddof=ddof)


@counterpart
def zmap(scores: Any, compare: Any, axis: Any = 0, ddof: int = 0) -> Any:
    """Deviations from the mean of another sample, in units of its standard deviation."""
    mean = np.mean(compare, axis=axis, keepdims=True)
    return (scores - mean) / np.std(compare, axis=axis, ddof=ddof, keepdims=True)


@counterpart
def boxcox_llf(lmb: Any, data: Any) -> Any:
    """The log-likelihood of the Box-Cox power `lmb`."""
    logs = np.log(data)
    n = shape_of(data)[0]
    if not isinstance(lmb, Handle) and lmb == 0:
        variance = np.var(logs, axis=0)
    else:
        variance = np.var(data**lmb / lmb, axis=0)
    return (lmb - 1.0) * np.sum(logs, axis=0) - 0.5 * n * np.log(variance)


@counterpart
def entropy(pk: Any, qk: Any = None, base: Any = None, axis: Any = 0) -> Any:
    """The entropy of probabilities, or the relative entropy to `qk`; both are normalized."""
    p = pk / np.sum(pk, axis=axis, keepdims=True)
    if qk is None:
        out = np.sum(entr(p), axis=axis)
    else:
        out = np.sum(rel_entr(p, qk / np.sum(qk, axis=axis, keepdims=True)), axis=axis)
    return out if base is None else out / np.log(base)
