"""Products of a few rows with a matrix that is too large for a cache.

    run             c = alpha * a @ b + beta * c, on one thread
    run_in_parts    the same, columns of c divided among threads
    address_of      the address of the function for a dtype, by its name

The second factor is read once, at the speed of memory, if it is read in the order in which it is
stored: some of its rows at a time (`_STEPS`), each from its first column to its last.  What they
contribute to all rows of the result is added to it in a near cache.  Tiles of columns that are
accumulated over hundreds of rows (gemm_microkernel.py, OpenBLAS) read pieces of 128 bytes far apart
instead, which no processor prefetches.

8 rows times 30,000 x 2,000 elements (240 MB) in single precision: 20 ms with either, 9 with AVX-512
and 11 with AVX2 here; a product of this matrix with a vector takes 6.4.

The functions do not depend on sizes, so all programs share them, and they are compiled once for a
machine.
"""

from __future__ import annotations

import functools

from wengert._engine.core.thread_state import lock

from ...ir import execution_engine
from ...ir.ir_builder import ModuleBuilder, Name, Section
from ...ir.llvm_types import F32, F64, Dtype, in_memory, literal
from ...ir.processors import foreign
from ...runtime import runtime_library
from ...tuning import thresholds
from ..kernel_call import KernelCall
from ..loop_helpers import offset
from .operands import Product
from .vector_code import VectorCode

_STEPS = 8  # rows of b at a time: streams that a processor prefetches
_VECTORS = 2  # of each of them
_HEIGHTS = {64: (12, 8, 4, 1), 32: (6, 4, 1)}  # rows of a at a time, by the size of a vector
_CACHE_LINE = 64  # bytes
DTYPES: dict[str, Dtype] = {"wengert_stream_f4": F32, "wengert_stream_f8": F64}
_NAMES = {dtype: name for name, dtype in DTYPES.items()}
_LOCK = lock()


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
    callee = call.external(name, address_of(name), "void", [t for t, _ in arguments])
    s.write(f"call void {callee}({', '.join(f'{t} {x}' for t, x in arguments)})")


def address_of(name: str) -> int:
    """The address of a function, which is compiled when it is needed first.

    ``void (m, n, k, a, row, step, b, step, before, c, row, alpha, beta)``: c, of m rows and n
    adjacent columns, is alpha * a @ b + beta * before.  Strides count elements; `before` has that
    of c, may be c, and is not read if beta is 0.

    Examples
    --------
    >>> address_of("wengert_stream_f4") != address_of("wengert_stream_f8")
    True
    """
    if foreign() is not None:
        return 0
    with _LOCK:
        return _compiled(name)


@functools.cache
def _compiled(name: str) -> int:
    return runtime_library.loaded(text(DTYPES[name]), {}, [name])[name]


def text(dtype: Dtype) -> str:
    """The module of a dtype."""
    return module(dtype).text(execution_engine.heading())


def module(dtype: Dtype) -> ModuleBuilder:
    """The functions for a dtype."""
    made = ModuleBuilder()
    _Stream(made, dtype).write()
    return made


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
