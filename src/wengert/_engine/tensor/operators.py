"""Types of tensors and operands, for type checkers and editors.

Array      a NumPy array of any shape and dtype
Operand    operands of the operators of Tensor: tensors, arrays, numbers, nested sequences of them
Axes       the `axis` argument of reductions

Operators of Tensor: those of NumPy's arrays, plain, reflected and in place; indexing.

Three tables map operators to operations, and `install` adds them to the class.  Values are computed
by Python's operator on the plain values, so a tensor of a single number is about as fast as the
number, and Python numbers are promoted by Python's rules.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, Union, cast

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from wengert._engine.core.dispatch import apply, quick_binary, quick_reflected, quick_unary
from wengert._engine.core.handle import Handle, dtype_of, is_traced, shape_of, value_of
from wengert._engine.core.implicit_conversions import is_differentiating
from wengert._engine.core.node import NO_PARAMS, Node
from wengert._engine.core.op import lookup
from wengert._engine.core.other_libraries import LabelledTensor
from wengert._engine.core.recording import current_trace
from wengert._engine.core.traced_inputs import modified_in_place
from wengert._engine.ops.casts import astype
from wengert._engine.ops.indexing import getitem
from wengert.errors import DtypeError, TraceError, at, user_line

from .conversion_errors import is_number, refuse_as_key, setting
from .numpy_protocols import fitted
from .operand_conversion import NUMERIC, known, operand, refuse_leaked, with_tensor
from .suggested_code import suggestion

if TYPE_CHECKING:
    from .tensor import Tensor

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
Operand: TypeAlias = Union["Tensor", ArrayLike]
Axes: TypeAlias = int | tuple[int, ...] | None
DType: TypeAlias = DTypeLike | None


Method = Callable[..., Any]
PLAIN_OPERANDS = {*NUMERIC}  # types of operands that need no conversion; `install` adds the class
T = TypeVar("T")


def binary(name: str, run: Method) -> tuple[Method, Method, Method]:
    """The forms x + y, y + x and x += y of an operation."""
    op: Any = lookup(name)
    convert = _factor if name == "multiply" else _operand

    def forward(self: Any, other: Operand) -> Any:
        if type(other) not in PLAIN_OPERANDS and not isinstance(other, Handle):
            converted = convert(self, other)
            if converted is NotImplemented:
                return with_tensor(run, self, other)
            other = converted
        return apply(op, (self, other), NO_PARAMS, run)

    def reflected(self: Any, other: float | complex) -> Any:
        converted = convert(self, other)
        if converted is NotImplemented:
            return with_tensor(run, other, self)
        return apply(op, (converted, self), NO_PARAMS, run)

    def in_place(self: Any, other: Operand) -> Any:
        result = forward(self, other)
        if isinstance(result, LabelledTensor):
            result = result.values
        if result is NotImplemented or not modified_in_place(self):
            return result  # a number is immutable, as in NumPy: return a new one
        self._assign(fitted(result, self, f"in-place {name}"))
        return self

    return quick_binary(op, run, forward), quick_reflected(op, run, reflected), in_place


def _operand(_: Handle, other: Any) -> Any:
    return operand(other)


def _factor(x: Handle, other: Any) -> Any:
    """`other` as a factor; a list or tuple times an integer is repeated, as in NumPy."""
    if isinstance(other, list | tuple) and dtype_of(x).kind in "iub" and shape_of(x) == ():
        if is_traced(x):
            raise TraceError(
                f"a {type(other).__name__} times an integer that is not known while a graph is "
                "built: a list is repeated, an array multiplied. For the product use "
                f"np.array([...]) * n; to repeat it, n must be known{setting(x.node)}"
                f"{at(user_line())}."
            )
        if type(x.node.value) is not np.ndarray:
            return NotImplemented  # Python then calls list.__rmul__, which calls __index__
    return operand(other)


def _inverted(x: Any) -> Any:
    """NumPy's ~x; a Python bool is negated as a boolean, not as an integer."""
    return not x if type(x) is bool else operator.invert(x)


def unary(name: str, run: Method) -> Method:
    """The form -x of an operation."""
    op: Any = lookup(name)
    return quick_unary(op, run)


