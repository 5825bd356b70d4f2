"""What the iterations of a loop append to lists, as outputs of its node.

The loop stacks the values.  If the number of iterations is not known, it carries arrays in which
each iteration stores its values, and whether there is one.

LoopAppends    the values that the iterations of a loop append to lists
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wengert._engine.control_flow.closure_conversion import output
from wengert._engine.core.handle import describe, wrap
from wengert._engine.core.node import Node
from wengert._engine.core.op import lookup
from wengert._engine.core.spec import Spec
from wengert._engine.core.tracing import placeholder
from wengert._engine.core.uniform_arrays import zeros
from wengert._engine.ops.indexing.template import IndexSlot

from ..state import SharedVariables
from .iterables import Items, size_or_value
from .list_appends import Collecting, MaskedRows, Rows
from .loop_node import strongly_typed


class LoopAppends(Collecting):
    """The values that the iterations of a loop append to lists.

    Parameters
    ----------
    lists : list of list
    items : Items or None
        The items of a ``for`` loop.
    stops : bool
        Whether the loop may end early.
    variables : SharedVariables
        Those that refer to lists.
    """

    def __init__(
        self, lists: Sequence[Any], items: Items | None, stops: bool, variables: SharedVariables
    ) -> None:
        length = None if items is None else items.length
        has_length = type(length) is int
        self._items, self._variables = items, variables
        self._capacity: Any = length if has_length else None if items is None else items.limit
        self._is_buffered = stops or not has_length
        self._rows: list[Rows | MaskedRows] = []
        self._first = 0
        unknown = (
            "it appends to a list, and the maximum of its length is not known. Use a for loop over "
            "a range of the greatest length, with a break"
        )
        super().__init__(lists, None if self._capacity is not None else unknown)

    def add_outputs(
        self, outputs: list[Node], inputs: list[Node], start: list[Any], counter: Node
    ) -> None:
        """Add the values to the outputs of the body, and the arrays to the carry."""
        self._rows = self.rows(self._is_buffered)
        self._first = len(start)
        leaves = [strongly_typed(x) for r in self._rows for x in r.numeric_leaves]
        if not self._is_buffered or not leaves:
            outputs += [output(x, "loop") for x in leaves]
            return
        assert self._items is not None
        position = (wrap(counter) - size_or_value(self._items.start)) // self._items.step
        for leaf in leaves:
            spec = describe(leaf)
            shape = (self._capacity, *spec.shape)
            inputs.append(placeholder(Spec(shape, spec.dtype)))
            start.append(zeros(Spec(shape, spec.dtype)))
            stored = lookup("setitem")(wrap(inputs[-1]), leaf, position, index=IndexSlot(0))
            outputs.append(stored.node)

    def finish(self, outs: Sequence[Any]) -> None:
        """Append the values to the lists, from the results of the loop."""
        stacked = iter(outs[self._first :])
        for r in self._rows:
            results = [next(stacked) for _ in r.numeric_leaves]
            r.finish(results, self._capacity, self._variables)
