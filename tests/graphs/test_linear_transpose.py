"""linear_transpose and named_call: JAX's names and conventions."""

import numpy as np
import pytest

import wengert as wg
from wengert.errors import ArgumentError, DtypeError, NotDifferentiableError, ShapeError

A = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])


@pytest.mark.parametrize("example", [np.ones(2), wg.spec(2), [1.0, 2.0]])
def test_of_a_matrix(example):
    if isinstance(example, list):
        (bars,) = wg.linear_transpose(lambda x: A @ np.stack(x), example)(np.ones(3))
        assert bars == [9.0, 12.0]
        return
    (bar,) = wg.linear_transpose(lambda x: A @ x, example)(np.ones(3))
    np.testing.assert_array_equal(bar, [9.0, 12.0])


def test_of_several_arguments_and_results():
    def f(x, y):
        return {"sum": np.sum(x) * 2.0 + y["k"], "steps": np.cumsum(x)[::2]}

    transposed = wg.linear_transpose(f, wg.spec(3), {"k": 1.0})
    x, y = transposed({"sum": 2.0, "steps": np.array([1.0, 10.0])})
    np.testing.assert_array_equal(x, [15.0, 14.0, 14.0])
    assert y == {"k": 2.0}


def test_of_complex_numbers_it_is_not_the_adjoint():
    (bar,) = wg.linear_transpose(lambda z: (1.0 + 2.0j) * z, wg.spec((), complex))(1.0 + 0.0j)
    assert bar == 1.0 + 2.0j
    (bar,) = wg.linear_transpose(lambda x: 1j * x, 1.0)(1.0 + 1.0j)
    assert bar == -1.0


def test_transpose_of_the_transpose():
    transposed = wg.linear_transpose(lambda x: A @ x, wg.spec(2))
    twice = wg.linear_transpose(lambda t: transposed(t)[0], wg.spec(3))
    np.testing.assert_array_equal(twice(np.ones(2))[0], A @ np.ones(2))


def test_it_compiles_batches_and_has_derivatives():
    transposed = wg.linear_transpose(lambda x: A @ x + 1.0, wg.spec(2))  # the constant is ignored
    t = np.array([1.0, -1.0, 2.0])
    np.testing.assert_allclose(wg.jit(lambda t: transposed(t)[0])(t), A.T @ t)
    rows = wg.vmap(lambda t: transposed(t)[0])(np.stack([t, 2 * t]))
    np.testing.assert_allclose(rows, np.stack([t, 2 * t]) @ A)
    g = wg.grad(lambda t: np.sum(transposed(t)[0] ** 2))(t)
    np.testing.assert_allclose(g, 2 * A @ A.T @ t)


def test_of_a_loop():
    def smooth(x):
        for _ in range(3):
            x = 0.5 * (x + np.roll(x, 1))
        return x

    matrix = wg.jacobian(smooth)(np.zeros(4))
    (bar,) = wg.linear_transpose(smooth, wg.spec(4))(np.arange(4.0))
    np.testing.assert_allclose(bar, matrix.T @ np.arange(4.0))


@pytest.mark.parametrize("f", [np.sin, lambda x: x * x, lambda x: x / np.sum(x)])
def test_functions_that_are_not_linear_are_refused(f):
    with pytest.raises(NotDifferentiableError, match="is not linear"):
        wg.linear_transpose(f, wg.spec(2))


def test_errors():
    with pytest.raises(DtypeError, match="floating-point"):
        wg.linear_transpose(lambda x: x, 3)
    with pytest.raises(ShapeError, match="symbolic size"):
        wg.linear_transpose(lambda x: x, wg.spec("n"))


def test_named_call():
    @wg.named_call
    def layer(x, *, scale=1.0):
        return np.sin(x) * scale

    f = wg.named_call(lambda x: layer(x, scale=2.0), name="model")
    graph = wg.trace(lambda x: f(x) + 1.0)(wg.spec(2))
    assert graph.select(scope="model/layer")[0].op.name == "sin"
    assert layer.__name__ == "layer" and layer(0.5) == np.sin(0.5)
    assert wg.jit(wg.grad(lambda x: np.sum(f(x))))(np.zeros(2)).tolist() == [2.0, 2.0]
    with pytest.raises(ArgumentError, match="non-empty string"):
        wg.named_call(np.sin, name="")(1.0)
    with pytest.raises(ArgumentError, match="not a function"):
        wg.named_call(3)
