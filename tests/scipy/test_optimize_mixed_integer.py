"""Mixed-integer programs: values of SciPy, derivatives for fixed integers, and refusals."""

import numpy as np
import pytest
import scipy.optimize as theirs

import wengert as wg
from wengert.errors import ArgumentError, ConvergenceError, MatrixError
from wengert.scipy import optimize
from wengert.testing import check_grads

MODES = pytest.mark.parametrize("compiled", [False, True], ids=["eager", "jit"])
C = np.array([3.0, 2.2, 4.1, 1.7])
KINDS = [1, 0, 0, 1]
A = np.array([[2.0, 1.0, 0.5, 1.0], [1.0, 0.3, 1.5, 0.2], [1.0, 0.0, 0.0, 1.0]])
LOW, HIGH = np.array([5.3, 3.1, 2.0]), np.array([np.inf, 9.0, 2.0])
UPPER = np.array([4.0, 0.9, 5.0, 4.0])


def mode(compiled, f):
    return wg.jit(f) if compiled else f


def program(c=C, a=A, low=LOW, upper=UPPER):
    return optimize.milp(
        c, integrality=KINDS, bounds=theirs.Bounds(np.zeros(4), upper), constraints=(a, low, HIGH)
    )


@pytest.mark.sample(1)
@MODES
def test_values_and_derivatives(compiled):
    """The cost and the solution by all data, to order two; SciPy's value."""
    data = (C, A, LOW, UPPER)
    plain = theirs.milp(
        C, integrality=KINDS, bounds=theirs.Bounds(0, UPPER), constraints=(A, LOW, HIGH)
    )
    cost, solution = (mode(compiled, lambda *d, n=n: program(*d)[n]) for n in ("fun", "x"))
    np.testing.assert_allclose(cost(*data), plain.fun, rtol=1e-12)
    np.testing.assert_allclose(solution(*data), plain.x, atol=1e-9)
    # A change of the equality of integers alone makes the program infeasible.
    moved = lambda c, a, b, u, get: get(c, np.concatenate([a, A[2:]]), np.append(b, 2.0), u)  # noqa: E731
    arguments = (C, A[:2], LOW[:2], UPPER)
    check_grads(lambda *d: moved(*d, cost), arguments, order=2, entries=False)
    check_grads(lambda *d: moved(*d, solution), arguments, order=1, entries=False)
    by_cost = mode(compiled, wg.jacobian(lambda c: program(c).x))(C)
    np.testing.assert_allclose(by_cost, 0.0, atol=1e-12)


@pytest.mark.sample(1)
@MODES
def test_sides_and_bounds(compiled):
    """Equalities of continuous unknowns, lower and upper sides, two constraints, and batches."""

    def cost(p):
        constraints = [
            theirs.LinearConstraint(np.array([[1.0, 1.0, 2.0]]), p[0], p[0]),
            (np.array([[1.0, -1.0, 0.0]]), -1.0, p[1]),
        ]
        return optimize.milp(
            [-1.0, -2.0, -2.9], integrality=[0, 0, 1], constraints=constraints,
            bounds=theirs.Bounds(0.0, p[2:]),
        ).fun  # fmt: skip

    p = np.array([5.5, 0.7, 4.0, 4.0, 1.3])
    check_grads(mode(compiled, cost), (p,), order=2)
    many = np.stack([p, p + 0.1, p * 1.5])
    found = mode(compiled, wg.vmap(wg.grad(cost)))(many)
    np.testing.assert_allclose(found, [wg.grad(cost)(q) for q in many], atol=1e-12)


@pytest.mark.sample(1)
@MODES
def test_semicontinuous_unknowns(compiled):
    """An unknown that is zero or at least its lower bound."""

    def found(c):
        return optimize.milp(
            c, integrality=[2, 0], bounds=theirs.Bounds([2.0, 0.0], [3.0, 9.0]),
            constraints=([[1.0, 1.0]], c[1] + 1.5, np.inf),
        )  # fmt: skip

    for c in (np.array([1.0, 1.1]), np.array([3.0, 1.1])):
        check_grads(mode(compiled, lambda c: found(c).fun), (c,), order=2, entries=False)
        check_grads(mode(compiled, lambda c: found(c).x), (c,), order=1)
    x = mode(compiled, lambda c: found(c).x)(c)
    np.testing.assert_allclose(x, [0.0, 2.6], atol=2e-6)  # the tolerance of HiGHS is 1e-6


@MODES
def test_integers_only(compiled):
    """A knapsack: the derivative of the value is the choice; none by the capacity."""
    worth, weight = np.array([10.0, 13.0, 7.0, 8.0]), np.array([3.0, 4.0, 2.0, 3.0])

    def value(worth, room):
        return -optimize.milp(
            -worth, integrality=1, bounds=theirs.Bounds(0, 1),
            constraints=(weight[None], -np.inf, room),
        ).fun  # fmt: skip

    by_worth, by_room = mode(compiled, wg.grad(value, (0, 1)))(worth, 7.0)
    plain = theirs.milp(-worth, integrality=1, bounds=theirs.Bounds(0, 1),
                        constraints=(weight[None], -np.inf, 7.0))  # fmt: skip
    np.testing.assert_allclose(by_worth, plain.x)
    assert by_room == 0.0


def test_without_tensors_and_bad_input():
    """Plain calls are SciPy's; what has no derivative is refused by name."""
    ours = optimize.milp(C, integrality=KINDS, constraints=(A, LOW, HIGH))
    assert ours.fun == theirs.milp(C, integrality=KINDS, constraints=(A, LOW, HIGH)).fun
    with pytest.raises(ConvergenceError, match="did not converge"):
        wg.grad(lambda b: optimize.milp(C, constraints=(-A, b, np.inf)).fun)(LOW)
    with pytest.raises(ArgumentError, match="integrality is a tensor"):
        wg.grad(lambda c: optimize.milp(c, integrality=c).fun)(C)
    with pytest.raises(ArgumentError, match="must be 0, 1, 2 or 3"):
        wg.grad(lambda c: optimize.milp(c, integrality=5).fun)(C)
    limit = theirs.NonlinearConstraint(lambda x: x, 0.0, 1.0)
    with pytest.raises(ArgumentError, match="NonlinearConstraint"):
        wg.grad(lambda c: optimize.milp(c, constraints=limit).fun)(C)

    def not_unique(b):
        equal = ([[1.0, 1.0, 0.0]], b, b)
        return optimize.milp(np.ones(3), integrality=[0, 0, 1], constraints=equal).x[0]

    with pytest.raises(MatrixError, match="ingular"):
        wg.grad(not_unique)(1.0)
