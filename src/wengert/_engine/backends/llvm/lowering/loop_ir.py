"""The loop IR: lazy arrays ("expressions"), each with a rule for its elements.

An expression has a shape, a dtype, operands, and a rule for the element at an index.  Lowering
(lowering/) turns graph nodes into expressions: some into several (a variance is two sums), some
into none (a view of a constant).

    Map               a function of the operands' elements
    ContractionTerm   one of them: a product that a contraction sums
    View              the operand's element at another index
    SelectExpr        the operand whose conditions the index satisfies
    IndexValue        a number computed from the index
    Stored            in memory from the start: an input, a constant array
    ScalarConstant    a constant
    Reduce            elements along some axes combined into one
    OpaqueCall        computed as a whole, not in a fused loop

Map, ContractionTerm, View, SelectExpr, IndexValue and ScalarConstant are *pointwise*: the schedule
either inlines them where they are used, or stores them.  Stored, Reduce and OpaqueCall are always
in memory.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from wengert._engine.core.types import Scalar

from ..ir.index_analysis import (
    ZERO,
    Affine,
    FlatIndex,
    Index,
    Length,
    counters,
    is_one,
    offset_of,
    strides_of,
)
from ..ir.llvm_types import Dtype

_numbers = itertools.count()


class Condition(NamedTuple):
    """low <= form < high."""

    form: Affine
    low: Length
    high: Length


class Read(NamedTuple):
    """An operand and the index at which it is read, under conditions on the loop counters.

    The index is None if it is not known at compile time: then the operand must be in memory, and
    `form` is the known part of the offset from its first element.
    """

    operand: Expr
    index: Index | None  # type: ignore[assignment]  # it hides a method of tuples
    conditions: tuple[Condition, ...] = ()
    form: Affine | None = None


class Expr:
    """An array that is not computed yet.

    Attributes
    ----------
    rule : ElementRule
    operands : tuple of Expr
    shape : tuple of Length
    dtype : numpy.dtype
    node : Node or None
        The node that it computes, or is a part of.
    is_root : bool
        Whether it is computed by a loop of its own and stored, instead of being inlined.
    is_flat : bool
        Whether its elements are determined by their position in C order (set by the schedule).
    weight : int
        The work for one element, including inlined operands; an addition is 1 (set by the
        schedule).
    """

    __slots__ = (
        "dtype",
        "is_flat",
        "is_root",
        "node",
        "number",
        "operands",
        "rule",
        "shape",
        "weight",
    )

    def __init__(
        self,
        rule: ElementRule,
        operands: Sequence[Expr],
        shape: Sequence[Length],
        dtype: Dtype,
        node: Any = None,
    ) -> None:
        self.rule, self.operands = rule, tuple(operands)
        self.shape, self.dtype, self.node = tuple(shape), dtype, node
        self.number = next(_numbers)
        self.is_root = rule.is_stored
        self.is_flat = False
        self.weight = 0

    def reads(self, index: Index) -> list[Read]:
        """The reads of its element at an index."""
        return self.rule.reads(self, index)

    def __repr__(self) -> str:
        return f"<expr {self.number} {self.rule} {self.dtype}{list(self.shape)}>"


class ElementRule:
    """How the elements of an expression are computed.

    Attributes
    ----------
    weight : int
        The work for one element, without that of the operands.
    is_stored : bool
        Whether its elements are in memory before anything reads them.
    asks_index : bool
        Whether its element depends on the index itself.
    name : str
        Of rules made for an operation.
    """

    name = ""
    weight = 0
    is_stored = False
    asks_index = False

    def reads(self, expr: Expr, index: Index) -> list[Read]:
        """The reads for the element at an index."""
        return []

    def value(self, at: Any, expr: Expr, index: Index, mask: Any) -> Any:
        """The element, as a lane; `at` emits the code (codegen/loop_nests.py)."""
        raise NotImplementedError(type(self).__name__)

    def takes_flat(self, expr: Expr) -> bool:
        """Whether its elements are determined by their position in C order."""
        return False

    def __repr__(self) -> str:
        return self.name or type(self).__name__.lower()


class Map(ElementRule):
    """A function of the operands' elements, which are broadcast as in NumPy.

    Parameters
    ----------
    combine : callable
        ``combine(language, *lanes)`` returns a lane.
    """

    def __init__(self, name: str, combine: Callable[..., Any], weight: int = 1) -> None:
        self.name, self.combine, self.weight = name, combine, weight

    def reads(self, expr: Expr, index: Index) -> list[Read]:
        """The operands' elements at the same index."""
        if not expr.shape:
            return [Read(x, ()) for x in expr.operands]
        return [Read(x, aligned(index, x.shape, expr.shape)) for x in expr.operands]

    def value(self, at: Any, expr: Expr, index: Index, mask: Any) -> Any:
        """The function of the operands' elements."""
        if expr.shape:
            lanes = [at.read(x, aligned(index, x.shape, expr.shape), mask) for x in expr.operands]
        else:
            lanes = [at.read(x, (), mask) for x in expr.operands]
        at.language.reader = at, mask
        return at.language.cast(self.combine(at.language, *lanes), expr.dtype)

    def takes_flat(self, expr: Expr) -> bool:
        """True if only single numbers are broadcast."""
        return all(
            all(map(is_one, x.shape)) or (x.shape == expr.shape and x.is_flat)
            for x in expr.operands
        )


