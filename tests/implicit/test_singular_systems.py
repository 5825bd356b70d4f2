"""Operations whose solution is NaN, and not an error, if the matrix is singular."""

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse
from wengert.backends import emulated_device

import wengert as wg
from wengert._engine.backends.cuda import library_calls
from wengert._engine.core.op import lookup
from wengert._engine.ops.linalg.packed_factors import lu_or_nan, solve_or_nan, solve_packed


def systems(n, dtype):
    """Three systems; the matrix of the second one is singular."""
    rng = np.random.default_rng(n)
    a, b = rng.normal(size=(3, n, n)), rng.normal(size=(3, n, 2))
    if dtype is complex:
        a, b = a + 1j * rng.normal(size=a.shape), b + 1j * rng.normal(size=b.shape)
    a[1, :, 0] = 0.0
    return a.astype(dtype), b.astype(dtype)


def by_factors(a, b):
    return solve_packed(*lu_or_nan(a), b)


@pytest.mark.parametrize("dtype", [float, complex, np.float32])
@pytest.mark.parametrize("n", [1, 4, 9, 70])
@pytest.mark.parametrize("f", [solve_or_nan, by_factors])
def test_singular_matrices(f, n, dtype):
    a, b = systems(n, dtype)
    tolerance = 1e-3 if dtype is np.float32 else 1e-10
    for right in (b, b[..., :1]):
        wanted = np.linalg.solve(a[[0, 2]], right[[0, 2]])
        for function in (f, wg.jit(f)):
            found = function(a, right)
            assert found.dtype == wanted.dtype
            np.testing.assert_allclose(found[[0, 2]], wanted, rtol=tolerance, atol=tolerance)
            assert not np.any(np.all(np.isfinite(found[1]), axis=0))


@pytest.mark.parametrize("n", [3, 9])
def test_cotangents_of_solutions_that_are_not_used_are_zero(n):
    a, b = systems(n, float)

    def total(a, b):
        x = solve_or_nan(a, b)
        return np.sum(np.where(np.isnan(x), 0.0, x))

    for gradient in (wg.grad(total, (0, 1)), wg.jit(wg.grad(total, (0, 1)))):
        for bar in gradient(a, b):
            assert not np.any(bar[1])
            assert np.isfinite(bar).all()


@pytest.mark.parametrize("below", [1, 2])
def test_bands(below):
    rng = np.random.default_rng(1)
    b, band = rng.normal(size=(6, 1)), rng.normal(size=(below + 2, 6)) + 3.0
    singular = band.copy()
    singular[:, 2] = 0.0

    def solution(band):
        return lookup("linalg.banded_solve")(band, b, below=below, above=1, or_nan=True)

    for f in (solution, wg.jit(solution)):
        np.testing.assert_allclose(f(band), scipy.linalg.solve_banded((below, 1), band, b))
        assert np.isnan(f(singular)).all()


def test_sparse_matrices():
    b = np.linspace(1.0, 2.0, 6)[:, None]
    a = scipy.sparse.csr_array(np.diag(np.arange(1.0, 7.0)))
    solve = lookup("sparse.solve")
    given = a.indices, a.indptr, b
    np.testing.assert_allclose(solve(a.data, *given, or_nan=True)[:, 0], b[:, 0] / a.data)
    assert np.isnan(solve(a.data - 1.0, *given, or_nan=True)).all()
    with pytest.raises(wg.errors.MatrixError):
        solve(a.data - 1.0, *given)


@pytest.mark.parametrize(("f", "n"), [(solve_or_nan, 4), (by_factors, 20)])
@pytest.mark.parametrize("dtype", [float, complex])
def test_systems_on_a_device(f, n, dtype, monkeypatch):
    def refuse(program, node, *rest):
        raise AssertionError(f"{node.op.name} was computed on the host")

    if dtype is float or f is by_factors:  # the library of a device refuses singular matrices
        monkeypatch.setattr(library_calls, "_on_host", refuse)
    a, b = systems(n, dtype)
    with emulated_device():
        found = wg.device_get(wg.jit(lambda a, b: f(a, b), backend="cuda")(a, b))
    np.testing.assert_allclose(found[[0, 2]], np.linalg.solve(a[[0, 2]], b[[0, 2]]), rtol=1e-9)
    assert not np.any(np.all(np.isfinite(found[1]), axis=0))
