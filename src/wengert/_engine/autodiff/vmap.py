"""`vmap`: from a function of one batch element to a function of a batch.

The function is traced once, on placeholders with the shape and dtype of one element
(core/tracing.py); then each node of the graph is evaluated for the whole batch (batch_graph.py).
It can be combined with every other transformation: derivatives inside and outside, graphs, nesting,
eager tensors and plain arrays.

    vmap                 the transformation
    axes_of_arguments    the batch axis of each leaf, from in_axes
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, overload

import numpy as np
import optree

from wengert._engine.core import pytree
from wengert._engine.core.conversion_hook import converted
from wengert._engine.core.device_arrays import refuse_on_device
from wengert._engine.core.handle import Handle, describe, shape_of, wrap
from wengert._engine.core.node import constant
from wengert._engine.core.op import lookup
from wengert._engine.core.other_libraries import values_of
from wengert._engine.core.symbolic.dim import Dim
from wengert._engine.core.validation import refuse_unknown_length
from wengert.errors import ConversionError, ShapeError, StructureError, at, user_line

from .arguments import derived, name_of
from .batch_graph import map_over_batch
from .vmap_fallback import row_by_row as row_by_row

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
    """Return a function that applies `fun` to each element of a batch.

    Parameters
    ----------
    fun : callable
        Takes and returns arrays or nested containers of them. It is written for one element, and
        must not branch on values: use ``np.where``.
    in_axes : int, None, or sequence of these, default 0
        The batch axis of each positional argument; None for an argument that is the same for all
        elements. An entry may be a container like its argument. The batch axis of keyword arguments
        is 0.
    out_axes : int, None, or container of these, default 0
        The batch axis of each result; None for a result that is the same for all elements.
    axis_size : int, optional
        The size of the batch, if no argument has a batch axis.

    Returns
    -------
    callable
        Takes the arguments of `fun` with an additional batch axis, and returns its results with
        one. Plain arrays give plain arrays; tensors give tensors, which can be differentiated.

    Raises
    ------
    StructureError
        `in_axes` or `out_axes` do not match the arguments or results; no argument has a batch axis
        and ``axis_size`` is not given.
    ShapeError
        The batch sizes of two arguments differ; an axis does not exist.
    TracedBranchError
        `fun` branches on a value that differs between batch elements.

    See Also
    --------
    jacobian : derivatives of all outputs.
    trace : trace the result once, if it is called often.

    Notes
    -----
    *Cost.* `fun` runs once, at some microseconds per operation, whatever the size of the batch;
    then each of its operations runs once on the batch. Operations without a batching rule
    (``@op.batch``) run on one element at a time.

    *Side effects.* Values that do not depend on the arguments are computed once: random numbers
    that `fun` draws are the same for all elements (pass them as a batched argument), and output
    that it prints is printed once.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> def distance(x, y):
    ...     return np.sqrt(np.sum((x - y) ** 2))
    >>> points = np.array([[0.0, 0.0], [3.0, 4.0]])
    >>> wg.vmap(distance, in_axes=(0, None))(points, np.zeros(2))
    array([0., 5.])

    Per-example gradients:

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
    columns, size = _batched_leaves(leaves, axes, axis_size, (args, kwargs), what)
    outer: Any = None

    def element(*handles: Any) -> list[Any]:
        nonlocal outer
        # Unbatched arguments become tensors too, so that batched tensors can index them.
        inner = [wrap(constant(x)) if type(x) is np.ndarray else x for x in leaves]
        for i, handle in zip(columns, handles, strict=True):
            inner[i] = handle
        inner_args, inner_kwargs = pytree.unflatten(structure, inner)
        outer = converted(fun)(*inner_args, **inner_kwargs)
        return pytree.flatten(outer)[0]

    pairs = map_over_batch(element, list(columns.values()), size, what)
    result_axes = _axes_of_results(out_axes, outer, len(pairs), what)
    results = []
    for (value, batched), axis in zip(pairs, result_axes, strict=True):
        value = _result(value, batched, axis, size, what)
        results.append(_like_arguments(value, leaves))
    return pytree.unflatten(pytree.flatten(outer)[1], results)


# ---- axes --------------------------------------------------------------------------------------


def axes_of_arguments(
    in_axes: int | dict[Any, Any] | tuple[Any, ...] | None,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    count: int,
    what: str,
) -> list[Any]:
    """The batch axis of each leaf of the arguments, or None."""
    if type(in_axes) is int:
        return [in_axes] * count
    if isinstance(in_axes, list | tuple) and not hasattr(in_axes, "_fields"):
        if len(in_axes) != len(args):
            raise StructureError(
                f"{what}: in_axes has {len(in_axes)} entries, but {len(args)} positional arguments "
                f"were given. Give one for each, None if it has no batch axis{at(user_line())}."
            )
        in_axes = tuple(in_axes)
    elif in_axes is None:
        in_axes = (None,) * len(args)
    else:
        raise StructureError(
            f"{what}: in_axes={in_axes!r} is not an integer, None, or a sequence with one entry "
            f"for each argument{at(user_line())}."
        )
    leaf_axes = [
        a for axes, x in zip(in_axes, args, strict=True) for a in _spread(axes, x, what, "in")
    ]
    return leaf_axes + [0] * (count - len(leaf_axes))


def _axes_of_results(
    out_axes: int | dict[Any, Any] | tuple[int | None, ...] | None, out: Any, count: int, what: str
) -> list[Any]:
    return [out_axes] * count if type(out_axes) is int else _spread(out_axes, out, what, "out")


