"""Object search: attributes of objects and classes that the code of a function may read.

Attributes are guarded by name; of classes also the names that would hide those of a base.

ObjectSearch    the part of a search that follows them
INIT            the special methods that make objects
"""

from __future__ import annotations

import ctypes
import functools
import gc
import threading
from array import array
from collections.abc import Iterable
from contextvars import ContextVar
from mmap import mmap
from types import (
    FunctionType,
    GetSetDescriptorType,
    MappingProxyType,
    MemberDescriptorType,
    ModuleType,
    SimpleNamespace,
)
from typing import Any

import numpy as np

from wengert._engine.core.library_code import is_library_class, is_library_module

from .captured import CapturedObject
from .guards import SameObject, Test, bits, equals, has_bits, has_elements, is_same
from .objects import (
    draws,
    has_own_getattr,
    has_unnamed_reads,
    holds_functions,
    is_network_module,
    is_of_python,
    is_plain,
    slots,
    weakly,
)
from .search_state import SearchState
from .sources import ABSENT, CaptureSource, Kind

# Special members that are not searched: those that create, copy or print objects.
_SKIPPED = frozenset(
    "__init__ __new__ __del__ __repr__ __str__ __format__ __init_subclass__ __reduce__ "
    "__reduce_ex__ __getstate__ __setstate__ __copy__ __deepcopy__ __sizeof__ __dir__ "
    "__class_getitem__ __set_name__ __post_init__ __dict__ __weakref__ __slots__".split()
)
_BUFFERS = (array, bytearray, memoryview, mmap, ctypes.Array, ctypes.Structure)
INIT = ("__init__", "__new__", "__post_init__")
_OPAQUE = 1000  # the largest number of objects of libraries that are searched


class ObjectSearch(SearchState):
    """A search that follows attributes of objects and classes."""

    def _object(self, found: CapturedObject, source: CaptureSource, weak: bool) -> None:
        x, cls = found.value, type(found.value)
        if isinstance(x, np.ndarray) or hasattr(cls, "__array__") or hasattr(cls, "__dataframe__"):
            self._array_like(found, source)
            return
        pinned = CaptureSource(Kind.CONSTANT, x, None, source.name)
        if isinstance(x, _BUFFERS):
            self._guards.append(Test(pinned, functools.partial(_has_bytes, bytes(memoryview(x)))))
            return
        if isinstance(x, ContextVar):
            value = x.get(ABSENT)
            self._guards.append(Test(pinned, functools.partial(_has_context, value)))
            self._visit(value, pinned._replace(holder=value), found)
            return
        if isinstance(x, threading.local):
            values = dict(vars(x))
            self._guards.append(Test(pinned, functools.partial(_has_members, values)))
            for word, value in values.items():
                own = CaptureSource(Kind.CONSTANT, value, None, f"{source.name}.{word}")
                self._visit(value, own, found)
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
        if isinstance(x, np.ndarray) and not is_library_class(type(x)):
            self._user_object(found, source, False)
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
        everything = everything or has_unnamed_reads(cls)
        words = self._wanted
        holder = weakly(x) if weak else x
        kind = CaptureSource(Kind.TYPE, holder, None, f"the class of {source.name}")
        self._guards.append(SameObject(kind, cls))
        if type(namespace) is dict:
            if self._absent:
                count = CaptureSource(Kind.LENGTH, namespace, None, source.name)
                self._guards.append(SameObject(count, len(namespace)))
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
        """Attributes and methods of a user's class, its bases and its metaclass."""
        if not is_library_class(type(cls)):
            self._class(found, type(cls), f"type({name})", ("__call__",))
        for base in cls.__mro__:
            if is_library_class(base):
                continue
            (entries,) = gc.get_referents(base.__dict__)[:1] or ({},)
            if self._absent:
                self._guards.append(
                    SameObject(CaptureSource(Kind.LENGTH, entries, None, name), len(entries))
                )
            elif base is not cls.__mro__[-2]:  # an attribute of a base may be overridden here
                for word in sorted(self._wanted - entries.keys()):
                    if hasattr(base, word):
                        absent = CaptureSource(Kind.ITEM, entries, word, f"{name}.{word}")
                        self._guards.append(SameObject(absent, ABSENT))
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
        elif isinstance(value, functools.partialmethod):
            inner = [value.func, *value.args, *value.keywords.values()]
        elif isinstance(value, functools.singledispatchmethod):
            inner = [value.func, value.dispatcher]
        if not inner:
            self._visit(value, source, found, barred=True)
            return
        self._guards.append(SameObject(source, value))
        for f in inner:
            self._visit(f, CaptureSource(Kind.CONSTANT, f, None, name), found, barred=True)


def _has_bytes(known: bytes, now: Any) -> bool:
    return bytes(memoryview(now)) == known


def _has_context(known: Any, now: ContextVar[Any]) -> bool:
    return is_same(now.get(ABSENT), known)


def _has_members(known: dict[str, Any], now: Any) -> bool:
    found = vars(now)
    return found.keys() == known.keys() and all(is_same(found[k], v) for k, v in known.items())
