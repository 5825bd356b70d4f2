"""custom_root and implicit: derivatives of solutions, beside differences of whole solutions."""

import numpy as np
import pytest
import scipy.optimize

import wengert as wg
from wengert.errors import ArgumentError, MatrixError, ShapeError, StructureError
from wengert.testing import check_grads

RNG = np.random.default_rng(3)


def newton(f, x):
    """Newton's method with a fixed number of steps."""
    for _ in range(12):
        x = x - np.linalg.solve(wg.jacobian(f)(x), f(x))
    return x


def scalar_newton(f, x):
    """Newton's method for a number, until the step is small."""

    def goes_on(state):
        return np.abs(state[1]) > 1e-14

    def step(state):
        x, _ = state
        value, slope = wg.jvp(f, (x,), (np.ones_like(x),))
        return x - value / slope, value / slope

    return wg.while_loop(goes_on, step, (x, np.ones_like(x)), max_steps=60)[0]


def bisection(f, x):
    """Sixty bisections of the interval from 0 to 10."""

    def step(_, ends):
        low, high = ends
        middle = (low + high) / 2
        left = f(low) * f(middle) <= 0
        return np.where(left, low, middle), np.where(left, middle, high)

    return wg.fori_loop(0, 60, step, (0.0 * x, 0.0 * x + 10.0))[0]


def square_root(a, solver):
    return wg.custom_root(lambda x: x * x - a, np.ones_like(a), solver)


SOLVERS = [scalar_newton, bisection]
DERIVATIVES = {
    "value": (lambda f: f, lambda a: a**0.5),
    "grad": (wg.grad, lambda a: 0.5 * a**-0.5),
    "jacfwd": (wg.jacfwd, lambda a: 0.5 * a**-0.5),
    "second": (wg.hessian, lambda a: -0.25 * a**-1.5),
    "reverse twice": (lambda f: wg.grad(wg.grad(f)), lambda a: -0.25 * a**-1.5),
    "third": (lambda f: wg.grad(wg.grad(wg.grad(f))), lambda a: 0.375 * a**-2.5),
}


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "jit"])
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("derivative", DERIVATIVES)
def test_square_root(derivative, solver, compiled):
    """Derivatives do not depend on the solver, also of a bisection, whose steps are constant."""
    transform, exact = DERIVATIVES[derivative]
    f = transform(lambda a: square_root(a, solver))
    f = wg.jit(f) if compiled else f
    for a in (0.3, 7.0):
        np.testing.assert_allclose(f(a), exact(a), rtol=1e-11)


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "jit"])
def test_vmap(compiled):
    """A batch of roots, and derivatives of it."""
    a = np.array([0.5, 2.0, 9.0])
    for derivative in ("value", "grad", "second"):
        transform, exact = DERIVATIVES[derivative]
        f = wg.vmap(transform(lambda a: square_root(a, scalar_newton)))
        np.testing.assert_allclose((wg.jit(f) if compiled else f)(a), exact(a), rtol=1e-11)
    g = wg.grad(lambda a: np.sum(wg.vmap(lambda a: square_root(a, bisection))(a) ** 3))
    np.testing.assert_allclose((wg.jit(g) if compiled else g)(a), 1.5 * a**0.5, rtol=1e-11)


def equations(y, theta):
    u, v = y["u"], y["v"]
    return {"u": u**3 + theta["k"] @ u - v * theta["b"], "v": v + np.sum(np.tanh(u)) - theta["c"]}


THETA = {
    "k": RNG.normal(size=(3, 3)) * 0.2 + 2.0 * np.eye(3),
    "b": RNG.normal(size=3),
    "c": np.float64(1.3),
}
START = {"u": np.zeros(3), "v": 0.0}


def flat_newton(f, y):
    """Newton's method for a container."""
    flat = lambda v: np.concatenate([x.reshape(-1) for x in f({"u": v[:3], "v": v[3]}).values()])  # noqa: E731
    v = newton(flat, np.concatenate([y["u"], np.reshape(y["v"], (1,))]))
    return {"u": v[:3], "v": v[3]}


def solved(theta):
    """The solution of `equations`."""
    return wg.custom_root(lambda y: equations(y, theta), START, flat_newton)


def functional(theta):
    y = solved(theta)
    return np.sum(y["u"] ** 2) * y["v"]


