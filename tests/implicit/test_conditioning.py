"""Derivatives at singular and nearly singular matrices: errors, and no wrong numbers."""

import numpy as np
import pytest

import wengert as wg
from wengert._engine.ops.linalg.condition import equilibrated, reciprocal_condition
from wengert._engine.ops.linalg.packed_factors import lu_packed
from wengert.errors import ConvergenceError, MatrixError, SingularError


def solution(a, b):
    return wg.custom_linear_solve(lambda x: a @ x, b)


def root(a, b):
    """The same as a root, found by a solver that is not affected."""
    return wg.custom_root(lambda x: a @ x - b, b, lambda f, x: np.ones_like(x))


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "jit"])
@pytest.mark.parametrize("n", [2, 3, 4, 6, 14])
@pytest.mark.parametrize("form", [solution, root])
@pytest.mark.sample(5)  # each size
def test_nearly_singular_matrices_raise(form, n, compiled):
    """A matrix of condition 1e15 has a value, and its derivative is an error in both modes."""
    q = np.linalg.qr(np.random.default_rng(n).normal(size=(n, n)))[0]
    bad = q @ np.diag([*np.linspace(1.0, 2.0, n - 1), 1e-15]) @ q[::-1].T
    good = q @ np.diag([*np.linspace(1.0, 2.0, n - 1), 1e-10]) @ q[::-1].T
    b = bad @ np.ones(n)
    wrap = wg.jit if compiled else lambda f: f
    assert np.all(np.isfinite(wrap(form)(bad, b)))
    derivatives = [
        wg.grad(lambda a, b: np.sum(form(a, b)), (0, 1)),
        lambda a, b: wg.jvp(form, (a, b), (a, b))[1],
        lambda a, b: wg.hvp(lambda b: np.sum(form(a, b) ** 2), (b,), (b,)),
    ]
    for made in derivatives:
        with pytest.raises(SingularError, match=r"condition number is .*(infinite|1[456])"):
            wrap(made)(bad, b)
        wrap(made)(good, b)  # has five digits


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "jit"])
@pytest.mark.parametrize("n", [3, 4, 6])
def test_units_do_not_matter(n, compiled):
    """Equations and unknowns in very different units have derivatives, although cond is 1e60."""
    rng = np.random.default_rng(5)
    a = rng.normal(size=(n, n)) + 3.0 * np.eye(n)
    rows, columns = 10.0 ** np.linspace(-20, 20, n)[::-1], 10.0 ** rng.uniform(-10, 10, n)
    if n <= 4:  # one of both
        columns = np.ones(n)
    scaled, b = rows[:, None] * a * columns, rng.normal(size=n)
    assert np.linalg.cond(scaled) > 1e20

    def gradient(a, b):
        return wg.grad(lambda b: np.sum(columns * solution(a, rows * b)))(b)

    result = (wg.jit(gradient) if compiled else gradient)(scaled, b)
    np.testing.assert_allclose(result, np.linalg.solve(a.T, np.ones(n)), rtol=1e-9)


