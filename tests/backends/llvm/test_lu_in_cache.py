"""LU factors and solutions of matrices in a first-level cache, beside LAPACK's."""

import numpy as np
import pytest
import scipy.linalg

import wengert as wg
from wengert._engine.ops.linalg.packed_factors import lu_packed, solve_packed
from wengert.errors import SingularError

# Around the widths of vectors; the largest one that is served, and one that is not.
SIZES = [5, 8, 13, 64, 65]


def solution(trans=0):
    return wg.jit(lambda a, b: solve_packed(*lu_packed(a), b, trans=trans))


def random_system(n, m=1):
    rng = np.random.default_rng(n)
    return rng.normal(size=(n, n)), rng.normal(size=(n, m))  # rows are exchanged


@pytest.mark.parametrize("n", SIZES)
def test_factors_are_those_of_lapack(n):
    a, _ = random_system(n)
    packed, pivots = wg.jit(lu_packed)(a)
    expected, expected_pivots = scipy.linalg.lu_factor(a)
    np.testing.assert_array_equal(pivots, expected_pivots + 1)
    np.testing.assert_allclose(packed.T, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("m", [1, 3, 17])
def test_systems_and_their_adjoints(n, m):
    a, b = random_system(n, m)

    @wg.jit
    def both(a, b):
        factors = lu_packed(a)
        return solve_packed(*factors, b), solve_packed(*factors, b, trans=1)

    for x, op in zip(both(a, b), (a, a.T), strict=True):
        np.testing.assert_allclose(x, np.linalg.solve(op, b), rtol=1e-7, atol=1e-10)


def test_batches_and_strides():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(3, 12, 12)), rng.normal(size=(3, 12, 5))
    expected = np.linalg.solve(a, b)
    np.testing.assert_allclose(solution()(a, b), expected, rtol=1e-9)
    reversed_columns = solution()(a.mT.copy().mT, b[..., ::-1])
    np.testing.assert_allclose(reversed_columns[..., ::-1], expected, rtol=1e-9)
    by_columns = solution()(a, b.mT.copy().mT)
    np.testing.assert_allclose(by_columns, expected, rtol=1e-9)
    one = wg.jit(lambda a, b: solve_packed(*lu_packed(a), b[:, :, None])[:, :, 0])(a, b[..., 1])
    np.testing.assert_allclose(one, expected[..., 1], rtol=1e-9)
    factors = wg.jit(wg.vmap(lambda b: solve_packed(*lu_packed(a[0]), b[:, None])[:, 0]))(b[0].T)
    np.testing.assert_allclose(factors.T, expected[0], rtol=1e-9)
    single = wg.jit(lambda a, b: solve_packed(*lu_packed(a), b))(a[0], b[0].astype(np.float32))
    np.testing.assert_allclose(single, np.linalg.solve(a[0], b[0].astype(np.float32)), rtol=1e-9)


@pytest.mark.parametrize("n", [8, 11])
@pytest.mark.parametrize("m", [1, 3])
def test_pivots_near_zero(n, m):
    diagonal = np.linspace(1.0, 2.0, n)
    b = np.repeat(np.arange(n)[:, None] - 1.0, m, axis=1)
    for tiny in (1e-310, -1e-320):
        a, right = np.diag(diagonal), b.copy()
        a[1, 1], right[1] = tiny, 3.0 * tiny
        for trans in (0, 1):
            np.testing.assert_allclose(solution(trans)(a, right)[1], 3.0, rtol=1e-3)
    a = np.diag(diagonal)
    a[1, 1] = np.nan
    assert np.isnan(solution()(a, b)[1]).all()
    for singular in (np.diag(diagonal * (np.arange(n) != n - 1)), np.zeros((n, n))):
        for trans in (0, 1):
            with pytest.raises(SingularError):
                solution(trans)(singular, b)


def test_equal_and_zero_columns():
    a = np.ones((9, 9))
    packed, pivots = wg.jit(lu_packed)(a)
    np.testing.assert_array_equal(pivots, np.arange(1, 10))  # the first of equal elements
    np.testing.assert_array_equal(np.triu(packed.T), np.triu(a * (np.arange(9)[:, None] == 0)))
    a[:, 3] = 0.0
    with pytest.warns(scipy.linalg.LinAlgWarning):
        expected, _ = scipy.linalg.lu_factor(a)
    np.testing.assert_array_equal(wg.jit(lu_packed)(a)[0].T, expected)


@pytest.mark.parametrize("m", [None, 1, 6])
def test_solve(m):
    rng = np.random.default_rng(3)
    a, b = rng.normal(size=(2, 21, 21)), rng.normal(size=(2, 21, *([] if m is None else [m])))
    right = b[..., None] if m is None else b
    found = wg.jit(np.linalg.solve)(a, right)
    np.testing.assert_allclose(found, np.linalg.solve(a, right), rtol=1e-9, atol=1e-12)
    with pytest.raises(np.linalg.LinAlgError):
        wg.jit(np.linalg.solve)(a * (np.arange(21) != 4), right)
