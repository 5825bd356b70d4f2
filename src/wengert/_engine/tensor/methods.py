"""NumPy's methods and attributes of Tensor.

A method calls the function of that name in `wengert.numpy`, looked up in the table of
`__array_function__`; so `x.mean(0)`, `np.mean(x, 0)` and `wengert.numpy.mean(x, 0)` are equivalent.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from wengert._engine.core.handle import (
    Handle,
    become_view,
    dtype_of,
    is_traced,
    note_contiguous,
    shape_of,
)
from wengert._engine.core.node import INPUT
from wengert._engine.core.other_libraries import KEYWORDS
from wengert._engine.core.symbolic.dim import Dim
from wengert._engine.ops import casts, shapes
from wengert._engine.ops.creation import positions
from wengert.errors import ArgumentError, DtypeError, TraceError, at, user_line
from wengert.errors import ShapeError as _ShapeError

from .numpy_protocols import FUNCTIONS, operation_of
from .operand_conversion import known, length, returned_value

if TYPE_CHECKING:
    from wengert._engine.core.types import Array

    from .operators import Axes, DType, Operand
    from .tensor import Tensor

FROM_NUMPY = """sum prod mean var std max min argmax argmin any all cumsum cumprod swapaxes squeeze
    repeat take diagonal trace dot clip round argsort argpartition searchsorted nonzero
    ptp choose put
    """.split()


def method(name: str) -> Any:
    """The method that calls NumPy's function of the same name."""
    function = getattr(np, name)

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if kwargs and not KEYWORDS.keys().isdisjoint(kwargs):
            keyword = next(k for k in kwargs if k in KEYWORDS)
            raise TypeError(
                f"x.{name}({keyword}=...) is PyTorch's. As in NumPy it is {KEYWORDS[keyword]}= here"
                f"{at(user_line())}."
            )
        return FUNCTIONS[function](self, *args, **kwargs)

    call.__name__ = name
    call.__qualname__ = f"Tensor.{name}"
    call.__doc__ = f"``numpy.{name}(x, ...)``, as NumPy's method of that name."
    return call


