"""Sparse linear systems and determinants: values of SciPy, derivatives of dense computations."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg as theirs

import wengert as wg
from wengert.errors import ArgumentError, MatrixError, ShapeError
from wengert.scipy.sparse import csr_array, linalg
from wengert.scipy.sparse.linalg import factors
from wengert.scipy.sparse.linalg.determinants import sparse_slogdet
from wengert.scipy.sparse.linalg.factors import factor_of
from wengert.scipy.sparse.linalg.solve_operation import sparse_solve
from wengert.testing import check_grads

MODES = pytest.mark.parametrize("compiled", [False, True], ids=["eager", "jit"])


def mode(compiled, f):
    return wg.jit(f) if compiled else f


def with_data(a, data):
    return csr_array((data, a.indices, a.indptr), shape=a.shape).tocsc()


def random_matrix(n, density=0.15, dtype=float, seed=0, index=np.int32):
    """A regular matrix without symmetry, each row of which has a large element somewhere."""
    rng = np.random.default_rng(seed)
    a = sp.random_array((n, n), density=density, rng=rng).tocsr().astype(dtype)
    a.data = rng.normal(size=a.nnz).astype(dtype)
    if np.dtype(dtype).kind == "c":
        a.data = (a.data + 1j * rng.normal(size=a.nnz)).astype(dtype)
    order = rng.permutation(n)
    big = sp.csr_array((np.full(n, 4.0, dtype), (np.arange(n), order)), shape=(n, n))
    a = (a + big).tocsr()
    return sp.csr_array((a.data, a.indices.astype(index), a.indptr.astype(index)), shape=a.shape)


def laplacian(m, shift=0.1):
    """The five-point Laplacian of a square grid, plus a multiple of the identity."""
    t = sp.diags_array([[-1.0] * (m - 1), [2.0] * m, [-1.0] * (m - 1)], offsets=[-1, 0, 1])
    i = sp.eye_array(m)
    return (sp.kron(t, i) + sp.kron(i, t) + shift * sp.eye_array(m * m)).tocsr()


# ---- solutions -----------------------------------------------------------------------------------


@MODES
@pytest.mark.parametrize("dtype", ["f", "d", "F", "D"])
@pytest.mark.parametrize("columns", [None, 1, 3])
def test_spsolve_has_the_values_of_scipy(dtype, columns, compiled):
    a = random_matrix(12, dtype=np.dtype(dtype))
    b = np.random.default_rng(1).normal(size=12 if columns is None else (12, columns))
    b = b.astype(dtype)
    found = mode(compiled, lambda data: linalg.spsolve(with_data(a, data), b))(wg.tensor(a.data))
    expected = theirs.spsolve(a.tocsc(), b)
    assert found.shape == expected.shape and found.dtype == expected.dtype
    tolerance = 1e-4 if dtype in "fF" else 1e-11
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


@MODES
@pytest.mark.parametrize("dtype", [float, complex])
@pytest.mark.sample(2)  # each dtype
def test_derivatives_of_solutions(dtype, compiled):
    """By matrix and right-hand side, both modes, to order two."""
    a = random_matrix(5, 0.4, dtype)
    b = np.random.default_rng(2).normal(size=(5, 2)).astype(dtype)
    weights = np.random.default_rng(3).normal(size=(5, 2))

    def loss(data, b):
        return np.sum(weights * np.abs(linalg.spsolve(with_data(a, data), b)) ** 2)

    check_grads(mode(compiled, loss), (a.data, b), order=2)


def test_gradients_are_those_of_dense_matrices():
    a = random_matrix(20)
    b = np.random.default_rng(4).normal(size=20)
    rows = np.repeat(np.arange(20), np.diff(a.indptr))
    expected = wg.grad(lambda m: np.sum(np.linalg.solve(m, b) ** 3))(a.toarray())
    found = wg.grad(lambda d: np.sum(linalg.spsolve(with_data(a, d), b) ** 3))(a.data)
    np.testing.assert_allclose(found, expected[rows, a.indices], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("trans", ["N", "T", "H"])
@pytest.mark.parametrize("dtype", [float, complex])
@pytest.mark.sample(3)  # each form
def test_factors_solve_with_the_transpose_and_the_adjoint(trans, dtype):
    a = random_matrix(6, 0.4, dtype)
    b = np.random.default_rng(5).normal(size=6).astype(dtype)
    expected = theirs.splu(a.tocsc()).solve(b, trans)
    found = linalg.splu(with_data(a, wg.tensor(a.data))).solve(b, trans)
    np.testing.assert_allclose(found, expected, rtol=1e-11)

    def loss(data, b):
        x = linalg.splu(with_data(a, data)).solve(b, trans)
        return np.sum(np.abs(x) ** 2 * np.arange(6))

    check_grads(loss, (a.data, b), order=1 if dtype is complex else 2)


@MODES
def test_value_and_gradient_cost_one_factorization(compiled):
    a = laplacian(9)
    f = mode(
        compiled,
        wg.value_and_grad(lambda d, b: np.sum(sparse_solve(d, a.indices, a.indptr, b) ** 2)),
    )
    b = np.ones((81, 1))
    f(a.data * 0.9, b)
    before = factors.counts.factorized
    for scale in (1.1, 1.2, 1.3):
        f(a.data * (scale + compiled), b)
    assert factors.counts.factorized - before == 3


def test_factors_are_those_of_the_present_values():
    """A matrix that is overwritten is factorized again; so is one of the same checksum."""
    a = random_matrix(8)
    data, b = a.data.copy(), np.arange(1.0, 9.0)
    for scale in (1.0, 2.0, -3.0):
        data[:] = a.data * scale
        found = sparse_solve(data, a.indices, a.indptr, b[:, None])[:, 0]
        np.testing.assert_allclose(found, theirs.spsolve(a.tocsc() * scale, b), rtol=1e-10)


def test_the_number_of_factors_that_are_kept_is_bounded():
    a = random_matrix(4)
    for k in range(factors._MAX_FACTORS + 10):
        sparse_solve(a.data * (k + 1.0), a.indices, a.indptr, np.ones((4, 1)))
    assert len(factors._kept) <= factors._MAX_FACTORS


def test_batches():
    """Right-hand sides become columns; matrices are factorized one by one."""
    a = random_matrix(6, 0.4)
    rng = np.random.default_rng(6)
    bs, datas = rng.normal(size=(4, 6)), a.data * rng.uniform(1.0, 2.0, size=(4, 1))

    def x(d, b):
        return linalg.spsolve(with_data(a, d), b)

    expected = [theirs.spsolve(a.tocsc(), b) for b in bs]
    np.testing.assert_allclose(wg.vmap(x, in_axes=(None, 0))(a.data, bs), expected, rtol=1e-10)
    expected = [x(wg.tensor(d), b) for d, b in zip(datas, bs, strict=True)]
    np.testing.assert_allclose(wg.vmap(x)(datas, bs), expected, rtol=1e-10)
    gradient = wg.grad(lambda d, b: np.sum(x(d, b) ** 2))
    expected = [gradient(d, b) for d, b in zip(datas, bs, strict=True)]
    np.testing.assert_allclose(wg.jit(wg.vmap(gradient))(datas, bs), expected, rtol=1e-9)


@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_index_dtypes_and_duplicates(index):
    """Entries may be repeated, unsorted, and have 64-bit indices."""
    indices = np.array([1, 0, 0, 1], index)
    indptr = np.array([0, 3, 4], index)
    data = np.array([1.0, 1.5, 0.5, 4.0])
    b = np.array([[5.0], [8.0]])
    found = sparse_solve(data, indices, indptr, b)
    np.testing.assert_allclose(found, [[1.5], [2.0]])
    check_grads(lambda d: sparse_solve(d, indices, indptr, b), (data,), order=2)


def test_factors_of_plain_matrices_solve_for_tensors():
    """With one factorization, and SciPy's attributes."""
    a = random_matrix(6, 0.4).tocsc()
    before = factors.counts.factorized
    lu = linalg.splu(a)
    assert factors.counts.factorized == before + 1
    b = np.arange(6.0)
    np.testing.assert_allclose(lu.solve(b), theirs.spsolve(a, b))
    np.testing.assert_allclose(wg.jacobian(lu.solve)(b), np.linalg.inv(a.toarray()), atol=1e-12)
    assert factors.counts.factorized == before + 1
    assert lu.shape == (6, 6) and lu.L.shape == (6, 6) and len(lu.perm_c) == 6
    with pytest.raises(AttributeError, match="no attribute 'L'"):
        _ = linalg.splu(with_data(a.tocsr(), wg.tensor(a.tocsr().data))).L
    with pytest.raises(RuntimeError, match="singular"):
        linalg.splu(sp.csc_array([[1.0, 1.0], [1.0, 1.0]]))


