"""Routines that all entry points share, compiled once per process and called by address.

    new       an array, from the recycling allocator if it is large
    drop      releases objects after a failure
    several   the tuple of several results

In each entry point they would be most of its code, and of the time to compile it.
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
    # They do little but call: pains would not make them faster.
    found = loaded("", {}, _NAMES.values(), cold=text())
    return {name: found[symbol] for name, symbol in _NAMES.items()}


def text() -> str:
    """Their module."""
    module = ModuleBuilder()
    _new(module)
    _drop(module)
    _several(module)
    return module.text(execution_engine.heading())


def _new(module: ModuleBuilder) -> None:
    """ptr new(ptr table, ptr dtype, i32 ndim, ptr lengths, i64 bytes); null, with an exception."""
    arguments = [("ptr", "dtype"), ("i32", "ndim"), ("ptr", "lengths"), ("i64", "bytes")]
    writer = EntryBuilder(module, _NAMES["new"], [("ptr", "table"), *arguments], "ptr", WORDS)
    handler = writer.word("handler")
    large = writer.value(f"icmp sge i64 %bytes, {thresholds.pooled_result_bytes}")
    given = writer.value(f"icmp ne ptr {handler}, null")
    writer.branch(writer.value(f"and i1 {large}, {given}"), "pool", "plain")
    writer.label("plain")
    writer.write(f"ret ptr {_empty(writer)}")
    writer.label("pool")
    before = writer.made("PyDataMem_SetHandler", "none", f"ptr {handler}")
    made = _empty(writer)
    writer.call("PyErr_Clear", "void")  # out of memory: said again below
    ours = writer.call("PyDataMem_SetHandler", "ptr", f"ptr {before}")
    writer.call("Py_DecRef", "void", f"ptr {before}")
    writer.call("Py_DecRef", "void", f"ptr {ours}")
    there, back = (writer.value(f"icmp ne ptr {x}, null") for x in (made, ours))
    writer.unless(writer.value(f"and i1 {there}, {back}"), "bad")
    writer.write(f"ret ptr {made}")
    writer.label("bad")
    writer.call("Py_DecRef", "void", f"ptr {made}")
    writer.call("PyErr_NoMemory", "ptr")
    writer.go("none")
    writer.label("none")
    writer.write("ret ptr null")
    module.add(writer.function)


def _empty(writer: EntryBuilder) -> str:
    """A new array whose memory is not set; null, with an exception, if there is none."""
    writer.call("Py_IncRef", "void", "ptr %dtype")  # the call takes a reference
    given = (f"ptr {writer.word('ndarray')}", "ptr %dtype", "i32 %ndim", "ptr %lengths")
    nothing = ("ptr null", "ptr null", "i32 0", "ptr null")  # strides, data, flags, prototype
    return writer.call("PyArray_NewFromDescr", "ptr", *given, *nothing)


def _drop(module: ModuleBuilder) -> None:
    """Let go of as many objects; null is none: void drop(ptr table, ptr objects, i64 count)."""
    arguments = [("ptr", "table"), ("ptr", "objects"), ("i64", "count")]
    writer = EntryBuilder(module, _NAMES["drop"], arguments, "void", WORDS)
    release = writer.word("Py_DecRef")
    with writer.section.loop("0", "%count") as (body, k):
        place = body.value(f"getelementptr ptr, ptr %objects, i64 {k}")
        body.write(f"call void {release}(ptr {body.value(f'load ptr, ptr {place}')})")
    writer.write("ret void")
    module.add(writer.function)


def _several(module: ModuleBuilder) -> None:
    """A tuple that takes the objects: ptr several(ptr table, ptr objects, i64 count)."""
    arguments = [("ptr", "table"), ("ptr", "objects"), ("i64", "count")]
    writer = EntryBuilder(module, _NAMES["several"], arguments, "ptr", WORDS)
    made = writer.made("PyTuple_New", "none", "i64 %count")
    items = writer.at(made, ITEMS)
    with writer.section.loop("0", "%count") as (body, k):
        source = body.value(f"getelementptr ptr, ptr %objects, i64 {k}")
        target = body.value(f"getelementptr ptr, ptr {items}, i64 {k}")
        body.write(f"store ptr {body.value(f'load ptr, ptr {source}')}, ptr {target}")
    writer.write(f"ret ptr {made}")
    writer.label("none")
    writer.write("ret ptr null")
    module.add(writer.function)
