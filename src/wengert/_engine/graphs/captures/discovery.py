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
from array import array
from collections import deque
from collections.abc import Callable, Iterable
from types import (
    FunctionType,
    GetSetDescriptorType,
    MappingProxyType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
    SimpleNamespace,
)
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

from .captured import Captured, CapturedObject
from .code import reads_of
from .guards import Content, Guard, SameObject, Test, bits, equals, has_bits, has_elements
from .objects import (
    draws,
    has_own_getattr,
    holds_functions,
    is_network_module,
    is_of_python,
    is_plain,
    is_searched,
    name_of,
    slots,
    weakly,
)
from .sources import ABSENT, CaptureSource, Kind

# Special members that are not searched: those that create, copy or print objects.
_SKIPPED = frozenset(
    "__init__ __new__ __del__ __repr__ __str__ __format__ __init_subclass__ __reduce__ "
    "__reduce_ex__ __getstate__ __setstate__ __copy__ __deepcopy__ __sizeof__ __dir__ "
    "__class_getitem__ __set_name__ __post_init__ __dict__ __weakref__ __slots__".split()
)
_INIT = ("__init__", "__new__", "__post_init__")
_LONG_LIST = 200  # elements from which a list of plain values is compared as a whole
_OPAQUE = 1000  # the largest number of objects of libraries that are searched
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
    any_attribute = False
    for _ in range(_ROUNDS):
        search = _Search(names, any_attribute)
        search.run(fun, arguments)
        if search.names <= names and search.any_attribute == any_attribute:
            break
        names, any_attribute = names | search.names, search.any_attribute
    return search.captured(feedable)


