"""Bracketing methods in graphs: the bits, counts and errors of SciPy's functions."""

import numpy as np
import pytest
import scipy.optimize

import wengert as wg
from wengert.errors import ConvergenceError
from wengert.scipy import optimize

METHODS = ("brentq", "brenth", "ridder", "bisect")


def cubic(x, c):
    return ((x * c[0] + c[1]) * x + c[2]) * x + c[3]


def rational(x, c):
    return (x - c[0]) / (1.0 + abs(c[1]) + x * x) + 0.01 * c[2]


def flat(x, c):
    return (x - c[0]) * (x - c[0]) * (x - c[0]) * (x - c[0]) * (x - c[0])


def steep(x, c):
    return (x - c[0]) * 1e100 + (x - c[0]) / (abs(x - c[0]) + 1e-300)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("function", [cubic, rational, flat, steep])
@pytest.mark.sample(4)  # each method, and each function
def test_equal_to_scipy_to_the_last_bit(method, function):
    """Roots, numbers of steps and of calls, for many functions, intervals and tolerances."""
    rng = np.random.default_rng(METHODS.index(method))

    for options in ({}, {"xtol": 1e-3, "rtol": 1e-2}, {"maxiter": 4}):

        def run(c, a, b, options=options):
            r = optimize.root_scalar(
                lambda x: function(x, c), bracket=[a, b], method=method, **options
            )
            return r.root, r.iterations, r.function_calls, r.converged

        compiled = wg.jit(run)
        count = 0
        while count < 60:
            c, (a, b) = rng.normal(size=4), 3.0 * rng.normal(size=2)
            if count % 10 == 0:
                c[0] = np.round(c[0])
            if function(a, c) * function(b, c) > 0.0:
                continue
            count += 1
            want = scipy.optimize.root_scalar(
                lambda x, c=c: function(x, c), bracket=[a, b], method=method, **options
            )
            got = compiled(c, a, b)
            assert got[0] == want.root
            assert got[1:] == (want.iterations, want.function_calls, want.converged)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.sample(2)
def test_roots_at_the_ends(method):
    """A root at an end of the interval is found without a step."""
    f = wg.jit(
        lambda a, b: optimize.root_scalar(lambda x: x - a, bracket=[a, b], method=method).root
    )
    assert f(1.0, 2.0) == 1.0
    assert f(2.0, 1.0) == 2.0

    def with_counts(a):
        root, found = getattr(optimize, method)(lambda x: x - a, a - 1.0, a, full_output=True)
        return root, found.iterations, found.function_calls, found.converged

    assert wg.jit(with_counts)(3.0) == (3.0, 0, 2, True)


@pytest.mark.sample(2)
@pytest.mark.parametrize("method", METHODS)
def test_derivatives(method):
    """Both modes and order two, compiled and in batches."""

    def root(a):
        return getattr(optimize, method)(lambda x: x**3 + x - a, -10.0, 10.0, xtol=1e-13)

    a = np.array([0.5, 3.0, 20.0])
    x = wg.jit(wg.vmap(root))(a)
    slope = 1.0 / (3.0 * x**2 + 1.0)
    np.testing.assert_allclose(x**3 + x, a, rtol=1e-12)
    np.testing.assert_allclose(wg.jit(wg.vmap(wg.grad(root)))(a), slope, rtol=1e-11)
    forward = wg.vmap(lambda a: wg.jvp(root, (a,), (1.0,))[1])
    np.testing.assert_allclose(wg.jit(forward)(a), slope, rtol=1e-11)
    second = wg.jit(wg.vmap(wg.grad(wg.grad(root))))(a)
    np.testing.assert_allclose(second, -6.0 * x * slope**3, rtol=1e-9)


def test_without_python():
    """The compiled program contains no host callback: the function is part of the loop."""
    f = lambda a: optimize.brentq(lambda x: x * x - a, 0.0, 9.0)  # noqa: E731
    np.testing.assert_allclose(wg.jit(f, host_callbacks="forbid")(4.0), 2.0)
    many = wg.jit(wg.vmap(f), host_callbacks="forbid")
    np.testing.assert_allclose(many(np.array([1.0, 4.0, 16.0])), [1.0, 2.0, 4.0])


@pytest.mark.sample(2)
@pytest.mark.parametrize("method", METHODS)
def test_errors(method):
    """Equal signs, NaN, options and no convergence, as in SciPy."""

    def root(a, **options):
        return getattr(optimize, method)(lambda x: np.sqrt(x) - a, 0.25, 4.0, **options)

    f, g = wg.jit(root), wg.jit(wg.vmap(root))
    assert abs(f(1.0) - 1.0) < 1e-11
    with pytest.raises(ValueError, match="different signs"):
        f(5.0)
    with pytest.raises(ValueError, match="different signs"):
        g(np.array([1.0, 5.0]))
    with pytest.raises(ValueError, match="NaN"):
        f(np.nan)
    inside = wg.jit(
        lambda a: getattr(optimize, method)(lambda x: x / np.sqrt(np.abs(x) - a), -4.0, 5.0)
    )
    with pytest.raises(ValueError, match="NaN"):
        inside(3.9)
    for options in ({"xtol": -1.0}, {"rtol": 1e-20}):
        with pytest.raises(ValueError, match="too small"):
            wg.jit(lambda a, o=options: root(a, **o))(1.0)
    slow = wg.jit(lambda a: root(a, maxiter=1, disp=False))
    want = getattr(scipy.optimize, method)(
        lambda x: np.sqrt(x) - 1.2, 0.25, 4.0, maxiter=1, disp=False
    )
    assert slow(1.2) == want
    with pytest.raises(ConvergenceError, match="did not converge"):
        wg.jit(wg.grad(lambda a: root(a, maxiter=1)))(1.2)
