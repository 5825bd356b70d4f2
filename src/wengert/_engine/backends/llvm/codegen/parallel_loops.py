"""Parallel loops: a loop nest is called once, or split among threads.

The outermost loop is split.  Each part of a reduction over that loop has its own memory, and the
caller combines the parts in order; so results depend on the number of threads, but not on their
timing.  Small loops run on the calling thread.
"""

from __future__ import annotations

from ..ir.index_analysis import Length, size_of
from ..ir.ir_builder import Section
from ..kernels.loop_helpers import kind_of, read, write
from ..lowering.loop_ir import Expr
from ..tuning import thresholds
from .kernel_dedup import EmittedNest
from .loop_nests import extent_of
from .program_context import FunctionContext
from .reductions import accumulator


class LoopCalls:
    """Emits the calls of one loop nest.

    Parameters
    ----------
    body : Section
        The body of the kernel.
    name : str
        The name of the nest's function.
    """

    def __init__(
        self, program: FunctionContext, body: Section, nest: EmittedNest, name: str
    ) -> None:
        self.program, self.body, self.nest, self.name = program, body, nest, name

    def write(self) -> None:
        """Emit the serial call and, for enough work, the parallel one."""
        nest, body = self.nest, self.body
        length, each = extent_of(nest), work_of(nest)
        total = length * each
        self.program.work_bytes = self.program.work_bytes + total
        extent = self.program.number(length)
        table = self.program.table(body, nest, {})
        serial = any(_is_position(r) for r in nest.partial) or self.program.threads == 1
        if serial or (type(total) is int and total < 2 * thresholds.parallel_loop_work):
            self._call(body, table, extent)
        else:
            work, number = self.program.number(total), self.program.number(each)
            large = body.value(f"icmp sge i64 {work}, {2 * thresholds.parallel_loop_work}")
            small = body.value(f"xor i1 {large}, true")
            with body.when(small) as small_body:
                self._call(small_body, table, extent)
            with body.when(large) as large_body:
                self._share(large_body, table, extent, number)
        self.program.check(body, nest, table)

    def _call(self, section: Section, table: str, extent: str) -> None:
        section.write(f"call void @{self.name}(ptr {table}, i64 0, i64 {extent}, i64 0)")

    def _share(self, section: Section, table: str, extent: str, each: str) -> None:
        """Split the outermost loop among threads."""
        program = self.program
        parallel = program.runtime(
            "wengert_parallel", "void", ["ptr", "ptr", "i64", "i64", "i64", "i64"]
        )
        quotient = section.value(f"sdiv i64 {thresholds.parallel_loop_work}, {each}")
        grain = section.larger(quotient, "1")
        threads = str(program.threads or "")
        if not threads:
            getter = program.runtime("wengert_get_threads", "i64", [])
            threads = section.value(f"call i64 {getter}()")
        span = f"i64 0, i64 {extent}, i64 {grain}, i64 {threads}"
        partial = sorted(self.nest.partial, key=lambda x: x.number)
        if not partial:
            section.write(f"call void {parallel}(ptr @{self.name}, ptr {table}, {span})")
            return
        count = program.runtime("wengert_parts", "i64", ["i64"] * 4)
        parts = section.value(f"call i64 {count}({span})")
        several = section.value(f"icmp sgt i64 {parts}, 1")
        single = section.value(f"xor i1 {several}, true")
        with section.when(single) as one:
            self._call(one, table, extent)
        with section.when(several) as parallel_body:
            buffers = {x: self._partial_buffer(parallel_body, x, parts) for x in partial}
            all_allocated = "true"
            for buffer in buffers.values():
                allocated = parallel_body.value(f"icmp ne ptr {buffer}, null")
                all_allocated = parallel_body.value(f"and i1 {all_allocated}, {allocated}")
            failed = parallel_body.value(f"xor i1 {all_allocated}, true")
            with parallel_body.when(failed) as serial_body:  # run serially
                self._call(serial_body, table, extent)
            with parallel_body.when(all_allocated) as split_body:
                own = program.table(split_body, self.nest, buffers)
                split_body.write(f"call void {parallel}(ptr @{self.name}, ptr {own}, {span})")
                split_body.write(
                    f"store i64 {split_body.value(f'load i64, ptr {own}')}, ptr {table}"
                )
                for x, buffer in buffers.items():
                    self._combine(split_body, x, buffer, parts)
            free = program.runtime("wengert_free", "void", ["ptr"])
            for buffer in buffers.values():
                parallel_body.write(f"call void {free}(ptr {buffer})")

    def _partial_buffer(self, section: Section, expr: Expr, parts: str) -> str:
        """Memory for the partial results of all parts."""
        alloc = self.program.runtime("wengert_alloc", "ptr", ["i64"])
        size = self.program.number(size_of(expr.shape) * expr.dtype.itemsize)
        total = section.value(f"mul i64 {size}, {parts}")
        return section.value(f"call ptr {alloc}(i64 {total})")

    def _combine(self, section: Section, expr: Expr, buffer: str, parts: str) -> None:
        """Combine the partial results."""
        language, kind = self.program.language, kind_of(expr.dtype)
        count = self.program.number(size_of(expr.shape))
        monoid = expr.rule.monoid  # type: ignore[attr-defined]
        with section.loop("0", count) as (outer, k):
            total = accumulator(language, outer, monoid, expr.dtype, 1, False)
            with outer.loop("0", parts) as (inner, p):
                skipped = inner.value(f"mul i64 {p}, {count}")
                element = inner.value(f"add i64 {skipped}, {k}")
                address = inner.value(f"getelementptr {kind}, ptr {buffer}, i64 {element}")
                total.step(inner, read(language, inner, address, expr.dtype), None)
            result = total.result(outer, False)
            address = outer.value(
                f"getelementptr {kind}, ptr {self.program.pointer(expr)}, i64 {k}"
            )
            write(outer, address, language.cast(result, expr.dtype))


def _is_position(expr: Expr) -> bool:
    return expr.rule.monoid.startswith("arg")  # type: ignore[attr-defined,no-any-return]


def work_of(nest: EmittedNest) -> Length:
    """The work of one iteration of the outermost loop."""
    total: Length = 0
    for group, space in zip(nest.fused.groups, nest.spaces, strict=True):
        axes = list(space.axes)
        if not nest.fused.rows and axes:
            del axes[space.vector if space.strips and space.vector is not None else 0]
        inner: Length = group.weight + thresholds.element_overhead_work
        for n in group.space[1 : nest.fused.rows]:
            inner = inner * n
        for axis in axes:
            inner = inner * axis.length
        total = total + inner
    return total
