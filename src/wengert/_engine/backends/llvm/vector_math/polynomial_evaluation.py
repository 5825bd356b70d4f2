"""Evaluation of polynomials with fused multiply-adds.

    polynomial    even and odd powers in two chains
    horner        one chain: one instruction less, and no sums that cancel
    Coefficients  a tuple of numbers for each of the two dtypes

Horner's rule in x**2, in two parallel chains, has half the latency of one chain, and costs one more
multiplication, which most functions need anyway.  More chains (G. Estrin, 1960) need more powers,
and vector code is limited by the number of instructions.  J.-M. Muller, Elementary Functions, 3rd
ed., sect. 5.2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from wengert._engine.core.types import ScalarLanguage

Coefficients = Mapping[int, Sequence[float]]  # by the size of the dtype in bytes


def polynomial(s: ScalarLanguage, x: Any, coefficients: Coefficients | Sequence[float]) -> Any:
    """The sum of c[j] * x**j.

    Parameters
    ----------
    coefficients : sequence of float, or a mapping to such from the size of the dtype in bytes
        Constant term first, at least two.
    """
    if isinstance(coefficients, Mapping):
        coefficients = coefficients[x.dtype.itemsize]
    square = x * x
    even, odd = horner(s, square, coefficients[::2]), horner(s, square, coefficients[1::2])
    return s.fma(x, odd, even)


def horner(s: ScalarLanguage, x: Any, coefficients: Coefficients | Sequence[float]) -> Any:
    """The same by Horner's rule.

    For coefficients of alternating signs and x near 1, whose even and odd sums would cancel, and
    if the latency of the chain is hidden by other instructions.
    """
    if isinstance(coefficients, Mapping):
        coefficients = coefficients[x.dtype.itemsize]
    total: Any = coefficients[-1]
    for c in coefficients[-2::-1]:
        total = s.fma(x, total, c)
    return total
