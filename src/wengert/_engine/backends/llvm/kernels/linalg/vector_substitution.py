"""Substitution with LU factors in a first-level cache, for one right-hand side.

    VectorSubstitution    the functions for a matrix and for its transpose, as LLVM IR

As many unknowns as a vector has elements are found in a register, from a square of the factor.
With a matrix they are then subtracted from the other unknowns, a column of the factor for each;
with a transpose the sums of the known unknowns are products with columns, computed before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ...ir.ir_builder import ModuleBuilder, Name, Section
from ...ir.llvm_types import suffix
from ..loop_helpers import transposed
from .lu_in_cache import LEAST_PIVOT, LuCode

NAMES = {False: "wengert_lu_vector", True: "wengert_lu_vector_t"}  # by transposition


class VectorSubstitution(LuCode):
    """A function, which `write` adds to a module."""

    _GIVEN = "i64 n, ptr a, ptr pivots, ptr x"

    def __init__(self, module: ModuleBuilder, is_transposed: bool) -> None:
        super().__init__(module)
        self.is_transposed = is_transposed

    def write(self) -> None:
        """Add the function, and the one that it calls for nearly zero pivots."""
        self._careful()
        name = NAMES[self.is_transposed]
        function = self.function(name, self._GIVEN, "i64", linkage="")
        body = function.body
        if not self.is_transposed:
            self._exchange(body)
        least = self.least_pivot(function)
        with body.when(body.value(f"fcmp olt double {least}, {LEAST_PIVOT}")) as s:
            status = s.value(f"call i64 @{name}.careful(i64 %n, ptr %a, ptr %pivots, ptr %x)")
            s.write(f"ret i64 {status}")
            s.label(f"other{function.number()}")  # unreachable: the following code needs a block
        full = body.value(f"and i64 %n, {-self.width}")
        mask = self.masks(body, body.minus("%n", full), 1)[0]
        if self.is_transposed:
            self._transposed(body, full, mask)
            self._exchange(body)
        else:
            self._direct(body, full, mask)
        body.write("ret i64 0")
        self.module.add(function)

    # ---- what both have --------------------------------------------------------------------------

    def _exchange(self, s: Section) -> None:
        """Exchange the elements of x as the pivots say; in reverse order for a transpose."""
        last = s.minus("%n", "1")
        with s.loop("0", "%n") as (t, i):
            k = t.minus(last, i) if self.is_transposed else i
            row = t.value(f"load i32, ptr {t.value(f'getelementptr i32, ptr %pivots, i64 {k}')}")
            other = t.minus(t.value(f"sext i32 {row} to i64"), "1")
            with t.when(t.value(f"icmp ne i64 {other}, {k}")) as u:
                places = [self._of_x(u, i) for i in (k, other)]
                one, two = [u.value(f"load double, ptr {p}") for p in places]
                u.write(f"store double {two}, ptr {places[0]}")
                u.write(f"store double {one}, ptr {places[1]}")

    def _of_x(self, s: Section, i: Name) -> Name:
        return self.at(s, "%x", (i, "1"))

    def _of_a(self, s: Section, i: Name, j: Name) -> Name:
        return self.at(s, "%a", (j, "%n"), (i, "1"))

    def _inverse(self, s: Section, k: Name) -> Name:
        return s.value(f"fdiv double 1.0, {s.value(f'load double, ptr {self._of_a(s, k, k)}')}")

    def _flags(self, lanes: Iterable[int]) -> Name:
        """The constant with these lanes set."""
        chosen = set(lanes)
        flags = [f"i1 {'true' if i in chosen else 'false'}" for i in range(self.width)]
        return f"<{', '.join(flags)}>"

    def _triangle(
        self,
        s: Section,
        x: Name,
        first: Name,
        column: Callable[[int], Name],
        downward: bool,
        divides: bool,
    ) -> tuple[Name, list[Name]]:
        """Solve a triangular system in a register: the solution, and vectors of its elements."""
        known = [""] * self.width
        for k in range(self.width) if downward else reversed(range(self.width)):
            known[k] = self.lane(s, x, k)
            if divides:
                inverse = self.broadcast(s, self._inverse(s, s.plus(first, str(k))))
                known[k] = s.value(f"fmul {self.vector} {known[k]}, {inverse}")
                x = self.chosen(s, self._flags([k]), known[k], x)
            others = range(k + 1, self.width) if downward else range(k)
            if others:
                new = self.minus_product(s, column(k), known[k], x)
                x = self.chosen(s, self._flags(others), new, x)
        return x, known

    def _careful(self) -> None:
        """One unknown after the other, divided by its pivot."""
        function = self.function(f"{NAMES[self.is_transposed]}.careful", self._GIVEN, "i64")
        body, total = function.body, function.slot("double")
        last = body.minus("%n", "1")
        for downward in (True, False):
            divides = downward == self.is_transposed
            with body.loop("0", "%n") as (s, j):
                i = j if downward else s.minus(last, j)
                s.write(
                    f"store double {s.value(f'load double, ptr {self._of_x(s, i)}')}, ptr {total}"
                )
                with s.loop(*(("0", i) if downward else (s.plus(i, "1"), "%n"))) as (t, k):
                    place = self._of_a(t, *((k, i) if self.is_transposed else (i, k)))
                    factor, x = (
                        t.value(f"load double, ptr {p}") for p in (place, self._of_x(t, k))
                    )
                    old = t.value(f"load double, ptr {total}")
                    new = t.value(f"fsub double {old}, {t.value(f'fmul double {factor}, {x}')}")
                    t.write(f"store double {new}, ptr {total}")
                found = s.value(f"load double, ptr {total}")
                if divides:
                    pivot = s.value(f"load double, ptr {self._of_a(s, i, i)}")
                    with s.when(s.value(f"fcmp oeq double {pivot}, 0.0")) as t:
                        t.write("ret i64 1")
                        t.label(f"other{function.number()}")  # unreachable
                    found = s.value(f"fdiv double {found}, {pivot}")
                s.write(f"store double {found}, ptr {self._of_x(s, i)}")
        if self.is_transposed:
            self._exchange(body)
        body.write("ret i64 0")
        self.module.add(function)

    # ---- a matrix --------------------------------------------------------------------------------

    def _direct(self, s: Section, full: Name, mask: Name) -> None:
        """Substitute forward and backward."""
        width = str(self.width)
        with s.loop("0", full, width) as (t, first):
            xs = self._square(t, first, is_lower=True)
            self._others(t, first, xs, (t.plus(first, width), full), mask)
        with s.loop(full, "%n") as (t, k):
            value = t.value(f"load double, ptr {self._of_x(t, k)}")
            self._eliminate(t, (k, value), full, mask, is_lower=True)
        last = s.minus("%n", "1")
        with s.loop("0", s.minus("%n", full)) as (t, i):
            k = t.minus(last, i)
            value = t.value(f"load double, ptr {self._of_x(t, k)}")
            value = t.value(f"fmul double {value}, {self._inverse(t, k)}")
            t.write(f"store double {value}, ptr {self._of_x(t, k)}")
            self._eliminate(t, (k, value), full, mask, is_lower=False)
        with s.loop("0", full, width) as (t, i):
            first = t.minus(t.minus(full, width), i)
            xs = self._square(t, first, is_lower=False)
            self._others(t, first, xs, ("0", first), None)

    def _square(self, s: Section, first: Name, is_lower: bool) -> list[Name]:
        """Solve for the unknowns from `first` on: a vector of each of them."""
        place = self._of_x(s, first)

        def column(k: int) -> Name:
            return self.read(s, self._of_a(s, first, s.plus(first, str(k))))

        old = self.read(s, place)
        x, known = self._triangle(s, old, first, column, is_lower, not is_lower)
        self.put(s, x, place)
        return known

    def _others(
        self, s: Section, first: Name, xs: list[Name], rows: tuple[Name, Name], mask: Name | None
    ) -> None:
        """Subtract known unknowns from others; with a mask also from those behind whole vectors."""
        columns = [self._of_a(s, "0", s.plus(first, str(k))) for k in range(self.width)]

        def subtract(t: Section, i: Name, factors: list[Name]) -> None:
            place, half = self._of_x(t, i), self.width // 2
            one = self.read(t, place)
            two = t.value(f"fmul {self.vector} {factors[half]}, {xs[half]}")
            for k in range(half):
                one = self.minus_product(t, factors[k], xs[k], one)
            for k in range(half + 1, self.width):
                two = self.plus_product(t, factors[k], xs[k], two)
            self.put(t, t.value(f"fsub {self.vector} {one}, {two}"), place)

        with s.loop(*rows, str(self.width)) as (t, i):
            subtract(t, i, [self.read(t, self.at(t, c, (i, "1"))) for c in columns])
        if mask is not None:
            stop = rows[1]
            with s.when(s.value(f"icmp slt i64 {stop}, %n")) as t:
                ends = [self.at(t, c, (stop, "1")) for c in columns]
                subtract(t, stop, [self.masked_load(t, c, 0, mask) for c in ends])

    def _eliminate(
        self, s: Section, unknown: tuple[Name, Name], full: Name, mask: Name, is_lower: bool
    ) -> None:
        """Subtract an unknown behind whole vectors, its index and value, from the others."""
        k, value = unknown
        known, index = self.broadcast(s, value), self.integers(s, k)
        if not is_lower:
            with s.loop("0", full, str(self.width)) as (t, i):
                place, column = self._of_x(t, i), self.read(t, self._of_a(t, i, k))
                self.put(t, self.minus_product(t, column, known, self.read(t, place)), place)
        place = self._of_x(s, full)
        column = self.masked_load(s, self._of_a(s, full, k), 0, mask)
        old = self.read(s, place)
        new = self.minus_product(s, column, known, old)
        numbers = s.value(f"add {self.indices} {self.lanes}, {self.integers(s, full)}")
        order = "sgt" if is_lower else "slt"
        applies = s.value(f"icmp {order} {self.indices} {numbers}, {index}")
        self.put(s, self.chosen(s, applies, new, old), place)

    # ---- a transpose -----------------------------------------------------------------------------

    def _transposed(self, s: Section, full: Name, mask: Name) -> None:
        """Substitute forward with the transpose of U, and backward with that of L."""
        width, last = str(self.width), s.minus("%n", "1")
        with s.loop("%n", s.plus(full, width)) as (t, i):  # products of masked elements are zero
            t.write(f"store double 0.0, ptr {self._of_x(t, i)}")
        with s.loop("0", full, width) as (t, first):
            self._square_of_columns(t, first, ("0", first), None, True)
        for downward in (True, False):
            with s.loop("0", s.minus("%n", full)) as (t, j):
                i = t.plus(full, j) if downward else t.minus(last, j)
                self._one_of_column(t, i, full, mask, downward)
        with s.loop("0", full, width) as (t, i):
            first = t.minus(t.minus(full, width), i)
            self._square_of_columns(t, first, (t.plus(first, width), full), mask, False)

    def _square_of_columns(
        self,
        s: Section,
        first: Name,
        rows: tuple[Name, Name],
        mask: Name | None,
        downward: bool,
    ) -> None:
        """Solve for the unknowns from `first` on, of which `rows` and those behind are known."""
        numbers = [s.plus(first, str(k)) for k in range(self.width)]
        columns = [self._of_a(s, "0", k) for k in numbers]
        sums = [s.function.slot(self.vector) for _ in columns]
        for slot in sums:
            s.write(f"store {self.vector} zeroinitializer, ptr {slot}")

        def add(t: Section, i: Name, factors: list[Name]) -> None:
            x = self.read(t, self._of_x(t, i))
            for factor, slot in zip(factors, sums, strict=True):
                old = t.value(f"load {self.vector}, ptr {slot}")
                new = self.plus_product(t, factor, x, old)
                t.write(f"store {self.vector} {new}, ptr {slot}")

        with s.loop(*rows, str(self.width)) as (t, i):
            add(t, i, [self.read(t, self.at(t, c, (i, "1"))) for c in columns])
        if mask is not None:
            stop = rows[1]
            with s.when(s.value(f"icmp slt i64 {stop}, %n")) as t:
                ends = [self.at(t, c, (stop, "1")) for c in columns]
                add(t, stop, [self.masked_load(t, c, 0, mask) for c in ends])
        parts = [s.value(f"load {self.vector}, ptr {slot}") for slot in sums]
        parts = transposed(s, self.vector, parts)
        while len(parts) > 1:
            pairs = zip(parts[::2], parts[1::2], strict=True)
            parts = [s.value(f"fadd {self.vector} {x}, {y}") for x, y in pairs]
        place = self._of_x(s, first)
        x = s.value(f"fsub {self.vector} {self.read(s, place)}, {parts[0]}")
        square = [self.read(s, self.at(s, c, (first, "1"))) for c in columns]
        square = transposed(s, self.vector, square)
        x, _ = self._triangle(s, x, first, lambda k: square[k], downward, downward)
        self.put(s, x, place)

    def _one_of_column(self, s: Section, k: Name, full: Name, mask: Name, downward: bool) -> None:
        """Solve for one unknown behind whole vectors."""
        total = s.function.slot(self.vector)
        column, index = self._of_a(s, "0", k), self.integers(s, k)
        numbers = s.value(f"add {self.indices} {self.lanes}, {self.integers(s, full)}")
        order = "slt" if downward else "sgt"
        known = s.value(f"icmp {order} {self.indices} {numbers}, {index}")
        known = s.value(f"and {self.flags} {known}, {mask}")
        factors, xs = (
            self.masked_load(s, self.at(s, p, (full, "1")), 0, known) for p in (column, "%x")
        )
        s.write(
            f"store {self.vector} {s.value(f'fmul {self.vector} {factors}, {xs}')}, ptr {total}"
        )
        if downward:
            with s.loop("0", full, str(self.width)) as (t, i):
                factors, xs = (self.read(t, self.at(t, p, (i, "1"))) for p in (column, "%x"))
                old = t.value(f"load {self.vector}, ptr {total}")
                new = self.plus_product(t, factors, xs, old)
                t.write(f"store {self.vector} {new}, ptr {total}")
        name = f"llvm.vector.reduce.fadd{suffix('double', self.width)}"
        callee = self.module.declare(name, "double", ["double", self.vector])
        parts = s.value(f"load {self.vector}, ptr {total}")
        known_sum = s.value(f"call reassoc double {callee}(double -0.0, {self.vector} {parts})")
        place = self._of_x(s, k)
        x = s.value(f"fsub double {s.value(f'load double, ptr {place}')}, {known_sum}")
        if downward:
            x = s.value(f"fmul double {x}, {self._inverse(s, k)}")
        s.write(f"store double {x}, ptr {place}")


def emit(module: ModuleBuilder, name: str) -> None:
    """Add a function.

    ``i64 (n, a, pivots, x)``.  Returns 1 if a pivot is zero.
    """
    VectorSubstitution(module, name == NAMES[True]).write()
