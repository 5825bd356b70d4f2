"""Concretization: when a value may become a Python number or an array, where derivatives end.

If a function that is being differentiated converts a tensor that depends on its variables to a
Python number, the number is a constant, and its contribution to the derivative would silently be
lost.  So the variables of running functions are stored in a set, and conversions to plain values
(`float`, `item`, `tolist`, `numpy`, ...) test `is_differentiated`.  While no such function runs,
the set is empty and nothing is searched: a tensor that only requires a gradient can be converted,
as in PyTorch, to be printed, stored or compared.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from wengert.errors import ConversionError, at, user_line

from . import recording
from .node import Node
from .replaced_errors import Refusals, hidden

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