@pytest.mark.sample(1)
@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "jit"])
def test_containers_and_differences(compiled):
    """Gradients of containers equal differences of the whole solution, to order two."""
    f = wg.jit(functional) if compiled else functional
    residual = equations(solved(THETA), THETA)
    assert max(np.max(np.abs(x)) for x in residual.values()) < 1e-12
    check_grads(f, (THETA,), order=1 + compiled)


def test_steps_of_the_solver_are_not_differentiated():
    """A solver that is not differentiable: SciPy's, with a constant derivative of its steps."""

    def by_scipy(f, x):
        def plain(v):
            return np.asarray(f(v))

        return scipy.optimize.root(plain, np.asarray(x), tol=1e-13).x

    a = np.array([2.0, 5.0])
    f = lambda a: wg.custom_root(lambda x: x * x - a, np.ones(2), by_scipy)  # noqa: E731
    np.testing.assert_allclose(wg.jacobian(f)(a), np.diag(0.5 * a**-0.5), rtol=1e-9)
    np.testing.assert_allclose(
        wg.hessian(lambda a: np.sum(f(a)))(a), np.diag(-0.25 * a**-1.5), rtol=1e-9, atol=1e-12
    )


def test_the_guess_has_no_derivative():
    """The derivative with respect to the initial guess is zero."""
    f = lambda x0: wg.custom_root(lambda x: x * x - 4.0, x0, scalar_newton)  # noqa: E731
    assert wg.grad(f)(3.0) == 0.0
    assert wg.jit(wg.grad(f))(3.0) == 0.0
    assert wg.jvp(f, (3.0,), (1.0,))[1] == 0.0


def test_no_parameters():
    """A root that depends on nothing has the derivative zero."""
    f = lambda t: t + wg.custom_root(lambda x: x - 3.0, 1.0, scalar_newton)  # noqa: E731
    assert wg.grad(f)(1.0) == 1.0


def test_the_same_tensor_twice():
    """A tensor that is captured twice contributes both derivatives once."""

    def f(a):
        b = a * 1.0
        return wg.custom_root(lambda x: x - a * a * b, 1.0, scalar_newton)

    np.testing.assert_allclose(wg.grad(f)(2.0), 12.0)
    np.testing.assert_allclose(wg.jit(wg.grad(f))(2.0), 12.0)


def test_tangent_solve_is_used_in_both_modes():
    """`tangent_solve` gets the Jacobian in forward mode, its adjoint in reverse mode."""
    m = np.array([[2.0, 1.0], [0.0, 4.0]])
    seen = []

    def tangent_solve(g, b):
        matrix = np.asarray(wg.jacobian(g)(np.zeros(2)))
        seen.append(matrix)
        return np.linalg.solve(matrix, b)

    f = lambda b: wg.custom_root(lambda x: m @ x - b, np.zeros(2), newton, tangent_solve)  # noqa: E731
    b = np.array([1.0, 2.0])
    np.testing.assert_allclose(wg.jvp(f, (b,), (b,))[1], np.linalg.solve(m, b))
    np.testing.assert_array_equal(seen[-1], m)
    np.testing.assert_allclose(wg.grad(lambda b: np.sum(f(b)))(b), np.linalg.solve(m.T, np.ones(2)))
    np.testing.assert_array_equal(seen[-1], m.T)


def test_implicit_of_a_minimum():
    """A solver with arguments: ridge regression by gradient descent, and its closed form."""
    x, y = RNG.normal(size=(6, 3)), RNG.normal(size=6)

    def slope(w, x, y, penalty):
        return x.T @ (x @ w - y) + penalty * w

    @wg.implicit(residual=slope)
    def ridge(w, x, y, penalty):
        return wg.fori_loop(0, 3000, lambda _, w: w - 0.02 * slope(w, x, y, penalty), w)

    def closed_form(x, y, penalty):
        return np.linalg.solve(x.T @ x + penalty * np.eye(3), x.T @ y)

    assert ridge.__name__ == "ridge"
    weights = np.array([1.0, -2.0, 3.0])
    for transform in (
        lambda f: wg.grad(f, (0, 1, 2)),
        lambda f: wg.hessian(f, 2),
    ):
        got = wg.jit(transform(lambda *a: np.sum(weights * ridge(np.zeros(3), *a))))(x, y, 0.7)
        want = transform(lambda *a: np.sum(weights * closed_form(*a)))(x, y, 0.7)
        for a, b in zip(
            np.atleast_1d(got) if not isinstance(got, tuple) else got,
            np.atleast_1d(want) if not isinstance(want, tuple) else want,
            strict=True,
        ):
            np.testing.assert_allclose(a, b, rtol=1e-7, atol=1e-10)