def test_factorized():
    a = random_matrix(6, 0.4)
    b = np.arange(6.0)
    np.testing.assert_allclose(linalg.factorized(a.tocsc())(b), theirs.spsolve(a.tocsc(), b))
    expected = np.linalg.inv(a.toarray())
    np.testing.assert_allclose(wg.jacobian(linalg.factorized(a.tocsc()))(b), expected, atol=1e-12)


@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("unit", [True, False])
@pytest.mark.sample(1)
def test_triangular_systems(lower, unit):
    full = random_matrix(7, 0.5) + 3.0 * sp.eye_array(7)
    a = (sp.tril(full) if lower else sp.triu(full)).tocsr()
    b = np.random.default_rng(7).normal(size=(7, 2))

    def x(data, b):
        return linalg.spsolve_triangular(with_data(a, data), b, lower, unit_diagonal=unit)

    expected = a.toarray()
    if unit:
        np.fill_diagonal(expected, 1.0)
    np.testing.assert_allclose(x(wg.tensor(a.data), b), np.linalg.solve(expected, b), rtol=1e-10)
    check_grads(x, (a.data, b), order=2)
    with pytest.raises(ArgumentError, match="outside of its"):
        linalg.spsolve_triangular(with_data(full.tocsr(), wg.tensor(full.tocsr().data)), b, lower)


