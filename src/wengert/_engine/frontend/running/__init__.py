"""The functions that rewritten code calls.

Each of them behaves as Python does if the values that decide are known, and adds a node to the
graph if they are traced.

loops.py            ``for`` and ``while``; whether a block can use traced values
builtin_operations.py ``and``, ``or``, ``not`` and chained comparisons; sum, any, all, min and max
                      of traced arrays, as loops; sorted, and min and max with keys, of traced
                      numbers; what is known about a loop before it is traced
loop_tracer.py      traces the body of a loop until its carry is complete
loop_node.py        adds the node of a loop
iterables.py        range, zip, enumerate and reversed, with items by index; np.ndenumerate and
                    np.nditer
list_appends.py     what loops and branches append to lists; what the iterations of a loop append,
                    as outputs of its node
chosen_elements.py  elements of lists and dicts at indices and keys that are not known
object_changes.py   statements and calls that change Python objects
filled_lists.py     lists whose length is not known
branches.py         ``if`` and conditional expressions
block_tracing.py    traces a loop body or branch separately from its function; stores to elements in
                    a branch, moved behind it
stacked_lists.py    lists of equal elements at indices that are not known
shared_memory.py    arrays from outside that branches bind variables to; views that a block has
                    made, made again after it
loop_memory.py      the same for loops
appended_arrays.py  the same for elements of lists that loops fill
calls.py            calls and assertions; try statements, which catch no refusals; strings made of
                    traced values

values.py           the numeric leaves of variables, and common specs
"""

from __future__ import annotations

from typing import Any

from wengert._engine.core.runtime_checks import handling

from .. import namespaces
from . import (
    branches,
    builtin_operations,
    calls,
    chosen_elements,
    list_appends,
    loops,
    object_changes,
    values,
)

RUNTIME: dict[str, Any] = {
    "__wg_buffer__": namespaces.buffer_of,
    "__wg_for__": loops.for_,
    "__wg_while__": loops.while_,
    "__wg_if__": branches.if_,
    "__wg_if_expression__": branches.if_expression,
    "__wg_and__": builtin_operations.and_,
    "__wg_or__": builtin_operations.or_,
    "__wg_not__": builtin_operations.not_,
    "__wg_contained__": builtin_operations.contained,
    "__wg_chain__": builtin_operations.chain,
    "__wg_append__": list_appends.append_,
    "__wg_consumed__": calls.consumed,
    "__wg_callee__": calls.callee,
    "__wg_formatted__": calls.formatted,
    "__wg_before_load__": chosen_elements.before_load,
    "__wg_before_array_load__": chosen_elements.before_array_load,
    "__wg_store_global__": object_changes.store_global,
    "__wg_before_store__": object_changes.before_store,
    "__wg_before_augmented__": object_changes.before_augmented,
    "__wg_new_container__": object_changes.new_container,
    "__wg_new_variables__": object_changes.new_variables,
    "__wg_assert__": calls.assert_,
    "__wg_bound__": values.bound,
    "__wg_refused__": calls.refused,
    "__wg_handling__": handling,
}
