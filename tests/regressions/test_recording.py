"""Faults about what is recorded and what is not."""

import numpy as np
import pytest

import wengert as wg

X = np.array([1.0, 2.0, 3.0])


def cube(x):
    return np.sum(x**3)


@pytest.mark.parametrize(
    "derivative",
    [
        lambda: wg.grad(cube)(X),
        lambda: wg.value_and_grad(cube)(X)[1],
        lambda: wg.vjp(cube, X)[1](1.0)[0],
        lambda: wg.jacrev(cube)(X),
        lambda: wg.jacfwd(cube)(X),
        lambda: np.array([wg.jvp(cube, (X,), (e,))[1] for e in np.eye(3)]),
        lambda: np.array([wg.linearize(cube, X)[1](e) for e in np.eye(3)]),
        lambda: np.diag(wg.hessian(cube)(X)) * X / 2,
        lambda: wg.hvp(cube, (X,), (X,)) / 2,
    ],
)
def test_a_derivative_inside_no_grad_was_zero(derivative):
    with wg.no_grad():
        inside = derivative()
    assert type(inside) is np.ndarray
    assert np.allclose(inside, 3 * X**2)
    assert wg.is_recording()


def test_a_derivative_inside_no_grad_is_a_constant_to_the_outside():
    w = wg.tensor(X, requires_grad=True)

    @wg.no_grad()
    def slope(x):
        return wg.grad(lambda x: np.sum(w * x * x))(x)

    assert type(slope(X)) is np.ndarray
    inside = wg.grad(lambda x: np.sum(x * slope(x)))(X)  # x * const, by x
    assert np.allclose(inside.numpy() if isinstance(inside, wg.Tensor) else inside, 2 * X * X)


def test_no_grad_inside_the_function_still_makes_constants():
    def f(x):
        with wg.no_grad():
            s = np.sum(x)
        return np.sum(x / s)

    with wg.no_grad():
        assert np.allclose(wg.grad(f)(X), 1 / X.sum())


def test_create_graph_inside_no_grad_recorded_nothing():
    w = wg.tensor(X, requires_grad=True)
    y = cube(w)
    with wg.no_grad():
        y.backward(create_graph=True)
    g = w.grad
    w.zero_grad()
    np.sum(g).backward()
    assert np.allclose(w.grad.numpy(), 6 * X)
