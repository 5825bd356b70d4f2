"""Operands of operators and ufuncs of tensors: their conversion, and objects of other libraries.

    OPERATORS       the full name of the module that has them, set by wengert/__init__.py
    not_an_array    what `Tensor.__array__` returns in SciPy's operators
    with_tensor     the result of an operator of a tensor and such an object

Numbers and arrays are used unchanged, lists are converted to arrays (or to tensors, if they contain
any), and subclasses that only change how an array is stored (``numpy.memmap``) to arrays.  A class
whose operators differ from those of arrays (``numpy.matrix``, masked arrays) raises an error: its
semantics would be lost silently.

``A @ x`` calls SciPy's method first.  It converts an operand that it does not know by
``np.asanyarray``, and returns NotImplemented if that is an array of one object, for which NumPy
makes it "if all else fails"; Python then calls ``x.__rmatmul__(A)``.  A tensor is converted to such
an array there, and the operator is that of wengert's sparse arrays (wengert.scipy.sparse).
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.core.device_arrays import refuse_on_device
from wengert._engine.core.handle import Handle, is_traced, value_of
from wengert._engine.core.implicit_conversions import refuse_differentiated
from wengert._engine.core.node import ConstantLeaf, Node
from wengert._engine.core.other_libraries import beside_tensors, is_labelled, is_of_pandas
from wengert._engine.core.recording import recording_session
from wengert._engine.core.symbolic.dim import Dim
from wengert._engine.core.traced_inputs import source, traced_function
from wengert._engine.core.tracing import SIZE, size_value
from wengert._engine.ops import joining
from wengert.errors import ConversionError, DtypeError, TraceError, at, user_line

if TYPE_CHECKING:
    from wengert._engine.core.types import Operand, Size


NUMERIC = frozenset(
    {np.ndarray, int, float, complex, bool, *np.sctypeDict.values()} - {np.object_, np.str_}
)


def operand(other: Operand | Size) -> Any:
    """`other` as an operand; NotImplemented to let Python call the method of `other`."""
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
        return NotImplemented if is_labelled(other) else _of_pandas(other)
    refuse_on_device(other, "an operand of a tensor")
    return NotImplemented


def _of_pandas(table: Any) -> Any:
    """The values of an index or another array of pandas."""
    array = np.asarray(table)
    if array.dtype.kind not in "biufc":
        raise DtypeError(
            f"a pandas.{type(table).__name__} of {array.dtype} as operand: its elements "
            f"must be numbers. Convert it first, x.to_numpy(float){at(user_line())}."
        )
    return array


# Functions of a list or tuple of arrays, in which NumPy looks for tensors.
SEQUENCES = frozenset(
    """choose column_stack concat concatenate dstack histogramdd hstack lexsort multi_dot piecewise
    row_stack select stack vstack""".split()
)


def without_lists(function: Any, args: tuple[Any, ...], kwargs: dict[Any, Any]) -> tuple[Any, Any]:
    """The arguments of a function of NumPy, with lists of tensors converted to tensors."""
    name = getattr(function, "__name__", None)
    if name == "block":  # its nested lists determine positions
        return args, kwargs
    convert = _of_items if name in SEQUENCES else joining.stacked
    if any(isinstance(a, list | tuple) for a in args):
        args = tuple([convert(a) for a in args])
    if any(isinstance(a, list | tuple) for a in kwargs.values()):
        kwargs = {k: convert(a) for k, a in kwargs.items()}
    return args, kwargs


def _of_items(x: Any) -> Any:
    return type(x)(map(joining.stacked, x)) if type(x) in (list, tuple) else x


def known(x: Any, what: str) -> Any:
    """The value of a tensor.

    Raises
    ------
    TraceError
        The value is not known: a graph is being built.
    """
    if is_traced(x):
        refuse_leaked(x, what)
        raise TraceError(
            f"{what} needs the value of {x.node.spec}, which is not known while a graph is built. "
            "Use functions of tensors; to print a value when the graph runs, use "
            f"wengert.debug.show; compute values that do not depend on the inputs outside"
            f"{at(user_line())}."
        )
    if isinstance(x, Handle):
        note_read(x.node, what)
    return value_of(x)


def returned_value(x: Any, what: str) -> Any:
    """The value of a tensor, returned to the user as a plain number or array.

    Raises
    ------
    ConversionError
        It is being differentiated, and the derivative would be lost silently.
    TraceError
        The value is not known: a graph is being built.
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
        The value is not known: a graph is being built.
    """
    if is_traced(x):
        refuse_leaked(x, what)
        raise TraceError(
            f"{what}: {why} depends on the values of {x.node.spec}, which are not known while a "
            f"graph is built. {remedy}{at(user_line())}."
        )
    return value_of(x)


def refuse_leaked(x: Handle, what: str) -> None:
    """Raise TraceError for a leaked tensor, of a trace that has ended."""
    trace = source(x.node)
    if trace is not None:
        raise TraceError(
            f"{what} needs the value of {x.node.spec}, which was stored while "
            f"{traced_function(trace)} was traced, and is known only inside. Return it from the "
            "traced function, or from the body of a loop as part of the carry or the collected "
            f"outputs{at(user_line())}."
        )


def is_of_sizes(node: Node) -> bool:
    """Whether a traced number depends on sizes and constants only."""
    stack, depends_on_size = [node], False
    while stack:
        current = stack.pop()
        depends_on_size = depends_on_size or current.op is SIZE
        if current.is_traced and current.op is not SIZE and not current.args:
            return False
        if type(current.spec) is tuple or current.spec.shape:
            return False
        stack.extend(a for a in current.args if isinstance(a, Node))
    return depends_on_size


def note_read(node: Node, what: str) -> None:
    """Record the conversion of a value to a plain number (for `wengert.why`)."""
    session = recording_session()
    if session is not None and not isinstance(node, ConstantLeaf):
        session.reads.append((node, what, user_line()))


def length(n: Any) -> Any:
    """A length of an axis as a Python int, or a symbolic size unchanged."""
    return n if isinstance(n, Dim) else operator.index(n)


def operands(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments of a ufunc as operands."""
    converted = [operand(a) for a in args]
    return tuple([a if k is NotImplemented else k for a, k in zip(args, converted, strict=True)])


