"""Transposed copies of matrices, in vectors.

    transposer    the function for elements of four or eight bytes
    transposed    a square of vectors in registers

A square block, whose side is the width of a vector, is read row by row, transposed in registers and
written row by row: in stages of increasing distance, each row swaps half of its elements with
another.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..ir import execution_engine
from ..ir.ir_builder import Function, ModuleBuilder, Name, Section
from ..ir.llvm_types import of_width


def transposer(module: ModuleBuilder, size: int) -> str:
    """The function for elements of a given size in bytes: to[i, j] = of[j, i].

    Its arguments are `to`, `of`, the lengths of i and j, and the row strides of `to` and `of`.
    """
    name = f"transpose.{size}"
    if name in module:
        return name
    arguments = [("ptr", "to"), ("ptr", "of")]
    arguments += [("i64", n) for n in ("high", "wide", "down0", "down1")]
    function = Function(module, name, arguments, attributes="noinline nounwind #1")
    body, kind, width = function.body, f"i{8 * size}", execution_engine.vector_bytes() // size
    high, wide = (body.value(f"and i64 %{n}, {-width}") for n in ("high", "wide"))
    with body.loop("0", high, str(width)) as (s, i), s.loop("0", wide, str(width)) as (t, j):
        _transpose_square(t, kind, width, i, j)
    for first, last, begin in (("0", high, wide), (high, "%high", "0")):
        with body.loop(first, last) as (s, i), s.loop(begin, "%wide") as (t, j):
            value = t.value(f"load {kind}, ptr {_element(t, kind, '%of', j, '%down1', i)}, align 4")
            t.write(
                f"store {kind} {value}, ptr {_element(t, kind, '%to', i, '%down0', j)}, align 4"
            )
    body.write("ret void")
    module.add(function)
    return name


def _element(s: Section, kind: str, pointer: Name, row: Name, down: Name, column: Name) -> Name:
    count = s.value(f"add nsw i64 {s.value(f'mul nsw i64 {row}, {down}')}, {column}")
    return s.value(f"getelementptr {kind}, ptr {pointer}, i64 {count}")


def _transpose_square(s: Section, kind: str, width: int, i: Name, j: Name) -> None:
    vector = of_width(kind, width)
    rows = []
    for k in range(width):
        pointer = _element(s, kind, "%of", s.value(f"add nsw i64 {j}, {k}"), "%down1", i)
        rows.append(s.value(f"load {vector}, ptr {pointer}, align 4"))
    rows = transposed(s, vector, rows)
    for k in range(width):
        pointer = _element(s, kind, "%to", s.value(f"add nsw i64 {i}, {k}"), "%down0", j)
        s.write(f"store {vector} {rows[k]}, ptr {pointer}, align 4")


def transposed(s: Section, vector: str, rows: Sequence[Name]) -> list[Name]:
    """The columns of a square of vectors."""
    rows, width, distance = list(rows), len(rows), 1
    while distance < width:
        for k in range(width):
            if not k & distance:
                rows[k], rows[k + distance] = _swapped(
                    s, vector, width, distance, rows[k], rows[k + distance]
                )
        distance *= 2
    return rows


def _swapped(
    s: Section, vector: str, width: int, distance: int, x: Name, y: Name
) -> tuple[Name, Name]:
    """Exchange halves of two rows."""
    low = [width + k - distance if k & distance else k for k in range(width)]
    high = [width + k if k & distance else k + distance for k in range(width)]
    rows = []
    for mask in (low, high):
        listed = ", ".join(f"i32 {k}" for k in mask)
        rows.append(
            s.value(f"shufflevector {vector} {x}, {vector} {y}, <{width} x i32> <{listed}>")
        )
    return rows[0], rows[1]
