"""What jaxopt's tests check of polyhedra, and of quadratic programs given by functions.

Own programs with the content of jaxopt's tests that `test_peers_optimize.py` leaves out: sets with
both kinds of constraints, containers of unknowns, programs without a solution, proximal steps.
Derivatives are compared with formulas, or with differences of the whole solve.
The numbers of the tests are in docs/solvers-tests.md.
"""

import numpy as np
import pytest

import wengert as wg
from wengert.errors import ConvergenceError
from wengert.scipy import optimize
from wengert.testing import check_grads

RNG = np.random.default_rng(11)


def equal(f):
    return {"type": "eq", "fun": f}


def at_least(f):
    return {"type": "ineq", "fun": f}


def slope_by_differences(f, x, direction, h=1e-4):
    return (f(x + h * direction) - f(x - h * direction)) / (2 * h)


# ---- projection_test, isotonic_test ------------------------------------------------------------

POLYHEDRON = (
    np.array([[1.0, 1.0, 0.0, -1.0, 0.5]]),
    np.array([0.4]),
    np.array([[1.0, 0.0, 2.0, 0.0, 0.0], [0.0, -1.0, 0.0, 1.0, 1.0]]),
    np.array([0.3, 5.0]),
)


def in_polyhedron(x, a, b, g, h):
    """The nearest point with `a y = b` and `g y <= h`, of which the first row is active."""
    sides = [equal(lambda y: a @ y - b), at_least(lambda y: h - g @ y)]
    objective = lambda y: 0.5 * np.sum((y - x) ** 2)  # noqa: E731
    return optimize.minimize(objective, np.zeros(5), method="SLSQP", constraints=sides, tol=1e-13).x


def test_polyhedron_of_both_kinds_of_constraints():
    """Active inequalities count as equalities; derivatives with respect to point and sides."""
    x = np.array([1.0, -0.5, 0.7, 0.2, 0.1])

    def formula(x, a, b, g, h):
        rows, sides = np.concatenate([a, g[:1]]), np.concatenate([b, h[:1]])
        return x - rows.T @ np.linalg.solve(rows @ rows.T, rows @ x - sides)

    y = in_polyhedron(x, *POLYHEDRON)
    np.testing.assert_allclose(y, formula(x, *POLYHEDRON), atol=1e-7)
    numbers = (0, 1, 2, 3, 4)
    got = wg.jacobian(in_polyhedron, numbers)(x, *POLYHEDRON)
    want = wg.jacobian(formula, numbers)(x, *POLYHEDRON)
    for mine, theirs in zip(got, want, strict=True):
        np.testing.assert_allclose(mine, theirs, atol=1e-7)


def test_empty_polyhedron():
    """Equations and inequalities that contradict each other: no derivative."""
    a, b = np.array([[1.0, 1.0], [0.0, 1.0], [-1.0, 1.0]]), np.array([1.0, 1.0, -1.0])

    def nearest(x):
        sides = [equal(lambda y: a @ y - b), at_least(lambda y: y)]
        return optimize.minimize(
            lambda y: np.sum((y - x) ** 2), np.full(2, 0.5), constraints=sides, method="SLSQP"
        ).x

    with pytest.raises(ConvergenceError):
        wg.jacobian(nearest)(np.zeros(2))


def test_birkhoff_polytope():
    """The nearest doubly stochastic matrix; one that is doubly stochastic is not changed."""

    def nearest(x):
        def sums(y):
            y = y.reshape(3, 3)
            return np.concatenate([np.sum(y, 1) - 1.0, np.sum(y, 0)[:-1] - 1.0])

        return optimize.minimize(
            lambda y: 0.5 * np.sum((y - x.reshape(-1)) ** 2),
            np.full(9, 1 / 3),
            method="SLSQP",
            bounds=[(0.0, None)] * 9,
            constraints=equal(sums),
            tol=1e-13,
        ).x.reshape(3, 3)

    x = np.array([[0.9, 0.1, 0.3], [0.1, 0.4, 0.8], [0.3, 0.8, -0.6]])
    y = nearest(x)
    np.testing.assert_allclose([y.sum(0), y.sum(1)], 1.0, atol=1e-10)
    direction = RNG.normal(size=(3, 3))
    slope = wg.jvp(nearest, (x,), (direction,))[1]
    np.testing.assert_allclose(slope, slope_by_differences(nearest, x, direction, 1e-2), atol=1e-6)
    stochastic = 0.5 * np.eye(3) + 0.5 / 3
    np.testing.assert_allclose(nearest(stochastic), stochastic, atol=1e-9)


