"""LU factorizations of real matrices that fit into a first-level cache.

    serves        whether a matrix does
    factorize     the factors of a copy of a matrix, and the exchanges of rows

The factorization is LAPACK's, with partial pivoting, in panels of as many columns as a vector has
elements.  Columns begin at whole vectors, and end with rows of zeros, so that no vector is partial.
The rest of the matrix is read and written once for each panel.
"""

from __future__ import annotations

from wengert._engine.core.symbolic.dim import Length

from ...ir import execution_engine
from ...ir.ir_builder import Function, ModuleBuilder, Name, Section
from ...ir.llvm_types import F64, Dtype, of_width, suffix
from ...tuning import thresholds
from ..fortran_calls import call_shared
from ..gemm.vector_code import VectorCode
from ..kernel_call import ArrayPointer, KernelCall
from ..loop_helpers import copy

NAME = "wengert_lu"
LEAST_PIVOT = "0x01A56E1FC2F8F359"  # 1e-300: the reciprocal of a smaller one may be infinite
_LEAST_ROWS = 5


def serves(n: Length, dtype: Dtype) -> bool:
    """Whether matrices of n rows are factorized here."""
    return isinstance(n, int) and dtype == F64 and _LEAST_ROWS <= n <= thresholds.lu_in_cache_rows


