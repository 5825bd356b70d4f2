"""Polynomials and FITPACK splines: values against SciPy, derivatives in all arguments."""

import numpy as np
import pytest
from scipy import interpolate as theirs

import wengert as wg
from wengert.scipy import interpolate as ours

RNG = np.random.default_rng(2)
X = np.array([0.0, 0.4, 0.9, 1.3, 1.9, 2.4])
Y = RNG.uniform(size=6)
Z = RNG.uniform(size=(6, 5))
AT = np.array([0.2, 0.85, 1.31, 2.2])


def assert_agrees(f, g, *args, order=1):
    np.testing.assert_allclose(wg.vjp(f, *args)[0], g(*args), rtol=1e-11, atol=1e-13)
    wg.check_grads(f, args, order=order, entries=False)


@pytest.mark.parametrize(
    "name", ["barycentric_interpolate", "krogh_interpolate", "pchip_interpolate"]
)
def test_interpolating_polynomials(name):
    assert_agrees(getattr(ours, name), getattr(theirs, name), X, Y, AT, order=2)
    rows = RNG.uniform(size=(2, 6))
    f = lambda y: getattr(ours, name)(X, y, AT, axis=1)  # noqa: E731
    assert_agrees(f, lambda y: getattr(theirs, name)(X, y, AT, axis=1), rows)


def test_a_polynomial_at_its_nodes():
    """There the barycentric formula is 0 / 0."""
    slope = wg.grad(lambda x: ours.BarycentricInterpolator(X, X**3)(x))
    for x in (*X, 0.7):
        assert abs(slope(x) - 3.0 * x * x) < 1e-11
        assert abs(wg.grad(slope)(x) - 6.0 * x) < 1e-10
    order = np.array([3, 0, 5, 1, 2, 4])
    f = ours.KroghInterpolator(wg.tensor(X[order]), wg.tensor(Y[order]))
    np.testing.assert_allclose(f(AT).numpy(), theirs.KroghInterpolator(X, Y)(AT), rtol=1e-12)
    with pytest.raises(wg.errors.ArgumentError, match="increasing"):
        ours.KroghInterpolator(np.array([0.0, 1.0, 1.0]), np.ones(3))


@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_interpolating_splines(k):
    for der in (0, 1):
        assert_agrees(
            lambda x, y, t, d=der: ours.splev(t, ours.splrep(x, y, k=k), d),
            lambda x, y, t, d=der: theirs.splev(t, theirs.splrep(x, y, k=k), d),
            X,
            Y,
            AT,
        )
    assert_agrees(
        lambda y, a, b: ours.splint(a, b, ours.splrep(X, y, k=k)),
        lambda y, a, b: theirs.splint(a, b, theirs.splrep(X, y, k=k)),
        Y,
        np.float64(0.3),
        np.float64(2.1),
    )
    if k > 1:
        mine, law = ours.splder(ours.splrep(X, Y, k=k)), theirs.splder(theirs.splrep(X, Y, k=k))
        np.testing.assert_allclose(ours.splev(AT, mine), theirs.splev(AT, law), rtol=1e-11)
    mine, law = ours.splantider(ours.splrep(X, Y, k=k)), theirs.splantider(theirs.splrep(X, Y, k=k))
    np.testing.assert_allclose(ours.splev(AT, mine), theirs.splev(AT, law), rtol=1e-11)
    assert_agrees(
        lambda y, t: ours.InterpolatedUnivariateSpline(X, y, k=k)(t),
        lambda y, t: theirs.InterpolatedUnivariateSpline(X, y, k=k)(t),
        Y,
        AT,
    )


def test_outside_of_the_interval():
    tck = theirs.splrep(X, Y)
    for ext in (0, 1, 3):
        t = np.array([-0.3, 0.5, 2.9])
        np.testing.assert_allclose(
            wg.vjp(lambda t, e=ext: ours.splev(t, tck, 0, e), t)[0], theirs.splev(t, tck, 0, ext)
        )
    assert ours.splint(-1.0, 0.0, tck) == 0.0
    for call in (
        lambda: ours.splev(0.3, tck, ext=2),
        lambda: ours.splrep(X, Y, s=0.1),
        lambda: ours.RectBivariateSpline(X, X[:5], Z, s=1.0),
        lambda: ours.InterpolatedUnivariateSpline(X, Y, bbox=(0.0, None)),
    ):
        with pytest.raises(wg.errors.ArgumentError):
            call()


def test_surfaces():
    y = X[:5] * 1.1
    law = theirs.RectBivariateSpline(X, y, Z)
    mine = ours.RectBivariateSpline(X, y, Z)
    np.testing.assert_allclose(mine(AT, AT[:3]), law(AT, AT[:3]), rtol=1e-11)
    np.testing.assert_allclose(mine(AT, AT[:3], dx=1, dy=2), law(AT, AT[:3], dx=1, dy=2), rtol=1e-9)
    outside = np.array([-0.5, 3.0])
    np.testing.assert_allclose(mine.ev(outside, outside), law.ev(outside, outside), rtol=1e-11)
    assert_agrees(
        lambda z, p, q: ours.RectBivariateSpline(X, y, z).ev(p, q),
        lambda z, p, q: theirs.RectBivariateSpline(X, y, z).ev(p, q),
        Z,
        AT * 0.9,
        AT[::-1] * 0.7,
    )
    assert_agrees(
        lambda x, y: ours.RectBivariateSpline(x, y, Z, kx=2, ky=1)(AT * 0.9, AT * 0.7),
        lambda x, y: theirs.RectBivariateSpline(x, y, Z, kx=2, ky=1)(AT * 0.9, AT * 0.7),
        X,
        y,
    )
