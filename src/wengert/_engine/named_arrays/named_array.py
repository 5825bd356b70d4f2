"""Axis names: validation, and alignment of the axes of several operands.

The axes of a result are those of the first operand in their order, then further axes of the other
operands.  So the order is deterministic, and axes match by name, whatever their positions.

NamedArray: an array or a tensor with a name for each axis.

Operators and NumPy's elementwise functions match axes by name, reductions take names, and a result
without axes is a plain number or tensor.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import optree

from wengert._engine.core import pytree
from wengert._engine.core.handle import Handle, dtype_of, shape_of
from wengert._engine.tensor.operators import BINARY, COMPARISONS, UNARY
from wengert.errors import OperandError, ShapeError, at, user_line

if TYPE_CHECKING:
    from wengert._engine.core.types import Array

Names = tuple[str, ...]


def names_of(axes: str | Iterable[str]) -> Names:
    """Names from one string, ``"batch feature"``, or from a sequence.

    Raises
    ------
    ShapeError
        A name is repeated, or is not an identifier.
    """
    if not isinstance(axes, Iterable):
        raise ShapeError(
            f"axis names {axes!r} must be a string, 'batch feature', or a sequence of names"
            f"{at(user_line())}."
        )
    names = tuple(axes.replace(",", " ").split()) if isinstance(axes, str) else tuple(axes)
    for name in names:
        if not isinstance(name, str) or not name.isidentifier():
            raise ShapeError(f"the axis name {name!r} must be an identifier{at(user_line())}.")
    check_distinct(names)
    return names


def check_distinct(names: Sequence[str]) -> None:
    """Raise ShapeError for repeated names."""
    repeated = next((n for n in names if list(names).count(n) > 1), None)
    if repeated is not None:
        raise ShapeError(
            f"two axes named {repeated!r} in ({', '.join(names)}). Rename one of them"
            f"{at(user_line())}."
        )


def position(names: Names, name: str) -> int:
    """The position of an axis.

    Raises
    ------
    ShapeError
        There is no axis of that name.
    """
    if name not in names:
        raise ShapeError(f"there is no axis {name!r} among ({', '.join(names)}){at(user_line())}.")
    return names.index(name)


def union(operands: Iterable[tuple[Names, Any]]) -> dict[str, Any]:
    """The lengths of all axes by name, in the order of first occurrence.

    Parameters
    ----------
    operands : iterable of (names, values)

    Raises
    ------
    ShapeError
        Axes of one name have different lengths.
    """
    lengths: dict[str, Any] = {}
    for names, values in operands:
        for name, n in zip(names, shape_of(values), strict=True):
            known = lengths.setdefault(name, n)
            if known != n:
                raise ShapeError(
                    f"the axis {name!r} has length {known} in one operand and {n} in another. Axes "
                    f"of the same name must have equal lengths; rename one of them"
                    f"{at(user_line())}."
                )
    return lengths


def aligned(values: Array, names: Names, order: Sequence[str]) -> Any:
    """Values with their axes in a given order, and axes of length one for missing names."""
    present = [n for n in order if n in names]
    axes = tuple(names.index(n) for n in present)
    if axes != tuple(range(len(axes))):
        values = values.transpose(axes)
    lengths = dict(zip(present, shape_of(values), strict=True))
    shape = tuple(lengths.get(n, 1) for n in order)
    leading = next((i for i, n in enumerate(order) if n in names), len(order))
    # Missing leading axes are not needed, because NumPy broadcasts.
    shape = shape[leading:]
    return values if shape_of(values) == shape else values.reshape(shape)


REDUCTIONS = "sum mean prod min max var std any all argmin argmax".split()


class Named:
    """An array or a tensor with a name for each axis; see `named`.

    Attributes
    ----------
    values : ndarray or Tensor
    axes : tuple of str
        The name of each axis of `values`.
    """

    __module__ = "wengert.axes"

    __slots__ = ("axes", "values")
    values: Any
    axes: Names
    __array_priority__ = 2000.0

    def __init__(self, values: Array | list[Any], axes: str | Iterable[str]) -> None:
        if isinstance(values, Named):
            values = values.values
        try:
            self.values = values if isinstance(values, Handle) else np.asarray(values)
        except ValueError as error:
            raise ShapeError(f"named: {str(error).rstrip('.')}{at(user_line())}.") from error
        self.axes = names_of(axes)
        if len(shape_of(self.values)) != len(self.axes):
            raise ShapeError(
                f"{len(self.axes)} names ({', '.join(self.axes)}) for an array of shape "
                f"{shape_of(self.values)}. Give one name per axis{at(user_line())}."
            )

    @property
    def sizes(self) -> dict[str, Any]:
        """The length of each axis, by name."""
        return dict(zip(self.axes, shape_of(self.values), strict=True))

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the elements."""
        return dtype_of(self.values)

    def __repr__(self) -> str:
        sizes = ", ".join(f"{k}={v}" for k, v in self.sizes.items())
        return f"Named({sizes}: {self.values!r})"

    # ---- axes ----------------------------------------------------------------------------------

    def array(self, order: str | Iterable[str]) -> Any:
        """The values with their axes in a given order.

        Raises
        ------
        ShapeError
            The order does not have each axis exactly once.
        """
        names = names_of(order)
        if set(names) != set(self.axes):
            raise ShapeError(
                f"the order ({', '.join(names)}) must have each axis of "
                f"({', '.join(self.axes)}) once{at(user_line())}."
            )
        return aligned(self.values, self.axes, names)

    def ordered(self, order: str | Iterable[str]) -> Named:
        """The array with its axes in a given order."""
        return Named(self.array(order), order)

    def rename(self, **new: str) -> Named:
        """Rename axes: ``x.rename(feature="hidden")``."""
        for name in new:
            position(self.axes, name)
        return Named(self.values, [new.get(n, n) for n in self.axes])

    def take(self, **indices: Any) -> Any:
        """Index axes by name: an integer drops the axis, a slice or an array keeps it.

        Examples
        --------
        >>> import numpy as np, wengert as wg
        >>> x = wg.named(np.arange(6).reshape(2, 3), "row column")
        >>> x.take(column=0)
        Named(row=2: array([0, 3]))
        """
        values, axes = self.values, list(self.axes)
        for name, index in indices.items():
            k = position(tuple(axes), name)
            values = values[(slice(None),) * k + (index,)]
            if not isinstance(index, slice) and shape_of(index) == ():
                axes.pop(k)
        return _named_or_plain(values, tuple(axes))

    def flatten(self, axes: str | Iterable[str], into: str) -> Named:
        """Merge axes in the given order, at the position of the first of them."""
        merged = names_of(axes)
        first_position = position(self.axes, merged[0])
        others = [n for n in self.axes if n not in merged]
        before = [n for n in self.axes[:first_position] if n not in merged]
        order = [*before, *merged, *others[len(before) :]]
        values, sizes = self.array(order), self.sizes
        n = functools.reduce(lambda a, b: a * b, [sizes[g] for g in merged])
        names = [*before, into, *others[len(before) :]]
        check_distinct(names)
        return Named(values.reshape(tuple(n if k == into else sizes[k] for k in names)), names)

    def unflatten(self, axis: str, **sizes: Any) -> Named:
        """Split an axis into several with the given lengths, in C order."""
        k = position(self.axes, axis)
        names = [*self.axes[:k], *sizes, *self.axes[k + 1 :]]
        check_distinct(names)
        shape = shape_of(self.values)
        values = self.values.reshape((*shape[:k], *sizes.values(), *shape[k + 1 :]))
        return Named(values, names)

    def spread(self, **sizes: Any) -> Named:
        """Broadcast along new leading axes."""
        values = np.broadcast_to(self.values, (*sizes.values(), *shape_of(self.values)))
        return Named(values, (*sizes, *self.axes))

    # ---- computing -----------------------------------------------------------------------------

    def reduce(
        self, function: Callable[..., Any], over: Iterable[str], keep: str | Iterable[str] | None
    ) -> Any:
        """A NumPy reduction over named axes, or over all axes except `keep`."""
        if keep is not None:
            kept_axes = names_of(keep)
            for name in kept_axes:
                position(self.axes, name)
            over = [n for n in self.axes if n not in kept_axes]
        reduced = names_of([n for text in over for n in names_of(text)])
        if keep is None:
            reduced = reduced or self.axes
        elif not reduced:
            return self
        positions = tuple(position(self.axes, n) for n in reduced)
        remaining = tuple(n for n in self.axes if n not in reduced)
        axis: Any = None if not remaining else positions[0] if len(positions) == 1 else positions
        return _named_or_plain(function(self.values, axis=axis), remaining)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *args: Any, **kwargs: Any) -> Any:
        if method != "__call__" or kwargs:
            raise OperandError(
                f"numpy.{ufunc.__name__}.{method} is not defined for named axes. Use the values, "
                f"x.array(order){at(user_line())}."
            )
        return together(ufunc, *args)

    def __array_function__(
        self, func: Any, types: tuple[type[Any], ...], args: tuple[Any, ...], kwargs: dict[Any, Any]
    ) -> Any:
        name = getattr(func, "__name__", "")
        if name in {*REDUCTIONS, "amax", "amin"} and len(args) <= 2:
            over = args[1] if len(args) > 1 else kwargs.pop("axis", ())
            if not kwargs:
                return args[0].reduce(func, (over,) if isinstance(over, str) else over or (), None)
        raise OperandError(
            f"numpy.{name} is not defined for named axes. Use the functions of wengert.axes, or "
            f"the values, x.array(order){at(user_line())}."
        )

    def __len__(self) -> int:
        return len(self.values)

    def __bool__(self) -> bool:
        return bool(self.values)


