"""Integrals, Lambert W, Airy and Kelvin functions: derivatives against mpmath, and at zero."""

import mpmath as mp
import numpy as np
import pytest
import scipy.special

import wengert as wg
import wengert.scipy.special as sp
from wengert.errors import ArgumentError
from wengert.testing import check_grads

POSITIVE = [0.3, 1e-3, 1.0, 1.49, 2.5, 5.9, 8.5, 30.0, 1e-9]
REAL = [*POSITIVE, *[-x for x in POSITIVE]]
AIRY = [0.3, 1e-3, 1.0, 2.5, 5.9, 9.9, 10.1, 30.0]
LARGE = [*AIRY, 1e3, 1e6]
COMPLEX = np.array([0.5 + 1j, 1.6 + 0.3j, 1 - 0.5j, 0.2 - 0.1j])


def ones(values):
    return [(x,) for x in values]


def result(f, k):
    return lambda x: f(x)[k]


def ber_derivative(x, part):
    turn = mp.exp(3j * mp.pi / 4)
    return part(-turn * mp.besselj(1, x * turn))


def ker_derivative(x, part):
    turn = mp.exp(1j * mp.pi / 4)
    return part(-turn * mp.besselk(1, x * turn))


def scaled(f, k):
    return lambda x: f(x, derivative=k) * mp.exp((1 if f is mp.airyai else -1) * 2 * x**1.5 / 3)


# SciPy's ker and kei, and their derivatives, have errors of 1e-10 around x = 8.
FEW = ones([0.3, 2.5, 8.5])
LOOSE = {"first": 1e-9, "second": 1e-9, "digits": 40}
CASES = [
    ("expi", sp.expi, mp.ei, ones(REAL), {}),
    ("exp1", sp.exp1, mp.e1, ones(POSITIVE), {}),
    *[
        (
            f"expn{n}",
            lambda x, n=n: sp.expn(n, x),
            lambda x, n=n: mp.expint(n, x),
            ones(POSITIVE),
            {},
        )
        for n in (0, 1, 3)
    ],
    ("si", result(sp.sici, 0), mp.si, ones(REAL), {}),
    ("ci", result(sp.sici, 1), mp.ci, ones(POSITIVE), {}),
    ("shi", result(sp.shichi, 0), mp.shi, ones(REAL), {}),
    ("chi", result(sp.shichi, 1), mp.chi, ones(POSITIVE), {}),
    ("fresnel_s", result(sp.fresnel, 0), mp.fresnels, ones(REAL), {}),
    ("fresnel_c", result(sp.fresnel, 1), mp.fresnelc, ones(REAL), {}),
    ("spence", sp.spence, lambda x: mp.polylog(2, 1 - x), ones(POSITIVE), {}),
    ("lambertw", lambda x: sp.lambertw(x).real, mp.lambertw, ones([*POSITIVE, -0.1, -0.36]), {}),
    (
        "lambertw_below",
        lambda x: sp.lambertw(x, -1).real,
        lambda x: mp.lambertw(x, -1),
        ones([-0.1, -0.36, -1e-5]),
        {},
    ),
    ("wrightomega", sp.wrightomega, lambda x: mp.lambertw(mp.exp(x)), ones(REAL), {}),
    ("ber", sp.ber, lambda x: mp.ber(0, x), ones(REAL), {}),
    ("bei", sp.bei, lambda x: mp.bei(0, x), ones(REAL), {}),
    ("berp", sp.berp, lambda x: ber_derivative(x, mp.re), ones(REAL), {}),
    ("beip", sp.beip, lambda x: ber_derivative(x, mp.im), ones(REAL), {}),
    ("ker", sp.ker, lambda x: mp.ker(0, x), FEW, LOOSE),
    ("kei", sp.kei, lambda x: mp.kei(0, x), FEW, LOOSE),
    ("kerp", sp.kerp, lambda x: ker_derivative(x, mp.re), FEW, LOOSE),
    ("keip", sp.keip, lambda x: ker_derivative(x, mp.im), FEW, LOOSE),
    ("ai", result(sp.airy, 0), mp.airyai, ones([*AIRY, -2.5, -9.9, 0.0]), {}),
    ("aip", result(sp.airy, 1), lambda x: mp.airyai(x, derivative=1), ones([*AIRY, -2.5, 0.0]), {}),
    ("bi", result(sp.airy, 2), mp.airybi, ones([*AIRY, -2.5, 0.0]), {}),
    ("bip", result(sp.airy, 3), lambda x: mp.airybi(x, derivative=1), ones([*AIRY, -2.5, 0.0]), {}),
    ("eai", result(sp.airye, 0), scaled(mp.airyai, 0), ones(LARGE), {"second": 4e-12}),
    ("eaip", result(sp.airye, 1), scaled(mp.airyai, 1), ones(LARGE), {"second": 4e-12}),
    ("ebi", result(sp.airye, 2), scaled(mp.airybi, 0), ones(LARGE), {"second": 4e-12}),
    ("ebip", result(sp.airye, 3), scaled(mp.airybi, 1), ones(LARGE), {"second": 4e-12}),
    ("ebi_below", result(sp.airye, 2), mp.airybi, ones([-0.3, -2.5]), {}),
]


