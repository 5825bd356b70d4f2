"""Iterative methods for sparse systems: values of SciPy, derivatives by differences."""

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg as theirs

import wengert as wg
from wengert.errors import ArgumentError, ConvergenceError, ShapeError
from wengert.scipy.sparse import csr_array, linalg
from wengert.testing import check_grads

N = 6
RNG = np.random.default_rng(0)
GENERAL = (sp.random_array((N, N), density=0.4, rng=RNG) + 3.0 * sp.eye_array(N)).tocsr()
DEFINITE = (GENERAL @ GENERAL.T).tocsr()
B = RNG.normal(size=N)
HERMITIAN = ("cg", "minres")
METHODS = (*HERMITIAN, "gmres", "bicgstab", "lgmres", "bicg", "cgs", "gcrotmk", "tfqmr")
EACH = pytest.mark.parametrize("name", METHODS)


def matrix_for(name):
    return DEFINITE if name in HERMITIAN else GENERAL


def with_data(a, data):
    return csr_array((data, a.indices, a.indptr), shape=a.shape)


def solution(name):
    """The solution as a function of elements and right-hand side."""
    a = matrix_for(name)

    def x(data, b):
        made = with_data(a, data)
        if name in HERMITIAN:
            made = (made + made.T) * 0.5
        return getattr(linalg, name)(made, b, rtol=1e-13)[0]

    return x


@pytest.mark.sample(3)
@EACH
def test_values_and_derivatives(name):
    a, x = matrix_for(name), solution(name)
    found = getattr(linalg, name)(with_data(a, wg.tensor(a.data)), B, rtol=1e-12)
    np.testing.assert_allclose(found[0], theirs.spsolve(a.tocsc(), B), rtol=1e-9)
    assert found[1] == 0 and type(found[1]) is int
    check_grads(x, (a.data, B), order=2 if name in ("cg", "gmres") else 1)
    np.testing.assert_allclose(
        wg.jit(wg.grad(lambda d: np.sum(x(d, B) ** 2)))(a.data),
        wg.grad(lambda d: np.sum(x(d, B) ** 2))(a.data),
        rtol=1e-8,
    )


@pytest.mark.parametrize("name", ["cg", "bicgstab"])
def test_batches(name):
    a, x = matrix_for(name), solution(name)
    bs = np.stack([B, 2.0 * B, B[::-1]])
    expected = np.linalg.solve(a.toarray(), bs.T).T
    np.testing.assert_allclose(wg.vmap(x, in_axes=(None, 0))(a.data, bs), expected, rtol=1e-9)


def test_complex_systems():
    a = GENERAL + 1j * GENERAL.T
    data = a.tocsr().data

    def x(data, b):
        return linalg.gmres(with_data(a.tocsr(), data), b, rtol=1e-13)[0]

    check_grads(x, (data, B + 1j * B[::-1]), order=1)
    np.testing.assert_allclose(x(data, wg.tensor(B)), np.linalg.solve(a.toarray(), B), rtol=1e-9)


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", ["cg", "gmres", "bicgstab", "minres"])
def test_linear_operators(name):
    """Functions that capture tensors; nothing else is one."""

    def x(k, b):
        operator = linalg.LinearOperator((N, N), lambda v: matrix_for(name) @ v * k)
        return getattr(linalg, name)(operator, b, rtol=1e-13)[0]

    check_grads(x, (1.7, B), order=2 if name == "cg" else 1)
    found = wg.jit(wg.grad(lambda k: x(k, B)[0]))(2.0)
    np.testing.assert_allclose(found, -x(wg.tensor(2.0), B)[0] / 2.0, rtol=1e-9)


def test_operators_are_composed():
    a, b = GENERAL.toarray(), DEFINITE.toarray()
    first, second = linalg.aslinearoperator(GENERAL), linalg.aslinearoperator(b)
    x = wg.tensor(B)
    for operator, expected in (
        (first @ second, a @ b),
        (first + second, a + b),
        (2.0 * first - second, 2.0 * a - b),
        (first.T, a.T),
        (first.H, a.T),
        (-first, -a),
        (linalg.LinearOperator((N, N), lambda v: a @ v).H, a.T),
    ):
        np.testing.assert_allclose(operator @ x, expected @ B)
        np.testing.assert_allclose(operator.rmatvec(x), expected.T @ B)
        np.testing.assert_allclose(operator @ np.eye(N), expected)
    z = linalg.aslinearoperator(a + 1j * b)
    np.testing.assert_allclose(z.H @ B, (a + 1j * b).conj().T @ B)
    np.testing.assert_allclose(z.T @ B, (a + 1j * b).T @ B)
    check_grads(lambda k: linalg.aslinearoperator(k * a) @ B, (1.5,), order=1)


