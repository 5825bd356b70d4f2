"""The native routine for integrals beside SciPy's QUADPACK, with the same functions of Python."""

import ctypes
import itertools
import math

import numpy as np
import pytest
from scipy.integrate import _quadpack_py

from wengert._engine.backends.llvm.kernels.index import address_of
from wengert._engine.backends.llvm.kernels.quadpack import routine as quadpack
from wengert._engine.backends.llvm.kernels.quadpack import subintervals

INF = math.inf
REAL, COUNT, ADDRESS = ctypes.c_double, ctypes.c_int64, ctypes.c_void_p
TYPES = {"ptr": ADDRESS, "double": REAL, "i64": COUNT}
ARRAY = ctypes.POINTER(REAL)
INTEGRAND = ctypes.CFUNCTYPE(COUNT, ADDRESS, ARRAY, ARRAY)


def native(f, a, b, points=(), limit=50, epsabs=1.49e-8, epsrel=1.49e-8, nodes=24, width=1):
    """Integrals, error, statuses, and evaluations; `f` returns a list if there are several."""

    def call(_, x, values):
        for k in range(nodes):
            for j, y in enumerate(f(x[k]) if width > 1 else [f(x[k])]):
                values[width * k + j] = y
        return 0

    routine = ctypes.CFUNCTYPE(COUNT, *[TYPES[k] for k in quadpack.KINDS])(
        address_of(quadpack.NAME)
    )
    function, given = INTEGRAND(call), np.unique(points).astype(float)
    work = np.zeros(quadpack.work_words(limit, nodes, width))
    value, error = np.zeros(width), np.zeros(1)
    status, count = np.zeros(width, np.int64), np.zeros(1, np.int64)
    results = [x.ctypes.data for x in (work, value, error, status, count)]
    head = ctypes.cast(function, ADDRESS), None, a, b, epsabs, epsrel, limit
    assert routine(*head, given.ctypes.data, given.size, nodes, width, *results) == 0
    return value, error[0], status, count[0]


def by_scipy(f, a, b, points=None, limit=50, epsabs=1.49e-8, epsrel=1.49e-8):
    """The same by SciPy's routine, with its status."""
    low, high = min(a, b), max(a, b)
    out = _quadpack_py._quad(f, low, high, (), 1, epsabs, epsrel, limit, points)
    return math.copysign(1.0, b - a) * out[0], out[1], out[-1], out[2]["neval"]


def guarded(f):
    def value(x):
        try:
            return f(x)
        except (ValueError, ZeroDivisionError, OverflowError):
            return 0.0

    return value


FUNCTIONS = {
    "smooth": lambda x: math.exp(-x * x),
    "polynomial": lambda x: x * (0.7 * x**5 - 1.0),
    "rational": lambda x: 1.0 / (1.0 + 0.7 * x * x),
    "peak": lambda x: 1.0 / ((x - 0.4) ** 2 + 1e-4),
    "kink": lambda x: math.sqrt(abs(x - 0.3)),
    "jump": lambda x: x if x > 0.2 else -0.7,
    "waves": lambda x: math.sin(28.0 * x) * math.exp(-abs(x)),
    "fast waves": lambda x: math.sin(1e5 * x),
    "zero": lambda x: 0.0,
    "constant": lambda x: 0.7,
    "logarithm": lambda x: math.log(abs(x)),
    "inner logarithm": lambda x: math.log(abs(x - 0.5)) * math.cos(x),
    "power": lambda x: abs(x) ** -0.9,
    "pole": lambda x: 1.0 / x,
    "inner root": lambda x: abs(x - 1.0 / 3.0) ** -0.5,
    "slow": lambda x: 1.0 / (1.0 + abs(x)) ** 1.1,
    "divergent": lambda x: math.log(1.0 + abs(x)),
    "noise": lambda x: 1.0 + 1e-9 * math.sin(1e6 * x),
}
LIMITS = [(0.0, 1.0), (1.0, -2.0), (-1.0, 1.0), (-3.0, 1e-9), (1.0, 1e6)]
LIMITS += [(0.0, INF), (INF, 1.0), (-INF, 2.0), (-INF, INF)]
OPTIONS = [
    {},
    {"epsabs": 1e-14, "epsrel": 1e-13},
    {"epsabs": 0.0, "limit": 200},
    *[{"limit": n} for n in (1, 2, 3, 12)],
]


