"""Replaced errors: errors of wengert that a C function has replaced by its own.

A rejected conversion raises an error of wengert inside a C function, which may raise its own error
instead, with or without the first as its cause.  If a traced or differentiated function raises an
error, it is examined here.

    Refusals    the last rejected conversion
    hidden      the original error, or None; adds a note to an unclear error
    raised_at   the user's line where an error was raised
    recursed_at the user's line that calls its function again and again

Exceptions of user functions, which come out of the engine as they are.

An operation whose value is user code (`wengert.extend`) marks what the function raises, so that
operations around it, such as batches and solvers that call a compiled function, do not replace it
by an error of wengert.

    mark       mark an exception
    as_users   a marked exception, with a note that names the operation
    raise_for  raise an exception in place of another one, which is its cause
    is_users   whether an exception is marked
"""

from __future__ import annotations

import contextlib
import re
from threading import get_ident
from types import FrameType, TracebackType
from typing import ClassVar, NoReturn

from wengert.errors import TraceError, WengertError, at, is_inside, user_frame

# Messages of C functions that replace any error raised by a conversion: struct.pack, bytes,
# memoryview, the flat iterator of arrays, "%d", itertools.islice.
_REPLACED = (
    "required argument is not a",
    "cannot convert 'Tensor' object to byte",
    "memoryview: invalid type for format",
    "Error setting single item of array",
    "real number is required, not Tensor",
    "must be None or an integer",
)
_UNCLEAR = (
    r"\bTensor\b|Iterator operand is flagged as writeable|The only supported seed types"
    r"|argument should be a string or a Rational"
)
_NOTE = (
    "A wengert.Tensor is not a plain number. Compute with functions of wengert.numpy; where no "
    "derivative is wanted, use x.detach().item(); make arguments static that determine shapes or "
    "are used as keys, wengert.jit(f, static_argnames='n')"
)


class Refusals:
    """The last rejected conversion of each thread, and the user's call that it came from.

    C functions may raise another error instead, without a cause.  An error from the same
    instruction of the same call is then its replacement.  Only the text is stored: a traceback
    would keep all objects of the user's function alive.
    """

    _last: ClassVar[dict[int, tuple[int, int, type[WengertError], str]]] = {}

    @classmethod
    def noted(cls, error: WengertError) -> WengertError:
        """Store an error that is about to be raised by a conversion, and return it."""
        frame, _ = user_frame()
        if frame is not None:
            last = id(frame), frame.f_lasti, type(error), str(error)
            cls._last[get_ident()] = last
        return error

    @classmethod
    def of(cls, frame: FrameType, instruction: int) -> WengertError | None:
        """A copy of the error that was raised there, or None."""
        last = cls._last.pop(get_ident(), None)
        if last is None or last[:2] != (id(frame), instruction):
            return None
        return last[2](last[3])

    @classmethod
    def forget(cls) -> None:
        """Delete the stored error, when a function ends."""
        if cls._last:
            cls._last.pop(get_ident(), None)


def hidden(error: Exception) -> WengertError | None:
    """The error of wengert that another library has replaced, or None.

    If `float(x)` of an element raises, NumPy raises "setting an array element with a sequence"
    instead, and `struct.pack` "required argument is not a float"; if the length of an array is a
    traced number, NumPy's error says that it is not an integer.
    """
    if isinstance(error, WengertError):
        return None
    text, cause = str(error), error.__cause__
    users, last = _calls(error)
    if isinstance(cause, WengertError) and (
        "setting an array element" in text or _is_of_library(last)
    ):
        return cause.with_traceback(error.__traceback__)
    if "single integer, got 'Tensor(" in text and "traced)'" in text:
        return TraceError(
            "the length of an array is a traced number, whose value is not known while a graph is "
            "built. Take it from a shape (len(x), x.shape[0]), or make the argument that it is "
            f"computed from static: wengert.jit(f, static_argnames='n'){_location(users)}."
        )
    if users is not None and any(words in text for words in _REPLACED):
        ours = Refusals.of(users.tb_frame, users.tb_lasti)
        if ours is not None:
            return ours.with_traceback(error.__traceback__)
    is_foreign = isinstance(error, TypeError) and not _is_of_wengert(last)
    if is_foreign and re.search(_UNCLEAR, text) and not hasattr(error, "__notes__"):
        error.add_note(_NOTE + _location(users))
    return None


def raised_at(error: Exception) -> str | None:
    """The user's line where an exception was raised; None if that is not known."""
    users, _ = _calls(error)
    return None if users is None else _location(users).removeprefix(" (at ").removesuffix(")")


def recursed_at(error: RecursionError) -> str | None:
    """The user's line that called its function last, preferably in a function with a name.

    Where the limit is reached depends on the depth at which the recursion began.
    """
    call, lambdas, named = error.__traceback__, None, None
    while call is not None:
        if not is_inside(call.tb_frame) and not _of_cython(call):
            lambdas, named = call, call if call.tb_frame.f_code.co_name != "<lambda>" else named
        call = call.tb_next
    found = named or lambdas
    return None if found is None else _location(found).removeprefix(" (at ").removesuffix(")")


def _calls(error: Exception) -> tuple[TracebackType | None, TracebackType | None]:
    """The innermost frame of user code in a traceback, and the innermost of all."""
    users, last, call = None, None, error.__traceback__
    while call is not None:
        last = call
        if not is_inside(call.tb_frame) and not _of_cython(call):
            users = call
        call = call.tb_next
    return users, last


def _of_cython(call: TracebackType) -> bool:
    return call.tb_frame.f_code.co_filename.endswith(".pyx")


def _is_of_wengert(call: TracebackType | None) -> bool:
    if call is None:
        return False
    return str(call.tb_frame.f_globals.get("__name__")).startswith("wengert.")


def _is_of_library(call: TracebackType | None) -> bool:
    return call is not None and is_inside(call.tb_frame) and not _is_of_wengert(call)


def _location(call: TracebackType | None) -> str:
    if call is None:
        return ""
    code = call.tb_frame.f_code
    return at(f"{code.co_filename}:{call.tb_lineno}, in {code.co_name}")


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


def raise_for(raised: Exception, error: Exception) -> NoReturn:
    """Raise an exception in place of another one, its cause; the same one keeps its own cause."""
    if error is raised:
        raise error
    raise error from raised


def is_users(error: BaseException) -> bool:
    """Whether an exception is that of a user function."""
    return hasattr(error, _MARK)
