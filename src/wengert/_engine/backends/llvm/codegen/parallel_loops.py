"""Parallel loops: a nest is called once, or split among threads.

The outermost loop is split.  Each part of a reduction over that loop has memory of its own, and the
caller combines the parts in their order; so results depend on the number of threads, and not on
their timing.  Little work is done by the calling thread alone.
"""

from __future__ import annotations

from ..ir.affine import Length, size_of
from ..ir.ir_builder import Section
from ..kernels.loop_helpers import kind_of, read, write
from ..lowering.loop_ir import Expr
from ..tuning import thresholds
from .kernel_dedup import EmittedNest
from .loop_nests import extent_of
from .program_context import FunctionContext
from .reductions import accumulator


class LoopCalls:
    """The calls of one nest.

    Parameters
    ----------
    body : Section
        Of the kernel.
    name : str
        Of its function.
    """

    def __init__(
        self, program: FunctionContext, body: Section, nest: EmittedNest, name: str
    ) -> None:
        self.program, self.body, self.nest, self.name = program, body, nest, name

    def write(self) -> None:
        """Emit the call, and the parallel version for much work."""
        nest, body = self.nest, self.body
        length, each = extent_of(nest), work_of(nest)
        total = length * each
        self.program.long = self.program.long + total
        extent = self.program.number(length)
        table = self.program.table(body, nest, {})
        alone = any(_is_place(r) for r in nest.partial) or self.program.threads == 1
        if alone or (type(total) is int and total < 2 * thresholds.parallel_loop_work):
            self._call(body, table, extent)
        else:
            work, number = self.program.number(total), self.program.number(each)
            large = body.value(f"icmp sge i64 {work}, {2 * thresholds.parallel_loop_work}")
            small = body.value(f"xor i1 {large}, true")
            with body.when(small) as few:
                self._call(few, table, extent)
            with body.when(large) as much:
                self._share(much, table, extent, number)
        self.program.check(body, nest, table)

    def _call(self, section: Section, table: str, extent: str) -> None:
        section.write(f"call void @{self.name}(ptr {table}, i64 0, i64 {extent}, i64 0)")

    def _share(self, section: Section, table: str, extent: str, each: str) -> None:
        """Split the outermost loop."""
        program = self.program
        parallel = program.runtime(
            "wengert_parallel", "void", ["ptr", "ptr", "i64", "i64", "i64", "i64"]
        )
        quotient = section.value(f"sdiv i64 {thresholds.parallel_loop_work}, {each}")
        grain = section.larger(quotient, "1")
        threads = str(program.threads or "")
        if not threads:
            ask = program.runtime("wengert_get_threads", "i64", [])
            threads = section.value(f"call i64 {ask}()")
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
        with section.when(several) as many:
            places = {x: self._room(many, x, parts) for x in partial}
            some = "true"
            for place in places.values():
                there = many.value(f"icmp ne ptr {place}, null")
                some = many.value(f"and i1 {some}, {there}")
            none = many.value(f"xor i1 {some}, true")
            with many.when(none) as little:  # the allocation failed: run serially
                self._call(little, table, extent)
            with many.when(some) as enough:
                own = program.table(enough, self.nest, places)
                enough.write(f"call void {parallel}(ptr @{self.name}, ptr {own}, {span})")
                enough.write(f"store i64 {enough.value(f'load i64, ptr {own}')}, ptr {table}")
                for x, place in places.items():
                    self._combine(enough, x, place, parts)
            free = program.runtime("wengert_free", "void", ["ptr"])
            for place in places.values():
                many.write(f"call void {free}(ptr {place})")

    def _room(self, section: Section, expr: Expr, parts: str) -> str:
        """Memory for the partial result of each part."""
        alloc = self.program.runtime("wengert_alloc", "ptr", ["i64"])
        size = self.program.number(size_of(expr.shape) * expr.dtype.itemsize)
        total = section.value(f"mul i64 {size}, {parts}")
        return section.value(f"call ptr {alloc}(i64 {total})")

    def _combine(self, section: Section, expr: Expr, place: str, parts: str) -> None:
        """Combine the partial results."""
        language, kind = self.program.language, kind_of(expr.dtype)
        count = self.program.number(size_of(expr.shape))
        monoid = expr.rule.monoid  # type: ignore[attr-defined]
        with section.loop("0", count) as (outer, k):
            total = accumulator(language, outer, monoid, expr.dtype, 1, False)
            with outer.loop("0", parts) as (inner, p):
                skipped = inner.value(f"mul i64 {p}, {count}")
                there = inner.value(f"add i64 {skipped}, {k}")
                address = inner.value(f"getelementptr {kind}, ptr {place}, i64 {there}")
                total.step(inner, read(language, inner, address, expr.dtype), None)
            result = total.result(outer, False)
            address = outer.value(
                f"getelementptr {kind}, ptr {self.program.pointer(expr)}, i64 {k}"
            )
            write(outer, address, language.cast(result, expr.dtype))


def _is_place(expr: Expr) -> bool:
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
