"""Concretization: when a value may become a Python number or an array, where derivatives end.

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
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from wengert.errors import ConversionError, TraceError, at, user_line

from . import recording
from .node import INPUT, Node
from .replaced_errors import Refusals, hidden
from .spec import Spec

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
