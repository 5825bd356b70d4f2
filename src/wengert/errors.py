"""Every deliberate exception of wengert.

    WengertError
    ├── DerivativeError            a derivative that cannot be taken
    │   ├── NotScalarError           grad of something that is not one real number
    │   ├── NotDifferentiableError   an operation or argument without a derivative
    │   ├── UnconnectedError         the output does not depend on the chosen input
    │   ├── RuleError                a user's rule returned the wrong thing
    │   ├── MutatedError             an array was overwritten after it was recorded
    │   └── ReleasedError            the history was given back (retain_graph=False)
    ├── GraphError                 a graph that is not a Wengert list
    │   ├── CycleError               a node depends on itself
    │   ├── MixedGraphError          nodes of two graphs in one expression
    │   ├── TraceError               a value was needed where only its spec is known
    │   │   └── TracedBranchError      ... to decide which way the program goes
    │   └── PolicyError              something implicit that the policy forbids
    ├── OperandError               an operation refused its operands
    │   ├── ShapeError               ... because of their shapes
    │   ├── DtypeError               ... because of their dtypes
    │   ├── MatrixError              ... a singular matrix, or one that is not positive definite
    │   │   └── SingularError          ... a matrix that is singular, or nearly so
    │   ├── IntegerRangeError        ... an integer that the other operand's dtype does not hold
    │   └── ReadOnlyError            ... one of them is a view that cannot be written to
    ├── ConversionError            a recorded tensor where only plain data can go
    ├── ArgumentError              an option or setting that cannot be
    ├── StructureError             containers whose structures do not match
    ├── RegistryError              an unknown or doubly used name
    ├── BackendError               a backend cannot run an operation, or is unknown
    ├── DeviceMemoryError          an array that a graphics card has no memory for
    ├── FileError                  a damaged, later or hostile file
    ├── CommunicationError         messages between processes that do not match or were not sent
    ├── PartitionError             a function of one partition of the data failed
    ├── GuardError                 a guarded value is out of range, NaN or infinite
    │   └── NotFiniteError           ... the first one, found by wengert.debug(nan=True)
    └── CheckError                 a checker found a wrong derivative

A message says what was given, why it cannot be, and what to do, in that order, and ends with the
user's own file and line where one is known.  Each class also derives from the built-in exception
that a NumPy user would expect (ValueError, TypeError, ...), so that existing handlers keep working.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import linecache
import pickle
import sys
import traceback
from pathlib import Path
from types import FrameType

import numpy as np
from numpy.linalg import LinAlgError

FOLDER = str(Path(__file__).parent)  # of the package
_PACKAGES = Path(np.__file__).parents[1]
# A user's line is not in here, nor where NumPy, SciPy, pandas or a module of Python call us back.
_INSIDE = (
    FOLDER,
    str(_PACKAGES / "numpy"),
    str(_PACKAGES / "scipy"),
    str(_PACKAGES / "pandas"),
)
_PYTHON = str(Path(contextlib.__file__).parent)


class WengertError(Exception):
    """Base of every error that wengert raises on purpose."""


class DerivativeError(WengertError):
    """A derivative that cannot be taken."""


class NotScalarError(DerivativeError, ValueError):
    """A gradient was asked of something that is not one real number."""


class NotDifferentiableError(DerivativeError, TypeError):
    """An operation or an argument has no derivative."""


class UnconnectedError(DerivativeError, ValueError):
    """The output does not depend on a chosen input, and the caller asked for a warning."""


class UnconnectedWarning(UserWarning):
    """The output does not depend on a chosen input; its derivative is zero."""


class RuleError(DerivativeError, ValueError):
    """A derivative rule returned the wrong number of values, or a wrong shape or dtype."""


class MutatedError(DerivativeError, RuntimeError):
    """A plain array was overwritten between its use and the derivative."""


class ReleasedError(DerivativeError, RuntimeError):
    """The history was given back by ``backward(retain_graph=False)``."""


class GraphError(WengertError, ValueError):
    """A graph that is not a valid Wengert list."""


class CycleError(GraphError):
    """A node depends on itself."""


class MixedGraphError(GraphError):
    """Nodes of two different graphs met in one expression."""


class TraceError(GraphError, TypeError):
    """A value was needed while a graph is being built, where only shape and dtype are known."""


class TracedBranchError(TraceError):
    """A branch of the program was about to depend on a value or size that is not known yet."""


class PolicyError(GraphError, TypeError):
    """Something implicit (a broadcast, a cast) where the chosen policy forbids it."""


class BackendError(WengertError, NotImplementedError):
    """A backend cannot run an operation, or there is no backend of that name."""


class DeviceMemoryError(WengertError, MemoryError):
    """An array that a graphics card has no memory for."""


class FileError(WengertError, ValueError):
    """A file that is damaged, truncated, from a later version, or not what it says it is."""


class GuardError(WengertError, ArithmeticError):
    """A guarded value left its range, or is NaN or infinite."""


class ConvergenceError(WengertError, ArithmeticError):
    """The derivative of a solution that its solver has not found."""


class CommunicationError(WengertError, RuntimeError):
    """Messages between processes do not match, or could not be sent."""


class PartitionError(WengertError, RuntimeError):
    """A function of one partition of the data raised an error.

    Attributes
    ----------
    index : int
        The number of the partition, counted from 0.
    error : Exception or None
        The error that the function raised; None if it could not be sent from another process.
    """

    def __init__(self, message: str, index: int = -1, error: BaseException | None = None) -> None:
        super().__init__(message)
        self.index, self.error = index, error

    @classmethod
    def of(cls, error: Exception, index: int, count: int) -> PartitionError:
        """The error of partition `index` of `count`."""
        lines = traceback.extract_tb(error.__traceback__)
        own = [x for x in lines if not x.filename.startswith((*_INSIDE, _PYTHON))]
        text = f"partition {index} of {count}: {type(error).__name__}: {error}"
        if own and " (at " not in text:
            text += at(f"{own[-1].filename}:{own[-1].lineno}, in {own[-1].name}")
        return cls(text, index, error)

    def __reduce__(self) -> tuple[object, ...]:
        error = self.error
        try:  # an exception whose class takes other arguments cannot be unpickled
            pickle.loads(pickle.dumps(error))
        except Exception:
            error = None
        return PartitionError, (str(self), self.index, error)


class NotFiniteError(GuardError, FloatingPointError):
    """`wengert.debug` found the operation that made the first NaN or infinity."""


class OperandError(WengertError):
    """An operation refused its operands."""


class ShapeError(OperandError, ValueError):
    """Shapes that do not fit together."""


class DtypeError(OperandError, TypeError):
    """Dtypes that an operation cannot take."""


class MatrixError(OperandError, LinAlgError):
    """A matrix that has not what is needed: square, invertible, positive definite."""


class SingularError(MatrixError):
    """A matrix is singular, or so nearly that a solution would have no correct digits."""


class IntegerRangeError(OperandError, OverflowError, ValueError):
    """A Python integer that the dtype of the other operand cannot hold; a negative exponent."""


class ReadOnlyError(OperandError, ValueError):
    """A view that NumPy makes read-only was written to."""


class ConversionError(WengertError, TypeError):
    """A recorded tensor where only plain data can go; its history would be lost silently."""


class ArgumentError(WengertError, ValueError):
    """An option or setting outside what it can be: a negative rate, an unknown mode."""


class StructureError(WengertError, TypeError):
    """Nested containers whose structures do not match."""


class RegistryError(WengertError, LookupError):
    """A name that is not registered, or is registered already."""


class CheckError(WengertError, AssertionError):
    """A checker found a value or a derivative that is wrong."""


def user_frame() -> tuple[FrameType | None, int]:
    """The innermost frame that is the user's, and how many calls it is above the caller's."""
    frame: FrameType | None = sys._getframe(2)
    above = 1
    while frame is not None and is_inside(frame):
        frame, above = frame.f_back, above + 1
    return frame, above


def is_inside(frame: FrameType) -> bool:
    """Whether a call is one of ours, or of a library that calls us back, and not the user's."""
    inside = _is_inside_file(frame.f_code.co_filename)
    if inside is None:  # the methods that Python writes for a dataclass
        return str(frame.f_globals.get("__name__")).startswith("wengert.")
    return inside


