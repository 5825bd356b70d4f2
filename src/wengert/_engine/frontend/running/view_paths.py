"""How a view that a block has made is taken of an array from before the block.

    if c: row = A[k[i]]      # after the branch, a write to row is one to A[k[i]] where c holds
    else: row = A[j]

The view is made again after the block, for which the integers that its indices need are results of
the block.  Where the block was not run they are 0, so that no index is out of bounds.

ViewPath    a view of an array from before a block
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from wengert._engine.core.handle import Handle, Put, Take, link, wrap
from wengert._engine.core.node import CONSTANT, Node
from wengert._engine.core.tracing import SIZE


class _ViewStep(NamedTuple):
    """One view of another.

    Attributes
    ----------
    take, put : callable
        As in `link`.
    node : Node or None
        The node of the view, if its operands are replaced.
    """

    take: Take
    put: Put | None
    node: Node | None

    def view(self, base: Handle, operands: Iterator[Any]) -> Handle:
        """The view of another array, linked to it."""
        view: Handle
        if self.node is None:
            view = self.take(base)
            link(view, base, self.take, self.put, shares=True)
            return view
        others = [
            next(operands) if _is_computed(x) else wrap(x) if isinstance(x, Node) else x
            for x in self.node.args[1:]
        ]
        view = self.node.op(base, *others, **self.node.params)
        return view


class ViewPath:
    """How a view is taken of an array from before a block.

    Parameters
    ----------
    base : Handle
        The array.
    steps : sequence of _ViewStep
    """

    def __init__(self, base: Handle, steps: Sequence[_ViewStep]) -> None:
        self.base = base
        self._steps = steps
        self.operands: list[Node] = [
            x
            for step in steps
            if step.node is not None
            for x in step.node.args[1:]
            if _is_computed(x)
        ]

    @staticmethod
    def of(view: Handle, since: int) -> ViewPath | None:
        """The path of a view; None if it is not known, or another array is its base.

        Parameters
        ----------
        view : Handle
        since : int
            The serial number of the first node of the block.
        """
        if view.node.serial < since:
            return ViewPath(view, ())
        shared = getattr(view, "_link", None)
        if shared is None:
            return None
        base, take, put = shared
        path = ViewPath.of(base, since)
        node = view.node
        if path is None:
            return None
        computed = [x for x in node.args[1:] if _is_computed(x)]
        if computed:
            is_view = getattr(node.op, "aliasing", None) is not None and node.op.aliasing.view
            is_known = put is not None and is_view and node.args[0].spec == base.node.spec
            if not is_known or 0 in base.node.spec.shape:
                return None
            if any(x.spec.shape or x.spec.dtype.kind not in "iu" for x in computed):
                return None
        step = _ViewStep(take, put, node if computed else None)
        return ViewPath(path.base, (*path._steps, step))

    def view(self, operands: Sequence[Any]) -> Handle:
        """The view, with the values of its `operands`."""
        remaining = iter(operands)
        view = self.base
        for step in self._steps:
            view = step.view(view, remaining)
        return view


def _is_computed(operand: object) -> bool:
    """Whether an operand is not a constant."""
    return isinstance(operand, Node) and operand.op is not CONSTANT and operand.op is not SIZE
