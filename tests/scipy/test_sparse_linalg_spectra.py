"""Eigenvalues, singular values, exponentials and norms of sparse matrices."""

import numpy as np
import pytest
import scipy.linalg as dense
import scipy.sparse as sp
import scipy.sparse.linalg as theirs

import wengert as wg
from wengert.errors import ArgumentError, ConvergenceError, MatrixError, ShapeError
from wengert.scipy.sparse import csr_array, diags_array, linalg
from wengert.testing import check_grads

N = 8
RNG = np.random.default_rng(0)
GENERAL = (
    sp.random_array((N, N), density=0.3, rng=RNG) + sp.diags_array(np.arange(N) * 1.0)
).tocsr()
SYMMETRIC = (GENERAL + GENERAL.T).tocsr()
WEIGHTS = RNG.normal(size=(N, 2))


def with_data(a, data):
    return csr_array((data, a.indices, a.indptr), shape=a.shape)


def symmetric(data):
    a = with_data(SYMMETRIC, data)
    return (a + a.T) * 0.5


@pytest.mark.parametrize("how", [{"which": "LA"}, {"which": "SA"}, {"sigma": 4.3}], ids=str)
@pytest.mark.sample(1)
def test_eigsh(how):
    def values(data):
        return linalg.eigsh(symmetric(data), 2, return_eigenvectors=False, **how)

    def of_vectors(data):  # their sign does not matter
        return np.sum(WEIGHTS * linalg.eigsh(symmetric(data), 2, **how)[1] ** 2)

    expected = theirs.eigsh(SYMMETRIC, 2, return_eigenvectors=False, **how)
    np.testing.assert_allclose(values(wg.tensor(SYMMETRIC.data)), np.sort(expected), rtol=1e-10)
    check_grads(values, (SYMMETRIC.data,), order=1)
    check_grads(of_vectors, (SYMMETRIC.data,), order=1)
    check_grads(wg.jit(values), (SYMMETRIC.data,), order=1)
    check_grads(wg.jit(of_vectors), (SYMMETRIC.data,), order=1)


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "jit"])
def test_second_derivatives_are_those_of_dense_matrices(compiled):
    def loss(w, v):
        return np.sum(w**3) + np.sum(WEIGHTS * v**2)

    def dense(data):
        w, v = np.linalg.eigh(symmetric(data).toarray())
        return loss(w[-2:], v[:, -2:])

    def sparse(data):
        return loss(*linalg.eigsh(symmetric(data), 2, which="LA"))

    direction = np.cos(np.arange(SYMMETRIC.nnz))

    def second(f):
        return lambda d: wg.jvp(wg.grad(f), (d,), (direction,))[1]

    found = second(sparse)
    found = wg.jit(found) if compiled else found
    expected = second(dense)(SYMMETRIC.data)
    np.testing.assert_allclose(found(SYMMETRIC.data), expected, rtol=1e-7, atol=1e-8)


def test_eigsh_of_operators_and_dense_arrays():
    def of_operator(k, d):
        operator = linalg.LinearOperator((N, N), lambda x: k * (SYMMETRIC @ x) + d * x)
        w, v = linalg.eigsh(operator, 2, which="LA")
        return w, np.sum(v**2 * WEIGHTS)

    check_grads(of_operator, (1.3, np.arange(N) * 0.1), order=1)
    root = RNG.normal(size=(5, 5))
    nearest = lambda k: linalg.eigsh(  # noqa: E731
        linalg.LinearOperator((N, N), lambda x: k * (SYMMETRIC @ x)), 1, sigma=4.3, tol=1e-10
    )[0]
    expected = theirs.eigsh(SYMMETRIC, 1, sigma=4.3)[0]
    np.testing.assert_allclose(nearest(wg.tensor(1.0)), expected, rtol=1e-8)
    np.testing.assert_allclose(wg.jacobian(nearest)(1.0), expected, rtol=1e-6)
    check_grads(lambda r: linalg.eigsh(r @ r.T, 2, which="LA")[0], (root,), order=1)


