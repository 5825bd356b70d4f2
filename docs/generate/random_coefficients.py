"""Compute the numbers of _engine/ops/random/tail_functions.py: tables and coefficients.

    python docs/generate/random_coefficients.py           # the coefficients, printed
    python docs/generate/random_coefficients.py tables    # writes both tables, in half a minute

A binade [2**-k, 2**(1 - k)) of tail probabilities v is divided into 16 rows.  In a row the normal
quantile of the upper tail is a polynomial of d = (right end) - v, of degree 8 for float64 and 3 for
float32: interpolation at Chebyshev points, relative to d in the last row before 1/2.  Rows are
stored in the order of the lowest bits of the exponent, the highest power first.

Coefficients have only the bits that count: each is rounded to a hundredth of a unit in the last
place of the constant term (2**-7) at the left end of the row.  In the files the bytes of equal
position are together, so that the zeros and the exponents are compressed: 43 KB in a wheel, not 72.

A sum rounded at the left end of a row may exceed the first number of the row before by a unit in
the last place.  There, the coefficient of d is made smaller, so that the function is monotone.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import scipy.special
from leaf_coefficients import fitted
from mpmath import mp

mp.dps = 40
ROWS = 16
FOLDER = Path(__file__).parents[2] / "src/wengert/_engine/ops/random"
# dtype: the binades below 1/2, and the degree
FORMATS = {np.float64: (63, 8), np.float32: (31, 3)}
NIL = mp.mpf(10) ** -16


def quantile(v: Any) -> Any:
    """The number above which a standard normal number is with probability v."""
    x = mp.mpf(-float(scipy.special.ndtri(float(v))))
    for _ in range(3):  # Halley's method
        density = mp.exp(-x * x / 2) / mp.sqrt(2 * mp.pi)
        step = (mp.erfc(x / mp.sqrt(2)) / 2 - v) / density
        x = x + step / (1 + x * step / 2)
    return x


def polynomial(right: Any, width: Any, degree: int) -> list[Any]:
    """The coefficients of powers of d = right - v, constant term first."""
    central = right == mp.mpf(1) / 2  # where the quantile is 0
    count = degree + (not central)
    points = [(1 + mp.cos(mp.pi * (2 * j + 1) / (2 * count))) / 2 for j in range(count)]
    values = [quantile(right - width * u) for u in points]
    if central:
        values = [y / (width * u) for u, y in zip(points, values, strict=True)]
    powers = mp.matrix([[u**k for k in range(count)] for u in points])
    found = [c / width**k for k, c in enumerate(mp.lu_solve(powers, mp.matrix(values)))]
    return [mp.mpf(0), *found] if central else found


def evaluated(row: Any, d: Any) -> Any:
    """Horner's rule, each operation rounded."""
    total = row[-1]
    for c in row[-2::-1]:
        total = c + d * total
    return total


def places(row: Any, width: float, dtype: Any) -> Any:
    """The last place to which each coefficient is rounded, at least a unit in its own last place.

    The last row before 1/2, whose constant term is 0, is not rounded.
    """
    last = np.spacing(row)
    if row[0] != 0:
        wanted = float(np.spacing(row[0])) * 2.0**-7 / width ** np.arange(len(row))
        last = np.maximum(last, wanted.astype(dtype))
        last[0] = np.spacing(row[0])
    return last


def table(dtype: Any) -> Any:
    """The rows of all binades, those of 1/2 and above zero."""
    binades, degree = FORMATS[dtype]
    rows = np.zeros(((binades + 1) * ROWS, degree + 1), dtype)
    limit = None  # the first number of the row on the left
    for k in range(binades + 1, 1, -1):
        for j in range(ROWS):
            width = mp.mpf(2) ** -k / ROWS
            right = mp.mpf(2) ** -k + (j + 1) * width
            row = np.array([dtype(float(c)) for c in polynomial(right, width, degree)], dtype)
            last = places(row, float(width), dtype)
            row = np.rint(row / last) * last
            while limit is not None and evaluated(row, dtype(float(width))) > limit:
                row[1] -= last[1]
            rows[(-1 - k) % (binades + 1) * ROWS + j] = row
            limit = row[0]
    return rows[:, ::-1]


def atanh_rest(z: Any) -> Any:
    """(log((1 + t) / (1 - t)) - 2 t) / (t z) as a function of z = t*t."""
    t = mp.sqrt(max(z, NIL))
    return (2 * mp.atanh(t) - 2 * t) / t**3


def sine(w: Any) -> Any:
    """(pi - sin(pi z) / z) / w as a function of w = z*z."""
    w = max(w, NIL)
    z = mp.sqrt(w)
    return (mp.pi - mp.sin(mp.pi * z) / z) / w


def cosine(w: Any) -> Any:
    """(1 - cos(pi z)) / w as a function of w = z*z."""
    w = max(w, NIL)
    return (1 - mp.cos(mp.pi * mp.sqrt(w))) / w


SQUARE = (mp.sqrt(2) - 1) ** 4 * (1 + mp.mpf(2) ** -16)  # of the largest t
QUARTER = mp.mpf(1) / 16
LOG = (atanh_rest, lambda z: z, 0 * QUARTER, SQUARE)
SINE = (sine, lambda w: w / 3, 0 * QUARTER, QUARTER)
COSINE = (cosine, lambda w: w, 0 * QUARTER, QUARTER)
# name: function, weight, interval, degree, dtype
JOBS: dict[str, Any] = {
    "log64": (*LOG, 6, np.float64),
    "log32": (*LOG, 2, np.float32),
    "sine64": (*SINE, 6, np.float64),
    "sine32": (*SINE, 2, np.float32),
    "cosine64": (*COSINE, 6, np.float64),
    "cosine32": (*COSINE, 3, np.float32),
}


def main(names: list[str]) -> None:
    """Print the coefficients, or write the tables."""
    if names == ["tables"]:
        for dtype in FORMATS:
            name = np.dtype(dtype).name
            columns = np.ascontiguousarray(table(dtype).T).astype(np.dtype(dtype).newbyteorder("<"))
            parts = columns[..., None].view(np.uint8).transpose(0, 2, 1)
            np.save(FOLDER / f"normal_quantile_{name}.npy", np.ascontiguousarray(parts))
        return
    for name in names or JOBS:
        f, weight, low, high, degree, dtype = JOBS[name]
        found = fitted(f, weight, low, high, degree, dtype)
        points = [low + (high - low) * k / 500 for k in range(501)]
        exact = [mp.mpf(float(c)) for c in found]
        worst = max(abs(weight(x) * (f(x) - mp.polyval(exact[::-1], x))) for x in points)
        print(f"{name}: error 2**{float(mp.log(worst, 2)):.1f}")
        print("    " + ", ".join(map(str, found)))


if __name__ == "__main__":
    main(sys.argv[1:])
