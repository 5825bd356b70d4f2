"""Hooks: functions that a module calls before and after `forward`.

    Hooks           the hooks of a module
    ModuleHook      handle of a registered hook

They are called while tracing, with traced tensors, and not when the graph runs.
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
        """Remove the hook; further calls do nothing."""
        if self._hooks.pop(self._number, None) is not None:
            Changes.note()


class Hooks:
    """The hooks of a module, in the order in which they were registered."""

    def __init__(self) -> None:
        self._places: dict[str, dict[int, Callable[..., Any]]] = {"pre": {}, "post": {}}

    def add(self, place: str, hook: Callable[..., Any]) -> ModuleHook:
        """Register a hook."""
        number = _number()
        self._places[place][number] = hook
        return ModuleHook(self._places[place], number)

    def key(self) -> tuple[Any, ...]:
        """The identities of the hooks, for guards of graphs."""
        return tuple(tuple(hooks) for hooks in self._places.values())

    def before(self, module: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments, possibly replaced by the hooks."""
        for hook in list(self._places["pre"].values()):
            changed = hook(module, args)
            if changed is not None:
                args = changed if isinstance(changed, tuple) else (changed,)
        return args

    def after(self, module: Any, args: tuple[Any, ...], result: Any) -> Any:
        """The result, possibly replaced by the hooks."""
        for hook in list(self._places["post"].values()):
            changed = hook(module, args, result)
            result = result if changed is None else changed
        return result
