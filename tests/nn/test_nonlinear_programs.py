"""optim.nlp: known solutions, derivatives against finite differences of whole solves, bad input."""

import signal

import numpy as np
import pytest
import scipy.sparse
from scipy.optimize import Bounds, LinearConstraint, NonlinearConstraint

import wengert as wg
from wengert.errors import ArgumentError, ConvergenceError, MatrixError, ShapeError, StructureError
from wengert.optim import nlp
from wengert.optim.nonlinear_programs import ipopt, problem_data, program

from .hock_schittkowski import PROBLEMS

needs_ipopt = pytest.mark.skipif(not ipopt.is_installed(), reason="ipyopt is not installed")
METHODS = [pytest.param("ipopt", marks=needs_ipopt), "trust-constr"]


def rosenbrock(x):
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def squares(x):
    return np.sum(x * x)


@pytest.mark.sample(4)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda p: f"hs{p.number}")
def test_known_minima(problem, method):
    found = nlp(
        problem.f,
        np.array(problem.start),
        problem.g,
        problem.bounds,
        lower=problem.lower,
        upper=problem.upper,
        method=method,
    )
    assert found.success and found.violated is None
    assert abs(found.fun - problem.minimum) < 2e-7 * (1.0 + abs(problem.minimum))


@pytest.mark.parametrize("method", METHODS)
def test_rosenbrock_without_constraints(method):
    found = nlp(rosenbrock, np.zeros(12), method=method)
    assert found.success and np.allclose(found.x, 1.0, atol=1e-7)
    assert found.multipliers.constraints is None
    assert found.evaluations["h"] > 0 and found.seconds["functions"] > 0.0


# ---- derivatives ---------------------------------------------------------------------------------


def solution(p, method):
    """A program with an active inequality, an inactive one, an active bound, and an equality."""

    def f(x):
        return np.sum((x - p[:4]) ** 2) + 0.1 * np.sum(x**4) + x[0] * x[1]

    def g(x):
        return np.stack([x[0] + p[4] * x[1] ** 2, np.sum(x), x[2] * x[3]])

    lower = np.stack([p[5] * 0.0 - 10.0, p[5] * 0.0 + 1.5, p[5] * 0.0 - 50.0])
    upper = np.stack([p[5], p[5] * 0.0 + 1.5, p[5] * 0.0 + 50.0])
    bounds = Bounds(np.stack([p[0] * 0.0 - 5.0] * 3 + [p[6]]), np.full(4, 6.0))
    return nlp(f, np.full(4, 0.5), g, bounds, lower=lower, upper=upper, method=method, tol=1e-10)


PARAMETERS = np.array([1.0, 1.2, 0.3, -2.0, 1.5, 0.7, -0.25])


def difference(fun, p, step=1e-5):
    columns = []
    for k in range(len(p)):
        e = np.zeros(len(p))
        e[k] = step
        columns.append((fun(p + e) - fun(p - e)) / (2.0 * step))
    return np.stack(columns, axis=-1)


@pytest.mark.sample(1)
@pytest.mark.parametrize("method", METHODS)
def test_derivatives_are_those_of_the_whole_solve(method):
    p = PARAMETERS
    found = solution(p, method)
    y, nu = found.multipliers
    assert y[0] > 0.1 and y[2] == 0.0 and nu[3] < -0.1 and not np.any(nu[:3])

    def parts(p):  # x, fun and the multipliers of the constraints
        found = solution(p, method)
        return np.concatenate([found.x, np.stack([found.fun]), found.multipliers.constraints])

    expected = difference(parts, p)  # one solve for all parts
    for found in (wg.jacrev(parts)(p), wg.jacfwd(parts)(p)):
        assert np.allclose(found[:5], expected[:5], atol=2e-5)
        assert np.allclose(found[5:], expected[5:], atol=1e-4)
    fun_of = lambda p: solution(p, method).fun  # noqa: E731
    assert np.allclose(wg.grad(fun_of)(p), expected[4], atol=2e-5)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.sample(1)
def test_derivatives_of_second_order(method):
    value = lambda p: np.sum(np.sin(solution(p, method).x))  # noqa: E731
    expected = difference(wg.grad(value), PARAMETERS, 1e-4)
    assert np.allclose(wg.hessian(value)(PARAMETERS), expected, atol=1e-4)
    fun = lambda p: solution(p, method).fun  # noqa: E731
    expected = difference(wg.grad(fun), PARAMETERS, 1e-4)
    assert np.allclose(wg.hessian(fun)(PARAMETERS), expected, atol=1e-4)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.sample(1)
