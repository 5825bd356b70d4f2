"""What the tests of jaxopt, optimistix and lineax check of solutions, in terms of this package.

The numbers of the tests are in docs/solvers-tests.md.
"""

import numpy as np
import pytest
from scipy import optimize

import wengert as wg
from wengert.testing import check_grads

RNG = np.random.default_rng(42)
X, Y = RNG.normal(size=(20, 4)), RNG.normal(size=20)
COMPILED = pytest.mark.parametrize("compiled", [False, True], ids=["eager", "jit"])


def wrapped(f, compiled):
    return wg.jit(f) if compiled else f


# ---- jaxopt: implicit_diff_test ----------------------------------------------------------------


def ridge_slope(w, penalty, x, y):
    return x.T @ (x @ w - y) + penalty * w * len(y)


def ridge_by_hand(penalty, x=X, y=Y):
    return np.linalg.solve(x.T @ x + penalty * len(y) * np.eye(4), x.T @ y)


def ridge_solver(w, penalty, x, y):
    return np.linalg.solve(x.T @ x + penalty * len(y) * np.eye(4), x.T @ y)


@COMPILED
@pytest.mark.parametrize("mode", [wg.jacrev, wg.jacfwd])
def test_root_in_both_modes(mode, compiled):
    """Ridge regression: the derivative with respect to the penalty is that of the closed form."""
    solve = wg.implicit(ridge_solver, ridge_slope)
    f = wrapped(mode(lambda p: solve(np.zeros(4), p, X, Y)), compiled)
    np.testing.assert_allclose(f(0.3), mode(ridge_by_hand)(0.3), rtol=1e-10)


@COMPILED
def test_fixed_point(compiled):
    """The same as a fixed point of a step of gradient descent."""

    def step(w, penalty):
        return w - 0.01 * ridge_slope(w, penalty, X, Y)

    solve = wg.implicit(lambda w, p: ridge_solver(w, p, X, Y), lambda w, p: w - step(w, p))
    f = wrapped(wg.jacobian(lambda p: solve(np.zeros(4), p)), compiled)
    np.testing.assert_allclose(f(0.3), wg.jacobian(ridge_by_hand)(0.3), rtol=1e-10)


@pytest.mark.parametrize(
    "order", [("penalty", "x", "y"), ("y", "penalty", "x"), ("x", "y", "penalty")]
)
def test_keyword_arguments_in_any_order(order):
    """Derivatives by keyword arguments do not depend on the order of the call."""
    values = {"penalty": 0.3, "x": X, "y": Y}
    solve = wg.implicit(ridge_solver, ridge_slope)

    def f(penalty):
        given = values | {"penalty": penalty}
        return solve(np.zeros(4), **{k: given[k] for k in order})

    np.testing.assert_allclose(wg.jacobian(f)(0.3), wg.jacobian(ridge_by_hand)(0.3), rtol=1e-10)


def test_captured_parameters_are_differentiated():
    """jaxopt #31, #111: what the residual captures is not lost."""

    def f(penalty, scale):
        def slope(w):
            return ridge_slope(w, penalty, X * scale, Y)

        return wg.custom_root(slope, np.zeros(4), lambda f, w: ridge_by_hand(0.3, X * 1.5))

    want = wg.jacobian(lambda p, s: ridge_by_hand(p, X * s), (0, 1))(0.3, 1.5)
    for got, expected in zip(wg.jacobian(f, (0, 1))(0.3, 1.5), want, strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-10)


# ---- jaxopt: bisection_test; optimistix #143: silent zeros in second derivatives ----------------


@COMPILED
@pytest.mark.parametrize("method", ["bisect", "brentq", "ridder", "toms748"])
@pytest.mark.sample(4)  # each method
def test_bisection(method, compiled):
    """Value, both derivatives and both signs of slope; a wrong bracket is an error."""
    solve = getattr(optimize, method)

    def root(factor, sign=1.0):
        return solve(lambda x: sign * (factor * x**3 - x - 2.0), 1.0, 5.0, xtol=1e-13)

    def slopes(factor):
        x = root(factor)
        slope = -(x**3) / (3.0 * factor * x**2 - 1.0)
        return x, slope

    for sign in (1.0, -1.0):
        f = lambda a, s=sign: root(a, s)  # noqa: E731
        x, slope = slopes(1.0)
        np.testing.assert_allclose(wrapped(f, compiled)(1.0), x, rtol=1e-12)
        np.testing.assert_allclose(wrapped(wg.grad(f), compiled)(1.0), slope, rtol=1e-11)
        step = 1e-5
        second = (slopes(1.0 + step)[1] - slopes(1.0 - step)[1]) / (2 * step)
        np.testing.assert_allclose(wrapped(wg.grad(wg.grad(f)), compiled)(1.0), second, rtol=1e-6)
    with pytest.raises(ValueError, match="sign"):
        wrapped(lambda a: solve(lambda x: x - a, 1.0, 5.0), compiled)(7.0)


