"""Elementary functions, entropies, losses and transforms: derivatives against mpmath, limits."""

import mpmath as mp
import numpy as np
import pytest
import scipy.special

import wengert as wg
import wengert.scipy.special as sp

inf = np.inf
REAL = [0.3, 1e-3, 1.0, 2.5, -0.5, -1.7, -20.3, 30.0, 1e-9, 0.0, 8.5, -8.5, -9.4, 6.3, -5.2]
PAIRS = [(2, 0.5), (2, 1e-9), (0.3, 2), (1e-3, 2), (1e5, 0.1), (1, 1), (1e-9, 3), (0.5, 0.500001)]
POWERS = [(2, 0.5), (2, 1e-9), (0.3, -2), (1e-3, 2), (1e5, 0.1), (1, 1), (30, -1), (1e-9, 3)]
INVERSE = [(2, 0.5), (2, 1e-9), (0.3, -2), (1e-3, 2), (100, 0.1), (1, 1), (-0.3, -1), (-0.45, 2)]


def ones(values):
    return [(x,) for x in values]


def power(x, p):
    return mp.expm1(p * mp.log(x)) / p if p else mp.log(x)


def inverse(y, p):
    return mp.exp(mp.log1p(p * y) / p) if p else mp.exp(y)


def inverse_of_1p(y, p):
    return mp.expm1(mp.log1p(p * y) / p) if p else mp.expm1(y)


def huber(delta, r):
    return r * r / 2 if abs(r) <= delta else delta * (abs(r) - delta / 2)


CASES = [
    ("exprel", sp.exprel, lambda x: mp.expm1(x) / x if x else mp.mpf(1), ones(REAL)),
    ("cosm1", sp.cosm1, lambda x: mp.cos(x) - 1, ones(REAL)),
    ("exp10", sp.exp10, lambda x: mp.mpf(10) ** x, ones(REAL)),
    ("powm1", sp.powm1, lambda x, y: x**y - 1, [(2, 3), (1, 2), (0.5, 1e-9), (30, -2)]),
    ("cbrt", sp.cbrt, mp.cbrt, ones([0.3, 2, 1e9])),
    ("exp2", sp.exp2, lambda x: mp.mpf(2) ** x, ones(REAL)),
    ("expm1", sp.expm1, mp.expm1, ones(REAL)),
    ("log1p", sp.log1p, mp.log1p, ones([0.3, 1e-9, -0.5, 1e9])),
    ("sindg", sp.sindg, lambda x: mp.sinpi(x / 180), ones(REAL)),
    ("cosdg", sp.cosdg, lambda x: mp.cospi(x / 180), ones(REAL)),
    ("tandg", sp.tandg, lambda x: mp.tan(mp.pi * x / 180), ones(REAL)),
    ("cotdg", sp.cotdg, lambda x: mp.cot(mp.pi * x / 180), ones([x for x in REAL if x])),
    ("radian", sp.radian, lambda d, m, s: (d + m / 60 + s / 3600) * mp.pi / 180, [(1, 2, 3)]),
    ("sinc", sp.sinc, mp.sincpi, ones([0.3, 1e-3, 0.45, 2.5, -7.2])),
    ("logit", sp.logit, lambda x: mp.log(x / (1 - x)), ones([0.3, 1e-9, 0.75, 1 - 1e-9])),
    ("expit", sp.expit, lambda x: 1 / (1 + mp.exp(-x)), ones([0.3, 2, -1, 30, -40, 700, -700])),
    ("log_expit", sp.log_expit, lambda x: -mp.log1p(mp.exp(-x)), ones([0.3, 2, -1, 30, -40, -700])),
    ("boxcox", sp.boxcox, power, POWERS),
    ("boxcox1p", sp.boxcox1p, lambda x, p: power(1 + x, p), [*POWERS, (1e-9, 1e-9), (-0.7, 2)]),
    ("inv_boxcox", sp.inv_boxcox, inverse, INVERSE),
    ("inv_boxcox1p", sp.inv_boxcox1p, inverse_of_1p, [*INVERSE, (1e-9, 1e-9)]),
    ("xlogy", sp.xlogy, lambda x, y: x * mp.log(y), [*PAIRS, (0, 2), (-1, 2)]),
    ("xlog1py", sp.xlog1py, lambda x, y: x * mp.log1p(y), [*PAIRS, (0, 2), (2, -0.5)]),
    ("entr", sp.entr, lambda x: -x * mp.log(x), ones([0.3, 1e-5, 1, 7])),
    ("rel_entr", sp.rel_entr, lambda x, y: x * mp.log(x / y), [*PAIRS, (1e200, 1e-200)]),
    ("kl_div", sp.kl_div, lambda x, y: x * mp.log(x / y) - x + y, PAIRS),
    ("huber", sp.huber, huber, [(1, 2), (1, 0.5), (1, -0.5), (1, -3)]),
    (
        "pseudo_huber",
        sp.pseudo_huber,
        lambda d, r: d * d * (mp.sqrt(1 + (r / d) ** 2) - 1),
        [(1, 2), (1, 0.5), (1, -0.5), (1, -3), (1e-5, 2), (1e5, 2), (1, 1e-9)],
    ),
]


@pytest.mark.sample(12)
@pytest.mark.parametrize("row", CASES, ids=lambda row: row[0])
def test_derivatives(row, compare, make_case):
    compare(make_case(*row))


