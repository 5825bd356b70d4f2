"""Substitution: the function with other arrays instead of captured ones.

While a function is traced, each object on a path to a fed array is replaced by a copy: functions by
functions with other cells and globals, containers by copies, objects by objects of the same class.
The originals are not changed, because other threads may read them; writes of the function to a
copy is written to the original when the trace has ended.

    Substitution    the replacements of one trace
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from types import CellType, FunctionType, MethodType, ModuleType
from typing import Any

from .captured import Captured
from .code import reads_of
from .sources import ABSENT

Change = Callable[[], None]


class Substitution:
    """Replacements of captured objects.

    Parameters
    ----------
    captured : Captured
        The captured values, and the objects through which they are reached.
    arrays : mapping from str to object
        The replacement of each fed array, by its name.
    """

    def __init__(self, captured: Captured, arrays: Mapping[str, Any]) -> None:
        self._found = captured.found
        self._made: dict[int, Any] = {
            key: arrays[name] for key, name in captured.identities.items()
        }
        self._needed = self._ancestors(set(captured.identities))
        self._scopes: dict[int, dict[str, Any]] = {}
        self._cells: dict[int, CellType] = {}
        self._changes: list[Change] = []

    def _ancestors(self, arrays: set[int]) -> set[int]:
        parents: dict[int, list[int]] = {}
        for key, found in self._found.items():
            if found.replaceable:
                for child in found.children:
                    parents.setdefault(child, []).append(key)
        needed, waiting = set(arrays), list(arrays)
        while waiting:
            for key in parents.get(waiting.pop(), ()):
                if key not in needed:
                    needed.add(key)
                    waiting.append(key)
        return needed

    def of(self, x: Any) -> Any:
        """The replacement of an object; itself if it leads to no fed array."""
        key = id(x)
        if key not in self._needed or (key in self._found and self._found[key].value is not x):
            return x
        if key not in self._made:
            self._make(key, x)
        return self._made[key]

    def write_back(self) -> None:
        """Apply the changes of copies to the originals."""
        for change in self._changes:
            change()

    # ---- copies --------------------------------------------------------------------------------

    def _make(self, key: int, x: Any) -> None:
        if isinstance(x, FunctionType):
            self._function(key, x)
        elif isinstance(x, MethodType):
            self._made[key] = MethodType(self.of(x.__func__), self.of(x.__self__))
        elif isinstance(x, functools.partial):
            words = {k: self.of(v) for k, v in x.keywords.items()}
            made = type(x)(self.of(x.func), *map(self.of, x.args), **words)
            vars(made).update(vars(x))
            self._made[key] = made
        elif isinstance(x, ModuleType):
            self._module(key, x)
        elif isinstance(x, dict):
            self._dict(key, x)
        elif isinstance(x, list):
            self._list(key, x)
        elif isinstance(x, tuple):
            parts = [self.of(v) for v in x]
            self._made[key] = type(x)(*parts) if hasattr(x, "_fields") else tuple(parts)
        elif hasattr(x, "_fun"):  # a compiled function: inside a trace the function itself
            self._made[key] = self.of(x._fun)
        else:
            self._object(key, x)

    def _function(self, key: int, fun: FunctionType) -> None:
        made = FunctionType(fun.__code__, self._scope(fun), fun.__name__, None, self._closure(fun))
        self._made[key] = made  # first, because the following may lead back to it
        made.__defaults__ = fun.__defaults__ and tuple(map(self.of, fun.__defaults__))
        words = fun.__kwdefaults__
        made.__kwdefaults__ = words and {k: self.of(v) for k, v in words.items()}
        made.__qualname__, made.__module__ = fun.__qualname__, fun.__module__
        made.__doc__, made.__annotations__ = fun.__doc__, fun.__annotations__
        self._entries(vars(fun), vars(made))
        self._fill(fun)

    def _scope(self, fun: FunctionType) -> dict[str, Any]:
        """The copied globals of a function; functions of one module share them."""
        own = fun.__globals__
        scope = self._scopes.get(id(own))
        if scope is None:
            scope = self._scopes[id(own)] = dict(own)
        return scope

    def _fill(self, fun: FunctionType) -> None:
        """Replace globals and contents of cells."""
        own, scope, reads = fun.__globals__, self._scope(fun), reads_of(fun.__code__)
        words = reads.globals | own.keys() if reads.any_global else reads.globals
        for word in words - reads.written_globals:
            if word in own and scope[word] is own[word]:
                scope[word] = self.of(own[word])
        for word in reads.written_globals:
            self._changes.append(functools.partial(_rebind, own, scope, word))
        for word, cell in zip(fun.__code__.co_freevars, fun.__closure__ or (), strict=True):
            made = self._cells.get(id(cell))
            if made is not None and word not in reads.written_cells:
                made.cell_contents = self.of(cell.cell_contents)

    def _closure(self, fun: FunctionType) -> tuple[CellType, ...]:
        written = reads_of(fun.__code__).written_cells
        return tuple(
            self._cell(cell) if word not in written else cell
            for word, cell in zip(fun.__code__.co_freevars, fun.__closure__ or (), strict=True)
        )

    def _cell(self, cell: CellType) -> CellType:
        """The cell itself, or a new one if its contents are replaced."""
        try:
            inside = cell.cell_contents
        except ValueError:
            return cell
        if id(inside) not in self._needed:
            return cell
        return self._cells.setdefault(id(cell), CellType(inside))

    def _module(self, key: int, module: ModuleType) -> None:
        made = ModuleType(module.__name__)
        self._made[key] = made
        vars(made).update(vars(module))
        self._entries(vars(module), vars(made))

    def _entries(self, own: dict[str, Any], made: dict[str, Any]) -> None:
        """Fill a namespace, whose changes are written back."""
        made.update(own)
        for word, value in list(own.items()):
            made[word] = self.of(value)
        self._changes.append(functools.partial(_update, own, made, dict(made)))

    def _dict(self, key: int, x: dict[Any, Any]) -> None:
        made = x.copy()
        self._made[key] = made
        for k, value in x.items():
            made[k] = self.of(value)
        self._changes.append(functools.partial(_update, x, made, dict(made)))

    def _list(self, key: int, x: list[Any]) -> None:
        made: list[Any] = []
        self._made[key] = made
        made += map(self.of, x)
        self._changes.append(functools.partial(_relist, x, made, list(made)))

    def _object(self, key: int, x: Any) -> None:
        cls = type(x)
        made = cls() if cls.__module__ == "types" else object.__new__(cls)
        self._made[key] = made
        for child in self._found[key].children:
            inner = self._found[child].value
            if isinstance(inner, FunctionType) and child in self._needed:
                self._method(x, made, inner)
        self._entries(vars(x), vars(made))

    def _method(self, x: Any, made: Any, fun: FunctionType) -> None:
        """Override a method on an object, not in its class."""
        for base in type(x).__mro__:
            for word, value in vars(base).items():
                if value is fun and getattr(type(x), word, None) is fun and word not in vars(x):
                    vars(made)[word] = MethodType(self.of(fun), made)


def _rebind(own: dict[str, Any], scope: dict[str, Any], word: str) -> None:
    if word in scope:
        own[word] = scope[word]
    else:
        own.pop(word, None)


def _update(own: dict[Any, Any], made: dict[Any, Any], put: dict[Any, Any]) -> None:
    """Apply the changes of a copy of a dict to the dict."""
    for key, value in made.items():
        if put.get(key, ABSENT) is not value:
            own[key] = value
    for key in put.keys() - made.keys():
        own.pop(key, None)


def _relist(own: list[Any], made: list[Any], put: list[Any]) -> None:
    if len(made) == len(put) and all(a is b for a, b in zip(made, put, strict=True)):
        return
    known = {id(new): old for new, old in zip(put, own, strict=True)}
    own[:] = [known.get(id(x), x) for x in made]
