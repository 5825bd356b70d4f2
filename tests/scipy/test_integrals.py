"""Integrals of functions with tensors: values and derivatives against SciPy and closed forms."""

import math
import threading
import warnings

import numpy as np
import pytest
import scipy.integrate as theirs
from scipy import LowLevelCallable

import wengert as wg
from wengert.errors import ArgumentError, NotDifferentiableError, OperandError
from wengert.scipy import integrate as ours
from wengert.testing import check_grads

MODES = pytest.mark.parametrize("compiled", [False, True], ids=["eager", "jit"])

COMPILED = pytest.mark.parametrize(  # eager ones have longer tests of their own above
    "compiled", [pytest.param(False, marks=pytest.mark.slow), True], ids=["eager", "jit"]
)


def mode(compiled, f):
    return wg.jit(f) if compiled else f


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


# ---- SciPy's test integrals, each with a parameter -----------------------------------------------

OMEGA = 2.0**3.4
A_CAUCHY = 0.4


def bessel(n, z):
    return ours.quad(lambda x: np.cos(n * x - z * np.sin(x)) / np.pi, 0.0, np.pi)[0]


def euler(s):
    return ours.quad(lambda x: -np.exp(-s * x) * np.log(x), 0.0, np.inf)[0]


def sine_finite(a, w):
    return ours.quad(lambda x: np.exp(a * (x - 1)), 0.0, 1.0, weight="sin", wvar=w)[0]


def sine_infinite(a, w):
    return ours.quad(lambda x: np.exp(-x * a), 0.0, np.inf, weight="sin", wvar=w)[0]


def cosine_infinite(a, w):
    return ours.quad(lambda x: np.exp(x * a), -np.inf, 0.0, weight="cos", wvar=w)[0]


def algebraic(a):
    return ours.quad(
        lambda x: 1 / (1 + x + 2.0 ** (-a)), -1.0, 1.0, weight="alg", wvar=(-0.5, -0.5)
    )[0]


def cauchy(a, c):
    return ours.quad(
        lambda x: 2.0 ** (-a) / ((x - 1) ** 2 + 4.0 ** (-a)), 0.0, 5.0, weight="cauchy", wvar=c
    )[0]


def pieces(s):
    def f(x):
        return np.where(x < 2.5, np.sin(s * x), np.where(x <= 5.0, np.exp(-x), 0.0))

    return ours.quad(f, 0.0, 10.0, points=[2.5, 5.0])[0]


_SCIPYS = [
    (bessel, (2.0, 1.8), 0.30614353532540296487),
    (euler, (1.0,), 0.577215664901532860606512),
    (
        sine_finite,
        (20.0, OMEGA),
        (20 * np.sin(OMEGA) - OMEGA * np.cos(OMEGA) + OMEGA * np.exp(-20)) / (400 + OMEGA**2),
    ),
    (sine_infinite, (4.0, 3.0), 3.0 / 25.0),
    (cosine_infinite, (2.5, 2.3), 2.5 / (2.5**2 + 2.3**2)),
    (algebraic, (1.5,), np.pi / np.sqrt((1 + 2**-1.5) ** 2 - 1)),
    (
        cauchy,
        (A_CAUCHY, 2.0),
        (
            2**-0.4 * np.log(1.5)
            - 2**-1.4 * np.log((4**-0.4 + 16) / (4**-0.4 + 1))
            - np.arctan(2 ** (0.4 + 2))
            - np.arctan(2**0.4)
        )
        / (4**-0.4 + 1),
    ),
    (pieces, (1.0,), 1 - np.cos(2.5) + np.exp(-2.5) - np.exp(-5.0)),
]


@pytest.mark.sample(6)
@MODES
@pytest.mark.parametrize(("f", "at", "expected"), _SCIPYS, ids=[f.__name__ for f, _, _ in _SCIPYS])
def test_scipys_test_integrals(f, at, expected, compiled):
    """Values are exact; derivatives equal differences of whole integrals."""
    value = mode(compiled, f)
    np.testing.assert_allclose(value(*at), expected, rtol=1e-9)
    np.testing.assert_allclose(wg.vjp(value, *at)[0], expected, rtol=1e-9)
    check_grads(value, at, order=1)


