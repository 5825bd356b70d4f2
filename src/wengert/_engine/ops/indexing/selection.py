"""Selection: the elements that a traced mask selects.

Their number is unknown, so they do not form an array.  A selection stores the mask and the whole
array, with ones in place of the elements that are not selected.  It supports elementwise
operations, reductions, and assignment through the same mask.  For all else they are made a window
(masks.py), with the elements at the start of an array:

    x[m] = x[m] ** p        x = where(m, where(m, x, 1) ** p, x)
    x[m] *= 3
    x[m].mean()             sum(where(m, x, 0)) / sum(m)

    Selection    the elements that a mask selects
    selection    the selection, if the index consists of a mask only
    written_where   an array after a store through an unknown mask
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.core.handle import Handle, describe, dtype_of, is_traced, shape_of, wrap
from wengert._engine.core.node import Node
from wengert._engine.core.op import lookup
from wengert.errors import TraceError, at, user_line

from ..casts import astype
from ..elementwise.selection import where
from ..joining import holds_handles, stacked
from . import masks
from .masks import compacted
from .window_access import write_window
from .window_functions import applied
from .window_operators import check_stored_dtype, elementwise
from .windows import Window

if TYPE_CHECKING:
    from wengert._engine.core.types import Array

_DEPTH = 8  # maximum depth of expressions that are compared
Run = Callable[..., Any]


class Selection:
    """The elements of an array that a traced mask selects.

    Parameters
    ----------
    whole : Tensor
        The array; the values of elements that are not selected are arbitrary.
    mask : Tensor
        A mask of the same shape.
    """

    __array_priority__ = 2000
    is_window = True
    __slots__ = ("mask", "whole")

    def __init__(self, whole: Any, mask: Any) -> None:
        self.whole, self.mask = whole, wrap(mask.node)  # a later write to the mask has no effect

    # ---- element by element ------------------------------------------------------------------

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: object, **kwargs: object) -> Any:
        if method != "__call__" or kwargs or ufunc.nout != 1 or ufunc.signature is not None:
            return self.compacted().__array_ufunc__(ufunc, method, *_compacted(inputs), **kwargs)
        return self._elementwise(ufunc, ufunc.__name__, *inputs)

    def _elementwise(self, op: Run, name: str, *inputs: object) -> Any:
        others = [x for x in inputs if x is not self]
        if all(_same(self.mask, x.mask) if type(x) is Selection else _is_number(x) for x in others):
            wholes = [x.whole if isinstance(x, Selection) else x for x in inputs]
            return Selection(op(*wholes), self.mask)
        return elementwise(op, name, *_compacted(inputs))

    def _updated(self, name: str, other: object) -> None:
        """The elements after an operator in place."""
        result = self._elementwise(lookup(name), name, self, other)
        check_stored_dtype(name, result.dtype, self.dtype)
        if isinstance(result, Selection):
            self.whole[...] = astype(result.whole, self.dtype)
        else:
            self.compacted()[...] = result

    def compacted(self) -> Window:
        """The elements as a window, which shares memory with the selection."""
        return compacted(self.whole, self.mask)

    def astype(self, dtype: Any) -> Selection:
        """The elements with another dtype."""
        return Selection(lookup("copy")(astype(self.whole, np.dtype(dtype))), self.mask)

    def copy(self) -> Selection:
        """A copy of the elements."""
        return Selection(lookup("copy")(self.whole), self.mask)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the elements."""
        return dtype_of(self.whole)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return 1

    # ---- all elements together ---------------------------------------------------------------

    def sum(self) -> Any:
        """The sum of the elements."""
        return lookup("sum")(where(self.mask, self.whole, np.zeros((), self.dtype)[()]))

    def prod(self) -> Any:
        """The product of the elements."""
        return lookup("prod")(where(self.mask, self.whole, np.ones((), self.dtype)[()]))

    def any(self) -> Any:
        """Whether any element is true."""
        return lookup("any")(lookup("logical_and")(self.mask, self.whole != 0))

    def all(self) -> Any:
        """Whether all elements are true."""
        return lookup("all")(lookup("logical_or")(~self.mask, self.whole != 0))

    @property
    def size(self) -> Any:
        """The number of elements."""
        return lookup("sum")(self.mask)

    def mean(self) -> Any:
        """The mean of the elements; NaN if there are none."""
        return self.sum() / self.size

    def __array_function__(
        self, func: Any, types: object, args: tuple[Any, ...], kwargs: Any
    ) -> Any:
        name = func.__name__
        if name in ("sum", "prod", "any", "all", "mean", "copy") and len(args) == 1 and not kwargs:
            return getattr(self, name)()
        return applied(name, _compacted(args), kwargs)

    # ---- as a window -------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[Any, ...]:
        """The number of elements, as a traced integer."""
        return (self.size,)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.compacted(), name)

    def __getitem__(self, index: object) -> Any:
        return self.compacted()[index]

    def __setitem__(self, index: object, value: object) -> None:
        self.compacted()[index] = _compacted((value,))[0]

    def __matmul__(self, other: object) -> Any:
        return self.compacted() @ _compacted((other,))[0]

    def __rmatmul__(self, other: Any) -> Any:
        return other @ self.compacted()

    # ---- operations that need the number of elements -------------------------------------------

    def __len__(self) -> int:
        raise self.refusal("len()")

    def __iter__(self) -> Any:
        raise self.refusal("a loop over them")

    def __bool__(self) -> bool:
        raise self.refusal("a branch")

    def __array__(self, *args: Any, **kwargs: object) -> Any:
        raise self.refusal("an array of them")

    def __repr__(self) -> str:
        return f"<elements of {describe(self.whole)} selected by a traced mask>"

    def refusal(self, what: str) -> TraceError:
        """The error for something that needs the number of elements."""
        return TraceError(
            f"indexing an array of shape {shape_of(self.whole)} with a mask of shape "
            f"{shape_of(self.mask)}: the number of elements depends on values, which are not known "
            f"while a graph is built, but {what} requires it. Select with np.where(mask, x, 0), "
            "which keeps the shape, or read a fixed number of positions (np.argsort, np.take)"
            f"{at(user_line())}."
        )


