"""Determinants of batches of small matrices, their logarithms and cofactors.

    det               for two and three rows the formula, with products of two rounded once
                      (W. Kahan: the rounding error of one is added to the other); for more rows
                      the product of pivots
    slogdet           by pivots, whose zeros are LAPACK's
    det_derivative    the cofactors: for two and three rows by the formula, also of singular
                      matrices; for more det(a) inv(a).T, and nearly singular matrices are left to
                      the interpreter

A product that overflows or underflows is recomputed from the logarithms of the pivots.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wengert._engine.core.types import Scalar

from ...ir.ir_builder import Section
from ...ir.llvm_types import F64
from ...ir.scalar_language import Language
from ...ir.simd_value import Lane
from ..batched_matrices import Block, blocks
from ..kernel_call import KernelCall
from ..loop_helpers import moved
from ..simd_matrix import SimdMatrix, each
from .small_matrices import Elimination, identity, loaded

_LARGEST_PRODUCT = 1e290  # products between its inverse and it have lost nothing
_SMALLEST_NORMAL = float(np.finfo(np.float64).tiny)
_FORMULA = (2, 3)  # rows

Rows = list[list[Any]]  # of lanes
Pivots = Callable[[Section], tuple[Sequence[Any], Any]]  # also the sign of the row exchanges


def _number(s: Language, value: float) -> Lane:
    found: Lane = s.constant(value, F64)
    return found


def _absolute(s: Language, x: Any) -> Any:
    return s.unary("absolute", x)


# ---- by pivots -----------------------------------------------------------------------------------


def _product(pivots: Sequence[Any], sign: Scalar) -> Any:
    product = sign
    for p in pivots:
        product = product * p
    return product


def _signed_logarithm(s: Language, pivots: Sequence[Any], sign: Any) -> tuple[Any, Any]:
    """Sign and logarithm of the product of the pivots: 0 and -inf if one of them is zero."""
    zero = _number(s, 0.0)
    nothing: Any = None
    total: Any = None
    for p in pivots:
        sign = s.select(s.compare("less", p, zero), -sign, sign)
        none = s.compare("equal", p, zero)
        nothing = none if nothing is None else s.binary("logical_or", nothing, none)
        log = s.unary("log", _absolute(s, p))
        total = log if total is None else total + log
    return s.select(nothing, zero, sign), s.select(nothing, _number(s, -np.inf), total)


def _outside(block: Block, product: Scalar) -> str:
    """Whether some product may have overflowed or underflowed, an i1."""
    language, size = block.call.language, _absolute(block.call.language, product)
    inside = language.binary(
        "logical_and",
        language.compare("less", size, _number(language, _LARGEST_PRODUCT)),
        language.compare("greater", size, _number(language, 1.0 / _LARGEST_PRODUCT)),
    )
    return block.any_of(block.section, language.unary("logical_not", inside))


def _unless_outside(
    block: Block, product: Scalar, pivots: Pivots, made: Callable[..., Any]
) -> list[Any]:
    """The product, or sign and logarithm if it is out of range: ``made(*of_either)``, in lanes."""
    section, language = block.section, block.call.language
    given = made(product, None, None)
    cells = [block.call.function.slot(x.kind, 64) for x in given]
    for cell, x in zip(cells, given, strict=True):
        section.write(f"store {x.kind} {x.name}, ptr {cell}, align 64")
    with section.when(_outside(block, product)) as t:
        given_pivots, exchanges = pivots(t)
        _fail_if_denormal(block, t, given_pivots)
        found = made(None, *_signed_logarithm(language, given_pivots, exchanges))
        for cell, x in zip(cells, found, strict=True):
            t.write(f"store {x.kind} {x.name}, ptr {cell}, align 64")
    return [
        Lane(language, section, section.value(f"load {x.kind}, ptr {cell}, align 64"), F64, x.width)
        for cell, x in zip(cells, given, strict=True)
    ]


def _fail_if_denormal(block: Block, s: Section, pivots: Sequence[Any]) -> None:
    """Leave matrices with a pivot that has no reciprocal to LAPACK."""
    language = block.call.language
    found: Any = None
    for p in pivots[:-1]:
        small = language.binary(
            "logical_and",
            language.compare("less", _absolute(language, p), _number(language, _SMALLEST_NORMAL)),
            language.compare("not_equal", p, _number(language, 0.0)),
        )
        found = small if found is None else language.binary("logical_or", found, small)
    if found is not None:
        block.fail_if(found, s)


def _whole(block: Block, product: Scalar, pivots: Pivots) -> Any:
    language = block.call.language

    def made(value: Scalar | None, sign: Scalar | None, log: Scalar | None) -> list[Any]:
        return [value if sign is None else sign * language.unary("exp", log)]

    return _unless_outside(block, product, pivots, made)[0]


def _logarithm(block: Block, product: Scalar, pivots: Pivots) -> list[Any]:
    language = block.call.language

    def made(value: Scalar | None, sign: Scalar | None, log: Scalar | None) -> list[Any]:
        if sign is not None:
            return [sign, log]
        one = language.binary("copysign", _number(language, 1.0), value)
        return [one, language.unary("log", _absolute(language, value))]

    return _unless_outside(block, product, pivots, made)


def _known(pivots: Sequence[Any], sign: Scalar) -> Pivots:
    return lambda t: ([moved(t, p) for p in pivots], moved(t, sign))


def _of_pivots(block: Block, pivots: Sequence[Any], sign: Scalar) -> Any:
    product = _product(pivots, sign)
    return product if len(pivots) == 1 else _whole(block, product, _known(pivots, sign))


# ---- by formula ----------------------------------------------------------------------------------


def _minor(s: Language, a: Scalar, b: Scalar, c: Scalar, d: Scalar) -> Any:
    """a d - b c with an error of at most 1.5 ulp."""
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


def _eliminated(block: Block, a: SimdMatrix) -> Pivots:
    """Pivots, where the formula is not accurate enough."""

    def pivots(t: Section) -> tuple[Sequence[Any], Any]:
        return Elimination(block, a, section=t).diagonal()

    return pivots


def _rows(block: Block, a: SimdMatrix) -> Rows:
    return [[a.get(block.section, i, j) for j in range(a.columns)] for i in range(a.rows)]


# ---- operations ----------------------------------------------------------------------------------


def det(call: KernelCall) -> None:
    """The determinant."""
    (a,), (x,) = call.operands, call.results
    n: Any = a.shape[-1]

    def write(block: Block) -> None:
        language, given = call.language, loaded(block, 0, n, n)
        if n in _FORMULA:
            rows = _rows(block, given)
            value = _formula(language, rows, _cofactors(language, rows))
            block.write(1, _whole(block, value, _eliminated(block, given)))
        else:
            block.write(1, _of_pivots(block, *Elimination(block, given).diagonal()))

    blocks(call, [(a, 2), (x, 0)], F64, write)


def slogdet(call: KernelCall) -> None:
    """Sign and logarithm of the determinant."""
    (a,), (sign, log) = call.operands, call.results
    n: Any = a.shape[-1]

    def write(block: Block) -> None:
        language = call.language
        found = Elimination(block, loaded(block, 0, n, n))
        factors = found.diagonal()
        direction, size = _logarithm(block, _product(*factors), _known(*factors))
        found.fail_in_doubt(language.compare("not_equal", direction, _number(language, 0.0)))
        block.write(1, direction)
        block.write(2, size)

    blocks(call, [(a, 2), (sign, 0), (log, 0)], F64, write)


def det_derivative(call: KernelCall) -> None:
    """The cofactors."""
    (a,), (x,) = call.operands, call.results
    n: Any = x.shape[-1]
    limit = 0.01 / float(np.finfo(x.dtype).eps) / n

    def write(block: Block) -> None:
        language, s = call.language, block.section
        given = loaded(block, 0, n, n)
        if n in _FORMULA:
            found = _cofactors(language, _rows(block, given))
            total: Any = sum(_absolute(language, y) for row in found for y in row)
            finite = language.compare("less", total, _number(language, np.inf))
            block.fail_if(language.unary("logical_not", finite))
            for i, row in enumerate(found):
                for j, value in enumerate(row):
                    block.write(1, value, i, j)
            return
        before = _one_norm(block, given)
        parts = Elimination(block, given, identity(block, n))
        parts.fail_in_doubt()
        inverse = parts.substitute()
        condition = before * _one_norm(block, inverse)
        sound = language.compare("less", condition, _number(language, limit))
        block.fail_if(language.unary("logical_not", sound))
        scale = _of_pivots(block, *parts.diagonal())
        for t, i in each(s, 0, n, given.unrolled):
            for u, j in each(t, 0, n, given.unrolled):
                block.set_element(1, u, moved(u, scale) * inverse.get(u, j, i), (i, j))

    blocks(call, [(a, 2), (x, 2)], F64, write)


def _one_norm(block: Block, a: SimdMatrix) -> Any:
    """The largest sum of absolute values in a column; NaN if there is one."""
    s, language = block.section, block.call.language
    largest, total = SimdMatrix(block, 1), SimdMatrix(block, 1)
    largest.put(s, 0.0)
    for t, j in each(s, 0, a.columns, a.unrolled):
        total.put(t, 0.0)
        for u, i in each(t, 0, a.rows, a.unrolled):
            total.put(u, total.get(u) + _absolute(language, a.get(u, i, j)))
        largest.put(t, language.binary("maximum", largest.get(t), total.get(t)))
    return largest.get(s)
