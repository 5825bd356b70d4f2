"""Hooks: functions that a module calls before and after `forward`, to look or to change.

    Hooks           those of one module
    ModuleHook      what registering one returns

While a graph is built they are called with traced tensors, and not when it runs.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from wengert._engine.core.recording import Changes

_number = itertools.count(1).__next__


class ModuleHook:
    """A registered hook of a module; `remove()` removes it."""

    def __init__(self, hooks: dict[int, Any], number: int) -> None:
        self._hooks, self._number = hooks, number

    def remove(self) -> None:
        """Take the hook away; harmless a second time."""
        if self._hooks.pop(self._number, None) is not None:
            Changes.note()


class Hooks:
    """The hooks of a module, in the order in which they were registered."""

    def __init__(self) -> None:
        self._places: dict[str, dict[int, Callable[..., Any]]] = {"pre": {}, "post": {}}

    def add(self, place: str, hook: Callable[..., Any]) -> ModuleHook:
        """Register one."""
        number = _number()
        self._places[place][number] = hook
        return ModuleHook(self._places[place], number)

    def key(self) -> tuple[Any, ...]:
        """What a graph is built for."""
        return tuple(tuple(hooks) for hooks in self._places.values())

    def before(self, module: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments, as the hooks let them be."""
        for hook in list(self._places["pre"].values()):
            changed = hook(module, args)
            if changed is not None:
                args = changed if isinstance(changed, tuple) else (changed,)
        return args

    def after(self, module: Any, args: tuple[Any, ...], result: Any) -> Any:
        """The result, as the hooks let it be."""
        for hook in list(self._places["post"].values()):
            changed = hook(module, args, result)
            result = result if changed is None else changed
        return result
