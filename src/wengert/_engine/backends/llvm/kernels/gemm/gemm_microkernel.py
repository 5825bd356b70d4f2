"""Register-blocked products of matrices one of which fits into a cache.

    packed    a matrix in row-major order
    run       c = alpha * a @ b + beta * c

A tile of the result, some rows by two vectors, is accumulated in registers: in each step of the sum
two vectors of b are loaded, and each row's element of a is broadcast.  The rows of b must be
contiguous (else b is copied); a may have any strides.  If a is long, panels of b's columns are
packed first: rows whose length is a power of two would evict each other from the cache.

OpenBLAS packs both operands first, and computes tiles of a fixed size; products of 1,000 by 10 and
10 by 10 elements take it twice as long, those of a layer of 256 units for 64 samples 1.2 to 1.5
times, and large ones the same time.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from wengert._engine.core.symbolic.dim import Length

from ...ir import execution_engine, masked_memory
from ...ir.ir_builder import Function, Name, Section
from ...ir.llvm_types import Dtype, in_memory, literal, of_width
from ...tuning import thresholds
from ..kernel_call import ArrayPointer, KernelCall
from ..loop_helpers import copy, kind_of, offset
from .operands import Matrix, Product

_VECTORS = 2  # side by side in a tile
_PANEL = 256  # steps of the sum for which b is packed: 32 KiB
_LINE = 64  # bytes of a line of the cache
_REACH = 3  # rows that processors address from one register and a distance: 0, 1, 2 times it
_ROWS = {64: {1: 16, 2: 12}, 32: {1: 10, 2: 6}}  # of a tile, by bytes and number of vectors


class _Tile(NamedTuple):
    """The parameters of a tile; strides count elements.

    Products of other sizes have the same tiles, so strides are arguments of the function: compiling
    dozens of functions for the products of one network would take most of the compile time.  For
    short sums they are constants (`is_fixed`), as the code before and after the sum matters there.
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

    @property
    def strides(self) -> tuple[int, int, int]:
        """The arguments of a function: the stride of a that is not 1, and those of b and c."""
        of_a = self.row_of_a if self.step_of_a == 1 else self.step_of_a
        return of_a, self.step_of_b, self.row_of_c

    @property
    def width(self) -> int:
        """Elements of a vector."""
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
    tile = _Tile(dtype, 0, 0, row_of_a, step_of_a, step_of_b, row_of_c, alpha, added, is_short)
    if scale.pointer is not None:
        tile = tile._replace(alpha=1.0, scale=scale.value(call, s, dtype).name)
    packs = _is_packed(a, c, dtype)
    most = _PANEL if packs else max(thresholds.gemm_block_bytes // max(n * dtype.itemsize, 1), 64)
    part = _by_panels if packs else _down
    if type(k) is int and k <= (most if packs else 2 * most):
        part(call, s, tile, (a, b, c), before or c.pointer, call.number(k))
        return
    stop, start = call.number(k), "0"
    if beta not in (0, 1) or type(k) is not int:  # beta once; and where k is 0, c is written too
        part(call, s, tile, (a, b, c), before or c.pointer, s.smaller(stop, str(most)))
        start, before, beta = str(most), None, 1
    with s.loop(start, stop, str(most)) as (t, p):
        ahead = [
            m._replace(pointer=offset(t, m.pointer, t.times(p, str(step)), dtype))
            for m, step in ((a, tile.step_of_a), (b, tile.step_of_b))
        ]
        count = t.smaller(str(most), t.minus(stop, p))
        more = t.value(f"icmp ne i64 {p}, 0")
        own = tile._replace(beta=1.0, adds="true" if beta else more)
        old = c.pointer
        if before is not None:
            old = t.value(f"select i1 {more}, ptr {old}, ptr {before}")
        part(call, t, own, (ahead[0], ahead[1], c), old, count)


def _is_packed(a: Matrix, c: Matrix, dtype: Dtype) -> bool:
    """Whether b is packed first: it is used often enough, and exceeds the nearest cache."""
    m, n, k = c.rows.length, c.columns.length, a.columns.length
    if type(m) is int and m < thresholds.gemm_packed_rows:
        return False
    return type(k) is not int or n * k * dtype.itemsize > thresholds.gemm_packed_bytes


def _by_panels(
    call: KernelCall,
    s: Section,
    tile: _Tile,
    matrices: tuple[Matrix, Matrix, Matrix],
    before: Name,
    k: Name,
) -> None:
    """All rows, for a part of the sum; panels of b's columns are packed first."""
    a, b, c = matrices
    n, wide = c.columns.length, tile.width * _VECTORS
    memory = call.scratch(_PANEL * wide * tile.dtype.itemsize)
    whole = n - n % wide
    for first, stop, columns in ((0, whole, wide), (whole, n, n - whole)):
        if first == stop:
            continue
        filler = _filler(call, tile._replace(columns=columns))
        own = tile._replace(columns=columns, step_of_b=wide)
        with s.loop(str(first), str(stop), str(columns)) as (t, j):
            other, old, to = (offset(t, p, j, tile.dtype) for p in (b.pointer, before, c.pointer))
            t.write(f"call void @{filler}(i64 {k}, ptr {other}, ptr {memory})")
            length = c.columns._replace(length=columns)
            narrow = c._replace(pointer=to, columns=length)
            _down(call, t, own, (a, b._replace(pointer=memory), narrow), old, k)


def _filler(call: KernelCall, tile: _Tile) -> str:
    """The function that copies a panel, `void (i64 k, ptr b, ptr to)`."""
    name = f"panel.{tile.dtype.str[1:]}.{tile.columns}.{tile.step_of_b}"
    if name in call.module:
        return name
    arguments = [("i64", "k"), ("ptr", "b"), ("ptr", "to")]
    function = Function(call.module, name, arguments, attributes="noinline nounwind #1")
    vectors = _Vectors(call, tile)
    with function.body.loop("0", "%k") as (s, p):
        row = offset(s, "%b", s.times(p, str(tile.step_of_b)), tile.dtype)
        to = offset(s, "%to", s.times(p, str(tile.width * _VECTORS)), tile.dtype)
        for v in vectors.each:
            place = offset(s, to, str(v * tile.width), tile.dtype)
            value = vectors.load(s, row, v)
            s.write(f"store {vectors.kind} {value}, ptr {place}, align {tile.dtype.itemsize}")
    function.body.write("ret void")
    call.module.add(function)
    return name


def _down(
    call: KernelCall,
    s: Section,
    tile: _Tile,
    matrices: tuple[Matrix, Matrix, Matrix],
    before: Name,
    k: Name,
) -> None:
    """All rows, for a part of the sum."""
    a, b, c = matrices
    m: Length = c.rows.length
    n: Any = c.columns.length
    start: Name = "0"
    for rows in _heights(m, min(-(-n // tile.width), _VECTORS)):
        if type(m) is int:
            stop = str(m - (m - int(start)) % rows)
        else:
            left = s.minus(call.number(m), start)
            stop = s.plus(start, s.minus(left, s.value(f"urem i64 {left}, {rows}")))
        with s.loop(start, stop, str(rows)) as (t, i):
            own = offset(t, a.pointer, t.times(i, str(tile.row_of_a)), tile.dtype)
            down = t.times(i, str(tile.row_of_c))
            old, to = (offset(t, p, down, tile.dtype) for p in (before, c.pointer))
            _across(call, t, tile._replace(rows=rows), (own, b.pointer, old, to), k, n)
        start = stop


def _across(
    call: KernelCall, s: Section, tile: _Tile, pointers: tuple[Name, ...], k: Name, n: int
) -> None:
    """The tiles of some rows, one after the other."""
    a, *others = pointers
    wide = tile.width * _VECTORS
    whole = n - n % wide
    for first, stop, columns in ((0, whole, wide), (whole, n, n - whole)):
        if first == stop:
            continue
        function = _function(call, tile._replace(columns=columns))
        with s.loop(str(first), str(stop), str(columns)) as (t, j):
            given = [f"ptr {offset(t, p, j, tile.dtype)}" for p in others]
            given += [] if tile.is_fixed else [f"i64 {x}" for x in tile.strides]
            given += [f"i1 {tile.adds}"] if tile.adds else []
            given += [f"{kind_of(tile.dtype)} {tile.scale}"] if tile.scale else []
            t.write(f"call void @{function}(i64 {k}, ptr {a}, {', '.join(given)})")


def _heights(m: Length, vectors: int) -> list[int]:
    """The heights of tiles: as large as registers allow, and nearly equal."""
    most = _ROWS[execution_engine.vector_bytes()][max(vectors, 1)]
    if type(m) is not int:
        return [most, 4, 1]
    count = -(-m // most)
    height = -(-m // max(count, 1))
    return [x for x in (height, m % height if height else 0) if x]


def packed(call: KernelCall, s: Section, b: Matrix, dtype: Dtype) -> Matrix:
    """The same matrix in row-major order: copied, if it is not."""
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


def _function(call: KernelCall, tile: _Tile) -> str:
    """The function that computes one tile, `void (i64 k, ptr a, ptr b, ptr before, ptr c)`.

    Unless they are constants, strides follow: `i64 of_a, i64 of_b, i64 of_c`; for one part of a
    longer sum `i1 adds`; and the factor of the product, unless it is a constant.
    """
    row_of_a, step_of_a, step_of_b, row_of_c = _strides(tile)
    numbers = f"{tile.rows}_{tile.columns}_{row_of_a}_{step_of_a}_{step_of_b}_{row_of_c}"
    name = f"tile.{tile.dtype.str[1:]}.{numbers.replace('%', '')}"
    name += f".{literal(tile.alpha, tile.dtype)}.{literal(tile.beta, tile.dtype)}"
    name += ".adds" * bool(tile.adds) + ".scaled" * bool(tile.scale)
    if name in call.module:
        return name
    arguments = [("i64", "k"), *(("ptr", x) for x in ("a", "b", "before", "c"))]
    arguments += [] if tile.is_fixed else [("i64", x) for x in ("of_a", "of_b", "of_c")]
    arguments += [("i1", "adds")] if tile.adds else []
    arguments += [(kind_of(tile.dtype), "scale")] if tile.scale else []
    function = Function(call.module, name, arguments, attributes="noinline nounwind #1")
    body = function.body
    vectors = _Vectors(call, tile)
    firsts = [
        offset(body, "%a", body.times(row_of_a, str(i)), tile.dtype)
        for i in range(0, tile.rows, _REACH)
    ]
    reach = [body.times(row_of_a, str(i)) for i in range(_REACH)]
    sums = [[function.slot(vectors.kind) for _ in vectors.each] for _ in range(tile.rows)]
    for row in sums:
        for total in row:
            body.write(f"store {vectors.kind} zeroinitializer, ptr {total}")
    with body.loop("0", "%k") as (s, p):
        along = s.times(p, step_of_a)
        near = [_apart(s, row_of_a, offset(s, x, along, tile.dtype)) for x in firsts]
        row_of_b = offset(s, "%b", s.times(p, step_of_b), tile.dtype)
        if step_of_a != "1":
            _fetch(s, tile, (near[0], step_of_a), (row_of_b, step_of_b))
        others = [vectors.load(s, row_of_b, v) for v in vectors.each]
        for i, row in enumerate(sums):
            place = offset(s, near[i // _REACH], reach[i % _REACH], tile.dtype)
            one = vectors.spread(s, place)
            for other, total in zip(others, row, strict=True):
                before = s.value(f"load {vectors.kind}, ptr {total}")
                s.write(f"store {vectors.kind} {vectors.fma(s, one, other, before)}, ptr {total}")
    if tile.adds:
        with body.when("%adds") as s:
            _finish(s, vectors, sums, row_of_c, tile.beta)
            s.write("ret void")
            s.label(f"other{function.number()}")  # never reached: the following code needs a block
    _finish(body, vectors, sums, row_of_c, 0.0 if tile.adds else tile.beta)
    body.write("ret void")
    call.module.add(function)
    return name


def _finish(
    s: Section, vectors: _Vectors, sums: list[list[Name]], row_of_c: Name, beta: float
) -> None:
    """Write all rows of a tile."""
    for i, row in enumerate(sums):
        down = s.times(row_of_c, str(i))
        old, to = (offset(s, p, down, vectors.tile.dtype) for p in ("%before", "%c"))
        for v, total in zip(vectors.each, row, strict=True):
            vectors.finish(s, (old, to), v, s.value(f"load {vectors.kind}, ptr {total}"), beta)


def _strides(tile: _Tile) -> tuple[Name, Name, Name, Name]:
    """Rows and steps of a, steps of b, rows of c: constants, or arguments of the function."""
    if tile.is_fixed:
        row_of_a, step_of_a = str(tile.row_of_a), str(tile.step_of_a)
        return row_of_a, step_of_a, str(tile.step_of_b), str(tile.row_of_c)
    if tile.step_of_a == 1:
        return "%of_a", "1", "%of_b", "%of_c"
    return str(tile.row_of_a), "%of_a", "%of_b", "%of_c"


def _apart(s: Section, row: Name, pointer: Name) -> Name:
    """The address of a row, relative to which the next rows are addressed.

    The origin of the address is hidden from LLVM, which would otherwise compute each row's address
    from that of the previous row: a chain of additions that takes as long as the products.
    """
    known = not row.startswith("%")
    return pointer if known else s.value(f'call ptr asm "", "=r,0"(ptr {pointer})')


def _fetch(s: Section, tile: _Tile, a: tuple[Name, Name], b: tuple[Name, Name]) -> None:
    """Prefetch elements of later steps: processors do not predict distant rows."""
    fetch = s.function.module.declare("llvm.prefetch.p0", "void", ["ptr", "i32", "i32", "i32"])
    line = _LINE // tile.dtype.itemsize
    for (pointer, step), count in ((a, tile.rows), (b, tile.columns)):
        further = offset(s, pointer, s.times(step, str(thresholds.gemm_prefetch_steps)), tile.dtype)
        for k in range(0, count, line):
            place = offset(s, further, str(k), tile.dtype)
            s.write(f"call void {fetch}(ptr {place}, i32 0, i32 3, i32 1)")


class _Vectors:
    """The vectors of a row of a tile; the last may have fewer elements."""

    def __init__(self, call: KernelCall, tile: _Tile) -> None:
        self.module, self.tile = call.module, tile
        self.each = range(-(-tile.columns // tile.width))
        self.kind = of_width(in_memory(tile.dtype), tile.width)
        self.suffix = f"v{tile.width}f{8 * tile.dtype.itemsize}"

    def _mask(self, v: int) -> Name | None:
        count = self.tile.columns - v * self.tile.width
        if count >= self.tile.width:
            return None
        return f"<{', '.join(f'i1 {str(k < count).lower()}' for k in range(self.tile.width))}>"

    def load(self, s: Section, pointer: Name, v: int) -> Name:
        """The elements of one vector, 0 beyond the last."""
        place = offset(s, pointer, str(v * self.tile.width), self.tile.dtype)
        mask, align = self._mask(v), self.tile.dtype.itemsize
        if mask is None:
            return s.value(f"load {self.kind}, ptr {place}, align {align}")
        element, width = in_memory(self.tile.dtype), self.tile.width
        return masked_memory.load(self.module, s, element, width, place, align, mask)

    def spread(self, s: Section, pointer: Name) -> Name:
        """One element broadcast to a vector."""
        one = s.value(f"load {kind_of(self.tile.dtype)}, ptr {pointer}")
        return self._everywhere(s, one)

    def _everywhere(self, s: Section, one: Name) -> Name:
        kind = in_memory(self.tile.dtype)
        first = s.value(f"insertelement {self.kind} poison, {kind} {one}, i64 0")
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
        """Write one vector of the result; `rows` begin those of the matrix added and of c."""
        dtype, kind = self.tile.dtype, self.kind
        before, pointer = rows
        if self.tile.scale or self.tile.alpha != 1.0:
            alpha = "%scale" if self.tile.scale else literal(self.tile.alpha, dtype)
            factor = self._everywhere(s, alpha)
            total = s.value(f"fmul {kind} {total}, {factor}")
        if beta != 0.0:
            factor = self._everywhere(s, literal(beta, dtype))
            total = self.fma(s, factor, self.load(s, before, v), total)
        place = offset(s, pointer, str(v * self.tile.width), dtype)
        mask, align = self._mask(v), dtype.itemsize
        if mask is None:
            s.write(f"store {kind} {total}, ptr {place}, align {align}")
            return
        masked_memory.store(
            self.module, s, in_memory(dtype), self.tile.width, total, place, align, mask
        )
