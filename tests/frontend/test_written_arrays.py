"""Plain arrays, arguments and captured ones, that a function modifies."""

import numpy as np
import pytest

import wengert as wg

X = np.array([0.5, 1.5, 2.5])


def fills(buf, x):
    for i in range(3):
        buf[i] = x[i] ** 2
    return buf.sum()


def adds(buf, x):
    buf += x * x
    buf[1:] *= x[:2]
    return np.sum(buf * x)


@pytest.mark.parametrize("f", [fills, adds])
@pytest.mark.parametrize("compiled", [False, True])
def test_an_argument_is_modified_as_numpy_does(f, compiled):
    plain = np.full(3, 7.0)
    value = f(plain, X)
    want = [
        (f(np.full(3, 7.0), X + h) - f(np.full(3, 7.0), X - h)) / 2e-6 for h in 1e-6 * np.eye(3)
    ]
    for make in (wg.grad, wg.value_and_grad):
        run = make(f, argnums=1)
        buf = np.full(3, 7.0)
        got = (wg.jit(run) if compiled else run)(buf, X)
        if make is wg.value_and_grad:
            assert np.isclose(got[0], value)
            got = got[1]
        np.testing.assert_allclose(got, want, rtol=1e-6)
        np.testing.assert_allclose(buf, plain, rtol=1e-14)
    by_name, buf = wg.grad(f, argnames="x"), np.full(3, 7.0)
    np.testing.assert_allclose(by_name(buf=buf, x=X), want, rtol=1e-6)
    np.testing.assert_allclose(buf, plain, rtol=1e-14)


def test_results_are_plain_arrays():
    def f(buf, x):
        buf[0] = x[0]
        return buf.sum(), buf

    buf = np.zeros(3)
    got, aux = wg.grad(f, argnums=1, has_aux=True)(buf, X)
    assert type(aux) is np.ndarray and aux.tolist() == buf.tolist() == [0.5, 0.0, 0.0]
    assert got.tolist() == [1.0, 0.0, 0.0]


def test_a_differentiated_argument_is_not_modified():
    buf = np.full(3, 7.0)
    wg.grad(fills, argnums=(0, 1))(buf, X)
    assert buf.tolist() == [7.0] * 3


def test_a_store_that_would_lose_a_derivative_is_an_error():
    buf = np.zeros(3)

    def f(x):
        first = wg.grad(fills, argnums=1)(buf, x)
        return first.sum() + buf.sum()

    with pytest.raises(wg.errors.ConversionError, match=r"buf is a plain array.*test_written"):
        wg.grad(f)(X)

    def g(x):
        return wg.grad(lambda y: fills_scaled(buf, y, x[0]))(np.ones(3)).sum() + buf.sum()

    def fills_scaled(buf, y, a):
        buf[0] = y[0] * a
        return buf.sum()

    with pytest.raises(wg.errors.ConversionError):
        wg.grad(g)(X)
    assert buf.tolist() == [0.0] * 3


GLOBAL = np.zeros(3)


def captured(x):
    GLOBAL[0] = x[0] * x[1]
    return GLOBAL.sum()


def test_captured_arrays():
    GLOBAL[:] = 0
    with pytest.raises(wg.errors.ConversionError, match=r"GLOBAL.*test_written_arrays"):
        wg.grad(captured)(X)
    assert GLOBAL.tolist() == [0.0] * 3
    np.testing.assert_allclose(wg.jit(wg.grad(captured))(X), [1.5, 0.5, 0.0])
    assert GLOBAL.tolist() == [0.75, 0.0, 0.0]
    np.testing.assert_allclose(wg.jit(captured)(X + 1), 1.5 * 2.5)
    assert GLOBAL.tolist() == [3.75, 0.0, 0.0]
