"""Validation of single arguments, with messages of one form.

function    a callable
word        a non-empty string
words       one string, or several
integers    one integer, or several
byte_count  a number of bytes
spelled     a short text of an argument

refuse_unknown_length   raise for a part of an array with an unknown number of elements

Integer ranges: operations on traced integer arrays and Python integers.

NumPy converts a Python integer to the dtype of the array and rejects one that does not fit,
`int8_array * 200`, and a negative exponent of integers.  While a graph is built, the operation is
tried on arrays of ones and the integer itself.

    fitted    the operands, or the error that NumPy would raise
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import numpy as np

from wengert.errors import ArgumentError, IntegerRangeError, at, user_line

from .spec import example_of

F = TypeVar("F", bound=Callable[..., Any])


def spelled(x: Any) -> str:
    """A short text of an argument for messages."""
    if x is None or isinstance(x, str | int | float | complex | tuple):
        text = repr(x)
        if len(text) <= 40:
            return text
    return f"a {type(x).__name__}"


def function(x: Any, what: str) -> None:
    """Raise ArgumentError if `x` is not callable."""
    if not callable(x):
        raise ArgumentError(
            f"{what} of {spelled(x)}, which is not a function. Give a function of arrays"
            f"{at(user_line())}."
        )


def word(x: Any, what: str) -> str:
    """A non-empty string, or ArgumentError."""
    if not isinstance(x, str) or not x:
        raise ArgumentError(
            f"{what} must be a non-empty string, not {spelled(x)}{at(user_line())}."
        )
    return x


def words(x: Any, what: str) -> list[str]:
    """One string or several, as a list; None is the empty list."""
    if x is None or isinstance(x, str):
        return [] if x is None else [x]
    items = _items(x)
    if items is None or not all(isinstance(item, str) for item in items):
        raise ArgumentError(
            f"{what} must be a name or a sequence of names, not {spelled(x)}{at(user_line())}."
        )
    return items


def integers(x: Any, what: str) -> list[int]:
    """One integer or several, as a list."""
    try:
        if isinstance(x, int | np.integer):
            return [int(x)]
        return [operator.index(item) for item in x]
    except TypeError as error:
        raise ArgumentError(
            f"{what} must be an integer or a sequence of integers, not {spelled(x)}"
            f"{at(user_line())}."
        ) from error


def byte_count(x: Any, called: str, advice: str = "") -> int:
    """A number of bytes, at least 0 and below 2**63, or ArgumentError."""
    try:
        number = -1 if isinstance(x, bool) else operator.index(x)
    except TypeError:
        number = -1
    if not 0 <= number < 1 << 63:
        raise ArgumentError(
            f"{called}({x!r}) is not a number of bytes: give an integer that is at least 0{advice}"
            f"{at(user_line())}."
        )
    return number


def _items(x: tuple[Any, ...]) -> list[Any] | None:
    return list(x) if isinstance(x, Iterable) else None


def refuse_unknown_length(x: Any) -> None:
    """Raise if `x` is a part of an array with an unknown number of elements."""
    refusal = getattr(type(x), "refusal", None)
    if refusal is not None:
        raise refusal(x, "returning them")


_INT64_MIN, _INT64_MAX = -(2**63), 2**63 - 1


def fitted(op: Any, args: Sequence[Any], specs: Sequence[Any]) -> tuple[Any, ...]:
    """The operands; integers that fit no integer dtype become floating-point numbers.

    Raises
    ------
    IntegerRangeError
        Where NumPy raises OverflowError, or ValueError for a negative exponent.
    """
    arrays = [s for s in specs if s is not None and not s.weak]
    if not arrays:
        return tuple(args)
    _try(op, args, specs)
    large = [type(a) is int and not _INT64_MIN <= a <= _INT64_MAX for a in args]
    inexact = any(s.dtype.kind in "fc" for s in arrays)
    if not any(large) or (not inexact and all(type(a) is not int or a < 2**64 for a in args)):
        return tuple(args)
    try:
        if inexact:
            return tuple([float(a) if far else a for a, far in zip(args, large, strict=True)])
    except OverflowError:
        pass
    raise IntegerRangeError(
        f"{op.name} of {_operands(args, specs)}: this integer does not fit the dtypes. Write it "
        f"as a floating-point number, float(n){at(user_line())}."
    )


def _try(op: Any, args: Sequence[Any], specs: Sequence[Any]) -> None:
    """Run the operation on the integers and on ones in place of the arrays."""
    ufunc = getattr(op, "ufunc", None)
    if not isinstance(ufunc, np.ufunc):
        return
    examples = [
        a if type(a) is int else example_of(s) if s.weak else np.ones((), s.dtype)
        for a, s in zip(args, specs, strict=True)
    ]
    try:
        with np.errstate(all="ignore"):
            ufunc(*examples)
    except OverflowError as error:
        raise IntegerRangeError(
            f"{op.name} of {_operands(args, specs)}: {error}. Give the array a wider "
            f"dtype, x.astype(np.int64), or make the number an array{at(user_line())}."
        ) from error
    except ValueError as error:
        raise IntegerRangeError(
            f"{op.name} of {_operands(args, specs)}: {error} Make the base a floating-point "
            f"number, x.astype(float){at(user_line())}."
        ) from error
    except TypeError:
        return  # no ufunc loop for these dtypes: the shape rule raises


def _operands(args: Sequence[Any], specs: Sequence[Any]) -> str:
    pairs = zip(args, specs, strict=True)
    return ", ".join([repr(a) if type(a) is int else str(s) for a, s in pairs])
