"""Checks: a value is copied, and the kernel fails if a condition does not hold everywhere.

    accepted    one pass over the condition, one over the value

The interpreter then runs the graph, and the operation that rejects the value raises its error.
"""

from __future__ import annotations

from .kernel_call import KernelCall, kernel
from .loop_helpers import address, copy, nest


@kernel("accepted", strided=True)
def accepted(call: KernelCall) -> None:
    """x, if all of `holds` is true."""
    (x, holds), (y,) = call.operands, call.results
    s = call.section
    with nest(s, [call.number(n) for n in holds.shape]) as (t, index):
        flag = t.value(f"load i8, ptr {address(call, t, holds, index)}")
        call.fail_if(t.value(f"icmp eq i8 {flag}, 0"), 1, t)
    copy(call, s, y, x)
