"""Compute the polynomial coefficients of erf, erfc, gamma, gammaln and the normal quantile.

The functions are in wengert/_engine/backends/llvm/vector_math: erf_and_gamma.py and
exponential.py; the fit is that of leaf_coefficients.py in this folder.

    python docs/generate/special_coefficients.py erf_tail64
    python docs/generate/special_coefficients.py            # all of them
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import scipy.special
from leaf_coefficients import fitted
from mpmath import mp

mp.dps = 60
ONE, NIL = mp.mpf(1), mp.mpf(10) ** -20


def scaled_erfc(x: Any) -> Any:
    """exp(x*x) erfc(x)."""
    return mp.exp(x * x) * mp.erfc(x)


def erf_near(z: Any) -> Any:
    """erf(x) / x - 1 as a function of z = x*x."""
    x = mp.sqrt(max(z, NIL))
    return mp.erf(x) / x - 1


def erf_tail(middle: Any, half: Any) -> tuple[Any, Any]:
    """exp(x*x) erfc(x) as a function of (x - middle) / half, and the weight for errors of erfc."""
    return (
        lambda u: scaled_erfc(middle + half * u),
        lambda u: mp.exp(-((middle + half * u) ** 2)),
    )


def erfc_tail(c: Any) -> tuple[Any, Any]:
    """(x + c) exp(x*x) erfc(x) as a function of t = (x - c) / (x + c); weight: relative errors."""

    def f(t: Any) -> Any:
        x = c * (1 + t) / (1 - t)
        return (x + c) * scaled_erfc(x)

    return f, lambda t: 1 / f(t)


def mapped(x: Any, c: Any) -> Any:
    """t = (x - c) / (x + c)."""
    return (mp.mpf(x) - c) / (mp.mpf(x) + c)


def log_gamma_two(t: Any) -> Any:
    """log gamma(2 + t) / (t (1 + t))."""
    t = t if abs(t) > NIL else NIL
    return mp.loggamma(2 + t) / (t * (1 + t))


def stirling(z: Any) -> Any:
    """x times the remainder of Stirling's formula (DLMF 5.11.1), as a function of z = 1/x**2."""
    x = 1 / mp.sqrt(max(z, mp.mpf(10) ** -24))
    return x * (mp.loggamma(x) - (x - ONE / 2) * mp.log(x) + x - mp.log(2 * mp.pi) / 2)


def softened(e: Any) -> Any:
    """log1p(e) / e."""
    return mp.log1p(e) / e if e > NIL else ONE


def upper_quantile(log_v: Any) -> Any:
    """The number above which a standard normal number is with a probability."""
    x = mp.mpf(-float(scipy.special.ndtri_exp(float(log_v))))
    for _ in range(3):  # Halley's method
        density = mp.exp(-x * x / 2) / mp.sqrt(2 * mp.pi)
        step = (mp.erfc(x / mp.sqrt(2)) / 2 - mp.exp(log_v)) / density
        x = x + step / (1 + x * step / 2)
    return x


def normal_near(u: Any) -> Any:
    """The quantile of p divided by q = p - 1/2, as a function of u = 2 (q / 0.4)**2 - 1."""
    q = mp.sqrt(max((1 + u) / 2, NIL)) * 4 / 10
    return upper_quantile(mp.log(ONE / 2 - q)) / q


def normal_tail(low: Any, high: Any) -> tuple[Any, Any]:
    """The quantile of the tail v minus t = sqrt(-2 log v), scaled to [-1, 1]."""

    def quantile(u: Any) -> tuple[Any, Any]:
        t = ((low + high) + (high - low) * u) / 2
        return upper_quantile(-t * t / 2), t

    return lambda u: mp.fsub(*quantile(u)), lambda u: 1 / quantile(u)[0]


ERF = erf_near, lambda z: 1 / (1 + erf_near(z))
SOFT = (lambda u: softened((1 + u) / 2), lambda u: ONE)
LOG_GAMMA = log_gamma_two, lambda t: 1 / log_gamma_two(t)
HALF = ONE / 2
C64, C32 = mp.mpf(4.125), mp.mpf(2.875)
# name: function, weight, interval, degree, dtype
JOBS: dict[str, Any] = {
    "erf_near64": (*ERF, 0 * ONE, ONE, 12, np.float64),
    "erf_near32": (*ERF, 0 * ONE, ONE, 6, np.float32),
    "erf_tail64": (*erf_tail(ONE * 3.5, ONE * 2.5), -ONE, ONE, 21, np.float64),
    "erf_tail32": (*erf_tail(ONE * 2.5, ONE * 1.5), -ONE, ONE, 8, np.float32),
    "erfc_near64": (*ERF, 0 * ONE, ONE / 4, 8, np.float64),
    "erfc_near32": (*ERF, 0 * ONE, ONE / 4, 4, np.float32),
    "erfc_tail64": (*erfc_tail(C64), mapped(0.5, C64), mapped(28, C64), 20, np.float64),
    "erfc_tail32": (*erfc_tail(C32), mapped(0.5, C32), mapped(10.2, C32), 9, np.float32),
    "log_gamma_two": (*LOG_GAMMA, -3 * ONE / 4, HALF, 21, np.float64),
    "gamma_two": (lambda t: mp.gamma(2 + t), lambda t: ONE, -HALF, HALF, 19, np.float64),
    "stirling": (stirling, lambda z: ONE, 0 * ONE, 1 / mp.mpf(8.5) ** 2, 6, np.float64),
    "softened64": (*SOFT, -ONE, ONE, 20, np.float64),
    "softened32": (*SOFT, -ONE, ONE, 9, np.float32),
    "normal_near": (normal_near, lambda u: 1 / normal_near(u), -ONE, ONE, 24, np.float64),
    "normal_tail1": (*normal_tail(ONE * 2.125, ONE * 4), -ONE, ONE, 18, np.float64),
    "normal_tail2": (*normal_tail(ONE * 4, ONE * 7), -ONE, ONE, 16, np.float64),
    "normal_tail3": (*normal_tail(ONE * 7, ONE * 14), -ONE, ONE, 18, np.float64),
    "normal_tail4": (*normal_tail(ONE * 14, ONE * 38.75), -ONE, ONE, 22, np.float64),
}


def main(names: list[str]) -> None:
    """Print the polynomials of these names."""
    for name in names or JOBS:
        f, weight, low, high, degree, dtype = JOBS[name]
        found = fitted(f, weight, low, high, degree, dtype)
        points = [low + (high - low) * k / 1000 for k in range(1001)]
        exact = [mp.mpf(float(c)) for c in found]
        worst = max(abs(weight(x) * (f(x) - mp.polyval(exact[::-1], x))) for x in points)
        print(
            f"{name}: [{float(low):.5f}, {float(high):.5f}], error 2**{float(mp.log(worst, 2)):.1f}"
        )
        for c in found:
            print(f"    {c!s},")


if __name__ == "__main__":
    main(sys.argv[1:])
