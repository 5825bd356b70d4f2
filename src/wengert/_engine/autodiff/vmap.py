"""Batch: `vmap`, a function of one row made a function of many.

The function runs once, on placeholders with the shape and dtype of one row, and what it does is
written down (core/tracing.py); then the list is evaluated line by line for all rows at once
(batch_graph.py).  So it is a transformation of lists like every other: of derivatives, inside
derivatives, of graphs, inside graphs, nested, of eager tensors and of plain arrays.

    vmap       the transformation
    _Axes      which axis of each leaf are the rows, read off in_axes or out_axes
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, overload

import numpy as np
import optree

from wengert._engine.core import pytree
from wengert._engine.core.handle import Handle, describe, shape_of, wrap
from wengert._engine.core.node import constant
from wengert._engine.core.op import lookup
from wengert._engine.core.symbolic.dim import Dim
from wengert.errors import ConversionError, ShapeError, StructureError, at, user_line

from .arguments import name_of
from .batch_graph import over_rows
from .vmap_fallback import row_by_row as row_by_row
from .wrapper import derived

if TYPE_CHECKING:
    from wengert._engine.core.types import Array, Operand, Size

P = ParamSpec("P")
R = TypeVar("R")


@overload
def vmap(
    fun: np.ufunc,
    in_axes: Any = ...,
    out_axes: Any = ...,
    axis_size: Any = ...,
) -> Callable[..., Any]: ...


@overload
def vmap(
    fun: Callable[P, R],
    in_axes: Any = ...,
    out_axes: Any = ...,
    axis_size: Any = ...,
) -> Callable[P, R]: ...


def vmap(
    fun: Callable[P, R],
    in_axes: int | dict[Any, Any] | tuple[Any, ...] | None = 0,
    out_axes: int | dict[Any, Any] | tuple[int | None, ...] | None = 0,
    axis_size: int | None = None,
) -> Callable[P, R]:
    """Return a function that does for many rows at once what `fun` does for one.

    Parameters
    ----------
    fun : callable
        Takes and returns arrays or nested containers of them. It is written for one row, and must
        not decide by values which way to go: choose with ``np.where``.
    in_axes : int, None, or sequence of these, default 0
        Which axis of each positional argument the rows are; None for an argument that is the same
        for all rows. An entry may be a container like its argument. Keyword arguments have the
        rows in axis 0.
    out_axes : int, None, or container of these, default 0
        Where the rows are to be in each result; None for a result that is the same for all.
    axis_size : int, optional
        The number of rows, if no argument has them.

    Returns
    -------
    callable
        Takes the arguments of `fun` with an axis of rows more, and returns its results with one
        more. Plain arrays give plain arrays; tensors give tensors, through which derivatives pass.

    Raises
    ------
    StructureError
        `in_axes` or `out_axes` do not match the arguments or results; no argument has rows and
        ``axis_size`` is not given.
    ShapeError
        Two arguments have different numbers of rows; an axis is not there.
    TracedBranchError
        `fun` was about to branch on a value that differs from row to row.

    See Also
    --------
    jacobian : derivatives of all outputs.
    trace : write the result down once, if it is called often.

    Notes
    -----
    *Cost.* `fun` runs once, at some microseconds an operation, whatever the number of rows; then
    each of its operations runs once on all rows. Operations that state no batching rule
    (``@op.batch``) run row by row.

    *Once.* What does not depend on the arguments is computed once: random numbers that `fun` draws
    are the same for all rows (pass them in, one for each), and what it prints, it prints once.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> def distance(x, y):
    ...     return np.sqrt(np.sum((x - y) ** 2))
    >>> points = np.array([[0.0, 0.0], [3.0, 4.0]])
    >>> wg.vmap(distance, in_axes=(0, None))(points, np.zeros(2))
    array([0., 5.])

    Derivatives for each row, the gradient of every example:

    >>> loss = lambda w, x: np.sum(w * x) ** 2
    >>> wg.vmap(wg.grad(loss), in_axes=(None, 0))(np.ones(2), points)
    array([[ 0.,  0.],
           [42., 56.]])
    """
    return derived(fun, _vmap, fun, in_axes, out_axes, axis_size)


def _vmap(
    fun: Callable[..., Any],
    in_axes: int | dict[Any, Any] | tuple[Any, ...] | None,
    out_axes: int | dict[Any, Any] | tuple[int | None, ...] | None,
    axis_size: int | None,
    /,
    *args: Any,
    **kwargs: Any,
) -> Any:
    what = f"vmap of {name_of(fun)}"
    leaves, structure = pytree.flatten((args, kwargs))
    axes = axes_of_arguments(in_axes, args, kwargs, len(leaves), what)
    columns, size = _fronted_rows(leaves, axes, axis_size, (args, kwargs), what)
    outer: Any = None

    def row(*handles: Any) -> list[Any]:
        nonlocal outer
        # What is the same for all rows is a tensor too, so that it can be read at their indices.
        inner = [wrap(constant(x)) if type(x) is np.ndarray else x for x in leaves]
        for i, handle in zip(columns, handles, strict=True):
            inner[i] = handle
        full, more = pytree.unflatten(structure, inner)
        outer = fun(*full, **more)
        return pytree.flatten(outer)[0]

    pairs = over_rows(row, list(columns.values()), size, what)
    places = _axes_of_results(out_axes, outer, len(pairs), what)
    results = []
    for (value, batched), axis in zip(pairs, places, strict=True):
        value = _result(value, batched, axis, size, what)
        results.append(_as_given(value, leaves))
    return pytree.unflatten(pytree.flatten(outer)[1], results)


# ---- axes --------------------------------------------------------------------------------------


def axes_of_arguments(
    in_axes: int | dict[Any, Any] | tuple[Any, ...] | None,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    count: int,
    what: str,
) -> list[Any]:
    """For each leaf of the arguments the axis of the rows, or None."""
    if type(in_axes) is int:
        return [in_axes] * count
    if isinstance(in_axes, list | tuple) and not hasattr(in_axes, "_fields"):
        if len(in_axes) != len(args):
            raise StructureError(
                f"{what}: in_axes has {len(in_axes)} entries, but {len(args)} positional arguments "
                f"were given. Give one for each, None for what has no rows{at(user_line())}."
            )
        in_axes = tuple(in_axes)
    elif in_axes is None:
        in_axes = (None,) * len(args)
    else:
        raise StructureError(
            f"{what}: in_axes={in_axes!r} is neither a number nor None nor a sequence with one "
            f"entry for each argument{at(user_line())}."
        )
    found = [a for axes, x in zip(in_axes, args, strict=True) for a in _spread(axes, x, what, "in")]
    return found + [0] * (count - len(found))


def _axes_of_results(
    out_axes: int | dict[Any, Any] | tuple[int | None, ...] | None, out: Any, count: int, what: str
) -> list[Any]:
    return [out_axes] * count if type(out_axes) is int else _spread(out_axes, out, what, "out")


def _spread(axes: Any, of: Any, what: str, side: str) -> list[Any]:
    """An axis for each leaf of a container, given one for each or for a container of them."""
    leaves, _ = pytree.flatten(of)  # registers dataclasses at first sight
    if axes is None or type(axes) is int:
        return [axes] * len(leaves)
    try:
        found = optree.broadcast_prefix(axes, of, none_is_leaf=True, namespace=pytree.NAMESPACE)
    except (ValueError, TypeError) as error:
        raise StructureError(
            f"{what}: {side}_axes={axes!r} is not nested like what it is for, "
            f"{pytree.flatten(of)[1]}. Give a number or None for each part, or one for all"
            f"{at(user_line())}."
        ) from error
    odd = next((a for a in found if a is not None and type(a) is not int), None)
    if odd is not None:
        raise StructureError(
            f"{what}: {side}_axes has {odd!r}, which is not an axis. An axis is an integer, or "
            f"None{at(user_line())}."
        )
    return found


def _fronted_rows(
    leaves: Sequence[Any],
    axes: Sequence[Any],
    axis_size: int | None,
    given: tuple[Any, ...],
    what: str,
) -> tuple[dict[int, Any], Any]:
    """The leaves that have rows, with the rows in the first axis, and how many there are."""
    columns: dict[int, Any] = {}
    size: Any = axis_size
    first: int | None = None
    for i, (x, axis) in enumerate(zip(leaves, axes, strict=True)):
        if axis is None or x is None:
            continue
        if not isinstance(x, Handle):
            spec = describe(x)
            if spec is None or isinstance(spec, tuple):
                raise StructureError(
                    f"{what}: {_place(given, i)} is a {type(x).__name__}, which has no rows. Say "
                    f"None for it in in_axes{at(user_line())}."
                )
            if isinstance(x, np.ma.MaskedArray) and x.mask is not np.ma.nomask:
                raise ConversionError(
                    f"{what}: {_place(given, i)} is a masked array; what its mask means is not "
                    "known here. Fill it, x.filled(0.0), or pass the mask as an argument of its own"
                    f"{at(user_line())}."
                )
            x = np.asarray(x)
        shape = shape_of(x)
        if not -len(shape) <= axis < len(shape):
            raise ShapeError(
                f"{what}: {_place(given, i)} has shape {_shown(shape)} and no axis {axis} to find "
                f"rows in. Say None in in_axes for what is the same for all rows{at(user_line())}."
            )
        n = shape[axis]
        if size is None:
            size, first = n, i
        elif n != size:
            other = "axis_size" if first is None else _place(given, first)
            raise ShapeError(
                f"{what}: {_place(given, i)} has {n} rows (axis {axis} of {_shown(shape)}), but "
                f"{other} {'is' if first is None else 'has'} {size}. All need the same number"
                f"{at(user_line())}."
            )
        columns[i] = _moved(x, axis % len(shape), 0)
    if size is None:
        raise StructureError(
            f"{what}: no argument has rows, so their number is not known. Give in_axes other than "
            f"None, or axis_size{at(user_line())}."
        )
    return columns, size


def _place(given: Any, i: int) -> str:
    """How a leaf of (args, kwargs) is called in a message."""
    path = pytree.paths(given)[i]
    outer, _, inner = path[1:].partition("]")
    name, _, rest = inner[1:].partition("]")
    number = f"argument {name}" if outer == "0" else f"argument {name.strip(chr(39))}"
    return number + (f" at {rest}" if rest else "")


def _shown(shape: tuple[Any, ...]) -> str:
    return f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"


def _moved(x: Any, source: int, target: int) -> Any:
    """`x` with one axis in another place."""
    if source == target:
        return x
    order = [k for k in range(len(shape_of(x))) if k != source]
    order.insert(target, source)
    return lookup("transpose")(x, axes=tuple(order))


# ---- results -----------------------------------------------------------------------------------


def _result(
    value: Operand | str | None, batched: bool, axis: int | None, size: Size, what: str
) -> Any:
    """One result, with the rows where the caller wants them."""
    if value is None:
        return None
    spec = describe(value)
    if spec is None or isinstance(spec, tuple):
        raise StructureError(
            f"{what}: it returned a {type(value).__name__}, of which there are no rows. Return "
            f"arrays, numbers and containers of them{at(user_line())}."
        )
    if axis is None:
        if batched:
            raise StructureError(
                f"{what}: out_axes is None for a result that differs from row to row ({spec}). "
                f"Say where the rows are to be, or reduce over them outside{at(user_line())}."
            )
        return value
    ndim = len(spec.shape) + (not batched)
    if not -ndim <= axis < ndim:
        raise ShapeError(
            f"{what}: out_axes={axis}, but a result with its rows has {ndim} axes{at(user_line())}."
        )
    if not batched:
        if isinstance(size, Dim) and not isinstance(value, Handle):
            value = wrap(constant(value))  # NumPy knows no symbolic sizes
        value = lookup("broadcast_to")(value, shape=(size, *spec.shape))
    return _moved(value, 0, axis % ndim)


def _as_given(value: Array | None, given: Sequence[Any]) -> Any:
    """A tensor where tensors came in; an array that is no part of what came in."""
    if value is None or isinstance(value, Handle):
        return value
    if any(isinstance(x, Handle) for x in given):
        return wrap(constant(value))
    if isinstance(value, np.ndarray):
        arrays = (x for x in given if isinstance(x, np.ndarray))
        if not value.flags.writeable or any(np.may_share_memory(value, x) for x in arrays):
            return value.copy()
    return value
