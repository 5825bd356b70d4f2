"""Minima by scipy.optimize: derivatives of solutions and of minimal values."""

import numpy as np
import pytest
import scipy.optimize as theirs

import wengert as wg
from wengert.errors import ArgumentError, ConvergenceError, MatrixError, ShapeError
from wengert.scipy import optimize
from wengert.testing import check_grads

MODES = pytest.mark.parametrize("compiled", [False, True], ids=["eager", "jit"])


def mode(compiled, f):
    return wg.jit(f) if compiled else f


def valley(x, a):
    """Rosenbrock's function with the minimum at (a0, a1 a0**2)."""
    return (a[0] - x[0]) ** 2 + 10.0 * (x[1] - a[1] * x[0] ** 2) ** 2


A = np.array([1.5, 0.7])
START = np.array([1.0, 1.0])
TIGHT = {
    "bfgs": {"gtol": 1e-9},
    "cg": {"gtol": 1e-9},
    "newton-cg": {"xtol": 1e-12},
    "l-bfgs-b": {"gtol": 1e-10, "ftol": 1e-16},
    "tnc": {"gtol": 1e-12, "ftol": 1e-16, "xtol": 1e-14},
    "slsqp": {"ftol": 1e-16},
    "trust-constr": {"gtol": 1e-10},
    "trust-ncg": {"gtol": 1e-9},
    "trust-exact": {"gtol": 1e-9},
    "trust-krylov": {"gtol": 1e-9},
    "dogleg": {"gtol": 1e-9},
    "nelder-mead": {"xatol": 1e-11, "fatol": 1e-15},
    "powell": {},
    "cobyla": {"tol": 1e-10, "maxiter": 20000},
    "cobyqa": {"final_tr_radius": 1e-9},
}


STARTS = {"powell": np.array([-1.0, 1.0]), "dogleg": np.array([1.45, 1.45])}
SLOW = pytest.param("cobyla", marks=pytest.mark.slow)


@pytest.mark.sample(4)
@MODES
@pytest.mark.parametrize("method", [*list(TIGHT)[:-2], SLOW, "cobyqa"])
def test_all_methods(method, compiled):
    """The Jacobian of the minimum and the gradient of the value, for every method."""

    def solved(a):
        start = STARTS.get(method, START + 0.3)
        return optimize.minimize(valley, start, (a,), method, options=TIGHT[method])

    expected = [[1.0, 0.0], [2.0 * A[0] * A[1], A[0] ** 2]]
    jacobian = mode(compiled, wg.jacobian(lambda a: solved(a).x))(A)
    np.testing.assert_allclose(jacobian, expected, rtol=1e-4, atol=1e-4)
    x, _ = mode(compiled, lambda a: wg.jvp(lambda a: solved(a).x, (a,), (a,)))(A)
    np.testing.assert_allclose(x, [1.5, 1.575], rtol=1e-5)
    np.testing.assert_allclose(mode(compiled, wg.grad(lambda a: solved(a).fun))(A), 0.0, atol=1e-5)


def quartic(x, a):
    """A strictly convex function with a minimum that is not known in closed form."""
    return np.sum(x**4) / 4.0 + np.sum((x - a) ** 2) + 0.3 * np.sum(x) ** 2


@pytest.mark.parametrize(
    "compiled", [pytest.param(False, marks=pytest.mark.slow), True], ids=["eager", "jit"]
)
def test_order_two(compiled):
    """Derivatives of solution and value equal differences of whole solutions."""
    a = np.array([0.5, -1.0, 2.0])

    def solved(a):
        return optimize.minimize(quartic, np.zeros(3), (a,), "trust-exact", options={"gtol": 1e-8})

    check_grads(mode(compiled, lambda a: solved(a).x), (a,), order=1 + compiled)
    check_grads(mode(compiled, lambda a: solved(a).fun), (a,), order=2)