def test_implicit_of_a_fixed_point():
    """Kepler's equation as a fixed point, by both forms of `implicit`."""

    def steps(e0, eccentricity, mean):
        for _ in range(100):
            e0 = mean + eccentricity * np.sin(e0)
        return e0

    kepler = wg.implicit(steps, lambda e, ecc, mean: e - mean - ecc * np.sin(e))
    e = kepler(0.0, 0.3, 1.0)
    ge, gm = wg.grad(lambda ecc, mean: kepler(0.0, ecc, mean), (0, 1))(0.3, 1.0)
    np.testing.assert_allclose(gm, 1.0 / (1.0 - 0.3 * np.cos(e)), rtol=1e-12)
    np.testing.assert_allclose(ge, np.sin(e) / (1.0 - 0.3 * np.cos(e)), rtol=1e-12)


def test_bad_input():
    """Errors name what is wrong."""
    with pytest.raises(ShapeError, match="result of the residual"):
        wg.custom_root(lambda x: x[:1], np.zeros(2), newton)
    with pytest.raises(StructureError, match="result of solve"):
        wg.custom_root(lambda x: x, np.zeros(2), lambda f, x: (x, x))
    with pytest.raises(ArgumentError, match="implicit"):
        wg.implicit(newton)
    double_root = lambda a: wg.custom_root(lambda x: (x - a) ** 2, a * 1.0, lambda f, x: x)  # noqa: E731
    assert double_root(2.0) == 2.0
    for derivative in (wg.grad(double_root), wg.jit(wg.grad(double_root))):
        with pytest.raises(MatrixError, match="ingular"):
            derivative(2.0)


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "jit"])
def test_other_results_of_the_solver(compiled):
    """With has_aux a solver returns further results, whose derivative is zero."""

    @wg.implicit(residual=lambda y, a: y * y - a, has_aux=True, check=True)
    def heron(y, a):
        for _ in range(30):
            y = (y + a / y) / 2
        return y, {"steps": 30, "last": y * y - a, "twice": 2.0 * a}

    def f(a):
        y, more = heron(1.0, a)
        return y * more["steps"] + more["twice"]

    for t, want in ((lambda f: f, 68.0), (wg.grad, 7.5), (wg.hessian, -30 / 4 / 4**1.5)):
        np.testing.assert_allclose((wg.jit(t(f)) if compiled else t(f))(4.0), want, rtol=1e-12)
    g = wg.vmap(wg.grad(f))
    np.testing.assert_allclose((wg.jit(g) if compiled else g)(np.array([1.0, 4.0])), [15.0, 7.5])
    assert heron(1.0, 4.0)[1]["steps"] == 30
    bad = wg.implicit(lambda y, a: y, lambda y, a: y - a, has_aux=True)
    with pytest.raises(StructureError, match="has_aux"):
        bad(1.0, 2.0)


def test_keyword_arguments():
    """Arguments may be given by keyword, in any order, to a solver and a residual."""

    def residual(y, *, b, a):
        return a * y - b

    @wg.implicit(residual=residual)
    def divided(y, a, b):
        return b / a

    for transform in (lambda f: f, wg.jit):
        f = transform(wg.grad(lambda a, b: divided(0.0, b=b, a=a), (0, 1)))
        np.testing.assert_allclose(f(2.0, 3.0), (-0.75, 0.5))


def test_the_gradient_of_a_root_in_a_loop_is_native():
    """The backward body contains no alias that a derivative made: it would be a call of Python."""

    def step_of(p, y):
        def rate(y):
            return np.stack([p[0] * y[0] * y[1], p[1] * y[0]])

        guess = wg.stop_gradient(y) * 0.1
        return wg.custom_root(lambda u: u - 0.1 * rate(y + u), guess, newton)

    def loss(p):
        return np.sum(wg.fori_loop(0, 5, lambda _, y: y + step_of(p, y), np.ones(2)))

    p = np.array([0.5, 0.25])
    compiled = wg.jit(wg.grad(loss), host_callbacks="forbid")
    np.testing.assert_allclose(compiled(p), wg.jit(wg.jacfwd(loss))(p), rtol=1e-12)
    ends = [wg.jit(loss)(p + sign * 1e-5 * np.eye(2)[k]) for k in (0, 1) for sign in (1, -1)]
    np.testing.assert_allclose(compiled(p), np.diff(ends)[::2] / -2e-5, rtol=1e-8)
