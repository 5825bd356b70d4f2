"""Products of a matrix and its transpose, of which BLAS computes half."""

import numpy as np
import pytest

import wengert as wg
from wengert._engine.backends.llvm.tuning import using

DTYPES = ["float64", "float32", "complex128", "complex64", "int64"]
LAYOUTS = {
    "in order": lambda x: x,
    "fortran": np.asfortranarray,
    "part": lambda x: np.kron(x, np.ones((1, 2), x.dtype))[:, ::2],
    "rows": lambda x: np.concatenate([x, x], axis=1)[:, : x.shape[1]],
}


def drawn(shape, dtype="float64"):
    """Integers in a dtype, so that products are exact."""
    rng = np.random.default_rng(3)
    x = rng.integers(-4, 5, size=shape)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * rng.integers(-4, 5, size=shape)
    return x.astype(dtype)


@pytest.fixture(autouse=True)
def from_small_sizes_on():
    with using(symmetric_product_rows=5):
        yield


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(5, 5), (7, 18), (33, 8), (64, 70), (4, 9)], ids=str)
@pytest.mark.sample(9)
def test_with_the_transpose(shape, dtype, layout):
    x = LAYOUTS[layout](drawn(shape, dtype))

    def f(x):
        return x @ x.T, x.T @ x, 3.0 * (x @ x.T) + np.eye(len(x)), x @ np.conj(x).T

    compiled = wg.jit(f)
    for _ in range(4):  # copied at first, then read where it lies
        for found, expected in zip(compiled(x), f(x), strict=True):
            np.testing.assert_array_equal(found, expected)


def test_half_is_computed():
    x, y = drawn((40, 30)), drawn((30, 40)).T
    code = wg.jit(lambda x: x @ x.T).lower(x).llvm_ir
    assert "syrk" in code
    assert "syrk" not in wg.jit(np.matmul).lower(x, x.T.copy()).llvm_ir
    with using(symmetric_product_rows=31):
        assert "syrk" not in wg.jit(lambda x: x @ x.T).lower(x).llvm_ir
    z = np.random.default_rng(0).normal(size=(40, 30))
    product = wg.jit(lambda z: z @ z.T)(z)
    assert np.array_equal(product, product.T)
    np.testing.assert_allclose(product, z @ z.T, rtol=1e-12, atol=1e-12)
    f = wg.jit(lambda x, y: x @ y.T)  # other matrices with the same strides
    y = y.T.copy().reshape(40, 30)
    assert np.array_equal(f(x, y), x @ y.T)
    assert np.array_equal(f(x, x), x @ x.T)  # found when it runs


def test_batches_and_outputs():
    x = drawn((3, 12, 9))
    f = lambda x: (x @ np.swapaxes(x, 1, 2), np.einsum("bij,bkj->bik", x, x))  # noqa: E731
    for found, expected in zip(wg.jit(f)(x), f(x), strict=True):
        np.testing.assert_array_equal(found, expected)


def test_covariances_and_their_gradients():
    x = np.random.default_rng(1).normal(size=(20, 35))
    np.testing.assert_allclose(wg.jit(np.cov)(x), np.cov(x), rtol=1e-12, atol=1e-12)
    f = lambda x: np.sum(np.sin(x @ x.T))  # noqa: E731
    cotangent = np.cos(x @ x.T)
    found = wg.jit(wg.grad(f))(x)
    np.testing.assert_allclose(found, (cotangent + cotangent.T) @ x, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_in_a_program_for_all_sizes(layout):
    """Whether the lengths are large enough is decided when it runs."""
    compiled = wg.jit(lambda x: (x @ x.T, x.T @ x))
    with using(symmetric_product_rows=20):
        for shape in ((30, 40), (25, 50), (12, 70), (41, 9), (33, 33)):
            x = LAYOUTS[layout](drawn(shape, np.float64))
            for found, expected in zip(compiled(x), (x @ x.T, x.T @ x), strict=True):
                np.testing.assert_array_equal(found, expected)
        assert "syrk" in compiled.lower(x).llvm_ir
    assert compiled.cache_info().general