@MODES
def test_the_gradient_of_the_value_needs_no_linear_system(compiled):
    """The envelope theorem: a function whose Hessian is singular."""

    def lowest(a):
        return optimize.minimize(lambda x: (x[0] + x[1] - a) ** 2 + a**2, np.zeros(2)).fun

    np.testing.assert_allclose(mode(compiled, wg.grad(lowest))(3.0), 6.0, rtol=1e-6)
    with pytest.raises(MatrixError, match="ingular"):
        mode(
            compiled,
            wg.grad(
                lambda a: optimize.minimize(lambda x: (x[0] + x[1] - a) ** 2, np.zeros(2)).x[0]
            ),
        )(3.0)


@MODES
@pytest.mark.parametrize("method", ["l-bfgs-b", "tnc", "slsqp", "trust-constr", "powell"])
@pytest.mark.sample(5)  # each method
def test_bounds(method, compiled):
    """Active bounds: the solution follows the bound, which may be a tensor."""

    def solved(a, upper):
        bounds = [(None, upper), (-5.0, 5.0), (None, None)]
        return optimize.minimize(
            quartic, np.array([0.0, 0.1, 0.2]), (a,), method, bounds=bounds, options=TIGHT[method]
        )

    a, upper = np.array([3.0, -1.0, 0.5]), 0.4
    ja, ju = mode(compiled, wg.jacobian(lambda a, u: solved(a, u).x, (0, 1)))(a, upper)
    np.testing.assert_allclose(ju[0], 1.0, rtol=1e-5)
    np.testing.assert_allclose(ja[0], 0.0, atol=1e-5)
    x = np.asarray(
        theirs.minimize(
            quartic,
            np.zeros(3),
            (a,),
            "l-bfgs-b",
            bounds=[(None, upper), (-5.0, 5.0), (None, None)],
            options=TIGHT["l-bfgs-b"],
        ).x
    )
    hessian = wg.hessian(quartic)(x, a)
    free = np.ix_([1, 2], [1, 2])
    expected = 2.0 * np.linalg.inv(hessian[free])
    np.testing.assert_allclose(ja[1:, 1:], expected, rtol=1e-3, atol=1e-4)
    gradient = mode(compiled, wg.grad(lambda a, u: solved(a, u).fun, 1))(a, upper)
    np.testing.assert_allclose(gradient, wg.grad(quartic)(x, a)[0], rtol=1e-4)


CONSTRAINED = ["slsqp", "trust-constr"]


@MODES
@pytest.mark.parametrize("method", CONSTRAINED)
@pytest.mark.sample(2)  # each method
def test_equality(method, compiled):
    """The nearest point of a circle, whose radius is a parameter."""
    options = {"ftol": 1e-15} if method == "slsqp" else {"gtol": 1e-11, "xtol": 1e-13}

    def solved(p, radius):
        circle = {"type": "eq", "fun": lambda x: x @ x - radius**2}
        return optimize.minimize(
            lambda x: np.sum((x - p) ** 2),
            START,
            method=method,
            constraints=circle,
            options=options,
        )

    def exact(p, radius):
        return radius * p / np.sqrt(p @ p)

    p = np.array([3.0, 4.0])
    for k in (0, 1):
        got = mode(compiled, wg.jacobian(lambda p, r: solved(p, r).x, k))(p, 2.0)
        np.testing.assert_allclose(got, wg.jacobian(exact, k)(p, 2.0), rtol=1e-5, atol=1e-6)
    distance = lambda p, r: (np.sqrt(p @ p) - r) ** 2  # noqa: E731
    for derivative in (wg.grad, wg.hessian):
        for k in (0, 1):
            got = mode(compiled, derivative(lambda p, r: solved(p, r).fun, k))(p, 2.0)
            want = derivative(distance, k)(p, 2.0)
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def two_sided(form, p, low, high):
    """The same half-plane in SciPy's forms; inactive constraints beside it."""
    if form == "dict":
        return [
            {"type": "ineq", "fun": lambda x: high - x[0] - 2.0 * x[1]},
            {"type": "ineq", "fun": lambda x, c: x[0] + c, "args": (50.0,)},
        ]
    if form == "linear":
        return theirs.LinearConstraint([[1.0, 2.0], [1.0, 0.0]], [-np.inf, -50.0], [high, np.inf])
    return theirs.NonlinearConstraint(
        lambda x: np.array([x[0] + 2.0 * x[1], x[0] * p[0] / p[0]]), [low, -50.0], [high, np.inf]
    )


