"""Products of a few rows with a matrix, or its transpose, that is too large for a cache.

    run, run_dots    c = alpha * a @ b + beta * c, on one thread; run_dots: b is a transpose
    run_in_parts, run_dots_in_parts    the same, columns of c divided among threads

The second factor is read once, at the speed of memory, if it is read in the order in which it is
stored: some of its rows at a time (`_STEPS`), each from its first column to its last.  What they
contribute to all rows of the result is added to it in a near cache.  Tiles of columns that are
accumulated over hundreds of rows (gemm_microkernel.py, OpenBLAS) read pieces of 128 bytes far apart
instead, which no processor prefetches.

8 rows times 30,000 x 2,000 elements (240 MB) in single precision: 20 ms with either, 9 with AVX-512
and 11 with AVX2 here; a product of this matrix with a vector takes 6.4.

Of a transpose some columns of b, which are rows in memory, are read at a time (`_COLUMNS`), from
the first element to the last.  Their products with the rows of a, which a near cache keeps, are
summed in registers.  Other rows of a come later, when the rows of the matrix are in a near cache
too.  The derivative of a product of a few rows and a large matrix with respect to the rows is such
a product: in the example it takes a third of the time of OpenBLAS, which copies the matrix first.
"""

from __future__ import annotations

from typing import Any

from ...ir import execution_engine, simd_value
from ...ir.ir_builder import Function, ModuleBuilder, Name, Section
from ...ir.llvm_types import F32, F64, Dtype, in_memory, literal, of_width
from ...tuning import thresholds
from ..fortran_calls import call_shared
from ..kernel_call import KernelCall
from ..loop_helpers import kind_of, offset
from .operands import Product
from .vector_code import VectorCode

_STEPS = 8  # rows of b at a time: streams that a processor prefetches
_VECTORS = 2  # of each of them
_HEIGHTS = {64: (12, 8, 4, 1), 32: (6, 4, 1)}  # rows of a at a time, by the size of a vector
_CACHE_LINE = 64  # bytes
DTYPES: dict[str, Dtype] = {"wengert_stream_f4": F32, "wengert_stream_f8": F64}
_NAMES = {dtype: name for name, dtype in DTYPES.items()}


# ---- the call ----------------------------------------------------------------------------------


def run(call: KernelCall, s: Section, product: Product) -> None:
    """Write a product for which `choose.is_streamed` holds, or may hold."""
    _run(call, s, product, "0", call.number(product.c.columns.length))