def test_compiled_and_batched_derivatives(method):
    x_of = lambda p: solution(p, method).x  # noqa: E731
    expected = wg.jacrev(x_of)(PARAMETERS)
    assert np.allclose(wg.jit(wg.jacrev(x_of))(PARAMETERS), expected, atol=1e-9)
    both = np.stack([PARAMETERS, PARAMETERS * 1.01])
    batched = wg.vmap(wg.jacrev(x_of))(both)
    assert np.allclose(batched[0], expected, atol=1e-9)
    assert np.allclose(batched[1], wg.jacrev(x_of)(both[1]), atol=1e-9)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.sample(1)
def test_large_programs_have_sparse_systems(method, monkeypatch):
    value = lambda p: np.sum(np.sin(solution(p, method).x))  # noqa: E731
    expected = wg.grad(value)(PARAMETERS), wg.hessian(value)(PARAMETERS)
    free = lambda p: np.sum(nlp(lambda x: np.sum((x - p) ** 4 + x**2), np.ones(3)).x ** 2)  # noqa: E731
    without = wg.grad(free)(PARAMETERS[:3])
    monkeypatch.setattr(program, "_DENSE_SIZE", 0)
    assert np.allclose(wg.grad(value)(PARAMETERS), expected[0], rtol=1e-9)
    assert np.allclose(wg.jit(wg.grad(value))(PARAMETERS), expected[0], rtol=1e-9)
    assert np.allclose(wg.hessian(value)(PARAMETERS), expected[1], rtol=1e-7)
    direction = np.cos(PARAMETERS)
    tangent = wg.jvp(value, (PARAMETERS,), (direction,))[1]
    assert np.isclose(tangent, expected[0] @ direction, rtol=1e-9)
    assert np.allclose(wg.grad(free)(PARAMETERS[:3]), without, rtol=1e-9)


def test_solutions_that_are_not_unique_have_no_derivative():
    def value(p):
        return np.sum(nlp(lambda x: (x[0] + x[1] - p) ** 2, np.zeros(2)).x)

    with pytest.raises(MatrixError):
        wg.grad(value)(1.0)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.sample(1)
def test_limits_that_are_not_active_do_not_matter(method):
    """The derivative is that without them, for general constraints and for bounds."""

    def x_of(p, **more):
        return nlp(lambda x: np.sum((x - p) ** 2), np.zeros(2), method=method, **more).x

    p = np.array([0.3, -0.4])
    far = {"constraints": lambda x: x @ x, "upper": 4.0, "bounds": [(-2.0, 2.0)] * 2}
    assert np.allclose(wg.jacobian(lambda p: x_of(p, **far))(p), np.eye(2), atol=1e-6)
    near = {"constraints": lambda x: x[0] - 0.0, "upper": 0.1}
    expected = np.array([[0.0, 0.0], [0.0, 1.0]])
    assert np.allclose(wg.jacobian(lambda p: x_of(p, **near))(p), expected, atol=1e-6)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.sample(1)
def test_arguments_are_differentiated(method):
    def cheapest(prices, amount):
        found = nlp(
            lambda x, c, a: c @ x,
            np.ones(3),
            lambda x, c, a: np.prod(x) - a,
            [(0.1, None)] * 3,
            lower=0.0,
            args=(prices, amount),
            method=method,
        )
        return found.fun

    prices = np.array([1.0, 2.0, 4.0])  # the cost is 3 (a c0 c1 c2)**(1/3)
    cost = 3.0 * (8.0 * 8.0) ** (1.0 / 3.0)
    by_prices, by_amount = wg.grad(cheapest, argnums=(0, 1))(prices, 8.0)
    assert np.allclose(by_prices, cost / 3.0 / prices) and np.isclose(by_amount, cost / 24.0)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.sample(1)
def test_bounds_in_containers_are_differentiated(method):
    def x_of(end):
        bounds = ({"a": np.zeros(2), "b": None}, {"a": end, "b": 9.0})
        f = lambda x: np.sum((x["a"] - 2.0) ** 2) + (x["b"] - x["a"][0]) ** 2  # noqa: E731
        return nlp(f, {"a": np.zeros(2), "b": 0.0}, None, bounds, method=method).x["b"]

    assert np.allclose(wg.grad(x_of)(np.array([1.0, 1.5])), [1.0, 0.0], atol=1e-6)
    assert np.allclose(wg.jit(wg.grad(x_of))(np.array([1.0, 1.5])), [1.0, 0.0], atol=1e-6)