def test_eigs():
    def pairs(data):
        w, v = linalg.eigs(with_data(GENERAL, data), 2)
        return w.real, w.imag, np.sum(np.abs(v) ** 2 * WEIGHTS)

    found = pairs(wg.tensor(GENERAL.data))[0]
    expected = theirs.eigs(GENERAL, 2, return_eigenvectors=False).real
    np.testing.assert_allclose(np.sort(found), np.sort(expected), rtol=1e-10)
    check_grads(pairs, (GENERAL.data,), order=1)
    check_grads(wg.jit(pairs), (GENERAL.data,), order=1)


def test_complex_pairs_of_eigenvalues():
    turn = np.kron(np.diag([1.0, 2.0, 3.0]), np.array([[0.3, -1.0], [1.2, 0.1]]))
    a = sp.csr_array(turn)

    def sizes(data):
        w, v = linalg.eigs(with_data(a, data), 2)
        return np.sum(w.real), np.sum(np.abs(w.imag)), np.sum(np.abs(v[4]) ** 2)

    check_grads(sizes, (a.data,), order=1)


@pytest.mark.parametrize("shape", [(6, 4), (4, 6)])
def test_svds(shape):
    a = np.random.default_rng(3).normal(size=shape)

    def parts(a):
        u, s, vh = linalg.svds(a, 2)
        return s, (u * s) @ vh

    expected = theirs.svds(a, 2)
    found = parts(wg.tensor(a))
    np.testing.assert_allclose(found[0], expected[1], rtol=1e-9)
    np.testing.assert_allclose(found[1], (expected[0] * expected[1]) @ expected[2], rtol=1e-8)
    check_grads(parts, (a,), order=1)
    check_grads(lambda a: linalg.svds(a, 2, return_singular_vectors=False), (a,), order=1)


def test_equal_eigenvalues_have_no_derivative():
    for compiled in (False, True):
        f = lambda s: linalg.eigsh(s * np.eye(4), 2, return_eigenvectors=False)[0]  # noqa: E731
        gradient = wg.jit(wg.grad(f)) if compiled else wg.grad(f)
        with pytest.raises(MatrixError, match="eigenvalues are equal"):
            gradient(2.0)


def test_options_that_are_refused():
    a = wg.tensor(SYMMETRIC.toarray())
    with pytest.raises(ArgumentError, match="with Minv"):
        linalg.eigsh(a, 2, Minv=np.eye(N))
    with pytest.raises(ArgumentError, match="with OPinv"):
        linalg.eigs(a, 2, M=np.eye(N), OPinv=np.eye(N))
    with pytest.raises(ShapeError, match="must be equal"):
        linalg.eigsh(a, 2, M=np.eye(N + 1))
    with pytest.raises(ArgumentError, match="k=8"):
        linalg.eigsh(a, 8)
    with pytest.raises(ArgumentError, match="'propack'"):
        linalg.svds(a, 2, solver="propack")
    with pytest.raises(ArgumentError, match="k=7"):
        linalg.eigs(linalg.aslinearoperator(a), 7)
    with pytest.raises(MatrixError, match="must be square"):
        linalg.eigsh(a[:4], 2)


# ---- exponentials --------------------------------------------------------------------------------


@pytest.mark.sample(1)
@pytest.mark.parametrize("dtype", [float, complex])
def test_expm_multiply(dtype):
    a = GENERAL * (1.0 + (0.5j if dtype is complex else 0.0)) - 3.0 * sp.eye_array(N)
    a, b = a.tocsr(), np.random.default_rng(4).normal(size=(N, 2))

    def product(data, b):
        return linalg.expm_multiply(with_data(a, data), b)

    for scale in (0.01, 1.0, 5.0):
        found = product(wg.tensor(scale * a.data), b)
        np.testing.assert_allclose(found, theirs.expm_multiply(scale * a, b), rtol=1e-9, atol=1e-12)
    check_grads(product, (a.data, b[:, 0]), order=1)
    check_grads(wg.jit(product), (a.data, b), order=1)
    if dtype is float:
        small = sp.csr_array(GENERAL[:3, :3])
        check_grads(
            lambda d: linalg.expm_multiply(with_data(small, d), b[:3, 0]), (small.data,), order=2
        )


