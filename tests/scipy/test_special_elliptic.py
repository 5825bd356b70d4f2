"""Elliptic integrals and functions, the arithmetic-geometric mean: derivatives against mpmath."""

import mpmath as mp
import numpy as np
import pytest

import wengert as wg
import wengert.scipy.special as sp
from wengert.testing import check_grads

PARAMETERS = [0.3, 0.999, 1e-9, 0.0, -2.0, -1e3, 0.5]
ANGLES = [
    (0.3, 0.5),
    (1.5, 0.9),
    (-1.2, 0.3),
    (4, 0.5),
    (10, -2),
    (0.3, 0),
    (1e-3, 0.2),
    (-8, 0.99),
]
PHASES = [(0.3, 0.5), (1.5, 0.9), (-1.2, 0.3), (4, 0.5), (0.3, 1e-3), (-8, 0.99), (3, 0.999)]
MEANS = [(1, 1), (2, 3), (1e-5, 1), (5, 5), (1e200, 2e200), (3, 1e-60)]
THREE = [(0.3, 0.5, 2), (1, 1, 1), (1e-3, 5, 100), (2, 2, 1e-6), (1e5, 1e-5, 1)]
FOUR = [(*t, p) for t, p in zip(THREE, (1, 1, 0.01, 30, 2), strict=True)]
TWO = [(1, 1), (0.3, 2), (5, 1e-4), (1e-4, 5), (2, 2.0001)]


def ones(values):
    return [(x,) for x in values]


def jacobi(name):
    return lambda u, m: mp.re(mp.ellipfun(name, u, m=m))


def principal(x, y):
    return mp.sqrt(x / (x - y)) * mp.elliprc(x - y, -y)


CASES = [
    ("ellipk", sp.ellipk, mp.ellipk, ones(PARAMETERS), {}),
    ("ellipkm1", sp.ellipkm1, lambda p: mp.ellipk(1 - p), ones([0.3, 1e-9, 1e-60, 0.5, 3]), {}),
    ("ellipe", sp.ellipe, mp.ellipe, ones(PARAMETERS), {}),
    ("ellipkinc", sp.ellipkinc, mp.ellipf, ANGLES, {}),
    ("ellipeinc", sp.ellipeinc, mp.ellipe, ANGLES, {}),
    ("sn", lambda u, m: sp.ellipj(u, m)[0], jacobi("sn"), PHASES, {}),
    ("cn", lambda u, m: sp.ellipj(u, m)[1], jacobi("cn"), PHASES, {"second": 5e-12}),
    ("dn", lambda u, m: sp.ellipj(u, m)[2], jacobi("dn"), PHASES, {"second": 5e-12}),
    ("agm", sp.agm, mp.agm, MEANS, {}),
    ("elliprf", sp.elliprf, mp.elliprf, THREE, {}),
    ("elliprd", sp.elliprd, mp.elliprd, THREE, {}),
    ("elliprg", sp.elliprg, mp.elliprg, THREE, {}),
    ("elliprj", sp.elliprj, mp.elliprj, FOUR[:3], {}),
    ("elliprc", sp.elliprc, mp.elliprc, TWO, {}),
    ("elliprc_principal", sp.elliprc, principal, [(2, -1), (0.3, -5)], {}),
]


@pytest.mark.sample(3)
@pytest.mark.parametrize("row", CASES, ids=lambda row: row[0])
def test_derivatives(row, compare, make_case):
    *what, options = row
    compare(make_case(*what, **options))


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("f", "number"),
    [(sp.elliprf, 3), (sp.elliprd, 3), (sp.elliprg, 3), (sp.elliprj, 4), (sp.elliprc, 2)],
)
def test_complex_derivatives(f, number, rng):
    point = [np.exp(rng.normal(size=2)) + 0.5j * rng.normal(size=2) for _ in range(number)]
    check_grads(f, tuple(point), order=2, entries=False)


def test_ends_of_the_domain():
    slope = lambda f, *xs, by=0: float(wg.grad(f, argnums=by)(*xs))  # noqa: E731
    with np.errstate(all="ignore"):
        assert slope(sp.ellipk, 0.0) == pytest.approx(np.pi / 8, rel=1e-15)
        assert slope(sp.ellipk, 1.0) == np.inf
        assert slope(sp.ellipe, 1.0) == -np.inf
        assert slope(sp.ellipkm1, 0.0) == -np.inf
        assert [slope(sp.agm, 0.0, 2.0), slope(sp.agm, 0.0, 2.0, by=1)] == [np.inf, 0.0]
    assert [slope(sp.agm, 3.0, 3.0, by=k) for k in (0, 1)] == pytest.approx([0.5, 0.5], rel=1e-15)
    assert slope(sp.agm, -2.0, -3.0) == pytest.approx(slope(sp.agm, 2.0, 3.0), rel=1e-15)
    assert np.isfinite(slope(sp.elliprg, 0.0, 1.0, 2.0))


def test_a_pendulum():
    """The period of a pendulum grows with its amplitude a as K(sin^2(a / 2)), DLMF 19.33."""
    period = lambda a: sp.ellipk(np.sin(a / 2) ** 2)  # noqa: E731
    a = 1.2
    with mp.workdps(40):
        want = mp.diff(lambda v: mp.ellipk(mp.sin(v / 2) ** 2), a)
    assert float(wg.grad(period)(a)) == pytest.approx(float(want), rel=1e-14)
    assert float(wg.jit(wg.grad(period))(a)) == pytest.approx(float(want), rel=1e-14)


@pytest.mark.slow
def test_table(table, make_case):
    for name, _, first, second in table([make_case(*row[:-1], **row[-1]) for row in CASES]):
        assert first < 1e-8, name
        assert second < 1e-8, name
