"""What the tests of jaxopt check of quadratic programs, projections and fits, by SciPy's names.

A projection is the nearest point of a set: a quadratic program.  The derivative of its solution is
compared with that of a formula, where there is one, and with differences of the whole solution.
The numbers of the tests are in docs/solvers-tests.md.
"""

import numpy as np
import pytest
from scipy.optimize import Bounds

import wengert as wg
from wengert.errors import ConvergenceError
from wengert.scipy import optimize
from wengert.testing import check_grads

RNG = np.random.default_rng(7)


def nearest(x, constraints=(), bounds=None, start=None):
    """The projection by sequential quadratic programming."""
    found = optimize.minimize(
        lambda y: 0.5 * np.sum((y - x) ** 2),
        np.full(np.shape(x), 0.2) if start is None else start,
        method="SLSQP",
        constraints=constraints,
        bounds=bounds,
        tol=1e-12,
    )
    return found.x


def equal(f):
    return {"type": "eq", "fun": f}


def at_least(f):
    return {"type": "ineq", "fun": f}


# ---- formulas ----------------------------------------------------------------------------------


def simplex(x, total):
    ordered = np.sort(x)[::-1]
    shifts = (np.cumsum(ordered) - total) / np.arange(1, len(x) + 1)
    count = np.sum(ordered > shifts)
    return np.maximum(x - shifts[count - 1], 0.0)


def l1_ball(x, radius):
    inside = np.sum(np.abs(x)) <= radius
    return np.where(inside, x, np.sign(x) * simplex(np.abs(x), radius))


def l2_ball(x, radius):
    size = np.sqrt(np.sum(x**2))
    return np.where(size <= radius, x, radius * x / size)


def affine(x, a, b):
    return x - a.T @ np.linalg.solve(a @ a.T, a @ x - b)


def box_section(x, low, high, weights, total):
    """The point of a box on a hyperplane: one multiplier, the root of a monotone function."""

    def clipped(t):
        return np.clip(x + t * weights, low, high)

    t = optimize.brentq(lambda t: weights @ clipped(t) - total, -20.0, 20.0, xtol=1e-14)
    return clipped(t)


X = np.array([0.9, -0.7, 1.6, 0.3])
A = RNG.normal(size=(2, 4))
W = np.array([1.0, 2.0, 0.5, 1.5])

