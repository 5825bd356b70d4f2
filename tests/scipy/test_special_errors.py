"""Error functions and the normal distribution: derivatives against mpmath, far tails."""

import mpmath as mp
import numpy as np
import pytest

import wengert as wg
import wengert.scipy.special as sp
from wengert._engine.core.op import lookup
from wengert.testing import check_grads

NEAR = [0.0, 0.3, 1e-3, 1.0, 1.49, 1.51, 2.5, -0.5, -1.7, -5.3, 5.9, 6.1, 1e-9]
FAR = [*NEAR, 8.5, 30.0, 1e3, 1e6]


def ones(values):
    return [(x,) for x in values]


def erfcx(x):
    return (
        mp.exp(x * x) * mp.erfc(x)
        if x < 300
        else 1
        / mp.sqrt(mp.pi)
        * mp.nsum(lambda k: (-1) ** int(k) * mp.fac2(2 * k - 1) / (2 * x * x) ** k / x, [0, 12])
    )


def dawsn(x):
    if x < 300:
        return mp.sqrt(mp.pi) / 2 * mp.exp(-x * x) * mp.erfi(x)
    return mp.nsum(lambda k: mp.fac2(2 * k - 1) / (2 * x * x) ** k / (2 * x), [0, 12])


def faddeeva(z):
    return mp.exp(-z * z) * mp.erfc(-1j * z)


def normal(x):
    return mp.erfc(-x / mp.sqrt(2)) / 2


def quantile(p):
    return mp.sqrt(2) * mp.erfinv(2 * p - 1)


def voigt(x, sigma, gamma):
    z = (x + 1j * gamma) / (sigma * mp.sqrt(2))
    return mp.re(faddeeva(z)) / (sigma * mp.sqrt(2 * mp.pi))


PROFILES = [(0.3, 1, 0.5), (3, 0.1, 0.01), (-2, 0.3, 5), (20, 1, 1e-5)]
CASES = [
    ("erf", sp.erf, mp.erf, ones(NEAR), {}),
    ("erfc", sp.erfc, mp.erfc, ones(NEAR), {}),
    ("erfi", sp.erfi, mp.erfi, ones(NEAR), {}),
    ("erfcx", sp.erfcx, erfcx, ones(FAR), {}),
    ("dawsn", sp.dawsn, dawsn, ones(FAR), {}),
    ("ndtr", sp.ndtr, normal, ones([*NEAR, -30.0]), {}),
    ("log_ndtr", sp.log_ndtr, lambda x: mp.log(normal(x)), ones([*NEAR, -30.0, -1e3]), {}),
    ("erfinv", sp.erfinv, mp.erfinv, ones([0.3, 0.99, -0.5, 1e-9]), {}),
    ("ndtri", sp.ndtri, quantile, ones([0.3, 0.99, 1e-5]), {}),
    ("ndtri_exp", sp.ndtri_exp, lambda y: quantile(mp.exp(y)), ones([-0.3, -1e-5, -20]), {}),
    ("voigt_profile", sp.voigt_profile, voigt, PROFILES, {}),
]


@pytest.mark.sample(3)
@pytest.mark.parametrize("row", CASES, ids=lambda row: row[0])
def test_derivatives(row, compare, make_case):
    *what, options = row
    compare(make_case(*what, **options))


def test_erfcinv_is_the_inverse_of_erfc():
    x = np.array([1e-300, 1e-9, 0.3, 1.0, 1.7, 2 - 1e-9])
    got = wg.grad(lambda x: np.sum(sp.erfcinv(x)))(x)
    want = [float(-mp.sqrt(mp.pi) / 2 * mp.exp(mp.mpf(y) ** 2)) for y in sp.erfcinv(x)]
    np.testing.assert_allclose(got, want, rtol=1e-12)


@pytest.mark.parametrize(
    "f", [sp.erf, sp.erfc, sp.erfi, sp.erfcx, sp.dawsn, sp.wofz, sp.ndtr, sp.log_ndtr]
)
def test_complex_derivatives(f):
    check_grads(
        f, (np.array([0.5 + 1j, -1.6 + 0.3j, 2.5 - 0.5j, 0.2 - 0.1j]),), order=2, entries=False
    )


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    "z", [1 + 2j, -3 + 0.5j, 7 + 0.01j, -9 + 1e-3j, 20 + 30j, 4 + 1.6j, -2 - 3j]
)
def test_derivatives_of_faddeeva(z):
    family = lookup("special.wofz_of")
    for n in (1, 2, 3):
        with mp.workdps(60):
            want = complex(mp.diff(faddeeva, mp.mpc(z), n))
        assert abs(complex(family(np.array(z), n=n)) - want) <= 2e-12 * abs(want)


def test_log_ndtr_in_far_tails():
    """The derivative is -x (1 + 1/x^2 - ...) for large negative x, and tends to 0 at infinity."""
    slope = wg.grad(sp.log_ndtr)
    for x in (-1e3, -1e8, -1e160):
        assert float(slope(x)) == pytest.approx(-x + 1 / -x, rel=1e-11)
    assert float(slope(-np.inf)) == np.inf
    assert float(slope(60.0)) == 0.0
    assert float(wg.grad(slope)(-1e8)) == pytest.approx(-1.0, rel=1e-12)
    assert float(wg.jit(slope)(-1e3)) == pytest.approx(float(slope(-1e3)), rel=1e-14)


def test_voigt_profiles_with_a_width_of_zero():
    """For sigma = 0 the Cauchy density, for gamma = 0 the normal density."""
    got = float(wg.grad(sp.voigt_profile)(1.0, 0.0, 2.0))
    assert got == pytest.approx(-2 * 2 / (np.pi * 25), rel=1e-14)
    got = float(wg.grad(sp.voigt_profile)(9.0, 1.0, 0.0))
    assert got == pytest.approx(-9 * np.exp(-40.5) / np.sqrt(2 * np.pi), rel=1e-12)


@pytest.mark.slow
def test_table(table, make_case):
    for name, _, first, second in table([make_case(*row[:-1], **row[-1]) for row in CASES]):
        assert first < 1e-8, name
        assert second < 1e-8, name
