"""Messages that have been started: their requests, their progress, and waiting for them at the end.

An MPI library moves large messages only while one of its functions runs, so it is called after each
stage that is computed meanwhile.  A program that fails between the start of a message and its wait
waits for it before it frees the memory that is sent and received.  The other process has started
its message too, as without overlap.

    PendingMessages    the messages of one function
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..ir.ir_builder import Function, Section
from ..kernels import KernelCalls, contiguous
from ..lowering.loop_ir import Expr
from ..lowering.registry import REQUESTS, is_start, is_wait, requests_of
from ..schedule.fusion import FusedLoops
from ..schedule.scheduling import Schedule


class PendingMessages:
    """The messages between two processes of one function.

    Attributes
    ----------
    slots : dict from Expr to str
        The address of the requests of each message; nothing else uses this memory.
    """

    def __init__(
        self,
        calls: KernelCalls,
        plan: Schedule,
        parts: Mapping[Expr, Sequence[Expr]],
        function: Function,
        head: Section,
    ) -> None:
        self._calls, self._parts = calls, parts
        self.slots: dict[Expr, str] = {}
        self._pending: dict[Expr, None] = {}
        for stage in plan.stages:
            if is_start(stage):
                assert isinstance(stage, Expr)
                slot = function.slot("[3 x i64]", 8)
                flags = head.value(f"getelementptr i64, ptr {slot}, i64 2")
                head.write(f"store i64 0, ptr {flags}")  # none is pending
                self.slots[requests_of(parts[stage])] = slot

    def after(self, body: Section, stage: FusedLoops | Expr) -> None:
        """Emit what follows a stage: messages that are pending make progress."""
        if isinstance(stage, FusedLoops):
            self._progress(body)
        elif is_start(stage):
            self._pending[requests_of(self._parts[stage])] = None
        elif is_wait(stage):
            del self._pending[stage.operands[1]]
        else:
            self._progress(body)

    def _progress(self, body: Section) -> None:
        if self._pending:
            self._call("mpi.progress", body, next(reversed(self._pending)))

    def complete(self, body: Section) -> None:
        """Emit the end of the function: it waits for messages that are still pending."""
        for requests, slot in self.slots.items():
            flags = body.value(f"getelementptr i64, ptr {slot}, i64 2")
            flags = body.value(f"load i64, ptr {flags}")
            with body.when(body.value(f"icmp ne i64 {flags}, 0")) as inner:
                self._call("mpi.complete", inner, requests)

    def _call(self, name: str, section: Section, requests: Expr) -> None:
        array = contiguous(self.slots[requests], REQUESTS.shape, REQUESTS.dtype)
        comm = requests.operands[0].node.params["comm"]
        self._calls.write(section, name, {"comm": comm}, [array], [], str)