@pytest.mark.parametrize("method", METHODS)
def test_weakly_active_limits_are_named(method):
    found = nlp(
        lambda x: np.sum((x - 1.0) ** 2), np.zeros(2), bounds=[(-3, 1), (-3, 3)], method=method
    )
    assert found.degenerate == ("x[0]",)


@pytest.mark.parametrize("method", METHODS)
def test_unconverged_solutions_have_no_derivative(method):
    limit = {"max_iter" if method == "ipopt" else "maxiter": 2}

    def value(p):
        found = nlp(lambda x: p * rosenbrock(x), np.zeros(5), method=method, options=limit)
        assert not found.success and "maximum number of iterations" in found.message
        return found.fun

    assert np.isfinite(value(1.0))
    with pytest.raises(ConvergenceError, match="maximum number of iterations"):
        wg.grad(value)(1.0)


# ---- repeated solves -----------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_functions_are_compiled_once_and_not_called(method):
    calls = []

    def f(x, target):
        calls.append(1)
        return rosenbrock(x) + np.sum((x - target) ** 2)

    first = nlp(f, np.zeros(6), args=(np.ones(6),), method=method)
    second = nlp(f, np.zeros(6), args=(np.full(6, 2.0),), method=method)
    assert first.success and second.success and not np.allclose(first.x, second.x)
    assert len(calls) == 2 and second.seconds["build"] == 0.0


@pytest.mark.sample(1)
@pytest.mark.parametrize("method", METHODS)
def test_warm_start_needs_fewer_iterations(method):
    problem = PROBLEMS[-1]
    given = dict(lower=problem.lower, method=method)

    def solve(shift, **more):
        f = lambda x: problem.f(x) + shift * x[0]  # noqa: E731
        return nlp(f, np.array(problem.start), problem.g, **given, **more)

    first = solve(0.0)
    cold, warm = solve(0.05), solve(0.05, warm_start=first)
    assert warm.success and warm.nit < cold.nit
    assert np.allclose(warm.x, cold.x, atol=1e-5)


def test_patterns_know_the_indices():
    """Large index arrays are constants, not operands, of which nothing would be known."""
    k = np.arange(200)
    chain = np.stack([k, (k + 1) % 200])
    before = set(problem_data._programs)
    nlp(
        squares,
        np.zeros(200),
        lambda x: x[chain[0]] * x[chain[1]],
        lower=0.5,
        options={"max_iter": 1} if ipopt.is_installed() else {"maxiter": 1},
    )
    (new,) = set(problem_data._programs) - before
    compiled = problem_data._programs[new]
    assert compiled.jacobian.nnz == 400 and compiled.hessian.nnz <= 600


@pytest.mark.sample(1)
@pytest.mark.parametrize("size", [3, 100])
def test_captured_arrays_are_read_at_each_call(size):
    index, target = np.zeros(size, int), np.ones(size)

    def solve():
        f = lambda x: np.sum((x[index] - target) ** 2) + 1e-3 * squares(x)  # noqa: E731
        return nlp(f, np.zeros(2)).x

    first = solve()
    target[:] = 2.0
    second = solve()
    index[:] = 1
    third = solve()
    assert np.allclose([first[1], second[1], third[0]], 0.0, atol=1e-6)
    assert np.isclose(second[0], 2.0 * first[0]) and np.isclose(third[1], second[0])


# ---- forms ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_forms_of_scipy(method):
    forms = [
        LinearConstraint(scipy.sparse.csr_array(np.ones((1, 3))), 2.0, 2.0),
        NonlinearConstraint(lambda x: x[0] ** 2, 1.0, 3.0),
        {"type": "ineq", "fun": lambda x, a: x[1] - a * x[2], "args": (2.0,)},
    ]
    found = nlp(squares, np.ones(3), forms, Bounds(0.0, 5.0), method=method)
    # x0 = 1 is active, and x1 = 2 x2: minimize 5 x2**2 with 3 x2 = 1.
    assert np.allclose(found.x, [1.0, 2.0 / 3.0, 1.0 / 3.0], atol=1e-6)
    shapes = [np.shape(y) for y in found.multipliers.constraints]
    assert shapes == [(1,), (), ()]


