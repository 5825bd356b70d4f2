"""Determinants of batches of small matrices, their logarithms and cofactors.

    det               for two and three rows the formula, with Kahan's algorithm for a d - b c (the
                      rounding error of one product is subtracted); for more rows the product of
                      the pivots
    slogdet           from the pivots; zeros are those of LAPACK
    det_derivative    the cofactors: for two and three rows by the formula, for singular matrices
                      too; for more rows det(a) inv(a).T, and the kernel fails for nearly singular
                      matrices

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
from ..batched_matrices import Block, SimdMatrix, blocks, each
from ..kernel_call import KernelCall
from ..loop_helpers import in_section
from .small_matrices import Elimination, identity, loaded

_LARGEST_PRODUCT = 1e290  # products up to it, and down to its inverse, are accurate
_SMALLEST_NORMAL = float(np.finfo(np.float64).tiny)
_FORMULA = (2, 3)  # numbers of rows for which the formula is used

Rows = list[list[Any]]  # of lanes
Pivots = Callable[[Section], tuple[Sequence[Any], Any]]  # pivots, and sign of the row exchanges


def _number(s: Language, value: float) -> Lane:
    lane: Lane = s.constant(value, F64)
    return lane


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
    any_zero: Any = None
    total: Any = None
    for p in pivots:
        sign = s.select(s.compare("less", p, zero), -sign, sign)
        is_zero = s.compare("equal", p, zero)
        any_zero = is_zero if any_zero is None else s.binary("logical_or", any_zero, is_zero)
        log = s.unary("log", _absolute(s, p))
        total = log if total is None else total + log
    return s.select(any_zero, zero, sign), s.select(any_zero, _number(s, -np.inf), total)


def _is_out_of_range(block: Block, product: Scalar) -> str:
    """Whether the product in any lane may have overflowed or underflowed, an i1."""
    language, size = block.call.language, _absolute(block.call.language, product)
    in_range = language.binary(
        "logical_and",
        language.compare("less", size, _number(language, _LARGEST_PRODUCT)),
        language.compare("greater", size, _number(language, 1.0 / _LARGEST_PRODUCT)),
    )
    return block.any_of(block.section, language.unary("logical_not", in_range))


def _in_range(
    block: Block, product: Scalar, pivots: Pivots, outputs: Callable[..., Any]
) -> list[Any]:
    """``outputs(product, None, None)``, or ``outputs(None, sign, logarithm)`` if out of range."""
    section, language = block.section, block.call.language
    values = outputs(product, None, None)
    cells = [block.call.function.slot(x.kind, 64) for x in values]
    for cell, x in zip(cells, values, strict=True):
        section.write(f"store {x.kind} {x.name}, ptr {cell}, align 64")
    with section.when(_is_out_of_range(block, product)) as t:
        given_pivots, exchanges = pivots(t)
        _fail_if_denormal(block, t, given_pivots)
        recomputed = outputs(None, *_signed_logarithm(language, given_pivots, exchanges))
        for cell, x in zip(cells, recomputed, strict=True):
            t.write(f"store {x.kind} {x.name}, ptr {cell}, align 64")
    return [
        Lane(language, section, section.value(f"load {x.kind}, ptr {cell}, align 64"), F64, x.width)
        for cell, x in zip(cells, values, strict=True)
    ]


def _fail_if_denormal(block: Block, s: Section, pivots: Sequence[Any]) -> None:
    """Fail if a pivot has no reciprocal: LAPACK then computes the matrices."""
    language = block.call.language
    is_denormal: Any = None
    for p in pivots[:-1]:
        is_small = language.binary(
            "logical_and",
            language.compare("less", _absolute(language, p), _number(language, _SMALLEST_NORMAL)),
            language.compare("not_equal", p, _number(language, 0.0)),
        )
        is_denormal = (
            is_small
            if is_denormal is None
            else language.binary("logical_or", is_denormal, is_small)
        )
    if is_denormal is not None:
        block.fail_if(is_denormal, s)


def _checked_product(block: Block, product: Scalar, pivots: Pivots) -> Any:
    language = block.call.language

    def outputs(value: Scalar | None, sign: Scalar | None, log: Scalar | None) -> list[Any]:
        return [value if sign is None else sign * language.unary("exp", log)]

    return _in_range(block, product, pivots, outputs)[0]


def _checked_logarithm(block: Block, product: Scalar, pivots: Pivots) -> list[Any]:
    language = block.call.language

    def outputs(value: Scalar | None, sign: Scalar | None, log: Scalar | None) -> list[Any]:
        if sign is not None:
            return [sign, log]
        one = language.binary("copysign", _number(language, 1.0), value)
        return [one, language.unary("log", _absolute(language, value))]

    return _in_range(block, product, pivots, outputs)


def _moved_pivots(pivots: Sequence[Any], sign: Scalar) -> Pivots:
    return lambda t: ([in_section(t, p) for p in pivots], in_section(t, sign))


def _of_pivots(block: Block, pivots: Sequence[Any], sign: Scalar) -> Any:
    product = _product(pivots, sign)
    return (
        product
        if len(pivots) == 1
        else _checked_product(block, product, _moved_pivots(pivots, sign))
    )


# ---- by formula ----------------------------------------------------------------------------------


def _minor(s: Language, a: Scalar, b: Scalar, c: Scalar, d: Scalar) -> Any:
    """a d - b c with an error of at most 1.5 ulp."""
    product = b * c
    error = s.fma(b, c, -product)
    return s.fma(a, d, -product) - error


def _cofactors(s: Language, a: Rows) -> Rows:
    """The cofactors of two or three rows."""
    if len(a) == 2:
        return [[a[1][1], -a[1][0]], [-a[0][1], a[0][0]]]
    cofactors = []
    for i in range(3):  # indices are cyclic
        below, above = a[(i + 1) % 3], a[(i + 2) % 3]
        cofactors.append(
            [_minor(s, below[j - 2], below[j - 1], above[j - 2], above[j - 1]) for j in range(3)]
        )
    return cofactors


def _formula(s: Language, a: Rows, cofactors: Rows) -> Any:
    """The determinant."""
    if len(a) == 2:
        return _minor(s, a[0][0], a[0][1], a[1][0], a[1][1])
    value = a[0][0] * cofactors[0][0]
    for x, y in zip(a[0][1:], cofactors[0][1:], strict=True):
        value = s.fma(x, y, value)
    return value


def _eliminated(block: Block, a: SimdMatrix) -> Pivots:
    """The pivots, computed if the result of the formula is out of range."""

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
        language, matrix = call.language, loaded(block, 0, n, n)
        if n in _FORMULA:
            rows = _rows(block, matrix)
            value = _formula(language, rows, _cofactors(language, rows))
            block.write(1, _checked_product(block, value, _eliminated(block, matrix)))
        else:
            block.write(1, _of_pivots(block, *Elimination(block, matrix).diagonal()))

    blocks(call, [(a, 2), (x, 0)], F64, write)


def slogdet(call: KernelCall) -> None:
    """Sign and logarithm of the determinant."""
    (a,), (sign, log) = call.operands, call.results
    n: Any = a.shape[-1]

    def write(block: Block) -> None:
        language = call.language
        elimination = Elimination(block, loaded(block, 0, n, n))
        pivots_and_sign = elimination.diagonal()
        sign_of_det, log_of_det = _checked_logarithm(
            block, _product(*pivots_and_sign), _moved_pivots(*pivots_and_sign)
        )
        elimination.fail_in_doubt(
            language.compare("not_equal", sign_of_det, _number(language, 0.0))
        )
        block.write(1, sign_of_det)
        block.write(2, log_of_det)

    blocks(call, [(a, 2), (sign, 0), (log, 0)], F64, write)


def det_derivative(call: KernelCall) -> None:
    """The cofactors."""
    (a,), (x,) = call.operands, call.results
    n: Any = x.shape[-1]
    limit = 0.01 / float(np.finfo(x.dtype).eps) / n

    def write(block: Block) -> None:
        language, s = call.language, block.section
        matrix = loaded(block, 0, n, n)
        if n in _FORMULA:
            cofactors = _cofactors(language, _rows(block, matrix))
            total: Any = sum(_absolute(language, y) for row in cofactors for y in row)
            is_finite = language.compare("less", total, _number(language, np.inf))
            block.fail_if(language.unary("logical_not", is_finite))
            for i, row in enumerate(cofactors):
                for j, value in enumerate(row):
                    block.write(1, value, i, j)
            return
        norm = _one_norm(block, matrix)
        elimination = Elimination(block, matrix, identity(block, n))
        elimination.fail_in_doubt()
        inverse = elimination.substitute()
        condition = norm * _one_norm(block, inverse)
        is_accurate = language.compare("less", condition, _number(language, limit))
        block.fail_if(language.unary("logical_not", is_accurate))
        scale = _of_pivots(block, *elimination.diagonal())
        for t, i in each(s, 0, n, matrix.unrolled):
            for u, j in each(t, 0, n, matrix.unrolled):
                block.set_element(1, u, in_section(u, scale) * inverse.get(u, j, i), (i, j))

    blocks(call, [(a, 2), (x, 2)], F64, write)


def _one_norm(block: Block, a: SimdMatrix) -> Any:
    """The largest column sum of absolute values; NaN if an element is NaN."""
    s, language = block.section, block.call.language
    largest, total = SimdMatrix(block, 1), SimdMatrix(block, 1)
    largest.put(s, 0.0)
    for t, j in each(s, 0, a.columns, a.unrolled):
        total.put(t, 0.0)
        for u, i in each(t, 0, a.rows, a.unrolled):
            total.put(u, total.get(u) + _absolute(language, a.get(u, i, j)))
        largest.put(t, language.binary("maximum", largest.get(t), total.get(t)))
    return largest.get(s)
