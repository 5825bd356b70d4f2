"""Implicit conversions: which are allowed, and where a value may become a Python number.

Policy: which implicit conversions are allowed while a graph is built.

    with wg.policy(broadcast="raise", cast="warn", max_float="float32"):
        graph = wg.trace(f)(...)

Each of `broadcast` and `cast` is "quiet" (as in NumPy, the default), "warn" or "raise".  If a
maximal width of floats or integers is given, wider results are cast down.

Concretization: when a value may become a Python number or an array, where derivatives end.

If a function that is being differentiated converts a tensor that depends on its variables to a
Python number, the number is a constant, and its contribution to the derivative would silently be
lost.  So the variables of running functions are stored in a set, and conversions to plain values
(`float`, `item`, `tolist`, `numpy`, ...) test `is_differentiated`.  While no such function runs,
the set is empty and nothing is searched: a tensor that only requires a gradient can be converted,
as in PyTorch, to be printed, stored or compared.

Static integers: a function that is traced again with its integer arguments as constants.

Two slices of a loop, ``u[0:n - 2]`` and ``u[1:n - 1]``, may have different lengths where they are
clipped to the array, if `n` is an input of the graph; then whole axes are computed, with masks.
With the value of `n` the lengths are known, and a loop computes what it needs only.  So a compiled
function asks for the values of its integers before masks are used.

    may_be_wanted      a block in which the values may be asked for
    want               ask for them, if lengths depend on them
    IntegersWanted     raised to ask for them
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from wengert.errors import (
    ArgumentError,
    ConversionError,
    PolicyError,
    TraceError,
    at,
    user_level,
    user_line,
)

from . import recording
from .node import INPUT, Node
from .recording import paused
from .replaced_errors import Refusals, hidden
from .spec import Spec
from .thread_state import Blocks, Openings, ScopedValue

CHOICES = ("quiet", "warn", "raise")


class PolicyWarning(UserWarning):
    """An implicit conversion under a policy of "warn"."""


@dataclass(frozen=True)
class Policy:
    """The options of `policy`."""

    broadcast: str = "quiet"
    cast: str = "quiet"
    independent: str | None = None
    max_float: np.dtype[Any] | None = None
    max_int: np.dtype[Any] | None = None

    def cap(self, dtype: np.dtype[Any]) -> np.dtype[Any]:
        """The dtype, or the widest of its kind that is allowed."""
        if dtype.kind == "f" and self.max_float is not None:
            return min(dtype, self.max_float, key=lambda d: d.itemsize)
        if dtype.kind == "c" and self.max_float is not None:
            widest = np.result_type(self.max_float, np.complex64)
            return min(dtype, widest, key=lambda d: d.itemsize)
        if dtype.kind in "iu" and self.max_int is not None:
            widest = np.dtype(f"{dtype.kind}{self.max_int.itemsize}")
            return min(dtype, widest, key=lambda d: d.itemsize)
        return dtype

    def capped(self, handle: Any) -> Any:
        """A handle, cast down if its dtype is wider than allowed."""
        spec = handle.node.spec
        narrow = self.cap(spec.dtype)
        return handle if narrow == spec.dtype else handle.astype(narrow)


_chosen: Blocks[Policy | None] = Blocks("wengert_policy", None)
chosen: Callable[[], Policy | None] = _chosen.get


gate = Openings(cell=np.zeros(1, np.int64))  # native entry points read the cell


@contextmanager
def gated() -> Iterator[None]:
    """A block in which native entry points call Python instead of their compiled program."""
    opening = gate.begin()
    try:
        yield
    finally:
        gate.end(opening)


@contextmanager
def policy(
    *,
    broadcast: str = "quiet",
    cast: str = "quiet",
    independent: str | None = None,
    max_float: str | None = None,
    max_int: str | None = None,
) -> Iterator[Policy]:
    """A block in which graphs are built under rules stricter than NumPy's.

    Parameters
    ----------
    broadcast : {"quiet", "warn", "raise"}
        Operands of different shapes, neither of them a single number.
    cast : {"quiet", "warn", "raise"}
        Operands of different dtypes; Python numbers, whose dtype is weak, are ignored.
    independent : {"zero", "warn", "raise"}, optional
        A derivative with respect to a value that the output does not depend on, unless specified
        by ``grad`` (``unconnected=``).
    max_float, max_int : dtype, optional
        The widest allowed; wider results are cast down.

    Raises
    ------
    ArgumentError
        An unknown option, or a maximal width that is not a float or an integer dtype.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> with wg.policy(max_float="float32"):
    ...     graph = wg.trace(np.sin)(wg.spec((3,), "float32"))
    >>> graph.outputs[0].spec.dtype
    dtype('float32')
    """
    for name, value, allowed in [
        ("broadcast", broadcast, CHOICES),
        ("cast", cast, CHOICES),
        ("independent", independent, (None, "zero", "quiet", "warn", "raise")),
    ]:
        if not (value is None or isinstance(value, str)) or value not in allowed:
            raise ArgumentError(f"{name}={value!r} is not one of {allowed}{at(user_line())}.")
    chosen_policy = Policy(
        broadcast,
        cast,
        "zero" if independent == "quiet" else independent,
        _cap(max_float, "f", "max_float"),
        _cap(max_int, "iu", "max_int"),
    )
    block: ScopedValue[Policy | None] = ScopedValue(chosen_policy)
    with paused(), gated():
        try:
            _chosen.open(block)
            yield chosen_policy
        finally:
            block.end(True)
            _chosen.forget()


def _cap(dtype: str | None, kinds: str, name: str) -> np.dtype[Any] | None:
    if dtype is None:
        return None
    try:
        result: np.dtype[Any] = np.dtype(dtype)
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"{name}={dtype!r} is not a dtype{at(user_line())}.") from error
    if result.kind not in kinds:
        kind = "a floating-point" if kinds == "f" else "an integer"
        raise ArgumentError(f"{name}={dtype!r} is not {kind} dtype{at(user_line())}.")
    return result


def check_cast(rules: Policy, op: Any, specs: Sequence[Any], out: Spec) -> None:
    """Warn or raise for implicit conversions in one operation."""
    if not isinstance(out, Spec) or not op.promotes:
        return
    operands = [s for s in specs if isinstance(s, Spec)]
    if rules.broadcast != "quiet" and op.kind == "elementwise":
        shapes = {s.shape for s in operands if s.shape != ()}
        if len(shapes) > 1:
            _complain(rules.broadcast, op, operands, "are broadcast", "np.broadcast_to")
    if rules.cast != "quiet":
        selectors = range(len(operands))[op.selectors]
        dtypes = {s.dtype for k, s in enumerate(operands) if k not in selectors and not s.weak}
        if len(dtypes) > 1:
            _complain(rules.cast, op, operands, "are cast", "astype")


def _complain(choice: str, op: Any, specs: Sequence[Any], what: str, remedy: str) -> None:
    message = (
        f"{op.name} of {' and '.join(map(str, specs))}: the operands {what} implicitly. Do it "
        f"explicitly with {remedy}, or relax the policy{at(user_line())}."
    )
    if choice == "raise":
        raise PolicyError(message)
    warnings.warn(message, PolicyWarning, stacklevel=user_level())


_VARIABLES: set[Node] = set()  # of all threads: no tensor depends on variables of another thread


def with_variables(variables: Sequence[Node], fun: Callable[[], Any]) -> Any:
    """Run a function in which values that depend on these nodes cannot become plain values."""
    try:
        _VARIABLES.update(variables)
        return fun()
    except Exception as error:
        ours = hidden(error)
        if ours is None:
            raise
        raise ours from None
    finally:
        _VARIABLES.difference_update(variables)
        Refusals.forget()


def is_differentiating() -> bool:
    """Whether a function that is being differentiated runs in any thread."""
    return bool(_VARIABLES)


def is_differentiated(node: Node) -> bool:
    """Whether a node depends on a variable of a function that is being differentiated."""
    if not _VARIABLES or type(node) is not Node or not recording.is_recording():
        return False
    variables = _VARIABLES.copy()
    oldest = min(n.serial for n in variables)
    seen, stack = {node}, [node]
    while stack:
        current = stack.pop()
        if current in variables:
            return True
        for a in current.args:
            if type(a) is Node and a.serial >= oldest and a not in seen:
                seen.add(a)
                stack.append(a)
    return False


def refuse_differentiated(node: Node, what: str, remedy: Callable[[], str] | None = None) -> None:
    """Raise if converting a node to a plain value would silently lose a derivative.

    Parameters
    ----------
    node : Node
    what : str
        The conversion, for the message.
    remedy : callable, optional
        Returns the remedy for the message, or an empty string for the default.

    Raises
    ------
    ConversionError
        The node depends on a variable of a function that is being differentiated.
    """
    if _VARIABLES and is_differentiated(node):
        advice = "" if remedy is None else remedy()
        raise ConversionError(
            f"{what} of a tensor that is being differentiated: the result would be a constant, "
            "and its contribution to the derivative would silently be lost. "
            + (
                advice
                or "Use functions of numpy instead of math (np.exp, not math.exp); to store it in "
                "an array, create that array as a tensor, np.zeros(n, like=x)"
            )
            + "; detach values that are only shown or stored, x.detach().item() or "
            "wengert.stop_gradient(x), or return them beside the result (has_aux=True)"
            f"{at(user_line())}."
        )


class IntegersWanted(TraceError):
    """The values of the integer arguments are wanted, since lengths depend on them."""


class _State(threading.local):
    is_open = False


_state = _State()


@contextmanager
def may_be_wanted(is_open: bool) -> Iterator[None]:
    """A block in which the values of integer arguments may be asked for."""
    outer, _state.is_open = _state.is_open, is_open
    try:
        yield
    finally:
        _state.is_open = outer


def want(lengths: Iterable[Node]) -> None:
    """Ask for the values of integer arguments if some lengths are computed from them.

    Raises
    ------
    IntegersWanted
        They are, and `may_be_wanted` is open.
    """
    if not _state.is_open:
        return
    pending = list(lengths)
    seen = set(pending)
    while pending:
        node = pending.pop()
        if _is_argument(node):
            raise IntegersWanted(
                "the lengths of two slices are not known to be equal without the value of "
                f"{node.name}"
            )
        new = [a for a in node.inputs if a not in seen]
        seen.update(new)
        pending += new


def _is_argument(node: Node) -> bool:
    """Whether a node is a Python integer that was passed to the function."""
    spec = node.spec
    is_integer = type(spec) is Spec and spec.weak and spec.dtype.kind == "i"
    return node.op is INPUT and is_integer and bool(node.name)
