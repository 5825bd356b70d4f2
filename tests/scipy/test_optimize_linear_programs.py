"""Linear programs and assignments: derivatives of solutions and of minimal costs."""

import numpy as np
import pytest
import scipy.optimize as theirs

import wengert as wg
from wengert._engine.implicit.functions import GraphFunction
from wengert.errors import ArgumentError, ConvergenceError, MatrixError
from wengert.scipy import optimize
from wengert.testing import check_grads

MODES = pytest.mark.parametrize("compiled", [False, True], ids=["eager", "jit"])
RNG = np.random.default_rng(11)
C = np.array([1.0, 2.5, -1.0, 0.3])
A_UB = RNG.uniform(0.2, 1.0, size=(3, 4))
B_UB = np.array([2.0, 1.5, 3.0])
A_EQ, B_EQ = np.array([[1.0, 1.0, 0.3, 1.0]]), np.array([1.2])
BOUNDS = [(0.0, 0.7), (0.0, None), (None, 1.1), (0.05, 2.0)]


def mode(compiled, f):
    return wg.jit(f) if compiled else f


def program(c=C, a_ub=A_UB, b_ub=B_UB, a_eq=A_EQ, b_eq=B_EQ, bounds=BOUNDS, **how):
    return optimize.linprog(c, a_ub, b_ub, a_eq, b_eq, bounds, **how)


@MODES
@pytest.mark.parametrize("method", ["highs", "highs-ds", "highs-ipm"])
@pytest.mark.sample(3)  # each method
def test_values_and_gradients_of_the_cost(method, compiled):
    """The cost by all data, to order two."""
    plain = theirs.linprog(C, A_UB, B_UB, A_EQ, B_EQ, BOUNDS, method)

    def cost(*data):
        return program(*data, method=method).fun

    data = (C, A_UB, B_UB, A_EQ, B_EQ)
    np.testing.assert_allclose(mode(compiled, cost)(*data), plain.fun, rtol=1e-9)
    gradients = mode(compiled, wg.grad(cost, (0, 1, 2, 3, 4)))(*data)
    np.testing.assert_allclose(gradients[0], plain.x, atol=1e-9)
    np.testing.assert_allclose(gradients[2], plain.ineqlin.marginals, atol=1e-9)
    np.testing.assert_allclose(gradients[4], plain.eqlin.marginals, atol=1e-9)
    if method == "highs" and compiled:
        check_grads(mode(compiled, cost), data, order=2)


@pytest.mark.sample(1)
@MODES
def test_solutions(compiled):
    """The solution by right-hand sides, matrices and bounds; not by costs."""

    def x_of(a_ub, b_ub, b_eq):
        return program(C, a_ub, b_ub, A_EQ, b_eq).x

    check_grads(mode(compiled, x_of), (A_UB, B_UB, B_EQ), order=1 + compiled)
    by_cost = mode(compiled, wg.jacobian(lambda c: program(c).x))(C)
    np.testing.assert_allclose(by_cost, 0.0, atol=1e-12)

    def by_bound(u):
        found = program(bounds=[(0.0, u), (0.0, None), (None, u + 0.4), (0.05, 2.0)])
        return np.concatenate([found.x, np.reshape(found.fun, (1,))])

    check_grads(mode(compiled, by_bound), (0.7,), order=1)


def test_slack_and_residuals():
    """The result has SciPy's fields."""
    found = []

    def f(b):
        found.append(program(b_ub=b))
        return found[0].fun

    wg.grad(f)(B_UB)
    plain = theirs.linprog(C, A_UB, B_UB, A_EQ, B_EQ, BOUNDS)
    np.testing.assert_allclose(np.asarray(found[0].slack.detach()), plain.slack, atol=1e-12)
    assert set(plain) - {"mip_gap"} <= set(found[0])


@MODES
def test_one_pair_of_bounds(compiled):
    """SciPy's default bounds, and one pair for all unknowns."""
    for bounds in ((0, None), (0, 0.9), None):
        f = lambda b, bounds=bounds: program(b_ub=b, bounds=bounds, c=np.abs(C)).fun  # noqa: E731
        plain = theirs.linprog(
            np.abs(C), A_UB, B_UB, A_EQ, B_EQ, (0, None) if bounds is None else bounds
        )
        np.testing.assert_allclose(mode(compiled, wg.grad(f))(B_UB), plain.ineqlin.marginals)