class _Search:
    """One search, with the names of attributes found so far."""

    def __init__(self, names: frozenset[str], any_attribute: bool) -> None:
        self._wanted, self._all = names, any_attribute
        self.names: set[str] = set()
        self.any_attribute = any_attribute
        self._guards: list[Guard] = []
        self._found: dict[int, CapturedObject] = {}
        self._arrays: dict[int, list[CaptureSource]] = {}
        self._unguarded: dict[str, str] = {}
        self._tasks: deque[Callable[[], None]] = deque()
        self._seen_classes: set[type] = set()
        self._opaque = 0

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

    def _visit(
        self,
        value: Any,
        source: CaptureSource,
        parent: CapturedObject | None,
        barred: bool = False,
        weak: bool = False,
    ) -> None:
        """Add the source of a value, and search the value once."""
        if value is ABSENT or is_immutable(value):
            if source.kind is not Kind.CONSTANT:
                self._guards.append(SameObject(source, value))
            return
        key = id(value)
        is_new = key not in self._found
        found = self._found.setdefault(key, CapturedObject(value))
        found.barred |= barred or (parent is not None and not parent.replaceable)
        if parent is not None:
            parent.children.append(key)
        if type(value) is np.ndarray and value.dtype.kind in "biufc" and value.dtype.isnative:
            self._arrays.setdefault(key, []).append(source)
            return
        if source.kind is not Kind.CONSTANT:
            self._guards.append(SameObject(source, value))
        if is_new:
            self._expand(found, source, weak)

    def _later(self, task: Callable[..., None], *args: Any) -> None:
        self._tasks.append(functools.partial(task, *args))

    def _expand(self, found: CapturedObject, source: CaptureSource, weak: bool) -> None:
        """Search the contents of a value."""
        x, cls = found.value, type(found.value)
        if isinstance(x, Handle):
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
                self._later(self._class, found, x, source.name, _INIT)
        elif isinstance(x, dict):
            found.replaceable = cls in (dict,) or cls.__module__ == "collections"
            self._later(self._dict, found, source)
        elif isinstance(x, list):
            found.replaceable = cls is list
            self._later(self._list, found, source)
        elif isinstance(x, tuple):
            found.replaceable = cls is tuple or hasattr(cls, "_fields")
            self._later(self._parts, found, source, list(x))
        elif isinstance(x, set | frozenset | deque):
            self._later(self._unordered, found, source)
        elif getattr(x, "__wrapped__", None) is not None and hasattr(x, "cache_info"):
            inner = getattr(x, "_fun", x.__wrapped__)  # a compiled function, or lru_cache
            found.replaceable = hasattr(x, "_fun")
            self._later(self._parts, found, source, [inner])
        else:
            self._later(self._object, found, source, weak)

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
        name = fun.__qualname__
        if reads.any_global:
            self._unguarded[name] = "it reads names that are not in its code (globals, eval)"
        self._guards.append(SameObject(CaptureSource(Kind.CODE, fun, None, name), fun.__code__))
        scope = fun.__globals__
        for word in sorted(reads.globals):
            value = scope.get(word, ABSENT)
            if value is ABSENT or (isinstance(value, ModuleType) and is_library_module(value)):
                continue
            source = CaptureSource(Kind.ITEM, scope, word, word)
            self._visit(value, source, found, barred=word in reads.written_globals)
        for word, cell in zip(fun.__code__.co_freevars, fun.__closure__ or (), strict=True):
            source = CaptureSource(Kind.CELL, cell, None, word)
            value = source.read()
            if isinstance(value, ModuleType) and is_library_module(value):
                continue
            self._visit(value, source, found, barred=word in reads.written_cells)
        for k, value in enumerate(fun.__defaults__ or ()):
            count = fun.__code__.co_argcount - len(fun.__defaults__)
            word = fun.__code__.co_varnames[count + k]
            self._visit(value, CaptureSource(Kind.CONSTANT, value, None, word), found)
        for word, value in (fun.__kwdefaults__ or {}).items():
            self._visit(value, CaptureSource(Kind.ITEM, fun.__kwdefaults__, word, word), found)
        if vars(fun):
            self._entries(found, vars(fun), f"{name}.", self._wanted - {"__wrapped__"})

    def _library_function(self, found: CapturedObject) -> None:
        """A function of a library, of which only the functions in its closure are searched."""
        fun, found.replaceable = found.value, True
        for word, cell in zip(fun.__code__.co_freevars, fun.__closure__ or (), strict=True):
            source = CaptureSource(Kind.CELL, cell, None, word)
            value = source.read()
            if is_searched(value):
                self._visit(value, source, found)

    # ---- containers ----------------------------------------------------------------------------

    def _entries(
        self, found: CapturedObject, entries: dict[str, Any], prefix: str, words: frozenset[Any]
    ) -> None:
        """The entries of a namespace with these names."""
        everything = self._all and not isinstance(found.value, ModuleType)
        for word in sorted(entries) if everything else sorted(words & entries.keys()):
            value = entries[word]
            if isinstance(value, ModuleType) and is_library_module(value):
                continue
            self._visit(value, CaptureSource(Kind.ITEM, entries, word, prefix + word), found)

    def _dict(self, found: CapturedObject, source: CaptureSource) -> None:
        x = found.value
        if self._copied(x.values(), source, x):
            return
        self._guards.append(SameObject(CaptureSource(Kind.LENGTH, x, None, source.name), len(x)))
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

    # ---- objects -------------------------------------------------------------------------------

    def _object(self, found: CapturedObject, source: CaptureSource, weak: bool) -> None:
        x, cls = found.value, type(found.value)
        if isinstance(x, np.ndarray) or hasattr(cls, "__array__") or hasattr(cls, "__dataframe__"):
            self._array_like(found, source)
            return
        if isinstance(x, array | bytearray | memoryview):
            known = bytes(x)
            pinned = CaptureSource(Kind.CONSTANT, x, None, source.name)
            self._guards.append(Test(pinned, lambda now: bytes(now) == known))
            return
        namespace = getattr(x, "__dict__", None)
        is_module = is_network_module(cls)
        if cls is SimpleNamespace or (not is_library_class(cls) and not is_module):
            found.replaceable = is_plain(cls)
            self._user_object(found, source, weak)
        elif is_module:
            self._user_object(found, source, weak)
        elif cls.__module__.partition(".")[0] == "wengert":
            self._functions_of(found, source)
        elif namespace and not is_of_python(cls) and self._opaque < _OPAQUE:
            self._opaque += 1
            for word in sorted(map(str, namespace)):
                value = namespace.get(word)
                self._visit(
                    value, CaptureSource(Kind.ITEM, namespace, word, f"{source.name}.{word}"), found
                )
        elif not callable(x) and not isinstance(x, MappingProxyType) and not draws(cls):
            self._unguarded[source.name] = f"it is a {cls.__module__}.{cls.__qualname__}"

    def _functions_of(self, found: CapturedObject, source: CaptureSource) -> None:
        """An object of wengert, of which only functions need guards."""
        x = found.value
        namespace: dict[str, Any] = getattr(x, "__dict__", {})
        for word, value in list(namespace.items()):
            if holds_functions(value):
                own = CaptureSource(Kind.ITEM, namespace, word, f"{source.name}.{word}")
                self._visit(value, own, found)
        for word in slots(type(x)):
            value = getattr(x, word, ABSENT)
            if holds_functions(value):
                own = CaptureSource(Kind.ATTRIBUTE, x, word, f"{source.name}.{word}")
                self._visit(value, own, found)

    def _array_like(self, found: CapturedObject, source: CaptureSource) -> None:
        """An array of another library, a series or a table: compared with a copy."""
        x = found.value
        own, copied = getattr(x, "equals", None), getattr(x, "copy", None)
        pinned = CaptureSource(Kind.CONSTANT, x, None, source.name)
        if own is not None and copied is not None:  # of pandas
            check = functools.partial(equals, copied())
        elif isinstance(x, np.ndarray) and x.dtype == object:
            check = functools.partial(has_elements, x.shape, list(x.flat))
        else:
            check = functools.partial(has_bits, bits(x))
        self._guards.append(Test(pinned, check))

    def _user_object(self, found: CapturedObject, source: CaptureSource, weak: bool) -> None:
        """An object of a user's class: attributes that the code may read, and methods."""
        x, cls = found.value, type(found.value)
        namespace: dict[str, Any] | None = getattr(x, "__dict__", None)
        everything = self._all or is_network_module(cls) or has_own_getattr(cls)
        words = self._wanted
        if type(namespace) is dict:
            holder = weakly(x) if weak else x
            self._guards.append(
                SameObject(CaptureSource(Kind.DICT, holder, None, source.name), namespace)
            )
            for word in sorted(map(str, namespace)) if everything else sorted(words):
                value = namespace.get(word, ABSENT)
                if value is ABSENT and not hasattr(cls, word):
                    continue
                if isinstance(value, ModuleType) and is_library_module(value):
                    continue
                own = CaptureSource(Kind.ITEM, namespace, word, f"{source.name}.{word}")
                self._visit(value, own, found)
        for word in slots(cls):
            if everything or word in words:
                value = getattr(x, word, ABSENT)
                own = CaptureSource(Kind.ATTRIBUTE, x, word, f"{source.name}.{word}")
                self._visit(value, own, found, barred=True)
        self._class(found, cls, source.name, (), namespace or {})

    def _class(
        self,
        found: CapturedObject,
        cls: type,
        name: str,
        methods: Iterable[str],
        shadowed: dict[str, Any] | None = None,
    ) -> None:
        """Attributes and methods of a user's class and its bases."""
        for base in cls.__mro__:
            if is_library_class(base):
                continue
            (entries,) = gc.get_referents(base.__dict__)[:1] or ({},)
            for word in list(entries):
                special = word.startswith("__") and word.endswith("__")
                if word in _SKIPPED:
                    wanted = word in methods
                elif special:
                    wanted = isinstance(entries[word], FunctionType)
                else:
                    wanted = self._all or word in self._wanted or word == "forward"
                if wanted and not (shadowed and word in shadowed):
                    self._member(found, entries, word, f"{name}.{word}", special)

    def _member(
        self, found: CapturedObject, entries: dict[str, Any], word: str, name: str, special: bool
    ) -> None:
        value = entries[word]
        if isinstance(value, MemberDescriptorType | GetSetDescriptorType):
            return
        source = CaptureSource(Kind.ITEM, entries, word, name)
        if isinstance(value, FunctionType):
            # A method can be overridden on the object, but special methods cannot.
            self._visit(value, source, found, barred=special)
            return
        inner: list[Any] = []
        if isinstance(value, property):
            inner = [f for f in (value.fget, value.fset) if f is not None]
        elif isinstance(value, staticmethod | classmethod):
            inner = [value.__func__]
        elif isinstance(value, functools.cached_property):
            inner = [value.func]
        if not inner:
            self._visit(value, source, found, barred=True)
            return
        self._guards.append(SameObject(source, value))
        for f in inner:
            self._visit(f, CaptureSource(Kind.CONSTANT, f, None, name), found, barred=True)
