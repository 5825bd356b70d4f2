"""Roots by scipy.optimize: values as SciPy's, derivatives as those of the equations."""

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


def trigonometric(x, a):
    """Two coupled equations."""
    return np.array([x[0] * np.cos(x[1]) - a[0], x[0] * x[1] - x[1] - a[1]])


def chain(x, a):
    """A system with weakly coupled neighbors, which every method solves."""
    left = np.concatenate([np.zeros(1), x[:-1]])
    return a - x - 0.2 * np.sin(left) - 0.1 * x**3 / 3.0


METHODS = [
    "hybr",
    "lm",
    "broyden1",
    "broyden2",
    "anderson",
    "linearmixing",
    "diagbroyden",
    "excitingmixing",
    "krylov",
    "df-sane",
]
A = np.array([1.0, 0.7, 1.3, 0.9])


@MODES
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.sample(len(METHODS))
def test_all_methods_of_root(method, compiled):
    """Each method has the derivative of the equation."""
    options = {"fatol": 1e-12} if method == "df-sane" else {}
    tol = None if method == "df-sane" else 1e-10

    def f(a):
        return np.sum(
            optimize.root(chain, -np.ones(4), (a,), method, tol=tol, options=options).x ** 2
        )

    x = theirs.root(chain, -np.ones(4), (A,), tol=1e-12).x
    jacobian = wg.jacobian(chain)(x, A)
    expected = -np.linalg.solve(jacobian.T, 2.0 * x)
    np.testing.assert_allclose(mode(compiled, f)(A), np.sum(x**2), rtol=1e-6)
    np.testing.assert_allclose(mode(compiled, wg.grad(f))(A), expected, rtol=1e-5)
    tangent = wg.jvp(mode(compiled, f), (A,), (A,))[1]
    np.testing.assert_allclose(tangent, expected @ A, rtol=1e-5)


@pytest.mark.sample(1)
@MODES
def test_root_to_order_two(compiled):
    """Derivatives equal differences of whole solutions, to order two."""

    def f(a):
        return optimize.root(trigonometric, np.array([1.0, 1.0]), (a,), tol=1e-13).x

    check_grads(mode(compiled, f), (np.array([4.0, 5.0]),), order=2)


def test_the_result_of_root_has_scipys_fields():
    """Outside of graphs the result is SciPy's, with tensors for the solution."""
    seen = []

    def f(a):
        seen.append(optimize.root(trigonometric, [1.0, 1.0], (a,)))
        return seen[0].x[0]

    wg.grad(f)(np.array([4.0, 5.0]))
    plain = theirs.root(trigonometric, [1.0, 1.0], (np.array([4.0, 5.0]),))
    found = seen[0]
    assert set(plain) <= set(found)
    assert found.success
    assert found.message == plain.message
    assert isinstance(found.x, wg.Tensor)
    np.testing.assert_allclose(np.asarray(found.x.detach()), plain.x, rtol=1e-9)


def test_without_tensors_scipy_is_called():
    """Plain arguments give SciPy's own result."""
    a = np.array([4.0, 5.0])
    ours = optimize.root(trigonometric, [1.0, 1.0], (a,))
    plain = theirs.root(trigonometric, [1.0, 1.0], (a,))
    assert ours.nfev == plain.nfev
    np.testing.assert_array_equal(ours.x, plain.x)
    assert optimize.brentq(lambda x: x * x - 2.0, 0, 2) == theirs.brentq(lambda x: x * x - 2, 0, 2)
    _, info = optimize.brentq(lambda x: x * x - 2.0, 0, 2, full_output=True)
    assert info.converged
    np.testing.assert_array_equal(
        optimize.fsolve(lambda x: x * x - 2.0, [1.0]), theirs.fsolve(lambda x: x * x - 2.0, [1.0])
    )


def test_success_and_counts_in_a_graph():
    """Compiled functions return whether the solver has converged, and counts."""

    @wg.jit
    def f(a):
        found = optimize.root(trigonometric, np.array([1.0, 1.0]), (a,))
        return found.x, found.success, found.nfev, found.fun

    _, success, nfev, residual = f(np.array([4.0, 5.0]))
    assert bool(success)
    assert 3 < int(nfev) < 40
    np.testing.assert_allclose(residual, 0.0, atol=1e-8)


@MODES
@pytest.mark.parametrize("given", [True, "callable"])
def test_given_jacobians(given, compiled):
    """A Jacobian that is given, by both of SciPy's forms."""
    calls = []

    def jacobian(x, a):
        calls.append(1)
        return np.array([[np.cos(x[1]), -x[0] * np.sin(x[1])], [x[1], x[0] - 1.0]])

    def both(x, a):
        return trigonometric(x, a), jacobian(x, a)

    def f(a):
        fun, jac = (both, True) if given is True else (trigonometric, jacobian)
        return optimize.root(fun, np.array([1.0, 1.0]), (a,), jac=jac).x

    a = np.array([4.0, 5.0])
    expected = wg.jacobian(lambda a: optimize.root(trigonometric, np.ones(2), (a,)).x)(a)
    np.testing.assert_allclose(mode(compiled, wg.jacobian(f))(a), expected, rtol=1e-8)
    assert calls


