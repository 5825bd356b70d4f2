"""Sums of products in loops: terms are rounded once, and blocks of rows of any length are added."""

import math

import numpy as np
import pytest

import wengert as wg


def row_products(A, x):
    """Products of the parts of rows before the diagonal with the part of x."""
    y = np.zeros(A.shape[0])
    for i in range(A.shape[0]):
        y[i] = np.where(y[i - 1] == 0.5, 0.0, A[i, :i] @ x[:i])  # steps depend on each other
    return y


def row_sums(A):
    """Sums of the parts of rows before the diagonal."""
    y = np.zeros(A.shape[0])
    for i in range(A.shape[0]):
        y[i] = np.where(y[i - 1] == 0.5, 0.0, np.sum(A[i, :i]))
    return y


def test_terms_are_rounded_with_the_sum():
    n = 130
    A, x = np.zeros((n, n)), np.zeros(n)
    a = 1 + 2.0**-30
    A[:, 0], x[0] = -(1 + 2.0**-29), 1.0
    A[:, 64], x[64] = a, a  # in the same lane of vectors of up to 64 numbers
    found = wg.jit(row_products)(A, x)
    assert found[-1] == 2.0**-60  # a * a rounded is 1 + 2**-29


def test_rows_of_all_lengths():
    n = 700
    A, x = np.random.default_rng(1).normal(size=(n, n)), np.random.default_rng(2).normal(size=n)
    products, sums = wg.jit(row_products)(A, x), wg.jit(row_sums)(A)
    eps = np.finfo(float).eps
    for i in range(n):
        terms = [(float(a) * float(b)) for a, b in zip(A[i, :i], x[:i], strict=True)]
        size = math.fsum(abs(t) for t in terms)
        assert abs(products[i] - math.fsum(terms)) <= 8 * eps * size
        assert abs(sums[i] - math.fsum(A[i, :i])) <= 6 * eps * math.fsum(np.abs(A[i, :i]))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("place", [3, 300])
def test_infinite_terms_and_overflow(dtype, place):
    n = 600
    A = np.ones((n, n), dtype)
    huge = np.finfo(dtype).max
    found = wg.jit(row_sums)
    for odd in (np.inf, -np.inf, np.nan, huge):
        A[:, place] = odd
        A[:, -2] = odd
        with np.errstate(over="ignore"):
            expected = np.array([np.sum(A[i, :i]) for i in range(n)])
        assert np.allclose(found(A), expected, equal_nan=True, rtol=1e-6)
    A[:, place], A[:, -2] = np.inf, -np.inf
    assert found(A)[-2] == np.inf
    assert np.isnan(found(A)[-1])


def test_products_by_zero_in_derivatives_add_nothing():
    n = 70
    A, x = np.full((n, n), np.inf), np.ones(n)
    A[:, 0] = 2.0

    def first(A, x):
        y = row_products(A, x)
        return y[1]

    assert wg.jit(wg.grad(first, argnums=1))(A, x)[0] == 2.0
    assert np.isfinite(wg.jit(wg.grad(first, argnums=1))(A, x)).all()


def test_derivatives():
    rng = np.random.default_rng(3)
    A, x = rng.normal(size=(40, 40)), rng.normal(size=40)

    def total(A, x):
        return np.sum(np.sin(row_products(A, x)))

    gradient, eager = wg.grad(total, argnums=(0, 1)), wg.grad(total, argnums=(0, 1))(A, x)
    for one, other in zip(wg.jit(gradient)(A, x), eager, strict=True):
        assert np.allclose(one, other, rtol=1e-13, atol=1e-13)
    t = rng.normal(size=40)
    along = wg.jit(lambda A, x, t: wg.jvp(lambda x: total(A, x), (x,), (t,))[1])(A, x, t)
    assert np.isclose(along, eager[1] @ t, rtol=1e-12)
    hessian = wg.jit(wg.hessian(total, argnums=1))(A, x)
    step = 1e-6 * t
    above, below = (wg.grad(total, argnums=1)(A, x + s) for s in (step, -step))
    assert np.allclose(hessian @ t, (above - below) / 2e-6, rtol=1e-6, atol=1e-6)
    batch = wg.jit(wg.vmap(lambda x: wg.grad(total, argnums=1)(A, x)))(np.stack([x, t]))
    assert np.allclose(batch[0], eager[1], rtol=1e-12, atol=1e-12)
