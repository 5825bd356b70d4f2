"""How captured values are read again, and compared with those at tracing time.

Properties of classes that determine how attributes of their objects are read.

slots              the names of members of classes with __slots__
has_own_getattr    whether attributes are computed
has_unnamed_reads  whether methods of libraries may read attributes
has_own_code       whether a class has functions of the user
is_plain           whether an object can be copied with other attributes
is_of_python       whether a class is one of the standard library that is not searched
is_iterator        whether an object is an iterator, which changes when it is used
draws              whether an object generates random numbers
is_network_module  whether a class derives from wengert.nn.Module
holds_functions    whether a value is a function or a container of functions

Sources: how a captured value is read again.

A source refers to the object that holds the value (a cell, a dict, a list); guards on the path to
this object check that the function still reaches it.

    CaptureSource  a holder, the read, and the name of the value in messages
    FedNumber      a number that is an input of the program
    Location       what a source reads, as a key
    ABSENT         the result of reading a value that no longer exists

Guards: comparisons of captured values with those at tracing time.

SameObject  the identical object, or an equal immutable value
Content     an array with the same elements
Test        a predicate
KeyOrder    the order of the keys of a dict
"""

from __future__ import annotations

import operator
import sys
import weakref
from collections.abc import Callable, Iterator
from enum import Enum
from types import FunctionType, SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from wengert._engine.core.conversion_hook import (
    is_immutable,
    is_library_class,
    is_library_function,
    same_value,
)

if TYPE_CHECKING:
    from wengert._engine.core.types import Operand
    from wengert._engine.tensor.tensor import Tensor

# Modules whose classes read no attributes of objects of their subclasses.
_WITHOUT_DATA = frozenset(("abc", "builtins", "enum", "typing"))
_DATA = frozenset(("argparse", "collections", "configparser", "optparse"))


def slots(cls: type) -> Iterator[str]:
    """The names of members of classes with ``__slots__``."""
    for base in cls.__mro__:
        slots = base.__dict__.get("__slots__", ())
        yield from (slots,) if isinstance(slots, str) else slots


def has_unnamed_reads(cls: type) -> bool:
    """Whether methods of libraries among its bases may read attributes of an object."""
    return any(
        base is not object and is_library_class(base) and base.__module__ not in _WITHOUT_DATA
        for base in cls.__mro__
    )


def has_own_code(cls: type) -> bool:
    """Whether a class has functions of the user, or objects with attributes."""
    functions = [v for v in vars(cls).values() if isinstance(v, FunctionType)]
    return any(not is_library_function(f) for f in functions) or "__dict__" in vars(cls)


def has_own_getattr(cls: type) -> bool:
    """Whether attributes may be computed, by ``__getattr__`` or ``__getattribute__``."""
    return any(
        "__getattr__" in vars(base) or "__getattribute__" in vars(base)
        for base in cls.__mro__
        if base is not object
    )


def is_plain(cls: type) -> bool:
    """Whether an object can be copied with other attributes: no base has its own layout."""
    if cls is SimpleNamespace:
        return True
    return all(base is object or not _has_layout(base) for base in cls.__mro__)


def _has_layout(cls: type) -> bool:
    return bool(cls.__dict__.get("__slots__")) or cls.__module__ == "builtins"


def is_of_python(cls: type) -> bool:
    """Whether a class is in the standard library, except for classes with data of the user."""
    package = cls.__module__.partition(".")[0]
    return package in sys.stdlib_module_names and package not in _DATA


def is_iterator(x: object) -> bool:
    """Whether an object is an iterator of Python, which gives other items at each use."""
    return type(x).__module__ in ("builtins", "itertools") and isinstance(x, Iterator)


def draws(cls: type) -> bool:
    """Whether objects of a class generate random numbers, an error while a function is traced."""
    return cls.__module__ == "random" or cls.__module__.startswith("numpy.random")


def is_network_module(cls: type) -> bool:
    """Whether a class derives from `wengert.nn.Module`."""
    return any(b.__module__ == "wengert.nn.module" for b in cls.__mro__)


def name_of(fun: Any) -> str:
    """The name of a function in messages."""
    return getattr(fun, "__name__", None) or type(fun).__name__


def weakly(x: Any) -> Any:
    """A weak reference to an object; the object itself if it does not support weak references."""
    try:
        return weakref.ref(x)
    except TypeError:
        return x


def holds_functions(value: Any) -> bool:
    """Whether a value is a function or a container of functions."""
    if isinstance(value, dict):
        value = tuple(value.values())
    if isinstance(value, list | tuple):
        return any(map(is_searched, value))
    return is_searched(value)


def is_searched(value: Any) -> bool:
    """Whether a value in the closure of a library's function may lead to code of the user."""
    return callable(value) and not isinstance(value, type)


class _Absent(Enum):
    ABSENT = 0


ABSENT = _Absent.ABSENT
Location = tuple["Kind", int, Any]  # the kind of a read, the identity of the holder, and the key


class Kind(Enum):
    """The kinds of reads of a value."""

    CONSTANT = "constant"  # the holder itself
    CELL = "cell"  # the contents of a closure cell
    ITEM = "item"  # an entry of a dict: of globals, of an instance, of a class
    INDEX = "index"  # an element of a list
    DICT = "dict"  # the __dict__ of an object
    CODE = "code"  # the code of a function
    DEFAULTS = "defaults"  # the defaults of a function, a tuple or None
    KWDEFAULTS = "kwdefaults"  # those of its keyword-only parameters, a dict or None
    TYPE = "type"  # the class of an object
    LENGTH = "length"  # the number of elements
    ATTRIBUTE = "attribute"  # a member of a class with __slots__