@pytest.mark.sample(4)
@pytest.mark.parametrize("row", CASES, ids=lambda row: row[0])
def test_derivatives(row, compare, make_case):
    *what, options = row
    compare(make_case(*what, **{"first": 5e-13} | options))


@pytest.mark.parametrize(
    "f",
    [
        sp.expi, sp.exp1, sp.spence, sp.wrightomega, sp.lambertw,
        sp.sici, sp.shichi, sp.fresnel, sp.airy, sp.airye,
    ],
    ids=lambda f: f.__name__,
)  # fmt: skip
def test_complex_derivatives(f):
    check_grads(f, (COMPLEX,), order=2, entries=False)


def derivatives(f, x, n):
    found = []
    for _ in range(n):
        f = wg.grad(f)
        with np.errstate(all="ignore"):
            found.append(float(f(x)))
    return found


def test_at_zero():
    """The derivatives of Si and Shi are 1 - x^2/6 + x^4/120 ... and 1 + x^2/6 + x^4/120 ..."""
    want = [1, 0, -1 / 3, 0, 1 / 5]
    assert derivatives(result(sp.sici, 0), 0.0, 5) == pytest.approx(want, abs=1e-15)
    assert derivatives(result(sp.shichi, 0), 0.0, 5) == pytest.approx(np.abs(want), abs=1e-15)
    assert derivatives(lambda x: sp.lambertw(x).real, 0.0, 4) == pytest.approx([1, -2, 9, -64])
    assert derivatives(sp.spence, 1.0, 4) == pytest.approx([-1, 1 / 2, -2 / 3, 3 / 2], rel=1e-14)
    assert derivatives(sp.bei, 0.0, 2) == [0.0, 0.5]
    assert derivatives(sp.ber, 0.0, 4) == pytest.approx([0, 0, 0, -3 / 8])
    assert derivatives(sp.spence, 0.0, 1) == [-np.inf]
    assert derivatives(lambda x: sp.expn(2, x), 0.0, 1) == [-np.inf]
    assert derivatives(lambda x: sp.expn(3, x), 0.0, 1) == [-1.0]


def test_the_order_of_several_results_is_that_of_scipy():
    x = np.array([0.3, 2.0])
    for f in (sp.sici, sp.shichi, sp.fresnel, sp.airy, sp.airye, sp.kelvin):
        for got, want in zip(f(wg.tensor(x)), f(x), strict=True):
            np.testing.assert_allclose(got.numpy(), want, rtol=1e-15)
    total = lambda x: sum(np.sum(abs(part)) for part in scipy.special.kelvin(x))  # noqa: E731
    assert np.all(np.isfinite(wg.grad(total)(x)))


def test_integrals_of_bessel_functions():
    x = np.array([0.3, 2.0, 9.0])
    for f, names in ((sp.itj0y0, "j0 y0"), (sp.iti0k0, "i0 k0")):
        for k, name in enumerate(names.split()):
            got = wg.grad(lambda x, f=f, k=k: np.sum(f(x)[k]))(x)
            np.testing.assert_array_equal(got, getattr(scipy.special, name)(x))


def test_orders_and_branches_must_be_integers():
    with pytest.raises(ArgumentError, match="expn with n=1"):
        wg.grad(lambda x: sp.expn(1.5, x))(2.0)
    with pytest.raises(ArgumentError, match="lambertw with k=0"):
        wg.grad(lambda x: sp.lambertw(x, 0.5).real)(2.0)


@pytest.mark.slow
def test_table(table, make_case):
    for name, _, first, second in table([make_case(*row[:-1], **row[-1]) for row in CASES]):
        assert first < 1e-8, name
        assert second < 1e-8, name
