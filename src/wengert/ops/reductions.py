"""Reductions: some axes become one number each."""

from __future__ import annotations

import numpy as np

from ..kinds.reduction import reduction


@reduction
def sum(x, *, axis=None, dtype=None, keepdims=False):
    """The sum over axes, NumPy's pairwise one."""
    return np.sum(x, axis=axis, dtype=dtype, keepdims=keepdims)


@sum.partial
def _sum_partial(t, out, x, axis):
    return t
