"""Integrals with two parameters: value and gradient.

smooth     exp(-a x^2) cos(b x) from 0 to 3
peak       1 / ((x - b)^2 + a^2) from 0 to 1 with a small a: several hundred evaluations
half line  exp(-a x) cos(b x) from 0 to infinity
double     exp(-a x y) sqrt(x + b y) for 0 < y < x < 1: an integral of an integral
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from native import libraries
from native.case import Call, Case

TITLE = "Integrals: value and gradient"
TEXT = (
    "`scipy.integrate.quad` of exp(-a x^2) cos(b x) from 0 to 3 (*smooth*), of "
    "1 / ((x - b)^2 + a^2) from 0 to 1 (*peak*) and of exp(-a x) cos(b x) from 0 to infinity "
    "(*half line*), and `dblquad` of exp(-a x y) sqrt(x + b y) for 0 < y < x < 1 (*double*), with "
    "the derivatives with respect to a and b, which are two more integrals. *SciPy, numba*: the "
    "three integrands by hand as functions compiled by `numba.cfunc`, *SciPy*: as functions of "
    "Python. In *double* numba's inner integrals are SciPy's too, called for each outer point."
)
PEERS = ("SciPy",)
TARGET = "faster than SciPy with integrands compiled by numba"


def cases(quick: bool) -> Iterator[Case]:
    """All; the sizes are the same."""
    del quick
    for case in INTEGRALS:
        yield Case(case.name, contestants(case), within=1e-6)


class Integral(NamedTuple):
    """An integral from 0.

    integrand : of the last arguments a and b, for NumPy.
    by_hand : the same and both derivatives, for plain numbers.
    end : the upper limit of x.
    given : a and b.
    is_double : whether the first argument is y, between 0 and x.
    """

    name: str
    integrand: Callable[..., Any]
    by_hand: tuple[Callable[..., Any], ...]
    end: float
    given: tuple[float, float]
    is_double: bool = False


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
HALF_LINE: tuple[Callable[..., Any], ...] = (
    lambda x, a, b: math.exp(-a * x) * math.cos(b * x),
    lambda x, a, b: -x * math.exp(-a * x) * math.cos(b * x),
    lambda x, a, b: -x * math.exp(-a * x) * math.sin(b * x),
)
DOUBLE: tuple[Callable[..., Any], ...] = (
    lambda y, x, a, b: math.exp(-a * x * y) * math.sqrt(x + b * y),
    lambda y, x, a, b: -x * y * math.exp(-a * x * y) * math.sqrt(x + b * y),
    lambda y, x, a, b: 0.5 * y * math.exp(-a * x * y) / math.sqrt(x + b * y),
)
INTEGRALS = (
    Integral("smooth", lambda x, a, b: np.exp(-a * x * x) * np.cos(b * x), SMOOTH, 3.0, (0.7, 2.0)),
    Integral("peak", lambda x, a, b: 1.0 / ((x - b) ** 2 + a * a), PEAK, 1.0, (0.01, 0.4)),
    Integral(
        "half line", lambda x, a, b: np.exp(-a * x) * np.cos(b * x), HALF_LINE, math.inf, (0.7, 2.0)
    ),
    Integral(
        "double",
        lambda y, x, a, b: np.exp(-a * x * y) * np.sqrt(x + b * y),
        DOUBLE,
        1.0,
        (0.7, 0.4),
        True,
    ),
)


def contestants(case: Integral) -> dict[str, Callable[[], Call]]:
    """The functions that compute value and gradient."""
    parameters = np.array(case.given)

    def wengert() -> Call:
        def value(p: Any) -> Any:
            return _integral(case, lambda *xs: case.integrand(*xs, p[0], p[1]))

        return libraries.wengert(value, parameters)

    def numba() -> Call:
        return Call(compiled(case), (parameters,))

    def scipy() -> Call:
        def run(p: Any) -> Any:
            args = p[0], p[1]
            value, *slopes = (_integral(case, f, args) for f in case.by_hand)
            return value, np.array(slopes)

        return Call(run, (parameters,))

    return {"wengert": wengert, "SciPy, numba": numba, "SciPy": scipy}


def _integral(case: Integral, f: Any, args: tuple[Any, ...] = ()) -> Any:
    from scipy import integrate

    if case.is_double:
        return integrate.dblquad(f, 0.0, case.end, 0.0, lambda x: x, args)[0]
    return integrate.quad(f, 0.0, case.end, args, limit=200)[0]


def compiled(case: Integral) -> Callable[[Any], Any]:
    """Value and gradient by C functions whose parameters are in memory."""
    import ctypes

    from numba import carray, cfunc, njit, types
    from scipy import LowLevelCallable

    memory = np.zeros(2)
    pointer = ctypes.cast(memory.ctypes.data, ctypes.c_void_p)

    def of_number(f: Any) -> Any:
        inner = njit(f)

        @cfunc(types.double(types.double, types.CPointer(types.double)))
        def call(x: Any, data: Any) -> Any:
            p = carray(data, (2,))
            return inner(x, p[0], p[1])

        return call, LowLevelCallable(call.ctypes, pointer, "double (double, void *)")

    def of_two(f: Any) -> Any:
        inner = njit(f)

        @cfunc(types.double(types.intc, types.CPointer(types.double), types.CPointer(types.double)))
        def call(n: Any, xs: Any, data: Any) -> Any:
            x, p = carray(xs, (2,)), carray(data, (2,))
            return inner(x[0], x[1], p[0], p[1])

        return call, LowLevelCallable(call.ctypes, pointer, "double (int, double *, void *)")

    kept = [(of_two if case.is_double else of_number)(f) for f in case.by_hand]

    def run(p: Any) -> Any:
        memory[:] = p
        value, *slopes = (_integral(case, f) for _, f in kept)
        return value, np.array(slopes)

    return run
