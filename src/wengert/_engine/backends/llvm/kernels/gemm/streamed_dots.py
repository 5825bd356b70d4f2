"""Products of a few rows with the transpose of a matrix that is too large for a cache.

    run             c = alpha * a @ b + beta * c, on one thread
    run_in_parts    the same, columns of c divided among threads

The matrix is read once, in the order in which it is stored: some of its rows, which are columns of
b, at a time (`_COLUMNS`), from the first element to the last.  Their products with the rows of a,
which a near cache keeps, are summed in registers.  Other rows of a come later, when the rows of the
matrix are in a near cache too.

The derivative of a product of a few rows and a large matrix with respect to the rows is one.  8
rows times the transpose of 30,000 x 2,000 elements (240 MB) in single precision take a third of the
time of OpenBLAS, which copies the matrix first.
"""

from __future__ import annotations

from typing import Any

from ...ir import execution_engine, masked_memory
from ...ir.ir_builder import Function, Name, Section
from ...ir.llvm_types import in_memory, literal, of_width
from ..kernel_call import KernelCall
from ..loop_helpers import kind_of, offset
from .operands import Product

_COLUMNS = 3  # of b at a time
_ROWS = {64: 8, 32: 4}  # of a at a time, by the size of a vector: their sums are in registers


def run(call: KernelCall, s: Section, product: Product) -> None:
    """Write a product for which `choose.is_streamed_transpose` holds."""
    _run(call, s, product, "0", str(_groups(product)))


