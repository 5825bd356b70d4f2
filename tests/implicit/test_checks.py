"""Solvers that do not solve the equation, overwrite their input, or return something else."""

import numpy as np
import pytest

import wengert as wg
from wengert.errors import ArgumentError, ConvergenceError, ShapeError

A = np.array([[4.0, 1.0], [1.0, 3.0]])


def equations(y, b):
    return A @ y + 0.1 * y**3 - b


def newton(y, b):
    for _ in range(20):
        y = y - np.linalg.solve(wg.jacobian(equations)(y, b), equations(y, b))
    return y


def of_another_equation(y, b):
    return np.linalg.solve(A, b)


def overwriting(y, b):
    """Newton's method in the memory of the guess."""
    for _ in range(20):
        y -= np.linalg.solve(A + np.diag(0.3 * np.asarray(y) ** 2), equations(np.asarray(y), b))
    return y


B = np.array([1.0, 2.0])


@pytest.mark.sample(1)
@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "jit"])
def test_the_residual_is_checked(compiled):
    """A solver of another equation is found, in values and in derivatives of both modes."""
    wrap = wg.jit if compiled else lambda f: f
    for check in (True, 1e-9):
        good = wg.implicit(newton, equations, check=check)
        bad = wg.implicit(of_another_equation, equations, check=check)
        loose = wg.implicit(of_another_equation, equations, check=0.9)
        np.testing.assert_allclose(equations(wrap(good)(np.zeros(2), B), B), 0.0, atol=1e-12)
        for f in (lambda s: s, lambda s: wg.jacrev(s, 1), lambda s: wg.jacfwd(s, 1)):
            with pytest.raises(ConvergenceError, match=r"residual at the solution is 0\.02"):
                wrap(f(bad))(np.zeros(2), B)
            wrap(f(loose))(np.zeros(2), B)
        want = np.linalg.inv(A + np.diag(0.3 * good(np.zeros(2), B) ** 2))
        np.testing.assert_allclose(wrap(wg.jacobian(good, 1))(np.zeros(2), B), want, rtol=1e-12)
        second = wrap(wg.hessian(lambda b, good=good: np.sum(good(np.zeros(2), b))))(B)
        assert np.all(np.isfinite(second)) and np.any(second != 0.0)


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "jit"])
def test_checks_in_loops_and_batches(compiled):
    """The residual of each step and of each element of a batch is checked."""
    wrap = wg.jit if compiled else lambda f: f

    @wg.implicit(residual=lambda y, a: y * y - a, check=True)
    def root(y, a):
        return np.where(a > 3.0, 1.0, a**0.5)

    f = wg.vmap(wg.grad(lambda a: root(a, a)))
    np.testing.assert_allclose(wrap(f)(np.array([1.0, 2.0])), [0.5, 0.5**1.5])
    with pytest.raises(ConvergenceError, match="residual at the solution"):
        wrap(f)(np.array([1.0, 4.0]))

    def repeated(a):
        return wg.fori_loop(0, 3, lambda _, a: 2.0 * root(a, a), a)

    np.testing.assert_allclose(wrap(repeated)(0.25), 2.0 ** (1.75 - 0.25))
    with pytest.raises(ConvergenceError, match="residual at the solution"):
        wrap(repeated)(9.0)


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "jit"])
def test_not_a_number(compiled):
    """A residual with NaN is not small."""
    wrap = wg.jit if compiled else lambda f: f
    f = lambda b: wg.custom_root(lambda y: np.log(y) - b, b, lambda f, y: -y, check=True)  # noqa: E731
    with np.errstate(invalid="ignore"), pytest.raises(ConvergenceError, match="solution is nan"):
        wrap(f)(2.0)


def test_the_guess_is_not_overwritten():
    """A solver that works in the memory of its input does not change the caller's array."""
    solve = wg.implicit(overwriting, equations, check=True)
    start = np.array([0.5, 0.5])
    y = solve(start, B)
    np.testing.assert_array_equal(start, [0.5, 0.5])
    with wg.enable_grad():
        jacobian = wg.jacobian(lambda b: solve(start, b))(B)
    np.testing.assert_array_equal(start, [0.5, 0.5])
    np.testing.assert_allclose(jacobian, np.linalg.inv(A + np.diag(0.3 * y**2)), rtol=1e-12)


def test_a_solver_that_overwrites_its_parameters():
    """The derivative is taken for the parameters that were passed, or refused."""

    def solver(y, b):
        values = np.asarray(b)
        y = np.linalg.solve(A, values)
        values *= 0.0
        return y

    solve = wg.implicit(solver, lambda y, b: A @ y - b * b, check=True)
    b = np.array([1.0, 2.0])
    with pytest.raises((ConvergenceError, ValueError, wg.errors.WengertError)):
        wg.jacobian(lambda b: solve(np.zeros(2), b))(b)


def test_bad_input():
    """Errors name what is wrong."""
    for check in (-1.0, 2.0, "yes", 0.0):
        with pytest.raises(ArgumentError, match="check="):
            wg.custom_root(lambda y: y, 1.0, lambda f, y: y, check=check)
    with pytest.raises(ShapeError, match="result of solve"):
        wg.implicit(lambda y, b: y[:1], equations, check=True)(np.zeros(2), B)
    with pytest.raises(ShapeError, match="result of the residual"):
        wg.implicit(newton, lambda y, b: y[:1], check=True)(np.zeros(2), B)