def slope(f, *point, by=0):
    with np.errstate(all="ignore"):
        got = float(wg.grad(f, argnums=by)(*point))
        assert got == pytest.approx(float(wg.trace(wg.grad(f, argnums=by))(*point)(*point)))
        return got


def test_transforms_at_lambda_0():
    """With respect to lambda at 0: L^2 / 2, L^3 / 3 ...; for the inverse -y^2 e^y / 2."""
    x, log = 2.0, np.log(2.0)
    by = lambda f: wg.grad(f, argnums=1)  # noqa: E731
    assert slope(sp.boxcox, x, 0.0, by=1) == pytest.approx(log**2 / 2, rel=1e-15)
    assert float(by(by(sp.boxcox))(x, 0.0)) == pytest.approx(log**3 / 3, rel=1e-15)
    assert float(by(by(by(sp.boxcox)))(x, 0.0)) == pytest.approx(log**4 / 4, rel=1e-14)
    assert slope(sp.inv_boxcox, x, 0.0, by=1) == pytest.approx(-(x**2) * np.exp(x) / 2, rel=1e-15)
    assert slope(sp.inv_boxcox1p, x, 0.0, by=1) == slope(sp.inv_boxcox, x, 0.0, by=1)
    assert slope(sp.boxcox1p, x - 1, 0.0, by=1) == pytest.approx(log**2 / 2, rel=1e-15)


def test_transforms_at_the_ends_of_their_domain():
    assert slope(sp.boxcox, 0.0, 2.0, by=1) == 0.25
    assert [slope(sp.boxcox, 0.0, p) for p in (0.5, 1.0, 2.0)] == [inf, 1.0, 0.0]
    # (1 + lambda y)^(1 / lambda - 1) where 1 + lambda y is 0
    assert [slope(sp.inv_boxcox, -1 / p, p) for p in (0.5, 1.0, 2.0)] == [0.0, 1.0, inf]


def test_zero_times_logarithm():
    assert slope(sp.xlogy, 0.0, 0.0, by=1) == 0.0
    assert slope(sp.xlogy, 0.0, 0.0) == -inf
    assert slope(sp.xlogy, 0.0, -1.0, by=1) == 0.0
    assert slope(sp.xlog1py, 0.0, -1.0, by=1) == 0.0
    mixed = wg.grad(wg.grad(sp.xlogy, argnums=1))
    assert float(mixed(0.0, 2.0)) == 0.5
    assert slope(sp.entr, 0.0) == inf
    assert slope(sp.rel_entr, 0.0, 0.0, by=1) == 0.0
    assert slope(sp.rel_entr, 0.0, 1.0) == -inf
    assert slope(sp.kl_div, 0.0, 0.0, by=1) == 1.0


def test_a_cross_entropy_with_zeros_is_finite():
    p, q = np.array([0.0, 0.5, 0.5]), np.array([0.2, 0.3, 0.5])
    got = wg.grad(lambda q: np.sum(sp.rel_entr(p, q)))(q)
    np.testing.assert_allclose(got, -p / q, rtol=1e-15)
    np.testing.assert_allclose(wg.grad(lambda q: np.sum(sp.xlogy(p, q)))(q), p / q, rtol=1e-15)


def test_losses_at_kinks():
    assert slope(sp.pseudo_huber, 0.0, -2.0) == 2.0
    assert slope(sp.pseudo_huber, 0.0, -2.0, by=1) == 0.0
    assert slope(sp.pseudo_huber, 0.0, 0.0, by=1) == 0.0
    assert slope(sp.huber, 1.0, 1.0, by=1) == 1.0


def test_logistic_functions_at_infinity():
    assert slope(sp.logit, 0.0) == inf
    assert slope(sp.logit, 1.0) == inf
    assert [slope(sp.expit, x) for x in (1e3, -1e3, inf, -inf)] == [0.0] * 4
    assert [slope(sp.log_expit, x) for x in (1e3, -1e3)] == [0.0, 1.0]


@pytest.mark.parametrize("n", range(1, 8))
def test_quotients_at_zero_to_any_order(n):
    """The derivative of order n of (e^x - 1) / x at 0 is 1 / (n + 1); of sinc 0 for odd n."""
    f, g = sp.exprel, sp.sinc
    for _ in range(n):
        f, g = wg.grad(f), wg.grad(g)
    assert float(f(0.0)) == pytest.approx(1 / (n + 1), rel=1e-14)
    want = 0.0 if n % 2 else (-1) ** (n // 2) * np.pi**n / (n + 1)
    assert float(g(0.0)) == pytest.approx(want, rel=1e-13, abs=1e-15)


@pytest.mark.parametrize("name", sp.__all__)
def test_ufuncs_are_those_of_scipy(name):
    theirs = getattr(scipy.special, name)
    if isinstance(theirs, np.ufunc):
        assert getattr(sp, name) is theirs


def test_gradients_of_single_precision():
    x = np.float32([0.2, 0.7])
    for f in (sp.logit, sp.expit, sp.entr, sp.exprel, sp.gammaln, sp.erfcx, sp.ellipk, sp.spence):
        assert wg.grad(lambda x, f=f: np.sum(f(x)))(x).dtype == np.float32


@pytest.mark.slow
def test_table(table, make_case):
    for name, _, first, second in table([make_case(*row) for row in CASES]):
        assert first < 1e-8, name
        assert second < 1e-8, name