class ContractionTerm(Map):
    """The product of the operands' elements, a term of a contraction.

    A sum of such products may round each term once, together with the sum.

    Parameters
    ----------
    is_strong : bool
        Whether it is zero where the first of two factors is zero, whatever the other is.
    """

    def __init__(
        self, combine: Callable[..., Any], weight: int = 1, is_strong: bool = False
    ) -> None:
        super().__init__("product", combine, weight)
        self.is_strong = is_strong


class View(ElementRule):
    """The operand's element at another index.

    Parameters
    ----------
    place : callable
        ``place(index)`` returns the operand's index.
    keeps_order : bool
        Whether the operand has the same elements in the same order.
    """

    def __init__(self, name: str, place: Callable[[Any], Index], keeps_order: bool = False) -> None:
        self.name, self.place, self.keeps_order = name, place, keeps_order
        self.joins = False  # whether it reads the operand by its position in C order

    def reads(self, expr: Expr, index: Index) -> list[Read]:
        """The operand's element."""
        return [Read(expr.operands[0], self.placed(expr, index))]

    def placed(self, expr: Expr, index: Index) -> Index:
        """The operand's index."""
        if isinstance(index, FlatIndex):
            (x,) = expr.operands
            return (index.form,) if len(x.shape) == 1 else index
        return self.place(index)

    def value(self, at: Any, expr: Expr, index: Index, mask: Scalar | None) -> Any:
        """The element itself."""
        return at.read(expr.operands[0], self.placed(expr, index), mask)

    def takes_flat(self, expr: Expr) -> bool:
        """True if the order is kept and the operand is flat."""
        return self.keeps_order and expr.operands[0].is_flat


class SelectExpr(ElementRule):
    """The first operand whose conditions the index satisfies; the last has no conditions.

    Parameters
    ----------
    choices : callable
        ``choices(index)`` returns the index and the conditions of each operand.
    """

    weight = 1

    def __init__(
        self, name: str, choices: Callable[[Any], Sequence[tuple[Index, tuple[Condition, ...]]]]
    ) -> None:
        self.name, self.choices = name, choices

    def reads(self, expr: Expr, index: Index) -> list[Read]:
        """All operands that may be selected."""
        pairs = zip(expr.operands, self.choices(index), strict=True)
        return [Read(x, place, conditions) for x, (place, conditions) in pairs]

    def value(self, at: Any, expr: Expr, index: Index, mask: Scalar | None) -> Any:
        """The operand whose conditions hold."""
        possible = []
        for read in self.reads(expr, index):
            condition = at.all_of(read.conditions)
            if condition is not False:
                possible.append((read, condition))
            if condition is None:
                break
        found: Any = None
        for read, condition in reversed(possible):
            operand_mask = at.both(mask, condition)
            value = at.language.cast(at.read(read.operand, read.index, operand_mask), expr.dtype)
            if found is None or condition is None:
                found = value
            else:
                found = at.language.where(condition, value, found)
        return found


class IndexValue(ElementRule):
    """A number computed from the index: ``make(index)`` is affine or a condition."""

    asks_index = True

    def __init__(self, name: str, make: Callable[[Any], Affine | Condition]) -> None:
        self.name, self.make = name, make

    def value(self, at: Any, expr: Expr, index: Index, mask: Scalar | None) -> Any:
        """The number."""
        made = self.make(index)
        if isinstance(made, Condition):
            flag = at.all_of((made,))
            return at.language.cast(True if flag is None else flag, expr.dtype)
        return at.language.cast(at.lane_of(made), expr.dtype)