def together(function: Callable[..., Any], *operands: Any) -> Named:
    """Apply an elementwise function to operands with axes matched by name."""
    named_operands = [x for x in operands if isinstance(x, Named)]
    order = tuple(union([(x.axes, x.values) for x in named_operands]))
    values = []
    for x in operands:
        if isinstance(x, Named):
            values.append(aligned(x.values, x.axes, order))
        elif shape_of(x) == ():
            values.append(x)
        else:
            raise ShapeError(
                f"an array of shape {shape_of(x)} is combined with named axes "
                f"({', '.join(order)}), but its axes have no names. Name them, "
                f"wengert.named(array, names){at(user_line())}."
            )
    return Named(function(*values), order)


def _named_or_plain(values: Array, axes: Names) -> Any:
    return Named(values, axes) if axes else values


def named(values: Any, axes: str | Iterable[str]) -> Named:
    """An array or a tensor with a name for each axis.

    Parameters
    ----------
    values : array_like or Tensor
    axes : str or sequence of str
        One name for each axis: ``"batch feature"``.

    Returns
    -------
    Named
        Operators and NumPy's elementwise functions match axes by name, regardless of their order;
        reductions take names; a result without axes is a plain number or tensor.

    Raises
    ------
    ShapeError
        The number of names is not that of axes. In operations: axes with the same name have
        different lengths, or an array without names is combined with a named one.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> x = wg.named(np.ones((2, 3)), "batch feature")
    >>> scale = wg.named(np.array([1.0, 10.0, 100.0]), "feature")
    >>> (scale * x).sum("feature")
    Named(batch=2: array([111., 111.]))
    >>> wg.grad(lambda s: (s * x).sum())(scale)
    Named(feature=3: array([2., 2., 2.]))
    """
    return Named(values, axes)


