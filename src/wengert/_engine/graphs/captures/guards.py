"""Guards: comparisons of captured values with those at tracing time.

SameObject  the identical object, or an equal immutable value
Content     an array with the same elements
Test        a predicate
KeyOrder    the order of the keys of a dict
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from wengert._engine.core.conversion_hook import is_immutable, same_value

from .sources import CaptureSource


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