class ScalarConstant(ElementRule):
    """A constant."""

    def __init__(self, number: Any, weak: bool = False) -> None:
        self.number, self.weak = number, weak

    def value(self, at: Any, expr: Expr, index: Index, mask: Scalar | None) -> Any:
        """The constant."""
        return at.language.constant(self.number, expr.dtype)

    def takes_flat(self, expr: Expr) -> bool:
        """True: it is the same at all indices."""
        return True

    def __repr__(self) -> str:
        return str(self.number)


class Stored(ElementRule):
    """An array that is in memory from the start.

    Parameters
    ----------
    what : str
        ``input`` or ``constant``.
    array : numpy.ndarray, optional
        The value of a constant.
    strides : tuple of Length, optional
        In elements; by default those of C order.
    """

    is_stored = True

    def __init__(
        self,
        what: str,
        array: np.ndarray[Any, Any] | None = None,
        strides: tuple[Length, ...] | None = None,
    ) -> None:
        self.what, self.array, self.strides = what, array, strides

    def takes_flat(self, expr: Expr) -> bool:
        """True if it is in C order."""
        return self.strides is None

    def __repr__(self) -> str:
        return self.what


class Reduce(ElementRule):
    """Elements along some axes combined into one.

    Parameters
    ----------
    monoid : str
        ``sum``, ``prod``, ``max``, ``min``, ``argmax``, ``argmin``.
    axes : tuple of int
        The reduced axes of the operand.
    """

    is_stored = True
    weight = 1

    def __init__(self, monoid: str, axes: Sequence[int]) -> None:
        self.monoid, self.axes = monoid, tuple(axes)

    def reads(self, expr: Expr, index: Index) -> list[Read]:
        """The operand at an index of the operand's own space."""
        return [Read(expr.operands[0], index)]

    def __repr__(self) -> str:
        return self.monoid


class OpaqueCall(ElementRule):
    """A node that is computed as a whole.

    Parameters
    ----------
    options : dict, optional
        Passed to its kernel beside the parameters (schedule/unstored_results.py).

    Each of its results is an expression with the rule `CallResult`.
    """

    is_stored = True

    def __init__(
        self,
        name: str,
        params: dict[str, Any],
        is_callback: bool = False,
        options: dict[str, Any] | None = None,
    ) -> None:
        self.name, self.params, self.is_callback = name, params, is_callback
        self.options = options or {}


class CallResult(ElementRule):
    """One of the results of an opaque call."""

    is_stored = True

    def __init__(self, position: int) -> None:
        self.position = position


def memory_strides(expr: Expr) -> tuple[Length, ...]:
    """The strides of an expression in memory, in elements."""
    if isinstance(expr.rule, Stored) and expr.rule.strides is not None:
        return expr.rule.strides
    return strides_of(expr.shape)


def strided_view(expr: Expr) -> tuple[Expr, Length, tuple[Length, ...]] | None:
    """An expression as a strided view of one in memory: that one, the offset, and the strides.

    Kernels and gathers read such a view in place.  None if it is not a view.  Offset and strides
    are in elements.
    """
    index: Index = counters(expr.shape)
    inner = expr
    while not inner.is_root:
        if not isinstance(inner.rule, View):
            return None
        index = inner.rule.placed(inner, index)
        (inner,) = inner.operands
    form = offset_of(index, memory_strides(inner))
    return inner, form.offset, tuple(form.factor(k) for k in range(len(expr.shape)))


def aligned(index: Index, shape: tuple[Length, ...], whole: tuple[Length, ...]) -> Index:
    """The index of an operand, given an index of the broadcast shape."""
    if isinstance(index, FlatIndex):
        return (ZERO,) * len(shape) if all(map(is_one, shape)) else index
    own = index[len(index) - len(shape) :]
    return tuple(
        [ZERO if type(n) is int and n == 1 else form for form, n in zip(own, shape, strict=True)]
    )


def scalar_constant(value: int, dtype: Dtype | None = None) -> Expr:
    """A constant as an expression."""
    array = np.asarray(value, dtype)
    return Expr(ScalarConstant(array[()]), (), (), array.dtype)
