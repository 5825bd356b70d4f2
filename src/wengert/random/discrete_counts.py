"""Discrete distributions: poisson, binomial, multinomial ...

    poisson, binomial, negative_binomial    one count for each element
    multinomial                             counts that add up

No derivative passes, as none exists: a count jumps.  Where a derivative of an expectation is asked
for, use the log-probability: E[f(k) d log p(k)] (wengert.scipy.stats has them).
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
    """Counts of the Poisson distribution.

    Parameters
    ----------
    key : array_like or Tensor
    lam : float, array_like or Tensor
        The rate, at least 0; of others -1 comes.
    shape : int or tuple of int, optional
        By default that of `lam`.
    dtype : dtype of integers

    Returns
    -------
    ndarray or Tensor
    """
    _, lengths, (lam,) = parameters(shape, "float64", lam)
    whole = np.dtype(np.int64)
    found = rejection_samplers.poisson_counts(as_key(key), filled(lam, lengths), dtype=whole)
    return found.astype(as_dtype(dtype))


def binomial(key: Any, n: Any, p: Any, shape: Any = None, dtype: Any = "int64") -> Any:
    """How many of `n` attempts succeed, each with probability `p`; -1 where they are none."""
    _, lengths, (n, p) = parameters(shape, "float64", n, p)
    given = filled(n, lengths), filled(p, lengths)
    found = rejection_samplers.binomial_counts(as_key(key), *given, dtype=np.dtype(np.int64))
    return found.astype(as_dtype(dtype))


def negative_binomial(key: Any, n: Any, p: Any, shape: Any = None, dtype: Any = "int64") -> Any:
    """How many attempts fail before `n` have succeeded, each with probability `p`."""
    kind, lengths, (n, p) = parameters(shape, "float64", value_of(n), value_of(p))
    first, second = split(key)
    rate = gamma(first, n, lengths, kind) * ((1.0 - p) / p)
    return poisson(second, rate, lengths, dtype)


def multinomial(key: Any, n: Any, p: Any, shape: Any = None, dtype: Any = "int64") -> Any:
    """How often each class comes up in `n` attempts.

    Parameters
    ----------
    key : array_like or Tensor
    n : int, array_like or Tensor
    p : array_like or Tensor
        (..., k): the probabilities, which add up to 1.
    shape : int or tuple of int, optional
        Of the result without its last axis, which has the length k; by default that of `n` and
        `p` without its last axis.

    Returns
    -------
    ndarray or Tensor

    Notes
    -----
    One class after the other, each binomial among the attempts that are left.
    """
    p = as_array(p)
    *batch, count = shape_of(p)
    _, lengths, _ = parameters(shape, "float64", n, np.zeros(tuple(batch)))
    left = filled(as_array(n).astype(np.float64), as_shape(lengths))
    share: Any = 1.0
    found = []
    for k, one in enumerate(split(key, count)):
        chance = np.clip(p[..., k] / np.where(share > 0.0, share, 1.0), 0.0, 1.0)
        some = left if k == count - 1 else binomial(one, left, chance, lengths, "float64")
        found.append(some)
        left, share = left - some, share - p[..., k]
    return np.stack(found, axis=-1).astype(as_dtype(dtype))
