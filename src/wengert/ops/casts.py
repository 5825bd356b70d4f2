"""Casts and the adjoint pair of broadcasting: astype, broadcast_to, sum_to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core.apply import Operation, apply
from ..core.handle import Handle
from ..core.op import register
from ..kinds.linear import linear


@linear
def cast(x, *, dtype):
    """x in another floating or complex dtype; the cotangent is cast back."""
    return np.asarray(x).astype(dtype)[()]


@cast.transpose
def _cast_back(t, x, *, dtype):
    if t.dtype.kind == "c" and x.dtype.kind != "c":
        t = t.real
    return astype(t, x.dtype)


class _Discretise(Operation):
    """A cast to whole numbers or truth values: the derivative is zero."""

    kind = "elementwise"
    discrete = True

    def run(self, x: Any, *, dtype: Any) -> Any:  # type: ignore[override]
        """x in that dtype."""
        return np.asarray(x).astype(dtype)[()]


discretise = register(_Discretise("discretise", "A cast to an integer or boolean dtype."))


def astype(x: Any, dtype: Any) -> Any:
    """`x` in another dtype, as NumPy's method; integers and booleans stop derivatives."""
    dtype = np.dtype(dtype)
    if not isinstance(x, Handle):
        return np.asarray(x).astype(dtype)[()]
    if dtype.kind in "fc":
        if x.dtype.kind == "c" and dtype.kind == "f":  # type: ignore[attr-defined]
            x = x.real  # type: ignore[attr-defined]
        return apply(cast, (x,), {"dtype": dtype})
    return apply(discretise, (x,), {"dtype": dtype})



@linear(view=True)
def broadcast_to(x, *, shape):
    """x repeated along new axes and axes of length one, without copying."""
    return np.broadcast_to(x, shape)


@broadcast_to.transpose
def _broadcast_back(t, x, *, shape):
    return sum_to(t, shape=x.shape)


@linear
def sum_to(x, *, shape):
    """The sum over what `broadcast_to` would have repeated: its transpose."""
    x = np.asarray(x)
    extra = x.ndim - len(shape)
    axes = tuple(range(extra)) + tuple(
        i + extra for i, n in enumerate(shape) if n == 1 and x.shape[i + extra] != 1
    )
    return np.add.reduce(x, axis=axes, keepdims=True).reshape(shape)[()] if axes else x


@sum_to.transpose
def _sum_back(t, x, *, shape):
    return broadcast_to(t, shape=x.shape)
