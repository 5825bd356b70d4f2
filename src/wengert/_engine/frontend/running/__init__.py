"""The functions called by rewritten code; each decides by the values of its arguments.

loops.py       for, while
loop_tracer.py a loop as a node of the graph
loop_node.py   the node of a traced loop
loop_facts.py  what is known about a loop before it is traced
branches.py    if, and conditional expressions
branch_stores.py   elements that a branch assigns, stored after it
booleans.py    and, or, not, chained comparisons
calls.py       calls, assertions
list_appends.py     what trips append to lists
builtin_loops.py   sum, any, all, min and max of traced arrays, as loops
iterables.py   range, zip, enumerate, reversed: items by number
block_tracing.py      a part of a function traced separately
object_changes.py   statements and calls that change Python objects
values.py      which parts of values become results of nodes
reachability.py       whether a part uses traced values
"""

from __future__ import annotations

from typing import Any

from . import booleans, branches, calls, list_appends, loops, object_changes, values

RUNTIME: dict[str, Any] = {
    "__wg_for__": loops.for_,
    "__wg_while__": loops.while_,
    "__wg_if__": branches.if_,
    "__wg_if_expression__": branches.if_expression,
    "__wg_and__": booleans.and_,
    "__wg_or__": booleans.or_,
    "__wg_not__": booleans.not_,
    "__wg_chain__": booleans.chain,
    "__wg_append__": list_appends.append_,
    "__wg_consumed__": calls.consumed,
    "__wg_callee__": calls.callee,
    "__wg_before_store__": object_changes.before_store,
    "__wg_before_augmented__": object_changes.before_augmented,
    "__wg_new_container__": object_changes.new_container,
    "__wg_new_variables__": object_changes.new_variables,
    "__wg_assert__": calls.assert_,
    "__wg_bound__": values.bound,
}
