"""Functions that compute with vectors, as LLVM IR, and copies of parts of matrices by them.

    VectorCode       a module whose functions compute with vectors of one dtype
    Packing          the functions, as LLVM IR: rows_to_panel, columns_to_panel, copy
    panel_columns    the columns of a panel

It is the base of the modules of products whose functions do not depend on sizes: blocked products
(blocked_gemm.py) and streamed ones (streamed_gemm.py).

A panel is some columns of the second factor, a few vectors wide: its rows follow one another.
"""

from __future__ import annotations

from ...ir import execution_engine, simd_value
from ...ir.ir_builder import Function, ModuleBuilder, Name, Section
from ...ir.llvm_types import F64, Dtype, in_memory, of_width, suffix
from ...tuning import thresholds
from ..loop_helpers import offset, transposed
from .gemm_microkernel import tile_rows


class VectorCode:
    """A module whose functions compute with vectors of one dtype.

    Attributes
    ----------
    kind, vector : str
        LLVM's types of an element and of a vector.
    width : int
        The number of elements of a vector.
    """

    def __init__(self, module: ModuleBuilder, dtype: Dtype) -> None:
        self.module, self.dtype, self.kind = module, dtype, in_memory(dtype)
        self.width = execution_engine.vector_bytes() // dtype.itemsize
        self.vector = of_width(self.kind, self.width)

    def function(
        self, name: str, arguments: str, result: str = "void", linkage: str = "internal "
    ) -> Function:
        """A function; arguments are written "i64 m, ptr a"."""
        pairs = [x.split() for x in arguments.split(", ")]
        listed = [(kind.replace("number", self.kind), x) for kind, x in pairs]
        return Function(self.module, name, listed, result, "noinline nounwind #1", linkage)

    def close(self, function: Function) -> None:
        """Finish a function, and add it to the module."""
        function.body.write("ret void")
        self.module.add(function)

    def at(self, s: Section, pointer: Name, *terms: tuple[Name, Name]) -> Name:
        """The address of an element, for pairs of an index and a stride."""
        total = "0"
        for index, stride in terms:
            total = s.plus(total, s.times(index, stride))
        return offset(s, pointer, total, self.dtype)

    def place(self, s: Section, row: Name, v: int) -> Name:
        """The address of a vector of a row."""
        return offset(s, row, str(v * self.width), self.dtype)

    def store(self, s: Section, value: Name, row: Name, v: int) -> None:
        """Store a vector of a row."""
        place = self.place(s, row, v)
        s.write(f"store {self.vector} {value}, ptr {place}, align {self.dtype.itemsize}")

    def masks(self, s: Section, columns: Name, count: int) -> list[Name]:
        """For each of some vectors of a row, which elements are before a column."""
        counts = of_width("i32", self.width)
        narrow = s.value(f"trunc i64 {columns} to i32")
        first = s.value(f"insertelement {counts} poison, i32 {narrow}, i64 0")
        zeros = f"{counts} zeroinitializer"
        limit = s.value(f"shufflevector {counts} {first}, {counts} poison, {zeros}")
        masks = []
        for v in range(count):
            lanes = ", ".join(f"i32 {v * self.width + k}" for k in range(self.width))
            masks.append(s.value(f"icmp slt {counts} <{lanes}>, {limit}"))
        return masks

    def masked_load(self, s: Section, row: Name, v: int, mask: Name) -> Name:
        """Load the elements of a vector of a row that a mask selects; others are 0."""
        place, align = self.place(s, row, v), self.dtype.itemsize
        return simd_value.masked_load(self.module, s, self.kind, self.width, place, align, mask)

    def masked_store(self, s: Section, value: Name, row: Name, v: int, mask: Name) -> None:
        """Store the elements of a vector of a row that a mask selects."""
        place, align = self.place(s, row, v), self.dtype.itemsize
        simd_value.masked_store(self.module, s, self.kind, self.width, value, place, align, mask)

    def load(self, s: Section, row: Name, v: int) -> Name:
        """Load a vector of a row."""
        place = self.place(s, row, v)
        return s.value(f"load {self.vector}, ptr {place}, align {self.dtype.itemsize}")

    def broadcast(self, s: Section, element: Name) -> Name:
        """A vector of one element."""
        vector, zeros = self.vector, of_width("i32", self.width)
        first = s.value(f"insertelement {vector} poison, {self.kind} {element}, i64 0")
        return s.value(f"shufflevector {vector} {first}, {vector} poison, {zeros} zeroinitializer")

    def fma(self, s: Section, x: Name, y: Name, z: Name) -> Name:
        """x * y + z, rounded once."""
        name = f"llvm.fma{suffix(self.kind, self.width)}"
        callee = self.module.declare(name, self.vector, [self.vector] * 3)
        return s.value(
            f"call {self.vector} {callee}({', '.join(f'{self.vector} {w}' for w in (x, y, z))})"
        )


