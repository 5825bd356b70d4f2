"""Polynomials: how leaves evaluate them, with fused multiplications and additions.

    polynomial    a sum of powers; even and odd ones apart
    horner        the same in one chain: an instruction less, and no sums that cancel
    Coefficients  their type: a tuple of numbers for each of the two dtypes

Horner's rule twice, in x**2, side by side: the processor waits half as long as for one chain, and
but one multiplication is added, which leaves mostly need anyway.  Cutting further (G. Estrin,
1960) would need more powers, and lanes side by side are bound by the number of instructions.
J.-M. Muller, Elementary Functions, 3rd ed., sect. 5.2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Coefficients = Mapping[int, Sequence[float]]  # for the size of the dtype in bytes


def polynomial(s: Any, x: Any, coefficients: Coefficients | Sequence[float]) -> Any:
    """The sum of c[j] * x**j.

    Parameters
    ----------
    s : Language
    x : Lane
    coefficients : sequence of float, or a mapping to such from the size of the dtype in bytes
        Constant first, at least two.
    """
    if isinstance(coefficients, Mapping):
        coefficients = coefficients[x.dtype.itemsize]
    square = x * x
    even, odd = horner(s, square, coefficients[::2]), horner(s, square, coefficients[1::2])
    return s.fma(x, odd, even)


def horner(s: Any, x: Any, coefficients: Coefficients | Sequence[float]) -> Any:
    """The same, one power after the other.

    For signs that alternate where x is near 1, whose even and odd sums would cancel; and where
    other work fills the time that the chain takes.
    """
    if isinstance(coefficients, Mapping):
        coefficients = coefficients[x.dtype.itemsize]
    total: Any = coefficients[-1]
    for c in coefficients[-2::-1]:
        total = s.fma(x, total, c)
    return total
