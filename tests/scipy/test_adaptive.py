"""Adaptive quadrature with tensors: values and derivatives against SciPy and closed forms."""

import math

import numpy as np
import pytest
import scipy.integrate as theirs

import wengert as wg
from wengert.scipy import integrate as ours


def derivatives(f, x, *expected, rtol=1e-9):
    """The value and derivatives at x, in both modes."""
    np.testing.assert_allclose(f(x), expected[0], rtol=rtol)
    np.testing.assert_allclose(wg.grad(f)(x), expected[1], rtol=rtol, atol=1e-12)
    np.testing.assert_allclose(wg.jvp(f, (x,), (1.0,))[1], expected[1], rtol=rtol, atol=1e-12)
    if len(expected) > 2:
        np.testing.assert_allclose(wg.grad(wg.grad(f))(x), expected[2], rtol=rtol, atol=1e-12)


def test_derivatives_with_respect_to_parameters():
    s = 1.7
    derivatives(
        lambda s: ours.quad(lambda x: np.exp(-s * x), 0.0, np.inf)[0], s, 1 / s, -1 / s**2, 2 / s**3
    )
    root = math.sqrt(math.pi)
    gauss = lambda s: ours.quad(lambda x: np.exp(-s * x * x), -np.inf, np.inf)[0]  # noqa: E731
    derivatives(gauss, s, root * s**-0.5, -0.5 * root * s**-1.5, 0.75 * root * s**-2.5)
    derivatives(
        lambda s: ours.quad(lambda x, s: np.exp(s * x), -np.inf, 0.0, (s,))[0], s, 1 / s, -1 / s**2
    )
    derivatives(lambda s: ours.quad(lambda x: x**s, 1.0, 0.0)[0], s, -1 / (1 + s), 1 / (1 + s) ** 2)


def test_singular_ends():
    """x^(-s): the derivative is more singular than the integral, so it is less accurate."""
    s = 0.4
    derivatives(
        lambda s: ours.quad(lambda x: x**-s, 0.0, 1.0)[0],
        s,
        1 / (1 - s),
        1 / (1 - s) ** 2,
        rtol=1e-7,
    )


def test_derivatives_with_respect_to_limits():
    e = np.exp(1.2)
    derivatives(lambda b: ours.quad(np.exp, 0.0, b)[0], 1.2, e - 1.0, e, e)
    derivatives(lambda a: ours.quad(np.exp, a, 2.0)[0], 1.2, np.exp(2.0) - e, -e, -e)
    derivatives(lambda b: ours.quad(np.exp, 2.0, b)[0], 1.2, e - np.exp(2.0), e, e)
    derivatives(lambda b: ours.quad(np.exp, b, b)[0], 1.2, 0.0, 0.0)
    both = lambda b: ours.quad(lambda x: np.sin(b * x), 0.0, b)[0]  # noqa: E731
    wg.check_grads(both, (np.float64(1.3),), order=2, entries=False)
    # A jump inside moves nothing but the integral.
    step = lambda b: ours.quad(lambda x: 3.0 if x > 0.5 else 1.0, 0.0, b, points=[0.5])[0]  # noqa: E731
    derivatives(step, 1.0, 2.0, 3.0)


def test_without_tensors_scipy_is_called():
    f = lambda x: np.exp(-x * x)  # noqa: E731
    assert ours.quad(f, 0.0, 1.0) == theirs.quad(f, 0.0, 1.0)
    assert ours.quad(f, 0.0, 1.0, full_output=1)[0] == theirs.quad(f, 0.0, 1.0)[0]
    assert ours.quad_vec(lambda x: np.array([x, 1.0]), 0, 1)[0][0] == pytest.approx(0.5)
    assert ours.dblquad(lambda y, x: x * y, 0, 1, 0, 1)[0] == pytest.approx(0.25)


def test_several_variables_and_arrays():
    derivatives(
        lambda r: ours.dblquad(lambda y, x: x * y, 0.0, r, 0.0, lambda x: x)[0], 2.0, 2.0, 4.0, 6.0
    )
    f = lambda s: ours.quad_vec(lambda x: np.exp(s * x), 0.0, 1.0)[0]  # noqa: E731
    wg.check_grads(f, (np.array([0.4, -1.3]),), order=1, entries=False)
    want = theirs.quad_vec(lambda x: np.exp(np.array([0.4, -1.3]) * x), 0.0, 1.0)[0]
    np.testing.assert_allclose(wg.vjp(f, np.array([0.4, -1.3]))[0], want, rtol=1e-12)


def test_hard_integrands():
    """Peaks and oscillations need many intervals."""
    derivatives(
        lambda s: ours.quad(lambda x: s / (s * s + x * x), -1.0, 2.0)[0],
        1e-3,
        np.arctan(1e3) + np.arctan(2e3),
        -1.0 / (1 + 1e-6) - 2.0 / (4 + 1e-6),
        rtol=1e-7,
    )
    derivatives(
        lambda s: ours.quad(lambda x: np.cos(s * x), 0.0, 1.0, limit=200)[0],
        300.0,
        np.sin(300.0) / 300.0,
        (300.0 * np.cos(300.0) - np.sin(300.0)) / 9e4,
        rtol=1e-8,
    )


def test_errors():
    with pytest.raises(wg.errors.TraceError, match="fixed_quad"):
        wg.jit(lambda s: ours.quad(lambda x: np.exp(-s * x), 0.0, 1.0)[0])(1.0)
    with pytest.raises(wg.errors.TraceError, match="fixed_quad"):
        wg.trace(lambda b: ours.quad(np.exp, 0.0, b)[0])(1.0)
    with pytest.raises(wg.errors.ArgumentError, match="weight"):
        wg.grad(lambda s: ours.quad(lambda x: s * x, 0, 1, weight="cos", wvar=1.0)[0])(1.0)
    with pytest.raises(wg.errors.OperandError, match="not finite"):
        wg.grad(lambda a: ours.quad(lambda x: 1.0 / np.sqrt(x), a, 1.0)[0])(0.0)
