"""Systems that are solved by the factors of a matrix near: accuracy, and singular matrices."""

import numpy as np
import pytest

import wengert as wg
from wengert.scipy.sparse.linalg.factors import factor_of
from wengert.scipy.sparse.linalg.near_solve_operation import SparseProducts, gmres, near_solve


def matrix(rng, n=60):
    from scipy.sparse import eye_array, random_array

    a = (random_array((n, n), density=0.1, rng=rng) + 4 * eye_array(n)).tocsr()
    a.sort_indices()
    return a


@pytest.mark.parametrize("change", [0.0, 1e-3, 0.1, 3.0])
@pytest.mark.parametrize("unit", [1.0, 1.0 + 0.5j])
def test_a_system_has_the_accuracy_of_a_factorization(change, unit):
    rng = np.random.default_rng(0)
    a = matrix(rng) * unit
    near = a.data * (1 + change * rng.normal(size=a.nnz))
    b = rng.normal(size=(60, 2)) * unit
    for trans, op in enumerate((a, a.T, a.conj().T)):
        x = near_solve(a.data, near, a.indices, a.indptr, b, trans=trans)
        np.testing.assert_allclose(op @ x, b, atol=1e-12)


def test_a_factorization_takes_over():
    rng = np.random.default_rng(1)
    a = matrix(rng)
    near, b = rng.normal(size=a.nnz), rng.normal(size=60)
    parts = a.indices, a.indptr
    assert gmres(SparseProducts(a.data, *parts, 0), factor_of(near, *parts), b) is None
    x = near_solve(a.data, near, *parts, b[:, None])[:, 0]
    np.testing.assert_allclose(a @ x, b, atol=1e-12)
    assert near_solve(a.data, near, *parts, np.zeros((60, 1))).tolist() == [[0.0]] * 60


def nearly_singular(a, distance):
    """The entries of a matrix with an eigenvalue that is relatively near zero."""
    value = np.max(np.linalg.eigvals(a.toarray()).real)  # of a positive eigenvector
    diagonal = np.repeat(np.arange(a.shape[0]), np.diff(a.indptr)) == a.indices
    return a.data - np.where(diagonal, value * (1 - distance), 0.0)


@pytest.mark.parametrize("distance", [0.0, 1e-15])
@pytest.mark.parametrize("trans", [0, 1, 2])
def test_a_nearly_singular_matrix_is_an_error(distance, trans):
    rng = np.random.default_rng(2)
    a = matrix(rng)
    b, given = rng.normal(size=(60, 1)), (a.indices, a.indptr)
    data = nearly_singular(a, distance)
    for near in (a.data, data * (1 + 1e-3 * rng.normal(size=a.nnz))):
        with pytest.raises(wg.errors.SingularError, match="singular"):
            near_solve(data, near, *given, b, trans=trans)


def test_a_singular_block_that_the_right_hand_side_does_not_reach():
    rng = np.random.default_rng(3)
    a = matrix(rng, 40).toarray()
    a[20:, :20] = a[:20, 20:] = 0.0
    near = a.copy()
    a[20, 20:] = a[21, 20:]  # the residual of zero in this block is zero
    near[20, 20:] = near[21, 20:] + 1e-3 * np.eye(20)[0]
    rows, columns = np.nonzero((near != 0) | (a != 0))
    indptr = np.searchsorted(rows, np.arange(41))
    b = np.where(np.arange(40) < 20, 1.0, 0.0)[:, None]

    def total(data):
        return np.sum(near_solve(data, near[rows, columns], columns, indptr, b))

    for gradient_of in (wg.grad(total), wg.jit(wg.grad(total))):  # of a step that is rejected
        assert np.isnan(gradient_of(a[rows, columns])).all()
    np.testing.assert_allclose(
        total(near[rows, columns]), np.sum(np.linalg.solve(near, b)), rtol=1e-9
    )


def test_the_other_matrix_may_be_singular():
    rng = np.random.default_rng(4)
    a, b = matrix(rng), rng.normal(size=(60, 1))
    for near in (np.where(a.indices == 5, 0.0, a.data), nearly_singular(a, 0.0)):
        x = near_solve(a.data, near, a.indices, a.indptr, b)
        np.testing.assert_allclose(a @ x, b, atol=1e-12)


@pytest.mark.parametrize("unit", [1e-300, 1e-170, 1e170, 1e300])
def test_small_and_large_right_hand_sides(unit):
    rng = np.random.default_rng(5)
    a, b = matrix(rng), rng.normal(size=(60, 1))
    near = a.data * (1 + 1e-3 * rng.normal(size=a.nnz))
    x = near_solve(a.data, near, a.indices, a.indptr, b * unit)
    np.testing.assert_allclose(x / unit, np.linalg.solve(a.toarray(), b), rtol=1e-9, atol=1e-13)


def test_units_of_rows_and_columns():
    rng = np.random.default_rng(6)
    a, b = matrix(rng), rng.normal(size=(60, 1))
    rows, columns = 10.0 ** rng.integers(-8, 8, 60), 10.0 ** rng.integers(-4, 4, 60)
    units = np.repeat(rows, np.diff(a.indptr)) * columns[a.indices]
    near = a.data * (1 + 1e-3 * rng.normal(size=a.nnz))
    x = near_solve(a.data * units, near * units, a.indices, a.indptr, b * rows[:, None])
    expected = np.linalg.solve(a.toarray(), b)
    np.testing.assert_allclose(x * columns[:, None], expected, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("where", ["matrix", "right"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_values_that_are_not_finite(where, value):
    rng = np.random.default_rng(7)
    a, b = matrix(rng), rng.normal(size=(60, 1))
    data = a.data.copy()
    (b if where == "right" else data)[3] = value
    x = near_solve(data, a.data * 1.001, a.indices, a.indptr, b)
    assert not np.isfinite(x).all()
    assert where == "right" or np.isnan(x).all()


def test_no_derivative_with_respect_to_the_other_matrix():
    rng = np.random.default_rng(8)
    a, b = matrix(rng), rng.normal(size=(60, 1))

    def total(near):
        return np.sum(near_solve(a.data, near, a.indices, a.indptr, b))

    near = a.data * 1.001
    assert wg.jvp(total, (near,), (np.ones_like(near),))[1] == 0.0
    assert not np.any(wg.grad(total)(near))