@MODES
def test_refused_derivatives(compiled):
    """Infeasible programs, and vertices that are not unique."""
    for of in (lambda found: found.x[0], lambda found: found.fun):
        infeasible = lambda b, of=of: of(program(b_eq=b, bounds=(0, 0.1)))  # noqa: E731
        with pytest.raises(ConvergenceError, match="did not converge"):
            mode(compiled, wg.grad(infeasible))(B_EQ)
        assert np.isnan(wg.jit(infeasible)(B_EQ))

    def not_unique(b):
        return optimize.linprog(np.ones(2), A_eq=np.ones((1, 2)), b_eq=b).x[0]

    with pytest.raises(MatrixError, match="ingular"):
        mode(compiled, wg.grad(not_unique))(np.array([1.0]))


@pytest.mark.sample(1)
@MODES
def test_assignment(compiled):
    """Costs of assignments, for wide and high matrices, least and greatest."""
    for shape in ((4, 4), (3, 5), (5, 3)):
        cost = RNG.normal(size=shape)
        for maximize in (False, True):

            def f(c, maximize=maximize):
                rows, columns = optimize.linear_sum_assignment(c, maximize)
                return np.sum(c[rows, columns] ** 2)

            check_grads(mode(compiled, f), (cost,), order=2)
            rows, columns = theirs.linear_sum_assignment(cost, maximize)
            np.testing.assert_allclose(mode(compiled, f)(cost), np.sum(cost[rows, columns] ** 2))


def test_a_batch_of_assignments():
    """`vmap` assigns each matrix."""

    def f(c):
        rows, columns = optimize.linear_sum_assignment(c)
        return np.sum(c[rows, columns])

    many = RNG.normal(size=(3, 4, 4))
    for transform in (lambda g: g, wg.jit):
        np.testing.assert_allclose(transform(wg.vmap(f))(many), [f(c) for c in many])
        got = transform(wg.vmap(wg.grad(f)))(many)
        np.testing.assert_allclose(got, [wg.grad(f)(c) for c in many])


def test_bad_input():
    """Errors name what is wrong."""
    with pytest.raises(ArgumentError, match="continuous unknowns only"):
        wg.grad(lambda c: program(c, integrality=np.ones(4)).fun)(C)
    with pytest.raises(ArgumentError, match="HiGHS"):
        wg.grad(lambda c: program(c, method="simplex").fun)(C)
    with pytest.raises(ValueError, match=r"[Ii]nvalid|infeasible|NaN|inf"):
        wg.grad(lambda c: optimize.linear_sum_assignment(c * np.nan)[0].sum() * c[0, 0])(np.eye(2))


def test_later_calls_trace_nothing(monkeypatch):
    """Graphs of conditions and costs depend on shapes only, and are kept; values are current."""
    a = np.array([[1.0, 2.0], [0.5, -1.0], [1.0, 1.0]])
    programs = {
        "linprog": lambda b: optimize.linprog([3.0, 5.0], -a, -b, bounds=[(0, 4), (0, 9)]).fun,
        "milp": lambda b: (
            optimize.milp([3.0, 5.0], integrality=[1, 0], constraints=(a, b, np.inf)).fun
        ),
        "nnls": lambda b: np.sum(optimize.nnls(a, b)[0]),
        "lsq_linear": lambda b: np.sum(optimize.lsq_linear(a, b, (0.0, 0.7)).x),
    }
    points = np.array([3.2, -1.0, 1.0]), np.array([4.7, -2.0, 2.5])
    want = {k: wg.grad(f)(points[1]) for k, f in programs.items()}
    for f in programs.values():
        wg.grad(f)(points[0])

    def traced(*_, **__):
        raise AssertionError("a graph is traced again")

    monkeypatch.setattr(GraphFunction, "traced_alone", traced)
    monkeypatch.setattr(GraphFunction, "traced_together", traced)
    for k, f in programs.items():
        np.testing.assert_array_equal(wg.grad(f)(points[1]), want[k])