VECTORS = 2  # of a panel


def panel_columns() -> int:
    """The number of columns of b that are multiplied together."""
    return VECTORS * execution_engine.vector_bytes() // F64.itemsize


class Packing(VectorCode):
    """Functions that a module of blocked products has."""

    def __init__(self, module: ModuleBuilder) -> None:
        super().__init__(module, F64)
        self.panel = panel_columns()
        self.heights = (tile_rows(VECTORS), 4, 1)

    def rows_to_panel(self) -> None:
        """Copy a panel of a matrix whose rows are contiguous."""
        function = self.function(
            "rows_to_panel", "i64 k, i64 columns, ptr b, i64 step_of_b, ptr to"
        )
        body = function.body
        masks = self.masks(body, "%columns", VECTORS)
        prefetch = self.module.declare("llvm.prefetch.p0", "void", ["ptr", "i32", "i32", "i32"])
        with body.loop("0", "%k") as (s, p):
            row = self.at(s, "%b", (p, "%step_of_b"))
            later = self.at(s, row, (str(thresholds.gemm_prefetch_steps), "%step_of_b"))
            target = self.at(s, "%to", (p, str(self.panel)))
            for v, mask in enumerate(masks):
                ahead = self.place(s, later, v)
                s.write(f"call void {prefetch}(ptr {ahead}, i32 0, i32 3, i32 1)")
                self.store(s, self.masked_load(s, row, v, mask), target, v)
        self.close(function)

    def columns_to_panel(self) -> None:
        """Copy a panel of a matrix of any strides: squares of vectors if columns are contiguous."""
        function = self.function(
            "columns_to_panel",
            "i64 k, i64 columns, ptr b, i64 step_of_b, i64 column_of_b, ptr to",
        )
        body = function.body
        is_full = body.value(f"icmp eq i64 %columns, {self.panel}")
        is_dense = body.value("icmp eq i64 %step_of_b, 1")
        has_squares = body.value(f"and i1 {is_full}, {is_dense}")
        whole = body.value(f"and i64 %k, {-self.width}")
        squares = body.value(f"select i1 {has_squares}, i64 {whole}, i64 0")
        with body.loop("0", squares, str(self.width)) as (s, p):
            for v in range(VECTORS):
                columns = []
                for i in range(self.width):
                    column = self.at(s, "%b", (str(v * self.width + i), "%column_of_b"))
                    place = offset(s, column, p, self.dtype)
                    columns.append(s.value(f"load {self.vector}, ptr {place}, align 8"))
                for i, value in enumerate(transposed(s, self.vector, columns)):
                    step = s.plus(p, str(i))
                    self.store(s, value, self.at(s, "%to", (step, str(self.panel))), v)
        with body.loop(squares, "%k") as (s, p):
            target = self.at(s, "%to", (p, str(self.panel)))
            with s.loop("0", "%columns") as (t, j):
                place = self.at(t, "%b", (p, "%step_of_b"), (j, "%column_of_b"))
                value = t.value(f"load {self.kind}, ptr {place}")
                t.write(f"store {self.kind} {value}, ptr {offset(t, target, j, self.dtype)}")
            with s.loop("%columns", str(self.panel)) as (t, j):
                t.write(f"store {self.kind} 0.0, ptr {offset(t, target, j, self.dtype)}")
        self.close(function)

    def copy(self) -> None:
        """Copy contiguous rows."""
        given = "i64 rows, i64 columns, ptr of, i64 row_of, ptr to, i64 row_to"
        function = self.function("copy", given)
        with function.body.loop("0", "%rows") as (s, i):
            source, target = (self.at(s, f"%{x}", (i, f"%row_{x}")) for x in ("of", "to"))
            s.copy_bytes(target, source, s.times("%columns", str(self.dtype.itemsize)))
        self.close(function)
