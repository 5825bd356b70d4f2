"""Kernels of scipy.linalg: LU, Sylvester's equation, structured systems, by LAPACK without Python.

Beside SciPy's own, over shapes, dtypes, batches and layouts; what SciPy refuses is refused.
"""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg

import wengert as wg
from wengert._engine.core.op import lookup

from .kernel_driver import agree, run

lu_factors, sylvester, banded, structured = (
    lookup(f"linalg.{name}")
    for name in ("lu_factors", "sylvester", "banded_solve", "structured_solve")
)


def numbers(rng, shape, dtype):
    x = rng.normal(size=shape)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * rng.normal(size=shape)
    return x.astype(dtype)


@pytest.mark.sample(1)
@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
def test_lu(dtype, rng):
    for shape in [(1, 1), (3, 3), (5, 3), (2, 6), (2, 3, 4, 4), (40, 40)]:
        a = numbers(rng, shape, dtype)
        for x in (a, a[..., ::-1, :], np.zeros_like(a)):
            want = lu_factors.run(x)
            status, found = run("linalg.lu_factors", x, outputs=want, strided=True)
            assert status == 0
            for got, one in zip(found, want, strict=True):
                assert got.dtype == one.dtype
                agree(got, one, 300 * np.finfo(dtype).eps)
    a = numbers(rng, (4, 3, 3), dtype)
    a[2, 1, 1] = np.nan
    assert run("linalg.lu_factors", a, outputs=lu_factors.run(a[:1].repeat(4, 0)))[0] == 1


@pytest.mark.sample(1)
@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
def test_sylvester(dtype, rng):
    for lead, m, n in [((), 1, 1), ((), 3, 3), ((2,), 4, 2), ((3, 2), 2, 5), ((), 30, 20)]:
        a = numbers(rng, (*lead, m, m), dtype) + m * np.eye(m, dtype=dtype)
        b = numbers(rng, (*lead, n, n), dtype) + n * np.eye(n, dtype=dtype)
        q = numbers(rng, (*lead, m, n), dtype)
        for x, y in ((a, b), (a.mT, b.mT)):
            want = sylvester.run(x, y, q)
            status, (found,) = run("linalg.sylvester", x, y, q, outputs=[want], strided=True)
            assert status == 0 and found.dtype == dtype
            agree(found, want, 2000 * np.finfo(dtype).eps)
            residual = np.abs(x @ found + found @ y - q).max()
            assert residual <= 2000 * np.finfo(dtype).eps * np.abs(q).max()


def test_equations_without_a_solution_are_refused(rng):
    a = rng.normal(size=(3, 3))
    q = rng.normal(size=(3, 3))
    assert run("linalg.sylvester", a, -a, q, outputs=[q])[0] == 1
    assert run("linalg.sylvester", a, np.full((3, 3), np.inf), q, outputs=[q])[0] == 1
    with pytest.raises(np.linalg.LinAlgError):
        wg.jit(lambda a: wg.scipy.linalg.solve_sylvester(a, -a, q))(a)


@pytest.mark.sample(3)
@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
def test_bands(dtype, rng):
    sizes = [((), 1, 0, 0), ((), 5, 1, 1), ((2,), 6, 2, 0), ((2, 3), 7, 1, 3)]
    tridiagonal = [((), 1, 1, 1), ((), 2, 1, 1), ((2, 3), 40, 1, 1)]
    for lead, n, below, above in [*sizes, *tridiagonal]:
        ab = numbers(rng, (*lead, below + above + 1, n), dtype)
        ab[..., above, :] += 9
        b = numbers(rng, (*lead, n, 2), dtype)
        params = {"below": below, "above": above}
        want = banded.run(ab, b, **params)
        status, (found,) = run("linalg.banded_solve", ab, b, outputs=[want], strided=True, **params)
        assert status == 0 and found.dtype == dtype
        agree(found, want, 100 * np.finfo(dtype).eps)
        for bad in (np.nan * ab, 0 * ab):
            assert run("linalg.banded_solve", bad, b, outputs=[want], **params)[0] == 1


def test_tridiagonal_systems_exchange_rows(rng):
    """With zeros on the diagonal; bits of SciPy's solve_banded, which calls gtsv too."""
    ab, b = rng.normal(size=(3, 30)), rng.normal(size=(30, 2))
    ab[1, ::2] = 0.0
    params = {"below": 1, "above": 1}
    want = scipy.linalg.solve_banded((1, 1), ab, b)
    status, (found,) = run("linalg.banded_solve", ab, b, outputs=[want], **params)
    assert status == 0 and np.array_equal(found, want)


@pytest.mark.sample(3)
@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
@pytest.mark.parametrize("lower", [False, True])
def test_positive_definite_systems(dtype, lower, rng):
    params = {"structure": "positive definite", "lower": lower}
    for lead, n, columns in [((), 1, 1), ((), 4, 3), ((2, 3), 3, 2), ((), 40, 2)]:
        g = numbers(rng, (*lead, n, n), dtype)
        a = (g @ np.conj(g.mT) + n * np.eye(n)).astype(dtype)
        a += np.triu(g, 1) if lower else np.tril(g, -1)  # what is not read
        b = numbers(rng, (*lead, n, columns), dtype)
        want = structured.run(a, b, **params)
        status, (found,) = run(
            "linalg.structured_solve", a, b, outputs=[want], strided=True, **params
        )
        assert status == 0 and found.dtype == dtype
        agree(found, want, 100 * n * np.finfo(dtype).eps)
        for bad in (np.nan * a, -a, 0 * a):
            assert run("linalg.structured_solve", bad, b, outputs=[want], **params)[0] == 1
    poor = np.diag([1.0, 1e-20, 1.0]).astype(dtype)  # of which SciPy warns
    b = np.ones((3, 1), dtype)
    assert run("linalg.structured_solve", poor, b, outputs=[b], **params)[0] == 1


def test_gradients(rng):
    a, b, q = (rng.normal(size=(4, 4)) + 3.0 * np.eye(4) for _ in range(3))
    for fun in (
        lambda a: np.sum(wg.scipy.linalg.solve_sylvester(a, b, q) ** 2),
        lambda a: np.sum(wg.scipy.linalg.solve(a @ a.T, b, assume_a="pos") ** 2),
        lambda a: np.sum(wg.scipy.linalg.solve_banded((1, 2), a, q[0]) ** 2),
        lambda a: np.sum(wg.scipy.linalg.lu(a)[2] ** 2) + np.sum(wg.scipy.linalg.lu(a)[1] * q),
    ):
        slope = wg.jit(wg.grad(fun), host_callbacks="forbid")
        agree(slope(a), wg.grad(fun)(a), 1e-11)
