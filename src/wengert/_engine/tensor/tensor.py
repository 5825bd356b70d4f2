"""The class Tensor: a reference to a node, composed of the mixins in this folder.

This file defines construction (`Tensor(data)`, `tensor`), conversion (`numpy`, `item`, `__array__`,
`float`), printing, copying and pickling.  A conversion that would lose a derivative silently raises
an error that shows the code to use instead.

Loop rows: tensors that are rows of the array of values that a loop appended to a list.

A list may have many of them, of which few are used individually.

LoopRowTensor    creates its node when it is first used (core/loop_rows.py)
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from wengert._engine.core import display, recording
from wengert._engine.core.device_arrays import host_values
from wengert._engine.core.handle import (
    Handle,
    is_traced,
    leaf,
    rebind,
    register_handle,
    value_of,
    wrap,
)
from wengert._engine.core.implicit_conversions import refuse_differentiated
from wengert._engine.core.loop_rows import LoopRow, node_of, register_row, set_node
from wengert._engine.core.node import Node, constant, is_variable
from wengert._engine.core.other_libraries import TENSOR, Foreign
from wengert._engine.core.replaced_errors import Refusals
from wengert._engine.core.trace_notes import not_converted
from wengert.errors import ConversionError, DtypeError, TracedBranchError, TraceError, at, user_line

from .conversion_errors import conversion, of_library, setting
from .grad_attributes import GradAttributes
from .methods import Methods
from .numpy_protocols import Protocols
from .operand_conversion import (
    as_array,
    is_of_sizes,
    known,
    not_an_array,
    note_read,
    refuse_leaked,
    returned_value,
)
from .operators import OperatorMethods, install


@register_handle
@install
class Tensor(Handle, OperatorMethods, Methods, GradAttributes, Protocols):
    """An array that records the operations applied to it.

    Parameters
    ----------
    data : array_like
        The values; copied.
    requires_grad : bool, default False
        Whether operations on it are recorded, for `backward`.
    dtype : dtype, optional
        As in ``numpy.array``.

    Notes
    -----
    Operators, methods, indexing and assignment are NumPy's, and NumPy's functions accept tensors.
    The value of a node never changes: assignment makes the tensor refer to a new node.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> x = wg.Tensor([1.0, 2.0, 3.0], requires_grad=True)
    >>> y = np.sum(x * x)
    >>> y
    Tensor(14., dtype=float64, grad_fn=<SumBackward>)
    >>> y.backward()
    >>> x.grad
    Tensor([2., 4., 6.], dtype=float64)
    """

    __module__ = "wengert"

    __slots__ = ("_grad",)

    def __init__(self, data: Any, requires_grad: bool = False, dtype: Any = None) -> None:
        if isinstance(data, Handle):
            data = returned_value(data, "Tensor(x)")
        if isinstance(data, np.ndarray) and type(data) is not np.ndarray:
            data = as_array(data)
        array = np.array(host_values(data), dtype=dtype)
        if array.dtype.kind not in "biufc":
            raise DtypeError(
                f"a tensor of {array.dtype}: its elements must be numbers. Convert them first"
                f"{at(user_line())}."
            )
        self.node = constant(array)
        if requires_grad:
            self.requires_grad_()

    # ---- conversion to plain data --------------------------------------------------------------

    def numpy(self) -> np.ndarray[Any, Any]:
        """The values as a read-only plain array; derivatives end here."""
        return self._read_only(returned_value(self, "x.numpy()"))

    @staticmethod
    def _read_only(value: Any) -> np.ndarray[Any, Any]:
        view = np.asarray(value).view()
        view.flags.writeable = False
        return view

    @property
    def data(self) -> np.ndarray[Any, Any]:
        """The values, as `numpy()`; assigning replaces them without being recorded."""
        return self.numpy()

    @data.setter
    def data(self, value: Any) -> None:
        plain = np.array(returned_value(value, "x.data = y"), dtype=self.dtype)
        with recording.no_grad():
            self._assign(wrap(constant(plain)))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        if self.node.is_traced or (type(self.node) is Node and recording.is_recording()):
            refuse_leaked(self, "a plain array")
            found = not_an_array(self)
            if found is not None:
                return found
            raise Refusals.noted(conversion(self.node))
        value = self._read_only(known(self, "a plain array"))
        if dtype is not None and value.dtype != dtype:
            return value.astype(dtype)
        return value.copy() if copy else value

    def __dlpack_device__(self) -> tuple[Any, int]:
        """The DLPack device: the CPU."""
        return np.empty(0).__dlpack_device__()

    def __dlpack__(
        self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None,
        copy: bool | None = None,
    ) -> Any:  # fmt: skip
        """The values for another library, read-only or as a copy.

        DLPack before 1.0 cannot mark memory as read-only; for it the values are
        copied, unless ``copy=False`` asserts that they will not be modified.
        """
        value = self.__array__()
        flagged = max_version is not None and max_version[0] >= 1
        if copy or (copy is None and not flagged):
            value, copy = value.copy(), None
        elif not flagged:
            value = np.asarray(known(self, "__dlpack__()"))
        options = {
            "stream": stream,
            "max_version": max_version,
            "dl_device": dl_device,
            "copy": copy,
        }
        return value.__dlpack__(**{k: v for k, v in options.items() if v is not None})

    def _number(self, kind: Any) -> Any:
        if self.node.is_traced:
            refuse_leaked(self, f"{kind.__name__}(x)")
            remedy = of_library() or (
                "Use functions of numpy instead of math (np.exp, not math.exp), and select with "
                "np.where; to write into an element of a plain array convert that to a tensor "
                "first, np.zeros_like(x)"
            )
            raise TraceError(
                f"{kind.__name__}(x) of {self.node.spec}, whose value is not known while a graph "
                f"is built. {remedy}{setting(self.node)}{at(user_line())}."
            )
        if kind is not int:  # int(x) is piecewise constant like math.trunc: its derivative is zero
            refuse_differentiated(self.node, f"{kind.__name__}(x)", of_library)
        return kind(np.asarray(known(self, f"{kind.__name__}(x)")).item())

    def __float__(self) -> float:
        try:
            return self._number(float)
        except (TraceError, ConversionError) as error:
            raise Refusals.noted(error) from None

    def __int__(self) -> int:
        try:
            return self._number(int)
        except (TraceError, ConversionError) as error:
            raise Refusals.noted(error) from None

    def __complex__(self) -> complex:
        return self._number(complex)

    def __index__(self) -> int:
        if is_traced(self):
            refuse_leaked(self, "a range, a length or an index")
            error = TraceError(
                f"a range, a length or an index needs the value of {self.node.spec}, which is not "
                "known while a graph is built. For table[i] use wengert.numpy.take(table, i), for "
                f"loops wengert.fori_loop{setting(self.node)}{at(user_line())}."
            )
            raise Refusals.noted(error)
        value = known(self, "an index")
        try:
            return operator.index(value)
        except TypeError as error:
            raise DtypeError(
                f"a tensor {self.node.spec} cannot be an index or a length, which must be an "
                f"integer. Round it first, int(x){at(user_line())}."
            ) from error

    def __bool__(self) -> bool:
        if self.node.is_traced:
            refuse_leaked(self, "a branch")
            if is_of_sizes(self.node):
                raise TracedBranchError(
                    "the program cannot branch on a number computed from sizes, which are "
                    "not known while a graph is built. For np.arange(n) use np.arange(n, like=x) "
                    "or wengert.numpy.arange(n); trace with a numeric size if the "
                    f"program depends on it{at(user_line())}."
                )
            raise TracedBranchError(
                f"the program cannot branch on {self.node.op.name} {self.node.spec}, whose "
                "value is not known while a graph is built. Select with np.where(condition, x, y); "
                "for a branch that does not depend on the inputs compute the condition outside"
                f"{setting(self.node)}{at(user_line())}.{not_converted()}"
            )
        if recording.switches.count:
            note_read(self.node, "a branch")
        return bool(value_of(self))

    # ---- in-place ------------------------------------------------------------------------------

    def _assign(self, new: Any) -> None:
        """Refer to the node of `new`, and update views and the base."""
        rebind(self, new.node if isinstance(new, Handle) else constant(new))

    # ---- printing, copying, pickling -----------------------------------------------------------

    def __repr__(self) -> str:
        if self.node.is_traced:
            name = f" {self.node.name!r}" if self.node.name else ""
            return f"Tensor({self.node.spec},{name} {self.node.op.name}, traced)"
        value = np.asarray(self.node.value)
        digits = np.array2string(value, separator=", ", prefix="Tensor(")
        parts = [digits, f"dtype={value.dtype}"]
        if self.grad_fn is not None:
            parts.append(f"grad_fn={self.grad_fn!r}")
        elif self.requires_grad:
            parts.append("requires_grad=True")
        return f"Tensor({', '.join(parts)})"

    def _repr_html_(self) -> str:
        rows: dict[str, object] = {"spec": str(self.node.spec)}
        if not self.node.is_traced:
            rows["value"] = np.asarray(self.node.value)
            rows["gradient"] = self.grad if self.requires_grad else "not required"
        return display.table("Tensor, traced" if self.node.is_traced else "Tensor", rows)

    def __dir__(self) -> list[str]:
        return sorted(n for n in object.__dir__(self) if n not in TENSOR or hasattr(self, n))

    def __str__(self) -> str:
        return repr(self) if self.node.is_traced else str(self.node.value)

    def __format__(self, spec: str) -> str:
        if self.node.is_traced:
            try:
                return format(repr(self), spec)
            except ValueError:  # a format for numbers, whose value is not known yet
                return repr(self)
        value = self.node.value
        return format(np.asarray(value).item() if np.size(value) == 1 else value, spec)

    def __copy__(self) -> Tensor:
        copy = wrap(self.node)
        if self.node.is_traced:
            return copy
        if self.requires_grad and self.is_leaf:
            copy.node = leaf(self.node.value, copy)
        elif is_variable(self.node):  # an integer variable: the copy is a separate variable
            copy.node = leaf(self.node.value, copy, differentiable=False)
            copy.node.note(name=self.node.name)
        return copy

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        copy = self.__copy__()
        if self.grad is not None:
            copy._grad = self.grad.__copy__()
        return copy

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (
            type(self),
            np.asarray(returned_value(self, "pickling")),
            self.requires_grad,
            self.grad,
            is_variable(self.node),
            self.node.name,
        )


for _name in TENSOR:
    if not hasattr(Tensor, _name):
        setattr(Tensor, _name, Foreign(_name))


def _restore(
    cls: type,
    value: Any,
    requires_grad: bool,
    grad: Any,
    variable: bool = False,
    name: str | None = None,
) -> Any:
    restored: Any = object.__new__(cls)
    is_leaf = requires_grad or variable
    restored.node = leaf(value, restored, requires_grad) if is_leaf else constant(value)
    if name is not None:
        restored.node.note(name=name)
    if grad is not None:
        restored._grad = grad
    return restored


def tensor(data: Any, requires_grad: bool = False, dtype: Any = None) -> Tensor:
    """A `Tensor` with a copy of the data.

    Parameters
    ----------
    data : array_like
    requires_grad : bool, default False
    dtype : dtype, optional

    Examples
    --------
    >>> import wengert as wg
    >>> wg.tensor([1.0, 2.0], requires_grad=True)
    Tensor([1., 2.], dtype=float64, requires_grad=True)
    """
    return Tensor(data, requires_grad, dtype)


@register_row
class LoopRowTensor(LoopRow, Tensor):
    """A tensor that is a row of an array."""

    __slots__ = ("_block", "_index", "_made")

    @property
    def node(self) -> Node:
        """The node of the row."""
        return node_of(self)

    @node.setter
    def node(self, node: Node) -> None:
        set_node(self, node)
