"""Polynomials: how leaves evaluate them, with fused multiplications and additions.

    polynomial    a sum of powers, in a tree (Estrin's scheme)
    coefficients  a tuple of numbers for each of the two dtypes

G. Estrin (1960): pairs of terms are joined, then pairs of pairs, ..., so that the processor need
not wait for one fused operation after the other; some powers of x are the price.  J.-M. Muller,
Elementary Functions, 3rd ed., sect. 5.2.
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
    terms: list[Any] = list(coefficients)
    power = x
    while len(terms) > 1:
        pairs = zip(terms[1::2], terms[::2], strict=False)
        joined = [s.fma(power, high, low) for high, low in pairs]
        terms = joined + terms[len(joined) * 2 :]
        if len(terms) > 1:
            power = power * power
    return terms[0]