class Methods:
    """Mixin: the methods and attributes of ndarray."""

    __slots__ = ()

    if TYPE_CHECKING:  # NumPy's methods in FROM_NUMPY

        def sum(
            self,
            axis: Axes = None,
            dtype: DType = None,
            out: Tensor | None = None,
            keepdims: bool = False,
            initial: Operand = ...,
            where: Operand = ...,
        ) -> Tensor: ...
        def prod(
            self,
            axis: Axes = None,
            dtype: DType = None,
            out: Tensor | None = None,
            keepdims: bool = False,
            initial: Operand = ...,
            where: Operand = ...,
        ) -> Tensor: ...
        def mean(
            self,
            axis: Axes = None,
            dtype: DType = None,
            out: Tensor | None = None,
            keepdims: bool = False,
            *,
            where: Operand = ...,
        ) -> Tensor: ...
        def var(
            self,
            axis: Axes = None,
            dtype: DType = None,
            out: Tensor | None = None,
            ddof: float = 0,
            keepdims: bool = False,
            *,
            where: Operand = ...,
            mean: Operand = ...,
            correction: float = ...,
        ) -> Tensor: ...
        def std(
            self,
            axis: Axes = None,
            dtype: DType = None,
            out: Tensor | None = None,
            ddof: float = 0,
            keepdims: bool = False,
            *,
            where: Operand = ...,
            mean: Operand = ...,
            correction: float = ...,
        ) -> Tensor: ...
        def min(
            self,
            axis: Axes = None,
            out: Tensor | None = None,
            keepdims: bool = False,
            initial: Operand = ...,
            where: Operand = ...,
        ) -> Tensor: ...
        def max(
            self,
            axis: Axes = None,
            out: Tensor | None = None,
            keepdims: bool = False,
            initial: Operand = ...,
            where: Operand = ...,
        ) -> Tensor: ...
        def argmax(
            self, axis: int | None = None, out: Tensor | None = None, *, keepdims: bool = False
        ) -> Tensor: ...
        def argmin(
            self, axis: int | None = None, out: Tensor | None = None, *, keepdims: bool = False
        ) -> Tensor: ...
        def any(
            self,
            axis: Axes = None,
            out: Tensor | None = None,
            keepdims: bool = False,
            *,
            where: Operand = ...,
        ) -> Tensor: ...
        def all(
            self,
            axis: Axes = None,
            out: Tensor | None = None,
            keepdims: bool = False,
            *,
            where: Operand = ...,
        ) -> Tensor: ...
        def cumsum(
            self, axis: int | None = None, dtype: DType = None, out: Tensor | None = None
        ) -> Tensor: ...
        def cumprod(
            self, axis: int | None = None, dtype: DType = None, out: Tensor | None = None
        ) -> Tensor: ...
        def swapaxes(self, axis1: int, axis2: int) -> Tensor: ...
        def squeeze(self, axis: Axes = None) -> Tensor: ...
        def repeat(self, repeats: Operand, axis: int | None = None) -> Tensor: ...
        def take(
            self,
            indices: Operand,
            axis: int | None = None,
            out: Tensor | None = None,
            mode: str = "raise",
        ) -> Tensor: ...
        def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor: ...
        def trace(
            self,
            offset: int = 0,
            axis1: int = 0,
            axis2: int = 1,
            dtype: DType = None,
            out: Tensor | None = None,
        ) -> Tensor: ...
        def dot(self, b: Operand, out: Tensor | None = None) -> Tensor: ...
        def clip(
            self, min: Operand = ..., max: Operand = ..., out: Tensor | None = None, **kwargs: Any
        ) -> Tensor: ...
        def round(self, decimals: int = 0, out: Tensor | None = None) -> Tensor: ...
        def argsort(
            self,
            axis: int | None = -1,
            kind: str | None = None,
            order: None = None,
            *,
            stable: bool | None = None,
        ) -> Tensor: ...
        def argpartition(
            self,
            kth: int | Sequence[int],
            axis: int | None = -1,
            kind: str = "introselect",
            order: None = None,
        ) -> Tensor: ...
        def searchsorted(
            self, v: Operand, side: str = "left", sorter: Operand | None = None
        ) -> Tensor: ...
        def nonzero(self) -> tuple[Tensor, ...]: ...
        def ptp(
            self, axis: Axes = None, out: Tensor | None = None, keepdims: bool = False
        ) -> Tensor: ...
        def choose(
            self, choices: Operand, out: Tensor | None = None, mode: str = "raise"
        ) -> Tensor: ...
        def put(self, ind: Operand, v: Operand, mode: str = "raise") -> None: ...

    @property
    def shape(self) -> tuple[Any, ...]:
        """Lengths of the axes; symbolic sizes in a graph for all sizes."""
        return shape_of(self)

    @shape.setter
    def shape(self, lengths: Any) -> None:
        handle = cast(Handle, self)
        if handle.node.op is INPUT:
            raise TraceError(
                "the shape of an input cannot be changed in place. Use x = x.reshape(shape)"
                f"{at(user_line())}."
            )
        become_view(
            handle,
            lambda base: base.reshape(lengths),
            lambda base, view: view.reshape(base.shape),
        )

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the elements."""
        return dtype_of(self)

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> Any:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> Any:
        """Bytes of all elements."""
        return self.size * self.itemsize

    @property
    def T(self) -> Tensor:
        """Axes reversed."""
        return shapes.transpose(self)

    @property
    def mT(self) -> Tensor:
        """The last two axes exchanged."""
        if self.ndim < 2:
            raise _ShapeError(f"mT needs at least two axes, this has {self.ndim}{at(user_line())}.")
        return shapes.transpose(self, axes=(*range(self.ndim - 2), self.ndim - 1, self.ndim - 2))

    @property
    def real(self) -> Tensor:
        """Real part; the tensor itself if it is real."""
        return FUNCTIONS[np.real](self)

    @real.setter
    def real(self, values: Array) -> None:
        self.real[...] = values

    @property
    def imag(self) -> Tensor:
        """Imaginary part."""
        return FUNCTIONS[np.imag](self)

    @imag.setter
    def imag(self, values: Operand) -> None:
        if self.dtype.kind != "c":
            raise DtypeError(
                f"a tensor of {self.dtype} does not have an imaginary part to set. Make it complex "
                f"first, x.astype(complex){at(user_line())}."
            )
        self.imag[...] = values

    def conj(self) -> Tensor:
        """Complex conjugate; the tensor itself if it is real."""
        return operation_of(np.conjugate)(self) if self.dtype.kind == "c" else self  # type: ignore[return-value]

    conjugate = conj

    def reshape(self, *shape: Any, order: str = "C") -> Tensor:
        """The same elements in another shape, given as one tuple or several ints."""
        target = shape[0] if len(shape) == 1 else shape
        target = (target,) if isinstance(target, int | np.integer | Dim) else tuple(target)
        return shapes.reshape(self, shape=tuple(map(length, target)), order=order)

    def transpose(self, *axes: Any) -> Tensor:
        """Axes in another order, given as one tuple or several ints; reversed if none."""
        order = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes
        return shapes.transpose(self, axes=tuple(order) if order else None)

    def ravel(self, order: str = "C") -> Tensor:
        """One axis; a view if NumPy returns one."""
        return FUNCTIONS[np.ravel](self, order)

    def flatten(self, order: str = "C") -> Tensor:
        """One axis; always a copy."""
        return self.ravel(order).copy()

    def astype(self, dtype: Any, copy: bool = True, **_: Any) -> Tensor:
        """Another dtype; integers and booleans stop derivatives."""
        return self if not copy and self.dtype == dtype else casts.astype(self, dtype)  # type: ignore[return-value]

    def copy(self, order: str = "C") -> Tensor:
        """A copy: writing to it does not change this tensor.  Derivatives pass."""
        copied: Tensor = FUNCTIONS[np.copy](self, order)
        if order == "C" and is_traced(copied):
            note_contiguous(copied)
        return copied

    def fill(self, value: Operand) -> None:
        """Write one value to every element."""
        self[...] = value  # type: ignore[index]

    def item(self, *args: Any) -> Any:
        """The only element, or the selected one, as a Python number; derivatives end here."""
        return np.asarray(returned_value(self, "x.item()")).item(*args)

    def tolist(self) -> Any:
        """Nested lists of Python numbers; derivatives end here."""
        return np.asarray(returned_value(self, "x.tolist()")).tolist()

    def sort(self, axis: int = -1, **options: Any) -> None:
        """Sort in place."""
        self[...] = FUNCTIONS[np.sort](self, axis, **options)  # type: ignore[index]

    def partition(self, kth: Any, axis: int = -1, **options: Any) -> None:
        """Partition in place, as `numpy.partition`."""
        self[...] = FUNCTIONS[np.partition](self, kth, axis, **options)  # type: ignore[index]

    def compress(self, condition: list[bool], axis: int | None = None, out: Any = None) -> Tensor:
        """``numpy.compress(condition, x, axis)``."""
        return FUNCTIONS[np.compress](condition, self, axis, out)

    def view(self) -> Tensor:
        """Another tensor that shares memory with this one."""
        return self[...]  # type: ignore[index]

    @property
    def flat(self) -> FlatView:
        """All elements in C order, to iterate over, read by position or assign to."""
        return FlatView(self)

    @flat.setter
    def flat(self, values: Any) -> None:
        FlatView(self)[:] = values

    @property
    def base(self) -> Tensor | None:
        """The tensor whose memory this is a view of, or None."""
        link = getattr(self, "_link", None)
        return None if link is None else link[0]

    @property
    def strides(self) -> tuple[int, ...]:
        """Bytes between adjacent elements along each axis, as stored in memory."""
        return np.asarray(known(self, "strides")).strides

    @property
    def device(self) -> str:
        """The device of the values: "cpu"."""
        return "cpu"

    def to_device(self, device: str, /, *, stream: int | None = None) -> Tensor:
        """The tensor itself, whose device is "cpu"."""
        if device != "cpu" or stream is not None:
            raise ArgumentError(
                f"to_device({device!r}, stream={stream!r}): tensors are on the 'cpu' only, which "
                f"has no streams. Leave both out{at(user_line())}."
            )
        return self  # type: ignore[return-value]

    def tobytes(self, order: str = "C") -> bytes:
        """The values as bytes; derivatives end here."""
        return np.asarray(returned_value(self, "x.tobytes()")).tobytes(order)  # type: ignore[arg-type]


class FlatView:
    """``x.flat``: the elements of a tensor as one axis."""

    def __init__(self, x: Any) -> None:
        self._x = x

    def __len__(self) -> int:
        return self._x.size

    def __iter__(self) -> Iterator[Any]:
        return iter(self._x.ravel())

    def __getitem__(self, index: Any) -> Any:
        return self._x.ravel()[index].copy()

    def __setitem__(self, index: int | slice, values: Array) -> None:
        indices = positions(self._x.size)[index]
        if np.size(indices):
            FUNCTIONS[np.put](self._x, indices, values)


for _name in FROM_NUMPY:
    setattr(Methods, _name, method(_name))