def _operator(name: str, reflected: bool = False) -> Run:
    def run(self: Selection, *others: object) -> Selection:
        inputs = (*others, self) if reflected else (self, *others)
        return self._elementwise(lookup(name), name, *inputs)  # type: ignore[no-any-return]

    return run


def _in_place(name: str) -> Run:
    def run(self: Selection, other: object) -> Selection:
        self._updated(name, other)
        return self

    return run


_OPERATORS = {
    "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide", "pow": "power",
    "floordiv": "floor_divide", "mod": "remainder", "and": "bitwise_and", "or": "bitwise_or",
    "xor": "bitwise_xor",
}  # fmt: skip
_COMPARISONS = {
    "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal", "eq": "equal",
    "ne": "not_equal",
}  # fmt: skip
for _word, _name in _OPERATORS.items():
    setattr(Selection, f"__{_word}__", _operator(_name))
    setattr(Selection, f"__r{_word}__", _operator(_name, True))
    setattr(Selection, f"__i{_word}__", _in_place(_name))
for _word, _name in (_COMPARISONS | {"neg": "negative", "abs": "absolute"}).items():
    setattr(Selection, f"__{_word}__", _operator(_name))
Selection.__hash__ = object.__hash__  # type: ignore[method-assign]


def selection(x: Any, template: object, operands: Sequence[Handle]) -> Selection | None:
    """The selection from `x` if the index is a traced mask of the shape of `x`, else None."""
    is_only_part = not isinstance(template, tuple) or len(template) == 1
    if not is_only_part or len(operands) != 1 or not is_traced(operands[0]):
        return None
    mask = operands[0]
    if dtype_of(mask).kind != "b" or shape_of(mask) != shape_of(x) or not shape_of(x):
        return None
    return Selection(where(mask, x, np.ones((), dtype_of(x))[()]), mask)


def written_where(
    x: Array, index: object, v: object, template: object, operands: Sequence[Any]
) -> Any:
    """`x` after ``x[index] = v``, for an index with an unknown mask."""
    if isinstance(v, list | tuple):
        v = stacked(v) if holds_handles(v) else np.asarray(v)
    if masks.is_mask_of(x, template, operands):
        if isinstance(v, Selection) and _same(operands[0], v.mask):
            return where(v.mask, astype(v.whole, dtype_of(x)), x)
        if not isinstance(v, Selection | Window) and masks.broadcasts(x, v, operands[0]):
            return masks.chosen(x, v, operands[0])
    return write_window(x, index, v)


def _compacted(values: Sequence[Any]) -> list[Any]:
    """Values with windows instead of selections, also in lists."""
    return [
        x.compacted()
        if isinstance(x, Selection)
        else type(x)(_compacted(x))
        if type(x) in (list, tuple)
        else x
        for x in values
    ]


def _is_number(x: object) -> bool:
    return not isinstance(x, Selection | Window) and shape_of(x) == ()


def _same(a: Any, b: Any) -> bool:
    """Whether two masks are identical, or computed in the same way from the same values."""
    return a is b or _equal(a.node, b.node, _DEPTH)


def _equal(a: object, b: object, depth: int) -> bool:
    if a is b:
        return True
    if not (isinstance(a, Node) and isinstance(b, Node)):
        return type(a) is type(b) and bool(np.all(a == b))
    if a.op is not b.op or not a.args or depth == 0 or len(a.args) != len(b.args):
        are_leaves = not a.args and not b.args and a.op is b.op and a.value is not None
        return are_leaves and b.value is not None and bool(np.array_equal(a.value, b.value))
    if a.params != b.params or getattr(a.op, "effects", None) is None:
        return False
    return all(_equal(p, q, depth - 1) for p, q in zip(a.args, b.args, strict=True))