def test_expm_multiply_at_times():
    b = np.random.default_rng(5).normal(size=N)

    def trajectory(data, b, stop):
        return linalg.expm_multiply(with_data(GENERAL, data), b, 0.1, stop, 4)

    data = -GENERAL.data
    found = trajectory(wg.tensor(data), b, 0.7)
    np.testing.assert_allclose(found, theirs.expm_multiply(-GENERAL, b, 0.1, 0.7, 4), rtol=1e-10)
    check_grads(trajectory, (data, b, 0.7), order=1)
    found = linalg.expm_multiply(with_data(GENERAL, wg.tensor(data)), b, 0.0, 1.0, 3, False)
    np.testing.assert_allclose(found[1:], theirs.expm_multiply(-GENERAL, b, 0.0, 1.0, 3, False)[1:])


def test_expm_multiply_of_operators():
    b = np.random.default_rng(6).normal(size=N)

    def product(k):
        operator = linalg.LinearOperator((N, N), lambda x: -k * (GENERAL @ x))
        return linalg.expm_multiply(operator, b)

    np.testing.assert_allclose(product(0.4), theirs.expm_multiply(-0.4 * GENERAL, b), rtol=1e-10)
    check_grads(product, (0.4,), order=1)


def test_expm():
    a = (GENERAL * 0.2).tocsr()
    expected = theirs.expm(a.tocsc()).toarray()
    dense = lambda data: linalg.expm(with_data(a, data).tocsc()).toarray()  # noqa: E731
    np.testing.assert_allclose(dense(wg.tensor(a.data)), expected, rtol=1e-10, atol=1e-14)
    np.testing.assert_allclose(
        wg.jacobian(dense)(a.data) @ a.data, a.toarray() @ expected, rtol=1e-9, atol=1e-13
    )
    with pytest.raises(ArgumentError, match="Use expm_multiply"):
        linalg.expm(diags_array(wg.tensor(np.ones(3000))))


def test_wrong_operands_of_exponentials():
    with pytest.raises(ShapeError, match="must have 8 rows"):
        linalg.expm_multiply(with_data(GENERAL, wg.tensor(GENERAL.data)), np.ones(3))
    with pytest.raises(ArgumentError, match="given together"):
        linalg.expm_multiply(GENERAL, wg.tensor(np.ones(N)), start=1.0)
    with pytest.raises(MatrixError, match="must be square"):
        linalg.expm_multiply(GENERAL[:4], wg.tensor(np.ones(N)))


# ---- norms ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("axis", [None, 0, 1])
@pytest.mark.parametrize("ord", [None, "fro", 1, -1, 2, np.inf, -np.inf])
@pytest.mark.sample(7)  # each norm
def test_norms(ord, axis):
    def norm(data):
        return linalg.norm(with_data(GENERAL, data), ord, axis)

    data = GENERAL.data - 0.3
    if axis is not None and ord in ("fro", -1, -np.inf):
        with pytest.raises(ArgumentError, match="norm of a sparse array"):
            norm(wg.tensor(data))
        return
    expected = theirs.norm(sp.csr_array((data, GENERAL.indices, GENERAL.indptr)), ord, axis)
    np.testing.assert_allclose(norm(wg.tensor(data)), expected, rtol=1e-10)
    check_grads(norm, (data,), order=1)


def test_norms_of_empty_rows_and_estimates():
    a = sp.csr_array(np.array([[0.0, 3.0], [0.0, 4.0]]))
    gradient = wg.grad(lambda d: np.sum(linalg.norm(with_data(a, d), axis=0)))(a.data)
    np.testing.assert_allclose(gradient, [0.6, 0.8])
    assert linalg.onenormest(a) == 7.0
    with pytest.raises(ArgumentError, match="no derivative"):
        linalg.onenormest(with_data(a, wg.tensor(a.data)))
    assert linalg.spilu is theirs.spilu


