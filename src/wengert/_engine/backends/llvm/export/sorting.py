"""Sorting of exported code, in place of NumPy's functions.

    included    ``argsort.KIND.DTYPE`` by its symbol, a function as NumPy has it

All kinds are one stable merge sort; NaN comes last.  It allocates the positions once more, which
the kernel records (kernels/sort/argsort.py).
"""

from __future__ import annotations

import numpy as np

from ..ir.ir_builder import Function, ModuleBuilder, Name, Section
from ..ir.llvm_types import in_memory


def included(symbol: str) -> ModuleBuilder | None:
    """The function of a symbol; None for others, and for dtypes without a native order."""
    library, _, rest = symbol.partition(".")
    if library != "argsort":
        return None
    dtype = np.dtype(rest.rpartition(".")[2])
    if dtype.kind not in "biuf" or (dtype.itemsize == 2 and dtype.kind == "f"):
        return None
    module = ModuleBuilder()
    arguments = [("ptr", "values"), ("ptr", "positions"), ("i64", "count"), ("ptr", "unused")]
    function = Function(module, symbol, arguments, "i32", "nounwind")
    _write(function, dtype)
    module.add(function)
    return module


def _write(function: Function, dtype: np.dtype[np.generic]) -> None:
    """Merge runs of growing length, from the positions to a buffer and back."""
    body, module = function.body, function.module
    alloc = module.declare("wengert_alloc", "ptr", ["i64"])
    free = module.declare("wengert_free", "void", ["ptr"])
    size = body.value("mul i64 %count, 8")
    buffer = body.value(f"call ptr {alloc}(i64 {body.value(f'or i64 {size}, 1')})")
    with body.when(body.value(f"icmp eq ptr {buffer}, null")) as s:
        s.write("ret i32 -1")
        s.label(f"other{function.number()}")
    width = function.slot("i64")
    body.write(f"store i64 1, ptr {width}")
    n = function.number()
    body.block(f"wider{n}")
    length = body.value(f"load i64, ptr {width}")
    more = body.value(f"icmp slt i64 {length}, %count")
    body.write(f"br i1 {more}, label %pass{n}, label %sorted{n}")
    body.label(f"pass{n}")
    twice = body.value(f"mul i64 {length}, 2")
    with body.loop("0", "%count", twice) as (s, start):
        middle = s.smaller(s.plus(start, length), "%count")
        _merge(s, dtype, buffer, start, middle, s.smaller(s.plus(start, twice), "%count"))
    body.copy_bytes("%positions", buffer, size)
    body.write(f"store i64 {twice}, ptr {width}")
    body.write(f"br label %wider{n}")
    body.label(f"sorted{n}")
    body.write(f"call void {free}(ptr {buffer})")
    body.write("ret i32 0")


def _merge(
    s: Section, dtype: np.dtype[np.generic], buffer: Name, start: Name, middle: Name, stop: Name
) -> None:
    """Merge two neighboring runs into the buffer; of equal elements the first run's come first."""
    function, kind = s.function, in_memory(dtype)
    one, two = function.slot("i64"), function.slot("i64")
    s.write(f"store i64 {start}, ptr {one}")
    s.write(f"store i64 {middle}, ptr {two}")

    def element(t: Section, k: Name, end: Name) -> tuple[Name, Name]:
        """A position and its value; those of the last one of the run beyond its end."""
        last = t.minus(end, "1")
        place = t.value(f"getelementptr i64, ptr %positions, i64 {t.smaller(k, last)}")
        position = t.value(f"load i64, ptr {place}")
        at = t.value(f"getelementptr {kind}, ptr %values, i64 {position}")
        return position, t.value(f"load {kind}, ptr {at}")

    with s.loop(start, stop) as (t, k):
        i, j = t.value(f"load i64, ptr {one}"), t.value(f"load i64, ptr {two}")
        (p, x), (q, y) = element(t, i, middle), element(t, j, stop)
        has_one = t.value(f"icmp slt i64 {i}, {middle}")
        has_two = t.value(f"icmp slt i64 {j}, {stop}")
        takes = t.value(f"and i1 {has_two}, {_less(t, dtype, kind, y, x)}")
        takes = t.value(f"or i1 {takes}, {t.value(f'xor i1 {has_one}, true')}")
        place = t.value(f"getelementptr i64, ptr {buffer}, i64 {k}")
        t.write(f"store i64 {t.value(f'select i1 {takes}, i64 {q}, i64 {p}')}, ptr {place}")
        step = t.value(f"zext i1 {takes} to i64")
        other = t.value(f"sub i64 1, {step}")
        t.write(f"store i64 {t.plus(i, other)}, ptr {one}")
        t.write(f"store i64 {t.plus(j, step)}, ptr {two}")


def _less(s: Section, dtype: np.dtype[np.generic], kind: str, x: Name, y: Name) -> Name:
    if dtype.kind == "f":
        below = s.value(f"fcmp olt {kind} {x}, {y}")
        last = s.value(f"fcmp uno {kind} {y}, {y}")
        good = s.value(f"fcmp ord {kind} {x}, {x}")
        return s.value(f"or i1 {below}, {s.value(f'and i1 {last}, {good}')}")
    return s.value(f"icmp {'slt' if dtype.kind == 'i' else 'ult'} {kind} {x}, {y}")
