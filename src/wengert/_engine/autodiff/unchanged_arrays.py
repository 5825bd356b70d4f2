"""Plain arrays that a backward pass compares with their fingerprints (core/node.py: Watched).

A matrix that is used in several products is compared once, if nothing but rules of this package
runs in between: no hooks, no rules and no elementwise functions of users.

    UnchangedArrays    the arrays that a pass has compared
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from wengert._engine.core.node import LeafOp, Node, Watched

from .tape import VARIABLE

_PACKAGE = "wengert._engine."


class UnchangedArrays:
    """The arrays that a backward pass has compared.

    Parameters
    ----------
    nodes : sequence of Node
        The tape of the pass.
    """

    __slots__ = ("_taken",)

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._taken: dict[tuple[int, bool], Hashable] | None = (
            {} if all(map(_is_ours, nodes)) else None
        )

    def values(self, args: Sequence[Any]) -> list[Any]:
        """The values of operands.

        Raises
        ------
        MutatedError
            A plain array was overwritten after a recorded operation used it.
        """
        return [self._unchanged(a) if type(a) is Watched else _value(a) for a in args]

    def _unchanged(self, a: Watched) -> Any:
        if self._taken is None:
            return a.value
        key = id(a.array), a.is_native  # the array is alive as long as the tape
        if key not in self._taken:
            self._taken[key] = a.present_fingerprint()
        a.check(self._taken[key])
        return a.array


def _value(a: Any) -> Any:
    return a.value if isinstance(a, Node) else a


def _is_ours(node: Node) -> bool:
    """Whether only code of this package runs when a node is visited."""
    op = node.op
    if node.info is not None and node.info.hooks is not None:
        return False
    if isinstance(op, LeafOp) or op is VARIABLE:
        return True
    if op.kind == "elementwise":
        return bool(op.is_built_in)
    if not type(op).__module__.startswith(_PACKAGE):
        return False
    if op.kind == "contraction":
        return True
    return op.kind == "reduction" and str(op.partial_module).startswith(_PACKAGE)
