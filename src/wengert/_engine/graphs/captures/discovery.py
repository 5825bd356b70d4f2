"""Discovery of the captured values of a function.

The search follows everything that the bytecode can reach: globals, free variables and defaults of a
function, attributes whose names occur in the code found so far, elements of containers, and the
functions and methods among all of these.  It is repeated until no new names are found.

The objects found form a graph.  An array is fed if all objects on all paths to it can be replaced
while the function is traced (functions, containers, plain objects of the user); if some path leads
through an object that cannot (a class, an object of a library), its content is compared.

    captured_by    the values that a function captures
"""

from __future__ import annotations

import functools
import gc
import operator
import os
import sys
import weakref
from collections import deque
from collections.abc import Callable, Iterable
from importlib.util import resolve_name
from inspect import getattr_static
from types import FunctionType, MappingProxyType, MethodType, ModuleType
from typing import Any

import numpy as np

from wengert._engine.core.handle import Handle
from wengert._engine.core.library_code import (
    is_immutable,
    is_library_class,
    is_library_function,
    is_library_module,
    same_value,
)
from wengert._engine.core.node import is_variable

from .captured import Captured, CapturedObject
from .code import Reads, reads_of
from .guards import Content, KeyOrder, SameObject, Test
from .object_search import INIT, ObjectSearch
from .objects import has_own_code, is_iterator, is_searched, name_of
from .sources import ABSENT, CaptureSource, Kind

_LONG_LIST = 200  # elements from which a list of plain values is compared as a whole
_ROUNDS = 20

Feedable = Callable[[np.ndarray[Any, Any]], bool]


def captured_by(
    fun: Callable[..., Any], arguments: Iterable[tuple[str, Any]], feedable: Feedable
) -> Captured:
    """The current captured values of a function.

    Parameters
    ----------
    fun : callable
    arguments : iterable of (str, object)
        Arguments that are not fed, with their names.
    feedable : callable
        Whether an array may be fed rather than compared.
    """
    arguments = list(arguments)
    names: frozenset[str] = frozenset()
    any_attribute = absent = False
    for _ in range(_ROUNDS):
        search = _Search(names, any_attribute, absent)
        search.run(fun, arguments)
        known = search.any_attribute == any_attribute and search.absent == absent
        if known and search.names <= names:
            break
        names, any_attribute = names | search.names, search.any_attribute
        absent = search.absent
    return search.captured(feedable)


