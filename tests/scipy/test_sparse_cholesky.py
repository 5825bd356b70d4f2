"""Sparse positive definite matrices: bands by LAPACK, others by CHOLMOD and by SuperLU."""

from collections import OrderedDict

import numpy as np
import pytest
import scipy.sparse as sp

import wengert as wg
from wengert import optim
from wengert.errors import MatrixError
from wengert.scipy.sparse import csr_array, linalg
from wengert.scipy.sparse.linalg import factors, matrix_factors, matrix_patterns
from wengert.scipy.sparse.linalg.determinants import (
    sparse_selected_inverse,
    sparse_slogdet,
)
from wengert.scipy.sparse.linalg.solve_operation import sparse_solve
from wengert.testing import check_grads

BAND, LU = factors.BandFactors, matrix_factors.SuperLUFactors


@pytest.fixture(params=["SuperLU", "CHOLMOD"])
def library(request, monkeypatch):
    """The library for matrices that are no bands; the class of its factors."""
    has_cholmod = request.param == "CHOLMOD"
    if has_cholmod:
        pytest.importorskip("cvxopt")
    monkeypatch.setattr(matrix_patterns, "is_installed", lambda: has_cholmod)
    for module in (matrix_patterns, factors):
        monkeypatch.setattr(module, "_kept", OrderedDict())
    return factors.CholmodFactors if has_cholmod else LU


def with_data(a, data):
    return csr_array((data, a.indices, a.indptr), shape=a.shape)


def factors_of(a, assume="gen"):
    return factors.factor_of(a.data, a.indices, a.indptr, assume)


def band_matrix(n, below, dtype=float, seed=0, density=1.0):
    """A positive definite matrix with some diagonals."""
    rng = np.random.default_rng(seed)
    parts = [rng.normal(size=n - k) * (rng.random(n - k) < density) for k in range(1, below + 1)]
    a = sum([np.diag(x, -k) for k, x in enumerate(parts, 1)], np.zeros((n, n)))
    a = a + a.T
    return sp.csr_array(a + np.diag(np.sum(np.abs(a), 0) + 0.3)).astype(dtype)


def shuffled(a, seed=0):
    """The same with the rows and columns in another order."""
    order = np.random.default_rng(seed).permutation(a.shape[0])
    return a[order][:, order].tocsr()


def ring(n):
    """A cycle: each row has two neighbors."""
    near = np.roll(np.eye(n), 1, 0)
    return sp.csr_array(2.5 * np.eye(n) - near - near.T)


def lattice(m):
    """A square grid whose bandwidth is too large for a band, after any reordering."""
    t = sp.diags_array([[-1.0] * (m - 1), [2.0] * m, [-1.0] * (m - 1)], offsets=[-1, 0, 1])
    far = sp.csr_array((np.full(1, -0.5), ([0], [m * m - 1])), shape=(m * m, m * m))
    i = sp.eye_array(m)
    return (sp.kron(t, i) + sp.kron(i, t) + far + far.T + 0.6 * sp.eye_array(m * m)).tocsr()


def check_operations(a, rtol):
    """Solutions, determinant, elements of the inverse: against dense matrices."""
    full, n = a.toarray().astype(float), a.shape[0]
    given = a.data, a.indices, a.indptr
    b = np.random.default_rng(n).normal(size=(n, 2)).astype(a.dtype)
    for trans in (0, 1, 2):
        found = sparse_solve(*given, b, trans=trans)
        assert found.dtype == b.dtype
        expected = np.linalg.solve(full.T if trans else full, b)
        np.testing.assert_allclose(found, expected, rtol=rtol, atol=rtol)
    found = sparse_solve(*given, b + 2j * b)
    np.testing.assert_allclose(found, np.linalg.solve(full, b + 2j * b), rtol=rtol, atol=rtol)
    np.testing.assert_allclose(sparse_slogdet(*given), np.linalg.slogdet(full), rtol=rtol)
    rows = np.repeat(np.arange(n), np.diff(a.indptr))
    inverse = np.linalg.inv(full)[a.indices, rows]
    np.testing.assert_allclose(sparse_selected_inverse(*given), inverse, rtol=rtol, atol=rtol)


