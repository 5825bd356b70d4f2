"""Substitution with LU factors of real matrices that fit into a first-level cache.

    solve_vector     the solution for one right-hand side, in place (vector_substitution.py)
    solve_columns    the solutions for several

As many right-hand sides as two vectors have elements are copied together, with rows exchanged; then
four rows of a factor are applied at a time, whose sums are in registers.
"""

from __future__ import annotations

from ...ir.ir_builder import Function, ModuleBuilder, Name, Section
from ...tuning import thresholds
from ..fortran_calls import call_shared
from ..kernel_call import ArrayPointer, KernelCall
from . import vector_substitution
from .lu_in_cache import LEAST_PIVOT, LuCode

NAME = "wengert_lu_columns"
_HEIGHT = 4  # rows at a time
_POWER = 600  # of two: the product of a small pivot with it is a normal number


class ColumnSubstitution(LuCode):
    """The function for several right-hand sides."""

    _OF_BLOCK = "i64 n, ptr a, i64 down, i64 right, ptr forward, ptr backward, double power, ptr b"

    def write(self) -> None:
        """Add the functions."""
        for vectors in (1, 2):
            self._copy(vectors)
            self._block(vectors)
        self._solve()

    # ---- all columns -----------------------------------------------------------------------------

    def _solve(self) -> None:
        given = (
            "i64 n, i64 m, i64 is_transposed, ptr a, ptr pivots, ptr b, i64 row_of_b, "
            "i64 column_of_b, ptr x, i64 row_of_x, i64 column_of_x"
        )
        function = self.function(NAME, given, "i64", linkage="")
        body, most = function.body, thresholds.lu_in_cache_rows
        order = function.slot(f"[{most} x i64]", 64)
        scales = [function.slot(f"[{most} x double]", 64) for _ in range(2)]
        work = function.slot(f"[{most * 2 * self.width} x double]", 64)
        self._order(body, order)
        transposes = body.value("icmp ne i64 %is_transposed, 0")

        def either(kind: str, x: Name, y: Name) -> Name:
            return body.value(f"select i1 {transposes}, {kind} {x}, {kind} {y}")

        forward, backward = either("ptr", *scales), either("ptr", *reversed(scales))
        power = self._scales(function, *scales)
        down, right = either("i64", "%n", "1"), either("i64", "1", "%n")
        wide = str(2 * self.width)
        with body.loop("0", "%m", wide) as (s, first):
            count = s.smaller(s.minus("%m", first), wide)
            is_wide = s.value(f"icmp sgt i64 {count}, {self.width}")
            for vectors, section in ((2, s.when(is_wide)), (1, s.unless(is_wide))):
                with section as t:
                    self._part(t, vectors, (first, count), (order, work, transposes), (
                        f"i64 %n, ptr %a, i64 {down}, i64 {right}, ptr {forward}, "
                        f"ptr {backward}, double {power}, ptr {work}"
                    ))  # fmt: skip
        body.write("ret i64 0")
        self.module.add(function)

    def _part(
        self,
        s: Section,
        vectors: int,
        part: tuple[Name, Name],
        places: tuple[Name, Name, Name],
        given: str,
    ) -> None:
        """Solve for some columns: copy them, substitute, and copy the solutions."""
        (first, count), (order, work, transposes) = part, places
        old = self.at(s, "%b", (first, "%column_of_b"))
        new = self.at(s, "%x", (first, "%column_of_x"))
        keeps = s.value(f"xor i1 {transposes}, true")
        copy, lengths = f"call void @{NAME}.copy{vectors}", f"i64 %n, i64 {count}, ptr {order}"
        s.write(
            f"{copy}({lengths}, i1 {keeps}, i1 false, ptr {old}, i64 %row_of_b, i64 %column_of_b, "
            f"ptr {work})"
        )
        s.write(f"call void @{NAME}.block{vectors}({given})")
        s.write(
            f"{copy}({lengths}, i1 {transposes}, i1 true, ptr {new}, i64 %row_of_x, "
            f"i64 %column_of_x, ptr {work})"
        )

    def _order(self, s: Section, order: Name) -> None:
        """The order of rows after the exchanges."""
        with s.loop("0", "%n") as (t, k):
            t.write(f"store i64 {k}, ptr {self.at(t, order, (k, '1'))}")
        with s.loop("0", "%n") as (t, k):
            row = t.value(f"load i32, ptr {t.value(f'getelementptr i32, ptr %pivots, i64 {k}')}")
            other = t.minus(t.value(f"sext i32 {row} to i64"), "1")
            places = [self.at(t, order, (i, "1")) for i in (k, other)]
            one, two = [t.value(f"load i64, ptr {p}") for p in places]
            t.write(f"store i64 {two}, ptr {places[0]}")
            t.write(f"store i64 {one}, ptr {places[1]}")

    def _scales(self, function: Function, inverses: Name, ones: Name) -> Name:
        """Write reciprocals of the pivots, and ones; the power of two that both lack.

        It is 1 unless a pivot is nearly zero.  Returns from the function if one is zero.
        """
        body, least = function.body, self.least_pivot(function)
        with body.when(body.value(f"fcmp oeq double {least}, 0.0")) as s:
            s.write("ret i64 1")
            s.label(f"other{function.number()}")  # unreachable: the following code needs a block
        is_small = body.value(f"fcmp olt double {least}, {LEAST_PIVOT}")
        power = body.value(f"select i1 {is_small}, double {2.0**_POWER:e}, double 1.0")
        one = body.value(f"fdiv double 1.0, {power}")
        with body.loop("0", "%n") as (s, k):
            pivot = s.value(f"load double, ptr {self.at(s, '%a', (k, '%n'), (k, '1'))}")
            inverse = s.value(f"fdiv double 1.0, {s.value(f'fmul double {pivot}, {power}')}")
            s.write(f"store double {inverse}, ptr {self.at(s, inverses, (k, '1'))}")
            s.write(f"store double {one}, ptr {self.at(s, ones, (k, '1'))}")
        return power

    # ---- some columns ----------------------------------------------------------------------------

    def _copy(self, vectors: int) -> None:
        """Copy columns to adjacent memory, or from it; rows outside of it are in an order."""
        given = "i64 n, i64 count, ptr order, i1 permutes, i1 writes, ptr x, i64 row, i64 column"
        function = self.function(f"{NAME}.copy{vectors}", f"{given}, ptr work")
        body, wide = function.body, str(vectors * self.width)
        masks = self.masks(body, "%count", vectors)
        is_dense = body.value("icmp eq i64 %column, 1")
        with body.loop("0", "%n") as (s, i):
            place = s.value(f"load i64, ptr {self.at(s, '%order', (i, '1'))}")
            outside = s.value(f"select i1 %permutes, i64 {place}, i64 {i}")
            row, work = self.at(s, "%x", (outside, "%row")), self.at(s, "%work", (i, wide))
            with s.when(is_dense) as t:
                with t.when("%writes") as u:
                    for v, mask in enumerate(masks):
                        self.masked_store(u, self.load(u, work, v), row, v, mask)
                with t.unless("%writes") as u:
                    for v, mask in enumerate(masks):
                        self.store(u, self.masked_load(u, row, v, mask), work, v)
            with s.unless(is_dense) as t, t.loop("0", "%count") as (u, j):
                one, two = self.at(u, row, (j, "%column")), self.at(u, work, (j, "1"))
                source = u.value(f"select i1 %writes, ptr {two}, ptr {one}")
                target = u.value(f"select i1 %writes, ptr {one}, ptr {two}")
                u.write(f"store double {u.value(f'load double, ptr {source}')}, ptr {target}")
        self.close(function)

    def _block(self, vectors: int) -> None:
        """Substitute forward and backward for some columns."""
        function = self.function(f"{NAME}.block{vectors}", self._OF_BLOCK)
        body, height = function.body, str(_HEIGHT)
        full, rest = body.value(f"and i64 %n, {-_HEIGHT}"), body.value(f"and i64 %n, {_HEIGHT - 1}")
        with body.loop("0", full, height) as (s, i):
            self._rows(s, vectors, i, _HEIGHT, ("0", i), "%forward")
        with body.loop(full, "%n") as (s, i):
            self._rows(s, vectors, i, 1, ("0", i), "%forward")
        with body.loop("0", full, height) as (s, i):
            first = s.minus(s.minus("%n", height), i)
            self._rows(s, vectors, first, _HEIGHT, (s.plus(first, height), "%n"), "%backward")
        with body.loop("0", rest) as (s, i):
            first = s.minus(s.minus(rest, "1"), i)
            self._rows(s, vectors, first, 1, (s.plus(first, "1"), "%n"), "%backward")
        self.close(function)

    def _rows(
        self,
        s: Section,
        vectors: int,
        first: Name,
        height: int,
        known: tuple[Name, Name],
        scale: Name,
    ) -> None:
        """Solve for some rows: subtract the known ones, then a triangle."""
        wide, function = str(vectors * self.width), s.function
        places = [self.at(s, "%b", (s.plus(first, str(q)), wide)) for q in range(height)]
        sums = [[function.slot(self.vector) for _ in range(vectors)] for _ in places]
        for place, row in zip(places, sums, strict=True):
            for v, slot in enumerate(row):
                s.write(f"store {self.vector} {self.load(s, place, v)}, ptr {slot}")
        factors = [self.at(s, "%a", (s.plus(first, str(q)), "%down")) for q in range(height)]
        with s.loop(*known) as (t, k):
            row_of_b = self.at(t, "%b", (k, wide))
            xs = [self.load(t, row_of_b, v) for v in range(vectors)]
            for factor, row in zip(factors, sums, strict=True):
                other = self._factor(t, factor, k)
                for x, slot in zip(xs, row, strict=True):
                    old = t.value(f"load {self.vector}, ptr {slot}")
                    new = self.minus_product(t, other, x, old)
                    t.write(f"store {self.vector} {new}, ptr {slot}")
        ys = [[s.value(f"load {self.vector}, ptr {slot}") for slot in row] for row in sums]
        power = self.broadcast(s, "%power")
        numbers = range(height) if scale == "%forward" else range(height)[::-1]
        for q in numbers:
            index = s.plus(first, str(q))
            inverse = s.value(f"load double, ptr {self.at(s, scale, (index, '1'))}")
            wide_inverse = self.broadcast(s, inverse)
            for v in range(vectors):
                scaled = s.value(f"fmul {self.vector} {ys[q][v]}, {power}")
                ys[q][v] = s.value(f"fmul {self.vector} {scaled}, {wide_inverse}")
                self.store(s, ys[q][v], places[q], v)
            for p in range(q + 1, height) if scale == "%forward" else range(q):
                other = self._factor(s, factors[p], index)
                for v in range(vectors):
                    ys[p][v] = self.minus_product(s, other, ys[q][v], ys[p][v])

    def _factor(self, s: Section, row: Name, k: Name) -> Name:
        """A vector of one element of a row of a factor."""
        return self.broadcast(s, s.value(f"load double, ptr {self.at(s, row, (k, '%right'))}"))