def test_order_two_of_weights():
    """The weight of a second derivative is SciPy's, too, or it is refused."""
    f = lambda s, w: ours.quad(lambda x: np.exp(-s * x * x), 0.0, 2.0, weight="cos", wvar=w)[0]  # noqa: E731
    check_grads(f, (0.8, 2.0), order=2)
    g = lambda p: ours.quad(np.cos, 0.0, 1.0, weight="alg", wvar=(p, 0.3))[0]  # noqa: E731
    check_grads(g, (0.4,), order=1)
    with pytest.raises(NotDifferentiableError, match="Include the weight"):
        wg.grad(wg.grad(g))(0.4)


@pytest.mark.sample(1)
@MODES
def test_limits_and_weights(compiled):
    """Limits of weighted integrals, in either order."""
    for weight, parameter in (("cos", 2.0), ("sin", 2.0), ("cauchy", 1.1), ("alg", (0.4, -0.3))):
        for b in (2.0, 0.1):
            if weight == "cauchy" and b < 1.1:
                continue

            def f(a, p, weight=weight, b=b):
                return ours.quad(np.exp, a, b, weight=weight, wvar=p)[0]

            plain = theirs.quad(np.exp, 0.3, b, weight=weight, wvar=parameter)[0]
            np.testing.assert_allclose(wg.vjp(mode(compiled, f), 0.3, parameter)[0], plain)
            check_grads(mode(compiled, f), (0.3, parameter), order=1)


@COMPILED
def test_arrays_as_parameters(compiled):
    """Captured arrays: one integral for each element, or one of a vector for many elements."""
    for n in (3, 40):
        a = np.linspace(0.1, 1.0, n)
        f = lambda s, a: ours.quad(lambda x: np.exp(-s * x) * np.sum(np.cos(a * x)), 0, np.inf)[0]  # noqa: E731
        s = 1.3
        expected = -2 * s * a / (s * s + a * a) ** 2
        np.testing.assert_allclose(mode(compiled, f)(s, a), np.sum(s / (s * s + a * a)), rtol=1e-9)
        found = mode(compiled, wg.grad(f, argnums=1))(s, a)
        np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-9)
        tangent = wg.jvp(mode(compiled, lambda a, f=f, s=s: f(s, a)), (a,), (a,))[1]
        np.testing.assert_allclose(tangent, expected @ a, rtol=1e-7)
    check_grads(mode(compiled, f), (1.3, a[:3]), order=2)


@MODES
def test_batches(compiled):
    """`vmap` integrates one after another."""
    f = lambda s, b: ours.quad(lambda x: np.exp(-s * x), 0.0, b)[0]  # noqa: E731
    s, b = np.array([0.5, 1.0, 2.0]), np.array([1.0, np.inf, 3.0])
    slopes = mode(compiled, wg.vmap(wg.grad(f, argnums=(0, 1))))(s, b)
    for k in range(3):
        expected = wg.grad(f, argnums=(0, 1))(s[k], b[k])
        np.testing.assert_allclose([slopes[0][k], slopes[1][k]], expected, rtol=1e-10)
    np.testing.assert_allclose(slopes[0][1], -1.0, rtol=1e-8)
    assert slopes[1][1] == 0.0


@COMPILED
def test_nested_integrals(compiled):
    """Limits that are functions of outer variables, and of parameters."""

    def double(r, s):
        return ours.dblquad(
            lambda y, x: np.exp(-s * x * y), 0.0, r, lambda x: x * s, lambda x: 2 * x + s
        )[0]

    plain = theirs.dblquad(
        lambda y, x: np.exp(-0.7 * x * y), 0.0, 1.2, lambda x: 0.7 * x, lambda x: 2 * x + 0.7
    )[0]
    np.testing.assert_allclose(wg.vjp(mode(compiled, double), 1.2, 0.7)[0], plain, rtol=1e-12)
    check_grads(mode(compiled, double), (1.2, 0.7), order=1)

    def triple(s):
        return ours.tplquad(
            lambda z, y, x: s * x * y * z, 0, 1, 0, lambda x: x, 0, lambda x, y: x * y * s
        )[0]

    # s^3 x^3 y^3 / 2 over the triangle
    np.testing.assert_allclose(mode(compiled, wg.grad(triple))(1.5), 3 * 1.5**2 / 64, rtol=1e-9)

    def many(s, t):
        ranges = [(0.0, t), lambda z, c: (0.0, z * s), (0.0, 1.0)]
        return ours.nquad(lambda x, y, z, c: c * np.exp(-x * s) * y * z, ranges, (t,))[0]

    plain = theirs.nquad(
        lambda x, y, z: 0.6 * np.exp(-x * 1.1) * y * z,
        [(0.0, 0.6), lambda z: (0.0, z * 1.1), (0.0, 1.0)],
    )[0]
    np.testing.assert_allclose(wg.vjp(mode(compiled, many), 1.1, 0.6)[0], plain, rtol=1e-12)
    check_grads(mode(compiled, many), (1.1, 0.6), order=1)


