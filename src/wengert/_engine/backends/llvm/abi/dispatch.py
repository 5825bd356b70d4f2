"""Dispatch: one entry point before several, chosen by types, dtypes, ranks and layouts.

A compiled function has an entry point for each signature with which it is called.  The dispatching
entry point compares as much of the arguments as distinguishes these signatures, puts keyword
arguments into order, and calls the entry point, which checks the rest.  One function serves all
compiled functions; it is compiled once.

    Route         a signature, and its entry point
    dispatching   the function object
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from wengert._engine.backends.llvm.ir import execution_engine
from wengert._engine.backends.llvm.runtime.runtime_library import loaded

from . import cpython_layout
from .python_function import FASTCALL, Definition

LAYOUT = cpython_layout.C_CONTIGUOUS | cpython_layout.F_CONTIGUOUS | cpython_layout.ALIGNED
_TABLE = ("miss", "count", "routes", "PyObject_Vectorcall")
_HEAD = 4  # words before the names: target, arguments by position, by name, words of the route


class Route(NamedTuple):
    """How a call looks, and the entry that serves it.

    Attributes
    ----------
    positional : int
        How many arguments are given by position.
    names : tuple of str
        Of the others, as they are given.
    kinds : tuple of (type, int, int, int)
        For each argument its type, and of an array the number of its dtype, its axes, its layout.
    order : tuple of int
        The arguments in the order in which the entry takes them.
    entry : callable
    """

    positional: int
    names: tuple[str, ...]
    kinds: tuple[tuple[type, int, int, int], ...]
    order: tuple[int, ...]
    entry: Callable[..., Any]

    def words(self) -> list[int]:
        """The route as native code reads it."""
        words = [id(self.entry), self.positional, len(self.names), 0, *map(id, self.names)]
        for cls, *array in self.kinds:
            words += [id(cls), *array]
        words += self.order
        words[3] = len(words)
        return words


_TEXT = f"""
define ptr @wengert_dispatch(ptr %self, ptr %args, i64 %nargs, ptr %names) {{
  %at.items = getelementptr i8, ptr %self, i64 {cpython_layout.ITEMS}
  %first = load ptr, ptr %at.items
  %at.data = getelementptr i8, ptr %first, i64 {cpython_layout.DATA}
  %table = load ptr, ptr %at.data
  %at.count = getelementptr i64, ptr %table, i64 1
  %count = load i64, ptr %at.count
  %at.routes = getelementptr i64, ptr %table, i64 2
  %routes = load ptr, ptr %at.routes
  %at.call = getelementptr i64, ptr %table, i64 3
  %vectorcall = load ptr, ptr %at.call
  %plain = icmp eq ptr %names, null
  br i1 %plain, label %begin, label %named
named:
  %at.named = getelementptr i8, ptr %names, i64 16
  %number = load i64, ptr %at.named
  br label %begin
begin:
  %given = phi i64 [ 0, %named.not ], [ %number, %named ]
  %total = add i64 %nargs, %given
  br label %routing
routing:
  %n = phi i64 [ 0, %begin ], [ %n.next, %other ]
  %route = phi ptr [ %routes, %begin ], [ %route.next, %other ]
  %more = icmp slt i64 %n, %count
  br i1 %more, label %look, label %miss
other:
  %n.next = add i64 %n, 1
  %at.size = getelementptr i64, ptr %route, i64 3
  %size = load i64, ptr %at.size
  %route.next = getelementptr i64, ptr %route, i64 %size
  br label %routing
look:
  %at.positional = getelementptr i64, ptr %route, i64 1
  %positional = load i64, ptr %at.positional
  %same.positional = icmp eq i64 %positional, %nargs
  %at.words = getelementptr i64, ptr %route, i64 2
  %words = load i64, ptr %at.words
  %same.words = icmp eq i64 %words, %given
  %same.number = and i1 %same.positional, %same.words
  br i1 %same.number, label %words.head, label %other
words.head:
  %w = phi i64 [ 0, %look ], [ %w.next, %words.next ]
  %w.more = icmp slt i64 %w, %given
  br i1 %w.more, label %words.body, label %kinds.begin
words.body:
  %w.offset = add i64 %w, {_HEAD}
  %at.word = getelementptr ptr, ptr %route, i64 %w.offset
  %word = load ptr, ptr %at.word
  %at.tuple = getelementptr i8, ptr %names, i64 {cpython_layout.ITEMS}
  %at.name = getelementptr ptr, ptr %at.tuple, i64 %w
  %name = load ptr, ptr %at.name
  %same.word = icmp eq ptr %word, %name
  br i1 %same.word, label %words.next, label %other
words.next:
  %w.next = add i64 %w, 1
  br label %words.head
kinds.begin:
  %k.offset = add i64 %given, {_HEAD}
  %kinds = getelementptr i64, ptr %route, i64 %k.offset
  br label %kinds.head
kinds.head:
  %k = phi i64 [ 0, %kinds.begin ], [ %k.next, %kinds.next ]
  %k.more = icmp slt i64 %k, %total
  br i1 %k.more, label %kinds.body, label %found
kinds.body:
  %k.place = mul i64 %k, 4
  %kind = getelementptr i64, ptr %kinds, i64 %k.place
  %class = load ptr, ptr %kind
  %at.argument = getelementptr ptr, ptr %args, i64 %k
  %argument = load ptr, ptr %at.argument
  %at.type = getelementptr i8, ptr %argument, i64 {cpython_layout.TYPE}
  %type = load ptr, ptr %at.type
  %same.type = icmp eq ptr %type, %class
  br i1 %same.type, label %typed, label %other
typed:
  %at.dtype = getelementptr i64, ptr %kind, i64 1
  %dtype = load i64, ptr %at.dtype
  %is.array = icmp sge i64 %dtype, 0
  br i1 %is.array, label %array, label %kinds.next
array:
  %at.descr = getelementptr i8, ptr %argument, i64 {cpython_layout.DESCR}
  %descr = load ptr, ptr %at.descr
  %at.num = getelementptr i8, ptr %descr, i64 {cpython_layout.NUMBER}
  %num32 = load i32, ptr %at.num
  %num = sext i32 %num32 to i64
  %same.dtype = icmp eq i64 %num, %dtype
  %at.axes = getelementptr i8, ptr %argument, i64 {cpython_layout.NDIM}
  %axes32 = load i32, ptr %at.axes
  %axes = sext i32 %axes32 to i64
  %at.wanted = getelementptr i64, ptr %kind, i64 2
  %wanted = load i64, ptr %at.wanted
  %same.axes = icmp eq i64 %axes, %wanted
  %at.flags = getelementptr i8, ptr %argument, i64 {cpython_layout.FLAGS}
  %flags32 = load i32, ptr %at.flags
  %flags = sext i32 %flags32 to i64
  %layout = and i64 %flags, {LAYOUT}
  %at.layout = getelementptr i64, ptr %kind, i64 3
  %expected = load i64, ptr %at.layout
  %same.layout = icmp eq i64 %layout, %expected
  %same.both = and i1 %same.dtype, %same.axes
  %same.all = and i1 %same.both, %same.layout
  br i1 %same.all, label %kinds.next, label %other
kinds.next:
  %k.next = add i64 %k, 1
  br label %kinds.head
found:
  %target = load ptr, ptr %route
  br i1 %plain, label %straight, label %ordered
straight:
  %result = tail call ptr %vectorcall(ptr %target, ptr %args, i64 %nargs, ptr null)
  ret ptr %result
ordered:
  %all = alloca ptr, i64 %total
  %o.place = mul i64 %total, 4
  %orders = getelementptr i64, ptr %kinds, i64 %o.place
  br label %order.head
order.head:
  %o = phi i64 [ 0, %ordered ], [ %o.next, %order.body ]
  %o.more = icmp slt i64 %o, %total
  br i1 %o.more, label %order.body, label %go
order.body:
  %at.order = getelementptr i64, ptr %orders, i64 %o
  %from = load i64, ptr %at.order
  %at.from = getelementptr ptr, ptr %args, i64 %from
  %moved = load ptr, ptr %at.from
  %at.to = getelementptr ptr, ptr %all, i64 %o
  store ptr %moved, ptr %at.to
  %o.next = add i64 %o, 1
  br label %order.head
go:
  %answer = call ptr %vectorcall(ptr %target, ptr %all, i64 %total, ptr null)
  ret ptr %answer
miss:
  %otherwise = load ptr, ptr %table
  %missed = call ptr %vectorcall(ptr %otherwise, ptr %args, i64 %nargs, ptr %names)
  ret ptr %missed
}}
""".replace("%named.not", "%entry").replace("ptr %names) {\n", "ptr %names) {\nentry:\n")


@functools.cache
def _address() -> int:
    text = f"{execution_engine.heading()}\n{_TEXT}"
    return loaded(text, {}, ("wengert_dispatch",))["wengert_dispatch"]


def dispatching(routes: Sequence[Route], miss: Callable[..., Any]) -> Callable[..., Any]:
    """A function of Python that calls the entry of the first route that a call looks like.

    Parameters
    ----------
    routes : sequence of Route
    miss : callable
        Called with the same arguments where none does.
    """
    words = np.array([w for route in routes for w in route.words()], np.int64)
    call = ctypes.cast(ctypes.pythonapi.PyObject_Vectorcall, ctypes.c_void_p).value
    table = np.array([id(miss), len(routes), words.ctypes.data, call], np.int64)
    assert len(table) == len(_TABLE)
    table.flags.writeable = words.flags.writeable = False
    definition = Definition(b"entry", _address(), FASTCALL, None)
    new = ctypes.pythonapi.PyCFunction_NewEx
    new.restype = ctypes.py_object
    new.argtypes = [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p]
    # The table comes first, where the entry point looks for it.
    owned = (table, definition, words, tuple(routes), miss)
    made: Callable[..., Any] = new(ctypes.addressof(definition), owned, None)
    return made