# ---- operators and reductions ------------------------------------------------------------------


def _install() -> None:
    for dunder, name in {**BINARY, **COMPARISONS}.items():
        if dunder == "matmul":
            continue
        ufunc = getattr(np, name)
        setattr(Named, f"__{dunder}__", _forward(ufunc))
        if dunder in BINARY:
            setattr(Named, f"__r{dunder}__", _reflected(ufunc))
    for dunder, name in UNARY.items():
        setattr(Named, f"__{dunder}__", _single(getattr(np, name)))
    for name in REDUCTIONS:
        setattr(Named, name, _reduction(name))


def _forward(ufunc: np.ufunc) -> Callable[..., Any]:
    return lambda self, other: together(ufunc, self, other)


def _reflected(ufunc: np.ufunc) -> Callable[..., Any]:
    return lambda self, other: together(ufunc, other, self)


def _single(ufunc: np.ufunc) -> Callable[..., Any]:
    return lambda self: together(ufunc, self)


def _reduction(name: str) -> Callable[..., Any]:
    function = getattr(np, name)

    def call(self: Named, *over: str, keep: str | Iterable[str] | None = None) -> Any:
        return self.reduce(function, over, keep)

    call.__name__ = name
    call.__qualname__ = f"Named.{name}"
    call.__doc__ = (
        f"``numpy.{name}`` over the given axes, over all axes except `keep`, or over all axes."
    )
    return call


def _unflattened(axes: Names, children: Iterable[Any]) -> Named:
    result = object.__new__(Named)
    (result.values,) = children  # not __init__: a leaf may be a gradient, a spec or None
    result.axes = axes
    return result


def _flattened(x: Named) -> tuple[tuple[Any], Names, tuple[str]]:
    return (x.values,), x.axes, ("values",)


_install()
_register: Any = optree.register_pytree_node  # typed for collections only
_register(Named, _flattened, _unflattened, namespace=pytree.NAMESPACE)
