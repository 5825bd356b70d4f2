"""Messages that have been started: their requests, and waiting for them when a run ends early.

A program that fails between the start of a message and its wait waits for it before it frees the
memory that is sent and received.  The other process has started its message too, as without
overlap.

    request_slots    memory for the requests of each message, which nothing else uses
    complete         wait for all messages that are pending
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..ir.ir_builder import Function, Section
from ..kernels import KernelCalls, contiguous
from ..lowering.loop_ir import Expr
from ..lowering.split_messages import REQUESTS, is_start, requests_of
from ..schedule.scheduling import Schedule


def request_slots(
    plan: Schedule, parts: Mapping[Expr, Sequence[Expr]], function: Function, head: Section
) -> dict[Expr, str]:
    """The address of the requests of each message; none is pending at the beginning."""
    found = {}
    for stage in plan.stages:
        if is_start(stage):
            assert isinstance(stage, Expr)
            slot = found[requests_of(parts[stage])] = function.slot("[3 x i64]", 8)
            head.write(f"store i64 0, ptr {head.value(f'getelementptr i64, ptr {slot}, i64 2')}")
    return found


def complete(calls: KernelCalls, body: Section, requests: Mapping[Expr, str]) -> None:
    """Wait for messages that are pending; at the end of a function."""
    for expr, pointer in requests.items():
        place = body.value(f"getelementptr i64, ptr {pointer}, i64 2")
        flags = body.value(f"load i64, ptr {place}")
        with body.when(body.value(f"icmp ne i64 {flags}, 0")) as inner:
            array = contiguous(pointer, REQUESTS.shape, REQUESTS.dtype)
            comm = expr.operands[0].node.params["comm"]
            calls.write(inner, "mpi.complete", {"comm": comm}, [array], [], str)