@COMPILED
def test_vectors(compiled):
    """quad_vec: arrays, also complex ones, to order two."""
    s = np.array([0.4, 1.0])
    f = lambda s, a, b: ours.quad_vec(lambda x: np.exp(-s * x), a, b)[0]  # noqa: E731
    np.testing.assert_allclose(
        mode(compiled, f)(s, 0.3, 1.2), (np.exp(-0.3 * s) - np.exp(-1.2 * s)) / s, rtol=1e-12
    )
    check_grads(mode(compiled, f), (s, 0.3, 1.2), order=2)
    wave = lambda s, a: ours.quad_vec(lambda x: np.exp(1j * s * x), a, 2.0)[0]  # noqa: E731
    check_grads(mode(compiled, wave), (s, 0.3), order=1)
    odd = lambda s: ours.quad_vec(lambda x: np.array([s * x**3, np.sin(s * x)]), -1.0, 1.0)[0]  # noqa: E731
    np.testing.assert_allclose(mode(compiled, wg.jacobian(odd))(0.7), 0.0, atol=1e-14)
    matrix = lambda s: ours.quad_vec(lambda x: np.outer(np.cos(s * x), s), 0.0, 1.0)[0]  # noqa: E731
    check_grads(mode(compiled, matrix), (s,), order=1)


@COMPILED
def test_boxes(compiled):
    """Integrals over boxes: parameters, and limits."""
    k = np.array([1.0, 2.0])

    def wave(k, high):
        return ours.cubature(
            lambda x: np.stack([np.cos(x @ k), np.sin(x @ k)], -1), [0.0, 0.0], high
        ).estimate

    plain = theirs.cubature(
        lambda x: np.stack([np.cos(x @ k), np.sin(x @ k)], -1), [0.0, 0.0], k + 0.3
    ).estimate
    np.testing.assert_allclose(wg.vjp(mode(compiled, wave), k, k + 0.3)[0], plain, rtol=1e-12)
    check_grads(mode(compiled, wave), (k, k + 0.3), order=1)
    fixed = lambda k: ours.cubature(lambda x: np.cos(x @ k), [0, 0], [1, 1]).estimate  # noqa: E731
    check_grads(mode(compiled, fixed), (k,), order=2)

    def bell(s):
        ends = np.array([np.inf, np.inf])
        return ours.cubature(lambda x: np.exp(-s * np.sum(x * x, -1)), -ends, ends).estimate

    np.testing.assert_allclose(mode(compiled, wg.grad(bell))(2.0), -np.pi / 4, rtol=1e-9)


@COMPILED
def test_double_exponential(compiled):
    """tanhsinh: singular ends, arrays of limits and arguments."""
    from scipy.special import beta, digamma

    def euler_beta(p):
        return ours.tanhsinh(lambda x: x ** (p - 1) / np.sqrt(1 - x), 0.0, 1.0).integral

    expected = beta(1.5, 0.5) * (digamma(1.5) - digamma(2.0))
    np.testing.assert_allclose(mode(compiled, wg.grad(euler_beta))(1.5), expected, rtol=1e-9)
    s, b = np.array([0.4, 1.0]), np.array([[1.0], [2.0], [3.0]])
    f = lambda s, b: ours.tanhsinh(lambda x, s: np.exp(-s * x * x), 0.0, b, args=(s,)).integral  # noqa: E731
    plain = theirs.tanhsinh(lambda x, s: np.exp(-s * x * x), 0.0, b, args=(s,)).integral
    np.testing.assert_allclose(mode(compiled, f)(s, b), plain, rtol=1e-13)
    check_grads(mode(compiled, f), (s, b), order=1)
    captured = lambda a: ours.tanhsinh(lambda x: np.exp(-x * a[0]) + x ** a[1], 0, 1.0).integral  # noqa: E731
    check_grads(mode(compiled, captured), (np.array([1.0, 3.0]),), order=2)


