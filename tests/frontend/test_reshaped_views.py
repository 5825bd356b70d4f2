"""Stores to reshaped arrays in graphs, where NumPy makes a view for every layout of memory."""

import numpy as np
import pytest

import wengert as wg
from wengert.errors import TraceError

RNG = np.random.default_rng(2)
A, X = RNG.normal(size=(4, 6)), RNG.normal(size=12)


def of_a_vector(A, x):
    x = x * 1.0
    B = x.reshape(3, 4)
    B[1] *= 2
    B[:, 0] += x[0]
    x[5] = 3 * x[1]
    return (x**2).sum() + B[1, 1]


def in_loops(A, x):
    x = x.copy()
    B = x.reshape(3, 4)
    for i in range(3):
        for j in range(4):
            B[i, j] = np.sin(B[i, j]) + 0.5 * x[0]
    return (x * np.arange(12)).sum()


def of_a_slice(A, x):
    x = x * 1.0
    B = x[::2].reshape(2, 3)
    B[0] = 2 * x[1]
    C = x[::-1].reshape((3, 4), order="F")
    C[0, 1:] *= 3
    return (x**2).sum() + B.sum()


def of_a_copy(A, x):
    A = A.copy()
    A[1] *= 2
    flat, same = A.reshape(-1), A.ravel()
    for k in range(24):
        flat[k] = 0.5 * flat[k] + 0.1 * flat[k - 1]
    same[3] = 2.0 * x[0]
    A[0, 0] = x[1] ** 2
    return (A**3).sum() + flat[0] + same[0]


def rows_of_a_copy(A, x):
    A = A.copy()
    blocks = A.reshape(2, 2, 6)
    blocks[0, 1] = x[:6]
    flat = blocks.reshape(-1)
    flat[::5] *= 2
    return (A**2).sum()


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize(
    "f", [of_a_vector, in_loops, of_a_slice, of_a_copy, rows_of_a_copy], ids=lambda f: f.__name__
)
def test_values_and_gradients(f, order):
    given = np.array(A, order=order), X
    np.testing.assert_allclose(wg.jit(f)(*given), f(*given), rtol=1e-10)
    eager, compiled = wg.grad(f, (0, 1))(*given), wg.jit(wg.grad(f, (0, 1)))(*given)
    for a, b in zip(eager, compiled, strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-9, atol=1e-12)
    batch = [np.stack([a, 0.5 * a]) for a in given]
    expected = [f(*given), f(*[0.5 * a for a in given])]
    np.testing.assert_allclose(wg.vmap(f)(*batch), expected, rtol=1e-10)


def test_an_argument_is_modified():
    def f(x):
        x.reshape(3, 4)[1] = 5.0
        return x.sum()

    x, want = X.copy(), X.copy()
    want[4:8] = 5.0
    assert np.isclose(wg.jit(f)(x), want.sum())
    np.testing.assert_array_equal(x, want)


def test_other_reshapes_of_matrices_are_refused():
    def elementwise(A):  # the layout of its result is that of the argument
        B = A * 2
        flat = B.reshape(-1)
        flat[0] = 5.0
        return B.sum()

    def in_other_order(A):
        B = A.copy()
        flat = B.reshape(-1, order="F")
        flat[0] = 5.0
        return B.sum()

    for f in (elementwise, in_other_order):
        with pytest.raises(TraceError, match="may share its memory"):
            wg.jit(f)(A)
