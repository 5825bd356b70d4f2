"""Spec: the shape and dtype of a value, known before the value.

`spec_of` is the spec of any value in a graph: an array, a NumPy scalar, a Python number, or a tuple
of these (an operation with several outputs has a tuple of specs).

A Python number is *weak* (NEP 50): `2.0 * float32_array` stays float32.  When it is recorded, it is
stored as a NumPy scalar of a subclass, so that rules can rely on shape and dtype; it is converted
back to a Python number when an operation runs.  Type promotion is always that of NumPy.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from .symbolic.dim import Length, replaced

if TYPE_CHECKING:
    from wengert._engine.core.types import Operand

Shape = tuple[Any, ...]  # of Length: a length may be a symbolic size
_ARRAYS = (np.ndarray, np.generic)  # making a union of types takes longer than testing for it
_PYTHON_DTYPE = {
    bool: np.dtype(np.bool_),
    int: np.dtype(np.int64),
    float: np.dtype(np.float64),
    complex: np.dtype(np.complex128),
}


class WeakFloat(np.float64):
    """A Python float that is recorded."""


class WeakComplex(np.complex128):
    """A Python complex number that is recorded."""


WEAK: dict[type, type] = {WeakFloat: float, WeakComplex: complex}
_WEAKENED: dict[type, type] = {float: WeakFloat, complex: WeakComplex}


def weakened(x: Operand) -> Any:
    """A Python number in its recorded form; anything else unchanged."""
    cls = _WEAKENED.get(type(x))
    return x if cls is None else cls(x)


def unweakened(x: Any) -> Any:
    """The Python number of a recorded one; anything else unchanged."""
    return x.item() if type(x) in WEAK else x


class Spec:
    """Shape, dtype, and whether the dtype is a Python number's (weak); immutable.

    A length is an int, or a `Dim` in a graph for all sizes.
    """

    __slots__ = ("_hash", "dtype", "shape", "weak")

    def __init__(self, shape: Shape, dtype: np.dtype[Any], weak: bool = False) -> None:
        self.shape = shape
        self.dtype = dtype
        self.weak = weak
        self._hash = hash((shape, dtype, weak))  # computed once: specs are keys of many dicts

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Spec):
            return NotImplemented
        if self.shape != other.shape or self.weak != other.weak:
            return False
        return self.dtype is other.dtype or bool(self.dtype == other.dtype)

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"Spec({self.shape}, {self.dtype}{', weak=True' if self.weak else ''})"

    def __reduce__(self) -> Any:
        return Spec, (self.shape, self.dtype, self.weak)

    def __str__(self) -> str:
        return f"{self.dtype}[{','.join(map(str, self.shape))}]"

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> Length:
        """Number of elements."""
        n: Length = 1
        for length in self.shape:
            n *= length
        return n


def spec_of(value: Any) -> Any:
    """The Spec of a value; a tuple of Specs for a tuple; None if it is not numeric."""
    if isinstance(value, _ARRAYS):
        return Spec(value.shape, value.dtype, type(value) in WEAK)
    dtype = _PYTHON_DTYPE.get(type(value))
    if dtype is not None:
        return Spec((), dtype, weak=True)
    if isinstance(value, tuple):
        return tuple(spec_of(v) for v in value)
    return None


def example_of(spec: Any) -> Any:
    """A value of ones with this spec, on which an operation is run to infer its result."""
    if isinstance(spec, tuple):
        return tuple(example_of(s) for s in spec)
    if spec.weak:
        return spec.dtype.type(1).item()
    return np.ones(spec.shape, spec.dtype)


def lengths_of(spec: tuple[Spec, ...] | Spec) -> tuple[Length, ...]:
    """The lengths of all axes, of all outputs if there are several."""
    if isinstance(spec, tuple):
        return tuple(n for s in spec for n in lengths_of(s))
    return () if spec is None else spec.shape


def at_sizes(spec: tuple[Spec, ...] | Spec, sizes: Mapping[str, Any]) -> Any:
    """The same spec with numbers, or other sizes, substituted for symbolic sizes."""
    if isinstance(spec, tuple):
        return tuple(at_sizes(s, sizes) for s in spec)
    if spec is None or not sizes:
        return spec
    return Spec(tuple(replaced(n, sizes) for n in spec.shape), spec.dtype, spec.weak)


def bare(spec: Any) -> Any:
    """Shape and dtype, ignoring whether the dtype is weak; a tuple for several outputs."""
    if isinstance(spec, tuple):
        return tuple(map(bare, spec))
    return None if spec is None else (spec.shape, spec.dtype)


def shown(spec: tuple[Spec, ...] | Spec) -> str:
    """A spec as text, ``float64[n,3]``; a tuple for several outputs; ``?`` if not known."""
    if isinstance(spec, tuple):
        return f"({', '.join(map(shown, spec))})"
    return "?" if spec is None else str(spec)


def is_inexact(dtype: np.dtype[Any]) -> bool:
    """Whether values of this dtype have derivatives: floating or complex numbers."""
    return dtype.kind in "fc"