def test_complex_functions():
    """Real and imaginary parts are integrals of their own."""
    f = lambda s: ours.quad(lambda x: np.exp(1j * s * x), 0.0, 1.0, complex_func=True)[0]  # noqa: E731
    plain = theirs.quad(lambda x: np.exp(1.2j * x), 0.0, 1.0, complex_func=True)[0]
    np.testing.assert_allclose(wg.vjp(f, 1.2)[0], plain, rtol=1e-12)
    check_grads(f, (1.2,), order=2)
    with pytest.raises(ArgumentError, match="complex_func"):
        wg.grad(lambda s: np.real(ours.quad(lambda x: np.exp(1j * s * x), 0.0, 1.0)[0]))(1.2)


def test_results():
    """Errors of values and SciPy's further results; the error has no derivative."""
    seen = []

    def f(s):
        seen.append(ours.quad(lambda x: np.exp(-s * x), 0.0, 1.0, full_output=1))
        return seen[0][0] + 1e6 * seen[0][1]

    assert wg.grad(f)(1.5) == pytest.approx(wg.grad(lambda s: (1 - np.exp(-s)) / s)(1.5))
    value, error, info = seen[0]
    plain = theirs.quad(lambda x: np.exp(-1.5 * x), 0.0, 1.0, full_output=1)
    assert value.item() == pytest.approx(plain[0], rel=1e-14)
    assert error.item() == pytest.approx(plain[1], rel=1e-2)
    assert info["neval"] == plain[2]["neval"] == 21
    in_graph = wg.jit(lambda s: ours.quad(lambda x: np.exp(-s * x), 0.0, 1.0, full_output=1))
    assert int(in_graph(1.5)[2]["neval"]) == 21


def test_functions_that_cannot_be_traced():
    """Code that takes plain numbers only is sampled outside of graphs, and refused in them."""
    spline = __import__("scipy.interpolate").interpolate.CubicSpline([0, 1, 2, 3], [1, 2, 0, 5])
    f = lambda s: ours.quad(lambda x: s * s * spline(x), 0.0, 3.0)[0]  # noqa: E731
    np.testing.assert_allclose(wg.grad(f)(1.5), 3.0 * spline.integrate(0, 3), rtol=1e-9)
    with pytest.raises(wg.errors.WengertError):
        wg.jit(f)(1.5)