# ---- bands ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("below", [0, 1, 2, 5, 13])
def test_bands(below, dtype):
    for n in (2, 3, 40):
        a = band_matrix(n, min(below, n - 1), dtype)
        for given in (a, shuffled(a)):
            assert type(factors_of(given)) is BAND
            check_operations(given, 2e-4 if dtype == np.float32 else 1e-10)


def test_bands_with_few_entries():
    for below, density in ((1, 0.5), (3, 0.4), (9, 0.2)):
        a = band_matrix(60, below, density=density)
        assert type(factors_of(shuffled(a))) is BAND
        check_operations(a, 1e-10)
        check_operations(shuffled(a), 1e-10)


def test_the_order_of_rows_is_chosen():
    a = ring(30)
    assert matrix_patterns.pattern_of(a.indices, a.indptr).band.below == 2
    check_operations(a, 1e-10)
    two = np.kron(np.eye(20), [[3.0, 1.0], [1.0, 2.0]])  # groups of two, far from each other
    order = np.arange(40).reshape(20, 2).T.ravel()
    b = sp.csr_array(two[np.ix_(order, order)])
    assert matrix_patterns.pattern_of(b.indices, b.indptr).band.below == 1
    check_operations(b, 1e-10)


def test_repeated_entries_in_any_order():
    a = band_matrix(6, 2).tocoo()
    rows = np.concatenate([a.row, a.row])
    columns = np.concatenate([a.col, a.col])
    data = np.concatenate([0.25 * a.data, 0.75 * a.data])
    order = np.argsort(rows + 0.1 * np.random.default_rng(0).random(rows.size), kind="stable")
    starts = np.searchsorted(rows[order], np.arange(7))
    repeated = sp.csr_array((data[order], columns[order], starts), shape=(6, 6))
    assert type(factors_of(repeated)) is BAND
    check_operations(repeated, 1e-10)


@pytest.mark.parametrize(
    "make", [lambda: band_matrix(5, 1), lambda: band_matrix(6, 2), lambda: ring(5)]
)
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.sample(3)  # each matrix
def test_derivatives(make, compiled):
    a = make()
    b = np.arange(1.0, 1.0 + a.shape[0])

    def loss(data, b):
        matrix = with_data(a, data)
        return np.sum(linalg.spsolve(matrix, b) ** 2) + linalg.logdet(matrix, assume_a="gen")

    check_grads(wg.jit(loss) if compiled else loss, (a.data, b), order=1 if compiled else 2)


def test_nearly_singular_bands():
    """Free ends: a constant is nearly a solution of the system with zeros."""
    a = (sp.diags_array([[-1.0] * 49, [1.0] + [2.0] * 48 + [1.0 + 1e-14], [-1.0] * 49],
                        offsets=[-1, 0, 1])).tocsr()  # fmt: skip
    with pytest.raises(MatrixError, match="nearly singular"):
        wg.grad(lambda d: linalg.logdet(with_data(a, d)))(a.data)
    tiny = sp.diags_array([1.0, 1e-200, 1e150]).tocsr()  # only units
    slope = wg.grad(lambda d: linalg.logdet(with_data(tiny, d)))(tiny.data)
    np.testing.assert_allclose(slope, 1.0 / tiny.data)


def test_factors_are_kept_and_shared():
    a = band_matrix(50, 1)
    f = wg.jit(wg.value_and_grad(lambda d, b: np.sum(linalg.splu(with_data(a, d)).solve(b) ** 2)))
    f(a.data, np.ones(50))
    before = factors.counts.factorized
    for scale in (1.1, 1.2):
        f(a.data * scale, np.ones(50))
    assert factors.counts.factorized == before + 2
    assert linalg.splu(with_data(a, a.data)).nnz == 99