def test_a_root_at_the_end_of_the_interval():
    """The derivative exists there, too."""
    f = lambda a: optimize.bisect(lambda x: x - a, 0.0, 1.0)  # noqa: E731
    assert wg.grad(f)(1.0) == 1.0
    assert wg.jit(wg.grad(f))(0.0) == 1.0


# ---- jaxopt: fixed_point_iteration, anderson, broyden -------------------------------------------


def by_iteration(step, start):
    def solve(f, x):
        def goes_on(state):
            return np.max(np.abs(state[0] - state[1])) > 1e-13

        def body(state):
            return state[0] - f(state[0]), state[0]

        return wg.while_loop(goes_on, body, (x - f(x), x))[0]

    return wg.custom_root(lambda x: x - step(x), start, solve)


def by_fixed_point(step, start):
    return optimize.fixed_point(step, start, xtol=1e-13)


def by_broyden(step, start):
    def equation(x):
        return x - step(x)

    return optimize.root(equation, start, method="broyden1", options={"fatol": 1e-13}).x


def by_anderson(step, start):
    def equation(x):
        return x - step(x)

    return optimize.root(equation, start, method="anderson", options={"fatol": 1e-13}).x


# SciPy's Anderson mixing solves small systems that are singular when it has converged.
QUIET = pytest.mark.filterwarnings("ignore:An ill-conditioned matrix")
FIXED_POINTS = [by_iteration, by_fixed_point, by_broyden, pytest.param(by_anderson, marks=QUIET)]


@pytest.mark.parametrize("solve", FIXED_POINTS)
def test_geometric_decay(solve):
    """x = theta x + 1; the solution is 1 / (1 - theta)."""
    theta = np.array([0.2, -0.5, 0.7])
    f = lambda t: solve(lambda x: t * x + 1.0, np.zeros(3))  # noqa: E731
    np.testing.assert_allclose(f(theta), 1.0 / (1.0 - theta), rtol=1e-9)
    want = np.diag((1.0 - theta) ** -2.0)
    np.testing.assert_allclose(wg.jacobian(f)(theta), want, rtol=1e-8)


@pytest.mark.parametrize("solve", FIXED_POINTS)
def test_cosine(solve):
    """x = cos(theta x), to order two."""
    f = lambda t: np.sum(solve(lambda x: np.cos(t * x), np.full(2, 0.5)))  # noqa: E731
    x = f(1.0) / 2.0
    assert abs(np.cos(x) - x) < 1e-10
    np.testing.assert_allclose(wg.grad(f)(1.0), -2 * x * np.sin(x) / (1 + np.sin(x)), rtol=1e-8)
    h = 1e-4
    second = (wg.grad(f)(1.0 + h) - wg.grad(f)(1.0 - h)) / (2 * h)
    np.testing.assert_allclose(wg.grad(wg.grad(f))(1.0), second, rtol=1e-5)


@pytest.mark.parametrize("solve", FIXED_POINTS)
def test_flat_landscape(solve):
    """A step that hardly depends on x: the derivative is that of the step."""
    f = lambda t: np.sum(solve(lambda x: 1e-9 * x + t, np.zeros(2)))  # noqa: E731
    np.testing.assert_allclose(wg.grad(f)(3.0), 2.0 / (1.0 - 1e-9), rtol=1e-10)


@pytest.mark.parametrize("solve", FIXED_POINTS)
def test_affine_contraction(solve):
    """x = m x + b with a contraction m: derivatives with respect to both."""
    m = RNG.normal(size=(4, 4))
    m, b = 0.5 * m / np.linalg.norm(m, 2), RNG.normal(size=4)
    f = lambda m, b: solve(lambda x: m @ x + b, np.zeros(4))  # noqa: E731
    closed = lambda m, b: np.linalg.solve(np.eye(4) - m, b)  # noqa: E731
    np.testing.assert_allclose(f(m, b), closed(m, b), rtol=1e-8)
    for got, want in zip(
        wg.jacobian(f, (0, 1))(m, b), wg.jacobian(closed, (0, 1))(m, b), strict=True
    ):
        np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-9)


def test_scalars_and_rotations():
    """A number as the unknown, and a step that is a contracting rotation."""
    f = lambda t: by_iteration(lambda x: np.sin(t * x) + 0.5, 0.3)  # noqa: E731
    check_grads(f, (0.6,), order=2)
    rotation = 0.8 * np.array([[np.cos(1.0), -np.sin(1.0)], [np.sin(1.0), np.cos(1.0)]])
    g = lambda b: by_iteration(lambda x: rotation @ x + b, np.zeros(2))  # noqa: E731
    want = np.linalg.inv(np.eye(2) - rotation)
    np.testing.assert_allclose(wg.jacobian(g)(np.ones(2)), want, rtol=1e-10)


# ---- jaxopt: linear_solve_test, iterative_refinement_test; lineax -------------------------------