def cubic(x, a):
    return x**3 + x - a


def cubic_root(a):
    return theirs.brentq(cubic, -10, 10, (a,), xtol=1e-15)


BRACKETING = ["bisect", "brentq", "brenth", "ridder", "toms748"]


@MODES
@pytest.mark.parametrize("name", [*BRACKETING, "newton", "secant", "halley"])
@pytest.mark.sample(len(BRACKETING) + 3)  # each method
def test_scalar_roots(name, compiled):
    """All methods for one variable, and derivatives to order two."""

    def by_function(a):
        if name in BRACKETING:
            return getattr(optimize, name)(cubic, -10.0, 10.0, (a,), xtol=1e-14)
        more = {"x1": 1.1} if name == "secant" else {}
        return optimize.newton(cubic, 1.0, args=(a,), tol=1e-14, **more)

    def by_name(a):
        how = {"bracket": (-10.0, 10.0)} if name in BRACKETING else {"x0": 1.0}
        if name == "halley":
            how.update(fprime=lambda x, a: 3.0 * x**2 + 1.0, fprime2=lambda x, a: 6.0 * x)
        if name == "secant":
            how["x1"] = 1.1
        return optimize.root_scalar(cubic, (a,), name, xtol=1e-14, **how).root

    for f in (by_function, by_name):
        x = cubic_root(7.0)
        slope = 1.0 / (3.0 * x * x + 1.0)
        np.testing.assert_allclose(mode(compiled, f)(7.0), x, rtol=1e-9)
        np.testing.assert_allclose(mode(compiled, wg.grad(f))(7.0), slope, rtol=1e-9)
        np.testing.assert_allclose(
            mode(compiled, wg.hessian(f))(7.0), -6.0 * x * slope**3, rtol=1e-8
        )


@MODES
def test_a_batch_of_scalar_roots(compiled):
    """`vmap` solves each equation."""
    a = np.array([1.0, 7.0, -3.0])
    f = wg.vmap(lambda a: optimize.brentq(cubic, -10.0, 10.0, (a,)))
    expected = [cubic_root(x) for x in a]
    np.testing.assert_allclose(mode(compiled, f)(a), expected, rtol=1e-9)
    gradient = wg.grad(lambda a: np.sum(f(a) ** 2))
    slopes = [2.0 * x / (3.0 * x * x + 1.0) for x in expected]
    np.testing.assert_allclose(mode(compiled, gradient)(a), slopes, rtol=1e-9)


@MODES
def test_newton_of_an_array(compiled):
    """Element by element, with a diagonal Jacobian."""
    a = np.array([[1.0, 2.0, 3.0], [8.0, 27.0, 64.0]])
    f = lambda a: optimize.newton(lambda x: x**3 - a, np.ones((2, 3)), tol=1e-14)  # noqa: E731
    np.testing.assert_allclose(mode(compiled, f)(a), np.cbrt(a))
    gradient = mode(compiled, wg.grad(lambda a: np.sum(f(a) ** 2)))(a)
    np.testing.assert_allclose(gradient, 2.0 / 3.0 * a ** (-1 / 3))
    _, converged, _ = optimize.newton(lambda x: x**3 - a, np.ones((2, 3)), full_output=True)
    assert np.all(converged)


@pytest.mark.sample(1)
@MODES
def test_fixed_point(compiled):
    """A fixed point of coupled equations."""
    m = np.array([[0.3, 0.1], [-0.2, 0.4]])
    f = lambda b: optimize.fixed_point(lambda x: np.tanh(m @ x) + b, np.zeros(2))  # noqa: E731
    check_grads(mode(compiled, f), (np.array([0.5, -0.3]),), order=2)


@pytest.mark.sample(1)
@MODES
def test_captured_values_and_loops(compiled):
    """Functions may capture tensors and contain loops; the solver may be called in one."""

    def f(a):
        def value(x):
            total = x
            for k in range(3):
                total = total + a * x**3 / (k + 1.0)
            return total - 2.0

        return optimize.brentq(value, 0.0, 5.0)

    check_grads(mode(compiled, f), (0.7,), order=2)

    def in_loop(a):
        return wg.fori_loop(0, 3, lambda _, x: optimize.brentq(cubic, -10.0, 10.0, (a + x,)), a)

    def by_hand(a):
        for _ in range(3):
            a_next = optimize.brentq(cubic, -10.0, 10.0, (by_hand.a + a,))
            a = a_next
        return a

    by_hand.a = 0.7
    np.testing.assert_allclose(mode(compiled, in_loop)(0.7), by_hand(0.7), rtol=1e-9)
    check_grads(mode(compiled, in_loop), (0.7,), order=1)


