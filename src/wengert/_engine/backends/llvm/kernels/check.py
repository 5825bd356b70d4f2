"""Checks: a value is copied, and the kernel fails if a condition does not hold everywhere.

    accepted    one pass over the condition, one over the value

The interpreter then runs the graph, and the operation that rejects the value raises its error.
"""

from __future__ import annotations

from .kernel_call import KernelCall, kernel
from .loop_helpers import copy, nest, place


@kernel("accepted", strided=True)
def accepted(call: KernelCall) -> None:
    """x, if all of `holds` is true."""
    (x, holds), (y,) = call.operands, call.results
    s = call.section
    with nest(s, [call.number(n) for n in holds.shape]) as (t, at):
        value = t.value(f"load i8, ptr {place(call, t, holds, at)}")
        call.fail_if(t.value(f"icmp eq i8 {value}, 0"), 1, t)
    copy(call, s, y, x)
