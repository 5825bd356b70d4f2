"""Routines that all entry points share, compiled once per process and called by address.

    new           allocates an array, with the recycling allocator if it is large
    drop          releases objects after a failure
    make_tuple    makes the tuple of results

Inlined, they would be most of the code and compile time of each entry point.
"""

from __future__ import annotations

import functools

from ..ir import execution_engine
from ..ir.ir_builder import ModuleBuilder
from ..runtime.runtime_library import loaded
from ..tuning import thresholds
from .address_table import SHARED, WORDS
from .cpython_layout import ITEMS
from .entry_builder import EntryBuilder

_NAMES = {name: f"wengert_entry_{name}" for name in SHARED}


@functools.cache
def shared() -> dict[str, int]:
    """The addresses of the functions, by name."""
    # Compiled without optimization: they mostly call other functions.
    found = loaded("", {}, _NAMES.values(), cold=text())
    return {name: found[symbol] for name, symbol in _NAMES.items()}


def text() -> str:
    """The module of the functions."""
    module = ModuleBuilder()
    _new(module)
    _drop(module)
    _make_tuple(module)
    return module.text(execution_engine.heading())


def _new(module: ModuleBuilder) -> None:
    """ptr new(ptr table, ptr dtype, i32 ndim, ptr lengths, i64 bytes); null if it raised."""
    arguments = [("ptr", "dtype"), ("i32", "ndim"), ("ptr", "lengths"), ("i64", "bytes")]
    builder = EntryBuilder(module, _NAMES["new"], [("ptr", "table"), *arguments], "ptr", WORDS)
    handler = builder.word("handler")
    large = builder.value(f"icmp sge i64 %bytes, {thresholds.pooled_result_bytes}")
    has_handler = builder.value(f"icmp ne ptr {handler}, null")
    builder.branch(builder.value(f"and i1 {large}, {has_handler}"), "pool", "plain")
    builder.label("plain")
    builder.write(f"ret ptr {_empty(builder)}")
    builder.label("pool")
    before = builder.made("PyDataMem_SetHandler", "none", f"ptr {handler}")
    made = _empty(builder)
    builder.call("PyErr_Clear", "void")  # MemoryError is raised again below
    ours = builder.call("PyDataMem_SetHandler", "ptr", f"ptr {before}")
    builder.call("Py_DecRef", "void", f"ptr {before}")
    builder.call("Py_DecRef", "void", f"ptr {ours}")
    created, restored = (builder.value(f"icmp ne ptr {x}, null") for x in (made, ours))
    builder.unless(builder.value(f"and i1 {created}, {restored}"), "bad")
    builder.write(f"ret ptr {made}")
    builder.label("bad")
    builder.call("Py_DecRef", "void", f"ptr {made}")
    builder.call("PyErr_NoMemory", "ptr")
    builder.go("none")
    builder.label("none")
    builder.write("ret ptr null")
    module.add(builder.function)


def _empty(builder: EntryBuilder) -> str:
    """A new uninitialized array; null, with an exception, if it cannot be allocated."""
    builder.call("Py_IncRef", "void", "ptr %dtype")  # the call takes a reference
    array = (f"ptr {builder.word('ndarray')}", "ptr %dtype", "i32 %ndim", "ptr %lengths")
    defaults = ("ptr null", "ptr null", "i32 0", "ptr null")  # strides, data, flags, prototype
    return builder.call("PyArray_NewFromDescr", "ptr", *array, *defaults)


def _drop(module: ModuleBuilder) -> None:
    """void drop(ptr table, ptr objects, i64 count): release objects; null is skipped."""
    arguments = [("ptr", "table"), ("ptr", "objects"), ("i64", "count")]
    builder = EntryBuilder(module, _NAMES["drop"], arguments, "void", WORDS)
    release = builder.word("Py_DecRef")
    with builder.section.loop("0", "%count") as (body, k):
        place = body.value(f"getelementptr ptr, ptr %objects, i64 {k}")
        body.write(f"call void {release}(ptr {body.value(f'load ptr, ptr {place}')})")
    builder.write("ret void")
    module.add(builder.function)


def _make_tuple(module: ModuleBuilder) -> None:
    """ptr make_tuple(ptr table, ptr objects, i64 count): a tuple that takes the references."""
    arguments = [("ptr", "table"), ("ptr", "objects"), ("i64", "count")]
    builder = EntryBuilder(module, _NAMES["make_tuple"], arguments, "ptr", WORDS)
    made = builder.made("PyTuple_New", "none", "i64 %count")
    items = builder.at(made, ITEMS)
    with builder.section.loop("0", "%count") as (body, k):
        source = body.value(f"getelementptr ptr, ptr %objects, i64 {k}")
        target = body.value(f"getelementptr ptr, ptr {items}, i64 {k}")
        body.write(f"store ptr {body.value(f'load ptr, ptr {source}')}, ptr {target}")
    builder.write(f"ret ptr {made}")
    builder.label("none")
    builder.write("ret ptr null")
    module.add(builder.function)