BINARY = {
    "add": "add",
    "sub": "subtract",
    "mul": "multiply",
    "truediv": "divide",
    "floordiv": "floor_divide",
    "mod": "remainder",
    "pow": "power",
    "matmul": "matmul",
    "and": "bitwise_and",
    "or": "bitwise_or",
    "xor": "bitwise_xor",
    "lshift": "left_shift",
    "rshift": "right_shift",
}
COMPARISONS = {
    "lt": "less",
    "le": "less_equal",
    "gt": "greater",
    "ge": "greater_equal",
    "eq": "equal",
    "ne": "not_equal",
}
UNARY = {"neg": "negative", "pos": "positive", "abs": "absolute", "invert": "invert"}
RUNS = {"invert": _inverted}


class OperatorMethods:
    """Mixin: operators, filled from the tables above, and indexing."""

    __slots__ = ()
    node: Node

    if TYPE_CHECKING:  # added by `install` from the tables above

        def __add__(self, other: Operand) -> Tensor: ...
        def __radd__(self, other: Operand) -> Tensor: ...
        def __iadd__(self, other: Operand) -> Tensor: ...
        def __sub__(self, other: Operand) -> Tensor: ...
        def __rsub__(self, other: Operand) -> Tensor: ...
        def __isub__(self, other: Operand) -> Tensor: ...
        def __mul__(self, other: Operand) -> Tensor: ...
        def __rmul__(self, other: Operand) -> Tensor: ...
        def __imul__(self, other: Operand) -> Tensor: ...
        def __truediv__(self, other: Operand) -> Tensor: ...
        def __rtruediv__(self, other: Operand) -> Tensor: ...
        def __itruediv__(self, other: Operand) -> Tensor: ...
        def __floordiv__(self, other: Operand) -> Tensor: ...
        def __rfloordiv__(self, other: Operand) -> Tensor: ...
        def __ifloordiv__(self, other: Operand) -> Tensor: ...
        def __mod__(self, other: Operand) -> Tensor: ...
        def __rmod__(self, other: Operand) -> Tensor: ...
        def __imod__(self, other: Operand) -> Tensor: ...
        def __pow__(self, other: Operand) -> Tensor: ...
        def __rpow__(self, other: Operand) -> Tensor: ...
        def __ipow__(self, other: Operand) -> Tensor: ...
        def __matmul__(self, other: Operand) -> Tensor: ...
        def __rmatmul__(self, other: Operand) -> Tensor: ...
        def __imatmul__(self, other: Operand) -> Tensor: ...
        def __and__(self, other: Operand) -> Tensor: ...
        def __rand__(self, other: Operand) -> Tensor: ...
        def __iand__(self, other: Operand) -> Tensor: ...
        def __or__(self, other: Operand) -> Tensor: ...
        def __ror__(self, other: Operand) -> Tensor: ...
        def __ior__(self, other: Operand) -> Tensor: ...
        def __xor__(self, other: Operand) -> Tensor: ...
        def __rxor__(self, other: Operand) -> Tensor: ...
        def __ixor__(self, other: Operand) -> Tensor: ...
        def __lshift__(self, other: Operand) -> Tensor: ...
        def __rlshift__(self, other: Operand) -> Tensor: ...
        def __ilshift__(self, other: Operand) -> Tensor: ...
        def __rshift__(self, other: Operand) -> Tensor: ...
        def __rrshift__(self, other: Operand) -> Tensor: ...
        def __irshift__(self, other: Operand) -> Tensor: ...
        def __lt__(self, other: Operand) -> Tensor: ...
        def __le__(self, other: Operand) -> Tensor: ...
        def __gt__(self, other: Operand) -> Tensor: ...
        def __ge__(self, other: Operand) -> Tensor: ...
        def __eq__(self, other: object) -> Tensor: ...  # type: ignore[override]
        def __ne__(self, other: object) -> Tensor: ...  # type: ignore[override]
        def __neg__(self) -> Tensor: ...
        def __pos__(self) -> Tensor: ...
        def __abs__(self) -> Tensor: ...
        def __invert__(self) -> Tensor: ...

    def __hash__(self) -> int:
        """By identity, as in PyTorch; for a constant made by a transformed function, by value.

        A number that depends on an argument is an error.
        """
        inside = is_differentiating()
        if self.node.value is None or inside:
            refuse_as_key(cast(Handle, self))
        if (inside or current_trace() is not None) and is_number(cast(Handle, self)):
            return hash(self.node.value.item())
        return object.__hash__(self)

    def __divmod__(self, other: Operand) -> tuple[Tensor, Tensor]:
        return self // other, self % other

    def __rdivmod__(self, other: Operand) -> tuple[Tensor, Tensor]:
        result: tuple[Tensor, Tensor] = (other // self, other % self)  # type: ignore[assignment]
        return result

    def __getitem__(self, index: Operand | slice | tuple[Any, ...] | None) -> Tensor:
        result: Tensor = getitem.read(self, index)
        return result

    def __setitem__(self, index: Any, v: Operand | list[float]) -> None:
        if isinstance(v, Handle) and getitem.is_already_stored(cast(Handle, self), index, v):
            return
        if isinstance(v, Handle) and type(v.node) is Node and dtype_of(self).kind not in "fc":
            v = _rounded(v, dtype_of(self))
        self._assign(getitem.written(self, index, v))  # type: ignore[attr-defined]

    def __round__(self, digits: int | None = None) -> Any:
        if self.ndim:  # type: ignore[attr-defined]
            raise TypeError(f"round(x) of shape {self.shape}: use np.round{at(user_line())}.")  # type: ignore[attr-defined]
        rounded: Any = np.round(self, digits or 0)  # type: ignore[call-overload]
        return rounded.astype(int) if digits is None else rounded

    # A Python integer: its derivative is zero.

    def __floor__(self) -> int:
        return math.floor(_number(self, "floor"))

    def __ceil__(self) -> int:
        return math.ceil(_number(self, "ceil"))

    def __trunc__(self) -> int:
        return math.trunc(_number(self, "trunc"))

    def __len__(self) -> int:
        shape = shape_of(self)
        if not shape:
            raise TypeError("len() of a tensor without axes")
        return operator.index(shape[0])

    def __iter__(self) -> Iterator[Tensor]:
        if not shape_of(self):
            raise TypeError("iteration over a 0-d tensor")
        return self._items()

    def _items(self) -> Iterator[Tensor]:
        # An unknown length raises at the first item: NumPy would hide an earlier error.
        for i in range(len(self)):
            yield self[i]

    def __contains__(self, item: float) -> bool:
        return bool(np.any(value_of(self) == value_of(item)))


def _rounded(v: Handle, dtype: np.dtype[Any]) -> Any:
    """A recorded value as NumPy stores it in an array of integers: its derivative is zero.

    In functions that are transformed; elsewhere it is an error.
    """
    if not is_differentiating() and current_trace() is None:
        raise DtypeError(
            f"assignment of a recorded value to elements of a {dtype} tensor would round it and "
            f"stop its derivative. Cast the target first, x = x.astype(float){at(user_line())}."
        )
    if dtype_of(v).kind == "c":
        raise DtypeError(
            f"assignment of a complex value to elements of a {dtype} tensor. Assign its real part, "
            f"x[i] = z.real, or make the tensor complex, x = x.astype(complex){at(user_line())}."
        )
    return astype(v, dtype) if dtype_of(v) != dtype else v


def _number(x: Any, name: str) -> Any:
    """The number in a 0-d tensor, for a function of Python's `math`."""
    if x.ndim or x.dtype.kind == "c":
        raise TypeError(
            f"math.{name}(x) of {x.dtype} and shape {x.shape}: it takes one real number. Use "
            f"np.{name}{at(user_line())}."
        )
    if is_traced(x):
        refuse_leaked(x, f"math.{name}(x)")
        raise TraceError(
            f"math.{name}(x) of {x.node.spec}, whose value is not known while a graph is built. "
            f"{suggestion() or f'Use np.{name}(x)'}{setting(x.node)}{at(user_line())}."
        )
    value = np.asarray(known(x, f"math.{name}(x)")).item()
    return value if isinstance(value, int | float) else float(value)  # a longdouble is neither


def install(cls: type[T]) -> type[T]:
    """Add the operators to a class (a decorator)."""
    PLAIN_OPERANDS.add(cls)
    for dunder, name in BINARY.items():
        run = getattr(operator, f"__{dunder}__")
        forward, reflected, in_place = binary(name, run)
        setattr(cls, f"__{dunder}__", forward)
        setattr(cls, f"__r{dunder}__", reflected)
        setattr(cls, f"__i{dunder}__", in_place)
    for dunder, name in COMPARISONS.items():
        setattr(cls, f"__{dunder}__", binary(name, getattr(operator, dunder))[0])
    for dunder, name in UNARY.items():
        setattr(cls, f"__{dunder}__", unary(name, RUNS.get(dunder) or getattr(operator, dunder)))
    return cls
