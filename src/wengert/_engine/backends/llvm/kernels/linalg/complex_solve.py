"""Solutions of complex linear systems with several right-hand sides, in double precision.

    run           x with a @ x = b
    address_of    the address of the function that computes it

Real and imaginary parts are separated first: a product of complex vectors is then four
multiplications with addition, without exchanging lanes, which BLAS's products of complex matrices
do not reach with long vectors.

A row of the factorized matrix is its real parts and then its imaginary parts.  The factorization is
LAPACK's, in blocks of columns, with partial pivoting by |re| + |im|.  The right-hand sides are
solved for in panels of two vectors' columns, which stay in a first- or second-level cache; some
rows of a panel are accumulated in registers at a time.

The function does not depend on sizes, so all programs share it, and it is compiled once for a
machine.  With AVX-512 it takes 39 us for 50 rows and 150 right-hand sides, getrf and trsm of
OpenBLAS 144 us; 1.5 and 2.7 ms for 200 and 400; 32 and 54 ms for 400 and 800.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import NamedTuple

from wengert._engine.core.fork_safe_locks import lock

from ...ir import execution_engine
from ...ir.ir_builder import ModuleBuilder, Name, Section
from ...ir.llvm_types import C128, F64, of_width, suffix
from ...runtime import runtime_library
from ..gemm.vector_code import VectorCode
from ..kernel_call import ArrayPointer, KernelCall
from ..loop_helpers import offset

NAME = "wengert_complex_solve"
_CACHE_LINE = 64  # bytes
_VECTORS = 2  # of a panel
_LEAST_PIVOT = "0x0010000000000000"  # the smallest normal number
_LOCK = lock()


def run(call: KernelCall, s: Section, a: ArrayPointer, b: ArrayPointer, x: ArrayPointer) -> None:
    """Write x with a @ x = b, all complex128; the columns of x are adjacent.

    Fails if a is singular, or a pivot has no reciprocal, or there is no memory.
    """
    assert a.dtype == b.dtype == x.dtype == C128
    arguments = [("i64", call.number(n)) for n in x.shape]
    for array in (a, b):
        strides = [("i64", call.number(n)) for n in array.strides]
        arguments += [("ptr", array.pointer), *strides]
    arguments += [("ptr", x.pointer), ("i64", call.number(x.strides[0]))]
    callee = call.external(NAME, address_of(NAME), "i64", [kind for kind, _ in arguments])
    status = s.value(f"call i64 {callee}({', '.join(f'{t} {v}' for t, v in arguments)})")
    call.fail_if(s.value(f"icmp ne i64 {status}, 0"), 1, s)


def address_of(name: str) -> int:
    """The address of the function, which is compiled when it is needed first.

    ``i64 (n, m, a, row, column, b, row, column, x, row)``: strides count complex elements.  Returns
    1 if a pivot is zero or has no reciprocal, or if there is no memory.

    Examples
    --------
    >>> address_of(NAME) > 0
    True
    """
    with _LOCK:
        return _compiled(name)


@functools.cache
def _compiled(name: str) -> int:
    runtime = runtime_library.symbols()
    needed = {x: runtime[x] for x in ("wengert_alloc", "wengert_free")}
    return runtime_library.loaded(text(), needed, [name])[name]


def text() -> str:
    """The module of the function."""
    module = ModuleBuilder()
    _ComplexSolve(module).write()
    return module.text(execution_engine.heading())


class _Tile(NamedTuple):
    """Rows that are accumulated in registers.

    kind : what follows the sums: nothing ("update"), or a solution with the triangle of the rows
        on the diagonal ("forward": unit lower, "backward": upper).
    rows : their number.
    """

    kind: str
    rows: int

    @property
    def name(self) -> str:
        """The name of its function."""
        return f"{self.kind}.{self.rows}"


class _ComplexSolve(VectorCode):
    """The functions, which `write` adds to a module."""

    def __init__(self, module: ModuleBuilder) -> None:
        super().__init__(module, F64)
        self.panel = _VECTORS * self.width
        self.rows = 4 if execution_engine.vector_bytes() == 64 else 2

    def write(self) -> None:
        """Add all functions."""
        for kind in ("update", "forward", "backward"):
            for rows in (self.rows, 1):
                self._tile(_Tile(kind, rows))
        self._separate()
        self._join()
        self._rows("update")
        self._rows("forward")
        self._backward()
        self._factor_panel()
        self._factor()
        self._solve()

    # ---- tiles ---------------------------------------------------------------------------------

    # A matrix of factors: `%f` its first element, `%row_of_f`, and the distance of imaginary parts.
    # Vectors: `%x` the rows that are multiplied, `%c` those that are changed, and the same.
    _FACTORS = "ptr f, i64 row_of_f, i64 part_of_f"
    _VECTORS_OF = "ptr x, ptr c, i64 row, i64 part"

    def _tile(self, tile: _Tile) -> None:
        """c -= f @ x for some rows of c and all k rows of x, then a solution with a triangle.

        `%triangle` is the element of the factors on the diagonal, `%inverse` that of the
        reciprocals of the diagonal.
        """
        given = f"i64 k, {self._FACTORS}, {self._VECTORS_OF}, ptr triangle, ptr inverse"
        function = self.function(tile.name, given)
        body, indices = function.body, range(tile.rows)
        places = [self.at(body, "%c", (str(i), "%row")) for i in indices]
        slots = [
            [[function.slot(self.vector) for _ in range(_VECTORS)] for _ in "ri"] for _ in indices
        ]
        for i in indices:
            for p, lanes in enumerate(self._row(body, places[i], "%part")):
                for v, lane in enumerate(lanes):
                    body.write(f"store {self.vector} {lane}, ptr {slots[i][p][v]}")
        factors = [self.at(body, "%f", (str(i), "%row_of_f")) for i in indices]
        with body.loop("0", "%k") as (s, k):
            x = self._row(s, self.at(s, "%x", (k, "%row")), "%part")
            for i in indices:
                factor = self._number(s, self.at(s, factors[i], (k, "1")), "%part_of_f")
                old = [[s.value(f"load {self.vector}, ptr {y}") for y in part] for part in slots[i]]
                for p, lanes in enumerate(self._minus_product(s, old, factor, x)):
                    for v, lane in enumerate(lanes):
                        s.write(f"store {self.vector} {lane}, ptr {slots[i][p][v]}")
        rows = [
            [[body.value(f"load {self.vector}, ptr {y}") for y in part] for part in slots[i]]
            for i in indices
        ]
        order = list(indices) if tile.kind != "backward" else list(reversed(indices))
        for i in order if tile.kind != "update" else ():
            if tile.kind == "backward":
                inverse = self._number(body, self.at(body, "%inverse", (str(i), "2")), "1")
                rows[i] = self._times(body, inverse, rows[i])
            for j in order[order.index(i) + 1 :]:
                place = self.at(body, "%triangle", (str(j), "%row_of_f"), (str(i), "1"))
                factor = self._number(body, place, "%part_of_f")
                rows[j] = self._minus_product(body, rows[j], factor, rows[i])
        for i in indices:
            self._store_row(body, rows[i], places[i], "%part")
        self.close(function)

    def _row(self, s: Section, place: Name, part: Name) -> list[list[Name]]:
        """Load a row of a panel: vectors of real parts, and of imaginary parts."""
        places = [place, self.at(s, place, (part, "1"))]
        return [[self.load(s, one, v) for v in range(_VECTORS)] for one in places]

    def _store_row(
        self, s: Section, lanes: Sequence[Sequence[Name]], place: Name, part: Name
    ) -> None:
        for one, at in zip(lanes, [place, self.at(s, place, (part, "1"))], strict=True):
            for v, lane in enumerate(one):
                self.store(s, lane, at, v)

    def _number(self, s: Section, place: Name, part: Name) -> tuple[Name, Name]:
        """Vectors of the real and the imaginary part of a number."""
        places = [place, self.at(s, place, (part, "1"))]
        real, imag = [self.broadcast(s, s.value(f"load {self.kind}, ptr {x}")) for x in places]
        return real, imag

    def _minus_product(
        self,
        s: Section,
        old: Sequence[Sequence[Name]],
        factor: tuple[Name, Name],
        x: Sequence[Sequence[Name]],
    ) -> list[list[Name]]:
        """A row minus the product of a number and a row."""
        imag = factor[1]
        less = [s.value(f"fneg {self.vector} {y}") for y in factor]
        reals = [self.fma(s, less[0], xr, c) for xr, c in zip(x[0], old[0], strict=True)]
        imags = [self.fma(s, less[0], xi, c) for xi, c in zip(x[1], old[1], strict=True)]
        return [
            [self.fma(s, imag, xi, c) for xi, c in zip(x[1], reals, strict=True)],
            [self.fma(s, less[1], xr, c) for xr, c in zip(x[0], imags, strict=True)],
        ]

    def _times(
        self, s: Section, factor: tuple[Name, Name], x: Sequence[Sequence[Name]]
    ) -> list[list[Name]]:
        """The product of a number and a row."""
        real, imag = factor
        less = s.value(f"fneg {self.vector} {imag}")

        def scaled(y: Name, z: Name, of_z: Name) -> Name:
            return self.fma(s, real, y, s.value(f"fmul {self.vector} {of_z}, {z}"))

        return [
            [scaled(xr, xi, less) for xr, xi in zip(x[0], x[1], strict=True)],
            [scaled(xi, xr, imag) for xr, xi in zip(x[0], x[1], strict=True)],
        ]

    # ---- loops over the rows of a panel --------------------------------------------------------

    def _rows(self, kind: str) -> None:
        """Update all n rows of c by k rows of x; or substitute forward, with x = c, in n rows."""
        given = f"i64 n, i64 k, {self._FACTORS}, {self._VECTORS_OF}"
        function = self.function(f"{kind}.all", given)
        body = function.body
        start = "0"
        for rows in (self.rows, 1):
            rest = body.value(f"srem i64 {body.minus('%n', start)}, {rows}")
            stop = body.minus("%n", rest)
            with body.loop(start, stop, str(rows)) as (s, i):
                f, c = self.at(s, "%f", (i, "%row_of_f")), self.at(s, "%c", (i, "%row"))
                triangle = self.at(s, f, (i, "1"))
                self._call(
                    s,
                    _Tile(kind, rows),
                    "%k" if kind == "update" else i,
                    (f, "%x", c, triangle, "null"),
                )
            start = stop
        self.close(function)

    def _backward(self) -> None:
        """Substitute backward in n rows, from the last one."""
        given = f"i64 n, {self._FACTORS}, {self._VECTORS_OF}, ptr inverse"
        function = self.function("backward.all", given)
        body = function.body
        rest = body.value(f"srem i64 %n, {self.rows}")
        whole = body.minus("%n", rest)
        for rows, count, last in ((1, rest, "%n"), (self.rows, whole, whole)):
            with body.loop("0", count, str(rows)) as (s, done):
                i = s.minus(s.minus(last, done), str(rows))
                after = s.plus(i, str(rows))
                f = self.at(s, "%f", (i, "%row_of_f"), (after, "1"))
                triangle = self.at(s, "%f", (i, "%row_of_f"), (i, "1"))
                x, c = (self.at(s, "%c", (y, "%row")) for y in (after, i))
                inverse = self.at(s, "%inverse", (i, "2"))
                self._call(
                    s, _Tile("backward", rows), s.minus("%n", after), (f, x, c, triangle, inverse)
                )
        self.close(function)

    def _call(self, s: Section, tile: _Tile, k: Name, places: Sequence[Name]) -> None:
        f, x, c, triangle, inverse = places
        s.write(
            f"call void @{tile.name}(i64 {k}, ptr {f}, i64 %row_of_f, i64 %part_of_f, ptr {x}, "
            f"ptr {c}, i64 %row, i64 %part, ptr {triangle}, ptr {inverse})"
        )

    # ---- the factorization ---------------------------------------------------------------------

    def _factor_panel(self) -> None:
        """Factorize some columns, at most those of a panel, from row `first` on.

        Whole rows are exchanged, and so are their numbers in `order`.  Returns 1 if a pivot is zero
        or has no reciprocal.
        """
        given = "i64 n, i64 first, i64 count, ptr f, i64 row, i64 part, ptr order, ptr inverse"
        function = self.function("factor_panel", given, "i64")
        body, kind = function.body, self.kind
        best, place = function.slot(kind), function.slot("i64")
        stop = body.plus("%first", "%count")
        with body.loop("%first", stop) as (s, j):
            s.write(f"store {kind} {self._size(s, j, j)}, ptr {best}")
            s.write(f"store i64 {j}, ptr {place}")
            with s.loop(s.plus(j, "1"), "%n") as (t, i):
                size = self._size(t, i, j)
                wins = t.value(f"fcmp ogt {kind} {size}, {t.value(f'load {kind}, ptr {best}')}")
                with t.when(wins) as u:
                    u.write(f"store {kind} {size}, ptr {best}")
                    u.write(f"store i64 {i}, ptr {place}")
            bad = s.value(f"fcmp olt {kind} {s.value(f'load {kind}, ptr {best}')}, {_LEAST_PIVOT}")
            with s.when(bad) as t:
                t.write("ret i64 1")
                t.label(
                    f"other{function.number()}"
                )  # unreachable: the following code needs a block
            pivot = s.value(f"load i64, ptr {place}")
            with s.when(s.value(f"icmp ne i64 {pivot}, {j}")) as t:
                self._exchange(t, j, pivot)
            row = self.at(s, "%f", (j, "%row"))
            inverse = self._reciprocal(s, self.at(s, row, (j, "1")))
            target = self.at(s, "%inverse", (j, "2"))
            for p, x in enumerate(inverse):
                s.write(f"store {kind} {x}, ptr {offset(s, target, str(p), F64)}")
            self._eliminate(s, j, row, inverse)
        body.write("ret i64 0")
        self.module.add(function)

    def _eliminate(self, s: Section, j: Name, row: Name, inverse: Sequence[Name]) -> None:
        """Subtract multiples of row j from the rows below, in the columns of the panel."""
        kind, vector = self.kind, self.vector
        column = s.minus(j, "%first")
        upto, before = (self.masks(s, x, _VECTORS) for x in (s.plus(column, "1"), column))
        bits = of_width("i1", self.width)
        here = [s.value(f"xor {bits} {x}, {y}") for x, y in zip(upto, before, strict=True)]
        start = self.at(s, row, ("%first", "1"))
        pivots = [
            [
                s.value(f"select {bits} {m}, {vector} zeroinitializer, {vector} {x}")
                for m, x in zip(upto, part, strict=True)
            ]
            for part in self._row(s, start, "%part")
        ]
        with s.loop(s.plus(j, "1"), "%n") as (t, i):
            place = self.at(t, "%f", (i, "%row"))
            parts = [place, self.at(t, place, ("%part", "1"))]
            re, im = [t.value(f"load {kind}, ptr {self.at(t, x, (j, '1'))}") for x in parts]
            factor = self._product(t, (re, im), inverse)
            wide = self.broadcast(t, factor[0]), self.broadcast(t, factor[1])
            start = self.at(t, place, ("%first", "1"))
            old = self._row(t, start, "%part")
            new = self._minus_product(t, old, wide, pivots)
            kept = [
                [
                    t.value(f"select {bits} {m}, {vector} {wide[p]}, {vector} {x}")
                    for m, x in zip(here, part, strict=True)
                ]
                for p, part in enumerate(new)
            ]
            self._store_row(t, kept, start, "%part")

    def _size(self, s: Section, i: Name, j: Name) -> Name:
        """|re| + |im| of an element."""
        place = self.at(s, "%f", (i, "%row"), (j, "1"))
        callee = self.module.declare(f"llvm.fabs{suffix(self.kind, 1)}", self.kind, [self.kind])
        re, im = [
            s.value(
                f"call {self.kind} {callee}({self.kind} {s.value(f'load {self.kind}, ptr {x}')})"
            )
            for x in (place, self.at(s, place, ("%part", "1")))
        ]
        return s.value(f"fadd {self.kind} {re}, {im}")

    def _exchange(self, s: Section, j: Name, other: Name) -> None:
        """Exchange two rows and their numbers."""
        rows = [self.at(s, "%f", (x, "%row")) for x in (j, other)]
        with s.loop("0", "%row", str(self.width)) as (t, k):
            places = [self.at(t, x, (k, "1")) for x in rows]
            values = [self.load(t, x, 0) for x in places]
            for place, value in zip(places, reversed(values), strict=True):
                self.store(t, value, place, 0)
        numbers = [s.value(f"getelementptr i64, ptr %order, i64 {x}") for x in (j, other)]
        before = [s.value(f"load i64, ptr {x}") for x in numbers]
        for place, number in zip(numbers, reversed(before), strict=True):
            s.write(f"store i64 {number}, ptr {place}")

    def _reciprocal(self, s: Section, place: Name) -> list[Name]:
        """1 / z without intermediate overflow (R. L. Smith, Algorithm 116, 1962)."""
        kind = self.kind
        re, im = [
            s.value(f"load {kind}, ptr {x}") for x in (place, self.at(s, place, ("%part", "1")))
        ]
        callee = self.module.declare(f"llvm.fabs{suffix(kind, 1)}", kind, [kind])
        sizes = [s.value(f"call {kind} {callee}({kind} {x})") for x in (re, im)]
        by_real = s.value(f"fcmp oge {kind} {sizes[0]}, {sizes[1]}")
        larger = s.value(f"select i1 {by_real}, {kind} {re}, {kind} {im}")
        other = s.value(f"select i1 {by_real}, {kind} {im}, {kind} {re}")
        ratio = s.value(f"fdiv {kind} {other}, {larger}")
        size = s.value(f"fadd {kind} {larger}, {s.value(f'fmul {kind} {other}, {ratio}')}")
        one = s.value(f"fdiv {kind} 1.0, {size}")
        two = s.value(f"fmul {kind} {ratio}, {one}")
        real = s.value(f"select i1 {by_real}, {kind} {one}, {kind} {two}")
        imag = s.value(f"select i1 {by_real}, {kind} {two}, {kind} {one}")
        return [real, s.value(f"fneg {kind} {imag}")]

    def _product(self, s: Section, x: Sequence[Name], y: Sequence[Name]) -> tuple[Name, Name]:
        """The product of two numbers."""
        kind = self.kind
        products = {
            (p, q): s.value(f"fmul {kind} {x[p]}, {y[q]}") for p in range(2) for q in range(2)
        }
        real = s.value(f"fsub {kind} {products[0, 0]}, {products[1, 1]}")
        return real, s.value(f"fadd {kind} {products[0, 1]}, {products[1, 0]}")

    def _factor(self) -> None:
        """Factorize a matrix of n rows; returns 1 if a pivot is zero or has no reciprocal."""
        given = "i64 n, ptr f, i64 row, i64 part, ptr order, ptr inverse"
        function = self.function("factor", given, "i64")
        body, panel = function.body, str(self.panel)
        with body.loop("0", "%n", panel) as (s, first):
            count = s.smaller(s.minus("%n", first), panel)
            status = s.value(
                f"call i64 @factor_panel(i64 %n, i64 {first}, i64 {count}, ptr %f, i64 %row, "
                "i64 %part, ptr %order, ptr %inverse)"
            )
            with s.when(s.value(f"icmp ne i64 {status}, 0")) as t:
                t.write("ret i64 1")
                t.label(
                    f"other{function.number()}"
                )  # unreachable: the following code needs a block
            after = s.plus(first, panel)
            block = self.at(s, "%f", (first, "%row"), (first, "1"))
            below = self.at(s, "%f", (after, "%row"), (first, "1"))
            with s.loop(after, "%n", panel) as (t, j):
                x, c = (self.at(t, "%f", (i, "%row"), (j, "1")) for i in (first, after))
                rows = t.minus("%n", after)
                t.write(
                    f"call void @forward.all(i64 {panel}, i64 0, ptr {block}, i64 %row, i64 %part, "
                    f"ptr {x}, ptr {x}, i64 %row, i64 %part)"
                )
                t.write(
                    f"call void @update.all(i64 {rows}, i64 {panel}, ptr {below}, i64 %row, "
                    f"i64 %part, ptr {x}, ptr {c}, i64 %row, i64 %part)"
                )
        body.write("ret i64 0")
        self.module.add(function)

    # ---- copies --------------------------------------------------------------------------------

    def _separate(self) -> None:
        """Copy `columns` complex numbers to their parts, in places that have zeros."""
        function = self.function("separate", "i64 columns, ptr of, i64 column, ptr to, i64 part")
        body = function.body
        rest = body.value(f"and i64 %columns, {self.width - 1}")
        is_contiguous = body.value("icmp eq i64 %column, 1")
        whole = body.value(f"select i1 {is_contiguous}, i64 {body.minus('%columns', rest)}, i64 0")
        imag = self.at(body, "%to", ("%part", "1"))
        with body.loop("0", whole, str(self.width)) as (s, k):
            pair = [self.load(s, self.at(s, "%of", (k, "2")), v) for v in range(2)]
            for p, target in enumerate(("%to", imag)):
                picked = [2 * i + p for i in range(self.width)]
                self.store(s, self._shuffled(s, pair, picked), self.at(s, target, (k, "1")), 0)
        with body.loop(whole, "%columns") as (s, k):
            source = self.at(s, "%of", (s.times(k, "2"), "%column"))
            for p, target in enumerate(("%to", imag)):
                x = s.value(f"load {self.kind}, ptr {offset(s, source, str(p), F64)}")
                s.write(f"store {self.kind} {x}, ptr {self.at(s, target, (k, '1'))}")
        self.close(function)

    def _join(self) -> None:
        """Copy parts to `columns` adjacent complex numbers."""
        function = self.function("join", "i64 columns, ptr of, i64 part, ptr to")
        body = function.body
        rest = body.value(f"and i64 %columns, {self.width - 1}")
        whole = body.minus("%columns", rest)
        imag = self.at(body, "%of", ("%part", "1"))
        half = self.width // 2
        with body.loop("0", whole, str(self.width)) as (s, k):
            pair = [self.load(s, self.at(s, x, (k, "1")), 0) for x in ("%of", imag)]
            target = self.at(s, "%to", (k, "2"))
            for v in range(2):
                picked = [p * self.width + v * half + i for i in range(half) for p in range(2)]
                self.store(s, self._shuffled(s, pair, picked), target, v)
        with body.loop(whole, "%columns") as (s, k):
            target = self.at(s, "%to", (k, "2"))
            for p, source in enumerate(("%of", imag)):
                x = s.value(f"load {self.kind}, ptr {self.at(s, source, (k, '1'))}")
                s.write(f"store {self.kind} {x}, ptr {offset(s, target, str(p), F64)}")
        self.close(function)

    def _shuffled(self, s: Section, pair: Sequence[Name], picked: Sequence[int]) -> Name:
        vector, counts = self.vector, of_width("i32", len(picked))
        lanes = ", ".join(f"i32 {i}" for i in picked)
        return s.value(f"shufflevector {vector} {pair[0]}, {vector} {pair[1]}, {counts} <{lanes}>")

    # ---- the system ----------------------------------------------------------------------------

    def _solve(self) -> None:
        given = (
            "i64 n, i64 m, ptr a, i64 row_of_a, i64 column_of_a, "
            "ptr b, i64 row_of_b, i64 column_of_b, ptr x, i64 row_of_x"
        )
        function = self.function(NAME, given, "i64", linkage="")
        body, panel, item = function.body, str(self.panel), self.dtype.itemsize
        # Rows are whole panels, and one more cache line, so that they do not compete for lines.
        rounded = body.value(f"and i64 {body.plus('%n', str(self.panel - 1))}, {-self.panel}")
        part = body.plus(rounded, str(self.panel // 2))
        row = body.times(part, "2")
        of_panel = str(2 * self.panel)
        counts = [body.times("%n", x) for x in (row, of_panel, "2", "1")]
        total = functools.reduce(body.plus, counts)
        size = body.plus(body.times(total, str(item)), str(_CACHE_LINE))
        allocate = self._runtime("wengert_alloc", "ptr", "i64")
        memory = body.value(f"call ptr {allocate}(i64 {size})")
        with body.when(body.value(f"icmp eq ptr {memory}, null")) as s:
            s.write("ret i64 1")
            s.label(f"other{function.number()}")  # unreachable: the following code needs a block
        places, f = [], memory
        for count in counts:
            places.append(f)
            f = offset(body, f, count, self.dtype)
        f, vectors, inverse, order = places
        clear = self.module.declare("llvm.memset.p0.i64", "void", ["ptr", "i8", "i64", "i1"])
        size = body.times(body.plus(counts[0], counts[1]), str(item))
        body.write(f"call void {clear}(ptr {f}, i8 0, i64 {size}, i1 false)")
        with body.loop("0", "%n") as (s, i):
            s.write(f"store i64 {i}, ptr {s.value(f'getelementptr i64, ptr {order}, i64 {i}')}")
            source = self.at(s, "%a", (s.times(i, "2"), "%row_of_a"))
            target = self.at(s, f, (i, row))
            s.write(
                f"call void @separate(i64 %n, ptr {source}, i64 %column_of_a, "
                f"ptr {target}, i64 {part})"
            )
        factors = f"ptr {f}, i64 {row}, i64 {part}"
        status = body.value(f"call i64 @factor(i64 %n, {factors}, ptr {order}, ptr {inverse})")
        regular = body.value(f"icmp eq i64 {status}, 0")
        columns = body.value(f"select i1 {regular}, i64 %m, i64 0")
        with body.loop("0", columns, panel) as (s, j):
            count = s.smaller(s.minus("%m", j), panel)
            with s.loop("0", "%n") as (t, i):
                number = t.value(
                    f"load i64, ptr {t.value(f'getelementptr i64, ptr {order}, i64 {i}')}"
                )
                source = self.at(
                    t, "%b", (t.times(number, "2"), "%row_of_b"), (t.times(j, "2"), "%column_of_b")
                )
                target = self.at(t, vectors, (i, of_panel))
                t.write(
                    f"call void @separate(i64 {count}, ptr {source}, i64 %column_of_b, "
                    f"ptr {target}, i64 {panel})"
                )
            given = f"{factors}, ptr {vectors}, ptr {vectors}, i64 {of_panel}, i64 {panel}"
            s.write(f"call void @forward.all(i64 %n, i64 0, {given})")
            s.write(f"call void @backward.all(i64 %n, {given}, ptr {inverse})")
            with s.loop("0", "%n") as (t, i):
                source = self.at(t, vectors, (i, of_panel))
                target = self.at(t, "%x", (t.times(i, "2"), "%row_of_x"), (j, "2"))
                t.write(f"call void @join(i64 {count}, ptr {source}, i64 {panel}, ptr {target})")
        body.write(f"call void {self._runtime('wengert_free', 'void', 'ptr')}(ptr {memory})")
        body.write(f"ret i64 {status}")
        self.module.add(function)

    def _runtime(self, name: str, result: str, argument: str) -> str:
        return self.module.declare(name, result, [argument], "nounwind")
