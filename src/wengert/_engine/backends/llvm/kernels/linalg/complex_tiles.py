"""Parts of rows of complex numbers, real and imaginary parts apart, as LLVM IR.

    ComplexTiles    update, forward, backward: sums of rows times numbers, and solutions with
                    triangles; separate and join: copies from and to complex numbers

A row is some real parts and, at a distance, as many imaginary parts.  The functions work on a
panel: rows of two vectors' columns, some of which are accumulated in registers at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ...ir import execution_engine
from ...ir.ir_builder import ModuleBuilder, Name, Section
from ...ir.llvm_types import F64, of_width
from ..gemm.vector_code import VectorCode
from ..loop_helpers import offset

VECTORS = 2  # of a panel


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
        return f"{self.kind}.{self.rows}"


class ComplexTiles(VectorCode):
    """The functions, which `write_tiles` adds to a module."""

    def __init__(self, module: ModuleBuilder) -> None:
        super().__init__(module, F64)
        self.panel = VECTORS * self.width
        self.rows = 4 if execution_engine.vector_bytes() == 64 else 2

    def write_tiles(self) -> None:
        """Add all functions."""
        for kind in ("update", "forward", "backward"):
            for rows in (self.rows, 1):
                self._tile(_Tile(kind, rows))
        self._separate()
        self._join()
        self._rows("update")
        self._rows("forward")
        self._backward()

    # ---- tiles ---------------------------------------------------------------------------------

    # A matrix of factors: `%f` its first element, `%row_of_f`, and the distance of imaginary parts.
    # Vectors: `%x` the rows that are multiplied, `%c` those that are changed, and the same.
    _FACTORS = "ptr f, i64 row_of_f, i64 part_of_f"
    OFVECTORS = "ptr x, ptr c, i64 row, i64 part"

    def _tile(self, tile: _Tile) -> None:
        """c -= f @ x for some rows of c and all k rows of x, then a solution with a triangle.

        `%triangle` is the element of the factors on the diagonal, `%inverse` that of the
        reciprocals of the diagonal.
        """
        given = f"i64 k, {self._FACTORS}, {self.OFVECTORS}, ptr triangle, ptr inverse"
        function = self.function(tile.name, given)
        body, indices = function.body, range(tile.rows)
        places = [self.at(body, "%c", (str(i), "%row")) for i in indices]
        slots = [
            [[function.slot(self.vector) for _ in range(VECTORS)] for _ in "ri"] for _ in indices
        ]
        for i in indices:
            for p, lanes in enumerate(self.row(body, places[i], "%part")):
                for v, lane in enumerate(lanes):
                    body.write(f"store {self.vector} {lane}, ptr {slots[i][p][v]}")
        factors = [self.at(body, "%f", (str(i), "%row_of_f")) for i in indices]
        with body.loop("0", "%k") as (s, k):
            x = self.row(s, self.at(s, "%x", (k, "%row")), "%part")
            for i in indices:
                factor = self._number(s, self.at(s, factors[i], (k, "1")), "%part_of_f")
                old = [[s.value(f"load {self.vector}, ptr {y}") for y in part] for part in slots[i]]
                for p, lanes in enumerate(self.minus_product(s, old, factor, x)):
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
                rows[j] = self.minus_product(body, rows[j], factor, rows[i])
        for i in indices:
            self.store_row(body, rows[i], places[i], "%part")
        self.close(function)

    def row(self, s: Section, place: Name, part: Name) -> list[list[Name]]:
        """Load a row of a panel: vectors of real parts, and of imaginary parts."""
        places = [place, self.at(s, place, (part, "1"))]
        return [[self.load(s, one, v) for v in range(VECTORS)] for one in places]

    def store_row(
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

    def minus_product(
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
        given = f"i64 n, i64 k, {self._FACTORS}, {self.OFVECTORS}"
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
        given = f"i64 n, {self._FACTORS}, {self.OFVECTORS}, ptr inverse"
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
