"""Compute polynomial coefficients of wengert/_engine/backends/llvm/vector_math.

Weighted least squares at Chebyshev points (within a factor of two of the best polynomial; see
J.-M. Muller, Elementary Functions, 3rd ed., ch. 3), in mpmath with 90 digits.  The weight makes
errors of the polynomial relative to the function that is computed with it.  Coefficients are
rounded in order; each rounding error is compensated by the coefficients that follow.  Printed are
the error after rounding, as a power of two, and the coefficients, constant term first.

    python docs/generate/leaf_coefficients.py exp64
    python docs/generate/leaf_coefficients.py             # all of them
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from mpmath import mp

mp.dps = 90
Function = Callable[[Any], Any]


def fitted(
    f: Function, weight: Function, low: Any, high: Any, degree: int, dtype: Any
) -> list[Any]:
    """Coefficients, constant term first; after each rounding the remaining ones are refitted."""
    count = 8 * (degree + 2)
    middle, half = (low + high) / 2, (high - low) / 2
    points = [middle - half * mp.cos(mp.pi * (k + 0.5) / count) for k in range(count)]
    weights = [weight(x) for x in points]
    wanted = mp.matrix([w * f(x) for w, x in zip(weights, points, strict=True)])
    weighted = list(zip(weights, points, strict=True))
    powers = mp.matrix([[w * x**j for j in range(degree + 1)] for w, x in weighted])
    found: list[Any] = []
    for j in range(degree + 1):
        rest = powers[:, j:]
        best = mp.lu_solve(rest.T * rest, rest.T * wanted)
        found.append(dtype(float(best[0])))
        wanted -= powers[:, j] * mp.mpf(float(found[-1]))
    return found


def about_zero(f: Function) -> Function:
    """Continue a function that is 0/0 at zero by its value near zero."""
    return lambda x: f(x) if abs(x) > mp.mpf(10) ** -9 else f(mp.mpf(10) ** -9)


LN2, ROOT = mp.log(2) / 2 * (1 + mp.mpf(2) ** -20), mp.sqrt(2) * (1 + mp.mpf(2) ** -18)
LOW, HIGH = 1 / ROOT - 1, ROOT - 1
HALF = mp.mpf(1) / 2 + mp.mpf(2) ** -20
Z = ((ROOT - 1) / (ROOT + 1)) ** 2

EXP = (lambda r: (mp.expm1(r) - r) / r**2, lambda r: r**2 / mp.expm1(r))
EXP2 = (lambda r: (mp.mpf(2) ** r - 1) / r, lambda r: r / mp.mpf(2) ** r)
LOG = (lambda f: (mp.log1p(f) - f + f**2 / 2) / f**3, lambda f: f**3 / mp.log1p(f))
ATANH = (lambda z: (mp.atanh(mp.sqrt(z)) / mp.sqrt(z) - 1 - z / 3) / z**2, lambda z: z**2)
LOG2 = (lambda f: mp.log1p(f) / mp.log(2) / f, lambda f: f / mp.log1p(f))
CBRT = (lambda m: 1 / mp.cbrt(m), mp.cbrt)

# name: function, weight, interval, degree, dtype
JOBS: dict[str, Any] = {
    "exp64": (*EXP, -LN2, LN2, 10, np.float64),
    "exp32": (*EXP, -LN2, LN2, 5, np.float32),
    "exp2_64": (*EXP2, -HALF, HALF, 10, np.float64),
    "exp2_32": (*EXP2, -HALF, HALF, 5, np.float32),
    "log64": (*LOG, LOW, HIGH, 18, np.float64),
    "log32": (*LOG, LOW, HIGH, 8, np.float32),
    "atanh": (*ATANH, mp.mpf(0), Z, 6, np.float64),
    "log2_for_power": (*LOG2, LOW, HIGH, 12, np.float64),
    "exp2_for_power": (*EXP2, -HALF, HALF, 6, np.float64),
    "cbrt": (*CBRT, mp.mpf(1), mp.mpf(2), 4, np.float64),
}


def main(names: list[str]) -> None:
    """Print the polynomials of these names."""
    for name in names or JOBS:
        f, weight, low, high, degree, dtype = JOBS[name]
        f, weight = about_zero(f), about_zero(weight)
        found = fitted(f, weight, low, high, degree, dtype)
        points = [low + (high - low) * k / 2000 for k in range(2001)]
        exact = [mp.mpf(float(c)) for c in found]
        worst = max(abs(weight(x) * (f(x) - mp.polyval(exact[::-1], x))) for x in points)
        error = float(mp.log(worst, 2))
        print(f"{name}: [{float(low):.5f}, {float(high):.5f}], error 2**{error:.1f}")
        for c in found:
            print(f"    {c!s},")


if __name__ == "__main__":
    main(sys.argv[1:])
