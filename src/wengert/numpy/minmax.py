"""NumPy's max, min, ptp, argmax, argmin, any, all, count_nonzero.

Ties share the derivative evenly; the derivative of a NaN result goes to the NaN elements.
Positions, booleans and counts have no derivative.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert._engine.core.handle import dtype_of, shape_of
from wengert._engine.kinds.reduction import Axis, count_along
from wengert._engine.ops import casts, reductions
from wengert._engine.tensor.numpy_dispatch import counterpart
from wengert.errors import ShapeError, at, user_line

from .reduction_arguments import NOTHING, cast_initial, given, kept, masked

__all__ = ["max", "min", "amax", "amin", "ptp", "argmax", "argmin", "any", "all", "count_nonzero"]


def _extreme(op: Any, a: Any, axis: Axis, keepdims: Any, initial: Any, where: Any) -> Any:
    combine = np.maximum if op is reductions.max else np.minimum
    if initial is NOTHING or initial is None:
        if not (where is True or where is NOTHING):
            raise ShapeError(
                f"{op.name} with where= has no value if the mask selects no element. Pass initial= "
                f"too, for example {'-' if op is reductions.max else ''}np.inf{at(user_line())}."
            )
        return op(a, axis=axis, keepdims=kept(keepdims))
    initial = cast_initial(initial, dtype_of(a))
    a = masked(a, where, initial)
    shape = shape_of(a)
    if count_along(shape, axis):
        return combine(op(a, axis=axis, keepdims=kept(keepdims)), initial)
    empty = reductions.sum(a, axis=axis, keepdims=kept(keepdims))  # zeros of the right shape
    return casts.astype(empty, dtype_of(a)) + initial


@counterpart(np.max)
def max(
    a: Any,
    axis: Axis = None,
    out: Any = None,
    keepdims: Any = False,
    initial: Any = NOTHING,
    where: Any = True,
) -> Any:
    """The largest element over axes, as ``numpy.max``: NaN if there is one.

    Notes
    -----
    Ties share the derivative evenly (docs/conventions.md).

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> wg.grad(np.max)(np.array([3.0, 1.0, 3.0]))
    array([0.5, 0. , 0.5])
    """
    return given(_extreme(reductions.max, a, axis, keepdims, initial, where), out)


@counterpart(np.min)
def min(
    a: Any,
    axis: Axis = None,
    out: Any = None,
    keepdims: Any = False,
    initial: Any = NOTHING,
    where: Any = True,
) -> Any:
    """The smallest element over axes, as ``numpy.min``; see `max`."""
    return given(_extreme(reductions.min, a, axis, keepdims, initial, where), out)


@counterpart(np.amax)
def amax(a: Any, *args: Any, **kwargs: Any) -> Any:
    """Alias of `max`."""
    return max(a, *args, **kwargs)


@counterpart(np.amin)
def amin(a: Any, *args: Any, **kwargs: Any) -> Any:
    """Alias of `min`."""
    return min(a, *args, **kwargs)


@counterpart(np.ptp)
def ptp(a: Any, axis: Axis = None, out: Any = None, keepdims: Any = False) -> Any:
    """The largest minus the smallest element, as ``numpy.ptp``."""
    keys: Any = {"axis": axis, "keepdims": kept(keepdims)}
    return given(reductions.max(a, **keys) - reductions.min(a, **keys), out)


@counterpart(np.argmax)
def argmax(a: Any, axis: int | None = None, out: Any = None, *, keepdims: Any = False) -> Any:
    """The index of the first largest element, as ``numpy.argmax``; no derivative."""
    return given(reductions.argmax(a, axis=axis, keepdims=kept(keepdims)), out)


@counterpart(np.argmin)
def argmin(a: Any, axis: int | None = None, out: Any = None, *, keepdims: Any = False) -> Any:
    """The index of the first smallest element, as ``numpy.argmin``; no derivative."""
    return given(reductions.argmin(a, axis=axis, keepdims=kept(keepdims)), out)


# ---- booleans and counts -------------------------------------------------------------------


@counterpart(np.any)
def any(
    a: Any, axis: Axis = None, out: Any = None, keepdims: Any = False, *, where: Any = True
) -> Any:
    """Whether any element is nonzero, as ``numpy.any``."""
    a = masked(a, where, 0)
    return given(reductions.any(a, axis=axis, keepdims=kept(keepdims)), out)


@counterpart(np.all)
def all(
    a: Any, axis: Axis = None, out: Any = None, keepdims: Any = False, *, where: Any = True
) -> Any:
    """Whether all elements are nonzero, as ``numpy.all``."""
    a = masked(a, where, 1)
    return given(reductions.all(a, axis=axis, keepdims=kept(keepdims)), out)


@counterpart(np.count_nonzero)
def count_nonzero(a: Any, axis: Axis = None, *, keepdims: Any = False) -> Any:
    """The number of nonzero elements, as ``numpy.count_nonzero``."""
    return reductions.count_nonzero(a, axis=axis, keepdims=keepdims)