DENSE = RNG.normal(size=(6, 6)) + 6.0 * np.eye(6)
DEFINITE = DENSE @ DENSE.T / 6.0


@COMPILED
@pytest.mark.parametrize("method", ["lu", "cholesky", "cg", "gmres", "bicgstab"])
def test_linear_solvers(method, compiled):
    """Solutions and derivatives by matrix and right-hand side do not depend on the method."""
    a = DEFINITE if method in ("cholesky", "cg") else DENSE
    b = RNG.normal(size=6)

    def solve(a, b):
        matrix = (a + a.T) / 2.0 if method in ("cholesky", "cg") else a
        return wg.custom_linear_solve(lambda x: matrix @ x, b, method)

    def direct(a, b):
        return np.linalg.solve((a + a.T) / 2.0 if method in ("cholesky", "cg") else a, b)

    np.testing.assert_allclose(wrapped(solve, compiled)(a, b), direct(a, b), rtol=1e-8)
    gradient = lambda f: wg.grad(lambda a, b: np.sum(f(a, b) ** 2), (0, 1))  # noqa: E731
    for got, want in zip(
        wrapped(gradient(solve), compiled)(a, b), gradient(direct)(a, b), strict=True
    ):
        np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-9)


def test_ridge_by_products():
    """Ridge regression by products with x only; derivatives with respect to the penalty."""

    def weights(penalty, method):
        return wg.custom_linear_solve(lambda w: X.T @ (X @ w) + penalty * w, X.T @ Y, method)

    want = wg.jacobian(lambda p: np.linalg.solve(X.T @ X + p * np.eye(4), X.T @ Y))(2.0)
    for method in (None, "cg", "cholesky"):
        got = wg.jacobian(lambda p, m=method: weights(p, m))(2.0)
        np.testing.assert_allclose(got, want, rtol=1e-7)


def test_iterative_refinement():
    """A solver with a factorization of a perturbed matrix, refined: derivatives are exact."""
    perturbed = DENSE + 1e-3 * RNG.normal(size=(6, 6))

    def refined(matvec, b):
        def step(_, x):
            return x + np.linalg.solve(perturbed, b - matvec(x))

        return wg.fori_loop(0, 12, step, np.zeros(6))

    def adjoint_refined(vecmat, b):
        def step(_, x):
            return x + np.linalg.solve(perturbed.T, b - vecmat(x))

        return wg.fori_loop(0, 12, step, np.zeros(6))

    f = lambda a, b: wg.custom_linear_solve(lambda x: a @ x, b, refined, adjoint_refined)  # noqa: E731
    b = RNG.normal(size=6)
    np.testing.assert_allclose(f(DENSE, b), np.linalg.solve(DENSE, b), rtol=1e-12)
    got = wg.jacrev(f, (0, 1))(DENSE, b)
    for x, y in zip(got, wg.jacrev(np.linalg.solve, (0, 1))(DENSE, b), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-10, atol=1e-13)


@COMPILED
def test_gradient_of_a_batch_with_one_operator(compiled):
    """lineax #101: the gradient of vmap where all systems have the same matrix."""
    sides = RNG.normal(size=(5, 6))

    def loss(a):
        solve = lambda b: wg.custom_linear_solve(lambda x: a @ x, b)  # noqa: E731
        return np.sum(wg.vmap(solve)(sides) ** 2)

    want = wg.grad(lambda a: np.sum(np.linalg.solve(a, sides.T) ** 2))(DENSE)
    np.testing.assert_allclose(wrapped(wg.grad(loss), compiled)(DENSE), want, rtol=1e-9)


@COMPILED
def test_gradient_of_a_batch_of_loops(compiled):
    """optimistix #129: grad of vmap of a solver that is a loop, which ends at different steps."""

    def root(a):
        def solve(f, x):
            def step(x):
                value, slope = wg.jvp(f, (x,), (1.0,))
                return x - value / slope

            return wg.while_loop(lambda x: np.abs(f(x)) > 1e-12 * a, step, x, max_steps=60)

        return wg.custom_root(lambda x: x * x - a, a, solve)

    def loss(a):
        return np.sum(wg.vmap(root)(a) ** 3)

    a = np.array([1e-3, 1.0, 7.0, 1e4])
    np.testing.assert_allclose(wrapped(wg.grad(loss), compiled)(a), 1.5 * a**0.5, rtol=1e-9)
    second = wg.hvp(loss, (a,), (np.ones(4),))
    np.testing.assert_allclose(second, 0.75 * a**-0.5, rtol=1e-8)


def test_non_arrays_and_no_parameters():
    """pymc-devs/pytensor #1466: a solution that depends on nothing has the derivative zero."""
    f = lambda t: wg.custom_root(lambda x: x - 3.0, 1.0, lambda f, x: 3.0 + 0.0 * x) * 1.0  # noqa: E731
    assert wg.grad(lambda t: t * f(t))(2.0) == 3.0
    assert wg.jvp(f, (2.0,), (1.0,))[1] == 0.0
