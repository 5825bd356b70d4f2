"""Metrics of scipy.spatial.distance, along the last axis of arrays that broadcast.

    METRICS     the metrics by SciPy's names
    metric_of   a metric by its name, with its options checked

The derivative of a norm is 0 where the vectors are equal (docs/conventions.md, 1.1), also that of
the square roots in other metrics.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from wengert._engine.core.handle import value_of
from wengert._engine.tensor.numpy_dispatch import as_array
from wengert.errors import ArgumentError, at, user_line

from ..dispatch import zero_if_zero

Metric = Callable[..., Any]


def _sum(x: Any, w: Any = None) -> Any:
    return np.sum(x if w is None else as_array(w) * x, axis=-1)


def _root(x: Any) -> Any:
    """The square root, with derivative 0 at 0."""
    is_zero = value_of(x) == 0
    return np.where(is_zero, 0.0, np.sqrt(np.where(is_zero, 1.0, x)))


def sqeuclidean(u: Any, v: Any, w: Any = None) -> Any:
    """The squared Euclidean distance, sum(w (u - v)**2)."""
    return _sum((u - v) ** 2, w)


def euclidean(u: Any, v: Any, w: Any = None) -> Any:
    """The Euclidean distance."""
    if w is None:
        return np.linalg.norm(u - v, axis=-1)
    return _root(sqeuclidean(u, v, w))


def cityblock(u: Any, v: Any, w: Any = None) -> Any:
    """The sum of absolute differences."""
    return _sum(np.abs(u - v), w)


def chebyshev(u: Any, v: Any, w: Any = None) -> Any:
    """The largest absolute difference, of those with a positive weight."""
    apart = np.abs(u - v)
    return np.max(apart if w is None else np.where(value_of(as_array(w)) > 0, apart, 0.0), axis=-1)


def minkowski(u: Any, v: Any, p: float = 2, w: Any = None) -> Any:
    """The p-norm of the difference, sum(w abs(u - v)**p)**(1/p)."""
    if not p > 0:
        raise ArgumentError(f"minkowski: p={p}: p must be greater than 0{at(user_line())}.")
    if np.isinf(p):
        return chebyshev(u, v, w)
    apart = u - v
    if w is not None:
        apart = apart * as_array(w) ** (1 / p)
    return np.linalg.norm(apart, ord=p, axis=-1)


def seuclidean(u: Any, v: Any, V: Any) -> Any:
    """The Euclidean distance of vectors divided by standard deviations; V are the variances."""
    return np.linalg.norm((u - v) / np.sqrt(as_array(V)), axis=-1)


def mahalanobis(u: Any, v: Any, VI: Any) -> Any:
    """sqrt((u - v) VI (u - v)), with the inverse of the covariance VI."""
    apart = u - v
    return _root(np.sum((apart @ as_array(VI)) * apart, axis=-1))


def cosine(u: Any, v: Any, w: Any = None) -> Any:
    """1 minus the cosine of the angle between the vectors."""
    lengths = np.sqrt(_sum(u * u, w)) * np.sqrt(_sum(v * v, w))
    return 1.0 - _sum(u * v, w) / lengths


def correlation(u: Any, v: Any, w: Any = None, centered: bool = True) -> Any:
    """1 minus the correlation of the elements."""
    if centered:
        u, v = _centered(u, w), _centered(v, w)
    return cosine(u, v, w)


def _centered(x: Any, w: Any) -> Any:
    if w is None:
        return x - np.mean(x, axis=-1, keepdims=True)
    w = as_array(w)
    return x - (_sum(x, w) / np.sum(w))[..., None]


def braycurtis(u: Any, v: Any, w: Any = None) -> Any:
    """sum(abs(u - v)) / sum(abs(u + v))."""
    return _sum(np.abs(u - v), w) / _sum(np.abs(u + v), w)


def canberra(u: Any, v: Any, w: Any = None) -> Any:
    """sum(abs(u - v) / (abs(u) + abs(v))), where 0 / 0 is 0."""
    return _sum(zero_if_zero(np.abs(u - v), np.abs(u) + np.abs(v)), w)


def jensenshannon(p: Any, q: Any, base: float | None = None) -> Any:
    """The square root of the Jensen-Shannon divergence of probabilities, which are normalized."""
    p = p / np.sum(p, axis=-1, keepdims=True)
    q = q / np.sum(q, axis=-1, keepdims=True)
    middle = (p + q) / 2.0
    divergence = np.sum(_entropy(p, middle) + _entropy(q, middle), axis=-1) / 2.0
    # It is positive up to rounding.
    return _root(np.maximum(divergence / (1.0 if base is None else np.log(base)), 0.0))


def _entropy(p: Any, q: Any) -> Any:
    """p log(p / q), and 0 where p is 0."""
    is_zero = value_of(p) == 0
    one = np.where(is_zero, 1.0, p)
    return np.where(is_zero, 0.0, one * np.log(one / np.where(is_zero, 1.0, q)))


METRICS: dict[str, Metric] = {
    f.__name__: f
    for f in (
        braycurtis,
        canberra,
        chebyshev,
        cityblock,
        correlation,
        cosine,
        euclidean,
        jensenshannon,
        mahalanobis,
        minkowski,
        seuclidean,
        sqeuclidean,
    )
}


def metric_of(name: object, options: dict[str, Any], what: str) -> Metric:
    """A metric by its name.

    Raises
    ------
    ArgumentError
        There is no such metric, or it has no such option.
    """
    metric = METRICS.get(name.lower()) if isinstance(name, str) else None
    if metric is None:
        raise ArgumentError(
            f"{what}: with tensors there is no metric {name!r}. Choose one of "
            f"{', '.join(METRICS)}, or give a function of two vectors{at(user_line())}."
        )
    known = list(inspect.signature(metric).parameters)[2:]
    unknown = [k for k in options if k not in known]
    if unknown:
        raise ArgumentError(
            f"{what}: the metric {name!r} has no option {unknown[0]!r}, but {', '.join(known)}"
            f"{at(user_line())}."
        )
    return metric
