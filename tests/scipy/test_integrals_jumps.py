"""Integrands that jump at positions that depend on parameters."""

import warnings

import numpy as np
import pytest
from scipy import integrate

import wengert as wg
from wengert.errors import NotDifferentiableError

FINE = {"limit": 500, "epsabs": 1e-12, "epsrel": 1e-12}


def integral(f, a, b):
    return lambda *c: integrate.quad(lambda x: f(x, *c), a, b, **FINE)[0]


def piecewise(x, c):
    return np.where(x < c, 3.0 * x, np.cos(x) * c)


def scaled(x, c):
    return np.where((x - c) / (1.0 + c) >= 0.0, 3.0 * x * c, np.cos(x))


def twice_the_same(x, c):
    both = np.where(x < c, 1.0, 0.0) * np.where(x >= c, 1.0, 0.0)  # zero everywhere
    return both + np.where(x < c, x, 0.0) + np.where(c <= x, x * x, 0.0)


def interval(x, c):
    return np.exp(-x) * ((x > c) & (x < 2.0 * c))


def signs(x, c):
    return np.sign(c - x) * x * x * c


def branches(x, c):
    if x < c:
        return 3.0 * x
    return c * np.cos(x)


def several(x, c):
    positions = c * np.array([0.5, 1.0, 1.5])
    return np.sum(np.where(x < positions, np.array([1.0, 2.0, 3.0]) * x, c))


def continuous(x, c):
    return np.where(x > c, x - c, 0.0) * x


def kink(x, c):
    return x * np.maximum(x - c, 0.0) + abs(x - 2.0 * c)


CASES = [
    (piecewise, 0.0, 2.0), (piecewise, 2.0, 0.0), (piecewise, 1.0, 2.0), (scaled, 2.0, 0.0),
    (twice_the_same, 0.0, 2.0), (interval, 0.0, np.inf), (interval, -np.inf, 1.0),
    (signs, 0.0, 2.0), (branches, 0.0, 2.0), (several, 0.0, 2.0), (continuous, 0.0, 2.0),
    (kink, 0.0, 2.0),
]  # fmt: skip


@pytest.mark.sample(2)
@pytest.mark.parametrize(("f", "a", "b"), CASES)
def test_moving_jumps(f, a, b):
    value, c, step = integral(f, a, b), 0.83, 1e-4
    slope = wg.grad(value)
    expected = [(g(c + step) - g(c - step)) / (2.0 * step) for g in (value, slope)]
    for first, second in ((slope, wg.grad(slope)), (wg.jit(slope), wg.jit(wg.grad(slope)))):
        # Values of SciPy have errors near jumps.
        np.testing.assert_allclose([first(c), second(c)], expected, rtol=2e-4, atol=1e-6)
    np.testing.assert_allclose(wg.jvp(value, (c,), (2.0,))[1], 2.0 * slope(c), rtol=1e-9)
    np.testing.assert_allclose(wg.jacfwd(wg.jacfwd(value))(c), wg.grad(slope)(c), rtol=1e-7)


def test_known_values():
    unit = integral(lambda x, c, h: np.where(x < c, h, 0.0), 0.0, 1.0)  # c h for 0 < c < 1
    np.testing.assert_allclose(wg.grad(unit, (0, 1))(0.25, 3.0), (3.0, 0.25), rtol=1e-9)
    assert wg.grad(unit)(1.5, 3.0) == 0.0 and wg.grad(unit)(-0.5, 3.0) == 0.0
    np.testing.assert_allclose(wg.hessian(unit, (0, 1))(0.25, 3.0)[0][1], 1.0)
    batch = wg.jit(wg.vmap(wg.grad(unit), (0, None)))(np.array([0.25, 0.5, 2.0]), 3.0)
    np.testing.assert_allclose(batch, [3.0, 3.0, 0.0], rtol=1e-9)
    second = wg.grad(wg.grad(integral(lambda x, c: np.maximum(x - c, 0.0), 0.0, 1.0)))
    np.testing.assert_allclose([second(0.4), wg.jit(second)(0.4)], 1.0, rtol=1e-9)


def test_jumps_of_vectors_and_of_nested_integrals():
    def vector(c):
        powers = np.arange(3.0)
        return integrate.quad_vec(lambda x: np.where(x < c, x**powers, 0.0), 0.0, 1.0)[0]

    np.testing.assert_allclose(wg.jacobian(vector)(0.5), [1.0, 0.5, 0.25], rtol=1e-6)

    def area(c):  # of the triangle x + y < c
        return integrate.dblquad(lambda y, x: np.where(x + y < c, 1.0, 0.0), 0, 1, 0, 1)[0]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", integrate.IntegrationWarning)
        assert abs(wg.grad(area)(0.5) - 0.5) < 1e-6


UNKNOWN = [
    lambda x, c: np.where(x**2 < c, x, 1.0),
    lambda x, c: np.floor(3.0 * c * x),
    lambda x, c: (c * x) % 0.3,
]


@pytest.mark.sample(2)
@pytest.mark.parametrize("f", UNKNOWN)
def test_unknown_positions_are_refused(f):
    value = integral(f, 0.0, 2.0)
    for derivative in (wg.grad(value), wg.jit(wg.grad(value)), wg.jacfwd(value)):
        with pytest.raises(NotDifferentiableError, match="may jump where"):
            derivative(0.8)
    assert np.isfinite(wg.jit(value)(0.8))
    # With respect to other parameters there is a derivative.
    height = integral(lambda x, h, c: h * f(x, c), 0.0, 2.0)
    for derivative in (wg.grad(height), wg.jit(wg.grad(height))):
        np.testing.assert_allclose(derivative(2.0, 0.8), value(0.8), rtol=1e-6)


def test_a_comparison_with_a_constant_is_not_refused():
    f = integral(lambda x, c: np.where(x**2 < wg.stop_gradient(c), c - x**2, 0.0), 0.0, 2.0)
    np.testing.assert_allclose([wg.grad(f)(0.81), wg.jit(wg.grad(f))(0.81)], 0.9, rtol=1e-6)


def test_a_branch_with_a_parameter_that_is_not_taken_at_the_middle():
    def value(c):
        def f(x):
            y = 3.0 * x
            if x < c:
                y = c * np.cos(x)
            return y

        return integrate.quad(f, 0.0, 2.0, **FINE)[0]

    step = 1e-4
    expected = (value(0.8 + step) - value(0.8 - step)) / (2.0 * step)
    np.testing.assert_allclose(wg.grad(value)(0.8), expected, rtol=1e-6)
