"""Products of a few rows with a matrix that is too large for a cache.

    run            c = alpha * a @ b + beta * c, on one thread
    run_in_parts   the same, columns of c divided among threads

The second factor is read once, at the speed of memory, if it is read in the order in which it is
stored: some of its rows at a time (`_STEPS`), each from its first column to its last.  What they
contribute to all rows of the result is added to it in a near cache.  Tiles of columns that are
accumulated over hundreds of rows (gemm_microkernel.py, OpenBLAS) read pieces of 128 bytes far apart
instead, which no processor prefetches.

8 rows times 30,000 x 2,000 elements (240 MB) in single precision: 20 ms with either, 9 with AVX-512
and 11 with AVX2 here; a product of this matrix with a vector takes 6.4.
"""

from __future__ import annotations

from typing import Any

from ...ir import execution_engine
from ...ir.ir_builder import Function, Name, Section
from ...ir.llvm_types import literal
from ...tuning import thresholds
from ..kernel_call import KernelCall
from ..loop_helpers import kind_of, offset
from .choose import streamed_columns
from .gemm_microkernel import GemmTile, RowVectors, tile_rows
from .operands import Product

_STEPS = 8  # rows of b at a time: streams that a processor prefetches
_CACHE_LINE = 64  # bytes


def run(call: KernelCall, s: Section, product: Product) -> None:
    """Write a product for which `choose.is_streamed` holds."""
    _run_panels(call, s, product, "0", str(_column_groups(product)))