def _spread(axes: Any, of: Any, what: str, side: str) -> list[Any]:
    """An axis for each leaf of a container, given one axis or a container of axes."""
    leaves, _ = pytree.flatten(of)  # registers dataclasses at first use
    if axes is None or type(axes) is int:
        return [axes] * len(leaves)
    try:
        leaf_axes = optree.broadcast_prefix(axes, of, none_is_leaf=True, namespace=pytree.NAMESPACE)
    except (ValueError, TypeError) as error:
        raise StructureError(
            f"{what}: {side}_axes={axes!r} is not nested like the values, "
            f"{pytree.flatten(of)[1]}. Give an integer or None for each part, or one for all"
            f"{at(user_line())}."
        ) from error
    invalid = next((a for a in leaf_axes if a is not None and type(a) is not int), None)
    if invalid is not None:
        raise StructureError(
            f"{what}: {side}_axes has {invalid!r}, which is not an axis. An axis is an integer, or "
            f"None{at(user_line())}."
        )
    return leaf_axes


def _batched_leaves(
    leaves: Sequence[Any],
    axes: Sequence[Any],
    axis_size: int | None,
    arguments: tuple[Any, ...],
    what: str,
) -> tuple[dict[int, Any], Any]:
    """The batched leaves by index, with the batch axis moved to the front, and the batch size."""
    columns: dict[int, Any] = {}
    size: Any = axis_size
    first: int | None = None
    for i, (x, axis) in enumerate(zip(leaves, axes, strict=True)):
        if axis is None or x is None:
            continue
        if not isinstance(x, Handle):
            spec = describe(x)
            if spec is None or isinstance(spec, tuple):
                refuse_on_device(x, f"{what}: {_argument_name(arguments, i)}")
                remedy = values_of(x) or "Give None for it in in_axes"
                raise StructureError(
                    f"{what}: {_argument_name(arguments, i)} is a {type(x).__name__}, which has no "
                    f"batch axis. {remedy}{at(user_line())}."
                )
            if isinstance(x, np.ma.MaskedArray) and x.mask is not np.ma.nomask:
                raise ConversionError(
                    f"{what}: {_argument_name(arguments, i)} is a masked array, and masks are not "
                    "supported. Fill it, x.filled(0.0), or pass the mask as a separate argument"
                    f"{at(user_line())}."
                )
            x = np.asarray(x)
        shape = shape_of(x)
        if not -len(shape) <= axis < len(shape):
            raise ShapeError(
                f"{what}: {_argument_name(arguments, i)} has shape {_shown(shape)} and no axis "
                f"{axis} for the batch. Give None in in_axes for a value that is the same for all "
                f"elements{at(user_line())}."
            )
        n = shape[axis]
        if size is None:
            size, first = n, i
        elif n != size:
            other = "axis_size" if first is None else _argument_name(arguments, first)
            raise ShapeError(
                f"{what}: {_argument_name(arguments, i)} has batch size {n} (axis {axis} of "
                f"{_shown(shape)}), but {other} {'is' if first is None else 'has'} {size}. All "
                f"batch sizes must be equal{at(user_line())}."
            )
        columns[i] = _moved(x, axis % len(shape), 0)
    if size is None:
        raise StructureError(
            f"{what}: no argument has a batch axis, so the batch size is not known. Give in_axes "
            f"other than None, or axis_size{at(user_line())}."
        )
    return columns, size


def _argument_name(arguments: Any, i: int) -> str:
    """The name of a leaf of (args, kwargs) in a message."""
    path = pytree.paths(arguments)[i]
    outer, _, inner = path[1:].partition("]")
    name, _, rest = inner[1:].partition("]")
    number = f"argument {name}" if outer == "0" else f"argument {name.strip(chr(39))}"
    return number + (f" at {rest}" if rest else "")


def _shown(shape: tuple[Any, ...]) -> str:
    return f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"


def _moved(x: Any, source: int, target: int) -> Any:
    """`x` with one axis moved."""
    if source == target:
        return x
    order = [k for k in range(len(shape_of(x))) if k != source]
    order.insert(target, source)
    return lookup("transpose")(x, axes=tuple(order))


# ---- results -----------------------------------------------------------------------------------


def _result(
    value: Operand | str | None, batched: bool, axis: int | None, size: Size, what: str
) -> Any:
    """One result, with the batch axis at the position that the caller specifies."""
    if value is None:
        return None
    spec = describe(value)
    if spec is None or isinstance(spec, tuple):
        refuse_unknown_length(value)
        raise StructureError(
            f"{what}: it returned a {type(value).__name__}, which has no batch. Return arrays, "
            f"numbers and containers of them{at(user_line())}."
        )
    if axis is None:
        if batched:
            raise StructureError(
                f"{what}: out_axes is None for a result that differs between batch elements "
                f"({spec}). Give the position of its batch axis, or reduce over it afterwards"
                f"{at(user_line())}."
            )
        return value
    ndim = len(spec.shape) + (not batched)
    if not -ndim <= axis < ndim:
        raise ShapeError(
            f"{what}: out_axes={axis}, but the result with the batch axis has {ndim} axes"
            f"{at(user_line())}."
        )
    if not batched:
        if isinstance(size, Dim) and not isinstance(value, Handle):
            value = wrap(constant(value))  # NumPy has no symbolic sizes
        value = lookup("broadcast_to")(value, shape=(size, *spec.shape))
    return _moved(value, 0, axis % ndim)


def _like_arguments(value: Array | None, arguments: Sequence[Any]) -> Any:
    """A tensor if an argument is one; otherwise an array that shares no memory with arguments."""
    if value is None or isinstance(value, Handle):
        return value
    if any(isinstance(x, Handle) for x in arguments):
        return wrap(constant(value))
    if isinstance(value, np.ndarray):
        arrays = (x for x in arguments if isinstance(x, np.ndarray))
        if not value.flags.writeable or any(np.may_share_memory(value, x) for x in arrays):
            return value.copy()
    return value