class CaptureSource(NamedTuple):
    """Reads a captured value.

    Attributes
    ----------
    kind : Kind
    holder : object
        The object that holds the value; a weak reference for the ``__dict__`` and the class of an
        argument.
    key : object
        The key of a dict, index of a list, or name of an attribute.
    name : str
        As the user writes it: ``self.weights['a']``.
    """

    kind: Kind
    holder: Any
    key: Any
    name: str

    def read(self) -> Any:
        """The current value, or ABSENT."""
        holder, kind = self.holder, self.kind
        if kind is Kind.CONSTANT:
            return holder
        if kind is Kind.ITEM:
            return dict.get(holder, self.key, ABSENT)
        if kind is Kind.CELL:
            try:
                return holder.cell_contents
            except ValueError:
                return ABSENT
        if kind is Kind.INDEX:
            return list.__getitem__(holder, self.key) if self.key < len(holder) else ABSENT
        if kind in (Kind.DICT, Kind.TYPE):
            if isinstance(holder, weakref.ref):
                holder = holder()
            return type(holder) if kind is Kind.TYPE else getattr(holder, "__dict__", ABSENT)
        if kind is Kind.CODE:
            return holder.__code__
        if kind is Kind.DEFAULTS:
            return holder.__defaults__
        if kind is Kind.KWDEFAULTS:
            return holder.__kwdefaults__
        if kind is Kind.LENGTH:
            return len(holder)
        return getattr(holder, self.key, ABSENT)

    @property
    def location(self) -> Location:
        """Equal for sources that read the same part of an object that is alive."""
        return self.kind, id(self.holder), self.key

    def item(
        self, holder: dict[Any, Any], key: Operand | str | Tensor | None, name: str | None = None
    ) -> CaptureSource:
        """The source of an entry of the dict that this source reads."""
        return CaptureSource(
            Kind.ITEM, holder, key, f"{self.name}[{key!r}]" if name is None else name
        )


class FedNumber(NamedTuple):
    """A number that is an input of the program.

    source : CaptureSource
    kind : type
        The class that it must have.
    parent : int
        The identity of the object that has it.
    """

    source: CaptureSource
    kind: type
    parent: int


class Guard:
    """A comparison of a captured value with its value at tracing time."""

    source: CaptureSource

    def holds(self) -> bool:
        """Whether the value is unchanged."""
        raise NotImplementedError


class SameObject(Guard):
    """The identical object; if it is immutable, an equal one of the same type."""

    __slots__ = ("expected", "source")

    def __init__(self, source: CaptureSource, expected: Any) -> None:
        self.source, self.expected = source, expected

    def holds(self) -> bool:
        """Whether the value is unchanged; an equal object is stored as the expected one."""
        value = self.source.read()
        if value is self.expected:
            return True
        both_immutable = is_immutable(value) and is_immutable(self.expected)
        if both_immutable and same_value(value, self.expected):
            self.expected = value
            return True
        return False


class Content(Guard):
    """An array with the same dtype, shape and elements."""

    __slots__ = ("array", "bytes", "layout", "source")

    def __init__(self, source: CaptureSource, array: np.ndarray[Any, Any]) -> None:
        self.source, self.array = source, array
        self.layout = array.dtype, array.shape, array.strides, array.ctypes.data
        self.bytes = np.array(array, order="K", subok=False, copy=True)

    def holds(self) -> bool:
        """Whether dtype, shape and elements are unchanged; an equal array is stored as expected."""
        value = self.source.read()
        if type(value) is not type(self.array):
            return False
        if value.dtype != self.bytes.dtype or value.shape != self.bytes.shape:
            return False
        if np.asarray(value).tobytes() != self.bytes.tobytes():
            return False
        self.array = value
        self.layout = value.dtype, value.shape, value.strides, value.ctypes.data
        return True


class Test(Guard):
    """A predicate of the value."""

    __slots__ = ("check", "source")

    def __init__(self, source: CaptureSource, check: Callable[[Any], bool]) -> None:
        self.source, self.check = source, check

    def holds(self) -> bool:
        """The result of the predicate; an exception means that the value has changed."""
        try:
            return bool(self.check(self.source.read()))
        except Exception:
            return False


class KeyOrder(Test):
    """The same keys of a dict, in the same order."""

    def __init__(self, source: CaptureSource) -> None:
        keys = list(source.holder)
        super().__init__(source, lambda value: all(map(operator.is_, value, keys)))


# ---- predicates ---------------------------------------------------------------------------------


def is_same(a: Any, b: Any) -> bool:
    """Whether an object is identical to another one, or an equal immutable value."""
    return a is b or (is_immutable(a) and is_immutable(b) and same_value(a, b))


def is_number(x: Any) -> bool:
    """Whether a captured value is a number that may be fed: a float, or an integer of 64 bits."""
    if isinstance(x, float | np.floating):
        return not isinstance(x, np.longdouble)
    is_integer = isinstance(x, int | np.integer) and not isinstance(x, bool)
    return is_integer and -(2**63) <= int(x) < 2**63


def equals(known: Any, value: Any) -> bool:
    """Whether a series or a table equals a copy made before."""
    return bool(value.equals(known))


def has_elements(shape: tuple[int, ...], elements: list[Any], value: Any) -> bool:
    """Whether an array of objects has this shape and these elements."""
    return bool(value.shape == shape) and all(map(is_same, value.flat, elements))


def has_bits(known: tuple[Any, ...], value: Any) -> bool:
    """Whether an array of any class has the same bits."""
    return bool(bits(value) == known)


def bits(x: Any) -> Any:
    """Dtype, shape and bytes of an array-like object."""
    array = np.asarray(x)
    mask = np.ma.getmaskarray(x).tobytes() if isinstance(x, np.ma.MaskedArray) else b""
    return array.dtype, array.shape, array.tobytes(), mask