def has_own_ufuncs(x: Any) -> bool:
    """Whether NumPy's functions of `x` are those of its class, which is not of arrays."""
    return not isinstance(x, Handle | np.ndarray | np.generic) and callable(
        getattr(type(x), "__array_ufunc__", None)
    )


def as_array(x: Any) -> Any:
    """An instance of a subclass of ndarray as a plain array.

    Raises
    ------
    DtypeError
        The operators of the class differ from those of arrays.
    """
    if type(x).__mul__ is not np.ndarray.__mul__:
        raise DtypeError(
            f"a {type(x).__module__}.{type(x).__name__} as operand of a tensor: its operators "
            "differ from those of arrays. Convert it first (np.asarray(x); for a masked array, "
            f"choose with np.where(mask, value, x)){at(user_line())}."
        )
    return np.asarray(x)


OPERATORS: list[str] = []
_CONVERTING = {"_matmul_dispatch", "_divide", "multiply", "_multiply_2d_with_broadcasting"}


def not_an_array(x: object) -> np.ndarray[Any, Any] | None:
    """An array of one object if an operator of a sparse array converts `x`; None elsewhere.

    Raises
    ------
    ConversionError
        The method `multiply` was called, which cannot leave the work to `x`.
    """
    frame: Any = sys._getframe(2)
    name = frame.f_code.co_name
    if name not in _CONVERTING or not _is_scipys(frame):
        return None
    while "multiply" in name and frame.f_back is not None and _is_scipys(frame.f_back):
        frame, name = frame.f_back, frame.f_back.f_code.co_name
    if "multiply" in name:
        raise ConversionError(
            "A.multiply(x) of a sparse array of SciPy and a tensor, or an array of one: use the "
            f"operator, A * x, or wengert.scipy.sparse.as_sparse(A).multiply(x){at(user_line())}."
        )
    found = np.empty((), object)
    found[()] = x
    return found


def _is_scipys(frame: Any) -> bool:
    return bool(frame.f_globals.get("__name__", "").startswith("scipy.sparse."))


def with_tensor(run: Callable[[Any, Any], Any], x: Any, y: Any) -> Any:
    """``run(x, y)`` if one operand is a sparse array of SciPy, a Series or a DataFrame.

    NotImplemented for other objects.
    """
    for other in (x, y):
        if is_of_pandas(other):
            return run(*[beside_tensors(a) if a is other else a for a in (x, y)])
        if OPERATORS and type(other).__module__.startswith("scipy.sparse."):
            converted = import_module(OPERATORS[0]).as_sparse
            return run(*[a if converted(a) is None else converted(a) for a in (x, y)])
    return NotImplemented
