"""Systems with a matrix that is the same in each step of a loop: factorized once, on the device."""

import functools

import numpy as np
import pytest
from wengert.backends import emulated_device

import wengert as wg
from wengert._engine.core.op import lookup
from wengert.errors import SingularError

pytestmark = pytest.mark.usefixtures("no_host_callbacks")
N = 20
RNG = np.random.default_rng(3)


def matrices(*shape, dtype=np.float64):
    a = RNG.normal(size=(*shape, N, N))
    if np.dtype(dtype).kind == "c":
        a = a + 1j * RNG.normal(size=a.shape)
    return a.astype(dtype)


def implicit(a, y):
    """Implicit Euler steps with a fixed matrix."""
    return wg.fori_loop(0, 4, lambda i, y: np.linalg.solve(a, y) + 0.1 * y, y)


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_loops_with_a_fixed_matrix(dtype):
    a, y = matrices(dtype=dtype), RNG.normal(size=(N, 2)).astype(dtype)
    f = wg.jit(implicit, backend="cuda")
    text = str(f.lower(a, y).graph)
    assert "solve_packed" in text
    with emulated_device():
        found = wg.device_get(f(a, y))
    assert np.allclose(found, implicit(a, y), rtol=1e-10)


def test_gradients_of_such_loops():
    a, y = matrices() + N * np.eye(N), RNG.normal(size=N)
    f = wg.grad(lambda a, y: np.sum(implicit(a, y) ** 2), (0, 1))
    with emulated_device():
        found = wg.device_get(wg.jit(f, backend="cuda")(a, y))
    for got, want in zip(found, f(a, y), strict=True):
        assert np.allclose(got, want, rtol=1e-9, atol=1e-14)


def test_a_batch_of_such_loops():
    a, y = matrices(5), RNG.normal(size=(5, N, 1))
    f = wg.vmap(implicit)
    with emulated_device():
        found = wg.device_get(wg.jit(f, backend="cuda")(a, y))
    assert np.allclose(found, f(a, y), rtol=1e-9)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.complex128, np.complex64])
@pytest.mark.parametrize("shape", [(), (7,), (2, 3), (0,)])
def test_factors_and_pivots_are_those_of_lapack(dtype, shape):
    a = matrices(*shape, dtype=dtype)
    f = lookup("lu_packed")
    with emulated_device(threads=3):
        packed, pivots = wg.device_get(wg.jit(f, backend="cuda")(a))
    assert np.array_equal(pivots, f(a)[1])
    factors = np.swapaxes(packed, -1, -2)
    product = (np.tril(factors, -1) + np.eye(N)) @ np.triu(factors)
    order = lookup("rows_exchanged")(pivots)
    eps = np.finfo(dtype).eps
    wanted = np.take_along_axis(a, order[..., None], axis=-2)
    assert np.allclose(product, wanted, rtol=0, atol=100 * eps)


def test_a_singular_matrix_is_an_error_with_the_line():
    a = np.ones((N, N))
    for matrix in (a, np.stack([np.eye(N), a])):
        with emulated_device(), pytest.raises(SingularError, match="test_packed_factors"):
            right = np.ones((*matrix.shape[:-2], N, 1))
            wg.jit(wg.vmap(implicit) if matrix.ndim > 2 else implicit, backend="cuda")(
                matrix, right
            )


def test_triangles_of_a_batch():
    a, b = np.tril(matrices(2, 3)), RNG.normal(size=(2, 3, N, 2))
    for trans in (0, 1):
        f = functools.partial(wg.scipy.linalg.solve_triangular, trans=trans, lower=True)
        with emulated_device():
            found = wg.device_get(wg.jit(f, backend="cuda")(a, b))
        assert np.allclose(found, f(a, b), rtol=1e-9, atol=1e-9 * np.max(np.abs(found)))
