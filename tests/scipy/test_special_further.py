"""Derivatives of Bessel functions, polynomials on other intervals, noncentral chi-square."""

import mpmath as mp
import numpy as np
import pytest
from scipy import special

import wengert as wg

ours = wg.scipy.special
X = np.array([0.3, 0.9])
CASES = {
    "jvp": (1.5, X, 2),
    "yvp": (1.5, X),
    "ivp": (0.4, X, 3),
    "kvp": (1.5, X, 2),
    "h1vp": (1.5, X),
    "h2vp": (1.5, X, 0),
    "eval_chebyc": (2.5, X),
    "eval_chebys": (2.5, X),
    "eval_sh_legendre": (2.5, X),
    "eval_sh_chebyt": (2.5, X),
    "eval_sh_chebyu": (2.5, X),
    "eval_sh_jacobi": (2.5, 2.7, 1.4, X),
    "assoc_laguerre": (X, 2.5, 1.2),
    "legendre_p": (3, X),
}


@pytest.mark.sample(6)
@pytest.mark.parametrize("name", CASES)
def test_values_and_derivatives(name):
    args = CASES[name]
    free = [i for i, a in enumerate(args) if not isinstance(a, int)]

    def program(*moved):
        whole = list(args)
        for i, a in zip(free, moved, strict=True):
            whole[i] = a
        return getattr(ours, name)(*whole)

    inputs = [np.asarray(args[i]) for i in free]
    want = getattr(special, name)(*args)
    np.testing.assert_allclose(wg.vjp(program, *inputs)[0], want, rtol=1e-12)
    wg.check_grads(program, inputs, order=1, entries=False)


def test_dirichlet_kernel_at_multiples_of_2_pi():
    for n in (1, 2, 5):
        for turns in (0, 1, 2, -3):
            x = 2.0 * np.pi * turns
            f = lambda x, n=n: ours.diric(x, n)  # noqa: E731
            sign = (-1.0) ** (turns * (n - 1))
            assert abs(wg.vjp(f, x)[0] - sign) < 1e-12
            assert abs(wg.grad(f)(x)) < 1e-12
            assert abs(wg.grad(wg.grad(f))(x) + sign * (n * n - 1) / 12.0) < 1e-10
    np.testing.assert_allclose(wg.vjp(lambda x: ours.diric(x, 5), X)[0], special.diric(X, 5))
    with pytest.raises(wg.errors.ArgumentError, match="positive integer"):
        ours.diric(wg.tensor(0.3), 2.5)


def test_legendre_with_derivatives():
    want = special.legendre_p(3, X, diff_n=2)
    np.testing.assert_allclose(
        wg.vjp(lambda x: ours.legendre_p(3, x, diff_n=2), X)[0], want, rtol=1e-13
    )
    np.testing.assert_allclose(
        wg.vjp(lambda x: ours.legendre_p(1, x, diff_n=2), X)[0],
        special.legendre_p(1, X, diff_n=2),
        atol=1e-15,
    )


def test_constructed_polynomials_accept_tensors():
    for name in ("legendre", "chebyt", "laguerre", "hermite", "sh_legendre"):
        made = getattr(ours, name)(3)
        slope = wg.grad(lambda x, p=made: p(x))(0.4)
        np.testing.assert_allclose(slope, made.deriv()(0.4), rtol=1e-10)


def noncentral(x, df, nc, n=0):
    """The distribution function, and its derivative of order n with respect to df."""

    def f(df):
        return mp.nsum(
            lambda j: (
                mp.exp(-nc / 2)
                * (nc / 2) ** j
                / mp.factorial(j)
                * mp.gammainc(df / 2 + j, 0, x / 2, regularized=True)
            ),
            [0, 80 + 2 * int(nc)],
            method="direct",
        )

    return mp.diff(f, df, n) if n else f(df)


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("x", "df", "nc"), [(1e-6, 0.7, 3.0), (0.5, 4.0, 0.0), (9.0, 2.5, 30.0), (80.0, 1.0, 9.0)]
)
def test_noncentral_chi_square(x, df, nc):
    """Also in both tails, and with noncentrality 0."""
    with mp.workdps(25):
        exact = [mp.mpf(v) for v in (x, df, nc)]
        by_df = noncentral(*exact, n=1)
        by_x = mp.diff(lambda x: noncentral(x, *exact[1:]), exact[0], h=mp.mpf(x) * mp.mpf("1e-8"))
        h = mp.mpf("1e-9")
        by_nc = (noncentral(*exact[:2], exact[2] + h) - noncentral(*exact)) / h
    got = wg.grad(special.chndtr, (0, 1, 2))(x, df, nc)
    np.testing.assert_allclose(got[1], float(by_df), rtol=1e-10)
    np.testing.assert_allclose(got[0], float(by_x), rtol=1e-6)
    np.testing.assert_allclose(got[2], float(by_nc), rtol=1e-6)


def test_noncentral_inverses():
    for f, args in (
        (special.chndtrix, (0.4, 1.3, 0.7)),
        (special.chndtridf, (1.1, 0.3, 0.7)),
        (special.chndtrinc, (4.0, 1.3, 0.3)),
    ):
        wg.check_grads(lambda *a, f=f: f(*a), tuple(map(np.float64, args)), order=1, entries=False)


@pytest.mark.parametrize(
    ("f", "args"),
    [
        (special.chndtridf, (1.0, 0.9, 5.0)),  # even df = 0 has a smaller probability of x <= 1
        (special.chndtrinc, (1.0, 3.0, 0.9)),
        (special.stdtridf, (0.9, 1e-3)),
        (special.stdtridf, (0.4, 10.0)),
    ],
)
def test_derivatives_are_nan_where_an_inverse_has_no_solution(f, args):
    x = np.array(args)
    for derivative in (wg.jacobian, wg.hessian, lambda f: wg.jit(wg.grad(f))):
        assert np.isnan(derivative(lambda x: f(*x))(x)).all()
