"""Batch loops: the stages of a loop over a batch, called for one item after the other.

The loop is one function, `void @batch0(ptr %frame, i64 %start, i64 %stop, i64 %part)`: the frame
contains a status and the addresses of arrays, the loop runs from start to stop.  It calls the loop
nests and kernels that would otherwise run for the whole batch: nests for a range of their outermost
loop, kernels for a batch of one.  Threads take parts of the batch.

An array of which the loop needs one item at a time is in the memory of the first item of the part.
Nests address it as that of the current item: the address in their table is moved by as many items.

    BatchLoopCalls    the function, and its call
    local_arrays      the arrays of which a loop needs one item at a time
    suits             whether a nest computes one item in a range of its outermost loop
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from ..ir.index_analysis import is_one
from ..ir.ir_builder import Function, Section, word
from ..kernels import ArrayPointer, contiguous
from ..kernels.gemm.choose import parallel_grain
from ..kernels.loop_helpers import offset
from ..lowering.loop_ir import Expr, strided_view
from ..schedule.batch_loops import BatchLoop
from ..schedule.fusion import FusedLoops, roots_of
from ..schedule.scheduling import Schedule, is_strided, owner_of
from .function import FunctionCodegen
from .nest_calls import EmittedNest


class BatchLoopCalls:
    """The function of a batch loop.

    Parameters
    ----------
    routine : FunctionCodegen
        The function that calls it.
    loop : BatchLoop
    stages : sequence of (stage, nest)
        In order; the nest is None for a call of a kernel.
    results : mapping from Expr to Expr
        The result of each call of a kernel.
    title : str
    """

    def __init__(
        self,
        routine: FunctionCodegen,
        loop: BatchLoop,
        stages: Sequence[tuple[FusedLoops | Expr, EmittedNest | None]],
        results: dict[Expr, Expr],
        title: str,
    ) -> None:
        self.routine, self.loop, self.title = routine, loop, title
        self.may_fail = False
        self._results = results
        self._local = local_arrays(routine.plan, loop)
        self._arrays: dict[Expr, str] = {}  # whose addresses are in the frame, and their values
        arguments = [("ptr", "frame"), ("i64", "start"), ("i64", "stop"), ("i64", "part")]
        self._function = Function(routine.module, title, arguments, "void", "nounwind #1")
        body = self._function.body
        self._head = body.inside()
        tables = [None if nest is None else self._table(nest) for _, nest in stages]
        with body.loop("%start", "%stop") as (inner, k):
            for (stage, nest), table in zip(stages, tables, strict=True):
                if nest is None:
                    assert isinstance(stage, Expr)
                    self._call(inner, stage, k)
                else:
                    assert table is not None
                    self._run(inner, nest, table, k)
        body.block("leave")
        body.write("ret void")
        routine.module.add(self._function)

    def write(self, section: Section) -> str:
        """Emit the call; returns the address of the frame, which begins with a status."""
        routine = self.routine
        frame = routine.function.slot(f"[{len(self._arrays) + 1} x i64]", 8)
        section.write(f"store i64 0, ptr {frame}")
        for k, x in enumerate(self._arrays, 1):
            section.write(f"store ptr {routine.pointer(x)}, ptr {word(section, frame, k)}")
        length = self.loop.length
        if routine.threads == 1:
            section.write(f"call void @{self.title}(ptr {frame}, i64 0, i64 {length}, i64 0)")
            return frame
        kinds = ["ptr", "ptr", "i64", "i64", "i64", "i64"]
        parallel = routine.runtime("wengert_parallel", "void", kinds)
        grain = parallel_grain([length], self.loop.flops) or length
        threads = str(routine.threads or "")
        if not threads:
            getter = routine.runtime("wengert_get_threads", "i64", [])
            threads = section.value(f"call i64 {getter}()")
        span = f"i64 0, i64 {length}, i64 {grain}, i64 {threads}"
        section.write(f"call void {parallel}(ptr @{self.title}, ptr {frame}, {span})")
        return frame

    # ---- the function ----------------------------------------------------------------------------

    def _base(self, x: Expr) -> str:
        """The address of an array, or of the item of it that is in memory."""
        found = self._arrays.get(x)
        if found is None:
            place = word(self._head, "%frame", len(self._arrays) + 1)
            found = self._head.value(f"load ptr, ptr {place}")
            if x in self._local:
                skipped = self._head.times("%start", str(row_bytes(x)))
                found = self._head.value(f"getelementptr i8, ptr {found}, i64 {skipped}")
            self._arrays[x] = found
        return found

    def _table(self, nest: EmittedNest) -> str:
        """The table of a nest, with the addresses that are the same for all items."""
        table = self._function.slot(f"[{len(nest.table) + 1} x i64]", 8)
        self._head.write(f"store i64 0, ptr {table}")
        for k, entry in enumerate(nest.table, 1):
            x, shift = entry if isinstance(entry, tuple) else (entry, 0)
            address = offset(self._head, self._base(x), str(shift), x.dtype)
            if x not in self._local:
                self._head.write(f"store ptr {address}, ptr {word(self._head, table, k)}")
        return table

    def _run(self, s: Section, nest: EmittedNest, table: str, k: str) -> None:
        """Call a nest for item k."""
        for place, entry in enumerate(nest.table, 1):
            x, shift = entry if isinstance(entry, tuple) else (entry, 0)
            if x in self._local:
                back = s.minus("0", s.times(k, str(row_bytes(x))))
                address = s.value(f"getelementptr i8, ptr {self._base(x)}, i64 {back}")
                address = offset(s, address, str(shift), x.dtype)
                s.write(f"store ptr {address}, ptr {word(s, table, place)}")
        steps = steps_of_item(nest, self.loop.length)
        low = s.times(k, str(steps))
        high = s.plus(low, str(steps))
        s.write(f"call void @{nest.name}(ptr {table}, i64 {low}, i64 {high}, i64 0)")
        if nest.may_fail:
            self._leave_if_not_zero(s, s.value(f"load i64, ptr {table}"))

    def _call(self, s: Section, step: Expr, k: str) -> None:
        """Call the kernel of a product for item k."""
        node = step.node
        words = node.op.subscripts(*[len(x.shape) for x in step.operands], **node.params)
        operands = [
            self._item(s, x, w.index(words[-1][0]), k)
            for x, w in zip(step.operands, words[:-1], strict=True)
        ]
        result = self._item(s, self._results[step], 0, k)
        status = self.routine.context.steps.write(
            s, node.op.name, node.params, operands, [result], self.routine.number
        )
        if status != "0":
            self._leave_if_not_zero(s, status)

    def _item(self, s: Section, x: Expr, axis: int, k: str) -> ArrayPointer:
        """Item k along an axis of an operand or a result, as a batch of one."""
        view = strided_view(x)
        base, first, strides = (owner_of(x), 0, None) if view is None else view
        whole = contiguous("", x.shape, x.dtype)
        if strides is not None:
            whole = whole._replace(strides=strides)
        pointer = offset(s, self._base(base), s.times("1", str(first)), x.dtype)
        if base not in self._local:
            pointer = offset(s, pointer, s.times(k, str(whole.strides[axis])), x.dtype)
        shape = tuple([1 if n == axis else length for n, length in enumerate(x.shape)])
        return whole._replace(pointer=pointer, shape=shape)

    def _leave_if_not_zero(self, s: Section, status: str) -> None:
        self.may_fail = True
        n = self._function.number()
        s.write(f"br i1 {s.value(f'icmp eq i64 {status}, 0')}, label %on{n}, label %fail{n}")
        s.label(f"fail{n}")
        s.write(f"store i64 {status}, ptr %frame")
        s.write("br label %leave")
        s.label(f"on{n}")


def local_arrays(plan: Schedule, loop: BatchLoop) -> set[Expr]:
    """The arrays of which a loop needs one item at a time."""
    stored = set(plan.stored)
    makers: dict[Expr, list[BatchLoop]] = {}
    for other in plan.batch_loops:
        own = [x for x in plan.stored if other.start <= plan.position_of(x) < other.stop]
        own += [r for fused in other.repeated for r in roots_of(fused) if r in stored]
        for x in own:
            makers.setdefault(x, []).append(other)
    found = {x for x, loops in makers.items() if loop in loops} - set(plan.outputs)
    for k, stage in enumerate(plan.stages):
        found -= {
            x
            for x in _read_by(plan, stage) & found
            if not any([other.start <= k < other.stop for other in makers[x]])
        }
    return found


def _read_by(plan: Schedule, stage: FusedLoops | Expr) -> set[Expr]:
    """The stored expressions that a stage reads."""
    if isinstance(stage, FusedLoops):
        return {a.expr for root in roots_of(stage) for a in plan.accesses(root)}
    views = [strided_view(x) if is_strided(stage) else None for x in stage.operands]
    return {
        owner_of(x) if view is None else view[0]
        for x, view in zip(stage.operands, views, strict=True)
    }


def row_bytes(x: Expr) -> int:
    """The size of an item of an array."""
    return int(prod(x.shape[1:])) * x.dtype.itemsize


def suits(nest: EmittedNest, length: int) -> bool:
    """Whether a nest computes one item of a batch in a range of its outermost loop."""
    if nest.partial or any([isinstance(entry, str) for entry in nest.table]):
        return False
    if nest.fused.rows:
        return bool(nest.group.space[0] == length) and not is_one(length)
    axes = nest.space.axes
    return (
        not nest.space.strips
        and len(axes) > 0
        and axes[0].counter == min([a.counter for a in axes])
        and not axes[0].is_reduced
        and axes[0].length % length == 0
    )


def steps_of_item(nest: EmittedNest, length: int) -> int:
    """The steps of the outermost loop of a nest for one item."""
    return 1 if nest.fused.rows else int(nest.space.axes[0].length) // length
