"""Determinants: of many small matrices at a time, their logarithms and cofactors.

    det               of two and three rows by their formula, whose products of two lose nothing
                      (W. Kahan: the rounding error of one is added to the other); of more by pivots
    slogdet           by pivots, whose zeros are LAPACK's
    det_derivative    the cofactors: of two and three rows themselves, right for singular matrices
                      too; of more det(a) inv(a).T, and a matrix not far from singular is left to
                      the interpreter

A product that goes beyond the numbers on the way is computed again by logarithms of pivots.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wengert._engine.backends.llvm.ir.ir_builder import Section
from wengert._engine.backends.llvm.ir.llvm_types import F64
from wengert._engine.backends.llvm.ir.scalar_language import Language
from wengert._engine.backends.llvm.ir.simd_value import Lane

from ..batched_matrices import Block, blocks
from ..kernel_call import Call
from ..loop_helpers import moved
from ..simd_matrix import any_of
from . import looped_small_matrices
from .unrolled_small_matrices import (
    UNROLLED,
    Rows,
    eliminated,
    identity,
    rows_of,
    size_of,
    solved,
    write_rows,
)

_HUGE = 1e290  # products between its inverse and it have lost nothing
_TINY = float(np.finfo(np.float64).tiny)
_FORMULA = (2, 3)  # rows

Pivots = Callable[[Section], tuple[Sequence[Any], Any]]  # and whether exchanges are odd


def _number(s: Language, value: float) -> Lane:
    found: Lane = s.constant(value, F64)
    return found


# ---- by pivots -----------------------------------------------------------------------------------


def _product(s: Language, pivots: Sequence[Any], odd: Any) -> Any:
    product = pivots[0]
    for p in pivots[1:]:
        product = product * p
    return product if odd is None else s.select(odd, -product, product)


def _signed_logarithm(s: Language, pivots: Sequence[Any], odd: Any) -> tuple[Any, Any]:
    """Sign and logarithm of the product of the pivots: 0 and -inf if one of them is zero."""
    zero = _number(s, 0.0)
    negative: Any = odd
    nothing: Any = None
    total: Any = None
    for p in pivots:
        below = s.compare("less", p, zero)
        negative = below if negative is None else s.binary("bitwise_xor", negative, below)
        none = s.compare("equal", p, zero)
        nothing = none if nothing is None else s.binary("logical_or", nothing, none)
        log = s.unary("log", size_of(s, p))
        total = log if total is None else total + log
    sign = s.select(negative, _number(s, -1.0), _number(s, 1.0))
    return s.select(nothing, zero, sign), s.select(nothing, _number(s, -np.inf), total)


def _outside(block: Block, product: Any) -> str:
    """Whether some product has met the end of the numbers, an i1."""
    language, size = block.call.language, size_of(block.call.language, product)
    inside = language.binary(
        "logical_and",
        language.compare("less", size, _number(language, _HUGE)),
        language.compare("greater", size, _number(language, 1.0 / _HUGE)),
    )
    return any_of(block.call, block.section, language.unary("logical_not", inside))


def _unless_outside(block: Block, product: Any, pivots: Pivots, made: Any) -> list[Any]:
    """Lanes of the product, or where it is outside of sign and logarithm: ``made(*of_either)``."""
    section, language = block.section, block.call.language
    given = made(product, None, None)
    cells = [block.call.function.slot(x.kind, 64) for x in given]
    for cell, x in zip(cells, given, strict=True):
        section.write(f"store {x.kind} {x.name}, ptr {cell}, align 64")
    with section.when(_outside(block, product)) as t:
        given_pivots, odd = pivots(t)
        _fail_if_denormal(block, t, given_pivots)
        found = made(None, *_signed_logarithm(language, given_pivots, odd))
        for cell, x in zip(cells, found, strict=True):
            t.write(f"store {x.kind} {x.name}, ptr {cell}, align 64")
    return [
        Lane(language, section, section.value(f"load {x.kind}, ptr {cell}, align 64"), F64, x.width)
        for cell, x in zip(cells, given, strict=True)
    ]


def _fail_if_denormal(block: Block, s: Section, pivots: Sequence[Any]) -> None:
    """Leave to LAPACK what has a pivot without a reciprocal."""
    language = block.call.language
    found: Any = None
    for p in pivots[:-1]:
        small = language.binary(
            "logical_and",
            language.compare("less", size_of(language, p), _number(language, _TINY)),
            language.compare("not_equal", p, _number(language, 0.0)),
        )
        found = small if found is None else language.binary("logical_or", found, small)
    if found is not None:
        block.call.fail_if(any_of(block.call, s, found), 1, s)


def _whole(block: Block, product: Any, pivots: Pivots) -> Any:
    language = block.call.language

    def made(value: Any, sign: Any, log: Any) -> list[Any]:
        return [value if sign is None else sign * language.unary("exp", log)]

    return _unless_outside(block, product, pivots, made)[0]


def _logarithm(block: Block, product: Any, pivots: Pivots) -> list[Any]:
    language = block.call.language

    def made(value: Any, sign: Any, log: Any) -> list[Any]:
        if sign is not None:
            return [sign, log]
        one = language.binary("copysign", _number(language, 1.0), value)
        return [one, language.unary("log", size_of(language, value))]

    return _unless_outside(block, product, pivots, made)


def _known(pivots: Sequence[Any], odd: Any) -> Pivots:
    return lambda t: ([moved(t, p) for p in pivots], None if odd is None else moved(t, odd))


def _of_pivots(block: Block, pivots: Sequence[Any], odd: Any) -> Any:
    product = _product(block.call.language, pivots, odd)
    return product if len(pivots) == 1 else _whole(block, product, _known(pivots, odd))


def _logarithm_of_pivots(block: Block, pivots: Sequence[Any], odd: Any) -> Any:
    product = _product(block.call.language, pivots, odd)
    return _logarithm(block, product, _known(pivots, odd))


# ---- by formula ----------------------------------------------------------------------------------


def _minor(s: Language, a: Any, b: Any, c: Any, d: Any) -> Any:
    """a d - b c, to one and a half units in the last place."""
    product = b * c
    lost = s.fma(b, c, -product)
    return s.fma(a, d, -product) - lost


def _cofactors(s: Language, a: Rows) -> Rows:
    """The cofactors of two or three rows."""
    if len(a) == 2:
        return [[a[1][1], -a[1][0]], [-a[0][1], a[0][0]]]
    found = []
    for i in range(3):
        one, two = a[(i + 1) % 3], a[(i + 2) % 3]
        found.append(
            [
                _minor(
                    s, one[j - 2], one[j - 1], two[j - 2], two[j - 1]
                )  # rows and columns go round
                for j in range(3)
            ]
        )
    return found


def _formula(s: Language, a: Rows, cofactors: Rows) -> Any:
    """The determinant."""
    if len(a) == 2:
        return _minor(s, a[0][0], a[0][1], a[1][0], a[1][1])
    value = a[0][0] * cofactors[0][0]
    for x, y in zip(a[0][1:], cofactors[0][1:], strict=True):
        value = s.fma(x, y, value)
    return value


def _again(s: Language, a: Rows) -> Pivots:
    """Pivots, where the formula is not enough."""

    def pivots(t: Section) -> tuple[Sequence[Any], Any]:
        inner = [[moved(t, x) for x in row] for row in a]
        found = eliminated(s, inner, [[] for _ in a])
        return found.pivots, found.odd

    return pivots


# ---- operations ----------------------------------------------------------------------------------


def det(call: Call) -> None:
    """The determinant."""
    (a,), (x,) = call.operands, call.results
    n: Any = a.shape[-1]
    if n > UNROLLED:
        looped_small_matrices.det(call, _of_pivots)
        return

    def write(block: Block) -> None:
        language, given = call.language, rows_of(block, 0, n, n, F64)
        if n in _FORMULA:
            value = _formula(language, given, _cofactors(language, given))
            block.write(1, _whole(block, value, _again(language, given)))
            return
        found = eliminated(language, given, [[] for _ in range(n)])
        block.write(1, _of_pivots(block, found.pivots, found.odd))

    blocks(call, [(a, 2), (x, 0)], F64, write)


def slogdet(call: Call) -> None:
    """Sign and logarithm of the determinant."""
    (a,), (sign, log) = call.operands, call.results
    n: Any = a.shape[-1]
    if n > UNROLLED:
        looped_small_matrices.slogdet(call, _logarithm_of_pivots)
        return

    def write(block: Block) -> None:
        language, given = call.language, rows_of(block, 0, n, n, F64)
        parts = eliminated(language, given, [[] for _ in range(n)])
        found = _logarithm_of_pivots(block, parts.pivots, parts.odd)
        regular = language.compare("not_equal", found[0], _number(language, 0.0))
        block.fail_if(language.binary("logical_and", parts.doubt, regular))
        block.write(1, found[0])
        block.write(2, found[1])

    blocks(call, [(a, 2), (sign, 0), (log, 0)], F64, write)


def det_derivative(call: Call) -> None:
    """The cofactors."""
    (a,), (x,) = call.operands, call.results
    n: Any = x.shape[-1]
    limit = 0.01 / float(np.finfo(x.dtype).eps) / n
    if n > UNROLLED:
        looped_small_matrices.det_derivative(call, _of_pivots, limit)
        return

    def write(block: Block) -> None:
        language = call.language
        given = rows_of(block, 0, n, n, F64)
        if n in _FORMULA:
            found = _cofactors(language, given)
            sizes = [size_of(language, y) for row in found for y in row]
            total = sizes[0]
            for y in sizes[1:]:
                total = total + y
            finite = language.compare("less", total, _number(language, np.inf))
            block.fail_if(language.unary("logical_not", finite))
            write_rows(block, 1, found)
            return
        parts = eliminated(language, given, identity(language, n))
        block.fail_if(parts.doubt)
        inverse = solved(language, parts)
        condition = _one_norm(language, given) * _one_norm(language, inverse)
        sound = language.compare("less", condition, _number(language, limit))
        block.fail_if(language.unary("logical_not", sound))
        scale = _of_pivots(block, parts.pivots, parts.odd)
        write_rows(block, 1, [[scale * inverse[j][i] for j in range(n)] for i in range(n)])

    blocks(call, [(a, 2), (x, 2)], F64, write)


def _one_norm(s: Language, a: Rows) -> Any:
    """The largest sum of sizes in a column; NaN if there is one."""
    most: Any = None
    for j in range(len(a)):
        total: Any = size_of(s, a[0][j])
        for row in a[1:]:
            total = total + size_of(s, row[j])
        most = total if most is None else s.binary("maximum", most, total)
    return most
