"""Register-blocked matrix products in which one factor fits into a cache.

    packed          a matrix in row-major order
    run             c = alpha * a @ b + beta * c
    GemmTile        the parameters of a tile
    write_rows      all rows of a part of the sum
    RowVectors      loads, products and stores of a row of a tile
    tile_rows       the greatest number of rows of a tile

A tile of the result, several rows by two vectors, is accumulated in registers: each step of the sum
loads two vectors of b, and broadcasts each row's element of a.  The rows of b must be contiguous (b
is copied otherwise); a may have any strides.  If a is long, panels of columns of b are packed
first: rows whose length is a power of two would evict each other from the cache.

OpenBLAS packs both operands first, and computes tiles of a fixed size.  It takes twice as long for
products of 1,000 by 10 and 10 by 10 elements, 1.2 to 1.5 times as long for a layer of 256 units and
64 samples, and the same time for large matrices.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from wengert._engine.core.symbolic.dim import Length

from ...ir import execution_engine, simd_value
from ...ir.ir_builder import Function, ModuleBuilder, Name, Section
from ...ir.llvm_types import Dtype, in_memory, literal, of_width
from ...tuning import thresholds
from ..kernel_call import ArrayPointer, KernelCall
from ..loop_helpers import copy, kind_of, offset
from .operands import Matrix, Product

_VECTORS = 2  # in a row of a tile
_PANEL = 256  # steps of the sum for which b is packed: 32 KiB
_CACHE_LINE = 64  # bytes
_SCALES = 3  # rows that one base register can address: at 0, 1 and 2 times the stride
_ROWS = {64: {1: 16, 2: 12}, 32: {1: 10, 2: 6}}  # of a tile, by size and number of vectors


class GemmTile(NamedTuple):
    """The parameters of a tile; strides count elements.

    Products of different sizes share tiles, so strides are arguments of the function: compiling
    dozens of functions for the products of one network would take most of the compile time.  For
    short sums they are constants (`is_fixed`), because the code around the sum matters there.
    """

    dtype: Dtype
    rows: int
    columns: int
    row_of_a: int
    step_of_a: int
    step_of_b: int
    row_of_c: int
    alpha: float
    beta: float
    is_fixed: bool
    adds: Name = ""  # an i1 argument: whether beta * c is added
    scale: Name = ""  # an argument, instead of alpha
    bypasses: bool = False  # whether c is written past the caches

    @property
    def strides(self) -> tuple[int, int, int]:
        """The strides that are arguments: the stride of a that is not 1, those of b and c."""
        of_a = self.row_of_a if self.step_of_a == 1 else self.step_of_a
        return of_a, self.step_of_b, self.row_of_c

    @property
    def width(self) -> int:
        """The number of elements of a vector."""
        return execution_engine.vector_bytes() // self.dtype.itemsize


def run(call: KernelCall, s: Section, product: Product) -> None:
    """Write a product for which `choose.suits_microkernel` holds."""
    a, b, c, dtype, scale, beta, before = product
    if c.columns.length > 1:
        b = packed(call, s, b, dtype)
    k, n = a.columns.length, c.columns.length
    row_of_a: Any = a.rows.stride
    step_of_a: Any = a.columns.stride
    step_of_b: Any = b.rows.stride
    row_of_c: Any = c.rows.stride
    is_short = type(k) is int and k <= thresholds.gemm_constant_stride_steps
    alpha, added = float(scale.number.real), float(beta.real)
    tile = GemmTile(dtype, 0, 0, row_of_a, step_of_a, step_of_b, row_of_c, alpha, added, is_short)
    if scale.pointer is not None:
        tile = tile._replace(alpha=1.0, scale=scale.value(call, s, dtype).name)
    packs = _is_packed(a, c, dtype)
    limit = _PANEL if packs else max(thresholds.gemm_block_bytes // max(n * dtype.itemsize, 1), 64)
    write_block = _pack_panels if packs else write_rows
    if type(k) is int and k <= (limit if packs else 2 * limit):
        write_block(call, s, tile, (a, b, c), before or c.pointer, call.number(k))
        return
    stop, start = call.number(k), "0"
    # beta applies once, and c must be written even if k is 0
    if beta not in (0, 1) or type(k) is not int:
        write_block(call, s, tile, (a, b, c), before or c.pointer, s.smaller(stop, str(limit)))
        start, before, beta = str(limit), None, 1
    with s.loop(start, stop, str(limit)) as (t, p):
        block = [
            m._replace(pointer=offset(t, m.pointer, t.times(p, str(step)), dtype))
            for m, step in ((a, tile.step_of_a), (b, tile.step_of_b))
        ]
        count = t.smaller(str(limit), t.minus(stop, p))
        is_later = t.value(f"icmp ne i64 {p}, 0")
        block_tile = tile._replace(beta=1.0, adds="true" if beta else is_later)
        old = c.pointer
        if before is not None:
            old = t.value(f"select i1 {is_later}, ptr {old}, ptr {before}")
        write_block(call, t, block_tile, (block[0], block[1], c), old, count)


def _is_packed(a: Matrix, c: Matrix, dtype: Dtype) -> bool:
    """Whether b is packed first: it is read often enough, and exceeds the first-level cache."""
    m, n, k = c.rows.length, c.columns.length, a.columns.length
    if type(m) is int and m < thresholds.gemm_packed_rows:
        return False
    return type(k) is not int or n * k * dtype.itemsize > thresholds.gemm_packed_bytes


def _pack_panels(
    call: KernelCall,
    s: Section,
    tile: GemmTile,
    matrices: tuple[Matrix, Matrix, Matrix],
    addend: Name,
    k: Name,
) -> None:
    """Write all rows for a part of the sum, packing panels of columns of b first."""
    a, b, c = matrices
    n, panel_width = c.columns.length, tile.width * _VECTORS
    memory = call.scratch(_PANEL * panel_width * tile.dtype.itemsize)
    full = n - n % panel_width
    for first, stop, columns in ((0, full, panel_width), (full, n, n - full)):
        if first == stop:
            continue
        pack = _pack_function(call, tile._replace(columns=columns))
        panel_tile = tile._replace(columns=columns, step_of_b=panel_width)
        with s.loop(str(first), str(stop), str(columns)) as (t, j):
            columns_of_b, old, to = (
                offset(t, p, j, tile.dtype) for p in (b.pointer, addend, c.pointer)
            )
            t.write(f"call void @{pack}(i64 {k}, ptr {columns_of_b}, ptr {memory})")
            length = c.columns._replace(length=columns)
            panel_of_c = c._replace(pointer=to, columns=length)
            write_rows(call, t, panel_tile, (a, b._replace(pointer=memory), panel_of_c), old, k)


def _pack_function(call: KernelCall, tile: GemmTile) -> str:
    """The function that copies a panel, `void (i64 k, ptr b, ptr to)`."""
    name = f"panel.{tile.dtype.str[1:]}.{tile.columns}.{tile.step_of_b}"
    if name in call.module:
        return name
    arguments = [("i64", "k"), ("ptr", "b"), ("ptr", "to")]
    function = Function(call.module, name, arguments, attributes="noinline nounwind #1")
    vectors = RowVectors(call.module, tile)
    with function.body.loop("0", "%k") as (s, p):
        row = offset(s, "%b", s.times(p, str(tile.step_of_b)), tile.dtype)
        to = offset(s, "%to", s.times(p, str(tile.width * _VECTORS)), tile.dtype)
        for v in vectors.indices:
            pointer = offset(s, to, str(v * tile.width), tile.dtype)
            value = vectors.load(s, row, v)
            s.write(f"store {vectors.kind} {value}, ptr {pointer}, align {tile.dtype.itemsize}")
    function.body.write("ret void")
    call.module.add(function)
    return name


def write_rows(
    call: KernelCall,
    s: Section,
    tile: GemmTile,
    matrices: tuple[Matrix, Matrix, Matrix],
    addend: Name,
    k: Name,
) -> None:
    """Write all rows for a part of the sum."""
    a, b, c = matrices
    m: Length = c.rows.length
    n: Any = c.columns.length
    start: Name = "0"
    for rows in _tile_heights(m, min(-(-n // tile.width), _VECTORS)):
        if type(m) is int:
            stop = str(m - (m - int(start)) % rows)
        else:
            remaining = s.minus(call.number(m), start)
            stop = s.plus(start, s.minus(remaining, s.value(f"urem i64 {remaining}, {rows}")))
        with s.loop(start, stop, str(rows)) as (t, i):
            row_of_a = offset(t, a.pointer, t.times(i, str(tile.row_of_a)), tile.dtype)
            row_offset = t.times(i, str(tile.row_of_c))
            old, to = (offset(t, p, row_offset, tile.dtype) for p in (addend, c.pointer))
            _write_tiles(call, t, tile._replace(rows=rows), (row_of_a, b.pointer, old, to), k, n)
        start = stop


def _write_tiles(
    call: KernelCall, s: Section, tile: GemmTile, pointers: tuple[Name, ...], k: Name, n: int
) -> None:
    """Write the tiles of some rows, one after the other."""
    a, *others = pointers
    tile_width = tile.width * _VECTORS
    full = n - n % tile_width
    for first, stop, columns in ((0, full, tile_width), (full, n, n - full)):
        if first == stop:
            continue
        function = _function(call, tile._replace(columns=columns))
        with s.loop(str(first), str(stop), str(columns)) as (t, j):
            arguments = [f"ptr {offset(t, p, j, tile.dtype)}" for p in others]
            arguments += [] if tile.is_fixed else [f"i64 {x}" for x in tile.strides]
            arguments += [f"i1 {tile.adds}"] if tile.adds else []
            arguments += [f"{kind_of(tile.dtype)} {tile.scale}"] if tile.scale else []
            t.write(f"call void @{function}(i64 {k}, ptr {a}, {', '.join(arguments)})")


def tile_rows(vectors: int) -> int:
    """The most rows of a tile with so many vectors, all in registers."""
    return _ROWS[execution_engine.vector_bytes()][vectors]


def _tile_heights(m: Length, vectors: int) -> list[int]:
    """The numbers of rows of tiles: as many as registers allow, and nearly equal."""
    highest = tile_rows(max(vectors, 1))
    if type(m) is not int:
        return [highest, 4, 1]
    count = -(-m // highest)
    height = -(-m // max(count, 1))
    return [x for x in (height, m % height if height else 0) if x]


def packed(call: KernelCall, s: Section, b: Matrix, dtype: Dtype) -> Matrix:
    """The matrix in row-major order; copied if it is not."""
    if b.columns.stride == 1:
        return b
    k, n = b.rows.length, b.columns.length
    memory = call.scratch(k * n * dtype.itemsize)
    to = ArrayPointer(memory, (k, n), (n, 1), dtype)
    copy(call, s, to, ArrayPointer(b.pointer, (k, n), (b.rows.stride, b.columns.stride), dtype))
    return b._replace(
        pointer=memory, rows=b.rows._replace(stride=n), columns=b.columns._replace(stride=1)
    )


# ---- one tile ----------------------------------------------------------------------------------


def _function(call: KernelCall, tile: GemmTile) -> str:
    """The function that computes one tile, `void (i64 k, ptr a, ptr b, ptr before, ptr c)`.

    Strides follow unless they are constants: `i64 of_a, i64 of_b, i64 of_c`; for a part of a longer
    sum `i1 adds`; and the factor of the product, unless it is a constant.
    """
    row_of_a, step_of_a, step_of_b, row_of_c = _strides(tile)
    numbers = f"{tile.rows}_{tile.columns}_{row_of_a}_{step_of_a}_{step_of_b}_{row_of_c}"
    name = f"tile.{tile.dtype.str[1:]}.{numbers.replace('%', '')}"
    name += f".{literal(tile.alpha, tile.dtype)}.{literal(tile.beta, tile.dtype)}"
    name += ".adds" * bool(tile.adds) + ".scaled" * bool(tile.scale) + ".past" * tile.bypasses
    if name in call.module:
        return name
    arguments = [("i64", "k"), *(("ptr", x) for x in ("a", "b", "before", "c"))]
    arguments += [] if tile.is_fixed else [("i64", x) for x in ("of_a", "of_b", "of_c")]
    arguments += [("i1", "adds")] if tile.adds else []
    arguments += [(kind_of(tile.dtype), "scale")] if tile.scale else []
    function = Function(call.module, name, arguments, attributes="noinline nounwind #1")
    body = function.body
    vectors = RowVectors(call.module, tile)
    sums = accumulated(function, vectors, _strides(tile)[:3])
    if tile.adds:
        with body.when("%adds") as s:
            _finish(s, vectors, sums, row_of_c, tile.beta)
            s.write("ret void")
            s.label(f"other{function.number()}")  # unreachable: the following code needs a block
    _finish(body, vectors, sums, row_of_c, 0.0 if tile.adds else tile.beta)
    body.write("ret void")
    call.module.add(function)
    return name


def accumulated(
    function: Function,
    vectors: RowVectors,
    strides: tuple[Name, Name, Name],
    prefetches: bool = True,
) -> list[list[Name]]:
    """Write the sum over `%k` steps of `%a` and `%b`: the stack slots of each row of a tile.

    Parameters
    ----------
    strides : tuple of str
        Those of rows and steps of a, and of steps of b: constants or arguments.
    prefetches : bool
        Whether later steps are prefetched if those of a are not adjacent.
    """
    body, tile = function.body, vectors.tile
    row_of_a, step_of_a, step_of_b = strides
    base_rows = [
        offset(body, "%a", body.times(row_of_a, str(i)), tile.dtype)
        for i in range(0, tile.rows, _SCALES)
    ]
    scaled = [body.times(row_of_a, str(i)) for i in range(_SCALES)]
    sums = [[function.slot(vectors.kind) for _ in vectors.indices] for _ in range(tile.rows)]
    for row in sums:
        for total in row:
            body.write(f"store {vectors.kind} zeroinitializer, ptr {total}")
    with body.loop("0", "%k") as (s, p):
        step = s.times(p, step_of_a)
        bases = [_hidden(s, row_of_a, offset(s, x, step, tile.dtype)) for x in base_rows]
        row_of_b = offset(s, "%b", s.times(p, step_of_b), tile.dtype)
        if prefetches and step_of_a != "1":
            _prefetch(s, tile, (bases[0], step_of_a), (row_of_b, step_of_b))
        vectors_of_b = [vectors.load(s, row_of_b, v) for v in vectors.indices]
        for i, row in enumerate(sums):
            pointer = offset(s, bases[i // _SCALES], scaled[i % _SCALES], tile.dtype)
            element_of_a = vectors.load_broadcast(s, pointer)
            for vector_of_b, total in zip(vectors_of_b, row, strict=True):
                old = s.value(f"load {vectors.kind}, ptr {total}")
                new = vectors.fma(s, element_of_a, vector_of_b, old)
                s.write(f"store {vectors.kind} {new}, ptr {total}")
    return sums


def _finish(
    s: Section, vectors: RowVectors, sums: list[list[Name]], row_of_c: Name, beta: float
) -> None:
    """Write all rows of a tile."""
    for i, row in enumerate(sums):
        down = s.times(row_of_c, str(i))
        old, to = (offset(s, p, down, vectors.tile.dtype) for p in ("%before", "%c"))
        for v, total in zip(vectors.indices, row, strict=True):
            vectors.finish(s, (old, to), v, s.value(f"load {vectors.kind}, ptr {total}"), beta)


def _strides(tile: GemmTile) -> tuple[Name, Name, Name, Name]:
    """Rows and steps of a, steps of b, rows of c: constants, or arguments of the function."""
    if tile.is_fixed:
        row_of_a, step_of_a = str(tile.row_of_a), str(tile.step_of_a)
        return row_of_a, step_of_a, str(tile.step_of_b), str(tile.row_of_c)
    if tile.step_of_a == 1:
        return "%of_a", "1", "%of_b", "%of_c"
    return str(tile.row_of_a), "%of_a", "%of_b", "%of_c"


def _hidden(s: Section, row: Name, pointer: Name) -> Name:
    """The address of a row, as an opaque value.

    LLVM would otherwise compute the address of each row from that of the previous row: a chain of
    additions that takes as long as the products.
    """
    is_constant = not row.startswith("%")
    return pointer if is_constant else s.value(f'call ptr asm "", "=r,0"(ptr {pointer})')


def _prefetch(s: Section, tile: GemmTile, a: tuple[Name, Name], b: tuple[Name, Name]) -> None:
    """Prefetch elements of later steps, because hardware does not prefetch distant rows."""
    prefetch = s.function.module.declare("llvm.prefetch.p0", "void", ["ptr", "i32", "i32", "i32"])
    line = _CACHE_LINE // tile.dtype.itemsize
    for (pointer, step), count in ((a, tile.rows), (b, tile.columns)):
        ahead = offset(s, pointer, s.times(step, str(thresholds.gemm_prefetch_steps)), tile.dtype)
        for k in range(0, count, line):
            line_address = offset(s, ahead, str(k), tile.dtype)
            s.write(f"call void {prefetch}(ptr {line_address}, i32 0, i32 3, i32 1)")


class RowVectors:
    """The vectors of a row of a tile; the last may have fewer elements."""

    def __init__(self, module: ModuleBuilder, tile: GemmTile) -> None:
        self.module, self.tile = module, tile
        self.indices = range(-(-tile.columns // tile.width))
        self.kind = of_width(in_memory(tile.dtype), tile.width)
        self.suffix = f"v{tile.width}f{8 * tile.dtype.itemsize}"

    def _mask(self, v: int) -> Name | None:
        count = self.tile.columns - v * self.tile.width
        if count >= self.tile.width:
            return None
        return f"<{', '.join(f'i1 {str(k < count).lower()}' for k in range(self.tile.width))}>"

    def load(self, s: Section, pointer: Name, v: int) -> Name:
        """Load vector `v` of a row; 0 beyond the last element."""
        address = offset(s, pointer, str(v * self.tile.width), self.tile.dtype)
        mask, align = self._mask(v), self.tile.dtype.itemsize
        if mask is None:
            return s.value(f"load {self.kind}, ptr {address}, align {align}")
        element, width = in_memory(self.tile.dtype), self.tile.width
        return simd_value.masked_load(self.module, s, element, width, address, align, mask)

    def load_broadcast(self, s: Section, pointer: Name) -> Name:
        """Load one element and broadcast it to a vector."""
        element = s.value(f"load {kind_of(self.tile.dtype)}, ptr {pointer}")
        return self.broadcast(s, element)

    def broadcast(self, s: Section, element: Name) -> Name:
        """A vector of one element."""
        kind = in_memory(self.tile.dtype)
        first = s.value(f"insertelement {self.kind} poison, {kind} {element}, i64 0")
        zeros = of_width("i32", self.tile.width)
        return s.value(
            f"shufflevector {self.kind} {first}, {self.kind} poison, {zeros} zeroinitializer"
        )

    def fma(self, s: Section, x: Name, y: Name, z: Name) -> Name:
        """x * y + z, rounded once."""
        callee = self.module.declare(f"llvm.fma.{self.suffix}", self.kind, [self.kind] * 3)
        return s.value(
            f"call {self.kind} {callee}({', '.join(f'{self.kind} {w}' for w in (x, y, z))})"
        )

    def finish(self, s: Section, rows: tuple[Name, Name], v: int, total: Name, beta: float) -> None:
        """Write one vector of the result; `rows` are the addresses of rows of the addend and c."""
        dtype, kind = self.tile.dtype, self.kind
        before, pointer = rows
        if self.tile.scale or self.tile.alpha != 1.0:
            alpha = "%scale" if self.tile.scale else literal(self.tile.alpha, dtype)
            factor = self.broadcast(s, alpha)
            total = s.value(f"fmul {kind} {total}, {factor}")
        if beta != 0.0:
            factor = self.broadcast(s, literal(beta, dtype))
            total = self.fma(s, factor, self.load(s, before, v), total)
        address = offset(s, pointer, str(v * self.tile.width), dtype)
        mask, align = self._mask(v), dtype.itemsize
        if mask is None and self.tile.bypasses:
            vector = execution_engine.vector_bytes()
            s.write(f"store {kind} {total}, ptr {address}, align {vector}, !nontemporal !0")
            return
        if mask is None:
            s.write(f"store {kind} {total}, ptr {address}, align {align}")
            return
        simd_value.masked_store(
            self.module, s, in_memory(dtype), self.tile.width, total, address, align, mask
        )