# ---- either library ------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_other_patterns(library, dtype, monkeypatch):
    monkeypatch.setattr(matrix_patterns, "_MAX_BELOW", 0)
    for a in (lattice(5), band_matrix(40, 3), shuffled(band_matrix(40, 9, density=0.2)), ring(7)):
        assert type(factors_of(a)) is library
        check_operations(a.astype(dtype), 2e-4 if dtype == np.float32 else 1e-9)


def test_wide_patterns_are_no_bands(library):
    star = 3.0 * np.eye(200)
    star[0, 1:] = star[1:, 0] = 0.1
    assert type(factors_of(sp.csr_array(star))) is library
    check_operations(sp.csr_array(star), 1e-10)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.sample(2)  # each library
def test_derivatives_with_either_library(library, compiled, monkeypatch):
    monkeypatch.setattr(matrix_patterns, "_MAX_BELOW", 0)
    a, b = lattice(3), np.arange(1.0, 10.0)

    def loss(data, b):
        matrix = with_data(a, data)
        return np.sum(linalg.factorized(matrix)(b) ** 2) + linalg.logdet(matrix)

    check_grads(wg.jit(loss) if compiled else loss, (a.data, b), order=1 if compiled else 2)
    assert type(factors_of(a)) is library


def test_matrices_that_are_not_definite(library):
    """Symmetric ones are solved with row exchanges; what was said to be definite is an error."""
    for a in (band_matrix(30, 1), band_matrix(30, 3), lattice(6)):
        shifted = (a - 1.5 * sp.eye_array(a.shape[0])).tocsr()
        assert np.linalg.eigvalsh(shifted.toarray())[0] < 0.0
        assert type(factors_of(shifted)) is LU
        check_operations(shifted, 1e-7)
        found = sparse_solve(
            shifted.data, shifted.indices, shifted.indptr, np.ones((a.shape[0], 1)), assume="pos"
        )
        np.testing.assert_allclose(shifted @ found, 1.0, rtol=1e-9)
        with pytest.raises(MatrixError, match="not positive definite"):
            linalg.logdet(shifted, assume_a="pos")


def test_elements_that_differ_by_rounding(library):
    """By more if a matrix is said to be definite; other differences: it is not symmetric."""
    for a in (band_matrix(30, 1), lattice(6)):
        upper, kind = sp.triu(a, 1).tocsr(), BAND if a.shape[0] == 30 else type(factors_of(a))
        for difference, wanted in ((1e-15, (kind, kind)), (1e-13, (LU, kind)), (0.01, (LU, LU))):
            near = (a + difference * upper).tocsr()
            assert (type(factors_of(near)), type(factors_of(near, "pos"))) == wanted
            check_operations(near, 1e-9)


@pytest.mark.sample(1)
def test_hessians_of_implicit_functions(library, monkeypatch):
    """Their elements are computed one by one, and differ from the transposed ones by rounding."""
    monkeypatch.setattr(matrix_patterns, "_MAX_BELOW", 0)

    def energy(u, t):
        steps = u[:-40] - np.sin(u[40:] + t)
        return np.sum(np.sqrt(1.0 + steps**2)) + np.sum(np.cosh(u - t)) + np.sum(u**2)

    def root(t):
        def newton(f, u):
            for _ in range(8):
                u = u - np.linalg.solve(wg.jacobian(f)(u), f(u))
            return u

        return wg.custom_root(lambda u: wg.grad(energy)(u, t), np.linspace(0.0, 1.0, 300), newton)

    slope = wg.grad(lambda t: np.sum(root(t) ** 2))(0.4)
    assert [type(x) for x in factors._kept.values()] == [library]
    up, down = (np.sum(root(0.4 + h) ** 2) for h in (1e-5, -1e-5))
    np.testing.assert_allclose(slope, (up - down) / 2e-5, rtol=1e-7)


def test_nan_and_infinity(library):
    for a in (band_matrix(10, 1), lattice(4)):
        for wrong in (np.nan, np.inf):
            with pytest.raises(MatrixError, match="NaN or infinity"):
                sparse_solve(a.data * wrong, a.indices, a.indptr, np.ones((a.shape[0], 1)))