@pytest.mark.parametrize("kind", ["scipy", "array", "tensor"])
@pytest.mark.parametrize("name", ["cg", "gmres"])
def test_preconditioners(name, kind):
    """Operators of SciPy, whose adjoint may not exist; arrays; arrays of tensors."""
    a = matrix_for(name)
    lu = theirs.splu(a.tocsc())
    inverse = np.linalg.inv(a.toarray())
    if kind == "scipy":
        m = theirs.LinearOperator((N, N), lu.solve)
    else:
        m = sp.csr_array(inverse) if kind == "array" else wg.tensor(inverse)
    counted = []
    how = {"callback_type": "pr_norm"} if name == "gmres" else {}

    def x(data):
        made = with_data(a, data)
        return getattr(linalg, name)(made, B, rtol=1e-12, M=m, callback=counted.append, **how)[0]

    np.testing.assert_allclose(x(wg.tensor(a.data)), inverse @ B, rtol=1e-9)
    assert 0 < len(counted) <= 3
    rows = np.repeat(np.arange(N), np.diff(a.indptr))
    gradient = wg.grad(lambda d: np.sum(x(d)))(a.data)
    expected = -(inverse.T @ np.ones(N))[rows] * (inverse @ B)[a.indices]
    np.testing.assert_allclose(gradient, expected, rtol=1e-7, atol=1e-10)


def test_the_derivative_of_the_guess_is_zero():
    x = lambda x0: linalg.cg(DEFINITE, B, x0, rtol=1e-12)[0]  # noqa: E731
    np.testing.assert_array_equal(wg.jacobian(x)(np.ones(N)), 0.0)


def test_what_did_not_converge_has_no_derivative():
    def x(data):
        return linalg.gmres(with_data(GENERAL, data), B, rtol=1e-14, maxiter=1, restart=1)

    assert x(wg.tensor(GENERAL.data))[1] > 0
    with pytest.raises(ConvergenceError, match=r"gmres did not converge \(info = 1\)"):
        wg.grad(lambda d: np.sum(x(d)[0]))(GENERAL.data)
    with pytest.raises(ConvergenceError, match="gmres did not converge"):
        wg.jit(wg.grad(lambda d: np.sum(x(d)[0])))(GENERAL.data)


def test_wrong_operators():
    operator = theirs.aslinearoperator(GENERAL)
    with pytest.raises(ArgumentError, match="LinearOperator of SciPy"):
        linalg.gmres(operator, wg.tensor(B))
    short = linalg.LinearOperator((N, N), lambda v: v[1:])
    with pytest.raises(ShapeError, match="must return a vector of length 6"):
        linalg.gmres(short, B)
    with pytest.raises(ShapeError, match="b has shape"):
        linalg.gmres(linalg.aslinearoperator(GENERAL), B[1:])


# ---- least squares -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["lsqr", "lsmr"])
@pytest.mark.parametrize("dtype", [float, complex])
@pytest.mark.parametrize("shape", [(6, 3), (3, 6), (4, 4)])
@pytest.mark.sample(3)  # each shape
def test_least_squares(shape, dtype, name):
    """Pseudoinverses of tall, wide and square matrices; with a multiple of the identity."""
    rng = np.random.default_rng(1)
    a = sp.random_array(shape, density=0.5, rng=rng).tocsr().astype(dtype)
    a = (a * (2.0 - (1j if dtype is complex else 0.0)) + 3.0 * sp.eye_array(*shape)).tocsr()
    b = rng.normal(size=shape[0]).astype(dtype)
    solve = getattr(linalg, name)

    def x(data, b, damp=0.0):
        return solve(with_data(a, data), b, damp, atol=1e-14, btol=1e-14)[0]

    data = wg.tensor(a.data)
    np.testing.assert_allclose(x(data, b), np.linalg.pinv(a.toarray()) @ b, rtol=1e-8)
    plain = theirs.lsqr(a, b, 0.7, 1e-14, 1e-14)
    np.testing.assert_allclose(x(data, b, 0.7), plain[0], rtol=1e-8)
    check_grads(x, (a.data, b), order=2 if name == "lsqr" and dtype is float else 1)
    if dtype is float:
        check_grads(wg.jit(x), (a.data, b, 0.7), order=1)


def test_further_results_of_least_squares():
    rng = np.random.default_rng(2)
    a, b = sp.csr_array(rng.normal(size=(5, 2))), rng.normal(size=5)
    for damp in (0.0, 0.3):
        found = linalg.lsqr(with_data(a, wg.tensor(a.data)), b, damp, 1e-13, 1e-13)
        expected = theirs.lsqr(a, b, damp, 1e-13, 1e-13)
        for k in (0, 3, 4, 8):
            np.testing.assert_allclose(found[k], expected[k], rtol=1e-8)
        found = linalg.lsmr(with_data(a, wg.tensor(a.data)), b, damp, 1e-13, 1e-13)
        np.testing.assert_allclose(found[7], expected[8], rtol=1e-8)
    with pytest.raises(ArgumentError, match="x0"):
        linalg.lsqr(a, wg.tensor(b), x0=np.ones(2))
    with pytest.raises(ArgumentError, match="calc_var"):
        linalg.lsqr(a, wg.tensor(b), calc_var=True)
    with pytest.raises(ConvergenceError, match=r"lsqr did not converge \(istop = 7\)"):
        wg.grad(lambda b: linalg.lsqr(a, b, atol=1e-15, btol=1e-15, iter_lim=1)[0][0])(b)
