"""Static integers: a function that is traced again with its integer arguments as constants.

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
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from wengert.errors import TraceError

from .node import INPUT, Node
from .spec import Spec


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
