"""Object search: attributes of objects and classes that the code of a function may read.

Attributes are guarded by name; of a class also the absence of names that would override a base's.

ObjectSearch    the part of a search that follows attributes
INIT            the special methods that create objects

Search state: what one search for captured values has found so far.

Each value is searched once; further paths to it only add guards.

SearchState    guards, objects and arrays found, and the queue of tasks
"""

from __future__ import annotations

import ctypes
import functools
import gc
import threading
from array import array
from collections import deque
from collections.abc import Callable, Collection, Iterable
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

from wengert._engine.core.conversion_hook import is_immutable, is_library_class, is_library_module
from wengert._engine.core.device_arrays import is_numeric_array

from .captured import CapturedObject
from .guards import (
    ABSENT,
    CaptureSource,
    Guard,
    Kind,
    Location,
    SameObject,
    Test,
    bits,
    draws,
    equals,
    has_bits,
    has_elements,
    has_own_getattr,
    has_unnamed_reads,
    holds_functions,
    is_network_module,
    is_number,
    is_of_python,
    is_plain,
    is_same,
    slots,
    weakly,
)


class SearchState:
    """What one search has found so far.

    Parameters
    ----------
    names : frozenset of str
        The known names of attributes that the code reads.
    callbacks : frozenset of str
        The known names of attributes that it passes as callbacks.
    any_attribute : bool
        Whether it may read attributes with other names.
    absent : bool
        Whether it may continue if an attribute does not exist.
    variable : collection of Location
        Parts of objects whose values are numbers that have changed; they may become inputs.
    """

    def __init__(
        self,
        names: frozenset[str],
        callbacks: frozenset[str],
        any_attribute: bool,
        absent: bool,
        variable: Collection[Location] = (),
    ) -> None:
        self._variable = variable
        self._numbers: dict[Location, tuple[CaptureSource, Any, CapturedObject]] = {}
        self._wanted, self._all = names, any_attribute
        self._compared = callbacks - names
        self.names: set[str] = set()
        self.callbacks: set[str] = set()
        self.any_attribute, self.absent, self._absent = any_attribute, absent, absent
        self._guards: list[Guard] = []
        self._found: dict[int, CapturedObject] = {}
        self._arrays: dict[int, list[CaptureSource]] = {}
        self._unguarded: dict[str, str] = {}
        self._tasks: deque[Callable[[], None]] = deque()
        self._seen_classes: set[type] = set()
        self._opaque = 0

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
            if source.kind is Kind.CONSTANT:
                return
            is_variable = bool(self._variable) and source.location in self._variable
            if is_variable and is_number(value) and parent is not None and not barred:
                self._numbers[source.location] = source, value, parent
                return
            self._guards.append(SameObject(source, value))
            return
        key = id(value)
        is_new = key not in self._found
        captured = self._found.setdefault(key, CapturedObject(value))
        captured.barred |= barred or (parent is not None and not parent.replaceable)
        if parent is not None:
            parent.children.append(key)
        if is_numeric_array(value):
            self._arrays.setdefault(key, []).append(source)
            return
        if source.kind is not Kind.CONSTANT:
            self._guards.append(SameObject(source, value))
        if is_new:
            self._expand(captured, source, weak)

    def _later(self, task: Callable[..., None], *args: Any) -> None:
        self._tasks.append(functools.partial(task, *args))

    def _expand(self, captured: CapturedObject, source: CaptureSource, weak: bool) -> None:
        """Search the contents of a value."""
        raise NotImplementedError

    def _entries(
        self, captured: CapturedObject, entries: dict[str, Any], prefix: str, names: frozenset[Any]
    ) -> None:
        """Visit the entries of a namespace with these names."""
        all_names = self._all and not isinstance(captured.value, ModuleType)
        if self._absent:
            length_source = CaptureSource(Kind.LENGTH, entries, None, prefix.rstrip("."))
            self._guards.append(SameObject(length_source, len(entries)))
        for name in sorted(entries) if all_names else sorted(names & entries.keys()):
            value = entries[name]
            if isinstance(value, ModuleType) and is_library_module(value):
                continue
            self._visit(value, CaptureSource(Kind.ITEM, entries, name, prefix + name), captured)
        for name in self._compared & entries.keys():
            source = CaptureSource(Kind.ITEM, entries, name, prefix + name)
            self._guards.append(SameObject(source, entries[name]))