@pytest.mark.sample(1)
def test_random_effects_on_a_lattice(library, monkeypatch):
    monkeypatch.setattr(matrix_patterns, "_MAX_BELOW", 0)
    y = np.random.default_rng(2).poisson(2.0, size=(5, 5)).astype(float)

    def negative_log_joint(p):
        u, eta = p["u"], p["mu"] + p["u"]
        rough = np.sum((u[1:] - u[:-1]) ** 2) + np.sum((u[:, 1:] - u[:, :-1]) ** 2)
        prior = 0.5 * np.exp(p["t"]) * (rough + 0.1 * np.sum(u**2)) - 12.5 * p["t"]
        return prior + np.sum(np.exp(eta) - y * eta)

    start = {"u": np.zeros((5, 5)), "mu": 0.5, "t": 0.3}
    marginal = optim.laplace(negative_log_joint, random="u", params=start)
    at = marginal.params
    value, slopes = wg.jit(wg.value_and_grad(marginal))(at)
    hessian = wg.hessian(lambda u: negative_log_joint({**at, "u": u}))(marginal.mode(at)["u"])
    curvature = np.linalg.slogdet(hessian.reshape(25, 25))[1]
    joint = negative_log_joint({**at, **marginal.mode(at)})
    np.testing.assert_allclose(
        value, joint + 0.5 * curvature - 12.5 * np.log(2 * np.pi), rtol=1e-11
    )
    for name, slope in slopes.items():
        up, down = (marginal({**at, name: at[name] + h}) for h in (1e-5, -1e-5))
        np.testing.assert_allclose(slope, (up - down) / 2e-5, rtol=1e-6)


def test_options_of_the_user_are_kept():
    cholmod = pytest.importorskip("cvxopt.cholmod")
    cholmod.options["supernodal"] = 0
    try:
        check_operations(lattice(6), 1e-10)
        assert cholmod.options == {"supernodal": 0}
    finally:
        cholmod.options.clear()


def test_chains_are_found_by_laplace():
    """The Hessian of a random walk is a band, whose factors Newton's method uses."""
    y = np.random.default_rng(0).normal(size=300)

    def negative_log_joint(p):
        u = p["u"]
        return np.sum((u[1:] - u[:-1]) ** 2) * np.exp(p["t"]) + np.sum((y - u) ** 2)

    marginal = optim.laplace(negative_log_joint, random="u", params={"u": np.zeros(300), "t": 0.0})
    marginal({"t": 0.1})
    assert type(next(reversed(factors._kept.values()))) is BAND


@pytest.mark.parametrize("shape", ["chain", "arrow", "chain with repeated entries"])
def test_entries_at_equal_distances(shape):
    """Three diagonals are slices of the entries, which are not those of other patterns."""
    n = 7
    rows, columns = np.nonzero(np.abs(np.subtract.outer(np.arange(n), np.arange(n))) <= 1)
    if shape == "arrow":
        rows, columns = np.nonzero((np.eye(n) + np.eye(n)[:1] + np.eye(n)[:, :1]) > 0)
    a = np.zeros((n, n))
    a[rows, columns] = np.where(rows == columns, 4.0 + rows, 0.1 * (rows + columns))
    data, indptr = a[rows, columns], np.searchsorted(rows, np.arange(n + 1))
    if shape == "chain with repeated entries":
        data[0] -= 1.0
        data, columns = np.insert(data, 0, 1.0), np.insert(columns, 0, 0)
        indptr = indptr + (np.arange(n + 1) > 0)
    factor = factors.factor_of(data, columns, indptr)
    places = matrix_patterns.pattern_of(columns.copy(), indptr).halves
    assert all(isinstance(p, slice) for p in places) == (shape != "arrow")
    b = np.arange(1.0, n + 1)[:, None]
    np.testing.assert_allclose(factor.solve(b), np.linalg.solve(a, b), rtol=1e-12)
    np.testing.assert_allclose(factor.log_determinant()[1], np.linalg.slogdet(a)[1], rtol=1e-12)