def solve_vector(
    call: KernelCall,
    s: Section,
    n: int,
    factors: Name,
    pivots: Name,
    x: Name,
    is_transposed: bool = False,
) -> None:
    """Replace x, with memory for `padded(n)` numbers, by the solution; fails for a zero pivot.

    factors, pivots : as getrf returns them, column-major.
    """
    arguments = [("i64", str(n)), ("ptr", factors), ("ptr", pivots), ("ptr", x)]
    call_shared(call, s, vector_substitution.NAMES[is_transposed], arguments)


def solve_columns(
    call: KernelCall,
    s: Section,
    factors: Name,
    pivots: Name,
    b: ArrayPointer,
    x: ArrayPointer,
    is_transposed: bool = False,
) -> None:
    """Write the solutions x for the columns of b; fails for a zero pivot."""
    arguments = [("i64", call.number(n)) for n in x.shape]
    arguments += [("i64", str(int(is_transposed))), ("ptr", factors), ("ptr", pivots)]
    for array in (b, x):
        strides = [("i64", call.number(n)) for n in array.strides]
        arguments += [("ptr", array.pointer), *strides]
    call_shared(call, s, NAME, arguments)


def emit(module: ModuleBuilder, name: str) -> None:
    """Add the function for several right-hand sides.

    ``i64 (n, m, is_transposed, a, pivots, b, row, column, x, row, column)``: strides count
    elements.  Returns 1 if a pivot is zero.
    """
    ColumnSubstitution(module).write()
