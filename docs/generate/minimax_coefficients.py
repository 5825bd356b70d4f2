"""Compute minimax coefficients of the trigonometric and hyperbolic functions.

These are the polynomials in wengert/_engine/backends/llvm/vector_math/trigonometric.py,
hyperbolic.py and their inverses, which minimize the largest relative error for their degree.
They are computed by the Remez exchange algorithm (1934; J.-M. Muller, Elementary Functions, 3rd
ed., sect. 3.5) on a fine grid, in mpmath with 70 digits.  The first coefficients are rounded in
order, and the remaining ones computed again.  Printed are the error after rounding, as a power of
two, and the coefficients, constant term first.  (The coefficients of arctan for float32 in the
package have smaller rounding errors: they were found on another grid.)

    python docs/generate/minimax_coefficients.py sin tan
    python docs/generate/minimax_coefficients.py             # all of them, for both dtypes
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from mpmath import mp

mp.dps = 70
Function = Callable[[Any], Any]
SMALL = mp.mpf(10) ** -20


def exchanged(f: Function, weight: Function, low: Any, high: Any, count: int) -> list[Any]:
    """Coefficients of the minimax polynomial for f with weighted errors."""
    fine = 24 * (count + 1)
    grid = [low + (high - low) * (1 - mp.cos(mp.pi * k / fine)) / 2 for k in range(fine + 1)]
    values, weights = [f(t) for t in grid], [weight(t) for t in grid]
    reference = [max(1, round(k * fine / count)) for k in range(count + 1)]
    best: tuple[Any, list[Any]] = (mp.inf, [])
    for _ in range(40):
        rows = [
            [(grid[i] / high) ** c for c in range(count)] + [(-1) ** r / weights[i]]
            for r, i in enumerate(reference)
        ]
        solved = mp.lu_solve(mp.matrix(rows), mp.matrix([values[i] for i in reference]))
        found = [solved[c] / high**c for c in range(count)]
        errors = [
            w * (v - mp.polyval(found[::-1], t))
            for t, v, w in zip(grid, values, weights, strict=True)
        ]
        best = min(best, (max(map(abs, errors)), found), key=lambda b: b[0])
        extremes: list[int] = []  # the largest error of each interval of one sign
        for i, e in enumerate(errors):
            if not extremes or (errors[extremes[-1]] > 0) != (e > 0):
                extremes.append(i)
            elif abs(e) > abs(errors[extremes[-1]]):
                extremes[-1] = i
        while len(extremes) > count + 1:
            first, last = abs(errors[extremes[0]]), abs(errors[extremes[-1]])
            extremes.pop(0 if first < last else -1)
        if len(extremes) < count + 1 or best[0] < abs(solved[count]) * mp.mpf("1.03"):
            break
        reference = extremes
    return best[1]


def rounded(job: Any, count: int, dtype: Any) -> list[Any]:
    """Minimax coefficients, rounded to a dtype."""
    f, weight, low, high = job
    done: list[Any] = []
    if low < 0:
        return [dtype(float(c)) for c in exchanged(f, weight, low, high, count)]
    for _ in range(2 if dtype is np.float64 else 3):
        power, fixed = len(done), [mp.mpf(float(c)) for c in done]

        def rest(t: Any, power: int = power, fixed: list[Any] = fixed) -> Any:
            return (f(t) - mp.polyval(fixed[::-1], t)) / t**power if power else f(t)

        def of_rest(t: Any, power: int = power) -> Any:
            return weight(t) * t**power

        found = exchanged(rest, of_rest, high * mp.mpf("1e-6"), high, count - power)
        done.append(dtype(float(found[0])))
    return done + [dtype(float(c)) for c in found[1:]]


def odd(f: Function, end: Any) -> tuple[Function, Function, Any, Any]:
    """(f(x) - x) / x**3 as a function of x**2, weight for relative errors, interval."""

    def cubic(t: Any) -> Any:
        x = mp.sqrt(max(t, SMALL))
        return (f(x) - x) / x**3

    return cubic, lambda t: mp.sqrt(t) ** 3 / f(mp.sqrt(t)) if t else mp.zero, mp.zero, end**2


def about_zero(f: Function) -> Function:
    """Continue a function that is 0/0 at zero by its value near zero."""
    return lambda t: f(t) if abs(t) > SMALL else f(SMALL)


WIDER = mp.mpf("1.0005")
LOG2 = mp.log(2) / 2 * WIDER
EXP = about_zero(lambda r: (mp.exp(r) - 1 - r) / r**2)
ARCCOSH = about_zero(lambda t: (mp.acosh(1 + t) / mp.sqrt(2 * t) - 1) / t)
LOG = odd(mp.atanh, mp.sqrt(mp.mpf("0.0409")))

# name: arguments of `exchanged`, numbers of coefficients for float64 and float32
JOBS: dict[str, Any] = {
    "sin": (odd(mp.sin, mp.pi / 2 * WIDER), 8, 4),
    "tan": (odd(mp.tan, mp.pi / 4 * WIDER), 14, 7),
    "arctan": (odd(mp.atan, mp.one), 20, 9),
    "arcsin": (odd(mp.asin, mp.mpf("0.5")), 13, 5),
    "tanh": (odd(mp.tanh, mp.mpf("0.55")), 10, 5),
    "sinh": (odd(mp.sinh, mp.one), 7, 4),
    "exp": ((EXP, lambda r: r**2 + mp.mpf("0.001"), -LOG2, LOG2), 10, 5),
    "arcsinh": (odd(mp.asinh, mp.mpf("0.5212")), 12, 5),
    "arccosh": ((ARCCOSH, lambda t: t, mp.zero, mp.mpf("0.1277")), 8, 4),
    "arctanh": (odd(mp.atanh, mp.mpf("0.5")), 13, 6),
    "log": ((lambda z: 2 * LOG[0](z), lambda z: z, mp.zero, LOG[3]), 7, 3),
}


def main(names: list[str]) -> None:
    """Print the polynomials of these names."""
    for name in names or JOBS:
        job, *counts = JOBS[name]
        f, weight, low, high = job
        for count, dtype in zip(counts, (np.float64, np.float32), strict=True):
            found = rounded(job, count, dtype)
            points = [low + (high - low) * k / 400 for k in range(1, 401)]
            exact = [mp.mpf(float(c)) for c in found]
            worst = max(abs(weight(t) * (f(t) - mp.polyval(exact[::-1], t))) for t in points)
            print(f"{name} {np.dtype(dtype)}: error 2**{float(mp.log(worst, 2)):.1f}")
            for c in found:
                print(f"    {float(c)!r},")


if __name__ == "__main__":
    main(sys.argv[1:])
