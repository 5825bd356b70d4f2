"""Integer ranges: operations on traced integer arrays and Python integers.

NumPy converts a Python integer to the dtype of the array and rejects one that does not fit,
`int8_array * 200`, and a negative exponent of integers.  While a graph is built, the operation is
tried on arrays of ones and the integer itself.

    fitted    the operands, or the error that NumPy would raise
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert.errors import IntegerRangeError, at, user_line

from .spec import example_of

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