def _beam(p):
    """Stiffness and mass of a chain of elements."""
    ones = np.ones(11)
    stiffness = [2.0 + p[0] * np.arange(1.0, 13.0), -p[1] * ones, -p[1] * ones]
    mass = [2.0 + p[2] * np.linspace(0.0, 1.0, 12), 0.3 * ones, 0.3 * ones]
    return [diags_array(d, offsets=[0, 1, -1]).tocsr() for d in (stiffness, mass)]


@pytest.mark.parametrize("options", [{"which": "SA"}, {"sigma": 0.0}, {"sigma": 0.8}])
@pytest.mark.sample(1)
def test_generalized_eigenvalues(options):
    """A v = w M v: values as by LAPACK, derivatives of vectors too."""
    p = np.array([0.3, 1.0, 0.5])

    def pairs(p):
        w, v = linalg.eigsh(_beam(p)[0], 3, M=_beam(p)[1], **options)
        return w, v * np.sign(v[0])

    def f(p):
        w, v = pairs(p)
        return w @ np.arange(1.0, 4.0) + v[:, 1] @ np.cos(np.arange(12.0))

    w, v = wg.vjp(pairs, p)[0]
    a, m = (x.toarray() for x in _beam(p))
    want = dense.eigh(a, m, eigvals_only=True)
    np.testing.assert_allclose(np.min(np.abs(w[:, None] - want), axis=1), 0.0, atol=1e-12)
    np.testing.assert_allclose(v.T @ m @ v, np.eye(3), atol=1e-12)
    np.testing.assert_allclose(a @ v, m @ v * w, atol=1e-12)
    check_grads(f, (p,), order=2)
    np.testing.assert_allclose(wg.jit(wg.grad(f))(p), wg.grad(f)(p), rtol=1e-9)


def test_generalized_eigenvalues_of_dense_and_equal():
    """Dense matrices; a multiple eigenvalue has no derivative."""
    a, m = (x.toarray() for x in _beam(np.array([0.3, 1.0, 0.5])))
    lowest = lambda m: linalg.eigsh(a, 1, M=m, sigma=0.0, return_eigenvectors=False)[0]  # noqa: E731
    w, v = dense.eigh(a, m)
    np.testing.assert_allclose(wg.grad(lowest)(m), -w[0] * np.outer(v[:, 0], v[:, 0]), atol=1e-12)
    with pytest.raises(MatrixError):
        wg.grad(lambda s: np.sum(linalg.eigsh(s * np.eye(6), 2, M=2.0 * np.eye(6))[0]))(2.0)
    double = np.diag([1.0, 2.0, 0.5, 0.2, 3.0, 3.0])  # of which one is asked for
    with pytest.raises(MatrixError, match="singular"):
        wg.grad(lambda a: linalg.eigsh(a, 1, M=np.eye(6))[0][0])(double)


def _general(p, dtype):
    """A matrix without symmetry, and a positive definite one."""
    rng = np.random.default_rng(3)
    a, b = rng.normal(size=(2, 9, 9)) + np.diag(np.arange(9.0))
    m = 4.0 * np.eye(9) + 0.1 * (b + b.T)
    if dtype is complex:
        a, m = a + 0.3j * b, m + 0.1j * (b - b.T)
    return a * (1.0 + p[0] * np.linspace(0.0, 1.0, 9)[:, None]), m + p[1] * np.diag(np.arange(9.0))


def _operator(a):
    return linalg.LinearOperator(a.shape, matvec=lambda x: a @ x, dtype=a.dtype)


FORMS = {
    "dense": lambda a, m: (a, m),
    "sparse": lambda a, m: (csr_array(a), csr_array(m)),
    "operator and matrix": lambda a, m: (_operator(a), m),
    "operators": lambda a, m: (_operator(a), _operator(m)),
    "one operator": lambda a, m: (_operator(a), None),
}
P = np.array([0.3, 0.2])