@MODES
@pytest.mark.parametrize("form", ["dict", "linear", "nonlinear"])
@pytest.mark.parametrize("method", CONSTRAINED)
@pytest.mark.sample(3)  # each form
def test_inequalities(method, form, compiled):
    """The projection on a half-plane; an inactive constraint does not change the derivative."""
    options = {"ftol": 1e-15} if method == "slsqp" else {"gtol": 1e-10, "xtol": 1e-12}

    def solved(p):
        return optimize.minimize(
            lambda x: np.sum((x - p) ** 2) / 2.0,
            np.zeros(2),
            method=method,
            constraints=two_sided(form, p, -100.0, 1.0),
            options=options,
        )

    n = np.array([1.0, 2.0])
    inside, outside = np.array([-1.0, 0.3]), np.array([2.0, 3.0])
    got = mode(compiled, wg.jacobian(lambda p: solved(p).x))(outside)
    np.testing.assert_allclose(got, np.eye(2) - np.outer(n, n) / 5.0, rtol=1e-4, atol=1e-4)
    got = mode(compiled, wg.jacobian(lambda p: solved(p).x))(inside)
    np.testing.assert_allclose(got, np.eye(2), rtol=1e-4, atol=1e-4)
    gradient = mode(compiled, wg.grad(lambda p: solved(p).fun))(outside)
    np.testing.assert_allclose(gradient, (n @ outside - 1.0) / 5.0 * n, rtol=1e-4)


def test_an_inactive_constraint_is_not_an_equality():
    """A constraint that is not active is not kept, also if its function depends on parameters."""

    def solved(a):
        far = {"type": "ineq", "fun": lambda x: 10.0 + a * x[0]}
        return optimize.minimize(
            lambda x: (x[0] - a) ** 2, np.zeros(1), constraints=far, options={"ftol": 1e-15}
        )

    np.testing.assert_allclose(wg.jacobian(lambda a: solved(a).x)(1.5), [1.0], rtol=1e-6)


@MODES
def test_multipliers(compiled):
    """Multipliers are differentiable results."""

    def multiplier(p):
        line = {"type": "eq", "fun": lambda x: x[0] + x[1] - 1.0}
        return optimize.minimize(
            lambda x: np.sum((x - p) ** 2), START, constraints=line, options={"ftol": 1e-15}
        ).multipliers[0]

    p = np.array([2.0, 5.0])
    np.testing.assert_allclose(mode(compiled, multiplier)(p), 1.0 - np.sum(p), rtol=1e-6)
    np.testing.assert_allclose(mode(compiled, wg.grad(multiplier))(p), [-1.0, -1.0], rtol=1e-6)


@MODES
def test_a_batch(compiled):
    """`vmap` minimizes for each element."""
    many = np.array([[0.5, -1.0, 2.0], [1.0, 1.0, 1.0]])
    f = lambda a: optimize.minimize(quartic, np.zeros(3), (a,), options={"gtol": 1e-9}).x  # noqa: E731
    got = mode(compiled, wg.vmap(wg.jacobian(f)))(many)
    np.testing.assert_allclose(got, [wg.jacobian(f)(a) for a in many], rtol=1e-6)


@pytest.mark.sample(2)
@MODES
@pytest.mark.parametrize("given", [True, "callable"])
def test_given_gradients(given, compiled):
    """A gradient that is given by the user, in both of SciPy's forms."""

    def slope(x, a):
        return x**3 + 2.0 * (x - a) + 0.6 * np.sum(x)

    def f(a):
        fun = (lambda x, a: (quartic(x, a), slope(x, a))) if given is True else quartic
        jac = True if given is True else slope
        return optimize.minimize(fun, np.zeros(3), (a,), jac=jac, options={"gtol": 1e-9}).x

    a = np.array([0.5, -1.0, 2.0])
    check_grads(mode(compiled, f), (a,), order=1)


