"""Runtime checks: conditions, and indices in bounds, that raise when the graph runs.

    RuntimeChecks    the conditions of the block that is being traced
    Check            one of them
    handling         a block inside of a try statement
    may_be_caught    whether an exception of a type may be caught
    lookup_index     integers as an index; a negative one is out of range, not counted from the end
    note_lookup      record the function of a lookup at its node
    lookup_error     the error of such a node

The body of a loop or branch cannot raise.  Its conditions are collected while it is traced, become
results of the node of the loop, and are checked after it.

Exceptions that a ``try`` statement of the user's may catch.

A compiled program raises an exception that depends on values when it runs, when the ``try``
statement around it has ended.  So what may raise such an exception is refused inside of it.

In eager mode the integers are checked, and one that is out of range raises an error that names the
function.  In a graph they are known when it runs, and NumPy reports only that an index is out of
bounds.  So the node of the lookup records its function, from which the same error is made.

NaN checks: whether values are checked, and the errors found.

`wengert.debug(nan=True)` opens a session (recording.py) with `Checks` (diagnostics/debug.py).
`apply` (dispatch.py) passes every value to it; derivatives and compiled graphs are checked by their
callers.  Without an open session the cost is one test of a counter.

    Checks           the options of the checks, and the errors found
    Locator          finds the node in a loop, a graph or a derivative
    current_checks   the checks that are active here
    unchecked        a block without checks: a backward pass checks its results only
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from wengert.errors import ArgumentError, NotFiniteError, TraceError, at, user_line

from .handle import Handle
from .node import Node
from .op import lookup
from .recording import innermost_session
from .spec import spec_of
from .thread_state import Blocks, ScopedValue

if TYPE_CHECKING:
    from wengert._engine.core.dispatch import Operation
    from wengert._engine.core.types import Array, Operand, Size


class Check(NamedTuple):
    """A condition that raises when the graph runs.

    failed : a traced boolean.
    error : the exception.
    """

    failed: Any
    error: Exception


class _Pending(threading.local):
    checks: list[Check] | None = None


class RuntimeChecks:
    """Conditions that are checked when the graph runs."""

    _pending = _Pending()

    @classmethod
    def add(cls, failed: Any, error: Exception) -> None:
        """Raise an exception, when the graph runs, if a condition holds.

        Raises
        ------
        TraceError
            A try statement of the user's would catch the exception.
        """
        if may_be_caught(type(error)):
            raise TraceError(
                f"a try statement may catch {type(error).__name__}, which is raised or not "
                "depending on values that are not known while a graph is built. Use a branch in "
                f"place of the exception, if condition: ... else: ...{at(user_line())}."
            )
        if cls._pending.checks is not None:
            cls._pending.checks.append(Check(failed, error))
        else:
            kind = type(error)
            name = kind.__name__ if kind.__module__ == "builtins" else kind
            notes = getattr(error, "__notes__", None)
            more = {"notes": tuple(notes)} if notes else {}
            lookup("debug_raise_if")(failed, error=name, message=_message(error), **more)

    @classmethod
    def may_raise(cls) -> bool:
        """Whether the function that is being traced may contain conditions."""
        return cls._pending.checks is None

    @classmethod
    @contextmanager
    def collected(cls) -> Iterator[list[Check]]:
        """A block whose conditions are collected."""
        outer = cls._pending.checks
        checks: list[Check] = []
        cls._pending.checks = checks
        try:
            yield checks
        finally:
            cls._pending.checks = outer


def _message(error: Exception) -> str:
    return error.args[0] if len(error.args) == 1 and type(error.args[0]) is str else str(error)


Types = Callable[[], Any]  # the exceptions of the handlers, or None for all


class _Handlers(threading.local):
    types: tuple[Types, ...] = ()


_handlers = _Handlers()


@contextmanager
def handling(types: Types) -> Iterator[None]:
    """A block inside of a try statement that catches some exceptions."""
    before, _handlers.types = _handlers.types, (*_handlers.types, types)
    try:
        yield
    finally:
        _handlers.types = before


def may_be_caught(error: type[Exception], by_name: bool = False) -> bool:
    """Whether a try statement of the user's, which is being traced, catches an exception.

    With `by_name`, handlers of all exceptions do not count: they do not say which are expected.
    """
    for types in _handlers.types:
        found = types()
        if found is None:
            found = (BaseException,)
        if by_name:
            found = tuple([t for t in found if t not in (Exception, BaseException)])
        if issubclass(error, found):
            return True
    return False


_KEY = "numbered"
_OUT_OF_BOUNDS = re.compile(r"index (-?\d+) is out of bounds for axis \d+ with size (\d+)")


def lookup_index(numbers: Array, count: Size) -> Any:
    """Integers as an index of an axis of that length; negative ones stay out of range.

    Parameters
    ----------
    numbers : Tensor
        Integers that a graph computes.
    count : Length
    """
    if numbers.dtype.kind == "u":
        return numbers
    if numbers.dtype.itemsize < np.dtype(np.int64).itemsize:
        numbers = numbers.astype(np.int64)
    return np.where(numbers < 0, numbers - count, numbers)


def note_lookup(result: Array, what: str, units: str, advice: str = "Renumber them") -> Any:
    """Record the function of a lookup at the node of its result; return the result.

    Parameters
    ----------
    result : Tensor
    what : str
        The function: ``embedding``.
    units : str
        What the integers count: ``rows``.
    advice : str
        The remedy; ``{}`` in it is replaced by the integer.
    """
    if isinstance(result, Handle) and result.node.value is None:
        metadata = {**result.node.metadata, _KEY: (what, units, advice)}
        result.node.note(metadata=metadata)
    return result


def lookup_error(node: Node, error: Exception) -> ArgumentError | None:
    """The error for a node whose index is out of range; None if it is not a noted lookup."""
    lookup = node.metadata.get(_KEY)
    match = _OUT_OF_BOUNDS.search(str(error))
    if lookup is None or match is None:
        return None
    what, units, advice = lookup
    number, count = map(int, match.groups())
    number += count if number < 0 else 0
    return ArgumentError(
        f"{what}{f' in {node.scope}' if node.scope else ''} was asked for number {number} of "
        f"{count} {units}, counted from 0. {advice.format(number)}{at(node.where)}."
    )


UNCHECKED: Blocks[bool] = Blocks("wengert_unchecked", False)
SHOWN = 6  # arrays up to this size are shown in full
ADVICE = (
    "Keep the operands away from there (np.where around them, or clip them), or find out where "
    "they come from (wengert.debug.show, wengert.why); if it is intended, put the line into a "
    "block `with wengert.debug(nan=False):`"
)


class NonfiniteWatch(Protocol):
    """Checks of a graph that runs node by node."""

    def check(self, node: Any, params: Any, operands: Sequence[Any], out: Any) -> None:
        """Check the value of a node."""

    def finish(self, nodes: Sequence[Any], outputs: Iterable[Any]) -> None:
        """Report the errors found, after the graph has run."""


class Locator(Protocol):
    """Finds the node that produced a NaN in a loop or graph (diagnostics/nan_locator.py)."""

    def rerun(self, checks: Checks, op: Any, params: Any, values: Sequence[Any]) -> None:
        """Run a loop or a branch again, node by node."""

    def run_checked(
        self, graph: Any, sizes: Mapping[str, int], values: Sequence[Any], checks: Checks
    ) -> list[Any]:
        """Run a graph and check every value."""

    def report_backward(self, checks: Checks, tape: Any, seeds: Any, results: Any) -> None:
        """Report the first operation of a backward pass with a NaN among its cotangents."""

    def report_forward(
        self, checks: Checks, tape: Any, seeds: Any, outputs: Any, results: Any
    ) -> None:
        """Report the first operation of a forward pass with a NaN in its tangent."""

    @property
    def NodeWatch(self) -> Callable[[Checks], NonfiniteWatch]:
        """The class that checks a graph that runs node by node."""


class Checks:
    """The options of the checks, and the errors found.

    Attributes
    ----------
    nan, inf : bool
        Whether to look for NaN and for infinities; these are the nonfinite values below.
    raises : bool
        Whether the first error is raised.
    locator : Locator
        Finds the node in a loop, a graph or a derivative.
    found : list of NotFiniteError
        The errors, if they are not raised.
    """

    def __init__(self, nan: bool, inf: bool, raises: bool, locator: Locator) -> None:
        self.nan, self.inf, self.raises, self.locator = nan, inf, raises, locator
        self.found: list[NotFiniteError] = []

    def is_nonfinite(self, value: Array | tuple[Array, ...] | None) -> bool:
        """Whether a value (an array, a number, a tuple of them) has a nonfinite element."""
        return self.first(value) is not None

    def first(self, value: Any) -> tuple[Any, tuple[int, ...]] | None:
        """The first nonfinite element of a value, and its index; None if there is none."""
        if type(value) in (tuple, list):
            return next((f for f in map(self.first, value) if f is not None), None)
        if isinstance(value, dict):  # the cotangents of several outputs
            return self.first(tuple(value.values()))
        if not isinstance(value, np.ndarray | np.generic | float | complex):
            return None
        array = np.asarray(value)
        if array.dtype.kind not in "fc" or array.size == 0:
            return None
        with np.errstate(all="ignore"):
            if np.isfinite(np.add.reduce(array, axis=None)):  # usually one sum suffices
                return None
            mask = np.isnan(array) if self.nan else np.zeros(array.shape, bool)
            if self.inf:
                mask = mask | np.isinf(array)
        if not mask.any():
            return None
        index = tuple(int(i) for i in np.unravel_index(int(np.argmax(mask)), array.shape))
        return array[index], index

    def check(
        self, op: Operation, params: dict[Any, Any], values: Sequence[Any], value: Array
    ) -> None:
        """Check the result of an operation."""
        if self.is_nonfinite(value) and not UNCHECKED.get():
            if op.kind == "control":
                self.locator.rerun(self, op, params, values)
            self.report_result(op.name, values, value, user_line())

    def report_result(
        self, name: str, values: Sequence[Any], value: Array | tuple[Array, ...], where: str | None
    ) -> None:
        """Raise or store the error for a nonfinite result of an operation.

        Raises
        ------
        NotFiniteError
        """
        nonfinite = [i for i, v in enumerate(values) if self.is_nonfinite(v)]
        if nonfinite and not self.raises:
            return  # it was reported where it first occurred, or passed in
        element, index = self.first(value) or (None, ())
        place = f" at index {index}" if index else ""
        operands = "; ".join(short(v) for v in values)
        if nonfinite:
            origin = (
                f"operand {nonfinite[0]} already has it, and no operation in this block produced "
                "it. Find out where that operand comes from"
            )
        else:
            origin = f"it first occurs here. {ADVICE}"
        self.report(
            f"{name} gives {element}{place} of {spec_of(value)}, from {operands}: {origin}", where
        )

    def report(self, text: str, where: str | None) -> None:
        """Raise or store the error with this text."""
        error = NotFiniteError(f"{text}{at(where)}.")
        if self.raises:
            raise error
        self.found.append(error)


def short(value: Operand | tuple[Array, ...]) -> str:
    """A short text of a value: its spec, and its elements or their range."""
    if type(value) is tuple:
        return f"({', '.join(map(short, value))})"
    if not isinstance(value, np.ndarray | np.generic):
        return repr(value)[:40]
    spec = spec_of(value)
    if value.size <= SHOWN:
        return f"{spec} {np.array2string(np.asarray(value), precision=6, separator=', ')}"
    if value.dtype.kind not in "iufb":
        return str(spec)
    finite = np.asarray(value)[np.isfinite(value)]
    counts = [(int(f(value).sum()), word) for f, word in ((np.isnan, "nan"), (np.isinf, "inf"))]
    nonfinite = "".join(f", {n} of {value.size} {word}" for n, word in counts if n)
    bounds = f" from {np.min(finite):.6g} to {np.max(finite):.6g}" if finite.size else ""
    return f"{spec}{bounds}{nonfinite}"


def current_checks() -> Checks | None:
    """The checks that are active here, if any."""
    session = innermost_session()
    return None if session is None or UNCHECKED.get() else session.checks


@contextmanager
def unchecked() -> Iterator[None]:
    """A block in which values are not checked."""
    block = ScopedValue(True)
    try:
        UNCHECKED.open(block)
        yield
    finally:
        block.end(True)
        UNCHECKED.forget()