@pytest.mark.parametrize("scale", [1.0, 1e-300])
def test_symmetric_matrices_that_are_not_definite(scale):
    """Without row exchanges the first pivot is tiny; the solution is checked, and right."""
    a = sp.csr_array(np.array([[1e-20, 1.0, 0.0], [1.0, 1e-20, 1.0], [0.0, 1.0, 2.0]]) * scale)
    b = np.array([[1.0], [2.0], [3.0]])
    found = sparse_solve(a.data, a.indices, a.indptr, b)
    np.testing.assert_allclose(a.toarray() / scale @ (found * scale), b, rtol=1e-12)
    sign, logarithm = sparse_slogdet(a.data, a.indices, a.indptr)
    expected = np.linalg.slogdet(a.toarray() / scale)
    np.testing.assert_allclose([sign, logarithm - 3 * np.log(scale)], expected, rtol=1e-12)


# ---- errors --------------------------------------------------------------------------------------


@MODES
def test_singular_matrices(compiled):
    """The value of an exactly singular matrix, and the derivative of one that is nearly so."""
    a = sp.csr_array([[1.0, 2.0], [2.0, 4.0]])
    b = np.array([1.0, 1.0])

    def x(data):
        return linalg.spsolve(with_data(a, data), b)

    with pytest.raises(MatrixError, match="singular"):
        mode(compiled, x)(wg.tensor(a.data))
    near = a.data + np.array([0.0, 0.0, 0.0, 4e-15])
    assert np.isfinite(mode(compiled, x)(wg.tensor(near))).all()
    with pytest.raises(MatrixError, match=r"nearly singular: its condition number is about"):
        mode(compiled, wg.grad(lambda d: np.sum(x(d))))(near)
    with pytest.raises(MatrixError, match="nearly singular"):
        mode(compiled, lambda d: wg.jvp(x, (d,), (d,)))(near)


@pytest.mark.parametrize("dtype", [float, complex])
def test_units_do_not_matter(dtype):
    """Rows of very different sizes: the condition number is that of a scaled matrix."""
    a = random_matrix(6, 0.4, dtype)
    units = 10.0 ** np.arange(-30, 30, 10)
    scaled = (sp.diags_array(units) @ a).tocsr()
    b = np.arange(1.0, 7.0)

    def of(a, b):
        return np.sum(np.abs(linalg.spsolve(with_data(a, wg.tensor(a.data)), b)) ** 2)

    gradient = wg.grad(lambda b: of(scaled, b * units))(b)
    np.testing.assert_allclose(gradient, wg.grad(lambda b: of(a, b))(b), rtol=1e-9)


