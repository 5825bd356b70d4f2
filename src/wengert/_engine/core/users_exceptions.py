"""Exceptions of user functions, which come out of the engine as they are.

An operation whose value is user code (`wengert.extend`) marks what the function raises, so that
operations around it, such as batches and solvers that call a compiled function, do not replace it
by an error of wengert.

    mark       mark an exception
    as_users   a marked exception, with a note that names the operation
    is_users   whether an exception is marked
"""

from __future__ import annotations

import contextlib

_MARK = "_wengert_is_noted"


def mark(error: Exception, is_noted: bool = False) -> None:
    """Mark an exception as that of a user function."""
    with contextlib.suppress(AttributeError, TypeError):  # a class without a dictionary
        setattr(error, _MARK, is_noted)


def as_users(error: Exception, note: str) -> Exception:
    """The exception as the user's; the note is that of the innermost operation."""
    if not getattr(error, _MARK, False):
        error.add_note(note)
        mark(error, True)
    return error


def is_users(error: BaseException) -> bool:
    """Whether an exception is that of a user function."""
    return hasattr(error, _MARK)