# name: the formula, the quadratic program, and parameters
CASES = {
    "non-negative": (
        lambda x: np.maximum(x, 0.0),
        lambda x: nearest(x, bounds=[(0.0, None)] * 4),
        (X,),
    ),
    "box": (
        lambda x, low, high: np.clip(x, low, high),
        lambda x, low, high: nearest(x, bounds=Bounds(low, high)),
        (X, np.full(4, -0.2), np.full(4, 1.1)),
    ),
    "simplex": (
        simplex,
        lambda x, s: nearest(x, equal(lambda y: np.sum(y) - s), [(0.0, None)] * 4),
        (X, 1.0),
    ),
    "simplex, larger": (
        simplex,
        lambda x, s: nearest(x, equal(lambda y: np.sum(y) - s), [(0.0, None)] * 4),
        (X, 5.0),
    ),
    "l2 sphere": (
        lambda x, r: r * x / np.sqrt(np.sum(x**2)),
        lambda x, r: nearest(x, equal(lambda y: np.sum(y**2) - r**2), start=X / 2),
        (X, 1.2),
    ),
    "l2 ball": (
        l2_ball,
        lambda x, r: nearest(x, at_least(lambda y: r**2 - np.sum(y**2)), start=X / 3),
        (X, 1.2),
    ),
    "l2 ball, inside": (
        l2_ball,
        lambda x, r: nearest(x, at_least(lambda y: r**2 - np.sum(y**2))),
        (X, 4.0),
    ),
    "maximum norm ball": (
        lambda x, r: np.clip(x, -r, r),
        lambda x, r: nearest(x, at_least(lambda y: np.concatenate([r - y, y + r]))),
        (X, 0.8),
    ),
    "hyperplane": (
        lambda x, a, b: x - a * (a @ x - b) / (a @ a),
        lambda x, a, b: nearest(x, equal(lambda y: a @ y - b)),
        (X, W, 0.4),
    ),
    "halfspace": (
        lambda x, a, b: x - a * np.maximum(a @ x - b, 0.0) / (a @ a),
        lambda x, a, b: nearest(x, at_least(lambda y: b - a @ y)),
        (X, W, 0.4),
    ),
    "halfspace, inside": (
        lambda x, a, b: x - a * np.maximum(a @ x - b, 0.0) / (a @ a),
        lambda x, a, b: nearest(x, at_least(lambda y: b - a @ y)),
        (X, W, 9.0),
    ),
    "affine set": (
        affine,
        lambda x, a, b: nearest(x, equal(lambda y: a @ y - b)),
        (X, A, np.array([0.3, -0.2])),
    ),
    "box section": (
        lambda x, w, c: box_section(x, -0.5, 1.0, w, c),
        lambda x, w, c: nearest(x, equal(lambda y: w @ y - c), [(-0.5, 1.0)] * 4),
        (X, W, 1.3),
    ),
    "box section, simplex": (
        lambda x, s: box_section(x, 0.0, 1.0, np.ones(4), s),
        lambda x, s: nearest(x, equal(lambda y: np.sum(y) - s), [(0.0, 1.0)] * 4),
        (X, 1.0),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_projections(name):
    """Points and Jacobians of the formula and of the quadratic program, and differences."""
    formula, program, arguments = CASES[name]
    numbers = tuple(range(len(arguments)))
    np.testing.assert_allclose(program(*arguments), formula(*arguments), rtol=1e-6, atol=1e-7)
    got, want = (wg.jacobian(f, numbers)(*arguments) for f in (program, formula))
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    check_grads(formula, arguments, order=1)


@pytest.mark.parametrize("f", [l1_ball, lambda x, r: np.sign(x) * simplex(np.abs(x), r)])
def test_projections_on_the_l1_ball_and_sphere(f):
    """Inside and outside of the ball, against differences and by the condition of optimality."""
    for radius in (0.6, 2.0):
        y = f(X, radius)
        np.testing.assert_allclose(np.sum(np.abs(y)), radius)
        check_grads(f, (X, radius), order=2)
    np.testing.assert_allclose(l1_ball(X, 9.0), X)


def test_simplex_in_batches():
    """Batches of projections, their gradients, and the known Jacobian on the support."""
    xs = RNG.normal(size=(6, 5))
    many = wg.jit(wg.vmap(lambda x: simplex(x, 1.0)))(xs)
    np.testing.assert_allclose(np.sum(many, axis=1), 1.0)
    jacobians = wg.jit(wg.vmap(wg.jacobian(lambda x: simplex(x, 1.0))))(xs)
    for y, found in zip(many, jacobians, strict=True):
        support = (y > 0).astype(float)
        want = np.diag(support) - np.outer(support, support) / np.sum(support)
        np.testing.assert_allclose(found, want, atol=1e-14)


def test_sparse_simplex():
    """The largest elements, projected on the simplex; the others have the derivative zero."""

    def f(x):
        chosen = np.argsort(-x)[:2]
        return np.zeros(4) + np.sum(np.eye(4)[chosen] * simplex(x[chosen], 1.0)[:, None], axis=0)

    np.testing.assert_allclose(f(X), [0.15, 0.0, 0.85, 0.0])
    check_grads(f, (X,), order=1)
    np.testing.assert_array_equal(wg.jacobian(f)(X)[:, [1, 3]], 0.0)


def test_transport_and_birkhoff_polytopes():
    """Matrices with given sums of rows and columns, as a quadratic program; differences."""

    def transport(x, rows, columns):
        sums = equal(
            lambda y: np.concatenate(
                [np.sum(y.reshape(2, 3), 1) - rows, (np.sum(y.reshape(2, 3), 0) - columns)[:-1]]
            )
        )
        return nearest(x.reshape(-1), sums, [(0.0, None)] * 6).reshape(2, 3)

    x = RNG.normal(size=(2, 3))
    rows, columns = np.array([0.6, 0.4]), np.array([0.5, 0.2, 0.3])
    plan = transport(x, rows, columns)
    np.testing.assert_allclose([*plan.sum(1), *plan.sum(0)], [*rows, *columns], atol=1e-9)
    h, direction = 1e-3, RNG.normal(size=(2, 3))
    difference = (
        transport(x + h * direction, rows, columns) - transport(x - h * direction, rows, columns)
    ) / (2 * h)
    slope = wg.jvp(lambda x: transport(x, rows, columns), (x,), (direction,))[1]
    np.testing.assert_allclose(slope, difference, atol=1e-5)
    np.testing.assert_allclose(slope.sum(1), 0.0, atol=1e-9)


def test_infeasible_sets():
    """The derivative of a projection on an empty set is an error."""
    contradiction = [at_least(lambda y: y[0] - 3.0), at_least(lambda y: 1.0 - y[0])]
    with pytest.raises(ConvergenceError, match="did not converge"):
        wg.grad(lambda x: np.sum(nearest(x, contradiction)))(X)
    with pytest.raises(ValueError, match="sign"):
        wg.grad(lambda x: np.sum(box_section(x, -0.5, 1.0, W, 50.0)))(X)


# ---- eq_qp, osqp, cd_qp ------------------------------------------------------------------------

Q = RNG.normal(size=(4, 4))
Q = Q @ Q.T + np.eye(4)
C = RNG.normal(size=4)


def kkt(q, c, a, b):
    """The solution and multipliers of an equality-constrained quadratic program."""
    n, m = len(c), len(b)
    matrix = np.concatenate(
        [np.concatenate([q, a.T], axis=1), np.concatenate([a, np.zeros((m, m))], axis=1)]
    )
    return np.linalg.solve(matrix, np.concatenate([-c, b]))[:n]


def test_quadratic_programs_with_equalities():
    """`minimize`, a root of the conditions, and the linear system agree in all derivatives."""

    def by_minimize(q, c, a, b):
        objective = lambda x: 0.5 * x @ ((q + q.T) / 2 @ x) + c @ x  # noqa: E731
        constraint = equal(lambda x: a @ x - b)
        return optimize.minimize(objective, np.zeros(4), constraints=constraint, tol=1e-14).x

    def by_root(q, c, a, b):
        def conditions(z):
            x, multipliers = z
            return (q + q.T) / 2 @ x + c + a.T @ multipliers, a @ x - b

        def solver(f, z):
            x = kkt((q + q.T) / 2, c, a, b)
            multipliers = np.linalg.lstsq(a.T, -((q + q.T) / 2 @ x + c))[0]
            return x, multipliers

        return wg.custom_root(conditions, (np.zeros(4), np.zeros(2)), solver, check=1e-9)[0]

    arguments = Q, C, A, np.array([0.5, -1.0])
    want = wg.jacobian(lambda q, c, a, b: kkt((q + q.T) / 2, c, a, b), (0, 1, 2, 3))(*arguments)
    for f in (by_minimize, by_root):
        for x, y in zip(wg.jacobian(f, (0, 1, 2, 3))(*arguments), want, strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-6)


def test_quadratic_programs_with_inequalities():
    """Only active constraints matter: the derivative is that of the program with equalities."""
    g, h = np.concatenate([A, -A[:1]]), np.array([0.5, -1.0, 30.0])

    def program(c, h):
        objective = lambda x: 0.5 * x @ Q @ x + c @ x  # noqa: E731
        limits = at_least(lambda x: h - g @ x)
        return optimize.minimize(objective, np.zeros(4), constraints=limits, tol=1e-14)

    found = program(C, h)
    active = np.abs(h - g @ found.x) < 1e-7
    assert 0 < active.sum() < 3
    want = wg.jacobian(lambda c, h: kkt(Q, c, g[active], h[active]), (0, 1))(C, h)
    got = wg.jacobian(lambda c, h: program(c, h).x, (0, 1))(C, h)
    for x, y in zip(got, want, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-6)
    # inactive constraints are not kept as equalities (jkitchin/pounce #73)
    np.testing.assert_allclose(got[1][:, ~active], 0.0, atol=1e-9)


def test_support_vector_machine():
    """The dual of a binary support vector machine: bounds, one equality; by the regularization."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=(8, 2)) + np.repeat([[1.0, 1.0], [-1.0, -1.0]], 4, axis=0)
    y = np.repeat([1.0, -1.0], 4)
    kernel = np.outer(y, y) * (x @ x.T) + 0.1 * np.eye(8)

    def dual(limit):
        return optimize.minimize(
            lambda b: 0.5 * b @ kernel @ b - np.sum(b),
            np.full(8, 0.01),
            bounds=Bounds(np.zeros(8), np.full(8, 1.0) * limit),
            constraints=equal(lambda b: y @ b),
            method="SLSQP",
            tol=1e-14,
        ).x

    limit = 0.3
    slope = wg.jacobian(dual)(limit)
    difference = (dual(limit + 1e-5) - dual(limit - 1e-5)) / 2e-5
    np.testing.assert_allclose(slope, difference, atol=1e-4)


def test_lasso_and_nonnegative_least_squares():
    """The lasso as a program with doubled unknowns, and `nnls`, by their conditions."""
    x, y = RNG.normal(size=(12, 3)), RNG.normal(size=12)

    def lasso(penalty):
        def objective(z):
            return 0.5 * np.sum((x @ (z[:3] - z[3:]) - y) ** 2) + penalty * np.sum(z)

        z = optimize.minimize(
            objective, np.full(6, 0.1), bounds=[(0.0, None)] * 6, method="SLSQP", tol=1e-15
        ).x
        return np.sum((x @ (z[:3] - z[3:]) - y) ** 2)

    penalty = 0.8
    difference = (lasso(penalty + 1e-4) - lasso(penalty - 1e-4)) / 2e-4
    value = wg.value_and_grad(lasso)
    np.testing.assert_allclose(value(penalty)[1], difference, rtol=1e-3)
    check_grads(lambda x, y: optimize.nnls(x, y)[0], (x, y), order=1)


# ---- scipy_wrappers, levenberg_marquardt, gauss_newton -----------------------------------------


@pytest.mark.parametrize("method", ["BFGS", "L-BFGS-B", "CG", "Newton-CG", "trust-exact"])
def test_logistic_regression(method):
    """The weights by the penalty, for a container of parameters flattened by the program."""
    x, y = RNG.normal(size=(30, 3)), (RNG.uniform(size=30) > 0.5) * 1.0

    def fitted(penalty):
        def loss(w):
            scores = x @ w[:3] + w[3]
            return np.mean(np.logaddexp(0.0, scores) - y * scores) + 0.5 * penalty * w @ w

        return optimize.minimize(loss, np.zeros(4), method=method, tol=1e-8).x

    def optimality(w, penalty):
        chance = 1.0 / (1.0 + np.exp(-(x @ w[:3] + w[3])))
        design = np.concatenate([x, np.ones((30, 1))], axis=1)
        hessian = design.T @ (design * (chance * (1 - chance))[:, None]) / 30 + penalty * np.eye(4)
        return -np.linalg.solve(hessian, w)

    w = fitted(0.2)
    np.testing.assert_allclose(wg.jacobian(fitted)(0.2), optimality(w, 0.2), rtol=1e-4)


def test_bounds_have_derivatives():
    """A box that grows: elements at active bounds move with them."""

    def solved(half):
        objective = lambda x: np.sum((x - np.array([2.0, 0.1, -3.0])) ** 2)  # noqa: E731
        box = Bounds(-half * np.ones(3), half * np.ones(3))
        return optimize.minimize(objective, np.zeros(3), method="L-BFGS-B", bounds=box).x

    np.testing.assert_allclose(wg.jacobian(solved)(1.0), [1.0, 0.0, -1.0], atol=1e-7)


@pytest.mark.parametrize("method", ["lm", "trf", "dogbox"])
def test_enzyme_reaction(method):
    """Michaelis and Menten's rates (J. Stat. Softw. data of the classic example), by the data."""
    substrate = np.array([0.038, 0.194, 0.425, 0.626, 1.253, 2.500, 3.740])
    rate = np.array([0.050, 0.127, 0.094, 0.2122, 0.2729, 0.2665, 0.3317])

    def fitted(rate):
        def residual(p):
            return rate - p[0] * substrate / (p[1] + substrate)

        exact = {"xtol": 1e-14, "ftol": 1e-15, "gtol": 1e-14}
        return optimize.least_squares(residual, np.array([0.9, 0.2]), method=method, **exact).x

    np.testing.assert_allclose(fitted(rate), [0.362, 0.556], atol=2e-3)
    h, direction = 1e-4, 0.1 * RNG.normal(size=7)
    difference = (fitted(rate + h * direction) - fitted(rate - h * direction)) / (2 * h)
    slope = wg.jvp(fitted, (rate,), (direction,))[1]
    np.testing.assert_allclose(slope, difference, rtol=1e-3)


@pytest.mark.parametrize("method", ["lm", "trf"])
def test_rosenbrock_and_exponentials(method):
    """Zero residuals (Rosenbrock), and a sum of two exponentials, whose data are varied."""

    def rosenbrock(a):
        residual = lambda x: np.array([10.0 * (x[1] - x[0] ** 2), a - x[0]])  # noqa: E731
        return optimize.least_squares(residual, np.array([-1.2, 1.0]), method=method).x

    np.testing.assert_allclose(rosenbrock(1.0), [1.0, 1.0], rtol=1e-8)
    np.testing.assert_allclose(wg.jacobian(rosenbrock)(1.0), [1.0, 2.0], rtol=1e-7)
    t = np.linspace(0.0, 4.0, 20)

    def exponentials(y):
        def residual(p):
            return p[0] * np.exp(-p[1] * t) + p[2] * np.exp(-p[3] * t) - y

        start = np.array([1.0, 0.5, 1.0, 2.0])
        return optimize.least_squares(residual, start, method=method, xtol=1e-14, gtol=1e-14).x

    y = 1.3 * np.exp(-0.4 * t) + 0.7 * np.exp(-2.5 * t)
    np.testing.assert_allclose(exponentials(y), [1.3, 0.4, 0.7, 2.5], rtol=1e-6)
    slope = wg.jvp(exponentials, (y,), (np.cos(t),))[1]
    h = 1e-5
    difference = (exponentials(y + h * np.cos(t)) - exponentials(y - h * np.cos(t))) / (2 * h)
    np.testing.assert_allclose(slope, difference, rtol=1e-3)