def test_scipys_name_inside_a_transformed_function():
    """Functions that use scipy.optimize as they are written."""

    def f(a):
        return (
            theirs.brentq(lambda x: x * x - a, 0.0, 10.0)
            * theirs.root(lambda x: x**3 - a, np.ones(1)).x[0]
        )

    np.testing.assert_allclose(wg.grad(f)(4.0), 5.0 / 6.0 * 4.0 ** (-1 / 6), rtol=1e-8)
    np.testing.assert_allclose(wg.jit(wg.grad(f))(4.0), 5.0 / 6.0 * 4.0 ** (-1 / 6), rtol=1e-8)


def no_root(x, a):
    return x * x + a


@MODES
def test_the_derivative_of_an_unconverged_solution_is_refused(compiled):
    """The value has a flag; the derivative raises, and is NaN in batches and loops."""

    def f(a):
        return optimize.root(no_root, np.ones(1), (a,)).x[0]

    with pytest.raises(ConvergenceError, match="did not converge"):
        mode(compiled, wg.grad(f))(1.0)
    with pytest.raises(ConvergenceError, match="did not converge"):
        mode(compiled, lambda a: wg.jvp(f, (a,), (1.0,))[1])(1.0)
    a = np.array([-4.0, 1.0])
    slopes = mode(compiled, wg.vmap(wg.grad(f)))(a)
    np.testing.assert_allclose(slopes, [-0.25, np.nan], rtol=1e-8)


@MODES
def test_a_singular_jacobian_is_an_error(compiled):
    """A double root has no derivative."""
    f = lambda a: optimize.root(lambda x: (x - a) ** 2, a * np.ones(1)).x[0]  # noqa: E731
    with pytest.raises(MatrixError, match="ingular"):
        mode(compiled, wg.grad(f))(2.0)


def test_bad_input():
    """SciPy's errors, or clearer ones."""

    def grad_of(solver):
        return wg.grad(solver)(2.0)

    with pytest.raises(ValueError, match="different signs"):
        grad_of(lambda a: optimize.brentq(lambda x: x * x + a, 0.0, 1.0))
    with pytest.raises(ArgumentError, match="'newton_krylov' does not exist"):
        grad_of(lambda a: optimize.root(lambda x: x - a, [1.0], method="newton_krylov").x[0])
    with pytest.raises(ShapeError, match="least_squares"):
        grad_of(lambda a: optimize.root(lambda x: np.ones(3) * a * x[0], np.ones(2)).x[0])
    with pytest.raises(ZeroDivisionError, match="in the user's function"):

        def raises(x, a):
            raise ZeroDivisionError("in the user's function")

        grad_of(lambda a: optimize.root(raises, [1.0], (a,)).x[0])


def test_unconverged_solvers_raise_as_scipys():
    """With ``disp=True``; in a graph, where the outcome is not known, the derivative raises."""
    solvers = [
        lambda a, **more: optimize.bisect(lambda x: x - a, 0.0, 9.0, maxiter=3, **more),
        lambda a, **more: optimize.newton(lambda x: x**3 - a, 100.0, maxiter=2, **more),
    ]
    for solver in solvers:
        with pytest.raises(RuntimeError, match="failed to converge after"):
            wg.grad(solver)(2.0)
        with pytest.raises(ConvergenceError):
            wg.grad(lambda a, solver=solver: solver(a, disp=False))(2.0)
        with pytest.raises(ConvergenceError):
            wg.jit(wg.grad(solver))(2.0)
    with pytest.raises(RuntimeError, match="failed to converge after"):
        wg.grad(lambda a: optimize.fixed_point(lambda x: a * x + 1.0, 1.0, method="iteration"))(2.0)


def test_interrupts_pass():
    """Ctrl-C inside a callback ends the solver."""

    def interrupted(x):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        wg.grad(
            lambda a: optimize.root(
                lambda x: x**3 - a,
                np.ones(1),
                method="krylov",
                callback=lambda x, f: interrupted(x),
            ).x[0]
        )(8.0)


@pytest.mark.sample(3)
@MODES
@pytest.mark.parametrize("n", [12, 200])
def test_jacobians_with_large_constants(n, compiled):
    """The unit vectors of a Jacobian of ten and more unknowns are no captured values."""
    w = np.sin(np.arange(n * n)).reshape(n, n) / n
    theta = np.cos(np.arange(n))

    def solution(theta):
        return optimize.root(lambda y: y + 0.5 * np.tanh(w @ y) - theta, np.zeros(n), tol=1e-12).x

    y = solution(theta)
    exact = np.linalg.inv(np.eye(n) + 0.5 * (1.0 - np.tanh(w @ y) ** 2)[:, None] * w)
    assert np.allclose(mode(compiled, wg.jacobian(solution))(theta), exact, rtol=1e-9, atol=1e-9)
