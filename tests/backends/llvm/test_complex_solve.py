"""Complex linear systems with several right-hand sides, solved with separate parts."""

import numpy as np
import pytest

import wengert as wg

from .kernel_driver import agree, run

SIZES = [(1, 2), (2, 3), (5, 17), (15, 8), (16, 16), (17, 33), (33, 15), (50, 150), (83, 40)]


def system(n, m, seed=0, lead=()):
    rng = np.random.default_rng(seed)
    a, b = (rng.normal(size=(*lead, n, k)) + 1j * rng.normal(size=(*lead, n, k)) for k in (n, m))
    return a, b


def residual(a, x, b):
    """The backward error, in units of rounding errors."""
    size = np.abs(a).sum(-1).max() * np.abs(x).max() + np.abs(b).max()
    return np.abs(a @ x - b).max() / (size * np.finfo(float).eps)


@pytest.mark.parametrize(("n", "m"), SIZES)
def test_sizes(n, m):
    a, b = system(n, m)
    status, (x,) = run("solve", a, b, outputs=(b,))
    assert status == 0
    assert residual(a, x, b) < 8
    agree(x, np.linalg.solve(a, b), 1e-11)


def test_one_program_for_all_sizes_on_both_sides_of_the_limit():
    solve = wg.jit(np.linalg.solve)
    for n, m in [*SIZES, (530, 3), (4, 1), (0, 3), (3, 0)]:
        a, b = system(n, m, n)
        x = solve(a, b)
        assert x.shape == b.shape
        assert x.size == 0 or residual(a, x, b) < 30


def test_strides_and_batches():
    a, b = system(40, 60)
    square, columns = a[:20, 20:].T, b[::2, 1:8:3]
    status, (x,) = run("solve", square, columns, outputs=(columns,), strided=True)
    assert status == 0
    agree(x, np.linalg.solve(square, columns), 1e-11)
    a, b = system(9, 11, 1, (3, 1))
    c = np.concatenate([b, 2j * b], axis=1)
    status, (x,) = run("solve", a, c, outputs=(c,))
    assert status == 0
    agree(x, np.linalg.solve(a, c), 1e-11)


def test_rows_are_exchanged():
    n = 37
    a, b = system(n, 20, 2)
    a = np.tril(a, -1) * 1e-3 + np.eye(n)[np.random.default_rng(3).permutation(n)] * (1 - 2j)
    x = wg.jit(np.linalg.solve)(a, b)
    assert residual(a, x, b) < 8


@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1e150, 1e290])
def test_scales(scale):
    a, b = system(21, 5, 4)
    x = wg.jit(np.linalg.solve)(a * scale, b)
    assert np.allclose(x * scale, np.linalg.solve(a, b), rtol=1e-11, atol=0)
    mixed = a * np.where(np.arange(21) % 2, scale, 1.0)[:, None]
    x = wg.jit(np.linalg.solve)(mixed, b)
    y = np.linalg.solve(mixed, b)
    assert np.abs(x - y).max() <= 1e-9 * np.abs(y).max()


def test_singular_matrices_and_pivots_without_reciprocals():
    a, b = system(20, 6, 5)
    a[:, 7] = 0.0
    with pytest.raises(np.linalg.LinAlgError):
        wg.jit(np.linalg.solve)(a, b)
    small = np.diag(np.full(20, 1e-310 + 0j))  # 1 / 1e-310 is infinite: as NumPy, whatever that is
    with np.errstate(all="ignore"):
        expected = np.linalg.solve(small, small[:, :6])
    assert np.allclose(wg.jit(np.linalg.solve)(small, small[:, :6]), expected, equal_nan=True)


def test_what_is_not_finite():
    a, b = system(20, 6, 6)
    b[3, 2] = np.nan
    x = wg.jit(np.linalg.solve)(a, b)
    assert np.isnan(x[:, 2]).all()
    assert np.isfinite(np.delete(x, 2, axis=1)).all()
    a[4, 4] = np.nan
    assert np.isnan(wg.jit(np.linalg.solve)(a, b)).any()


def test_derivatives():
    a, b = system(19, 18, 7)
    ta, tb = system(19, 18, 8)

    def f(a, b):
        return np.linalg.solve(a @ a, b)

    x, t = wg.jit(lambda *z: wg.jvp(f, z[:2], z[2:]))(a, b, ta, tb)
    step = 1e-6
    near = (f(a + step * ta, b + step * tb) - f(a - step * ta, b - step * tb)) / (2 * step)
    assert np.abs(t - near).max() <= 1e-6 * np.abs(t).max()
    weights = system(19, 18, 9)[1]

    def total(a, b):
        return np.sum((f(a, b) * weights).real)

    expected = np.sum((t * weights).real)
    for gradient in (wg.grad(total, argnums=(0, 1)), wg.jit(wg.grad(total, argnums=(0, 1)))):
        da, db = gradient(a, b)
        found = np.sum((np.conj(da) * ta).real) + np.sum((np.conj(db) * tb).real)
        assert np.isclose(found, expected, rtol=1e-9)
    batch = wg.jit(wg.vmap(f))(np.stack([a, 2 * a]), np.stack([b, b]))
    assert np.allclose(batch[1], x / 4, rtol=1e-10)