@pytest.mark.sample(6)
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("points", [None, (0.3, 0.5), (0.5, 0.1, 0.1, 0.9, -5.0, 2.0 / 3.0)])
def test_results_counts_and_statuses_are_those_of_scipy(name, points):
    f = guarded(FUNCTIONS[name])
    for (a, b), options in itertools.product(LIMITS, OPTIONS):
        inside = {p for p in points or () if min(a, b) < p < max(a, b)}
        if points and (not math.isfinite(a + b) or len(inside) >= options.get("limit", 50)):
            continue
        value, error, status, count = native(f, a, b, points or (), **options)
        expected = by_scipy(f, a, b, points, **options)
        assert (status[0], count) == expected[2:], (a, b, options)
        close = 1e-14 * (abs(expected[0]) + expected[1])
        np.testing.assert_allclose(value[0], expected[0], rtol=1e-13, atol=close)
        np.testing.assert_allclose(error, expected[1], rtol=1e-4, atol=close)


@pytest.mark.parametrize("nodes", [15, 16, 21, 24])
def test_numbers_of_points_of_a_call(nodes):
    """More than the rule has; the last ones are not used."""
    limits = [(0.0, INF), (-INF, INF)] if nodes < 21 else [(0.0, 1.0), (2.0, INF)]
    for a, b in limits:
        found, expected = (
            native(FUNCTIONS["smooth"], a, b, nodes=nodes),
            by_scipy(FUNCTIONS["smooth"], a, b),
        )
        assert found[3] == expected[3]
        np.testing.assert_allclose(found[0], expected[0], rtol=1e-14)


def test_elements_of_a_vector():
    """Each ends where it would alone."""
    names = ["smooth", "kink", "jump", "constant"]
    for a, b, points in ((0.0, 1.0, ()), (1.0, 0.0, (0.3,)), (0.0, INF, ())):
        several = [guarded(FUNCTIONS[n]) for n in (names if b < INF else ["smooth", "rational"])]
        found = native(lambda x, fs=several: [f(x) for f in fs], a, b, points, width=len(several))
        alone = [native(f, a, b, points) for f in several]
        np.testing.assert_array_equal(found[0], [x[0][0] for x in alone])
        np.testing.assert_array_equal(found[2], [x[2][0] for x in alone])
        assert found[1] == max(x[1] for x in alone)
        assert found[3] == sum(x[3] for x in alone)


def test_refused_limits():
    for a, b, points in ((1.0, 1.0, ()), (math.nan, 1.0, ()), (0.0, INF, (1.0,))):
        assert native(lambda x: x, a, b, points)[2] == quadpack.REFUSED
    assert native(lambda x: x, 0.0, 1.0, (0.2, 0.4), limit=2)[2] == quadpack.REFUSED


def test_nodes_and_weights():
    for rule, exact_gauss in ((subintervals.RULE_21, 20), (subintervals.RULE_15, 14)):
        nodes, half = np.array(rule.all_nodes()), len(rule.nodes)
        kronrod = np.array([*rule.kronrod, *rule.kronrod[-2::-1]])
        gauss = np.zeros(rule.points)
        gauss[1::2] = [*rule.gauss, *rule.gauss[: half // 2][::-1]]
        for power in range(0, 23, 2):
            exact = 2.0 / (power + 1.0)
            np.testing.assert_allclose(kronrod @ nodes**power, exact, rtol=1e-14)
            if power < exact_gauss:
                np.testing.assert_allclose(gauss @ nodes**power, exact, rtol=1e-14)
