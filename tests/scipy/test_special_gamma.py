"""Gamma and beta functions, binomials and related functions: derivatives against mpmath."""

import mpmath as mp
import numpy as np
import pytest

import wengert as wg
import wengert.scipy.special as sp
from wengert.errors import ArgumentError
from wengert.testing import check_grads

POSITIVE = [1e-9, 1e-3, 0.3, 0.5, 1.0, 1.4616, 2.5, 8.0, 30.0, 150.0]
REAL = [*POSITIVE, -0.5, -1.7, -20.3, -0.999]
HUGE = [1e5, 1e10]
PAIRS = [(1, 2), (0.3, 0.4), (1e-5, 3), (50, 1e-3), (100, 200), (1e3, 1e-6), (1e-6, 1e-6)]
RISING = [(1, 2), (0.3, 0.4), (1e-5, 3), (50, 1e-3), (100, 20), (1e3, 1e-6), (-0.5, 1.7), (-2.5, 2)]
CHOSEN = [
    (5, 2), (0.3, 0.4), (3.5, 0.1), (50, 20.3), (100, 2), (2, 3), (2, 5), (2, -1), (2, -3),
    (2.5, 3.7), (2.5, -1.2), (-1.5, 2), (0, 0), (1, 1), (2, 2.5),
]  # fmt: skip


def ones(values):
    return [(x,) for x in values]


def log_abs(f):
    return lambda *xs: mp.log(abs(f(*xs)))


def permutations(n, k):
    return mp.rf(n - k + 1, k) if k <= n else mp.mpf(0)


CASES = [
    ("gamma", sp.gamma, mp.gamma, ones(REAL), {}),
    ("gammaln", sp.gammaln, log_abs(mp.gamma), ones([*REAL, *HUGE]), {}),
    ("loggamma", sp.loggamma, mp.loggamma, ones([*POSITIVE, *HUGE]), {}),
    # also at the zeros of the reciprocal
    ("rgamma", sp.rgamma, mp.rgamma, ones([*REAL, 0.0, -1.0, -5.0, 0.499, -100.5]), {}),
    ("digamma", sp.digamma, lambda x: mp.psi(0, x), ones([*REAL, -1000.3, 1e6 + 0.5]), {}),
    ("polygamma1", lambda x: sp.polygamma(1, x), lambda x: mp.psi(1, x), ones(REAL), {}),
    ("polygamma3", lambda x: sp.polygamma(3, x), lambda x: mp.psi(3, x), ones([0.3, 2.5, 40]), {}),
    ("beta", sp.beta, mp.beta, PAIRS, {}),
    ("betaln", sp.betaln, log_abs(mp.beta), [*PAIRS, (1e5, 2e6)], {}),
    ("poch", sp.poch, mp.rf, RISING, {}),
    ("binom", sp.binom, mp.binomial, CHOSEN, {}),
    ("comb", sp.comb, mp.binomial, [(5, 2), (7.5, 3.2)], {}),
    ("perm", sp.perm, permutations, [(5, 2), (5, 4.9), (7.5, 3.2)], {}),
    ("factorial", sp.factorial, mp.factorial, ones([0.5, 5, 20]), {}),
    (
        "multigammaln",
        lambda a: sp.multigammaln(a, 3),
        lambda a: mp.log(mp.pi) * 3 / 2 + sum(mp.loggamma(a - mp.mpf(j) / 2) for j in range(3)),
        ones([1.1, 5, 40]),
        {},
    ),
]


@pytest.mark.sample(6)
@pytest.mark.parametrize("row", CASES, ids=lambda row: row[0])
def test_derivatives(row, compare, make_case):
    *what, options = row
    compare(make_case(*what, **{"first": 1e-12, "second": 5e-12} | options))


@pytest.mark.parametrize("f", [sp.gamma, sp.loggamma, sp.rgamma, sp.digamma])
def test_complex_derivatives(f):
    check_grads(f, (np.array([1 + 2j, -3.2 + 0.5j, 5 - 1j, 0.4 + 0.1j]),), order=2, entries=False)


def test_polygammas_of_complex_numbers():
    slope = wg.vjp(sp.digamma, np.array([-30.2 + 0.5j, 0.1 - 3j]))[1]
    got = np.conj(slope(np.ones(2, complex))[0])
    want = [complex(mp.psi(1, z)) for z in (-30.2 + 0.5j, 0.1 - 3j)]
    np.testing.assert_allclose(got, want, rtol=1e-13)


def test_combinatorial_functions_outside_of_their_domain():
    assert float(wg.grad(sp.comb)(2.0, 3.0)) == 0.0
    assert float(wg.grad(sp.factorial)(-2.5)) == 0.0
    assert sp.comb(5, 2, exact=True) == 10
    with pytest.raises(ArgumentError, match="exact=True"):
        wg.grad(lambda n: sp.comb(n, 2, exact=True))(5.0)
    with pytest.raises(ArgumentError, match="integer"):
        wg.grad(lambda x: sp.polygamma(1.5, x))(2.0)
    with pytest.raises(ArgumentError, match="larger than"):
        wg.grad(lambda a: sp.multigammaln(a, 3))(0.9)


def test_poles():
    with np.errstate(all="ignore"):
        assert wg.grad(sp.gammaln)(0.0) == -np.inf
        assert wg.grad(sp.polygamma, argnums=1)(1, 0.0) == -np.inf
    assert [float(wg.grad(sp.rgamma)(-float(n))) for n in range(4)] == [1.0, -1.0, 2.0, -6.0]


@pytest.mark.slow
def test_table(table, make_case):
    for name, _, first, second in table([make_case(*row[:-1], **row[-1]) for row in CASES]):
        assert first < 1e-8, name
        assert second < 1e-8, name


def test_subnormal_densities_are_rounded_once():
    a, x = 51.79474679231202, 9.999999999999999e-06
    with mp.workdps(40):
        exact = mp.mpf(x) ** (mp.mpf(a) - 1) * mp.exp(-mp.mpf(x)) / mp.gamma(a)
    got = wg.grad(sp.gammainc, 1)(a, x)
    assert float(got) == float(exact) and 0.0 < got < 1e-319
