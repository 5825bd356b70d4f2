"""Tridiagonalization of batches of small symmetric matrices.

    scaled     scaling by powers of two, so that nothing overflows later, and its inverse
    reduced    diagonal, off-diagonal, and the orthogonal matrix Q with a = Q t Q.T
    lifted     a power of two for numbers so small that their squares underflow

Householder reflections, chosen as in LAPACK's sytd2 and larfg, so that signs are LAPACK's;
off-diagonal elements may be negative.
"""

from __future__ import annotations

from typing import Any

from wengert._engine.core.types import Scalar

from ...ir.ir_builder import Section
from ...ir.llvm_types import F64, I64
from ...ir.scalar_language import Language
from ..batched_matrices import Block
from ..kernel_call import UNROLLED
from ..loop_helpers import in_section
from ..simd_matrix import SimdMatrix, each

SCALED_BELOW, SCALE_FACTOR = 2.0**-500, 2.0**1000  # of numbers that are squared
_MAX_EXPONENT, _MANTISSA_BITS = 2046, 52


def sum_of(s: Language, terms: list[tuple[Any, Any]]) -> Any:
    """The sum of products."""
    total: Any = None
    for x, y in terms:
        total = x * y if total is None else s.fma(x, y, total)
    return total


def largest(s: Language, xs: list[Any]) -> Any:
    """The largest absolute value; NaN if an element is NaN."""
    result: Any = None
    for x in xs:
        size = s.unary("absolute", x)
        result = size if result is None else s.binary("maximum", result, size)
    return result


def lifted(s: Language, size: Any) -> tuple[Any, Any]:
    """The factor for numbers of a given size that are squared, and its inverse."""
    is_small = s.compare("less", size, s.constant(SCALED_BELOW, F64))
    one = s.constant(1.0, F64)
    up = s.select(is_small, s.constant(SCALE_FACTOR, F64), one)
    return up, s.select(is_small, s.constant(1.0 / SCALE_FACTOR, F64), one)


def scaled(block: Block, s: Section, a: SimdMatrix) -> Any:
    """Scale the largest element of each matrix to about one; returns the power of two removed.

    The kernel fails for matrices that are not finite, and LAPACK is called.
    """
    language, n = block.call.language, a.rows
    size = largest(language, [a.get(s, i, j) for i in range(n) for j in range(i + 1)])
    finite = language.unary("isfinite", size)
    bad = block.any_of(s, language.unary("logical_not", finite))
    block.call.fail_if(bad, 1, s)
    exponent = language.bits(size) >> _MANTISSA_BITS
    power = language.constant(_MAX_EXPONENT, I64) - exponent
    power = language.binary("minimum", power, language.constant(_MAX_EXPONENT - 1, I64))
    power = language.binary("maximum", power, language.constant(1, I64))
    factor = language.number(power << _MANTISSA_BITS)
    for t, i in each(s, 0, n, unrolled=n <= UNROLLED):
        for j in range(n):
            a.put(t, a.get(t, i, j) * in_section(t, factor), i, j)
    return language.number((language.constant(_MAX_EXPONENT, I64) - power) << _MANTISSA_BITS)


def reduced(
    block: Block, s: Section, a: SimdMatrix, d: SimdMatrix, e: SimdMatrix, z: SimdMatrix | None
) -> None:
    """Fill d, e and, if needed, z for symmetric matrices, which are overwritten."""
    language, n = block.call.language, a.rows
    v, w = SimdMatrix(block, max(n - 2, 1), n), SimdMatrix(block, n)
    tau: list[Any] = []
    for i in range(n - 2):
        column = [a.get(s, j, i) for j in range(i + 1, n)]
        beta, factor, vector = _reflection(language, column)
        e.put(s, beta, i)
        tau.append(factor)
        for j, x in enumerate(vector, i + 1):
            v.put(s, x, i, j)
        _update(block, s, a, v, w, factor, i)
    for i in range(n):
        d.put(s, a.get(s, i, i), i)
    if n > 1:
        e.put(s, a.get(s, n - 1, n - 2), n - 2)
    if z is None:
        return
    for t, i in each(s, 0, n, unrolled=n <= UNROLLED):
        for j in range(n):
            z.put(t, 0.0, i, j)
        z.put(t, 1.0, i, i)
    for i in reversed(range(n - 2)):
        vector = [v.get(s, i, j) for j in range(i + 1, n)]
        for t, c in each(s, i + 1, n, unrolled=n <= UNROLLED):
            below = [z.get(t, j, c) for j in range(i + 1, n)]
            total = sum_of(language, list(zip(vector, below, strict=True))) * tau[i]
            for j, (x, old) in enumerate(zip(vector, below, strict=True), i + 1):
                z.put(t, language.fma(-total, x, old), j, c)


def _reflection(s: Language, column: list[Any]) -> tuple[Any, Any, list[Any]]:
    """beta, tau and v, whose first element is one: I - tau v v.T takes the column to (beta, 0)."""
    alpha, *rest = column
    size = largest(s, rest)
    up, down = lifted(s, s.binary("maximum", size, s.unary("absolute", alpha)))
    alpha_up, *rest_up = [x * up for x in column]
    norm = s.unary("sqrt", sum_of(s, [(x, x) for x in (alpha_up, *rest_up)]))
    beta = -s.binary("copysign", norm, alpha_up)
    zero, one = s.constant(0.0, F64), s.constant(1.0, F64)
    is_zero = s.compare("equal", size, zero)
    tau = s.select(is_zero, zero, (beta - alpha_up) / beta)
    inverse = s.select(is_zero, zero, 1.0 / (alpha_up - beta))
    return s.select(is_zero, alpha, beta * down), tau, [one, *(x * inverse for x in rest_up)]


def _update(
    block: Block, s: Section, a: SimdMatrix, v: SimdMatrix, w: SimdMatrix, tau: Scalar, i: int
) -> None:
    """Apply a reflection to the remaining matrix from both sides."""
    language, n = block.call.language, a.rows
    vector = [v.get(s, i, j) for j in range(i + 1, n)]
    for t, j in each(s, i + 1, n, unrolled=n <= UNROLLED):
        row = [a.get(t, j, k) for k in range(i + 1, n)]
        w.put(t, sum_of(language, list(zip(row, vector, strict=True))) * in_section(t, tau), j)
    w_values = [w.get(s, j) for j in range(i + 1, n)]
    half = sum_of(language, list(zip(w_values, vector, strict=True))) * tau * -0.5
    w_values = [language.fma(half, x, y) for x, y in zip(vector, w_values, strict=True)]
    for x, j in zip(w_values, range(i + 1, n), strict=True):
        w.put(s, x, j)
    for t, j in each(s, i + 1, n, unrolled=n <= UNROLLED):
        left, other = v.get(t, i, j), w.get(t, j)
        for k, (x, y) in enumerate(zip(vector, w_values, strict=True), i + 1):
            old = a.get(t, j, k)
            a.put(t, language.fma(-left, y, language.fma(-other, x, old)), j, k)
