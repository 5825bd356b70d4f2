"""The array API standard over tensors: a namespace whose arrays are tensors.

`wengert.numpy` returns plain arrays for plain numbers, like NumPy: only tensors give tensors.  The
standard has one class of arrays, so its public test suite (data-apis/array-api-tests) needs a
namespace whose `asarray`, `zeros`, `arange` ... return tensors.  This module has the functions of
`wengert.numpy`, with the results of creation functions wrapped, and the few functions of the
standard that NumPy lacks.  Names, arguments and promotion are those of `wengert.numpy`, which the
suite tests (tests/array_api).

    CREATION    functions of the standard that create arrays from other objects
    FUNCTIONS   its other functions
    CONSTANTS, DTYPES, EXTENSIONS
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as _numpy

from wengert._engine.core.handle import wrap as _wrap
from wengert._engine.core.node import constant as _constant

from .. import numpy as _names

CREATION = """arange asarray empty empty_like eye from_dlpack full full_like linspace meshgrid ones
    ones_like tril triu zeros zeros_like""".split()
FUNCTIONS = """
    astype can_cast finfo iinfo isdtype result_type
    abs acos acosh add asin asinh atan atan2 atanh bitwise_and bitwise_left_shift bitwise_invert
    bitwise_or bitwise_right_shift bitwise_xor ceil clip conj copysign cos cosh divide equal exp
    expm1 floor floor_divide greater greater_equal hypot imag isfinite isinf isnan less less_equal
    log log1p log2 log10 logaddexp logical_and logical_not logical_or logical_xor maximum minimum
    multiply negative nextafter not_equal positive pow real reciprocal remainder round sign signbit
    sin sinh square sqrt subtract tan tanh trunc
    take take_along_axis matmul matrix_transpose tensordot vecdot
    broadcast_arrays broadcast_to concat expand_dims flip moveaxis permute_dims repeat reshape roll
    squeeze stack tile unstack
    argmax argmin count_nonzero nonzero searchsorted where
    unique_all unique_counts unique_inverse unique_values argsort sort
    cumulative_prod cumulative_sum max mean min prod std sum var
    all any diff
    """.split()
CONSTANTS = "e inf nan newaxis pi".split()
DTYPES = """bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64 complex64
    complex128""".split()
EXTENSIONS = ["linalg", "fft"]
__array_api_version__ = _names.__array_api_version__
__array_namespace_info__ = _names.__array_namespace_info__


def _tensor(made: Any) -> Any:
    if isinstance(made, tuple | list):
        return [_tensor(part) for part in made]
    if isinstance(made, _numpy.ndarray | _numpy.generic):
        return _wrap(_constant(made))
    return made


def _creating(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with its plain arrays converted to constant tensors."""

    @functools.wraps(function)
    def create(*args: Any, **kwargs: Any) -> Any:
        return _tensor(function(*args, **kwargs))

    return create


_ALL = [*CREATION, *FUNCTIONS, *CONSTANTS, *DTYPES, *EXTENSIONS]
globals().update({name: getattr(_names, name) for name in _ALL})
globals().update({name: _creating(getattr(_names, name)) for name in CREATION})

# ---- what the standard has and NumPy has not -----------------------------------------------------


def broadcast_arrays(*arrays: Any) -> list[Any]:
    """The arrays in their common shape, as a list."""
    return list(_names.broadcast_arrays(*arrays))


def clip(x: Any, /, min: Any = None, max: Any = None) -> Any:
    """The elements limited to the range from `min` to `max`."""
    return _names.clip(x, min, max)


def sort(x: Any, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Any:
    """A sorted copy, the smallest or the largest first."""
    line = _names.sort(x, axis=axis, stable=stable)
    return _names.flip(line, axis=axis) if descending else line


def argsort(x: Any, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Any:
    """The indices that sort; equal elements keep their order in both directions."""
    if not descending:
        return _names.argsort(x, axis=axis, stable=stable)
    backwards = _names.argsort(_names.flip(x, axis=axis), axis=axis, stable=stable)
    return x.shape[axis] - 1 - _names.flip(backwards, axis=axis)


def _frequencies(function: Callable[..., Any]) -> Callable[..., Any]:
    def frequencies(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Any:
        made = asarray(function(n, d), device=device)  # type: ignore[name-defined]  # noqa: F821
        return made if dtype is None else made.astype(dtype)

    return frequencies


fft = SimpleNamespace(
    **{name: getattr(_names.fft, name) for name in _names.fft.__all__},
)
fft.fftfreq, fft.rfftfreq = _frequencies(_names.fft.fftfreq), _frequencies(_names.fft.rfftfreq)
__all__ = _ALL