@pytest.mark.parametrize("method", METHODS)
def test_containers(method):
    found = nlp(
        lambda x: (x["a"] - 1.0) ** 2 + np.sum((x["b"] - 2.0) ** 2),
        {"b": np.zeros(2), "a": 0.0},
        {"sums": lambda x: {"s": x["a"] + x["b"], "t": x["a"]}},
        (0.0, {"b": np.ones(2), "a": 5.0}),
        upper={"s": np.array([1.5, 9.0]), "t": None},
        method=method,
    )
    assert np.allclose(found.x["b"], 1.0, atol=1e-6) and np.isclose(found.x["a"], 0.5, atol=1e-6)
    assert found.multipliers.constraints["sums"]["s"].shape == (2,)
    assert np.allclose(
        found.multipliers.bounds["b"] + found.multipliers.constraints["sums"]["s"], 2.0
    )


@pytest.mark.parametrize("method", METHODS)
def test_limits_with_dependent_gradients(method):
    """Three limits for two unknowns: the multipliers are not unique, the solution is."""
    sums = lambda x: np.stack([x[0] + x[1], x[0] + 1.0 * x[1]])  # noqa: E731
    f = lambda x: (x[0] - 1.0) ** 2 + (x[1] - 2.0) ** 2  # noqa: E731
    found = nlp(f, np.zeros(2), sums, [(None, None), (None, 1.0)], upper=1.5, method=method)
    assert found.success and np.allclose(found.x, [0.5, 1.0], atol=1e-7)


@pytest.mark.parametrize("method", METHODS)
def test_scaling(method):
    f = lambda x: (1e4 * x[0] - 1.0) ** 2 + (x[1] - 3.0) ** 2  # noqa: E731
    factors = {"x": np.array([1e4, 1.0]), "fun": 0.5, "constraints": 2.0}
    found = nlp(
        f, np.zeros(2), lambda x: 1e4 * x[0] + x[1], upper=2.0, scaling=factors, method=method
    )
    assert np.allclose(found.x * factors["x"], [0.0, 2.0], atol=1e-5)
    assert np.isclose(found.multipliers.constraints, 2.0, atol=1e-4)
    assert nlp(f, np.zeros(2), scaling=None, method=method).success


@pytest.mark.parametrize("method", METHODS)
def test_callbacks(method):
    seen = []
    nlp(rosenbrock, np.zeros(4), method=method, callback=seen.append)
    assert len(seen) > 3 and seen[-1].fun < 1e-8

    def stops(progress):
        if progress.nit >= 2:
            raise StopIteration

    found = nlp(rosenbrock, np.zeros(4), method=method, callback=stops)
    assert not found.success and found.message == "Stopped"

    def fails(progress):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        nlp(rosenbrock, np.zeros(4), method=method, callback=fails)


@pytest.mark.parametrize("method", METHODS)
def test_results_of_compiled_functions(method):
    def solve(p):
        return nlp(lambda x: np.sum((x - p) ** 2), np.zeros(3), np.sum, upper=1.0, method=method)

    eager, compiled = solve(np.ones(3)), wg.jit(solve)(np.ones(3))
    assert np.allclose(compiled.x, eager.x) and compiled.success and compiled.method == method
    assert np.allclose(compiled.multipliers.constraints, eager.multipliers.constraints)
    assert compiled.nit == eager.nit and compiled.evaluations == {}
    assert "method" in repr(compiled)


@pytest.mark.parametrize("method", METHODS)
def test_tensors_get_gradients(method):
    p = wg.tensor(np.ones(3), requires_grad=True)
    found = nlp(lambda x: np.sum((x - p) ** 2), np.zeros(3), np.sum, upper=1.0, method=method)
    found.fun.backward()
    assert np.allclose(p.grad, 4.0 / 3.0) and found.message == "Solved"


def test_results_are_shown():
    found = nlp(squares, np.ones(2), lambda x: x[0], lower=0.5)
    text = repr(found)
    for name in ("message", "fun", "multipliers.bounds", "violated", "evaluations", "seconds"):
        assert name in text


# ---- bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_infeasible_programs_name_the_constraint(method):
    sums = lambda x: np.stack([x[0] + x[1], x[0] + x[1]])  # noqa: E731
    limits = np.array([1.0, 3.0])
    found = nlp(squares, np.ones(2), {"sums": sums}, lower=limits, upper=limits, method=method)
    assert not found.success and found.violated.startswith("sums[")
    assert found.violation == pytest.approx(1.0, abs=0.1)


@pytest.mark.sample(1)
@pytest.mark.parametrize("method", METHODS)
def test_unbounded_programs_fail(method):
    assert not nlp(lambda x: -np.sum(x), np.ones(2), method=method).success