def run_in_parts(call: KernelCall, s: Section, product: Product, work: int) -> None:
    """Write a product whose operands are those of the call, for threads with that much work."""
    groups = _groups(product)
    grain = max(1, work * groups // int(product.operations))

    def write(part: KernelCall, start: Name, stop: Name) -> None:
        _run(part, part.section, product, start, stop)

    call.in_parts(groups, grain, write, s)


def _groups(product: Product) -> int:
    """The number of groups of columns."""
    return -(-int(product.c.columns.length) // _COLUMNS)


def _run(call: KernelCall, s: Section, product: Product, start: Name, stop: Name) -> None:
    """Write groups of columns, from start to stop."""
    rest = int(product.c.columns.length) % _COLUMNS
    last = _groups(product) - 1
    full = s.smaller(stop, str(last)) if rest else stop
    with s.loop(start, full) as (t, group):
        _write_group(call, t, product, group, _COLUMNS)
    if rest:
        has_rest = s.value(f"icmp eq i64 {stop}, {last + 1}")
        with s.when(has_rest) as t:
            _write_group(call, t, product, str(last), rest)


def _write_group(call: KernelCall, s: Section, product: Product, group: Name, count: int) -> None:
    """Call the function that writes some columns."""
    dtype, scale = product.dtype, product.alpha
    first = s.times(group, str(_COLUMNS))
    b = offset(s, product.b.pointer, s.times(first, str(product.b.columns.stride)), dtype)
    column = s.times(first, str(product.c.columns.stride))
    c, before = product.c.pointer, product.addend or product.c.pointer
    function = _function(call, product, count)
    arguments = f"ptr {product.a.pointer}, ptr {b}"
    arguments += f", ptr {offset(s, before, column, dtype)}, ptr {offset(s, c, column, dtype)}"
    if scale.pointer is not None:
        arguments += f", {kind_of(dtype)} {scale.value(call, s, dtype).name}"
    s.write(f"call void @{function}({arguments})")


def _function(call: KernelCall, product: Product, count: int) -> str:
    """The function that writes some columns, `void (ptr a, ptr b, ptr before, ptr c)`.

    The factor of the product follows, unless it is a constant.
    """
    a, b, c, dtype = product[:4]
    m, k = int(a.rows.length), int(a.columns.length)
    strides: tuple[Any, ...] = (a.rows.stride, b.columns.stride, c.rows.stride, c.columns.stride)
    is_scaled = product.alpha.pointer is not None
    alpha = literal(1.0 if is_scaled else float(product.alpha.number.real), dtype)
    beta = float(product.beta.real)
    name = f"dots.{dtype.str[1:]}.{'_'.join(map(str, (m, count, k, *strides)))}"
    name += f".{alpha}.{literal(beta, dtype)}" + ".scaled" * is_scaled
    if name in call.module:
        return name
    arguments = [("ptr", x) for x in ("a", "b", "before", "c")]
    arguments += [(kind_of(dtype), "scale")] if is_scaled else []
    function = Function(call.module, name, arguments, attributes="noinline nounwind #1")
    body, kind = function.body, in_memory(dtype)
    highest = _ROWS[execution_engine.vector_bytes()]
    height = -(-m // -(-m // highest))
    for first in range(0, m, height):
        rows = range(first, min(first + height, m))
        sums = _summed(call, body, product, rows, count)
        for i, of_row in zip(rows, sums, strict=True):
            for j, found in enumerate(of_row):
                total = found
                if is_scaled or alpha != literal(1.0, dtype):
                    factor = "%scale" if is_scaled else alpha
                    total = body.value(f"fmul {kind} {total}, {factor}")
                place = str(i * strides[2] + j * strides[3])
                if beta != 0.0:
                    old = body.value(f"load {kind}, ptr {offset(body, '%before', place, dtype)}")
                    old = body.value(f"fmul {kind} {old}, {literal(beta, dtype)}")
                    total = body.value(f"fadd {kind} {total}, {old}")
                body.write(f"store {kind} {total}, ptr {offset(body, '%c', place, dtype)}")
    body.write("ret void")
    call.module.add(function)
    return name


def _summed(
    call: KernelCall, body: Section, product: Product, rows: range, count: int
) -> list[list[Name]]:
    """The products of some rows of a and columns of b."""
    dtype, k = product.dtype, int(product.a.columns.length)
    row_of_a: Any = product.a.rows.stride
    column_of_b: Any = product.b.columns.stride
    width = execution_engine.vector_bytes() // dtype.itemsize
    kind = of_width(in_memory(dtype), width)
    suffix = f"v{width}f{8 * dtype.itemsize}"
    fma = call.module.declare(f"llvm.fma.{suffix}", kind, [kind] * 3)
    sums = [[body.function.slot(kind) for _ in range(count)] for _ in rows]
    for total in [x for of_row in sums for x in of_row]:
        body.write(f"store {kind} zeroinitializer, ptr {total}")
    columns = [offset(body, "%b", str(j * column_of_b), dtype) for j in range(count)]
    lines = [offset(body, "%a", str(i * row_of_a), dtype) for i in rows]

    def add(s: Section, p: Name, length: int) -> None:
        def load(pointer: Name) -> Name:
            place, align = offset(s, pointer, p, dtype), dtype.itemsize
            if length == width:
                return s.value(f"load {kind}, ptr {place}, align {align}")
            mask = f"<{', '.join(f'i1 {str(x < length).lower()}' for x in range(width))}>"
            return masked_memory.load(call.module, s, in_memory(dtype), width, place, align, mask)

        if rows.start == 0 and length == width:
            for x in columns:
                _prefetch(s, offset(s, offset(s, x, p, dtype), str(count * column_of_b), dtype))
        of_b = [load(x) for x in columns]
        for line, of_row in zip(lines, sums, strict=True):
            of_a = load(line)
            for x, total in zip(of_b, of_row, strict=True):
                old = s.value(f"load {kind}, ptr {total}")
                operands = f"{kind} {of_a}, {kind} {x}, {kind} {old}"
                s.write(f"store {kind} {s.value(f'call {kind} {fma}({operands})')}, ptr {total}")

    with body.loop("0", str(k - k % width), str(width)) as (s, p):
        add(s, p, width)
    if k % width:
        add(body, str(k - k % width), k % width)
    element = in_memory(dtype)
    reduce = call.module.declare(f"llvm.vector.reduce.fadd.{suffix}", element, [element, kind])
    zero = literal(-0.0, dtype)
    return [
        [
            body.value(
                f"call reassoc {element} {reduce}({element} {zero}, {kind} "
                f"{body.value(f'load {kind}, ptr {total}')})"
            )
            for total in of_row
        ]
        for of_row in sums
    ]


def _prefetch(s: Section, place: Name) -> None:
    """Prefetch the same element of a later group: hardware prefetches within a page only."""
    prefetch = s.function.module.declare("llvm.prefetch.p0", "void", ["ptr", "i32", "i32", "i32"])
    s.write(f"call void {prefetch}(ptr {place}, i32 0, i32 2, i32 1)")