def padded(n: int) -> int:
    """The rows of memory for the matrix, those of zeros included."""
    width = execution_engine.vector_bytes() // F64.itemsize
    return -(-n // width) * width


def factorize(
    call: KernelCall, s: Section, a: ArrayPointer, memory: Name, packed: ArrayPointer, pivots: Name
) -> None:
    """Factorize a matrix; the result is as that of getrf, column-major.

    memory : of `padded(n) * n` numbers.
    """
    n = a.shape[0]
    assert isinstance(n, int)
    rows = padded(n)
    work = ArrayPointer(memory, (n, n), (1, rows), F64)
    copy(call, s, work, a)
    arguments = [("i64", str(n)), ("i64", str(rows)), ("ptr", memory), ("ptr", pivots)]
    call_shared(call, s, NAME, arguments, "void")
    copy(call, s, packed, work)


def emit(module: ModuleBuilder, name: str) -> None:
    """Add the function.

    ``void (n, rows, a, pivots)``: a has n columns of `rows` rows; pivots count from 1.
    """
    LuCode(module).write()


class LuCode(VectorCode):
    """The function, which `write` adds to a module."""

    def __init__(self, module: ModuleBuilder) -> None:
        super().__init__(module, F64)
        width = self.width
        self.indices, self.flags = of_width("i64", width), of_width("i1", width)
        lanes = ", ".join(f"i64 {k}" for k in range(width))
        self.lanes = f"<{lanes}>"

    def write(self) -> None:
        """Add the functions."""
        self._panel()
        self._row_of_u()
        for vectors in (2, 1):
            self._rest(vectors)
        function = self.function(NAME, "i64 n, i64 rows, ptr a, ptr pivots", linkage="")
        body = function.body
        with body.loop("0", "%n") as (s, j), s.loop("%n", "%rows") as (t, i):
            t.write(f"store double 0.0, ptr {self.element(t, i, j)}")
        with body.loop("0", "%n", str(self.width)) as (s, first):
            stop = s.smaller(s.plus(first, str(self.width)), "%n")
            given = f"i64 %n, i64 %rows, ptr %a, i64 {first}, i64 {stop}"
            s.write(f"call void @{NAME}.panel({given}, ptr %pivots)")
            with s.when(s.value(f"icmp slt i64 {stop}, %n")) as t:
                t.write(f"call void @{NAME}.row_of_u({given})")
                pair = str(2 * self.width)
                left = t.minus("%rows", stop)
                pairs = t.plus(stop, t.value(f"and i64 {left}, -{pair}"))
                with t.loop(stop, pairs, pair) as (u, i):
                    u.write(f"call void @{NAME}.rest2({given}, i64 {i})")
                with t.when(t.value(f"icmp slt i64 {pairs}, %rows")) as u:
                    u.write(f"call void @{NAME}.rest1({given}, i64 {pairs})")
        self.close(function)

    # ---- elements and vectors --------------------------------------------------------------------

    def element(self, s: Section, i: Name, j: Name) -> Name:
        """The address of an element of the matrix."""
        return self.at(s, "%a", (j, "%rows"), (i, "1"))

    def vector_at(self, s: Section, i: Name, j: Name) -> Name:
        """The vector of rows from i on of column j."""
        return self.read(s, self.element(s, i, j))

    def read(self, s: Section, pointer: Name) -> Name:
        """The vector at an address."""
        return s.value(f"load {self.vector}, ptr {pointer}, align 8")

    def put(self, s: Section, value: Name, pointer: Name) -> None:
        """Store a vector at an address."""
        s.write(f"store {self.vector} {value}, ptr {pointer}, align 8")

    def chosen(self, s: Section, flags: Name, x: Name, y: Name) -> Name:
        """x where a flag is set, and y elsewhere."""
        return s.value(f"select {self.flags} {flags}, {self.vector} {x}, {self.vector} {y}")

    def integers(self, s: Section, x: Name) -> Name:
        """A vector of one integer."""
        kind = self.indices
        first = s.value(f"insertelement {kind} poison, i64 {x}, i64 0")
        zeros = of_width("i32", self.width)
        return s.value(f"shufflevector {kind} {first}, {kind} poison, {zeros} zeroinitializer")

    def plus_product(self, s: Section, x: Name, y: Name, z: Name) -> Name:
        """x * y + z, rounded once where the processor has such instructions."""
        product = s.value(f"fmul contract {self.vector} {x}, {y}")
        return s.value(f"fadd contract {self.vector} {z}, {product}")

    def minus_product(self, s: Section, x: Name, y: Name, z: Name) -> Name:
        """z - x * y."""
        product = s.value(f"fmul contract {self.vector} {x}, {y}")
        return s.value(f"fsub contract {self.vector} {z}, {product}")

    def lane(self, s: Section, x: Name, k: int) -> Name:
        """A vector of element k of x."""
        lanes, kind = ", ".join([f"i32 {k}"] * self.width), of_width("i32", self.width)
        return s.value(f"shufflevector {self.vector} {x}, {self.vector} poison, {kind} <{lanes}>")

    def least_pivot(self, function: Function) -> Name:
        """The absolute value of the smallest pivot, at most 1."""
        body, smallest = function.body, function.slot("double")
        absolute = self.module.declare("llvm.fabs.f64", "double", ["double"])
        body.write(f"store double 1.0, ptr {smallest}")
        with body.loop("0", "%n") as (s, k):
            pivot = s.value(f"load double, ptr {self.at(s, '%a', (k, '%n'), (k, '1'))}")
            size = s.value(f"call double {absolute}(double {pivot})")
            before = s.value(f"load double, ptr {smallest}")
            is_less = s.value(f"fcmp olt double {size}, {before}")
            least = s.value(f"select i1 {is_less}, double {size}, double {before}")
            s.write(f"store double {least}, ptr {smallest}")
        return body.value(f"load double, ptr {smallest}")

    # ---- functions -------------------------------------------------------------------------------

    _GIVEN = "i64 n, i64 rows, ptr a, i64 first, i64 stop"

    def _panel(self) -> None:
        """Factorize the columns of a panel, and exchange whole rows."""
        function = self.function(f"{NAME}.panel", f"{self._GIVEN}, ptr pivots")
        body, below = function.body, str(self.width)
        absolute = self.module.declare("llvm.fabs.f64", "double", ["double"])
        with body.loop("%first", "%stop") as (s, j):
            row = self._pivot_row(function, s, j)
            place = s.value(f"getelementptr i32, ptr %pivots, i64 {j}")
            number = s.value(f"trunc i64 {s.plus(row, '1')} to i32")
            s.write(f"store i32 {number}, ptr {place}")
            with s.when(s.value(f"icmp ne i64 {row}, {j}")) as t, t.loop("0", "%n") as (u, c):
                one, two = self.element(u, j, c), self.element(u, row, c)
                x, y = u.value(f"load double, ptr {one}"), u.value(f"load double, ptr {two}")
                u.write(f"store double {y}, ptr {one}")
                u.write(f"store double {x}, ptr {two}")
            pivot = s.value(f"load double, ptr {self.element(s, j, j)}")
            size = s.value(f"call double {absolute}(double {pivot})")
            # Of NaN, too: the columns become NaN.
            usual = s.value(f"fcmp uge double {size}, {LEAST_PIVOT}")
            is_later = s.value(
                f"icmp sgt {self.indices} {self.lanes}, {self.integers(s, s.minus(j, '%first'))}"
            )
            with s.when(usual) as t:
                inverse = self.broadcast(t, t.value(f"fdiv double 1.0, {pivot}"))
                self._scaled(t, j, is_later, f"fmul {self.vector} {{}}, {inverse}")
            tiny = s.value(f"fcmp one double {size}, 0.0")
            tiny = s.value(f"and i1 {tiny}, {s.value(f'xor i1 {usual}, true')}")
            with s.when(tiny) as t:
                divisor = self.broadcast(t, pivot)
                self._scaled(t, j, is_later, f"fdiv {self.vector} {{}}, {divisor}")
            with s.loop(s.plus(j, "1"), "%stop") as (t, c):
                factor = self.broadcast(t, t.value(f"load double, ptr {self.element(t, j, c)}"))
                old = self.vector_at(t, "%first", c)
                new = self.minus_product(t, self.vector_at(t, "%first", j), factor, old)
                self.put(t, self.chosen(t, is_later, new, old), self.element(t, "%first", c))
                with t.loop(t.plus("%first", below), "%rows", below) as (u, i):
                    old = self.vector_at(u, i, c)
                    new = self.minus_product(u, self.vector_at(u, i, j), factor, old)
                    self.put(u, new, self.element(u, i, c))
        self.close(function)

    def _scaled(self, s: Section, j: Name, is_later: Name, instruction: str) -> None:
        """Divide column j by its pivot."""
        old = self.vector_at(s, "%first", j)
        new = s.value(instruction.format(old))
        self.put(s, self.chosen(s, is_later, new, old), self.element(s, "%first", j))
        with s.loop(s.plus("%first", str(self.width)), "%rows", str(self.width)) as (t, i):
            new = t.value(instruction.format(self.vector_at(t, i, j)))
            self.put(t, new, self.element(t, i, j))

    def _pivot_row(self, function: Function, s: Section, j: Name) -> Name:
        """The row of the largest element of column j on the diagonal or below, the first of them.

        A NaN is never the largest.
        """
        best, rows = function.slot(self.vector), function.slot(self.indices)
        fabs = self.module.declare(
            f"llvm.fabs{suffix('double', self.width)}", self.vector, [self.vector]
        )
        start = self.broadcast(s, "-1.0")
        s.write(f"store {self.vector} {start}, ptr {best}")
        s.write(f"store {self.indices} {self.integers(s, j)}, ptr {rows}")
        limit = self.integers(s, j)
        with s.loop("%first", "%rows", str(self.width)) as (t, i):
            size = t.value(f"call {self.vector} {fabs}({self.vector} {self.vector_at(t, i, j)})")
            number = t.value(f"add {self.indices} {self.lanes}, {self.integers(t, i)}")
            old = t.value(f"load {self.vector}, ptr {best}")
            old_rows = t.value(f"load {self.indices}, ptr {rows}")
            is_larger = t.value(f"fcmp ogt {self.vector} {size}, {old}")
            is_below = t.value(f"icmp sge {self.indices} {number}, {limit}")
            takes = t.value(f"and {self.flags} {is_larger}, {is_below}")
            t.write(f"store {self.vector} {self.chosen(t, takes, size, old)}, ptr {best}")
            new_rows = t.value(
                f"select {self.flags} {takes}, {self.indices} {number}, {self.indices} {old_rows}"
            )
            t.write(f"store {self.indices} {new_rows}, ptr {rows}")
        found = s.value(f"load {self.vector}, ptr {best}")
        largest_of = self.module.declare(
            f"llvm.vector.reduce.fmaximum{suffix('double', self.width)}", "double", [self.vector]
        )
        largest = s.value(f"call nnan double {largest_of}({self.vector} {found})")
        is_largest = s.value(f"fcmp oeq {self.vector} {found}, {self.broadcast(s, largest)}")
        numbers = s.value(f"load {self.indices}, ptr {rows}")
        none = self.integers(s, str(1 << 40))
        numbers = s.value(
            f"select {self.flags} {is_largest}, {self.indices} {numbers}, {self.indices} {none}"
        )
        least_of = self.module.declare(
            f"llvm.vector.reduce.umin{suffix('i64', self.width)}", "i64", [self.indices]
        )
        return s.value(f"call i64 {least_of}({self.indices} {numbers})")

    def _row_of_u(self) -> None:
        """The rows of U beside a panel: a triangular system for each column, in one vector."""
        function = self.function(f"{NAME}.row_of_u", self._GIVEN)
        body = function.body
        columns = [
            self.vector_at(body, "%first", body.plus("%first", str(k))) for k in range(self.width)
        ]
        with body.loop("%stop", "%n") as (s, c):
            x = self.vector_at(s, "%first", c)
            for k in range(self.width - 1):
                later = ", ".join(f"i1 {'true' if i > k else 'false'}" for i in range(self.width))
                new = self.minus_product(s, columns[k], self.lane(s, x, k), x)
                x = self.chosen(s, f"<{later}>", new, x)
            self.put(s, x, self.element(s, "%first", c))
        self.close(function)

    def _rest(self, vectors: int) -> None:
        """Subtract the product of a panel and the rows of U beside it, in some rows."""
        function = self.function(f"{NAME}.rest{vectors}", f"{self._GIVEN}, i64 row")
        body = function.body
        rows = [body.plus("%row", str(v * self.width)) for v in range(vectors)]
        factors = [
            [self.vector_at(body, r, body.plus("%first", str(k))) for r in rows]
            for k in range(self.width)
        ]
        with body.loop("%stop", "%n") as (s, c):
            places = [self.element(s, r, c) for r in rows]
            sums = [self.read(s, p) for p in places]
            for k in range(self.width):
                place = self.element(s, s.plus("%first", str(k)), c)
                other = self.broadcast(s, s.value(f"load double, ptr {place}"))
                sums = [
                    self.minus_product(s, x, other, y)
                    for x, y in zip(factors[k], sums, strict=True)
                ]
            for value, place in zip(sums, places, strict=True):
                self.put(s, value, place)
        self.close(function)