class _Search(ObjectSearch):
    """One search, with the names of attributes found so far."""

    def run(self, fun: Any, arguments: list[tuple[str, Any]]) -> None:
        """Search everything."""
        self._visit(fun, CaptureSource(Kind.CONSTANT, fun, None, name_of(fun)), None)
        for name, x in arguments:
            self._visit(x, CaptureSource(Kind.CONSTANT, x, None, name), None, weak=True)
        while self._tasks:
            self._tasks.popleft()()

    def captured(self, feedable: Feedable) -> Captured:
        """The captured values: arrays are fed, or compared if reached through a barred object."""
        barred = self._reached([k for k, f in self._found.items() if f.barred])
        feeds: dict[int, list[CaptureSource]] = {}
        guards = list(self._guards)
        for key, sources in self._arrays.items():
            value = self._found[key].value
            if key not in barred and feedable(value):
                feeds[key] = sources
            else:
                guards += [Content(s, value) for s in sources]
        return Captured(guards, feeds, self._found, self._unguarded)

    def _reached(self, keys: list[int]) -> set[int]:
        seen = set(keys)
        while keys:
            for child in self._found[keys.pop()].children:
                if child not in seen:
                    seen.add(child)
                    keys.append(child)
        return seen

    # ---- one value -----------------------------------------------------------------------------

    def _expand(self, found: CapturedObject, source: CaptureSource, weak: bool) -> None:
        """Search the contents of a value."""
        x, cls = found.value, type(found.value)
        if isinstance(x, Handle):
            self._tensor(x, source.name)
            return
        if isinstance(x, FunctionType):
            self._later(self._library_function if is_library_function(x) else self._function, found)
        elif isinstance(x, MethodType):
            found.replaceable = True
            self._later(self._parts, found, source, [x.__func__, x.__self__])
        elif isinstance(x, functools.partial):
            found.replaceable = True
            self._later(self._parts, found, source, [x.func, *x.args, *x.keywords.values()])
        elif isinstance(x, ModuleType):
            if not is_library_module(x):
                found.replaceable = True
                self._later(self._entries, found, vars(x), source.name + ".", self._wanted)
        elif isinstance(x, type):
            if not is_library_class(x):
                self._later(self._class, found, x, source.name, INIT)
        elif isinstance(x, operator.attrgetter | operator.methodcaller):
            self.names |= {w for part in x.__reduce__()[1] for w in str(part).split(".")}
        elif isinstance(x, MappingProxyType):
            self._later(self._parts, found, source, gc.get_referents(x)[:1])
        elif is_iterator(x) and not weak:
            self._guards.append(Test(source._replace(kind=Kind.CONSTANT, holder=x), _Once()))
        elif isinstance(x, dict):
            found.replaceable = cls in (dict,) or cls.__module__ == "collections"
            self._later(self._dict, found, source)
            self._later(self._subclass, found, source)
        elif isinstance(x, list):
            found.replaceable = cls is list
            self._later(self._list, found, source)
            self._later(self._subclass, found, source)
        elif isinstance(x, tuple):
            found.replaceable = cls is tuple or (hasattr(cls, "_fields") and not has_own_code(cls))
            self._later(self._parts, found, source, list(x))
            self._later(self._subclass, found, source)
        elif isinstance(x, set | frozenset | deque):
            self._later(self._unordered, found, source)
            self._later(self._subclass, found, source)
        elif isinstance(x, weakref.ref):
            self._later(self._weak_reference, found, source)
        elif _has(x, "__wrapped__") and _has(x, "cache_info"):
            inner = getattr(x, "_fun", x.__wrapped__)  # a compiled function, or lru_cache
            found.replaceable = hasattr(x, "_fun")
            self._later(self._parts, found, source, [inner])
        else:
            self._later(self._object, found, source, weak)

    def _subclass(self, found: CapturedObject, source: CaptureSource) -> None:
        """Attributes and methods of a container of a user's class."""
        cls = type(found.value)
        if not is_library_class(cls) and has_own_code(cls):
            self._user_object(found, source, False)

    def _tensor(self, x: Handle, name: str) -> None:
        """A tensor whose value is a constant of the graph: in-place updates give it another one."""
        if not is_variable(x.node) and x.node.value is not None:
            own = CaptureSource(Kind.ATTRIBUTE, x, "node", name)
            self._guards.append(SameObject(own, x.node))

    def _weak_reference(self, found: CapturedObject, source: CaptureSource) -> None:
        x = found.value()
        where = CaptureSource(Kind.CONSTANT, found.value, None, source.name)
        if x is None:
            self._guards.append(Test(where, lambda now: now() is None))
            return
        weak, key = weakref.ref(x), id(x)
        self._guards.append(Test(where, lambda now: weak() is not None and id(now()) == key))
        own = CaptureSource(Kind.CONSTANT, x, None, f"{source.name}()")
        self._visit(x, own, found, barred=True, weak=True)

    def _parts(self, found: CapturedObject, source: CaptureSource, parts: list[Any]) -> None:
        """Parts of an immutable object, which need no guard."""
        for k, part in enumerate(parts):
            name = source.name if callable(part) else f"{source.name}[{k}]"
            self._visit(part, CaptureSource(Kind.CONSTANT, part, None, name), found)

    # ---- functions -----------------------------------------------------------------------------

    def _function(self, found: CapturedObject) -> None:
        fun, found.replaceable = found.value, True
        reads = reads_of(fun.__code__)
        self.names |= reads.attributes
        self.any_attribute |= reads.any_attribute
        self.absent |= reads.absent
        name = fun.__qualname__
        self._guards.append(SameObject(CaptureSource(Kind.CODE, fun, None, name), fun.__code__))
        self._globals(found, fun.__globals__, reads)
        for word, cell in zip(fun.__code__.co_freevars, fun.__closure__ or (), strict=True):
            source = CaptureSource(Kind.CELL, cell, None, word)
            value = source.read()
            if not self._library_module(value, source, reads):
                self._visit(value, source, found, barred=word in reads.written_cells)
        self._defaults(found)
        if vars(fun):
            self._entries(found, vars(fun), f"{name}.", self._wanted)

    def _globals(self, found: CapturedObject, scope: dict[str, Any], reads: Reads) -> None:
        """The globals and modules that a function reads."""
        words = reads.globals
        if reads.any_global:
            words |= {w for w in scope if not (w.startswith("__") and w.endswith("__"))}
        for word in sorted(words):
            value = scope.get(word, ABSENT)
            source = CaptureSource(Kind.ITEM, scope, word, word)
            if not self._library_module(value, source, reads):
                self._visit(value, source, found, barred=word in reads.written_globals)
        for module, level in sorted(reads.imports):
            try:
                full = resolve_name("." * level + module, scope.get("__package__"))
            except ImportError:
                continue
            value = sys.modules.get(full, ABSENT)
            if value is os:
                self._environment(reads)
            if value is ABSENT or not is_library_module(value):
                # The function gets the module itself, so what it reads there is compared.
                own = CaptureSource(Kind.ITEM, sys.modules, full, full)
                self._visit(value, own, found, barred=True)

    def _library_module(self, value: Any, source: CaptureSource, reads: Reads) -> bool:
        """Whether a value is a module of a library, of which only environment variables count."""
        if not (isinstance(value, ModuleType) and is_library_module(value)):
            return False
        self._guards.append(SameObject(source, value))
        if value is os:
            self._environment(reads)
        return True

    def _environment(self, reads: Reads) -> None:
        """Environment variables, if a function may read them."""
        if {"environ", "getenv", "environb"} & reads.attributes:
            known = dict(os.environ)
            where = CaptureSource(Kind.CONSTANT, os.environ, None, "os.environ")
            self._guards.append(Test(where, lambda now: dict(now) == known))

    def _defaults(self, found: CapturedObject) -> None:
        """The defaults of a function, and those of its keyword-only parameters."""
        fun = found.value
        name, count = fun.__qualname__, fun.__code__.co_argcount
        defaults, words = fun.__defaults__, fun.__kwdefaults__
        if count:
            own = CaptureSource(Kind.DEFAULTS, fun, None, f"the defaults of {name}")
            self._guards.append(SameObject(own, defaults))
        for k, value in enumerate(defaults or ()):
            word = fun.__code__.co_varnames[count - len(defaults) + k]
            self._visit(value, CaptureSource(Kind.CONSTANT, value, None, word), found)
        if fun.__code__.co_kwonlyargcount:
            own = CaptureSource(Kind.KWDEFAULTS, fun, None, f"the keyword defaults of {name}")
            self._guards.append(SameObject(own, words))
        for word, value in (words or {}).items():
            self._visit(value, CaptureSource(Kind.ITEM, words, word, word), found)

    def _library_function(self, found: CapturedObject) -> None:
        """A library function; only the functions in its closure are searched."""
        fun, found.replaceable = found.value, True
        for word, cell in zip(fun.__code__.co_freevars, fun.__closure__ or (), strict=True):
            source = CaptureSource(Kind.CELL, cell, None, word)
            value = source.read()
            if is_searched(value):
                self._visit(value, source, found)
        registry = vars(fun).get("registry")
        if isinstance(registry, MappingProxyType):  # of functools.singledispatch
            own = CaptureSource(Kind.CONSTANT, registry, None, f"{fun.__name__}.registry")
            self._visit(registry, own, found)

    # ---- containers ----------------------------------------------------------------------------

    def _dict(self, found: CapturedObject, source: CaptureSource) -> None:
        x = found.value
        if self._copied(x.values(), source, x):
            return
        self._guards.append(SameObject(CaptureSource(Kind.LENGTH, x, None, source.name), len(x)))
        if len(x) > 1:
            self._guards.append(KeyOrder(CaptureSource(Kind.CONSTANT, x, None, source.name)))
        for key in list(x):
            self._visit(dict.get(x, key, ABSENT), source.item(x, key), found)

    def _list(self, found: CapturedObject, source: CaptureSource) -> None:
        x = found.value
        if self._copied(x, source, x):
            return
        self._guards.append(SameObject(CaptureSource(Kind.LENGTH, x, None, source.name), len(x)))
        for k, value in enumerate(list(x)):
            self._visit(value, CaptureSource(Kind.INDEX, x, k, f"{source.name}[{k}]"), found)

    def _copied(self, values: Iterable[Any], source: CaptureSource, container: Any) -> bool:
        """Compare a long container of plain values by a copy of it."""
        if len(container) < _LONG_LIST or not all(map(is_immutable, values)):
            return False
        known = list(container.items()) if isinstance(container, dict) else list(container)

        def is_same(now: Any) -> bool:
            items = list(now.items()) if isinstance(now, dict) else list(now)
            return len(items) == len(known) and all(map(same_value, items, known))

        pinned = CaptureSource(Kind.CONSTANT, container, None, source.name)
        self._guards.append(Test(pinned, is_same))
        return True

    def _unordered(self, found: CapturedObject, source: CaptureSource) -> None:
        known = list(found.value)
        count = len(known)

        def is_same(now: Any) -> bool:
            return len(now) == count and all(a is b for a, b in zip(now, known, strict=True))

        pinned = CaptureSource(Kind.CONSTANT, found.value, None, source.name)
        self._guards.append(Test(pinned, is_same))
        for k, value in enumerate(known):
            self._visit(
                value, CaptureSource(Kind.CONSTANT, value, None, f"{source.name}[{k}]"), found
            )


class _Once:
    """A predicate that holds once, for what changes with each use."""

    used = False

    def __call__(self, _: object) -> bool:
        before, self.used = self.used, True
        return not before


def _has(x: object, name: str) -> bool:
    """Whether an object has an attribute, not counting computed ones."""
    return getattr_static(x, name, None) is not None