@functools.lru_cache(maxsize=4096)
def _is_inside_file(name: str) -> bool | None:
    """Whether code of a file is ours, or a library's; None for generated code of any module."""
    if name == "<string>":
        return None
    if name.startswith(_PYTHON) and "-packages" not in name:
        return True
    return name.startswith(_INSIDE)


def user_line() -> str:
    """``file.py:12, in f``: the innermost frame that is the user's, or '' where there is none."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:  # as in `user_frame`; it is called for each node that is traced
        inside = _is_inside_file(frame.f_code.co_filename)
        if not inside and (inside is False or not is_inside(frame)):
            code = frame.f_code
            return f"{code.co_filename}:{frame.f_lineno}, in {code.co_name}"
        frame = frame.f_back
    return ""


def user_place() -> str:
    """``file.py:12:9, in f``: as `user_line`, with the column, for errors about source code."""
    frame, _ = user_frame()
    if frame is None:
        return ""
    column = _columns(frame)[0]
    shown = "" if column is None else f":{column + 1}"
    return f"{frame.f_code.co_filename}:{frame.f_lineno}{shown}, in {frame.f_code.co_name}"


def user_source() -> str:
    """The user's line with the expression that runs underlined, on new lines; '' if not known."""
    frame, _ = user_frame()
    if frame is None:
        return ""
    first, last = _columns(frame)
    line = linecache.getline(frame.f_code.co_filename, frame.f_lineno).rstrip()
    if first is None or not line:
        return ""
    end = len(line) if last is None else last
    indent = len(line) - len(line.lstrip())
    return f"\n    {line.lstrip()}\n    {' ' * (first - indent)}{'^' * max(end - first, 1)}"


def _columns(frame: FrameType) -> tuple[int | None, int | None]:
    """The columns of the expression that a frame runs, the last only if it is in the same line."""
    positions = itertools.islice(frame.f_code.co_positions(), frame.f_lasti // 2, None)
    line, last_line, first, last = next(positions, (None, None, None, None))
    text = linecache.getline(frame.f_code.co_filename, frame.f_lineno).encode()
    if line != frame.f_lineno or first is None or first > len(text):
        return None, None
    before = len(text[:first].decode(errors="replace"))
    if last is None or last_line != line:
        return before, None
    return before, len(text[:last].decode(errors="replace"))


def user_level() -> int:
    """The `stacklevel` with which a warning of the caller's names the user's line."""
    return user_frame()[1]


def at(where: str | None) -> str:
    """The closing words of a message: where in the user's file."""
    return f" (at {where})" if where else ""


def rule_failed(what: str, error: Exception, where: str | None) -> RuleError:
    """The error for an exception inside a user's rule."""
    return RuleError(
        f"{what} raised {type(error).__name__}: {error}. See the traceback above for the place in "
        f"the rule; it was needed for a derivative{at(where)}."
    )


__all__ = sorted(
    n for n, c in globals().items() if isinstance(c, type) and c.__module__ == __name__
)


def __dir__() -> list[str]:
    return [*__all__, "__all__", "__doc__", "__file__", "__name__"]
