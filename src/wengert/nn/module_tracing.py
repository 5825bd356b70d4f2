"""Tracing of modules.

Nodes are recorded in a scope named after the module (``Sequential/0``).  Parameters and buffers,
also frozen ones, become variables of the graph with their dotted names, so that the graph reads
their current values whenever it runs.

    is_traced_call   whether a call of a module is traced
    traced_call      calls `forward` while tracing
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from typing import Any, NamedTuple

from wengert._engine.core.conversion_hook import converted
from wengert._engine.core.handle import Handle
from wengert._engine.core.node import ConstantLeaf, is_variable
from wengert._engine.core.recording import current_trace
from wengert._engine.core.thread_state import Blocks, ScopedValue
from wengert._engine.core.tracing import scope


class ModuleTrace(NamedTuple):
    """The model that is being called: paths of its modules by id, and the current path."""

    paths: dict[int, str]
    path: str


_frame: Blocks[ModuleTrace | None] = Blocks("wengert_module", None)


def is_traced_call(args: tuple[Any, ...]) -> bool:
    """Whether a module called with these arguments is traced."""
    if current_trace() is not None:
        return True
    return bool(args) and isinstance(args[0], Handle) and args[0].node.value is None


def traced_call(module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``module.forward(*args, **kwargs)`` in the scope of the module."""
    frame = _frame.get()
    path = None if frame is None else frame.paths.get(id(module))
    if frame is None or path is None:
        _guard(module)
        paths = {id(m): name for name, m in module.named_modules()}
        with _entered(ModuleTrace(paths, ""), type(module).__name__), _as_variables(module):
            return converted(module.forward)(*args, **kwargs)
    name = path.removeprefix(f"{frame.path}.") if frame.path else path
    if path == frame.path:
        name = type(module).__name__
    with _entered(ModuleTrace(frame.paths, path), name):
        return converted(module.forward)(*args, **kwargs)


def _guard(module: Any) -> None:
    """Add a guard to the graph: the modes and tensors of the module have not changed."""
    opened = current_trace()
    if opened is not None:
        check = functools.partial(_modes, module)
        opened.guards.append((check, check()))


class _Same:
    """Compares by identity."""

    def __init__(self, item: Any) -> None:
        self.item = item

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.item is self.item

    __hash__ = None  # type: ignore[assignment]


def _modes(module: Any) -> Any:
    """The modules with their modes and hooks, and the tensors with dtype and requires_grad."""
    tensors = (*module.parameters(), *module.buffers())
    trained = [(_Same(x), x.dtype, x.requires_grad) for x in tensors]
    modes = [
        (_Same(m), m.training, m.forward_hooks and m.forward_hooks.key()) for m in module.modules()
    ]
    return modes, trained


@contextlib.contextmanager
def _entered(frame: ModuleTrace, name: str) -> Iterator[None]:
    block: ScopedValue[ModuleTrace | None] = ScopedValue(frame)
    try:
        _frame.open(block)
        with scope(name):
            yield
    finally:
        block.end(True)
        _frame.forget()


@contextlib.contextmanager
def _as_variables(module: Any) -> Iterator[None]:
    """Make parameters and buffers named variables; frozen ones, else constants, temporarily."""
    frozen = []
    for name, p in (*module.named_parameters(), *module.named_buffers()):
        node = p.node
        if type(node) is ConstantLeaf and not node.args:
            p.node = p.frozen_leaf()
            frozen.append((p, node, p.node))
        if is_variable(p.node) and p.node.name is None:
            p.node.note(name=name)
    try:
        yield
    finally:
        for p, node, variable in frozen:
            if p.node is variable:
                p.node = node
