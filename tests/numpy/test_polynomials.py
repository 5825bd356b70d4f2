"""Polynomials and sets agree with NumPy, on arrays and tensors, with derivatives."""

import numpy as np
import pytest

import wengert as wg

P = np.array([2.0, -1.0, 0.5, 3.0])
Q = np.array([1.5, 0.25])
X = np.array([[0.5, -1.5], [2.5, 1.0]])

CASES = {
    "polyval": lambda xp, p, q, x: xp.polyval(p, x),
    "polyval number": lambda xp, p, q, x: xp.polyval(p, x[0, 0]),
    "polyadd": lambda xp, p, q, x: xp.polyadd(p, q),
    "polysub": lambda xp, p, q, x: xp.polysub(q, p),
    "polymul": lambda xp, p, q, x: xp.polymul(p, q),
    "polydiv": lambda xp, p, q, x: xp.polydiv(p, q),
    "polydiv short": lambda xp, p, q, x: xp.polydiv(q, p),
    "polyder": lambda xp, p, q, x: xp.polyder(p, 2),
    "polyint": lambda xp, p, q, x: xp.polyint(p, 2, k=[1.0, 2.0]),
    "polyint plain": lambda xp, p, q, x: xp.polyint(q),
    "poly": lambda xp, p, q, x: xp.poly(p),
    "union1d": lambda xp, p, q, x: xp.union1d(p, x),
    "intersect1d": lambda xp, p, q, x: xp.intersect1d(x, p),
    "setdiff1d": lambda xp, p, q, x: xp.setdiff1d(p, x),
    "setxor1d": lambda xp, p, q, x: xp.setxor1d(p, x),
}


@pytest.mark.parametrize("name", CASES)
def test_agrees_with_numpy(name, agree):
    order = 2 if name.startswith("poly") else 1
    if name in ("union1d", "intersect1d", "setxor1d", "setdiff1d"):
        # Finite differences need distinct elements: equal ones become unequal if one is varied.
        f = CASES[name]
        np.testing.assert_array_equal(f(np, wg.tensor(P), Q, wg.tensor(X)).numpy(), f(np, P, Q, X))
        if name != "intersect1d":
            agree(f, P, Q, X + 0.1)
        return
    agree(CASES[name], P, Q, X, order=order)


def test_intersection_passes_derivatives_to_the_first():
    slope = wg.grad(lambda x: np.sum(np.intersect1d(x, P) ** 2))(X)
    np.testing.assert_array_equal(slope, [[1.0, 0.0], [0.0, 0.0]])
    _, first, _ = np.intersect1d(wg.tensor(X), P, return_indices=True)
    assert list(first) == [0]


def test_isin():
    np.testing.assert_array_equal(np.isin(wg.tensor(X), P).numpy(), np.isin(X, P))


def test_roots(agree):
    agree(lambda xp, p: xp.sort(xp.roots(p).real), np.array([1.0, -6.0, 11.0, -6.0]))
    p = np.array([0.0, 1.0, -3.0, 2.0, 0.0])
    np.testing.assert_allclose(np.roots(wg.tensor(p)).numpy(), np.roots(p), atol=1e-14)


def test_polyfit(rng):
    x, y = np.linspace(-1.0, 1.0, 8), rng.normal(size=8)
    want = np.polyfit(x, y, 2)
    got = np.polyfit(wg.tensor(x), wg.tensor(y), 2)
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-10)
    jac = wg.jacobian(lambda y: np.polyfit(x, y, 2))(y)
    np.testing.assert_allclose(jac, np.linalg.pinv(np.vander(x, 3)), atol=1e-10)


def test_errors():
    x = wg.tensor(P)
    for bad in (
        lambda: np.polyder(x, -1),
        lambda: np.polyint(x, -1),
        lambda: np.polyint(x, 3, k=[1.0, 2.0]),
        lambda: np.roots(wg.tensor(X)),
    ):
        with pytest.raises(ValueError):
            bad()