# Special members that are not searched: those that create, copy or print objects.
_SKIPPED = frozenset(
    "__init__ __new__ __del__ __repr__ __str__ __format__ __init_subclass__ __reduce__ "
    "__reduce_ex__ __getstate__ __setstate__ __copy__ __deepcopy__ __sizeof__ __dir__ "
    "__class_getitem__ __set_name__ __post_init__ __dict__ __weakref__ __slots__".split()
)
_BUFFERS = (array, bytearray, memoryview, mmap, ctypes.Array, ctypes.Structure)
INIT = ("__init__", "__new__", "__post_init__")
_MAX_OPAQUE = 1000  # library objects that are searched


class ObjectSearch(SearchState):
    """A search that follows attributes of objects and classes."""

    def _object(self, captured: CapturedObject, source: CaptureSource, weak: bool) -> None:
        x, cls = captured.value, type(captured.value)
        parts = getattr(cls, "captured_parts", ())  # of a class of wengert that holds arrays
        if parts:
            for attribute in parts:
                value = getattr(x, attribute)
                part = CaptureSource(Kind.ATTRIBUTE, x, attribute, f"{source.name}.{attribute}")
                self._visit(value, part, captured)
            return
        if isinstance(x, np.ndarray) or hasattr(cls, "__array__") or hasattr(cls, "__dataframe__"):
            self._array_like(captured, source)
            return
        pinned = CaptureSource(Kind.CONSTANT, x, None, source.name)
        if isinstance(x, _BUFFERS):
            self._guards.append(Test(pinned, functools.partial(_has_bytes, bytes(memoryview(x)))))
            return
        if isinstance(x, ContextVar):
            value = x.get(ABSENT)
            self._guards.append(Test(pinned, functools.partial(_has_context, value)))
            self._visit(value, pinned._replace(holder=value), captured)
            return
        if isinstance(x, threading.local):
            values = dict(vars(x))
            self._guards.append(Test(pinned, functools.partial(_has_members, values)))
            for attribute, value in values.items():
                value_source = CaptureSource(
                    Kind.CONSTANT, value, None, f"{source.name}.{attribute}"
                )
                self._visit(value, value_source, captured)
            return
        namespace = getattr(x, "__dict__", None)
        is_module = is_network_module(cls)
        if cls is SimpleNamespace or (not is_library_class(cls) and not is_module):
            captured.replaceable = is_plain(cls)
            self._user_object(captured, source, weak)
        elif is_module:
            self._user_object(captured, source, weak)
        elif cls.__module__.partition(".")[0] == "wengert":
            self._functions_of(captured, source)
        elif namespace and not is_of_python(cls) and self._opaque < _MAX_OPAQUE:
            self._opaque += 1
            for attribute in sorted(map(str, namespace)):
                value = namespace.get(attribute)
                self._visit(
                    value,
                    CaptureSource(Kind.ITEM, namespace, attribute, f"{source.name}.{attribute}"),
                    captured,
                )
        elif not callable(x) and not isinstance(x, MappingProxyType) and not draws(cls):
            self._unguarded[source.name] = f"it is a {cls.__module__}.{cls.__qualname__}"

    def _functions_of(self, captured: CapturedObject, source: CaptureSource) -> None:
        """An object of wengert, of which only attributes with functions are searched."""
        x = captured.value
        namespace: dict[str, Any] = getattr(x, "__dict__", {})
        for attribute, value in list(namespace.items()):
            if holds_functions(value):
                value_source = CaptureSource(
                    Kind.ITEM, namespace, attribute, f"{source.name}.{attribute}"
                )
                self._visit(value, value_source, captured)
        for attribute in slots(type(x)):
            value = getattr(x, attribute, ABSENT)
            if holds_functions(value):
                value_source = CaptureSource(
                    Kind.ATTRIBUTE, x, attribute, f"{source.name}.{attribute}"
                )
                self._visit(value, value_source, captured)

    def _array_like(self, captured: CapturedObject, source: CaptureSource) -> None:
        """An array of another library, or a pandas object, which is compared with a copy."""
        x = captured.value
        if isinstance(x, np.ndarray) and not is_library_class(type(x)):
            self._user_object(captured, source, False)
        equals_method, copy_method = getattr(x, "equals", None), getattr(x, "copy", None)
        pinned = CaptureSource(Kind.CONSTANT, x, None, source.name)
        if equals_method is not None and copy_method is not None:  # of pandas
            check = functools.partial(equals, copy_method())
        elif isinstance(x, np.ndarray) and x.dtype == object:
            check = functools.partial(has_elements, x.shape, list(x.flat))
        else:
            check = functools.partial(has_bits, bits(x))
        self._guards.append(Test(pinned, check))

    def _user_object(self, captured: CapturedObject, source: CaptureSource, weak: bool) -> None:
        """An object of a user's class: attributes that the code may read, and methods."""
        x, cls = captured.value, type(captured.value)
        namespace: dict[str, Any] | None = getattr(x, "__dict__", None)
        everything = self._all or is_network_module(cls) or has_own_getattr(cls)
        everything = everything or has_unnamed_reads(cls)
        wanted = self._wanted
        holder = weakly(x) if weak else x
        class_source = CaptureSource(Kind.TYPE, holder, None, f"the class of {source.name}")
        self._guards.append(SameObject(class_source, cls))
        if type(namespace) is dict:
            if self._absent:
                length_source = CaptureSource(Kind.LENGTH, namespace, None, source.name)
                self._guards.append(SameObject(length_source, len(namespace)))
            self._guards.append(
                SameObject(CaptureSource(Kind.DICT, holder, None, source.name), namespace)
            )
            for attribute in sorted(map(str, namespace)) if everything else sorted(wanted):
                value = namespace.get(attribute, ABSENT)
                if value is ABSENT and not hasattr(cls, attribute):
                    continue
                if isinstance(value, ModuleType) and is_library_module(value):
                    continue
                value_source = CaptureSource(
                    Kind.ITEM, namespace, attribute, f"{source.name}.{attribute}"
                )
                self._visit(value, value_source, captured)
            for attribute in self._compared:
                value = namespace.get(attribute, ABSENT)
                if value is not ABSENT or hasattr(cls, attribute):
                    name = f"{source.name}.{attribute}"
                    entry = CaptureSource(Kind.ITEM, namespace, attribute, name)
                    self._guards.append(SameObject(entry, value))
        for attribute in slots(cls):
            value_source = CaptureSource(Kind.ATTRIBUTE, x, attribute, f"{source.name}.{attribute}")
            if everything or attribute in wanted:
                value = getattr(x, attribute, ABSENT)
                self._visit(value, value_source, captured, barred=True)
            elif attribute in self._compared:
                self._guards.append(SameObject(value_source, value_source.read()))
        shadowed = namespace if type(namespace) is dict else {}  # __getattr__ may answer anything
        self._class(captured, cls, source.name, (), shadowed)

    def _compare(self, x: Any, attribute: str, name: str) -> None:
        """Guard which object an attribute of an object is, without searching either."""
        cls = type(x)
        self._guards.append(SameObject(CaptureSource(Kind.TYPE, x, None, name), cls))
        namespaces = [
            gc.get_referents(b.__dict__)[0] for b in cls.__mro__ if not is_library_class(b)
        ]
        if isinstance(getattr(x, "__dict__", None), dict):
            namespaces.append(x.__dict__)
            self._guards.append(SameObject(CaptureSource(Kind.DICT, x, None, name), x.__dict__))
        for namespace in namespaces:
            source = CaptureSource(Kind.ITEM, namespace, attribute, name)
            self._guards.append(SameObject(source, source.read()))
        if attribute in slots(cls):
            source = CaptureSource(Kind.ATTRIBUTE, x, attribute, name)
            self._guards.append(SameObject(source, source.read()))

    def _class(
        self,
        captured: CapturedObject,
        cls: type,
        name: str,
        methods: Iterable[str],
        shadowed: dict[str, Any] | None = None,
    ) -> None:
        """Attributes and methods of a user's class, its bases and its metaclass."""
        if not is_library_class(type(cls)):
            self._class(captured, type(cls), f"type({name})", ("__call__",))
        for base in cls.__mro__:
            if is_library_class(base):
                continue
            (entries,) = gc.get_referents(base.__dict__)[:1] or ({},)
            if self._absent:
                self._guards.append(
                    SameObject(CaptureSource(Kind.LENGTH, entries, None, name), len(entries))
                )
            elif base is not cls.__mro__[-2]:  # an attribute of a base may be overridden here
                for attribute in sorted((self._wanted | self._compared) - entries.keys()):
                    if hasattr(base, attribute):
                        absent_source = CaptureSource(
                            Kind.ITEM, entries, attribute, f"{name}.{attribute}"
                        )
                        self._guards.append(SameObject(absent_source, ABSENT))
            for attribute in list(entries):
                is_special = attribute.startswith("__") and attribute.endswith("__")
                if attribute in _SKIPPED:
                    is_wanted = attribute in methods
                elif is_special:
                    is_wanted = isinstance(entries[attribute], FunctionType)
                else:
                    is_wanted = self._all or attribute in self._wanted or attribute == "forward"
                if shadowed and attribute in shadowed:
                    continue
                if not is_wanted and attribute in self._compared:
                    source = CaptureSource(Kind.ITEM, entries, attribute, f"{name}.{attribute}")
                    self._guards.append(SameObject(source, entries[attribute]))
                elif is_wanted:
                    self._member(captured, entries, attribute, f"{name}.{attribute}", is_special)

    def _member(
        self,
        captured: CapturedObject,
        entries: dict[str, Any],
        attribute: str,
        name: str,
        is_special: bool,
    ) -> None:
        value = entries[attribute]
        if isinstance(value, MemberDescriptorType | GetSetDescriptorType):
            return
        source = CaptureSource(Kind.ITEM, entries, attribute, name)
        if isinstance(value, FunctionType):
            # A method can be overridden on the object, but special methods cannot.
            self._visit(value, source, captured, barred=is_special)
            return
        functions: list[Any] = []
        if isinstance(value, property):
            functions = [f for f in (value.fget, value.fset) if f is not None]
        elif isinstance(value, staticmethod | classmethod):
            functions = [value.__func__]
        elif isinstance(value, functools.cached_property):
            functions = [value.func]
        elif isinstance(value, functools.partialmethod):
            functions = [value.func, *value.args, *value.keywords.values()]
        elif isinstance(value, functools.singledispatchmethod):
            functions = [value.func, value.dispatcher]
        if not functions:
            self._visit(value, source, captured, barred=True)
            return
        self._guards.append(SameObject(source, value))
        for f in functions:
            self._visit(f, CaptureSource(Kind.CONSTANT, f, None, name), captured, barred=True)


def _has_bytes(known: bytes, value: Any) -> bool:
    return bytes(memoryview(value)) == known


def _has_context(known: Any, variable: ContextVar[Any]) -> bool:
    return is_same(variable.get(ABSENT), known)


def _has_members(known: dict[str, Any], value: Any) -> bool:
    members = vars(value)
    return members.keys() == known.keys() and all(is_same(members[k], v) for k, v in known.items())
