"""Run the body of a scalar function of any dtypes, complex ones included, on arrays.

ufunc_driver.py runs leaves that are ufuncs of real numbers.  Here a body is any function of the
language and of its lanes, so that casts, pairs and leaves that NumPy lacks can be tested too.
"""

from __future__ import annotations

import ctypes
import functools
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from wengert._engine.backends.llvm.ir import execution_engine
from wengert._engine.backends.llvm.ir.ir_builder import Function, ModuleBuilder, Section
from wengert._engine.backends.llvm.ir.llvm_types import in_memory, of_width, part_of
from wengert._engine.backends.llvm.ir.scalar_language import Language
from wengert._engine.backends.llvm.ir.simd_value import ComplexLane, Lane
from wengert._engine.backends.llvm.vector_math import call_leaf


def _places(section: Section, name: str, i: str, dtype: Any, width: int) -> list[tuple[str, str]]:
    """For each part of a number and each lane its address and type; one vector if it is real."""
    if dtype.kind != "c":
        kind = in_memory(dtype)
        at = section.value(f"getelementptr {kind}, ptr %{name}, i64 {i}")
        return [(at, of_width(kind, width))]
    kind = in_memory(part_of(dtype))
    twice = section.value(f"shl i64 {i}, 1")
    out = []
    for k in range(2 * width):
        place = section.value(f"add i64 {twice}, {k}")
        out.append((section.value(f"getelementptr {kind}, ptr %{name}, i64 {place}"), kind))
    return out


def _read(s: Language, section: Section, name: str, i: str, dtype: Any, width: int) -> Any:
    places = _places(section, name, i, dtype, width)
    values = [section.value(f"load {kind}, ptr {at}, align 1") for at, kind in places]
    if dtype.kind == "b":
        values = [section.value(f"trunc {places[0][1]} {values[0]} to {of_width('i1', width)}")]
    if dtype.kind != "c":
        return Lane(s, section, values[0], dtype, width)
    part = part_of(dtype)
    parts = []
    for k in range(2):
        whole, kind = values[k], of_width(in_memory(part), width)
        if width > 1:
            whole = "poison"
            for j in range(width):
                text = f"insertelement {kind} {whole}, {places[0][1]} {values[2 * j + k]}, i64 {j}"
                whole = section.value(text)
        parts.append(Lane(s, section, whole, part, width))
    return ComplexLane(s, *parts, dtype)


def _write(s: Language, section: Section, i: str, x: Any, width: int) -> None:
    places = _places(section, "out", i, x.dtype, width)
    if x.dtype.kind != "c":
        x = s.widened(x, width)
        name = x.name
        if x.dtype.kind == "b":
            name = section.value(f"zext {of_width('i1', width)} {name} to {places[0][1]}")
        section.write(f"store {places[0][1]} {name}, ptr {places[0][0]}, align 1")
        return
    for k, part in enumerate((x.real, x.imag)):
        part = s.widened(part, width)
        for j in range(width):
            at, kind = places[2 * j + k]
            name = part.name
            if width > 1:
                name = section.value(f"extractelement {part.kind} {part.name}, i64 {j}")
            section.write(f"store {kind} {name}, ptr {at}, align 1")


@functools.cache
def compiled(body: Callable[..., Any], dtypes: tuple[Any, ...], out: Any, width: int) -> Any:
    """A C function of the addresses of operands and result, and of the number of elements."""
    module = ModuleBuilder()
    s = Language(module)
    arguments = [("ptr", f"a{k}") for k in range(len(dtypes))] + [("ptr", "out"), ("i64", "n")]
    function = Function(module, "kernel", arguments, linkage="")
    with function.body.loop("0", "%n", str(width)) as (section, i):
        lanes = [_read(s, section, f"a{k}", i, d, width) for k, d in enumerate(dtypes)]
        _write(s, section, i, s.cast(body(s, *lanes), out), width)
    function.body.write("ret void")
    module.add(function)
    code = execution_engine.Code(
        execution_engine.object_of(module.text(execution_engine.heading())), {}
    )
    kinds = [ctypes.c_void_p] * (len(dtypes) + 1)
    run = ctypes.CFUNCTYPE(None, *kinds, ctypes.c_int64)(code.address("kernel"))
    run.code = code  # lives as long as its address
    return run


def run_body(body: Callable[..., Any], out: Any, *arrays: Any, width: int = 4) -> Any:
    """What a body gives for arrays of one dimension and the same length, in the dtype `out`."""
    out = np.dtype(out)
    run = compiled(body, tuple(x.dtype for x in arrays), out, width)
    count = len(arrays[0])
    padded = [np.concatenate([x, np.ones(-count % width, x.dtype)]) for x in arrays]
    result = np.empty(len(padded[0]), out)
    run(*[x.ctypes.data for x in padded], result.ctypes.data, len(result))
    return result[:count]


@functools.cache
def ufunc_body(name: str) -> Callable[..., Any]:
    """The body that is one of NumPy's ufuncs."""

    def body(s: Language, *lanes: Any) -> Any:
        return s.unary(name, *lanes) if len(lanes) == 1 else s.binary(name, *lanes)

    return body


@functools.cache
def leaf_body(name: str) -> Callable[..., Any]:
    """The body that is one leaf, of lanes that have the dtype of its result."""

    def body(s: Language, *lanes: Any) -> Any:
        return call_leaf(s, name, lanes[0].dtype, lanes)

    return body


def body_nanoseconds(
    body: Callable[..., Any], out: Any, *arrays: Any, width: int = 8, turns: int = 40
) -> float:
    """The time for one element; of arrays whose length the width divides."""
    run = compiled(body, tuple(x.dtype for x in arrays), np.dtype(out), width)
    result = np.empty(len(arrays[0]), out)
    addresses = [x.ctypes.data for x in arrays] + [result.ctypes.data]
    return (_best(run, addresses, len(result), turns) - _best(run, addresses, 0, turns)) / len(
        result
    )


def _best(run: Any, addresses: list[int], count: int, turns: int) -> float:
    times = []
    for _ in range(25):
        start = time.perf_counter_ns()
        for _ in range(turns):
            run(*addresses, count)
        times.append((time.perf_counter_ns() - start) / turns)
    return min(times)


def same(found: Any, right: Any) -> Any:
    """Whether two arrays agree to the last bit; all NaN are the same."""
    found, right = np.asarray(found), np.asarray(right)
    if found.dtype.kind == "c":
        return same(found.real, right.real) & same(found.imag, right.imag)
    if found.dtype.kind != "f":
        return found == right
    equal = (found == right) & (np.signbit(found) == np.signbit(right))
    return equal | (np.isnan(found) & np.isnan(right))