@pytest.mark.parametrize("dtype", [float, complex])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.sample(2)
def test_generalized_eigs(form, dtype):
    """Values and vectors as by LAPACK; derivatives of both to second order."""

    def pairs(p):
        a, m = FORMS[form](*_general(p, dtype))
        return linalg.eigs(a, 2, m)

    def f(p):
        w, v = pairs(p)
        return np.sum(w.real + w.imag**2) + np.abs(v[:, 0]) ** 2 @ np.cos(np.arange(9.0))

    a, m = _general(P, dtype)
    m = np.eye(9) if form == "one operator" else m
    w, v = wg.vjp(pairs, P)[0]
    want = dense.eigvals(a, m)
    want = want[np.argsort(-np.abs(want))][:2]
    np.testing.assert_allclose(np.sort(np.abs(w)), np.sort(np.abs(want)), rtol=1e-9)
    np.testing.assert_allclose(a @ v, m @ v * w, atol=1e-9)
    np.testing.assert_allclose(np.sum(np.conj(v) * (m @ v), axis=0), 1.0, rtol=1e-12)
    check_grads(f, (P,), order=2 if form == "sparse" else 1)


def test_generalized_eigs_compiled():
    def f(p):
        a, m = _general(p, float)
        w, v = linalg.eigs(a, 1, m, sigma=0.4)
        return np.sum(w.real) + np.abs(v[:, 0]) ** 2 @ np.cos(np.arange(9.0))

    check_grads(f, (P,), order=1)
    np.testing.assert_allclose(wg.jit(wg.grad(f))(P), wg.grad(f)(P), rtol=1e-9)


@pytest.mark.sample(1)
@pytest.mark.parametrize("form", ["sparse", "operators"])
def test_generalized_eigsh_of_complex_matrices_and_operators(form):
    def f(p):
        a, m = _general(p, complex)
        a, m = FORMS[form](a + np.conj(a.T), m)
        w, v = linalg.eigsh(a, 2, m)
        return w @ np.array([1.0, 2.0]) + np.abs(v[:, 0]) ** 2 @ np.cos(np.arange(9.0))

    a, m = _general(P, complex)
    w = linalg.eigsh(wg.tensor(a + np.conj(a.T)), 2, M=m, return_eigenvectors=False)
    want = dense.eigh(a + np.conj(a.T), m, eigvals_only=True)
    assert w.dtype == float
    np.testing.assert_allclose(w, np.sort(want[np.argsort(-np.abs(want))][:2]), rtol=1e-9)
    check_grads(f, (P,), order=1)


def test_an_eigenvalue_of_an_operator_that_is_not_simple():
    """The system for the cotangent of a value has solutions; that for a random vector has none."""
    a = np.diag([5.0, 5.0, 3.0, 2.0, 1.0, 0.5])
    a[0, 3] = a[1, 4] = 1.0

    def largest(a, form):
        a, m = FORMS[form](a, np.eye(6))
        return linalg.eigs(a, 1, m, return_eigenvectors=False)[0].real

    for form in ("dense", "operators"):
        with pytest.raises((MatrixError, ConvergenceError), match="ingular"):
            wg.grad(largest)(a, form)


def test_dok_and_lil_matrices():
    """SciPy's formats for construction are matrices of linear systems like the others."""
    a = np.array([[4.0, 1.0], [0.0, 3.0]])
    want = np.linalg.inv(a).T @ np.ones(2)
    for make in (sp.dok_array, sp.lil_array):
        matrix = make(a)
        for solve in (linalg.spsolve, lambda a, b: linalg.gmres(a, b, rtol=1e-12)[0]):
            gradient = wg.grad(lambda b, s=solve, m=matrix: np.sum(s(m, b)))
            np.testing.assert_allclose(gradient(np.ones(2)), want, rtol=1e-9)
