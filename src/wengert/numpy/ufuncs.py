"""Methods of ufuncs on tensors: reduce, accumulate, outer, at, reduceat.

A method with a dedicated operation uses it (add.reduce is a sum, maximum.accumulate a cumulative
maximum); any other binary ufunc is folded along the axis, one operation per step.

`ufunc.at(x, index, v)` writes into a tensor: the handle points at a new node. Repeated indices are
processed in order, as in NumPy.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from wengert._engine.core.handle import Handle, is_traced, shape_of, value_of
from wengert._engine.core.lazy_import import LazyModule
from wengert._engine.core.node import Node
from wengert._engine.core.symbolic.dim import is_symbolic
from wengert._engine.kinds.reduction import axes_of
from wengert._engine.ops import casts, cumulative, reductions
from wengert._engine.ops.elementwise.selection import where as choose
from wengert._engine.ops.indexing import getitem, masks
from wengert._engine.ops.shapes import reshape
from wengert._engine.tensor.numpy_dispatch import as_array, numbers, spread
from wengert._engine.tensor.numpy_protocols import fitted, implements_method
from wengert._engine.tensor.operand_conversion import needed

from ..errors import ConversionError, DtypeError, ShapeError, at, user_line
from . import minmax_norms
from . import reductions as ours
from .minmax_norms import NOTHING

control_flow = LazyModule("wengert._engine.control_flow")

__all__: list[str] = []  # reached through NumPy's ufuncs only


def _check_binary(ufunc: np.ufunc, method: str) -> None:
    if ufunc.nin != 2 or ufunc.nout != 1 or ufunc.signature is not None:
        raise DtypeError(
            f"numpy.{ufunc.__name__}.{method}: only ufuncs with two operands and one result have "
            f"this method{at(user_line())}."
        )


# ---- reduce ------------------------------------------------------------------------------------


def _logaddexp_reduce(x: Any, axis: Any, keepdims: bool) -> Any:
    return reductions.logsumexp(x, axis=axis, keepdims=keepdims)


def _logaddexp2_reduce(x: Any, axis: Any, keepdims: bool) -> Any:
    return reductions.logsumexp(x * math.log(2.0), axis=axis, keepdims=keepdims) / math.log(2.0)


DIRECT: dict[np.ufunc, Callable[..., Any]] = {
    np.add: lambda x, axis, dtype, keepdims, initial, where: ours.sum(
        x, axis, dtype, None, keepdims, initial, where
    ),
    np.multiply: lambda x, axis, dtype, keepdims, initial, where: ours.prod(
        x, axis, dtype, None, keepdims, initial, where
    ),
    np.maximum: lambda x, axis, dtype, keepdims, initial, where: minmax_norms.max(
        x, axis, None, keepdims, initial, where
    ),
    np.minimum: lambda x, axis, dtype, keepdims, initial, where: minmax_norms.min(
        x, axis, None, keepdims, initial, where
    ),
}
NAMED: dict[np.ufunc, Callable[..., Any]] = {
    np.logical_and: lambda x, axis, keepdims: reductions.all(x, axis=axis, keepdims=keepdims),
    np.logical_or: lambda x, axis, keepdims: reductions.any(x, axis=axis, keepdims=keepdims),
    np.logaddexp: _logaddexp_reduce,
    np.logaddexp2: _logaddexp2_reduce,
}


@implements_method("reduce")
def reduce(
    ufunc: np.ufunc,
    array: Any,
    axis: Any = 0,
    dtype: Any = None,
    keepdims: bool = False,
    initial: Any = NOTHING,
    where: Any = True,
) -> Any:
    """``ufunc.reduce`` of a tensor: the elements along the axes combined, in order.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> wg.grad(np.hypot.reduce)(np.array([3.0, 4.0]))
    array([0.6, 0.8])
    """
    _check_binary(ufunc, "reduce")
    if initial is None and ufunc in (np.add, np.multiply):
        initial = NOTHING
    direct = DIRECT.get(ufunc)
    if direct is not None:
        return direct(array, axis, dtype, keepdims, initial, where)
    x = as_array(array)
    if dtype is not None:
        x = casts.astype(x, dtype)
    named = NAMED.get(ufunc)
    if named is not None and initial is NOTHING and where is True:
        return named(x, axis, bool(keepdims))
    axes = axes_of(axis, x.ndim)
    if len(axes) > 1 and ufunc.identity is None and ufunc not in (np.fmax, np.fmin):
        raise ValueError(
            f"reduction operation '{ufunc.__name__}' is not reorderable, so at most one axis may "
            "be specified"
        )
    result = _fold_lines(ufunc, x, axes, initial, where)
    if keepdims:
        return reshape(result, shape=tuple(1 if k in axes else n for k, n in enumerate(x.shape)))
    return result


def _fold_lines(ufunc: np.ufunc, x: Any, axes: tuple[int, ...], initial: Any, where: Any) -> Any:
    """Fold step by step, along the given axes in C order."""
    rest = [k for k in range(x.ndim) if k not in axes]
    lines = reshape(
        x.transpose((*axes, *rest)) if x.ndim > 1 else x,
        shape=(math.prod(x.shape[k] for k in axes), *[x.shape[k] for k in rest]),
    )
    mask = None
    if where is not True:
        mask = spread(value_of(where), x.shape).transpose((*axes, *rest)).reshape(lines.shape)
    start = None if initial is NOTHING else initial
    if start is None and (mask is not None or lines.shape[0] == 0):
        start = ufunc.identity
        if start is None:
            raise ShapeError(
                f"numpy.{ufunc.__name__}.reduce of an empty array, or with where=: the ufunc has "
                f"no identity to start from. Pass initial={at(user_line())}."
            )
    if start is None:
        total, steps = lines[0], range(1, len(lines))
    else:  # a zero tensor of the right shape and dtype, plus the initial value
        total, steps = reductions.sum(lines[:0], axis=0) + start, range(len(lines))
    for k in steps:
        step = ufunc(total, lines[k])
        total = step if mask is None else choose(mask[k], step, total)
    return total


# ---- accumulate --------------------------------------------------------------------------------


@implements_method("accumulate")
def accumulate(ufunc: np.ufunc, array: Any, axis: int = 0, dtype: Any = None) -> Any:
    """``ufunc.accumulate`` of a tensor: all partial results along an axis.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> x = wg.tensor([1.0, 3.0, 2.0])
    >>> np.maximum.accumulate(x)
    Tensor([1., 3., 3.], dtype=float64)
    """
    _check_binary(ufunc, "accumulate")
    x = as_array(array)
    if dtype is not None:
        x = casts.astype(x, dtype)
    if x.ndim == 0:
        raise TypeError("cannot accumulate on a scalar")
    if ufunc is np.add:
        return cumulative.cumsum(x, axis=axis)
    if ufunc is np.multiply:
        return cumulative.cumprod(x, axis=axis)
    if ufunc in (np.maximum, np.minimum):
        return cumulative.running(x, axis=axis, largest=ufunc is np.maximum)
    before = (slice(None),) * (axis % x.ndim)
    if x.shape[axis] == 0:
        return x
    parts = [x[(*before, 0)]]
    for k in range(1, x.shape[axis]):
        parts.append(ufunc(parts[-1], x[(*before, k)]))
    return np.stack(parts, axis=axis)


@implements_method("reduceat")
def reduceat(ufunc: np.ufunc, array: Any, indices: Any, axis: int = 0, dtype: Any = None) -> Any:
    """``ufunc.reduceat`` of a tensor: reductions of the slices between indices."""
    _check_binary(ufunc, "reduceat")
    x = as_array(array)
    remedy = "Pass concrete indices"
    starts = np.asarray(needed(indices, "reduceat", "which elements are combined", remedy))
    n = x.shape[axis]
    if starts.size and (starts.min() < 0 or starts.max() >= n):
        raise IndexError(f"index out-of-bounds in {ufunc.__name__}.reduceat [0, {n})")
    before = (slice(None),) * (axis % x.ndim)
    parts = []
    for i, start in enumerate(starts.tolist()):
        stop = n if i + 1 == len(starts) else int(starts[i + 1])
        stretch = x[(*before, slice(start, max(stop, start + 1)))]
        parts.append(reduce(ufunc, stretch, axis, dtype))
    return np.stack(parts, axis=axis)


# ---- outer -------------------------------------------------------------------------------------


@implements_method("outer")
def outer(ufunc: np.ufunc, a: Any, b: Any, /, **options: Any) -> Any:
    """``ufunc.outer`` of tensors: the ufunc of all pairs of elements.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> wg.grad(lambda x: np.multiply.outer(x, [1.0, 2.0]).sum())(np.array([1.0, 1.0]))
    array([3., 3.])
    """
    _check_binary(ufunc, "outer")
    a, b = as_array(a), as_array(b)
    return ufunc(reshape(a, shape=a.shape + (1,) * b.ndim), b, **options)


# ---- at ----------------------------------------------------------------------------------------


@implements_method("at")
def at_(ufunc: np.ufunc, x: Any, index: Any, *operands: Any) -> None:
    """``ufunc.at(x, index, v)``: in place and unbuffered, so that repeated indices accumulate.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> x = wg.tensor([0.0, 0.0])
    >>> np.add.at(x, [0, 0, 1], [1.0, 2.0, 5.0])
    >>> x
    Tensor([3., 5.], dtype=float64)
    """
    if not isinstance(x, Handle):
        if any(isinstance(v, Handle) and type(v.node) is Node for v in operands):
            raise ConversionError(
                f"numpy.{ufunc.__name__}.at writes recorded values to a plain array, which would "
                "lose their derivatives. Make the array a tensor first, wengert.tensor(array)"
                f"{at(user_line())}."
            )
        if any(map(is_traced, getitem.split_index(index)[1])):
            raise ConversionError(
                f"numpy.{ufunc.__name__}.at writes to a plain array, at positions that are "
                "unknown while a graph is built. Make the array a tensor first, "
                f"wengert.tensor(array){at(user_line())}."
            )
        plain_index = index
        if isinstance(index, Handle):
            plain_index = value_of(index)
        elif isinstance(index, tuple):
            plain_index = tuple(value_of(part) for part in index)
        ufunc.at(x, plain_index, *[value_of(v) for v in operands])
        return
    v = as_array(operands[0]) if operands else None
    template, parts = getitem.split_index(index)
    if v is not None and ufunc in (np.add, np.subtract):
        new = _added(ufunc, x, v, template, parts)
    elif _decided_later(x, parts):
        new = _in_order(ufunc, x, v, template, parts)
    else:
        name = f"np.{ufunc.__name__}"
        remedy = f"Select with np.where(mask, {name}(x, v), x)"
        known = [needed(p, f"{name}.at", "which elements are modified", remedy) for p in parts]
        new = _in_rounds(ufunc, x, v, getitem.join_index(template, known))
    x._assign(fitted(new, x, f"numpy.{ufunc.__name__}.at"))  # type: ignore[attr-defined]


def _decided_later(x: Any, parts: Any) -> bool:
    """Whether the index is traced, so that repetitions are known only at run time."""
    return (any(map(is_traced, parts)) or is_symbolic(x.shape)) and not masks.has_masks(parts)


def _fitting(v: Any, spot: tuple[int, ...]) -> Any:
    """v in the shape of the indexed elements; extra leading axes of length one are removed."""
    more = v.ndim - len(spot)
    if more > 0 and v.shape[:more] == (1,) * more:
        v = reshape(v, shape=v.shape[more:])
    return v if v.shape == spot else spread(v, spot)


def _added(ufunc: np.ufunc, x: Any, v: Any, template: Any, parts: Any) -> Any:
    """x plus or minus v scattered, in one linear operation."""
    spot = shape_of(getitem.getitem(value_of(x), *map(value_of, parts), index=template))
    v = _fitting(v, spot)
    added: Any = getitem.scatter
    return ufunc(x, added(v, *parts, index=template, shape=tuple(x.shape)))


def _in_order(ufunc: np.ufunc, x: Any, v: Any, template: Any, parts: Any) -> Any:
    """Process the indices one by one, for a traced index that may have repetitions."""
    places = getitem.getitem(numbers(x.size).reshape(x.shape), *parts, index=template)
    spot = shape_of(places)
    rows = [reshape(places, shape=(-1,))]
    if v is not None:
        rows.append(reshape(_fitting(v, spot), shape=(-1,)))

    def visit(flat: Any, row: Any) -> Any:
        place, *rest = row
        return getitem.written(flat, place, ufunc(flat[place], *rest)), None

    flat, _ = control_flow.scan(visit, reshape(x, shape=(-1,)), tuple(rows))
    return reshape(flat, shape=tuple(x.shape))


def _in_rounds(ufunc: np.ufunc, x: Any, v: Any, index: Any) -> Any:
    """Process the r-th occurrences of all elements together, for r = 0, 1, ...."""
    number = np.arange(x.size).reshape(x.shape)[index]
    flat = reshape(x, shape=(-1,))
    places = np.ravel(number)
    if v is not None:
        v = reshape(_fitting(v, number.shape), shape=(-1,))
    rounds = _visits(places)
    for r in range(int(rounds.max(initial=-1)) + 1):
        now = np.flatnonzero(rounds == r)
        where = places[now]
        old = flat[where]
        new = ufunc(old) if v is None else ufunc(old, v[now])
        flat = getitem.written(flat, where, new)
    return reshape(flat, shape=tuple(x.shape))


def _visits(places: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The number of previous occurrences of each index."""
    order = np.argsort(places, kind="stable")
    ordered = places[order]
    first = np.r_[True, ordered[1:] != ordered[:-1]] if len(places) else np.empty(0, bool)
    since = np.arange(len(places)) - np.maximum.accumulate(
        np.where(first, np.arange(len(places)), 0)
    )
    rounds = np.empty(len(places), np.intp)
    rounds[order] = since
    return rounds
