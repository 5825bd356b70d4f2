"""Functions and graphs that `jit` cannot compile.

check_host_callbacks  raises for operations that would be called back in Python
refuse_generators     raises for generators, coroutines and classes
"""

from __future__ import annotations

import inspect
from typing import Any

from wengert._engine.autodiff.arguments import name_of
from wengert._engine.backends import Backend
from wengert._engine.graphs import Graph
from wengert.errors import ArgumentError, BackendError, at, user_line


def check_host_callbacks(backend: Backend, graph: Graph) -> None:
    """Refuse a program that would call back into Python."""
    make = getattr(backend, "program", None)
    if make is None:
        return
    # A condition that raises is evaluated in native code, and calls Python only to raise.
    nodes = [n for n in make(graph).host_callbacks if not n.op.effects.only_if_true]
    if nodes:
        names = ", ".join(sorted({f"{n.op.name}{at(n.where)}" for n in nodes}))
        raise BackendError(
            f"{graph.name} would call back into Python for {names}, which "
            "host_callbacks='forbid' does not allow. Use other operations, or allow it, "
            "host_callbacks='allow'."
        )


def refuse_generators(fun: Any) -> None:
    """Refuse callables that do not return arrays when they are called."""
    for is_kind, what in (
        (inspect.isgeneratorfunction, "a generator"),
        (inspect.iscoroutinefunction, "a coroutine"),
        (inspect.isasyncgenfunction, "an asynchronous generator"),
        (inspect.isclass, "a class"),
    ):
        if is_kind(fun):
            raise ArgumentError(
                f"jit of {name_of(fun)}, which is {what}. Compile a function that returns arrays, "
                f"and call it from there{at(user_line())}."
            )
