"""Copies of parts of matrices, in the order in which blocked products read them.

    Packing          the functions, as LLVM IR: rows_to_panel, columns_to_panel, copy
    panel_columns    the columns of a panel

A panel is some columns of the second factor, a few vectors wide: its rows follow one another.
"""

from __future__ import annotations

from ...ir import execution_engine
from ...ir.ir_builder import ModuleBuilder
from ...ir.llvm_types import F64
from ...tuning import thresholds
from ..loop_helpers import offset
from ..transpose import transposed
from .gemm_microkernel import tile_rows
from .vector_code import VectorCode

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