@MODES
@pytest.mark.parametrize("method", [None, "brent", "golden", "bounded"])
@pytest.mark.sample(4)  # each method
def test_minimize_scalar(method, compiled):
    """All methods for one variable, and an active bound."""
    options = {"xatol": 1e-10} if method == "bounded" else {"xtol": 1e-10}
    bounds = {"bounds": (-1.0, 5.0)} if method == "bounded" else {}

    def solved(a):
        fun = lambda x: np.cosh(x - a) + 0.1 * x**2  # noqa: E731
        return optimize.minimize_scalar(fun, method=method, options=options, **bounds)

    x = theirs.brentq(lambda x: np.sinh(x - 1.0) + 0.2 * x, -5, 5, xtol=1e-14)
    slope = np.cosh(x - 1.0) / (np.cosh(x - 1.0) + 0.2)
    np.testing.assert_allclose(mode(compiled, lambda a: solved(a).x)(1.0), x, rtol=1e-6)
    np.testing.assert_allclose(
        mode(compiled, wg.grad(lambda a: solved(a).x))(1.0), slope, rtol=1e-6
    )
    gradient = mode(compiled, wg.grad(lambda a: solved(a).fun))(1.0)
    np.testing.assert_allclose(gradient, -np.sinh(x - 1.0), rtol=1e-6)
    second = mode(compiled, wg.hessian(lambda a: solved(a).fun))(1.0)
    np.testing.assert_allclose(second, np.cosh(x - 1.0) * (1.0 - slope), rtol=1e-5)

    def at_bound(upper):
        return optimize.minimize_scalar(lambda x: (x - 9.0) ** 2, bounds=(0.0, upper)).x

    np.testing.assert_allclose(mode(compiled, wg.grad(at_bound))(4.0), 1.0)
    lowest = lambda u: optimize.minimize_scalar(lambda x: (x - 9.0) ** 2, bounds=(0.0, u)).fun  # noqa: E731
    np.testing.assert_allclose(mode(compiled, wg.grad(lowest))(4.0), -10.0, rtol=1e-4)
    np.testing.assert_allclose(mode(compiled, wg.hessian(lowest))(4.0), 2.0, rtol=1e-4)


def test_exact_derivatives_of_plain_functions():
    """Where SciPy needs derivatives that are not given, exact ones are used."""
    found = optimize.minimize(valley, START, (A,), "trust-exact", options={"gtol": 1e-9})
    assert type(found.x) is np.ndarray
    np.testing.assert_allclose(found.x, [1.5, 1.575], rtol=1e-6)


def test_without_tensors_scipy_is_called():
    """Plain arguments give SciPy's own result."""
    ours, plain = optimize.minimize(valley, START, (A,)), theirs.minimize(valley, START, (A,))
    assert (ours.nfev, ours.nit) == (plain.nfev, plain.nit)
    assert optimize.minimize_scalar(np.cosh).nfev == theirs.minimize_scalar(np.cosh).nfev


def test_the_result_has_scipys_fields():
    """Outside of graphs the result is SciPy's, with tensors for solution, value and gradient."""
    seen = []

    def f(a):
        seen.append(optimize.minimize(valley, START, (a,), "bfgs"))
        return seen[0].fun

    wg.grad(f)(A)
    assert set(theirs.minimize(valley, START, (A,), "bfgs")) <= set(seen[0])
    assert seen[0].success
    assert isinstance(seen[0].x, wg.Tensor)


def test_progress():
    """`callback` sees plain arrays."""
    seen = []
    wg.grad(lambda a: optimize.minimize(valley, START, (a,), "bfgs", callback=seen.append).x[0])(A)
    assert len(seen) > 3
    assert all(type(x) is np.ndarray for x in seen)


