"""Discovery of the captured values of a function.

The search follows everything that the bytecode can reach: globals, free variables and defaults of a
function, attributes whose names occur in the code, elements of containers, and recursively the
functions and methods among these.  It is repeated until it finds no new names.

The objects found form a graph.  An array is fed if all objects on all paths to it can be replaced
while the function is traced (functions, containers, plain objects of the user); if some path leads
through an object that cannot (a class, an object of a library), its elements are compared instead.
A number is compared, until it was seen to change; then it is fed as arrays are.

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
from collections.abc import Callable, Collection, Iterable
from importlib.util import resolve_name
from inspect import getattr_static
from types import FunctionType, MappingProxyType, MethodType, ModuleType
from typing import Any

from wengert._engine.core.conversion_hook import (
    is_immutable,
    is_library_class,
    is_library_function,
    is_library_module,
    same_value,
)
from wengert._engine.core.handle import Handle
from wengert._engine.core.node import is_variable
from wengert._engine.core.user_functions import Reads

from .captured import Captured, CapturedObject
from .guards import (
    ABSENT,
    CaptureSource,
    Content,
    FedNumber,
    KeyOrder,
    Kind,
    Location,
    SameObject,
    Test,
    has_own_code,
    is_iterator,
    is_searched,
    name_of,
)
from .object_search import INIT, ObjectSearch
from .traced_function import traced_part

_MIN_COPIED = 200  # elements; longer containers of plain values are compared as a whole
_MAX_ROUNDS = 20

Feedable = Callable[[Any], bool]


def captured_by(
    fun: Callable[..., Any],
    arguments: Iterable[tuple[str, Any]],
    feedable: Feedable,
    variable: Collection[Location] = (),
) -> Captured:
    """The current captured values of a function.

    Parameters
    ----------
    fun : callable
    arguments : iterable of (str, object)
        Names and values of arguments that are not fed.
    feedable : callable
        Whether an array, or a number, may be fed instead of compared.
    variable : collection of Location
        Parts of objects with numbers that were seen to change, which are fed if possible.
    """
    arguments = list(arguments)
    names: frozenset[str] = frozenset()
    callbacks: frozenset[str] = frozenset()
    any_attribute = absent = False
    for _ in range(_MAX_ROUNDS):
        search = _Search(names, callbacks, any_attribute, absent, variable)
        search.run(fun, arguments)
        known = search.any_attribute == any_attribute and search.absent == absent
        if known and search.names <= names and search.callbacks <= callbacks:
            break
        names, callbacks = names | search.names, callbacks | search.callbacks
        any_attribute, absent = search.any_attribute, search.absent
    return search.captured(feedable)


class _Search(ObjectSearch):
    """One search, for the attribute names that earlier searches found."""

    def run(self, fun: Any, arguments: list[tuple[str, Any]]) -> None:
        """Search a function and arguments, and everything that they lead to."""
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
        numbers = []
        for source, value, parent in self._numbers.values():
            if parent.replaceable and id(parent.value) not in barred and feedable(value):
                numbers.append(FedNumber(source, type(value), id(parent.value)))
            else:
                guards.append(SameObject(source, value))
        return Captured(guards, feeds, self._found, self._unguarded, numbers)

    def _reached(self, keys: list[int]) -> set[int]:
        seen = set(keys)
        while keys:
            for child in self._found[keys.pop()].children:
                if child not in seen:
                    seen.add(child)
                    keys.append(child)
        return seen

    # ---- one value -----------------------------------------------------------------------------

    def _expand(self, captured: CapturedObject, source: CaptureSource, weak: bool) -> None:
        """Search the contents of a value."""
        x, cls = captured.value, type(captured.value)
        if isinstance(x, Handle):
            self._tensor(x, source.name)
            return
        if isinstance(x, FunctionType):
            self._later(
                self._library_function if is_library_function(x) else self._function, captured
            )
        elif isinstance(x, MethodType):
            captured.replaceable = True
            self._later(self._parts, captured, source, [x.__func__, x.__self__])
        elif isinstance(x, functools.partial):
            captured.replaceable = True
            self._later(self._parts, captured, source, [x.func, *x.args, *x.keywords.values()])
        elif isinstance(x, ModuleType):
            if not is_library_module(x):
                captured.replaceable = True
                self._later(self._entries, captured, vars(x), source.name + ".", self._wanted)
        elif isinstance(x, type):
            if not is_library_class(x):
                self._later(self._class, captured, x, source.name, INIT)
        elif isinstance(x, operator.attrgetter | operator.methodcaller):
            self.names |= {w for part in x.__reduce__()[1] for w in str(part).split(".")}
        elif isinstance(x, MappingProxyType):
            self._later(self._parts, captured, source, gc.get_referents(x)[:1])
        elif is_iterator(x) and not weak:
            self._guards.append(Test(source._replace(kind=Kind.CONSTANT, holder=x), _Once()))
        elif isinstance(x, dict):
            captured.replaceable = cls in (dict,) or cls.__module__ == "collections"
            self._later(self._dict, captured, source)
            self._later(self._subclass, captured, source)
        elif isinstance(x, list):
            captured.replaceable = cls is list
            self._later(self._list, captured, source)
            self._later(self._subclass, captured, source)
        elif isinstance(x, tuple):
            captured.replaceable = cls is tuple or (
                hasattr(cls, "_fields") and not has_own_code(cls)
            )
            self._later(self._parts, captured, source, list(x))
            self._later(self._subclass, captured, source)
        elif isinstance(x, set | frozenset | deque):
            self._later(self._unordered, captured, source)
            self._later(self._subclass, captured, source)
        elif isinstance(x, weakref.ref):
            self._later(self._weak_reference, captured, source)
        elif _has_attribute(x, "__wrapped__") and _has_attribute(x, "cache_info"):
            inner = getattr(x, "_fun", x.__wrapped__)  # a compiled function, or lru_cache
            captured.replaceable = hasattr(x, "_fun")
            self._later(self._parts, captured, source, [inner])
        else:
            self._later(self._object, captured, source, weak)

    def _subclass(self, captured: CapturedObject, source: CaptureSource) -> None:
        """Attributes and methods of a container of a user's class."""
        cls = type(captured.value)
        if not is_library_class(cls) and has_own_code(cls):
            self._user_object(captured, source, False)

    def _tensor(self, x: Handle, name: str) -> None:
        """Guard a tensor whose value is a constant of the graph: updates give it another node."""
        if not is_variable(x.node) and x.node.value is not None:
            node_source = CaptureSource(Kind.ATTRIBUTE, x, "node", name)
            self._guards.append(SameObject(node_source, x.node))

    def _weak_reference(self, captured: CapturedObject, source: CaptureSource) -> None:
        x = captured.value()
        source_of_ref = CaptureSource(Kind.CONSTANT, captured.value, None, source.name)
        if x is None:
            self._guards.append(Test(source_of_ref, lambda value: value() is None))
            return
        reference, key = weakref.ref(x), id(x)
        self._guards.append(
            Test(source_of_ref, lambda value: reference() is not None and id(value()) == key)
        )
        target_source = CaptureSource(Kind.CONSTANT, x, None, f"{source.name}()")
        self._visit(x, target_source, captured, barred=True, weak=True)

    def _parts(self, captured: CapturedObject, source: CaptureSource, parts: list[Any]) -> None:
        """Parts of an immutable object, which need no guard."""
        for k, part in enumerate(parts):
            name = source.name if callable(part) else f"{source.name}[{k}]"
            self._visit(part, CaptureSource(Kind.CONSTANT, part, None, name), captured)

    # ---- functions -----------------------------------------------------------------------------

    def _function(self, captured: CapturedObject) -> None:
        fun, captured.replaceable = captured.value, True
        part = traced_part(fun)
        reads = part.reads
        self.names |= reads.attributes
        self.callbacks |= part.attributes
        self.any_attribute |= reads.any_attribute
        self.absent |= reads.absent
        name = fun.__qualname__
        self._guards.append(SameObject(CaptureSource(Kind.CODE, fun, None, name), fun.__code__))
        self._globals(captured, fun.__globals__, reads)
        for source in part.cells:
            value = source.read()
            if not self._library_module(value, source, reads):
                self._visit(value, source, captured, barred=source.name in reads.written_cells)
        for source, attributes in part.callbacks:
            self._callback(captured, source, attributes)
        self._defaults(captured)
        if vars(fun):
            self._entries(captured, vars(fun), f"{name}.", self._wanted)

    def _callback(
        self, captured: CapturedObject, source: CaptureSource, attributes: set[str]
    ) -> None:
        """Guard a variable that is only passed as a callback, or of which attributes are."""
        value = source.read()
        if attributes and isinstance(value, type):
            self._visit(value, source, captured)
            return
        self._guards.append(SameObject(source, value))
        for attribute in sorted(attributes):
            self._compare(value, attribute, f"{source.name}.{attribute}")

    def _globals(self, captured: CapturedObject, scope: dict[str, Any], reads: Reads) -> None:
        """The globals and modules that a function reads."""
        names = reads.globals
        if reads.any_global:
            names |= {w for w in scope if not (w.startswith("__") and w.endswith("__"))}
        for name in sorted(names):
            value = scope.get(name, ABSENT)
            source = CaptureSource(Kind.ITEM, scope, name, name)
            if not self._library_module(value, source, reads):
                self._visit(value, source, captured, barred=name in reads.written_globals)
        for module, level in sorted(reads.imports):
            try:
                absolute_name = resolve_name("." * level + module, scope.get("__package__"))
            except ImportError:
                continue
            value = sys.modules.get(absolute_name, ABSENT)
            if value is os:
                self._environment(reads)
            if value is ABSENT or not is_library_module(value):
                # An import statement cannot be given a copy, so what is read there is compared.
                module_source = CaptureSource(Kind.ITEM, sys.modules, absolute_name, absolute_name)
                self._visit(value, module_source, captured, barred=True)

    def _library_module(self, value: Any, source: CaptureSource, reads: Reads) -> bool:
        """Whether a value is a library module; guards it, and for `os` environment variables."""
        if not (isinstance(value, ModuleType) and is_library_module(value)):
            return False
        self._guards.append(SameObject(source, value))
        if value is os:
            self._environment(reads)
        return True

    def _environment(self, reads: Reads) -> None:
        """Environment variables, if a function may read them."""
        if {"environ", "getenv", "environb"} & reads.attributes:
            expected = dict(os.environ)
            environ_source = CaptureSource(Kind.CONSTANT, os.environ, None, "os.environ")
            self._guards.append(Test(environ_source, lambda value: dict(value) == expected))

    def _defaults(self, captured: CapturedObject) -> None:
        """The defaults of a function, and those of its keyword-only parameters."""
        fun = captured.value
        name, count = fun.__qualname__, fun.__code__.co_argcount
        defaults, keyword_defaults = fun.__defaults__, fun.__kwdefaults__
        if count:
            defaults_source = CaptureSource(Kind.DEFAULTS, fun, None, f"the defaults of {name}")
            self._guards.append(SameObject(defaults_source, defaults))
        for k, value in enumerate(defaults or ()):
            parameter = fun.__code__.co_varnames[count - len(defaults) + k]
            self._visit(value, CaptureSource(Kind.CONSTANT, value, None, parameter), captured)
        if fun.__code__.co_kwonlyargcount:
            defaults_source = CaptureSource(
                Kind.KWDEFAULTS, fun, None, f"the keyword defaults of {name}"
            )
            self._guards.append(SameObject(defaults_source, keyword_defaults))
        for parameter, value in (keyword_defaults or {}).items():
            self._visit(
                value, CaptureSource(Kind.ITEM, keyword_defaults, parameter, parameter), captured
            )

    def _library_function(self, captured: CapturedObject) -> None:
        """A library function; only the functions in its closure are searched."""
        fun, captured.replaceable = captured.value, True
        for variable, cell in zip(fun.__code__.co_freevars, fun.__closure__ or (), strict=True):
            source = CaptureSource(Kind.CELL, cell, None, variable)
            value = source.read()
            if is_searched(value):
                self._visit(value, source, captured)
        registry = vars(fun).get("registry")
        if isinstance(registry, MappingProxyType):  # of functools.singledispatch
            registry_source = CaptureSource(
                Kind.CONSTANT, registry, None, f"{fun.__name__}.registry"
            )
            self._visit(registry, registry_source, captured)

    # ---- containers ----------------------------------------------------------------------------

    def _dict(self, captured: CapturedObject, source: CaptureSource) -> None:
        x = captured.value
        if self._copied(x.values(), source, x):
            return
        self._guards.append(SameObject(CaptureSource(Kind.LENGTH, x, None, source.name), len(x)))
        if len(x) > 1:
            self._guards.append(KeyOrder(CaptureSource(Kind.CONSTANT, x, None, source.name)))
        for key in list(x):
            self._visit(dict.get(x, key, ABSENT), source.item(x, key), captured)

    def _list(self, captured: CapturedObject, source: CaptureSource) -> None:
        x = captured.value
        if self._copied(x, source, x):
            return
        self._guards.append(SameObject(CaptureSource(Kind.LENGTH, x, None, source.name), len(x)))
        for k, value in enumerate(list(x)):
            self._visit(value, CaptureSource(Kind.INDEX, x, k, f"{source.name}[{k}]"), captured)

    def _copied(self, values: Iterable[Any], source: CaptureSource, container: Any) -> bool:
        """Guard a long container of plain values by one comparison with a copy, if it is one."""
        if len(container) < _MIN_COPIED or not all(map(is_immutable, values)):
            return False
        original = list(container.items()) if isinstance(container, dict) else list(container)

        def is_same(value: Any) -> bool:
            items = list(value.items()) if isinstance(value, dict) else list(value)
            return len(items) == len(original) and all(map(same_value, items, original))

        pinned = CaptureSource(Kind.CONSTANT, container, None, source.name)
        self._guards.append(Test(pinned, is_same))
        return True

    def _unordered(self, captured: CapturedObject, source: CaptureSource) -> None:
        original = list(captured.value)
        count = len(original)

        def is_same(current: Any) -> bool:
            return len(current) == count and all(
                a is b for a, b in zip(current, original, strict=True)
            )

        pinned = CaptureSource(Kind.CONSTANT, captured.value, None, source.name)
        self._guards.append(Test(pinned, is_same))
        for k, value in enumerate(original):
            self._visit(
                value, CaptureSource(Kind.CONSTANT, value, None, f"{source.name}[{k}]"), captured
            )


class _Once:
    """A predicate that holds once, for iterators, which change with each use."""

    used = False

    def __call__(self, _: object) -> bool:
        before, self.used = self.used, True
        return not before


def _has_attribute(x: object, name: str) -> bool:
    """Whether an object has an attribute that is not computed (by ``__getattr__``)."""
    return getattr_static(x, name, None) is not None
