"""Operands of operators and ufuncs of tensors, and their conversion.

Numbers and arrays are taken as they are, lists as arrays (of tensors, if such are in them), and
array classes that change only how an array is stored (``numpy.memmap``) as the array.  A class
whose operators mean something else (``numpy.matrix``, masked arrays) is refused: its meaning would
be lost silently.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.core.concretization import refuse_differentiated
from wengert._engine.core.handle import Handle, is_traced, value_of
from wengert._engine.core.leaked_tracers import source, traced_function
from wengert._engine.core.node import ConstantLeaf, Node
from wengert._engine.core.recording import recording_session
from wengert._engine.core.symbolic.dim import Dim
from wengert._engine.core.tracing import SIZE, size_value
from wengert._engine.ops import joining
from wengert.errors import DtypeError, TraceError, at, user_line

if TYPE_CHECKING:
    from wengert._engine.core.types import Operand, Size

NUMERIC = frozenset(
    {np.ndarray, int, float, complex, bool, *np.sctypeDict.values()} - {np.object_, np.str_}
)


def operand(other: Operand | Size) -> Any:
    """`other` as an operand; NotImplemented leaves it to the class of `other`."""
    if isinstance(other, Handle) or type(other) in NUMERIC:
        return other
    if isinstance(other, list | tuple):
        return joining.stacked(other) if joining.holds_handles(other) else np.asarray(other)
    if isinstance(other, np.ndarray):
        return as_array(other)
    if isinstance(other, np.generic | int | float | complex):
        return other
    if isinstance(other, Dim):
        return size_value(other)
    if hasattr(type(other), "__pandas_priority__"):
        return _of_pandas(other)
    return NotImplemented


def _of_pandas(table: Any) -> Any:
    """The values of a Series, DataFrame or Index: a tensor has no labels to align by."""
    array = np.asarray(table)
    if array.dtype.kind not in "biufc":
        raise DtypeError(
            f"a pandas.{type(table).__name__} of {array.dtype} beside a tensor: its elements must "
            f"be numbers. Convert it first, x.to_numpy(float){at(user_line())}."
        )
    return array


# Functions of several arrays that come in one list or tuple; NumPy looks for tensors in there.
SEQUENCES = frozenset(
    """choose column_stack concat concatenate dstack histogramdd hstack lexsort multi_dot piecewise
    row_stack select stack vstack""".split()
)


def without_lists(function: Any, args: tuple[Any, ...], kwargs: dict[Any, Any]) -> tuple[Any, Any]:
    """The arguments of a function of NumPy, with lists of tensors converted to tensors."""
    name = getattr(function, "__name__", None)
    if name == "block":  # whose lists say where each piece goes
        return args, kwargs
    made = _of_items if name in SEQUENCES else joining.stacked
    if any(isinstance(a, list | tuple) for a in args):
        args = tuple([made(a) for a in args])
    if any(isinstance(a, list | tuple) for a in kwargs.values()):
        kwargs = {k: made(a) for k, a in kwargs.items()}
    return args, kwargs


def _of_items(x: Any) -> Any:
    return type(x)(map(joining.stacked, x)) if type(x) in (list, tuple) else x


def known(x: Any, what: str) -> Any:
    """The value of a tensor.

    Raises
    ------
    TraceError
        It is not known: a graph is being built.
    """
    if is_traced(x):
        refuse_kept(x, what)
        raise TraceError(
            f"{what} needs the value of {x.node.spec}, which is not known while a graph is built. "
            "Keep to functions of tensors; what is to be looked at when the graph runs, show with "
            f"wengert.debug.show, and what does not depend on the inputs compute outside"
            f"{at(user_line())}."
        )
    if isinstance(x, Handle):
        note_read(x.node, what)
    return value_of(x)


def left(x: Any, what: str) -> Any:
    """The value of a tensor, returned to the user as a plain number or array.

    Raises
    ------
    ConversionError
        A derivative is being taken through it, and would end here silently.
    TraceError
        It is not known: a graph is being built.
    """
    value = known(x, what)
    if isinstance(x, Handle):
        refuse_differentiated(x.node, what)
    return value


def needed(x: Any, what: str, why: str, remedy: str) -> Any:
    """The value of a tensor, for a function whose result cannot be recorded without it.

    Raises
    ------
    TraceError
        It is not known: a graph is being built.
    """
    if is_traced(x):
        refuse_kept(x, what)
        raise TraceError(
            f"{what}: {why} depends on the values of {x.node.spec}, which are not known while a "
            f"graph is built. {remedy}{at(user_line())}."
        )
    return value_of(x)


def refuse_kept(x: Handle, what: str) -> None:
    """Raise TraceError for a tensor of a trace that has ended."""
    odd = source(x.node)
    if odd is not None:
        raise TraceError(
            f"{what} needs the value of {x.node.spec}, which was kept while "
            f"{traced_function(odd)} was traced: it is known in there only, whenever that runs. "
            "Return it from the function that was traced, of a loop as a part of the carry or of "
            "what is collected"
            f"{at(user_line())}."
        )


def is_of_sizes(node: Node) -> bool:
    """Whether a traced number is computed from sizes and numbers only."""
    stack, found = [node], False
    while stack:
        line = stack.pop()
        found = found or line.op is SIZE
        if line.is_traced and line.op is not SIZE and not line.args:
            return False
        if line.spec.shape:
            return False
        stack.extend(a for a in line.args if isinstance(a, Node))
    return found


def note_read(node: Node, what: str) -> None:
    """Record that a value became a plain number (`wengert.why`)."""
    watching = recording_session()
    if watching is not None and not isinstance(node, ConstantLeaf):
        watching.reads.append((node, what, user_line()))


def length(n: Any) -> Any:
    """A length of an axis as a Python int, or a symbolic size unchanged."""
    return n if isinstance(n, Dim) else operator.index(n)


def operands(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments of a ufunc as operands."""
    known = [operand(a) for a in args]
    return tuple([a if k is NotImplemented else k for a, k in zip(args, known, strict=True)])


def as_array(x: Any) -> Any:
    """An array of a subclass of ndarray as a plain one.

    Raises
    ------
    DtypeError
        Its class has a multiplication of its own.
    """
    if type(x).__mul__ is not np.ndarray.__mul__:
        raise DtypeError(
            f"a {type(x).__module__}.{type(x).__name__} beside a tensor: its operators do not mean "
            "what those of arrays do, and would be taken for them. Convert it first "
            "(np.asarray(x); for a masked array, choose with np.where(mask, value, x))"
            f"{at(user_line())}."
        )
    return np.asarray(x)
