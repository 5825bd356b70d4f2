"""Integrals with two parameters: value and gradient.

smooth   exp(-a x^2) cos(b x) from 0 to 3
peak     1 / ((x - b)^2 + a^2) from 0 to 1 with a small a: several hundred evaluations
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from native import libraries
from native.case import Call, Case

TITLE = "Integrals: value and gradient"
TEXT = (
    "`scipy.integrate.quad` of exp(-a x^2) cos(b x) from 0 to 3 (*smooth*), and of "
    "1 / ((x - b)^2 + a^2) from 0 to 1 (*peak*), with the derivatives with respect to a and b, "
    "which are two more integrals. *SciPy, numba*: the three integrands by hand as functions "
    "compiled by `numba.cfunc`, *SciPy*: as functions of Python."
)
PEERS = ("SciPy",)
TARGET = "not slower than SciPy with integrands compiled by numba"


def cases(quick: bool) -> Iterator[Case]:
    """Both; the sizes are the same."""
    del quick
    yield Case("smooth", contestants(smooth(np), SMOOTH, 3.0, (0.7, 2.0)), within=1e-6)
    yield Case("peak", contestants(peak(np), PEAK, 1.0, (0.01, 0.4)), within=1e-6)


def smooth(xp: Any) -> Callable[..., Any]:
    """The first integrand."""
    return lambda x, a, b: xp.exp(-a * x * x) * xp.cos(b * x)


def peak(_xp: Any) -> Callable[..., Any]:
    """The second."""
    return lambda x, a, b: 1.0 / ((x - b) ** 2 + a * a)


SMOOTH: tuple[Callable[..., Any], ...] = (
    lambda x, a, b: math.exp(-a * x * x) * math.cos(b * x),
    lambda x, a, b: -x * x * math.exp(-a * x * x) * math.cos(b * x),
    lambda x, a, b: -x * math.exp(-a * x * x) * math.sin(b * x),
)
PEAK: tuple[Callable[..., Any], ...] = (
    lambda x, a, b: 1.0 / ((x - b) ** 2 + a * a),
    lambda x, a, b: -2.0 * a / ((x - b) ** 2 + a * a) ** 2,
    lambda x, a, b: 2.0 * (x - b) / ((x - b) ** 2 + a * a) ** 2,
)


def contestants(
    integrand: Any, by_hand: tuple[Callable[..., Any], ...], end: float, given: tuple[float, float]
) -> dict[str, Callable[[], Call]]:
    """For an integral from 0."""
    parameters = np.array(given)

    def wengert() -> Call:
        from scipy import integrate

        def value(p: Any) -> Any:
            return integrate.quad(lambda x: integrand(x, p[0], p[1]), 0.0, end, limit=200)[0]

        return libraries.wengert(value, parameters)

    def numba() -> Call:
        return Call(compiled(by_hand, end), (parameters,))

    def scipy() -> Call:
        from scipy import integrate

        def run(p: Any) -> Any:
            args = p[0], p[1]
            value, *slopes = (integrate.quad(f, 0.0, end, args=args, limit=200)[0] for f in by_hand)
            return value, np.array(slopes)

        return Call(run, (parameters,))

    return {"wengert": wengert, "SciPy, numba": numba, "SciPy": scipy}


def compiled(integrands: tuple[Callable[..., Any], ...], end: float) -> Callable[[Any], Any]:
    """Value and gradient by C functions whose parameters are in memory."""
    import ctypes

    from numba import carray, cfunc, njit, types
    from scipy import LowLevelCallable, integrate

    memory = np.zeros(2)

    def c_function(f: Any) -> Any:
        inner = njit(f)

        @cfunc(types.double(types.double, types.CPointer(types.double)))
        def call(x: Any, data: Any) -> Any:
            p = carray(data, (2,))
            return inner(x, p[0], p[1])

        pointer = ctypes.cast(memory.ctypes.data, ctypes.c_void_p)
        return call, LowLevelCallable(call.ctypes, pointer, "double (double, void *)")

    kept = [c_function(f) for f in integrands]

    def run(p: Any) -> Any:
        memory[:] = p
        value, *slopes = (integrate.quad(f, 0.0, end, limit=200)[0] for _, f in kept)
        return value, np.array(slopes)

    return run
