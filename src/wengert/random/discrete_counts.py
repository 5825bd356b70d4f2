"""Discrete distributions: poisson, binomial, multinomial ...

    poisson, binomial, negative_binomial    one count per element
    multinomial                             counts with a given sum

Counts are piecewise constant, so they have no derivatives.  For derivatives of expectations use the
score function estimator, E[f(k) d log p(k)], with the log-probabilities of wengert.scipy.stats.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert._engine.core.handle import shape_of, value_of
from wengert._engine.tensor.numpy_dispatch import as_array

from . import rejection_samplers
from .gamma_von_mises import gamma
from .keys import as_dtype, as_key, as_shape, split
from .parameter_shapes import filled, parameters

__all__ = ["poisson", "binomial", "negative_binomial", "multinomial"]


def poisson(key: Any, lam: Any, shape: Any = None, dtype: Any = "int64") -> Any:
    """Samples from the Poisson distribution.

    Parameters
    ----------
    key : array_like or Tensor
    lam : float, array_like or Tensor
        The rate, at least 0; the result is -1 for others.
    shape : int or tuple of int, optional
        By default that of `lam`.
    dtype : integer dtype

    Returns
    -------
    ndarray or Tensor
    """
    _, lengths, (lam,) = parameters(shape, "float64", lam)
    int64 = np.dtype(np.int64)
    counts = rejection_samplers.poisson_counts(as_key(key), filled(lam, lengths), dtype=int64)
    return counts.astype(as_dtype(dtype))


def binomial(key: Any, n: Any, p: Any, shape: Any = None, dtype: Any = "int64") -> Any:
    """Numbers of successes in `n` trials of probability `p`; -1 for invalid parameters."""
    _, lengths, (n, p) = parameters(shape, "float64", n, p)
    given = filled(n, lengths), filled(p, lengths)
    counts = rejection_samplers.binomial_counts(as_key(key), *given, dtype=np.dtype(np.int64))
    return counts.astype(as_dtype(dtype))


def negative_binomial(key: Any, n: Any, p: Any, shape: Any = None, dtype: Any = "int64") -> Any:
    """Numbers of failures before `n` successes of probability `p`."""
    kind, lengths, (n, p) = parameters(shape, "float64", value_of(n), value_of(p))
    first, second = split(key)
    rate = gamma(first, n, lengths, kind) * ((1.0 - p) / p)
    return poisson(second, rate, lengths, dtype)


def multinomial(key: Any, n: Any, p: Any, shape: Any = None, dtype: Any = "int64") -> Any:
    """Numbers of occurrences of each class in `n` trials.

    Parameters
    ----------
    key : array_like or Tensor
    n : int, array_like or Tensor
    p : array_like or Tensor
        (..., k): the probabilities, which sum to 1.
    shape : int or tuple of int, optional
        Shape of the result without its last axis, of length k; by default that of `n` and of `p`
        without its last axis.

    Returns
    -------
    ndarray or Tensor

    Notes
    -----
    The classes are sampled in sequence, each from a binomial distribution of the remaining trials.
    """
    p = as_array(p)
    *batch, count = shape_of(p)
    _, lengths, _ = parameters(shape, "float64", n, np.zeros(tuple(batch)))
    trials = filled(as_array(n).astype(np.float64), as_shape(lengths))
    mass: Any = 1.0  # probability of the remaining classes
    counts = []
    for k, child in enumerate(split(key, count)):
        chance = np.clip(p[..., k] / np.where(mass > 0.0, mass, 1.0), 0.0, 1.0)
        drawn = trials if k == count - 1 else binomial(child, trials, chance, lengths, "float64")
        counts.append(drawn)
        trials, mass = trials - drawn, mass - p[..., k]
    return np.stack(counts, axis=-1).astype(as_dtype(dtype))
