"""Larger matrices on a device: the library computes them, with NumPy's rules and errors."""

import numpy as np
import pytest
import scipy.linalg
from wengert.backends import emulated_device

import wengert as wg

N = 10


def matrices(*shape):
    return np.random.default_rng(0).normal(size=(*shape, N, N)) + N * np.eye(N)


def right(*shape):
    return np.random.default_rng(1).normal(size=shape)


SYSTEMS = {
    "a vector": (matrices(), right(N)),
    "columns": (matrices(), right(N, 3)),
    "a batch": (matrices(4), right(4, N, 3)),
    "a vector for each matrix": (matrices(4), right(N)),
    "one matrix": (matrices(), right(5, N, 2)),
    "as many matrices as rows": (matrices(N), right(N, N)),
    "broadcast": (matrices(3, 1), right(2, N, 1)),
    "single precision": (matrices(2).astype(np.float32), right(N, 3)),
    "complex": (matrices(2) * (1 + 1j), right(N, 3)),
    "no columns": (matrices(), right(N, 0)),
    "no matrices": (matrices(0), right(N, 2)),
    "no right-hand sides": (matrices(), right(0, N, 2)),
}
TRIANGULAR = {
    "upper": {},
    "lower": {"lower": True},
    "transposed": {"trans": "T"},
    "adjoint": {"trans": 2, "lower": True},
    "ones": {"unit_diagonal": True},
}


@pytest.mark.parametrize("name", SYSTEMS)
def test_systems(name, no_host_callbacks):
    a, b = SYSTEMS[name]
    wanted = np.linalg.solve(a, b)
    with emulated_device():
        got = wg.device_get(wg.jit(np.linalg.solve, backend="cuda")(a, b))
    assert (got.shape, got.dtype) == (wanted.shape, wanted.dtype)
    assert np.allclose(got, wanted, rtol=1e-5 if a.dtype == np.float32 else 1e-12)


@pytest.mark.parametrize("flags", TRIANGULAR)
@pytest.mark.parametrize("name", ["columns", "a batch", "one matrix", "broadcast", "complex"])
def test_triangular_systems(flags, name, no_host_callbacks):
    f = lambda a, b: wg.scipy.linalg.solve_triangular(a, b, **TRIANGULAR[flags])  # noqa: E731
    a, b = SYSTEMS[name]
    a = a / N  # with ones on the diagonal too
    with emulated_device():
        got = wg.device_get(wg.jit(f, backend="cuda")(a, b))
    wanted = f(a, b)
    assert (got.shape, got.dtype) == (wanted.shape, wanted.dtype)
    assert np.allclose(got, wanted, rtol=1e-9)


def test_decompositions(no_host_callbacks):
    a = matrices(3)
    for f in (
        lambda a: np.linalg.eigh(a + a.mT)[0],
        lambda a: np.linalg.svd(a)[1],
        lambda a: np.linalg.qr(a)[1],
        lambda a: np.linalg.slogdet(a)[1],
        lambda a: np.linalg.cholesky(a @ a.mT),
    ):
        with emulated_device():
            assert np.allclose(wg.device_get(wg.jit(f, backend="cuda")(a)), f(a), rtol=1e-12)


def test_what_cupy_lacks_is_computed_on_the_host():
    x = np.random.default_rng(0).normal(size=(30, 30))
    with emulated_device():
        y = wg.device_put(x)
        with pytest.raises(NotImplementedError, match=r"maximum\.reduce"):
            np.maximum.reduce(y)
        with pytest.raises(TypeError, match="no implementation"):
            np.linalg.svdvals(y)
        got = wg.device_get(wg.jit(wg.scipy.linalg.expm, backend="cuda")(x))
    assert np.allclose(got, scipy.linalg.expm(x), rtol=1e-12)


def test_singular_matrices_are_errors_of_the_host():
    a = np.zeros((2, N, N))
    with emulated_device():
        for f in (np.linalg.solve, lambda a, b: wg.scipy.linalg.solve_triangular(a, b)):
            with pytest.raises(wg.errors.MatrixError, match=r"ingular.*test_linear_algebra"):
                wg.jit(f, backend="cuda")(a, right(N, 2))


def test_gradients_of_larger_systems():
    f = wg.grad(lambda a, b: np.sum(np.linalg.solve(a, b) ** 2), argnums=(0, 1))
    a, b = SYSTEMS["a batch"]
    with emulated_device():
        got = wg.device_get(wg.jit(f, backend="cuda")(a, b))
    for x, y in zip(got, f(a, b), strict=True):
        assert np.allclose(x, y, rtol=1e-10, atol=1e-14)
