"""Products of large matrices, in blocks that fit into the caches.

    run            c = alpha * a @ b + beta * c, in double precision, of any sizes and strides
    run_in_parts   the same, rows of c divided among threads
    run_uncached   c = alpha * a @ b of few steps, if c is too large for all caches, on one thread;
                   threads share out blocks of rows (write_product.py)

The loops are those of Goto and van de Geijn (Anatomy of High-Performance Matrix Multiplication,
2008).  Some rows of b, as many as steps of a sum, are copied into panels of two vectors' columns,
which a first- or second-level cache keeps; a block of rows of a stays in the second-level cache
while it is multiplied by all panels.  A tile of the result, several rows by one panel, is
accumulated in registers (gemm_microkernel.py).

A block of a is read where it is if its rows are contiguous.  It is copied if its columns are, or if
its rows would evict each other from the cache.  The panel of the last columns is filled up with
zeros, and its tiles are added to the result from a buffer.

Floating-point operations a second on one thread, of 133e9 that the processor has, for
1000 x 1200 times 1200 x 1100 elements: OpenBLAS 102e9, Eigen (JAX) 115e9, these 121e9; for
2500 x 3000 times 3000 x 2750: OpenBLAS 106e9, these 117e9.  With AVX2 only both reach 62e9 of
66e9.  In single precision OpenBLAS has 249e9 for the larger matrices, these 235e9 of 266e9.

A result of few steps is written past the caches: other stores read each cache line first, and a
library that clears the result before it adds to it writes and reads it twice.  Row after row, since
a panel of columns would be on another page in each row.  30,000 x 8 times 8 x 2,000 elements in
single precision, the derivative of a layer with respect to its weights: a third of the time of the
microkernel, a sixth of that of OpenBLAS on one thread.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ...ir import execution_engine
from ...ir.ir_builder import ModuleBuilder, Name, Section
from ...ir.llvm_types import in_memory, literal, of_width
from ...tuning import thresholds
from ..fortran_calls import call_shared
from ..kernel_call import KernelCall
from ..loop_helpers import offset
from .gemm_microkernel import GemmTile, RowVectors, accumulated, packed, write_rows
from .operands import Product
from .vector_code import VECTORS, Packing

_CACHE_LINE = 64  # bytes
_ALIASED = 2048  # bytes: rows at multiples of it compete for a few lines of a first-level cache
NAME = "wengert_gemm"


# ---- the call ----------------------------------------------------------------------------------


def run(call: KernelCall, s: Section, product: Product) -> None:
    """Write a product for which `choose.is_blocked` holds."""
    _run(call, s, product, "0", call.number(product.c.rows.length))


def run_in_parts(call: KernelCall, s: Section, product: Product, work: int) -> None:
    """Write a product whose operands are those of the call, for threads with that much work."""
    block = thresholds.gemm_block_rows
    rows = product.c.rows.length
    count = -(-int(rows) // block)

    def write(part: KernelCall, start: Name, stop: Name) -> None:
        s = part.section
        first = s.times(start, str(block))
        last = s.smaller(s.times(stop, str(block)), part.number(rows))
        _run(part, s, product, first, s.minus(last, first))

    call.in_parts(count, max(1, work * count // int(product.operations)), write, s)


def _run(call: KernelCall, s: Section, product: Product, first: Name, rows: Name) -> None:
    """Write some rows of a product."""
    a, b, c, dtype, scale, beta, before = product
    kind = in_memory(dtype)
    alpha = literal(scale.number.real, dtype)
    if scale.pointer is not None:
        alpha = scale.value(call, s, dtype).name
    of_a, old, to = (
        offset(s, pointer, s.times(first, call.number(x.rows.stride)), dtype)
        for pointer, x in ((a.pointer, a), (before or c.pointer, c), (c.pointer, c))
    )
    arguments = [("i64", rows), *(("i64", call.number(x)) for x in product.sizes[1:])]
    for pointer, matrix in ((of_a, a), (b.pointer, b)):
        strides = [call.number(x.stride) for x in (matrix.rows, matrix.columns)]
        arguments += [("ptr", pointer), *(("i64", x) for x in strides)]
    arguments += [("ptr", old), ("ptr", to), ("i64", call.number(c.rows.stride))]
    arguments += [(kind, alpha), (kind, literal(beta.real, dtype))]
    call_shared(call, s, NAME, arguments)


def emit(module: ModuleBuilder, name: str) -> None:
    """Add the function.

    ``i64 (m, n, k, a, row, step, b, step, column, before, c, row, alpha, beta)``: c, of m rows and
    n adjacent columns, is alpha * a @ b + beta * before.  Strides count elements; `before` has that
    of c, may be c, and is not read if beta is 0.  Returns 1 if there is no memory.
    """
    _Gemm(module).write()


def largest_allocation() -> int:
    """The bytes that a call allocates at most."""
    steps, line = thresholds.gemm_sum_steps, _CACHE_LINE
    block = (steps + line) * (thresholds.gemm_block_rows + line)
    return 8 * (block + line * steps) + thresholds.gemm_panels_bytes + line


# ---- the functions of a module -----------------------------------------------------------------


class _BlocksOfA(NamedTuple):
    """How blocks of a are read.

    copies : whether they are copied.
    by_rows : whether rows are copied, and not columns.
    elements : the length of the memory of a copy.
    distance : of two rows, or columns, of a copy.
    row, step : the strides of a block.
    """

    copies: Name
    by_rows: Name
    elements: Name
    distance: Name
    row: Name
    step: Name


class _Gemm(Packing):
    """The functions, which `write` adds to a module."""

    def write(self) -> None:
        """Add all functions."""
        for rows in self.heights:
            self._tile(rows)
        self.rows_to_panel()
        self.columns_to_panel()
        self.copy()
        self._add_part()
        self._block()
        self._gemm()

    # ---- a tile --------------------------------------------------------------------------------

    _TILE = "ptr before, ptr c, i64 row_of_c, number alpha, number beta"

    def _tile(self, rows: int) -> None:
        """Some rows of one panel: `%b` has the panel's steps one after the other."""
        given = f"i64 k, ptr a, i64 row_of_a, i64 step_of_a, ptr b, {self._TILE}"
        function = self.function(f"tile.{rows}", given)
        tile = GemmTile(self.dtype, rows, self.panel, 0, 0, 0, 0, 1.0, 0.0, False)
        vectors, body = RowVectors(self.module, tile), function.body
        places = [
            (self.at(body, "%c", (str(i), "%row_of_c")), i, v)
            for i in range(rows)
            for v in vectors.indices
        ]
        prefetch = self.module.declare("llvm.prefetch.p0", "void", ["ptr", "i32", "i32", "i32"])
        for row, _, v in places:
            body.write(f"call void {prefetch}(ptr {self.place(body, row, v)}, i32 1, i32 3, i32 1)")
        strides = ("%row_of_a", "%step_of_a", str(self.panel))
        sums = accumulated(function, vectors, strides, prefetches=False)
        alpha = vectors.broadcast(body, "%alpha")
        totals = [
            body.value(
                f"fmul {self.vector} {alpha}, {body.value(f'load {self.vector}, ptr {sums[i][v]}')}"
            )
            for _, i, v in places
        ]
        adds = body.value(f"fcmp une {self.kind} %beta, 0.0")
        with body.when(adds) as s:
            beta = vectors.broadcast(s, "%beta")
            for (row, i, v), total in zip(places, totals, strict=True):
                old = self.at(s, "%before", (str(i), "%row_of_c"))
                new = vectors.fma(s, beta, vectors.load(s, old, v), total)
                self.store(s, new, row, v)
            s.write("ret void")
            s.label(f"other{function.number()}")  # unreachable: the following code needs a block
        for (row, _, v), total in zip(places, totals, strict=True):
            self.store(body, total, row, v)
        self.close(function)

    def _add_part(self) -> None:
        """Write some rows and columns of the result: beta * before + a buffer of a panel."""
        function = self.function(
            "add_part",
            "i64 rows, i64 columns, ptr of, ptr before, ptr c, i64 row_of_c, number beta",
        )
        body = function.body
        masks, beta = self.masks(body, "%columns", VECTORS), self.broadcast(body, "%beta")
        adds = body.value(f"fcmp une {self.kind} %beta, 0.0")
        no = of_width("i1", self.width)
        with body.loop("0", "%rows") as (s, i):
            old, target = (self.at(s, x, (i, "%row_of_c")) for x in ("%before", "%c"))
            source = self.at(s, "%of", (i, str(self.panel)))
            for v, mask in enumerate(masks):
                value = self.load(s, source, v)
                read = s.value(f"select i1 {adds}, {no} {mask}, {no} zeroinitializer")
                sum_ = self.fma(s, beta, self.masked_load(s, old, v, read), value)
                value = s.value(f"select i1 {adds}, {self.vector} {sum_}, {self.vector} {value}")
                self.masked_store(s, value, target, v, mask)
        self.close(function)

    # ---- loops ---------------------------------------------------------------------------------

    def _block(self) -> None:
        """A block of rows times one panel."""
        given = "i64 m, i64 k, i64 columns, ptr a, i64 row_of_a, i64 step_of_a, ptr b"
        function = self.function("block", f"{given}, {self._TILE}")
        body, start, row_of_c = function.body, "0", "%row_of_c"
        is_full = body.value(f"icmp eq i64 %columns, {self.panel}")
        buffer = function.slot(f"[{self.heights[0] * self.panel} x {self.kind}]", _CACHE_LINE)
        for rows in self.heights:
            rest = body.value(f"srem i64 {body.minus('%m', start)}, {rows}")
            stop = body.minus("%m", rest)
            with body.loop(start, stop, str(rows)) as (s, i):
                factors = (
                    f"i64 %k, ptr {self.at(s, '%a', (i, '%row_of_a'))}, i64 %row_of_a, "
                    f"i64 %step_of_a, ptr %b"
                )
                old, to = (self.at(s, x, (i, row_of_c)) for x in ("%before", "%c"))
                tile = f"call void @tile.{rows}({factors}"
                with s.when(is_full) as t:
                    t.write(
                        f"{tile}, ptr {old}, ptr {to}, i64 {row_of_c}, "
                        f"{self.kind} %alpha, {self.kind} %beta)"
                    )
                with s.unless(is_full) as t:
                    t.write(
                        f"{tile}, ptr {buffer}, ptr {buffer}, i64 {self.panel}, "
                        f"{self.kind} %alpha, {self.kind} 0.0)"
                    )
                    t.write(
                        f"call void @add_part(i64 {rows}, i64 %columns, ptr {buffer}, ptr {old}, "
                        f"ptr {to}, i64 {row_of_c}, {self.kind} %beta)"
                    )
            start = stop
        self.close(function)

    def _gemm(self) -> None:
        given = (
            "i64 m, i64 n, i64 k, ptr a, i64 row_of_a, i64 step_of_a, "
            f"ptr b, i64 step_of_b, i64 column_of_b, {self._TILE}"
        )
        function = self.function(NAME, given, "i64", linkage="")
        body, item = function.body, self.dtype.itemsize
        # The steps of a sum and the columns that are copied at a time.
        most = str(thresholds.gemm_sum_steps)
        parts = body.larger(self._rounded_quotient(body, "%k", most), "1")
        steps = self._rounded_quotient(body, "%k", parts)
        bytes_of_column = body.times(body.larger(steps, "1"), str(item))
        limit = body.value(f"sdiv i64 {thresholds.gemm_panels_bytes}, {bytes_of_column}")
        width = body.smaller(self._whole_panels(body, limit), self._whole_panels(body, "%n"))
        blocks = self._blocks_of_a(body, steps)
        length = body.plus(blocks.elements, body.times(steps, width))
        size = body.plus(body.times(length, str(item)), str(_CACHE_LINE))
        allocate = self._runtime("wengert_alloc", "ptr", "i64")
        memory = body.value(f"call ptr {allocate}(i64 {size})")
        with body.when(body.value(f"icmp eq ptr {memory}, null")) as s:
            s.write("ret i64 1")
            s.label(f"other{function.number()}")  # unreachable: the following code needs a block
        panels = offset(body, memory, blocks.elements, self.dtype)
        with body.loop("0", "%n", width) as (s, j0), s.loop("0", parts) as (t, part):
            columns = t.smaller(t.minus("%n", j0), width)
            p = t.times(part, steps)
            count = t.larger(t.smaller(steps, t.minus("%k", p)), "0")
            is_first = t.value(f"icmp eq i64 {part}, 0")
            beta = t.value(f"select i1 {is_first}, {self.kind} %beta, {self.kind} 1.0")
            before = t.value(f"select i1 {is_first}, ptr %before, ptr %c")
            with t.loop("0", "%m", str(thresholds.gemm_block_rows)) as (u, i0):
                height = u.smaller(u.minus("%m", i0), str(thresholds.gemm_block_rows))
                a = self.at(u, "%a", (i0, "%row_of_a"), (p, "%step_of_a"))
                block = u.value(f"select i1 {blocks.copies}, ptr {memory}, ptr {a}")
                with u.when(blocks.copies) as v:
                    lengths = [
                        v.value(f"select i1 {blocks.by_rows}, i64 {x}, i64 {y}")
                        for x, y in ((height, count), (count, height))
                    ]
                    old = v.value(f"select i1 {blocks.by_rows}, i64 %row_of_a, i64 %step_of_a")
                    v.write(
                        f"call void @copy(i64 {lengths[0]}, i64 {lengths[1]}, ptr {a}, "
                        f"i64 {old}, ptr {memory}, i64 {blocks.distance})"
                    )
                packs = u.value(f"icmp eq i64 {i0}, 0")
                with u.loop("0", columns, str(self.panel)) as (v, j):
                    some = v.smaller(v.minus(columns, j), str(self.panel))
                    of = v.plus(j0, j)
                    panel = self.at(v, panels, (j, steps))
                    with v.when(packs) as w:
                        self._pack(w, (count, some, p, of), panel)
                    old, to = (self.at(v, x, (i0, "%row_of_c"), (of, "1")) for x in (before, "%c"))
                    v.write(
                        f"call void @block(i64 {height}, i64 {count}, i64 {some}, ptr {block}, "
                        f"i64 {blocks.row}, i64 {blocks.step}, ptr {panel}, ptr {old}, ptr {to}, "
                        f"i64 %row_of_c, {self.kind} %alpha, {self.kind} {beta})"
                    )
        body.write(f"call void {self._runtime('wengert_free', 'void', 'ptr')}(ptr {memory})")
        body.write("ret i64 0")
        self.module.add(function)

    def _blocks_of_a(self, s: Section, steps: Name) -> _BlocksOfA:
        """How blocks of a are read, for so many steps of a sum."""
        item, line = self.dtype.itemsize, str(_CACHE_LINE // self.dtype.itemsize)
        by_rows = s.value("icmp eq i64 %step_of_a, 1")
        by_columns = s.value("icmp eq i64 %row_of_a, 1")
        row_bytes = s.times("%row_of_a", str(item))
        remainder = s.value(f"and i64 {row_bytes}, {_ALIASED - 1}")
        is_aliased = s.value(f"icmp eq i64 {remainder}, 0")
        copies = s.value(f"select i1 {by_rows}, i1 {is_aliased}, i1 {by_columns}")
        # A row, or a column, and the start of the next one are not at the same cache lines.
        row = s.plus(steps, line)
        column = s.plus(str(thresholds.gemm_block_rows), line)
        elements = s.value(f"select i1 {copies}, i64 {s.times(row, column)}, i64 0")
        distance = s.value(f"select i1 {by_rows}, i64 {row}, i64 {column}")
        new_row = s.value(f"select i1 {by_rows}, i64 {row}, i64 1")
        new_step = s.value(f"select i1 {by_rows}, i64 1, i64 {column}")
        strides = [
            s.value(f"select i1 {copies}, i64 {new}, i64 {old}")
            for new, old in ((new_row, "%row_of_a"), (new_step, "%step_of_a"))
        ]
        return _BlocksOfA(copies, by_rows, elements, distance, *strides)

    def _pack(self, s: Section, part: tuple[Name, Name, Name, Name], panel: Name) -> None:
        """Copy a part of b to a panel: numbers of steps and columns, first step and column."""
        steps, columns, p, j = part
        b = self.at(s, "%b", (p, "%step_of_b"), (j, "%column_of_b"))
        given = f"i64 {steps}, i64 {columns}, ptr {b}, i64 %step_of_b"
        is_contiguous = s.value("icmp eq i64 %column_of_b, 1")
        with s.when(is_contiguous) as t:
            t.write(f"call void @rows_to_panel({given}, ptr {panel})")
        with s.unless(is_contiguous) as t:
            t.write(f"call void @columns_to_panel({given}, i64 %column_of_b, ptr {panel})")

    def _rounded_quotient(self, s: Section, x: Name, y: Name) -> Name:
        return s.value(f"sdiv i64 {s.plus(x, s.minus(y, '1'))}, {y}")

    def _whole_panels(self, s: Section, columns: Name) -> Name:
        """A number of columns rounded up to panels, at least one."""
        more = s.plus(s.larger(columns, "1"), str(self.panel - 1))
        return s.value(f"and i64 {more}, {-self.panel}")

    def _runtime(self, name: str, result: str, argument: str) -> str:
        return self.module.declare(name, result, [argument], "nounwind")


# ---- results too large for all caches ------------------------------------------------------------


def run_uncached(call: KernelCall, s: Section, product: Product) -> None:
    """Write a product for which `choose.is_uncached` holds."""
    a, b, c, dtype, scale = product[:5]
    b = packed(call, s, b, dtype)
    alpha = float(scale.number.real)
    of_a: tuple[Any, Any] = a.rows.stride, a.columns.stride
    others: tuple[Any, Any] = b.rows.stride, c.rows.stride
    tile = GemmTile(dtype, 0, 0, of_a[0], of_a[1], others[0], others[1], alpha, 0.0, True)
    if scale.pointer is not None:
        tile = tile._replace(alpha=1.0, scale=scale.value(call, s, dtype).name)
    k = call.number(a.columns.length)
    number = s.value(f"ptrtoint ptr {c.pointer} to i64")
    rest = s.value(f"and i64 {number}, {execution_engine.vector_bytes() - 1}")
    is_aligned = s.value(f"icmp eq i64 {rest}, 0")
    with s.when(is_aligned) as t:
        write_rows(call, t, tile._replace(bypasses=True), (a, b, c), c.pointer, k)
        # Such stores are not ordered with others, by which threads tell that they have finished.
        t.write(f"call void {call.module.declare('llvm.x86.sse.sfence', 'void', [])}()")
    with s.unless(is_aligned) as t:
        write_rows(call, t, tile, (a, b, c), c.pointer, k)