def test_hypercube_and_isotonic_values_between_bounds():
    """Bounds of the values are `np.clip` of the result."""
    x = np.array([-1.0, 2.0, 0.5])
    np.testing.assert_array_equal(np.clip(x, 0.0, 0.8), [0.0, 0.8, 0.5])
    np.testing.assert_array_equal(wg.jacobian(lambda s: np.clip(x, 0.0, s))(0.8), [0.0, 1.0, 0.0])
    y = RNG.normal(size=10)
    ordered = np.sort(y)

    def loss(y):
        cubes = np.clip(optimize.isotonic_regression(y**3).x, ordered[2], ordered[5])
        values = np.clip(optimize.isotonic_regression(y).x, ordered[2], ordered[5])
        return np.mean(cubes + values**2)

    check_grads(loss, (y,), order=2)


# ---- eq_qp_test, osqp_test, cvxpy_wrapper_test -------------------------------------------------

Q = RNG.normal(size=(5, 5))
Q = Q @ Q.T + np.eye(5)
A = RNG.normal(size=(2, 5))
SIDE = np.array([0.5, -1.0])
COST = RNG.normal(size=5)


def dense_solution(q, c, a, b):
    rows = np.concatenate([q, a]), np.concatenate([a.T, np.zeros((len(b), len(b)))])
    return np.linalg.solve(np.concatenate(rows, axis=1), np.concatenate([-c, b]))[: len(c)]


@pytest.mark.parametrize("method", [None, "gmres"])
def test_quadratic_program_by_products(method):
    """Containers of unknowns and multipliers, matrices given by products only."""

    def solution(p):
        def products(z):
            x = np.concatenate([z["x"]["first"], z["x"]["rest"]])
            gradient = p["q"] @ x + p["a"].T @ z["multipliers"]
            return {"x": {"first": gradient[:2], "rest": gradient[2:]}, "multipliers": p["a"] @ x}

        side = {"x": {"first": -p["c"][:2], "rest": -p["c"][2:]}, "multipliers": p["b"]}
        z = wg.custom_linear_solve(products, side, method, symmetric=True)
        return np.concatenate([z["x"]["first"], z["x"]["rest"]])

    p = {"q": Q, "c": COST, "a": A, "b": SIDE}
    np.testing.assert_allclose(solution(p), dense_solution(Q, COST, A, SIDE), rtol=1e-6, atol=1e-8)
    got = wg.grad(lambda p: np.sum(solution(p) ** 3))(p)
    want = wg.grad(lambda p: np.sum(dense_solution(p["q"], p["c"], p["a"], p["b"]) ** 3))(p)
    for name in ("c", "b"):
        np.testing.assert_allclose(got[name], want[name], rtol=1e-5, atol=1e-7)
    # the program states `q` and `a` in both blocks of a symmetric matrix
    np.testing.assert_allclose(got["a"], want["a"], rtol=1e-5, atol=1e-7)


def test_quadratic_program_given_as_a_function():
    """The objective is a function of containers, and its matrix is captured, not an argument."""

    def solution(q, side, start):
        objective = lambda x: 0.5 * x @ q @ x + COST @ x + 17.0  # noqa: E731
        found = optimize.minimize(
            objective, start, constraints=equal(lambda x: A @ x - side["b"]), tol=1e-14
        )
        return found.x

    for start in (np.zeros(5), np.ones(5)):
        got = wg.jacobian(lambda b, start=start: solution(Q, {"b": b}, start))(SIDE)
        want = wg.jacobian(lambda b: dense_solution(Q, COST, A, b))(SIDE)
        np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-8)
    got = wg.grad(lambda q: np.sum(solution((q + q.T) / 2, {"b": SIDE}, np.zeros(5))))(Q)
    want = wg.grad(lambda q: np.sum(dense_solution((q + q.T) / 2, COST, A, SIDE)))(Q)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-7)