@MODES
def test_warnings_name_the_derivative(compiled):
    """SciPy's warning is kept; that of a derivative says so."""
    f = lambda s: ours.quad(lambda x: np.sin(s * x) / x, 1.0, np.inf)[0]  # noqa: E731
    with pytest.warns(theirs.IntegrationWarning, match="^quad: "):
        mode(compiled, f)(np.float64(1.0)) if compiled else wg.vjp(f, 1.0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        mode(compiled, wg.grad(f))(1.0)
    assert any(str(w.message).startswith("the derivative of quad: ") for w in caught)
    # The integral exists, that of the derivative does not.
    g = lambda s: ours.quad(lambda x: x ** (s - 1.0), 0.0, 1.0)[0]  # noqa: E731
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.testing.assert_allclose(wg.vjp(mode(compiled, g), 0.7)[0], 1 / 0.7)
    h = lambda s: ours.quad_vec(lambda x: np.array([np.abs(x - s) ** 0.2]), 0.0, 1.0, limit=30)[0]  # noqa: E731
    with pytest.warns(theirs.IntegrationWarning, match="^the derivative of quad_vec: "):
        mode(compiled, wg.jacobian(h))(0.3)


class Stop(Exception):
    """Raised by an integrand."""


@MODES
@pytest.mark.parametrize("error", [Stop, KeyboardInterrupt])
def test_exceptions_pass(error, compiled):
    """What a function raises while it is integrated is raised."""

    @wg.extend.opaque(name=f"raises_{error.__name__}_{compiled}")
    def fails(x):
        if not isinstance(x, wg.Tensor) and float(x) > 0.9:
            raise error("here")
        return x

    fails.define_vjp(lambda t, out, x: (t,))
    fails.spec(lambda x: wg.spec((), float))
    f = lambda s: ours.quad(lambda x: s * fails(x), 0.0, 1.0)[0]  # noqa: E731
    with pytest.raises(error, match="here"):
        mode(compiled, f)(1.0) if compiled else wg.vjp(f, 1.0)
    assert wg.grad(lambda s: ours.quad(lambda x: s * x, 0.0, 1.0)[0])(1.0) == pytest.approx(0.5)


def test_errors_of_machine_code_are_raised():
    """An index out of range in machine code gives NaN; the function is called again by Python."""
    table = np.arange(5.0)
    f = wg.jit(
        lambda s: ours.quad(lambda x: s * np.take(table, np.floor(x).astype(int)), 0.0, 8.0)[0]
    )
    with pytest.raises(IndexError):
        f(1.0)


def test_threads():
    """Integrals in several threads have their own parameters."""
    f = wg.jit(wg.grad(lambda s: ours.quad(lambda x: np.exp(-s * x), 0.0, np.inf)[0]))
    f(1.0)
    found = {}

    def run(s):
        found[s] = [f(s) for _ in range(20)]

    threads = [threading.Thread(target=run, args=(s,)) for s in (0.5, 1.0, 2.0)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for s, values in found.items():
        np.testing.assert_allclose(values, -1 / s**2, rtol=1e-8)


def test_refused_arguments():
    """Arguments that are not supported with tensors are named."""
    f = lambda x: np.exp(-x)  # noqa: E731
    with pytest.raises(ArgumentError, match="an integral for each side"):
        wg.grad(lambda p: ours.quad(f, 0.0, 1.0, points=[p])[0])(0.5)
    with pytest.raises(ArgumentError, match="wopts"):
        wg.grad(
            lambda s: ours.quad(f, 0.0, s, weight="cos", wvar=1.0, wopts=(1, np.ones((25, 1))))[0]
        )(0.5)
    with pytest.raises(ArgumentError, match="logarithm"):
        wg.grad(lambda s: ours.quad(f, 0.0, s, weight="alg-loga", wvar=(0.1, 0.2))[0])(0.5)
    pointer = wg.jit(np.exp).address(0.0)
    with pytest.raises(ArgumentError, match="Pass a Python function"):
        wg.grad(lambda s: ours.quad(LowLevelCallable(pointer.function), 0.0, s)[0])(0.5)
    with pytest.raises(ValueError, match="not a recognized weighting"):
        wg.grad(lambda s: ours.quad(f, 0.0, s, weight="tan", wvar=1.0)[0])(0.5)
    with pytest.raises(ArgumentError, match="workers"):
        wg.grad(lambda s: ours.quad_vec(f, 0.0, s, workers=2)[0])(0.5)
    with pytest.raises(ArgumentError, match="full_output"):
        wg.grad(lambda s: ours.nquad(f, [(0.0, s)], full_output=True)[0])(0.5)
    with pytest.raises(ArgumentError, match="log=True"):
        wg.grad(lambda s: ours.tanhsinh(f, 0.0, s, log=True).integral)(0.5)
    with pytest.raises(ArgumentError, match="must be finite"):
        wg.grad(lambda b: ours.cubature(lambda x: np.exp(-x[:, 0]), [0.0], b).estimate)(
            np.array([np.inf])
        )
    with pytest.raises(wg.errors.DtypeError, match="must be real"):
        wg.grad(lambda b: np.real(ours.quad(f, 0.0, b)[0]))(1.0 + 1.0j)
    with pytest.raises(OperandError, match="not finite"):
        wg.grad(lambda a: ours.quad(lambda x: 1.0 / np.sqrt(x), a, 1.0)[0])(0.0)
    with pytest.raises(wg.errors.ShapeError, match="quad_vec"):
        wg.grad(lambda s: ours.quad(lambda x: s * np.array([x, x]), 0.0, 1.0)[0])(0.5)


def test_machine_code_is_called():
    """SciPy gets machine code for integrands that do not call Python."""
    from wengert.scipy.integrate import integrands

    f = wg.jit(lambda s, a: ours.quad(lambda x: s * np.sum(a * np.sqrt(x)), 0.0, 1.0)[0])
    f(1.0, np.ones(3))
    code = next(reversed(integrands._compiled.values()))
    assert "LowLevelCallable" in type(code.number([np.float64(1.0), np.ones(3)])).__name__
