"""Models in graphs: what a module does differently while a graph is built.

Its lines stand in a scope named after the module (``Sequential/0``), its parameters and buffers
are variables of the graph with their dotted names, frozen ones too, so that the graph sees whatever
they become later.

    is_traced_call   whether a graph is being built
    traced_call      calls `forward` in this way
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from typing import Any, NamedTuple

from wengert._engine.core.conversion_hook import converted
from wengert._engine.core.dynamic_scope import Blocks, ScopedValue
from wengert._engine.core.handle import Handle
from wengert._engine.core.node import ConstantLeaf, is_variable
from wengert._engine.core.recording import current_trace
from wengert._engine.core.tracing import scope


class ModuleTrace(NamedTuple):
    """The model that is being called: the paths of its modules by identity, and where we are."""

    paths: dict[int, str]
    path: str


_frame: Blocks[ModuleTrace | None] = Blocks("wengert_module", None)


def is_traced_call(args: tuple[Any, ...]) -> bool:
    """Whether a module called with these arguments writes nodes of a graph."""
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
    word = path.removeprefix(f"{frame.path}.") if frame.path else path
    if path == frame.path:
        word = type(module).__name__
    with _entered(ModuleTrace(frame.paths, path), word):
        return converted(module.forward)(*args, **kwargs)


def _guard(module: Any) -> None:
    """Let the graph be known to be for these modes."""
    opened = current_trace()
    if opened is not None:
        ask = functools.partial(_modes, module)
        opened.guards.append((ask, ask()))


class _Same:
    """Equal to itself alone."""

    def __init__(self, item: Any) -> None:
        self.item = item

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.item is self.item

    __hash__ = None  # type: ignore[assignment]


def _modes(module: Any) -> Any:
    """Which modules there are, in training or not, and which tensors, trained or not."""
    tensors = (*module.parameters(), *module.buffers())
    trained = [(_Same(x), x.dtype, x.requires_grad) for x in tensors]
    modes = [
        (_Same(m), m.training, m.forward_hooks and m.forward_hooks.key()) for m in module.modules()
    ]
    return modes, trained


@contextlib.contextmanager
def _entered(frame: ModuleTrace, word: str) -> Iterator[None]:
    block: ScopedValue[ModuleTrace | None] = ScopedValue(frame)
    try:
        _frame.open(block)
        with scope(word):
            yield
    finally:
        block.end(True)
        _frame.forget()


@contextlib.contextmanager
def _as_variables(module: Any) -> Iterator[None]:
    """Parameters are variables with names; frozen ones, constants else, for the time being."""
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