def test_wrong_operands():
    a = random_matrix(4, 0.5)
    data = wg.tensor(a.data)
    with pytest.raises(ShapeError, match=r"b has shape \(3,\)"):
        linalg.spsolve(with_data(a, data), np.ones(3))
    with pytest.raises(ArgumentError, match="sparse right-hand side"):
        linalg.spsolve(with_data(a, data), a)
    with pytest.raises(ArgumentError, match="assume_a='sym'"):
        linalg.spsolve(with_data(a, data), np.ones(4), assume_a="sym")
    with pytest.raises(MatrixError, match="must be square"):
        linalg.spsolve(csr_array((data[:1], [0], [0, 1]), shape=(1, 2)), np.ones(1))
    with pytest.raises(ArgumentError, match="SamePattern"):
        linalg.splu(a.tocsc(), options={"Fact": "SamePattern"})
    with pytest.raises(ArgumentError, match="inverse of a sparse matrix is dense"):
        linalg.inv(with_data(a, data))
    with pytest.raises(MatrixError, match="NaN or infinity"):
        linalg.spsolve(with_data(a, data * np.nan), np.ones(4))
    for indices, indptr in (
        ([0, 4], [0, 1, 2]),
        ([0, -1], [0, 1, 2]),
        ([0, 1], [0, 2, 1, 2]),
        ([0, 1], [1, 1, 2]),
    ):
        b = np.ones((len(indptr) - 1, 1))
        with pytest.raises(ShapeError, match="CSR format"):
            sparse_solve(np.ones(2), np.array(indices), np.array(indptr), b)


# ---- determinants --------------------------------------------------------------------------------


@MODES
@pytest.mark.parametrize("dtype", [float, complex])
@pytest.mark.parametrize("n", [1, 2, 7, 30])
def test_slogdet(n, dtype, compiled):
    """Values and gradients of dense matrices; entries that are zero, rows that are exchanged."""
    a = random_matrix(n, 0.3, dtype, seed=n)
    a.data[:: max(n // 3, 2)] = 0.0
    a = (a + 3.0 * sp.csr_array(np.roll(np.eye(n), 1, 0))).tocsr()
    a.data[0] = a.data[0] + 1.0
    rows = np.repeat(np.arange(n), np.diff(a.indptr))

    def of_sparse(data):
        return tuple(linalg.slogdet(with_data(a, data)))

    found = mode(compiled, of_sparse)(wg.tensor(a.data))
    expected = np.linalg.slogdet(a.toarray())
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-11)
    np.testing.assert_allclose(found[1], expected[1], rtol=1e-11)
    gradient = mode(compiled, wg.grad(lambda d: of_sparse(d)[1]))(a.data)
    expected = np.conj(np.linalg.inv(a.toarray()).T)[rows, a.indices]
    np.testing.assert_allclose(gradient, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.sample(1)
@pytest.mark.parametrize("dtype", [float, complex])
def test_derivatives_of_determinants(dtype):
    a = random_matrix(5, 0.4, dtype, seed=8)

    def loss(data):
        sign, logarithm = linalg.slogdet(with_data(a, data))
        return (sign.real * 2.0 + 0.3) * logarithm

    check_grads(loss, (a.data,), order=2)


def test_integers_that_cancel():
    """Elements of the factors that are zero by chance are elements of the inverse nevertheless."""
    rng = np.random.default_rng(9)
    for _ in range(20):
        a = sp.csr_array(rng.integers(-1, 2, size=(8, 8)) * (rng.random((8, 8)) < 0.5) * 1.0)
        a = (a + sp.eye_array(8)).tocsr()
        if np.linalg.cond(a.toarray()) > 1e6:
            continue
        rows = np.repeat(np.arange(8), np.diff(a.indptr))
        found = wg.grad(lambda d, a=a: linalg.slogdet(with_data(a, d))[1])(a.data)
        expected = np.linalg.inv(a.toarray())[a.indices, rows]
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-11)


def test_entries_that_are_zero():
    """The pattern of the factors is found without them, and completed."""
    a = laplacian(6)
    wide = (abs(a) @ abs(a)).tocsr()
    wide.data[:] = 0.0
    places = [sp.coo_array(x).coords for x in (a, wide)]
    rows, columns = (np.concatenate([x[k] for x in places]) for k in (0, 1))
    data = np.concatenate([sp.coo_array(a).data, wide.data])
    gradient = wg.grad(
        lambda d: linalg.logdet(csr_array((d, (rows, columns)), shape=a.shape), assume_a="pos")
    )
    expected = np.linalg.inv(a.toarray())[columns, rows]
    np.testing.assert_allclose(gradient(data), expected, rtol=1e-10, atol=1e-13)


def test_threads_share_the_factors():
    """Several threads solve with several matrices at the same time."""
    matrices = [random_matrix(30, seed=k) for k in range(4)]
    b = np.ones((30, 1))
    expected = [np.linalg.solve(a.toarray(), b) for a in matrices]

    def run(k):
        a = matrices[k % 4]
        found = sparse_solve(a.data.copy(), a.indices, a.indptr, b)
        return np.allclose(found, expected[k % 4], rtol=1e-8)

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(run, range(80)))


