"""Concretization: when a value may become a Python number or an array, where derivatives end.

While a function that is being differentiated runs, a number taken out of a tensor that depends on
its variables would be used as a constant, and its part of the derivative would silently be zero.
So the variables of a running function are in a set, and conversions to plain values (`float`,
`item`, `tolist`, `numpy`, ...) test `is_differentiated`.  While no such function runs, the set is
empty and nothing is searched: a tensor that only requires a gradient can be converted, as in
PyTorch, to be printed, stored or compared.
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
    """Run a function in which values that depend on these nodes may not become plain."""
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
    """Whether a function runs, in any thread, that is being differentiated."""
    return bool(_VARIABLES)


def is_differentiated(node: Node) -> bool:
    """Whether a node depends on a variable of a function that is being differentiated."""
    if not _VARIABLES or type(node) is not Node or not recording.is_recording():
        return False
    targets = _VARIABLES.copy()
    oldest = min(n.serial for n in targets)
    seen, stack = {node}, [node]
    while stack:
        current = stack.pop()
        if current in targets:
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
        Returns the remedy, or an empty text for the default.

    Raises
    ------
    ConversionError
        The node depends on a variable of a function that is being differentiated.
    """
    if _VARIABLES and is_differentiated(node):
        instead = "" if remedy is None else remedy()
        raise ConversionError(
            f"{what} of a tensor that is being differentiated: the result would be a constant, "
            "and its part of the derivative silently zero. "
            + (
                instead
                or "Use functions of numpy instead of math (np.exp, not math.exp); if it was to go "
                "into a plain array, make that a tensor first, np.zeros(n, like=x)"
            )
            + "; detach values that are only shown or stored, x.detach().item() or "
            "wengert.stop_gradient(x), or return it beside the result (has_aux=True)"
            f"{at(user_line())}."
        )
