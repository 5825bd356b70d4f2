"""The common arguments of NumPy's reductions: out=, where=, initial=, dtype=, keepdims=.

Each option is a function of values that may be tensors. NOTHING is NumPy's marker for an omitted
option.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert._engine.core.handle import Handle, dtype_of, shape_of, value_of
from wengert._engine.kinds.reduction import Axis, axes_of
from wengert._engine.ops import casts
from wengert._engine.ops.elementwise.selection import where as choose
from wengert._engine.tensor.numpy_dispatch import spread
from wengert._engine.tensor.numpy_protocols import deliver

NOTHING = np._NoValue  # type: ignore[attr-defined]


def given(x: Any, out: Any) -> Any:
    """The result, written to `out=` if given."""
    return x if out is None else deliver(x, out)


def masked(a: Any, where: Any, fill: Any) -> Any:
    """`a` with the identity element where the mask is False."""
    if where is True or where is NOTHING:
        return a
    dtype = dtype_of(a)
    return choose(where, a, fill if isinstance(fill, Handle) else dtype.type(fill))


def typed(a: Any, dtype: Any) -> Any:
    """`a` in the dtype of the computation."""
    return a if dtype is None or dtype is NOTHING else casts.astype(a, dtype)


def whole(op: Any, a: Any, dtype: Any, **how: Any) -> Any:
    """A sum or product in integers of `dtype`, modulo its range, as in NumPy."""
    return converted(op(casts.astype(a, dtype), **how), dtype)


def converted(x: Any, dtype: Any) -> Any:
    """`x` converted to a dtype; `x` itself if it has it."""
    return x if dtype_of(x) == np.dtype(dtype) else casts.astype(x, dtype)


def started(x: Any, initial: Any, combine: Any) -> Any:
    """A result combined with `initial=`."""
    if initial is None or initial is NOTHING:
        return x
    return combine(x, cast_initial(initial, dtype_of(x)))


def cast_initial(initial: Any, dtype: np.dtype[Any]) -> Any:
    """The initial value of a reduction, cast as in NumPy, so that the result keeps its dtype."""
    if not isinstance(initial, Handle):
        return dtype.type(initial)
    return initial if dtype_of(initial) == dtype else casts.astype(initial, dtype)


def kept(keepdims: Any) -> bool:
    """Whether the reduced axes are kept."""
    return keepdims is not NOTHING and bool(keepdims)


def unkept(x: Any, axis: Axis, keepdims: Any) -> Any:
    """Remove the reduced axes unless keepdims is true."""
    if kept(keepdims):
        return x
    shape = shape_of(x)
    gone = axes_of(axis, len(shape))
    return x.reshape(tuple(n for k, n in enumerate(shape) if k not in gone))


def count(a: Any, axis: Axis, where: Any) -> Any:
    """The number of elements selected by the mask, with reduced axes kept, in `a`'s precision."""
    dtype = dtype_of(a)
    mask = spread(value_of(where), shape_of(a))
    real = dtype.type(0).real.dtype if dtype.kind in "fc" else np.dtype(float)
    return np.add.reduce(mask, axis=axis, keepdims=True).astype(real)
