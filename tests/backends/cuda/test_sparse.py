"""Products with sparse matrices, and convolutions of signals, on a device."""

import numpy as np
import pytest
import scipy.sparse
from tests.backends.cuda.test_scans import agree
from wengert.backends import emulated_device

import wengert as wg
from wengert._engine.core.op import lookup
from wengert.errors import ShapeError

pytestmark = pytest.mark.usefixtures("no_host_callbacks")
RNG = np.random.default_rng(5)
A = scipy.sparse.random_array((7, 5), density=0.4, rng=RNG, format="csr")
PATTERN = A.indices.astype(np.int64), A.indptr.astype(np.int64)
product = lookup("csr_matmul")


@pytest.mark.parametrize("shape", [(5,), (5, 3)])
def test_products_and_their_gradients(shape):
    v = RNG.normal(size=shape)

    def f(data, v, *pattern):
        y = product(data, v, *pattern)
        return y, wg.grad(lambda d, v: np.sum(np.sin(product(d, v, *pattern))), (0, 1))(data, v)

    agree(f, A.data, v, *PATTERN)
    with emulated_device():
        found = wg.device_get(wg.jit(product, backend="cuda")(A.data, v, *PATTERN))
    assert np.allclose(found, A @ v, rtol=1e-13)


def test_products_of_a_batch():
    data, v = RNG.normal(size=(4, A.nnz)), RNG.normal(size=(4, 5))
    agree(wg.vmap(lambda d, v: product(d, v, *PATTERN)), data, v)


def test_patterns_that_are_wrong_are_errors():
    f = wg.jit(product, backend="cuda")
    with emulated_device():
        with pytest.raises(IndexError, match="column 9 of a sparse matrix with 5 columns"):
            f(A.data, np.ones(5), np.full(A.nnz, 9), PATTERN[1])
        with pytest.raises(ShapeError, match="must begin with 0"):
            f(A.data, np.ones(5), PATTERN[0], PATTERN[1] + 1)


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
def test_convolutions_of_signals(mode):
    x, v = RNG.normal(size=(6, 7)), RNG.normal(size=(3, 2))
    for f in (wg.scipy.signal.convolve, wg.scipy.signal.correlate):
        agree(lambda x, v, f=f: f(x, v, mode, "direct"), x, v)
        agree(wg.grad(lambda x, v, f=f: np.sum(f(x, v, mode, "direct") ** 2), (0, 1)), x, v)
