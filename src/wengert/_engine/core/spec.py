"""Spec: the shape and dtype of a value, known before the value.

`spec_of` is the spec of any value in a graph: an array, a NumPy scalar, a Python number, or a tuple
of these (an operation with several outputs has a tuple of specs).

A Python number is *weak* (NEP 50): `2.0 * float32_array` stays float32.  When it is recorded, it is
stored as a NumPy scalar of a subclass, so that rules can rely on shape and dtype; it is converted
back to a Python number when an operation runs.  Type promotion is always that of NumPy.

Shape inference by example: the shape of a result for all sizes, from runs with a few of them.

The fallback for operations without a shape rule, including user-defined ones.  The operation runs
on small arrays of ones at several sizes (probes).  Each length of the result is then looked for
among the lengths of the operands, their sums and products, and their quotients by small integers.
The expression agrees with all probes, and is checked again whenever the graph runs: if it does not
hold for other sizes, the result is an error and never a wrong value.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .node_properties import sizes_of, substituted
from .symbolic.constraints import note_probed
from .symbolic.dim import Dim, Length, is_symbolic, names_in, replaced, valued

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


# Distinct for each name and probe; all remainders modulo 2 and 3 occur among them.
_PROBES = ((11, 13, 17, 19), (16, 21, 24, 27), (12, 20, 26, 31), (23, 28, 33, 39))


def probed(op: Any, specs: Sequence[Any], params: Mapping[str, Any]) -> Any:
    """The spec of the result of an operation, for all sizes.

    Raises
    ------
    ValueError
        No such expression gives the lengths of the result.
    """
    note_probed()
    dims = _dims_of(specs, params)
    names = sorted(names_in(dims))
    if len(names) > 4:
        raise ValueError(f"more than four sizes at once ({', '.join(names)})")
    probes = [dict(zip(names, sizes, strict=False)) for sizes in _PROBES]
    results = []
    for sizes in probes:
        examples = [op.example(at_sizes(s, sizes)) for s in specs]
        with np.errstate(all="ignore"):
            results.append(spec_of(op.run(*examples, **substituted(dict(params), sizes))))
    if isinstance(results[0], tuple):
        return tuple(
            _general([r[i] for r in results], dims, probes) for i in range(len(results[0]))
        )
    return _general(results, dims, probes)


def has_sizes(specs: Sequence[Any], params: Mapping[str, Any]) -> bool:
    """Whether a symbolic size occurs in the operands or the parameters."""
    if params and sizes_of(params if type(params) is dict else dict(params)):
        return True
    return any(is_symbolic(lengths_of(spec)) for spec in specs)


def _dims_of(specs: Sequence[Any], params: Mapping[str, Any]) -> list[Dim]:
    dims: dict[Any, None] = {}
    for spec in specs:
        dims.update(dict.fromkeys(n for n in lengths_of(spec) if isinstance(n, Dim)))
    for name in sizes_of(dict(params)):
        dims[Dim({((name, 1),): 1})] = None
    return list(dims)


def _general(results: list[Spec], dims: list[Dim], probes: list[dict[str, int]]) -> Spec:
    ranks = {r.ndim for r in results}
    if len(ranks) > 1:
        raise ValueError("the number of axes of the result depends on the sizes")
    shape = []
    for k in range(ranks.pop()):
        lengths = [r.shape[k] for r in results]
        shape.append(_length(lengths, dims, probes))
    return Spec(tuple(shape), results[0].dtype)


def _length(lengths: list[int], dims: list[Dim], probes: list[dict[str, int]]) -> Any:
    if len(set(lengths)) == 1:
        return lengths[0]
    for candidate in _candidates(dims):
        values = [valued(candidate, sizes) for sizes in probes]
        if values == lengths:
            return candidate
        differences = {a - b for a, b in zip(lengths, values, strict=True)}
        if len(differences) == 1:
            return candidate + differences.pop()
    for candidate, divisor in itertools.product(dims, range(2, 9)):
        for k in range(-divisor, 2 * divisor):
            quotient = (candidate + k) // divisor
            if [valued(quotient, sizes) for sizes in probes] == lengths:
                return quotient
    raise ValueError(
        f"no simple expression gives the lengths {lengths} of the result for the sizes {probes}"
    )


def _candidates(dims: list[Dim]) -> Iterator[Any]:
    yield from dims
    for a, b in itertools.combinations_with_replacement(dims, 2):
        yield a + b
        yield a * b
    for a, k in itertools.product(dims, range(2, 9)):
        yield a * k
    for a, b in itertools.permutations(dims, 2):
        yield a - b
    for a, b in itertools.product(dims, repeat=2):
        for k in range(2, 9):
            yield a * b * k
    for a, b, c in itertools.combinations_with_replacement(dims, 3):
        yield a * b * c
        yield a * b + c
