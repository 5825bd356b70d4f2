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
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from wengert.errors import ArgumentError, TraceError, at, user_line

from .handle import Handle
from .node import Node
from .op import lookup

if TYPE_CHECKING:
    from wengert._engine.core.types import Array, Size


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
