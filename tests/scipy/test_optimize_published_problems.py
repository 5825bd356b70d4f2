"""Published test problems by the solvers: known solutions, and values of derivatives.

Sources: J. J. More, B. S. Garbow, K. E. Hillstrom, "Testing unconstrained optimization software",
1981; W. Hock, K. Schittkowski, "Test examples for nonlinear programming codes", 1981;
G. E. Alefeld, F. A. Potra, Y. Shi, algorithm 748, 1995; NIST, Statistical Reference Datasets.
"""

import numpy as np
import pytest

import wengert as wg
from wengert.errors import ConvergenceError
from wengert.scipy import optimize

MODES = pytest.mark.parametrize("compiled", [False, True], ids=["eager", "jit"])

# name: function of x, start, minimum
UNCONSTRAINED = {
    "Rosenbrock": (
        lambda x: (10.0 * (x[1] - x[0] ** 2)) ** 2 + (1.0 - x[0]) ** 2, [-1.2, 1.0], [1.0, 1.0],
    ),
    "Beale": (
        lambda x: np.sum(
            (np.array([1.5, 2.25, 2.625]) - x[0] * (1.0 - x[1] ** np.array([1.0, 2.0, 3.0]))) ** 2
        ),
        [2.0, 0.2], [3.0, 0.5],
    ),
    "Booth": (
        lambda x: (x[0] + 2 * x[1] - 7) ** 2 + (2 * x[0] + x[1] - 5) ** 2, [0.0, 0.0], [1.0, 3.0],
    ),
    "Himmelblau": (
        lambda x: (x[0] ** 2 + x[1] - 11) ** 2 + (x[0] + x[1] ** 2 - 7) ** 2,
        [2.5, 2.5], [3.0, 2.0],
    ),
    "Wood": (
        lambda x: 100 * (x[1] - x[0] ** 2) ** 2 + (1 - x[0]) ** 2 + 90 * (x[3] - x[2] ** 2) ** 2
        + (1 - x[2]) ** 2 + 10 * (x[1] + x[3] - 2) ** 2 + 0.1 * (x[1] - x[3]) ** 2,
        [0.5, 0.5, 0.5, 0.5], [1.0, 1.0, 1.0, 1.0],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", UNCONSTRAINED)
@pytest.mark.parametrize("method", ["bfgs", "newton-cg", "trust-exact"])
@pytest.mark.sample(len(UNCONSTRAINED))
def test_minima(name, method):
    """The published minimum; shifted by a parameter, it moves with it."""
    f, start, minimum = UNCONSTRAINED[name]

    def lowest(p):
        return optimize.minimize(lambda x: f(x - p), np.array(start) + p, method=method)

    shift = 0.1 * np.arange(len(start))
    moved, tangent = wg.jit(lambda p: wg.jvp(lambda p: lowest(p).x, (p,), (np.ones(len(start)),)))(
        shift
    )
    np.testing.assert_allclose(moved, minimum + shift, atol=2e-4)
    np.testing.assert_allclose(tangent, 1.0, atol=1e-4)


# name: objective, inequalities (not negative), equalities, start, minimum, minimal value
CONSTRAINED = {
    "HS 6": (lambda x: (1 - x[0]) ** 2, None, lambda x: 10 * (x[1] - x[0] ** 2), [-1.2, 1.0],
             [1.0, 1.0], 0.0),
    "HS 7": (lambda x: np.log(1 + x[0] ** 2) - x[1], None,
             lambda x: (1 + x[0] ** 2) ** 2 + x[1] ** 2 - 4, [2.0, 2.0], [0.0, 3**0.5], -(3**0.5)),
    "HS 28": (lambda x: (x[0] + x[1]) ** 2 + (x[1] + x[2]) ** 2, None,
              lambda x: x[0] + 2 * x[1] + 3 * x[2] - 1, [-4.0, 1.0, 1.0], [0.5, -0.5, 0.5], 0.0),
    "HS 35": (
        lambda x: 9 - 8 * x[0] - 6 * x[1] - 4 * x[2] + 2 * x[0] ** 2 + 2 * x[1] ** 2 + x[2] ** 2
        + 2 * x[0] * x[1] + 2 * x[0] * x[2],
        lambda x: 3 - x[0] - x[1] - 2 * x[2], None, [0.5, 0.5, 0.5], [4 / 3, 7 / 9, 4 / 9], 1 / 9),
    "HS 43": (
        lambda x: x[0] ** 2 + x[1] ** 2 + 2 * x[2] ** 2 + x[3] ** 2 - 5 * x[0] - 5 * x[1]
        - 21 * x[2] + 7 * x[3],
        lambda x: np.stack([
            8 - x @ x - x[0] + x[1] - x[2] + x[3],
            10 - x[0] ** 2 - 2 * x[1] ** 2 - x[2] ** 2 - 2 * x[3] ** 2 + x[0] + x[3],
            5 - 2 * x[0] ** 2 - x[1] ** 2 - x[2] ** 2 - 2 * x[0] + x[1] + x[3],
        ]), None, [0.0, 0.0, 0.0, 0.0], [0.0, 1.0, 2.0, -1.0], -44.0),
}  # fmt: skip


@MODES
@pytest.mark.parametrize("name", CONSTRAINED)
@pytest.mark.sample(len(CONSTRAINED))
def test_constrained_minima(name, compiled):
    """The published minimum, moved and scaled by parameters."""
    f, inequality, equality, start, minimum, value = CONSTRAINED[name]

    tol = 1e-8 if name == "HS 7" else 1e-12  # SLSQP does not end with less, in SciPy neither

    def lowest(p):
        limits = [
            {"type": kind, "fun": lambda x, g=g: g(x - p)}
            for kind, g in (("ineq", inequality), ("eq", equality))
            if g is not None
        ]
        return optimize.minimize(
            lambda x: np.exp(p) * f(x - p), np.array(start), constraints=limits, tol=tol
        )

    mode = wg.jit if compiled else lambda g: g
    moved, tangent = mode(lambda p: wg.jvp(lambda p: lowest(p).x, (p,), (1.0,)))(0.1)
    np.testing.assert_allclose(moved, np.array(minimum) + 0.1, atol=1e-5)
    np.testing.assert_allclose(tangent, 1.0, atol=1e-4)
    found, slope = mode(wg.value_and_grad(lambda p: lowest(p).fun))(0.1)
    np.testing.assert_allclose([found, slope], np.exp(0.1) * value, rtol=1e-7, atol=1e-6)


# name: function of x and n, interval, root for n = 5 (None: known as zero of the function only)
ROOTS = {
    "x**n - 1/2": (lambda x, n: x**n - 0.5, (0.0, 1.0), lambda n: 0.5 ** (1 / n)),
    "1 + (1 - n)**2) x - (1 - n x)**2": (
        lambda x, n: (1 + (1 - n) ** 2) * x - (1 - n * x) ** 2, (0.0, 1.0), None),
    "exp(-n x)(x - 1) + x**n": (lambda x, n: np.exp(-n * x) * (x - 1) + x**n, (0.0, 1.0), None),
    "(n x - 1) / ((n - 1) x)": (lambda x, n: (n * x - 1) / ((n - 1) * x), (0.01, 1.0),
                                lambda n: 1 / n),
    "x**(1/n) - n**(1/n)": (lambda x, n: x ** (1 / n) - n ** (1 / n), (1.0, 100.0), lambda n: n),
}  # fmt: skip


@pytest.mark.parametrize("name", ROOTS)
@pytest.mark.parametrize("method", ["brentq", "brenth", "ridder", "bisect", "toms748"])
@pytest.mark.sample(len(ROOTS))
def test_roots(name, method):
    """Roots of Alefeld, Potra and Shi, and their derivatives with respect to the parameter."""
    f, (low, high), known = ROOTS[name]

    def root(n):
        return getattr(optimize, method)(lambda x: f(x, n), low, high, xtol=1e-13)

    x, slope = wg.jit(wg.value_and_grad(root))(5.0)
    assert abs(f(x, 5.0)) < 1e-10
    if known is not None:
        np.testing.assert_allclose([x, slope], [known(5.0), wg.grad(known)(5.0)], rtol=1e-9)
    difference = (root(5.0 + 1e-4) - root(5.0 - 1e-4)) / 2e-4
    np.testing.assert_allclose(slope, difference, rtol=1e-5, atol=1e-9)


EQUATIONS = {
    "Powell singular, regular part": (
        lambda x: np.stack([x[0] + 10 * x[1], x[2] - x[3], x[1] - 2 * x[2] + 1, x[0] - x[3] - 11]),
        [3.0, -1.0, 0.0, 1.0]),
    "Broyden tridiagonal": (
        lambda x: (3 - 2 * x) * x - np.concatenate([0 * x[:1], x[:-1]])
        - 2 * np.concatenate([x[1:], 0 * x[:1]]) + 1, [-1.0] * 7),
    "trigonometric": (
        lambda x: len(x) - np.sum(np.cos(x)) + np.arange(1.0, 4.0) * (1 - np.cos(x)) - np.sin(x),
        [1 / 3] * 3),
    "Brown almost linear": (
        lambda x: np.concatenate(
            [x[:-1] + np.sum(x) - len(x) - 1, np.reshape(np.prod(x) - 1, (1,))]
        ),
        [0.5] * 4),
}  # fmt: skip


@pytest.mark.parametrize("name", EQUATIONS)
@pytest.mark.parametrize("method", ["hybr", "lm"])
def test_equations(name, method):
    """Systems of MINPACK: the residual is zero, and a shift of the unknowns moves the root."""
    f, start = EQUATIONS[name]
    found = lambda p: optimize.root(lambda x: f(x - p), np.array(start), method=method, tol=1e-12)  # noqa: E731
    if (name, method) == ("trigonometric", "lm"):  # ends at a minimum that is not a root
        assert not found(wg.tensor(0.0)).success
        with pytest.raises(ConvergenceError, match="did not converge"):
            wg.jacobian(lambda p: found(p).x)(0.0)
        return
    x, tangent = wg.jit(lambda p: wg.jvp(lambda p: found(p).x, (p,), (1.0,)))(0.0)
    np.testing.assert_allclose(f(x), 0.0, atol=1e-9)
    np.testing.assert_allclose(tangent, 1.0, rtol=1e-7)


MISRA = np.array([
    [10.07, 77.6], [14.73, 114.9], [17.94, 141.1], [23.93, 190.8], [29.61, 239.9], [35.18, 289.0],
    [40.02, 332.8], [44.82, 378.4], [50.76, 434.8], [55.05, 477.3], [61.01, 536.8], [66.40, 593.1],
    [75.47, 689.1], [81.78, 760.0],
])  # fmt: skip


@MODES
def test_certified_fit(compiled):
    """NIST's Misra1a: certified parameters and standard deviations; scaled data scale b1."""
    mode = wg.jit if compiled else lambda g: g

    def fit(scale):
        return optimize.curve_fit(
            lambda x, b1, b2: b1 * (1 - np.exp(-b2 * x)), MISRA[:, 1], scale * MISRA[:, 0],
            np.array([250.0, 0.0005]), ftol=1e-15, xtol=1e-15, gtol=1e-15,
        )  # fmt: skip

    (popt, pcov), (by_scale, _) = mode(lambda s: wg.jvp(fit, (s,), (1.0,)))(1.0)
    np.testing.assert_allclose(popt, [238.94212918, 5.5015643181e-4], rtol=1e-8)
    deviations = np.sqrt(np.diag(np.asarray(pcov)))
    np.testing.assert_allclose(deviations, [2.7070075241, 7.2668688436e-6], rtol=1e-6)
    np.testing.assert_allclose(by_scale, [238.94212918, 0.0], rtol=1e-6, atol=1e-9)