@pytest.mark.parametrize("method", METHODS)
def test_what_is_not_finite_is_named(method):
    g = lambda x: {"logs": np.log(x)}  # noqa: E731
    found = nlp(np.sum, np.array([1.0, -1.0]), g, lower=-1.0, method=method)
    assert not found.success and "g['logs'][1]" in found.message
    good = nlp(np.sum, np.ones(2), g, lower=-1.0, method=method)
    assert good.success and np.allclose(good.x, np.exp(-1.0))


@pytest.mark.sample(1)
@pytest.mark.parametrize("method", METHODS)
def test_fixed_unknowns(method):
    bounds = [(1.0, 1.0), (0.0, 3.0), (0.0, 3.0)]

    def x_of(fixed):
        ends = [(fixed, fixed), *bounds[1:]]
        return nlp(squares, np.ones(3), np.sum, ends, lower=4.0, method=method).x

    assert np.allclose(x_of(1.0), [1.0, 1.5, 1.5], atol=1e-6)
    assert np.allclose(wg.jacobian(x_of)(1.0), [1.0, -0.5, -0.5], atol=1e-6)
    whole = nlp(squares, np.ones(2), bounds=[(1.0, 1.0)] * 2, method=method)
    assert whole.success and whole.fun == 2.0
    assert not nlp(squares, np.ones(2), np.sum, [(1.0, 1.0)] * 2, lower=5.0, method=method).success


@pytest.mark.parametrize("method", METHODS)
def test_edge_cases(method):
    empty = nlp(
        lambda x: np.sum((x - 1.0) ** 2), np.zeros(3), lambda x: x[:0], lower=4.0, method=method
    )
    assert empty.success and np.allclose(empty.x, 1.0)
    equal = nlp(squares, np.full(3, 9.0), np.sum, lower=3.0, upper=3.0, method=method)
    assert np.allclose(equal.x, 1.0) and np.isclose(equal.multipliers.constraints, -2.0)


@pytest.mark.parametrize(
    ("error", "text", "given"),
    [
        (ArgumentError, r"initial guess of x\[1\] is nan", {"x0": np.array([0.0, np.nan])}),
        (ArgumentError, "no limits", {"constraints": np.sum}),
        (ArgumentError, "limits of g", {"constraints": lambda x: x[0], "lower": 1.0, "upper": 0.0}),
        (ArgumentError, "there is none", {"lower": 1.0}),
        (ArgumentError, "does not exist", {"method": "slsqp"}),
        (ArgumentError, "scaling", {"scaling": "much"}),
        (ArgumentError, "is a int", {"constraints": 3, "lower": 0.0}),
        (
            ShapeError,
            "a limit of the constraint",
            {"constraints": np.abs, "lower": [1.0, 2.0, 3.0]},
        ),
        (ShapeError, "1 pairs of bounds", {"bounds": [(0.0, 1.0)]}),
        (ShapeError, "must be a number", {"f": lambda x: x}),
        (StructureError, "Return real numbers", {"constraints": lambda x: x * 1j, "lower": 0.0}),
    ],
)
def test_refused_arguments(error, text, given):
    with pytest.raises(error, match=text):
        nlp(**({"f": squares, "x0": np.ones(2)} | given))


@pytest.mark.parametrize("method", METHODS)
def test_unknown_options_are_refused(method):
    with pytest.raises(ArgumentError, match="nonsense"):
        nlp(squares, np.ones(2), method=method, options={"nonsense": 3})


@needs_ipopt
def test_host_callbacks_that_raise_end_the_solve():
    from wengert.extend import opaque

    @opaque(name="fails_below_a_half", replace=True)
    def fails(x):
        if x[0] < 0.5:
            raise ValueError("below a half")
        return x * x

    @fails.define_vjp
    def _(t, out, x):
        return (2.0 * x * t,)

    with pytest.raises(Exception, match="below a half"):
        nlp(lambda x: np.sum(fails(x)), np.ones(2), method="ipopt")


@needs_ipopt
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs setitimer")
def test_signals_end_a_solve():
    class Interrupted(Exception):
        pass

    def handler(*_):
        raise Interrupted

    slow = {"max_iter": 10**8, "tol": 1e-300, "acceptable_iter": 0}
    f = lambda x: np.sum(np.exp(-x))  # noqa: E731
    nlp(f, np.zeros(400), method="ipopt", options={"max_iter": 1})
    before = signal.signal(signal.SIGALRM, handler)
    try:
        with pytest.raises(Interrupted):
            for _ in range(1000):
                signal.setitimer(signal.ITIMER_REAL, 0.02)
                nlp(f, np.zeros(400), method="ipopt", options=slow)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