def test_bad_input():
    """Errors name what is wrong."""

    def grad_of(**how):
        f = lambda a: optimize.minimize(valley, START, (a,), **how).x[0]  # noqa: E731
        return wg.grad(f)(A)

    with pytest.raises(ConvergenceError, match="Maximum number of iterations"):
        grad_of(method="bfgs", options={"maxiter": 1})
    with pytest.raises(ConvergenceError, match="did not converge"):
        wg.grad(lambda a: optimize.minimize(valley, START, (a,), options={"maxiter": 1}).fun)(A)
    with pytest.raises(ArgumentError, match="'adam' does not exist"):
        grad_of(method="adam")
    with pytest.raises(ArgumentError, match="does not take constraints"):
        grad_of(method="bfgs", constraints={"type": "eq", "fun": lambda x: x[0]})
    with pytest.raises(ArgumentError, match="'eq' for an equality"):
        grad_of(constraints={"type": "equal", "fun": lambda x: x[0]})
    with pytest.raises(ArgumentError, match="a constraint is a function"):
        grad_of(constraints=[lambda x: x[0]])
    with pytest.raises(ShapeError, match="must be a number"):
        wg.grad(lambda a: optimize.minimize(lambda x: x * a, np.ones(2)).x[0])(1.0)
    infeasible = [
        {"type": "eq", "fun": lambda x: x[0] - 1.0},
        {"type": "eq", "fun": lambda x: x[0] - 2.0},
    ]
    with pytest.raises(ConvergenceError):
        grad_of(constraints=infeasible)


def test_repeated_calls_trace_the_objective_twice_and_nothing_is_stale():
    """Derivatives are kept by graph: other captured values, and another function, are seen."""
    calls, power = [], [2]

    def lowest(a, scale):
        def f(x):
            calls.append(1)
            return scale * np.sum((x - a) ** power[0]) + np.sum(x**4)

        return optimize.minimize(f, np.ones(2), method="trust-exact", options={"gtol": 1e-6})

    gradient = wg.grad(lambda a, s: lowest(a, s).fun)
    a = np.array([0.5, 1.5])
    gradient(a, 1.0)
    for scale, exponent in ((1.0, 2), (3.0, 2), (3.0, 4), (1.0, 2)):
        power[0] = exponent
        calls.clear()
        got = gradient(a, scale)
        assert len(calls) <= 3
        x = np.asarray(lowest(wg.tensor(a), scale).x)
        want = -scale * exponent * (x - a) ** (exponent - 1)
        np.testing.assert_allclose(got, want, rtol=1e-6)
        balance = scale * exponent * (x - a) ** (exponent - 1) + 4 * x**3
        np.testing.assert_allclose(balance, 0.0, atol=1e-5)
        found = lowest(wg.tensor(a), scale)
        np.testing.assert_allclose(np.asarray(found.jac), 0.0, atol=1e-5)


def test_traced_initial_guesses():
    """The initial guess may be an argument of a compiled function, or an element of a batch."""

    def found(x0, a):
        limit = {"type": "ineq", "fun": lambda x: 9.0 - x @ x}
        return optimize.minimize(quartic, x0, (a,), constraints=limit, tol=1e-12).x

    a, starts = np.array([0.5, -1.0, 2.0]), np.array([[0.0, 0.1, 0.2], [1.0, 1.0, 1.0]])
    want = found(starts[0], wg.tensor(a))
    np.testing.assert_allclose(wg.jit(found)(starts[0], a), want, atol=1e-7)
    for x in wg.jit(wg.vmap(found, (0, None)))(starts, a):
        np.testing.assert_allclose(x, want, atol=1e-7)
    np.testing.assert_allclose(wg.jit(wg.jacobian(found))(starts[0], a), 0.0)


@pytest.mark.parametrize("method", ["L-BFGS-B", "SLSQP", "trust-constr"])
def test_where_a_constraint_becomes_active_the_derivative_is_that_of_one_side(method):
    """The first unknown is ``max(a, 0)``; both modes choose the same side at zero."""
    if method == "trust-constr":
        limits = {"constraints": {"type": "ineq", "fun": lambda x: x[0]}}
    else:
        limits = {"bounds": [(0.0, None)] * 2}

    def first(a):
        def distance(x):
            return np.sum((x - np.stack([a, 1.0 + a])) ** 2 * np.array([2.0, 1.0]))

        return optimize.minimize(distance, np.full(2, 0.5), method=method, **limits).x[0]

    for a, slopes in ((-0.3, [0.0]), (0.3, [1.0]), (0.0, [0.0, 1.0])):
        slope = wg.grad(first)(a)
        assert np.min(np.abs(slope - np.array(slopes))) < 1e-6
        np.testing.assert_allclose(wg.jvp(first, (a,), (1.0,))[1], slope, atol=1e-9)