def test_quadratic_program_that_is_ill_conditioned():
    """100 unknowns and 98 equations: multipliers and unknowns from one system."""
    rng = np.random.default_rng(511)
    x = rng.uniform(size=(100, 100))
    a, b, c = rng.uniform(size=(98, 100)), rng.uniform(size=98), rng.uniform(size=100)
    q = x @ x.T

    def program(b):
        def conditions(z):
            return np.concatenate([q @ z[:100] + c + a.T @ z[100:], a @ z[:100] - b])

        zero = np.zeros(198)
        return wg.custom_linear_solve(lambda z: conditions(z) - conditions(zero), -conditions(zero))

    z = program(b)
    np.testing.assert_allclose(a @ z[:100], b, rtol=1e-8)
    direction = rng.normal(size=98)
    slope = wg.jvp(program, (b,), (direction,))[1]
    np.testing.assert_allclose(a @ slope[:100], direction, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(program(b + direction) - z, slope, rtol=1e-6, atol=1e-6)


def test_programs_without_a_solution():
    """No feasible point, and no least value: values with SciPy's flag, no derivative."""

    def infeasible(side):
        rows = np.array([[-1.0, 0.0], [0.0, -1.0], [1.0, 1.0]])
        limits = np.concatenate([-side * np.ones(2), [11.0]])
        free = (None, None)
        return optimize.linprog(np.ones(2), A_ub=rows, b_ub=limits, bounds=[free, free])

    def unbounded(side):
        found = optimize.linprog(
            np.array([-1.0, -2.0, 1.0]),
            A_ub=np.array([[-1.0, -1.0, 0.0]]),
            b_ub=side * np.ones(1),
            A_eq=np.array([[0.0, 0.0, 1.0]]),
            b_eq=np.ones(1),
            bounds=[(None, None)] * 3,
        )
        return found

    for program, at, status in ((infeasible, 6.0, 2), (unbounded, 0.0, 3)):
        assert program(at).status == status
        with pytest.raises(ConvergenceError):
            wg.grad(lambda s, program=program: program(s).fun)(at)
    np.testing.assert_allclose(wg.grad(lambda s: infeasible(s).fun)(5.0), 2.0)


def test_portfolio():
    """Weights that are a simplex: derivative with respect to the aversion to risk."""
    rng = np.random.default_rng(0)
    factors = rng.normal(size=(10, 3))
    covariance = factors @ factors.T + np.diag(rng.uniform(0.0, 3**0.5, 10))
    gain = rng.normal(size=10)

    def weights(aversion):
        return optimize.minimize(
            lambda x: aversion * x @ covariance @ x - gain @ x,
            np.full(10, 0.1),
            bounds=[(0.0, None)] * 10,
            constraints=equal(lambda x: np.sum(x) - 1.0),
            method="SLSQP",
            tol=1e-14,
        ).x

    slope = wg.jacobian(weights)(1.0)
    held, total = weights(1.0) > 1e-9, np.ones((1, 10))
    risk = lambda t: 2.0 * t * covariance[held][:, held]  # noqa: E731
    want = wg.jacobian(lambda t: dense_solution(risk(t), -gain[held], total[:, held], np.ones(1)))
    assert 2 < held.sum() < 10
    np.testing.assert_allclose(slope[held], want(1.0), atol=1e-6)
    np.testing.assert_allclose(slope[~held], 0.0, atol=1e-12)
    np.testing.assert_allclose(np.sum(slope), 0.0, atol=1e-10)


def test_quadratic_program_of_many_unknowns():
    """30 unknowns, 5 equations, 10 inequalities, by their sides."""
    rng = np.random.default_rng(5)
    q = rng.normal(size=(30, 30)) / 5.0
    q, c = q @ q.T + 0.1 * np.eye(30), rng.normal(size=30)
    a, g = rng.normal(size=(5, 30)), rng.normal(size=(10, 30))
    inside = rng.normal(size=30)
    b, h = a @ inside, g @ inside + rng.uniform(0.0, 0.5, 10)

    def solve(b, h):
        sides = [equal(lambda x: a @ x - b), at_least(lambda x: h - g @ x)]
        objective = lambda x: 0.5 * x @ q @ x + c @ x  # noqa: E731
        return optimize.minimize(objective, inside, constraints=sides, tol=1e-13)

    found = solve(b, h)
    active = h - g @ found.x < 1e-7
    rows = np.concatenate([a, g[active]])
    assert 0 < active.sum() < 10
    want = wg.jacobian(lambda s: dense_solution(q, c, rows, s))(np.concatenate([b, h[active]]))
    got = wg.jacobian(lambda b, h: solve(b, h).x, (0, 1))(b, h)
    np.testing.assert_allclose(got[0], want[:, :5], atol=1e-6)
    np.testing.assert_allclose(got[1][:, active], want[:, 5:], atol=1e-6)
    np.testing.assert_allclose(got[1][:, ~active], 0.0, atol=1e-9)


# ---- proximal_gradient_test, block_cd_test, projected_gradient_test, mirror_descent_test --------

X = RNG.normal(size=(20, 4))
Y = X @ np.array([2.0, 0.0, -1.0, 0.05]) + 0.1 * RNG.normal(size=20)


def shrunk(x, by):
    return np.sign(x) * np.maximum(np.abs(x) - by, 0.0)


def soft_group(x, by):
    size = np.sqrt(np.sum(x**2))
    return x * np.maximum(1.0 - by / size, 0.0)


def ridge_and_lasso(x, by):
    return shrunk(x, by) / (1.0 + 0.3 * by)


def onto_simplex(x, total):
    ordered = np.sort(x)[::-1]
    shifts = (np.cumsum(ordered) - total) / np.arange(1, len(x) + 1)
    return np.maximum(x - shifts[np.sum(ordered > shifts) - 1], 0.0)


PROXIMAL = {
    "lasso": (shrunk, 0.15),
    "elastic net": (ridge_and_lasso, 0.15),
    "group lasso": (soft_group, 0.3),
    "non-negative": (lambda x, by: np.maximum(x, 0.0) + 0.0 * by, 0.1),
    "simplex": (onto_simplex, 1.4),
}


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", PROXIMAL)
def test_fixed_points_of_proximal_steps(name):
    """Gradient step and proximal operator: derivatives at the fixed point."""
    proximal, penalty = PROXIMAL[name]
    length = 0.9 / np.linalg.norm(X, 2) ** 2 * 20

    def weights(penalty, y):
        def step(w):
            gradient = X.T @ (X @ w - y) / 20
            by = penalty if name == "simplex" else length * penalty
            return proximal(w - length * gradient, by)

        def solve(f, w):
            return wg.fori_loop(0, 500, lambda _, w: f(w) + w, w)

        return wg.custom_root(lambda w: step(w) - w, np.array([1.0, 0.3, -0.4, 0.2]), solve)

    weights = wg.jit(weights)
    w = weights(penalty, Y)
    by_penalty, by_data = wg.jacobian(weights, (0, 1))(penalty, Y)
    np.testing.assert_allclose(
        by_penalty, slope_by_differences(lambda p: weights(p, Y), penalty, 1.0, 1e-5), atol=1e-6
    )
    direction = np.cos(np.arange(20.0))
    want = slope_by_differences(lambda y: weights(penalty, y), Y, direction, 1e-5)
    np.testing.assert_allclose(by_data @ direction, want, atol=1e-6)
    if name in ("lasso", "simplex"):
        assert np.any(w == 0.0)


def test_mirror_descent_on_the_simplex():
    """The fixed point of a multiplicative step, in logarithms: the entropic solution."""
    costs = np.array([0.3, -0.2, 0.5])

    def mixture(costs, strength):
        def step(p):
            logits = np.log(p) - 0.5 * (costs + strength * np.log(p))
            weights = np.exp(logits - np.max(logits))
            return weights / np.sum(weights)

        start = np.full(3, 1 / 3)
        return wg.custom_root(
            lambda p: step(p) - p,
            start,
            lambda f, p: wg.fori_loop(0, 200, lambda _, p: f(p) + p, p),
        )

    def softmax(costs, strength):
        weights = np.exp(-costs / strength)
        return weights / np.sum(weights)

    got = wg.jacobian(mixture, (0, 1))(costs, 0.8)
    for mine, theirs in zip(got, wg.jacobian(softmax, (0, 1))(costs, 0.8), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-12)