def test_singular_matrices():
    """Exactly singular matrices raise the same error, also in loops and batches."""
    a = np.outer(np.arange(1.0, 6.0), np.ones(5))
    b = np.ones(5)
    for f in (root, lambda a, b: wg.fori_loop(0, 2, lambda _, x: root(a, x), b)):
        g = wg.grad(lambda b, f=f: np.sum(f(a, b)))
        for derivative in (g, wg.jit(g)):
            with pytest.raises(SingularError, match="ingular"):
                derivative(b)
    many = np.stack([a + np.eye(5), a])
    g = wg.vmap(wg.grad(lambda a: np.sum(root(a, b))))
    for derivative in (g, wg.jit(g)):
        with pytest.raises(SingularError, match="ingular"):
            derivative(many)
        assert np.all(np.isfinite(derivative(many + np.eye(5))))
    assert issubclass(SingularError, MatrixError)
    with pytest.raises(SingularError, match="ingular"):
        np.linalg.solve(wg.tensor(a), b)


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "jit"])
@pytest.mark.parametrize("n", [3, 6])
def test_not_a_number(n, compiled):
    """NaN in the matrix gives NaN, as in NumPy, and not an error about singular matrices."""
    a = np.eye(n)
    a[0, 1] = np.nan

    def gradient(a, b):
        return wg.grad(lambda b: np.sum(root(a, b)))(b)

    assert np.isnan((wg.jit(gradient) if compiled else gradient)(a, np.ones(n))).any()


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
@pytest.mark.parametrize("n", [1, 7, 40])
def test_the_estimate(n, dtype):
    """Of well-conditioned matrices, by one solution: about the condition number."""
    rng = np.random.default_rng(1)
    a = rng.normal(size=(3, n, n)).astype(dtype)
    if a.dtype.kind == "c":
        a = a + np.dtype(dtype).type(1j) * a[::-1]
    got = reciprocal_condition(a, lu_packed.run(a)[0])
    want = 1.0 / np.array([np.linalg.cond(x, np.inf) for x in a])
    assert np.all(got >= want * 0.6) and np.all(got <= 4.0 * np.sqrt(n) * want)
    assert got.dtype == np.finfo(dtype).dtype
    compiled = wg.jit(lambda a, p: reciprocal_condition(a, p))
    np.testing.assert_allclose(compiled(a, lu_packed.run(a)[0]), got, rtol=1e-3)


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@pytest.mark.parametrize("n", [5, 30])
def test_the_estimate_of_large_condition_numbers(n, dtype):
    """By LAPACK's method: at most the condition number, and close to it; compiled the same."""
    rng = np.random.default_rng(n)
    q, other = (np.linalg.qr(rng.normal(size=(n, n)).astype(dtype))[0] for _ in range(2))
    for k in (10, 11, 12):
        a = q @ np.diag([*np.linspace(1.0, 2.0, n - 1), 10.0**-k]) @ other
        got = reciprocal_condition(a, lu_packed.run(a)[0])
        want = 1.0 / np.linalg.cond(a, np.inf)
        assert want * 0.99 <= got <= 3.0 * want
        compiled = wg.jit(lambda a, p: reciprocal_condition(a, p))
        np.testing.assert_allclose(compiled(a, lu_packed.run(a)[0]), got, rtol=1e-2)


def test_equilibrated():
    """The largest element of each row and column is between 1/4 and 2; zeros stay."""
    a = np.array([[1e-30, 0.0, 1e200], [3.0, 0.0, -7e-200], [0.0, 0.0, 5e100]])
    scaled = equilibrated(a)
    np.testing.assert_array_equal(scaled == 0.0, a == 0.0)
    for axis in (0, 1):
        largest = np.max(np.abs(scaled), axis=axis)
        assert np.all((largest == 0.0) | ((largest > 0.2) & (largest <= 2.0)))


@pytest.mark.sample(2)
@pytest.mark.parametrize("method", ["cg", "gmres", "bicgstab"])
def test_products_with_a_singular_matrix(method):
    """A Laplace operator without boundary values: what depends on the constant is an error."""
    a = np.diag([1.0, *[2.0] * 10, 1.0]) - np.diag(np.ones(11), 1) - np.diag(np.ones(11), -1)
    b = np.sin(np.arange(12.0))
    b -= np.mean(b)
    weights = np.cos(np.arange(12.0))

    def total(scale, weights):
        x = wg.custom_linear_solve(lambda x: scale * (a @ x), b, solve=method)
        return np.sum(weights * x)

    centered = weights - np.mean(weights)
    expected = -np.sum(centered * (np.linalg.pinv(a) @ b))
    for gradient in (wg.grad(total), wg.jit(wg.grad(total))):
        np.testing.assert_allclose(gradient(1.0, centered), expected, rtol=1e-8)
        with pytest.raises(ConvergenceError, match="may be singular"):
            gradient(1.0, weights)