def run_in_parts(call: KernelCall, s: Section, product: Product, work: int) -> None:
    """Write a product whose operands are those of the call, for threads with that much work."""
    groups = _column_groups(product)
    grain = max(1, work * groups // int(product.operations))

    def write(part: KernelCall, start: Name, stop: Name) -> None:
        _run_panels(part, part.section, product, start, stop)

    call.in_parts(groups, grain, write, s)


def _run_panels(call: KernelCall, s: Section, product: Product, start: Name, stop: Name) -> None:
    """Write groups of columns, as many at a time as fit into a near cache."""
    panel = max(1, streamed_columns(product) // _group(product))
    if panel >= _column_groups(product):
        _run(call, s, product, start, stop)
        return
    with s.loop(start, stop, str(panel)) as (t, first):
        _run(call, t, product, first, t.smaller(t.plus(first, str(panel)), stop))


def _run(call: KernelCall, s: Section, product: Product, start: Name, stop: Name) -> None:
    """Write groups of columns, from start to stop."""
    a, b, c, dtype, scale, beta, before = product
    n, k = int(c.columns.length), int(a.columns.length)
    columns, alpha = _group(product), float(scale.number.real)
    rows: Any = c.rows.length
    row_of_a: Any = a.rows.stride
    step_of_a: Any = a.columns.stride
    step_of_b: Any = b.rows.stride
    row_of_c: Any = c.rows.stride
    tile = GemmTile(
        dtype, rows, columns, row_of_a, step_of_a, step_of_b, row_of_c, alpha, 1.0, True
    )
    if scale.pointer is not None:
        tile = tile._replace(alpha=1.0, scale=scale.value(call, s, dtype).name)
    first = s.times(start, str(columns))
    last = s.smaller(s.times(stop, str(columns)), str(n - n % columns))
    has_rest = s.value(f"icmp eq i64 {stop}, {_column_groups(product)}")
    span = f"i64 {first}, i64 {last}, i1 {has_rest}"

    def add(s: Section, tile: GemmTile, steps: int, p: Name, old: Name) -> None:
        function = _function(call, tile, n, steps)
        of_a = offset(s, a.pointer, s.times(p, str(tile.step_of_a)), dtype)
        of_b = offset(s, b.pointer, s.times(p, str(tile.step_of_b)), dtype)
        factor = f", {kind_of(dtype)} {tile.scale}" if tile.scale else ""
        s.write(
            f"call void @{function}(ptr {of_a}, ptr {of_b}, ptr {old}, ptr {c.pointer}, "
            f"{span}{factor})"
        )

    if beta != 1 or before is not None:  # c before the first rows of b
        begin = tile._replace(alpha=1.0, beta=float(beta.real), scale="")
        add(s, begin, 0, "0", before or c.pointer)
    with s.loop("0", str(k - k % _STEPS), str(_STEPS)) as (t, p):
        add(t, tile, _STEPS, p, c.pointer)
    if k % _STEPS:
        add(s, tile, k % _STEPS, str(k - k % _STEPS), c.pointer)


def _group(product: Product) -> int:
    """The number of columns of a group: of as many vectors as registers allow."""
    width = execution_engine.vector_bytes() // product.dtype.itemsize
    rows: Any = product.c.rows.length
    return width * (2 if rows <= tile_rows(2) else 1)


def _column_groups(product: Product) -> int:
    return -(-int(product.c.columns.length) // _group(product))


def _function(call: KernelCall, tile: GemmTile, n: int, steps: int) -> str:
    """The function that adds what some rows of b contribute to columns of c.

    `void (ptr a, ptr b, ptr before, ptr c, i64 start, i64 stop, i1 rest)`, and the factor of the
    product, unless it is a constant; `rest` are the columns after the last whole group.
    """
    rest = n % tile.columns
    numbers = (steps, rest, tile.rows, tile.columns, *tile.all_strides)
    name = f"stream.{tile.dtype.str[1:]}.{'_'.join(map(str, numbers))}"
    name += f".{literal(tile.alpha, tile.dtype)}.{literal(tile.beta, tile.dtype)}"
    name += ".scaled" * bool(tile.scale)
    if name in call.module:
        return name
    arguments = [("ptr", x) for x in ("a", "b", "before", "c")]
    arguments += [("i64", "start"), ("i64", "stop"), ("i1", "rest")]
    if tile.scale:
        arguments.append((kind_of(tile.dtype), "scale"))
    function = Function(call.module, name, arguments, attributes="noinline nounwind #1")
    body = function.body
    with body.loop("%start", "%stop", str(tile.columns)) as (s, j):
        _add(call, s, tile, j, steps)
    if rest:
        with body.when("%rest") as s:
            _add(call, s, tile._replace(columns=rest), str(n - rest), steps)
    body.write("ret void")
    call.module.add(function)
    return name


def _add(call: KernelCall, s: Section, tile: GemmTile, j: Name, steps: int) -> None:
    """Write what some rows of b contribute to a group of columns of c."""
    vectors, dtype = RowVectors(call.module, tile), tile.dtype
    rows_of_b = [offset(s, "%b", str(p * tile.step_of_b), dtype) for p in range(steps)]
    rows_of_b = [offset(s, row, j, dtype) for row in rows_of_b]
    for row in rows_of_b:
        _prefetch(s, row, tile.columns * dtype.itemsize)
    highest = tile_rows(len(vectors.indices))
    for first in range(0, tile.rows, highest):
        rows = range(first, min(first + highest, tile.rows))
        sums = {i: ["zeroinitializer" for _ in vectors.indices] for i in rows}
        for p, row in enumerate(rows_of_b):
            of_b = [vectors.load(s, row, v) for v in vectors.indices]
            for i in rows:
                place = str(i * tile.row_of_a + p * tile.step_of_a)
                one = vectors.load_broadcast(s, offset(s, "%a", place, dtype))
                sums[i] = [vectors.fma(s, one, x, t) for x, t in zip(of_b, sums[i], strict=True)]
        for i in rows:
            down = str(i * tile.row_of_c)
            old, to = (offset(s, offset(s, p, down, dtype), j, dtype) for p in ("%before", "%c"))
            for v, total in zip(vectors.indices, sums[i], strict=True):
                vectors.finish(s, (old, to), v, total, tile.beta)


def _prefetch(s: Section, row: Name, size: int) -> None:
    """Prefetch what comes later in a row: hardware prefetches within a page only."""
    prefetch = s.function.module.declare("llvm.prefetch.p0", "void", ["ptr", "i32", "i32", "i32"])
    for line in range(0, size, _CACHE_LINE):
        place = thresholds.prefetched_row_bytes + line
        ahead = s.value(f"getelementptr i8, ptr {row}, i64 {place}")
        s.write(f"call void {prefetch}(ptr {ahead}, i32 0, i32 3, i32 1)")