@MODES
def test_logdet_of_a_positive_definite_matrix(compiled):
    a = laplacian(7)
    logarithm = mode(compiled, lambda d: linalg.logdet(with_data(a, d), assume_a="pos"))
    expected = np.linalg.slogdet(a.toarray())[1]
    np.testing.assert_allclose(logarithm(wg.tensor(a.data)), expected, rtol=1e-12)
    before, scale = factors.counts.factorized, 1.5 + compiled
    value, gradient = mode(compiled, wg.value_and_grad(logarithm))(a.data * scale)
    assert factors.counts.factorized == before + 1
    rows = np.repeat(np.arange(49), np.diff(a.indptr))
    np.testing.assert_allclose(value, expected + 49 * np.log(scale), rtol=1e-12)
    np.testing.assert_allclose(gradient, np.linalg.inv(scale * a.toarray())[a.indices, rows])
    hessian_product = wg.jvp(wg.grad(logarithm), (a.data,), (a.data,))[1]
    np.testing.assert_allclose(hessian_product, -np.linalg.inv(a.toarray())[a.indices, rows])


def test_determinants_that_are_zero_or_negative():
    singular = sp.csr_array([[1.0, 2.0], [2.0, 4.0]])
    data = wg.tensor(singular.data)
    assert linalg.logdet(with_data(singular, data)) == -np.inf
    assert linalg.slogdet(singular)[0] == 0
    with pytest.raises(MatrixError, match="singular"):
        wg.grad(lambda d: linalg.logdet(with_data(singular, d)))(singular.data)
    negative = sp.csr_array([[0.0, 1.0], [1.0, 0.0]])
    assert np.isnan(linalg.logdet(negative))
    with pytest.raises(MatrixError, match="not positive definite"):
        linalg.logdet(sp.csr_array([[1.0, 2.0], [2.0, 1.0]]), assume_a="pos")
    with pytest.raises(ArgumentError, match="complex"):
        linalg.logdet(sp.csr_array([[1.0j]]))
    large = sp.eye_array(5000).tocsr()
    with pytest.raises(ArgumentError, match="up to 4096 rows"):
        wg.hessian(lambda s: linalg.logdet(with_data(large, s * large.data)))(2.0)


def test_empty_matrices_and_rows():
    data, indices, indptr = np.zeros(0), np.zeros(0, int), np.zeros(1, int)
    assert sparse_solve(data, indices, indptr, np.zeros((0, 2))).shape == (0, 2)
    assert sparse_slogdet(data, indices, indptr) == (1.0, 0.0)
    with pytest.raises(MatrixError, match="singular"):
        sparse_solve(np.ones(1), np.array([0]), np.array([0, 1, 1]), np.ones((2, 1)))


@pytest.mark.parametrize("angle", [0.3, 0.8, 2.0, 4.0])
def test_condition_numbers_of_bordered_matrices(angle):
    """The vector of ones has no part that the inverse enlarges, if two rows differ by a sign."""
    vector = np.array([0.0, 0.0, np.cos(angle), np.sin(angle)])
    a = np.zeros((5, 5))
    a[:4, :4] = np.diag([2.0, 3.0, 4e-16, 4e-16])
    a[:4, 4], a[4, :4] = -vector, vector
    rows, columns = np.nonzero(a)
    factor = factor_of(a[rows, columns], columns, np.searchsorted(rows, np.arange(6)))
    assert factor.condition > 1e14