def run_in_parts(call: KernelCall, s: Section, product: Product, work: int = 0) -> None:
    """Write a product whose operands are those of the call, for threads with that much work."""
    n, operations = product.c.columns.length, product.operations
    grain = thresholds.streamed_columns
    if type(n) is int and type(operations) is int:
        grain = max(1, work * n // operations)

    def write(part: KernelCall, start: Name, stop: Name) -> None:
        _run(part, part.section, product, start, part.section.minus(stop, start))

    call.in_parts(n, grain, write, s)


def _run(call: KernelCall, s: Section, product: Product, first: Name, columns: Name) -> None:
    """Write some columns of a product."""
    a, b, c, dtype, scale, beta, before = product
    kind, name = in_memory(dtype), _NAMES[dtype]
    alpha = literal(scale.number.real, dtype)
    if scale.pointer is not None:
        alpha = scale.value(call, s, dtype).name
    of_b, old, to = (
        offset(s, x, first, dtype) for x in (b.pointer, before or c.pointer, c.pointer)
    )
    strides = [call.number(x.stride) for x in (a.rows, a.columns)]
    arguments = [
        *(("i64", x) for x in (call.number(c.rows.length), columns, call.number(b.rows.length))),
        *(("ptr", a.pointer), *(("i64", x) for x in strides)),
        *(("ptr", of_b), ("i64", call.number(b.rows.stride))),
        *(("ptr", old), ("ptr", to), ("i64", call.number(c.rows.stride))),
        *((kind, alpha), (kind, literal(beta.real, dtype))),
    ]
    call_shared(call, s, name, arguments, "void")


def emit(module: ModuleBuilder, name: str) -> None:
    """Add a function.

    ``void (m, n, k, a, row, step, b, step, before, c, row, alpha, beta)``: c, of m rows and n
    adjacent columns, is alpha * a @ b + beta * before.  Strides count elements; `before` has that
    of c, may be c, and is not read if beta is 0.
    """
    _Stream(module, DTYPES[name]).write()


# ---- the functions of a module -----------------------------------------------------------------


class _Stream(VectorCode):
    """The functions for a dtype, which `write` adds to a module."""

    def write(self) -> None:
        """Add all functions."""
        self._begin()
        for steps in (_STEPS, 1):
            for rows in self._heights(steps):
                self._add(rows, steps)
            self._add_all(steps)
        self._product()

    def _heights(self, steps: int) -> tuple[int, ...]:
        """The rows of a for a number of steps: few for the last ones."""
        return _HEIGHTS[execution_engine.vector_bytes()] if steps > 1 else (4, 1)

    def _begin(self) -> None:
        """A row of c before anything is added to it."""
        function = self.function("begin", "i64 n, ptr before, ptr c, number beta")
        body = function.body
        beta, adds = self._factor(body)
        with body.loop("0", "%n", str(self.width)) as (s, j):
            (mask,) = self.masks(s, s.minus("%n", j), 1)
            old, to = (offset(s, x, j, self.dtype) for x in ("%before", "%c"))
            read = s.value(
                f"select i1 {adds}, <{self.width} x i1> {mask}, <{self.width} x i1> zeroinitializer"
            )
            value = s.value(f"fmul {self.vector} {beta}, {self.masked_load(s, old, 0, read)}")
            value = s.value(
                f"select i1 {adds}, {self.vector} {value}, {self.vector} zeroinitializer"
            )
            self.masked_store(s, value, to, 0, mask)
        self.close(function)

    def _factor(self, s: Section) -> tuple[Name, Name]:
        """`beta` as a vector, and whether it is not 0."""
        return self.broadcast(s, "%beta"), s.value(f"fcmp une {self.kind} %beta, 0.0")

    def _add(self, rows: int, steps: int) -> None:
        """Add to some rows of c what some rows of b contribute; `a` is contiguous."""
        given = "i64 n, ptr a, ptr b, i64 step_of_b, ptr c, i64 row_of_c"
        function = self.function(f"add.{rows}.{steps}", given)
        body, group = function.body, self.width * _VECTORS
        rows_of_b = [self.at(body, "%b", (str(p), "%step_of_b")) for p in range(steps)]
        rows_of_c = [self.at(body, "%c", (str(i), "%row_of_c")) for i in range(rows)]
        full = body.value(f"and i64 %n, {-group}")
        with body.loop("0", full, str(group)) as (s, j):
            for row in rows_of_b:
                self._prefetch(s, offset(s, row, j, self.dtype), group * self.dtype.itemsize)
            self._add_vectors(s, j, rows_of_b, rows_of_c, _VECTORS, None)
        with body.loop(full, "%n", str(self.width)) as (s, j):
            (mask,) = self.masks(s, s.minus("%n", j), 1)
            self._add_vectors(s, j, rows_of_b, rows_of_c, 1, mask)
        self.close(function)

    def _add_vectors(
        self,
        s: Section,
        j: Name,
        rows_of_b: list[Name],
        rows_of_c: list[Name],
        vectors: int,
        mask: Name | None,
    ) -> None:
        """Add what rows of b contribute to some vectors of rows of c."""

        def load(row: Name, v: int) -> Name:
            if mask is None:
                return self.load(s, row, v)
            return self.masked_load(s, row, v, mask)

        places = [offset(s, row, j, self.dtype) for row in rows_of_c]
        sums = [[load(row, v) for v in range(vectors)] for row in places]
        for p, row in enumerate(rows_of_b):
            here = offset(s, row, j, self.dtype)
            of_b = [load(here, v) for v in range(vectors)]
            for i, totals in enumerate(sums):
                place = offset(s, "%a", str(i * len(rows_of_b) + p), self.dtype)
                one = self.broadcast(s, s.value(f"load {self.kind}, ptr {place}"))
                totals[:] = [self.fma(s, one, x, t) for x, t in zip(of_b, totals, strict=True)]
        for row, totals in zip(places, sums, strict=True):
            for v, total in enumerate(totals):
                if mask is None:
                    self.store(s, total, row, v)
                else:
                    self.masked_store(s, total, row, v, mask)

    def _prefetch(self, s: Section, row: Name, size: int) -> None:
        """Prefetch what comes later in a row: hardware prefetches within a page only."""
        callee = self.module.declare("llvm.prefetch.p0", "void", ["ptr", "i32", "i32", "i32"])
        for line in range(0, size, _CACHE_LINE):
            place = thresholds.prefetched_row_bytes + line
            ahead = s.value(f"getelementptr i8, ptr {row}, i64 {place}")
            s.write(f"call void {callee}(ptr {ahead}, i32 0, i32 3, i32 1)")

    def _add_all(self, steps: int) -> None:
        """Add to all rows of c what some rows of b contribute."""
        given = (
            "i64 m, i64 n, ptr a, i64 row_of_a, i64 step_of_a, ptr b, i64 step_of_b, "
            "ptr c, i64 row_of_c, number alpha"
        )
        function = self.function(f"add_all.{steps}", given)
        body, start = function.body, "0"
        heights = self._heights(steps)
        scaled = function.slot(f"[{heights[0] * steps} x {self.kind}]", _CACHE_LINE)
        for rows in heights:
            rest = body.value(f"srem i64 {body.minus('%m', start)}, {rows}")
            stop = body.minus("%m", rest)
            with body.loop(start, stop, str(rows)) as (s, i):
                a, c = self.at(s, "%a", (i, "%row_of_a")), self.at(s, "%c", (i, "%row_of_c"))
                self._scale(s, a, scaled, rows, steps)
                s.write(
                    f"call void @add.{rows}.{steps}(i64 %n, ptr {scaled}, ptr %b, i64 %step_of_b, "
                    f"ptr {c}, i64 %row_of_c)"
                )
            start = stop
        self.close(function)

    def _scale(self, s: Section, a: Name, scaled: Name, rows: int, steps: int) -> None:
        """Copy a part of a, multiplied by alpha."""
        with s.loop("0", str(rows)) as (t, i), t.loop("0", str(steps)) as (u, p):
            source = self.at(u, a, (i, "%row_of_a"), (p, "%step_of_a"))
            value = u.value(f"load {self.kind}, ptr {source}")
            value = u.value(f"fmul {self.kind} {value}, %alpha")
            u.write(
                f"store {self.kind} {value}, ptr {self.at(u, scaled, (i, str(steps)), (p, '1'))}"
            )

    def _product(self) -> None:
        given = (
            "i64 m, i64 n, i64 k, ptr a, i64 row_of_a, i64 step_of_a, ptr b, i64 step_of_b, "
            "ptr before, ptr c, i64 row_of_c, number alpha, number beta"
        )
        function = self.function(_NAMES[self.dtype], given, linkage="")
        body = function.body
        # Columns of c that stay in a near cache.
        bytes_of_column = body.times(body.larger("%m", "1"), str(self.dtype.itemsize))
        limit = body.value(f"sdiv i64 {thresholds.streamed_result_bytes}, {bytes_of_column}")
        group = self.width * _VECTORS
        panel = body.larger(body.value(f"and i64 {limit}, {-group}"), str(group))
        whole = body.value(f"and i64 %k, {-_STEPS}")
        with body.loop("0", "%n", panel) as (s, j):
            n = s.smaller(s.minus("%n", j), panel)
            with s.loop("0", "%m") as (t, i):
                old, to = (self.at(t, x, (i, "%row_of_c"), (j, "1")) for x in ("%before", "%c"))
                t.write(f"call void @begin(i64 {n}, ptr {old}, ptr {to}, {self.kind} %beta)")
            for start, stop, steps in (("0", whole, _STEPS), (whole, "%k", 1)):
                with s.loop(start, stop, str(steps)) as (t, p):
                    a = self.at(t, "%a", (p, "%step_of_a"))
                    b = self.at(t, "%b", (p, "%step_of_b"), (j, "1"))
                    t.write(
                        f"call void @add_all.{steps}(i64 %m, i64 {n}, ptr {a}, i64 %row_of_a, "
                        f"i64 %step_of_a, ptr {b}, i64 %step_of_b, "
                        f"ptr {offset(t, '%c', j, self.dtype)}, i64 %row_of_c, {self.kind} %alpha)"
                    )
        self.close(function)


# ---- the transpose of a matrix -------------------------------------------------------------------


_COLUMNS = 3  # of b at a time
_ROWS = {64: 8, 32: 4}  # of a at a time, by the size of a vector: their sums are in registers


def run_dots(call: KernelCall, s: Section, product: Product) -> None:
    """Write a product for which `choose.is_streamed_transpose` holds."""
    _run_dots(call, s, product, "0", str(_groups(product)))


def run_dots_in_parts(call: KernelCall, s: Section, product: Product, work: int) -> None:
    """Write a product whose operands are those of the call, for threads with that much work."""
    groups = _groups(product)
    grain = max(1, work * groups // int(product.operations))

    def write(part: KernelCall, start: Name, stop: Name) -> None:
        _run_dots(part, part.section, product, start, stop)

    call.in_parts(groups, grain, write, s)


def _groups(product: Product) -> int:
    return -(-int(product.c.columns.length) // _COLUMNS)


def _run_dots(call: KernelCall, s: Section, product: Product, start: Name, stop: Name) -> None:
    """Write groups of columns, from start to stop."""
    rest = int(product.c.columns.length) % _COLUMNS
    last = _groups(product) - 1
    full = s.smaller(stop, str(last)) if rest else stop
    with s.loop(start, full) as (t, group):
        _write_group(call, t, product, group, _COLUMNS)
    if rest:
        has_rest = s.value(f"icmp eq i64 {stop}, {last + 1}")
        with s.when(has_rest) as t:
            _write_group(call, t, product, str(last), rest)


def _write_group(call: KernelCall, s: Section, product: Product, group: Name, count: int) -> None:
    """Call the function that writes some columns."""
    dtype, scale = product.dtype, product.alpha
    first = s.times(group, str(_COLUMNS))
    b = offset(s, product.b.pointer, s.times(first, str(product.b.columns.stride)), dtype)
    column = s.times(first, str(product.c.columns.stride))
    c, before = product.c.pointer, product.addend or product.c.pointer
    function = _function(call, product, count)
    arguments = f"ptr {product.a.pointer}, ptr {b}"
    arguments += f", ptr {offset(s, before, column, dtype)}, ptr {offset(s, c, column, dtype)}"
    if scale.pointer is not None:
        arguments += f", {kind_of(dtype)} {scale.value(call, s, dtype).name}"
    s.write(f"call void @{function}({arguments})")


def _function(call: KernelCall, product: Product, count: int) -> str:
    """The function that writes some columns, `void (ptr a, ptr b, ptr before, ptr c)`.

    The factor of the product follows, unless it is a constant.
    """
    a, b, c, dtype = product[:4]
    m, k = int(a.rows.length), int(a.columns.length)
    strides: tuple[Any, ...] = (a.rows.stride, b.columns.stride, c.rows.stride, c.columns.stride)
    is_scaled = product.alpha.pointer is not None
    alpha = literal(1.0 if is_scaled else float(product.alpha.number.real), dtype)
    beta = float(product.beta.real)
    name = f"dots.{dtype.str[1:]}.{'_'.join(map(str, (m, count, k, *strides)))}"
    name += f".{alpha}.{literal(beta, dtype)}" + ".scaled" * is_scaled
    if name in call.module:
        return name
    arguments = [("ptr", x) for x in ("a", "b", "before", "c")]
    arguments += [(kind_of(dtype), "scale")] if is_scaled else []
    function = Function(call.module, name, arguments, attributes="noinline nounwind #1")
    body, kind = function.body, in_memory(dtype)
    highest = _ROWS[execution_engine.vector_bytes()]
    height = -(-m // -(-m // highest))
    for first in range(0, m, height):
        rows = range(first, min(first + height, m))
        sums = _summed(call, body, product, rows, count)
        for i, of_row in zip(rows, sums, strict=True):
            for j, found in enumerate(of_row):
                total = found
                if is_scaled or alpha != literal(1.0, dtype):
                    factor = "%scale" if is_scaled else alpha
                    total = body.value(f"fmul {kind} {total}, {factor}")
                place = str(i * strides[2] + j * strides[3])
                if beta != 0.0:
                    old = body.value(f"load {kind}, ptr {offset(body, '%before', place, dtype)}")
                    old = body.value(f"fmul {kind} {old}, {literal(beta, dtype)}")
                    total = body.value(f"fadd {kind} {total}, {old}")
                body.write(f"store {kind} {total}, ptr {offset(body, '%c', place, dtype)}")
    body.write("ret void")
    call.module.add(function)
    return name


def _summed(
    call: KernelCall, body: Section, product: Product, rows: range, count: int
) -> list[list[Name]]:
    """The products of some rows of a and columns of b."""
    dtype, k = product.dtype, int(product.a.columns.length)
    row_of_a: Any = product.a.rows.stride
    column_of_b: Any = product.b.columns.stride
    width = execution_engine.vector_bytes() // dtype.itemsize
    kind = of_width(in_memory(dtype), width)
    suffix = f"v{width}f{8 * dtype.itemsize}"
    fma = call.module.declare(f"llvm.fma.{suffix}", kind, [kind] * 3)
    sums = [[body.function.slot(kind) for _ in range(count)] for _ in rows]
    for total in [x for of_row in sums for x in of_row]:
        body.write(f"store {kind} zeroinitializer, ptr {total}")
    columns = [offset(body, "%b", str(j * column_of_b), dtype) for j in range(count)]
    lines = [offset(body, "%a", str(i * row_of_a), dtype) for i in rows]

    def add(s: Section, p: Name, length: int) -> None:
        def load(pointer: Name) -> Name:
            place, align = offset(s, pointer, p, dtype), dtype.itemsize
            if length == width:
                return s.value(f"load {kind}, ptr {place}, align {align}")
            mask = f"<{', '.join(f'i1 {str(x < length).lower()}' for x in range(width))}>"
            return simd_value.masked_load(
                call.module, s, in_memory(dtype), width, place, align, mask
            )

        if rows.start == 0 and length == width:
            for x in columns:
                _prefetch(s, offset(s, offset(s, x, p, dtype), str(count * column_of_b), dtype))
        of_b = [load(x) for x in columns]
        for line, of_row in zip(lines, sums, strict=True):
            of_a = load(line)
            for x, total in zip(of_b, of_row, strict=True):
                old = s.value(f"load {kind}, ptr {total}")
                operands = f"{kind} {of_a}, {kind} {x}, {kind} {old}"
                s.write(f"store {kind} {s.value(f'call {kind} {fma}({operands})')}, ptr {total}")

    with body.loop("0", str(k - k % width), str(width)) as (s, p):
        add(s, p, width)
    if k % width:
        add(body, str(k - k % width), k % width)
    element = in_memory(dtype)
    reduce = call.module.declare(f"llvm.vector.reduce.fadd.{suffix}", element, [element, kind])
    zero = literal(-0.0, dtype)
    return [
        [
            body.value(
                f"call reassoc {element} {reduce}({element} {zero}, {kind} "
                f"{body.value(f'load {kind}, ptr {total}')})"
            )
            for total in of_row
        ]
        for of_row in sums
    ]


def _prefetch(s: Section, place: Name) -> None:
    """Prefetch the same element of a later group: hardware prefetches within a page only."""
    prefetch = s.function.module.declare("llvm.prefetch.p0", "void", ["ptr", "i32", "i32", "i32"])
    s.write(f"call void {prefetch}(ptr {place}, i32 0, i32 2, i32 1)")
