"""Sparse arrays of tensors: values as SciPy's, derivatives as those of dense arrays, both modes."""

import copy
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse import csc_array as make_csc
from scipy.sparse.linalg import spsolve

import wengert as wg
import wengert.scipy.sparse as ws
from wengert.errors import ConversionError, ShapeError, TraceError

FORMATS = ("csr", "csc", "coo", "dia", "bsr")


def example(form, rng, kind=float):
    """A 6 x 4 array with an empty row and an empty column; duplicates in coo and csr."""
    rows, columns = np.array([4, 0, 2, 0, 5, 1, 4]), np.array([1, 3, 0, 0, 3, 1, 3])
    values = rng.uniform(0.5, 2.0, len(rows)).astype(kind)
    if kind is complex:
        values = values + 1j * rng.normal(size=len(rows))
    array = sp.coo_array((values, (rows, columns)), shape=(6, 4))
    if form in ("csr", "csc"):
        made = array.asformat(form)  # with one element stored twice, and a row not sorted
        major = np.append(made.indices, made.indices[-1])
        indptr = made.indptr.copy()
        indptr[-1] += 1
        data = np.append(made.data, values[0])
        return type(made)((data, major, indptr), shape=(6, 4))
    if form == "coo":
        coords = np.append(rows, rows[2]), np.append(columns, columns[2])
        return sp.coo_array((np.append(values, values[1]), coords), shape=(6, 4))
    return array.tobsr((2, 2)) if form == "bsr" else array.todia()


def dense_map(pattern):
    """The matrix that takes the elements to the flattened dense array."""
    structure = ws.structure_of(pattern)
    columns = []
    for k in range(structure.size):
        unit = np.zeros(structure.size)
        unit[k] = 1.0
        columns.append(structure.filled(unit.reshape(structure.data_shape)).toarray().ravel())
    return np.array(columns).T


def as_dense(x):
    return x.toarray() if hasattr(x, "toarray") else x


RNG = np.random.default_rng(3)
V, W, M = RNG.normal(size=4), RNG.normal(size=6), RNG.normal(size=(4, 3))
FULL = RNG.normal(size=(6, 4))
OTHER = sp.random_array((6, 4), density=0.5, format="csr", rng=RNG)
SQUARE = sp.random_array((6, 6), density=0.4, format="csr", rng=RNG)
RIGHT = sp.random_array((4, 5), density=0.5, format="csc", rng=RNG)

CASES = {
    "matvec": (lambda A: A @ V, None),
    "matmat": (lambda A: A @ M, None),
    "dot": (lambda A: A.dot(V), None),
    "rmatvec": (lambda A: W @ A, None),
    "rmatmat": (lambda A: FULL.T @ A, None),
    "transpose": (lambda A: A.T @ W, None),
    "sparse product": (lambda A: A @ RIGHT, lambda D: D @ RIGHT.toarray()),
    "product with itself": (lambda A: A.T @ A, lambda D: D.T @ D),
    "sum": (lambda A: A + OTHER, lambda D: D + OTHER.toarray()),
    "difference": (lambda A: OTHER - A, lambda D: OTHER.toarray() - D),
    "sum with itself": (lambda A: A + A, lambda D: 2 * D),
    "dense sum": (lambda A: A + FULL, lambda D: D + FULL),
    "multiply": (lambda A: A.multiply(OTHER), lambda D: D * OTHER.toarray()),
    "multiply by itself": (lambda A: A * A, lambda D: D * D),
    "multiply dense": (lambda A: A.multiply(FULL), lambda D: D * FULL),
    "multiply row": (lambda A: A * V, lambda D: D * V),
    "multiply column": (lambda A: A * W[:, None], lambda D: D * W[:, None]),
    "scale": (lambda A: 3.0 * A / 7.0 - (-A), lambda D: 3.0 * D / 7.0 + D),
    "power": (lambda A: A.power(3), lambda D: D**3),
    "square": (lambda A: A**2, lambda D: D**2),
    "sin": (lambda A: A.sin(), lambda D: np.sin(D)),
    "ufunc": (lambda A: np.expm1(A), lambda D: np.expm1(D)),
    "abs": (lambda A: abs(A), None),
    "maximum": (lambda A: A.maximum(OTHER), lambda D: np.maximum(D, OTHER.toarray())),
    "total": (lambda A: A.sum(), None),
    "columns": (lambda A: A.sum(axis=0), None),
    "rows": (lambda A: A.sum(axis=1), None),
    "mean": (lambda A: A.mean(axis=1), None),
    "max": (lambda A: A.max(), None),
    "diagonal": (lambda A: A.diagonal(), None),
    "other diagonal": (lambda A: A.diagonal(-2), lambda D: np.diagonal(D, -2)),
    "reshape": (lambda A: A.reshape(3, 8), None),
    **{
        f"to {form}": (lambda A, form=form: getattr(A, f"to{form}")(), lambda D: D)
        for form in FORMATS
    },
}
INDICES = {
    "element": np.s_[4, 3],
    "row": np.s_[2],
    "rows": np.s_[1:5],
    "column": np.s_[:, 1],
    "block": np.s_[::2, 1:3],
    "fancy": np.s_[[4, 0, 4], [3, 3, 1]],
    "fancy rows": np.s_[[4, 0, 4], :],
    "mask": np.s_[np.array([True, False, True, False, True, True])],
}
CASES.update(
    {f"index {n}": (lambda A, i=i: A.tocsr()[i], lambda D, i=i: D[i]) for n, i in INDICES.items()}
)


def weighted(x):
    x = as_dense(x)
    weights = np.cos(1.0 + np.arange(x.size)).reshape(x.shape)
    return np.sum(weights * np.sin(x) * x)


@pytest.mark.sample(60)
@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("name", CASES)
def test_values_and_derivatives(name, form, rng):
    function, dense_function = CASES[name]
    dense_function = dense_function or function
    plain = example(form, rng)
    matrix = dense_map(plain)
    pattern = ws.as_sparse(plain)
    shape = plain.data.shape

    def loss(data):
        return weighted(function(pattern.with_data(data)))

    def dense_loss(data):
        return weighted(dense_function((matrix @ data.reshape(-1)).reshape(6, 4)))

    data = plain.data
    if form == "csr":
        summed = plain.copy()  # some functions of SciPy do not sum duplicates
        summed.sum_duplicates()
        want = as_dense(function(summed))
        got = wg.jit(lambda d: as_dense(function(pattern.with_data(d))))(data)
        np.testing.assert_allclose(got, want, rtol=1e-13)
    want = wg.grad(dense_loss)(data)
    np.testing.assert_allclose(wg.grad(loss)(data), want, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(wg.jit(wg.grad(loss))(data), want, rtol=1e-12, atol=1e-13)
    tangent = rng.normal(size=shape)
    np.testing.assert_allclose(
        wg.jvp(loss, (data,), (tangent,))[1], np.sum(want * tangent), rtol=1e-11, atol=1e-12
    )


@pytest.mark.sample(3)
@pytest.mark.parametrize("form", ["csr", "csc", "coo"])
@pytest.mark.parametrize(
    "name",
    ["matvec", "matmat", "rmatmat", "product with itself", "multiply", "index block", "rows"],
)
def test_second_derivatives_and_batches(name, form, rng):
    function, dense_function = CASES[name]
    plain = example(form, rng)
    matrix, pattern = dense_map(plain), ws.as_sparse(plain)

    def loss(data):
        return weighted(function(pattern.with_data(data)))

    def dense_loss(data):
        return weighted((dense_function or function)((matrix @ data).reshape(6, 4)))

    want = wg.hessian(dense_loss)(plain.data)
    np.testing.assert_allclose(wg.hessian(loss)(plain.data), want, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(wg.jit(wg.hessian(loss))(plain.data), want, rtol=1e-11, atol=1e-12)
    batch = rng.normal(size=(3, len(plain.data)))
    want = np.stack([wg.grad(dense_loss)(d) for d in batch])
    np.testing.assert_allclose(wg.vmap(wg.grad(loss))(batch), want, rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(wg.jit(wg.vmap(wg.grad(loss)))(batch), want, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("form", FORMATS)
def test_arrays_are_containers(form, rng):
    plain = example(form, rng)

    def loss(A, x):
        return np.sum((A @ x) ** 2)

    x = rng.normal(size=4)
    gradient = wg.grad(loss)(plain, x)
    assert type(gradient) is type(plain)
    compiled = wg.jit(wg.grad(loss))(plain, x)
    assert type(compiled) is type(plain)
    want = dense_map(plain).T @ np.outer(2 * (plain @ x), x).ravel()
    np.testing.assert_allclose(gradient.data.ravel(), want, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(compiled.data, gradient.data, rtol=1e-13)
    doubled = wg.jit(lambda A: 2.0 * A)(plain)
    assert type(doubled) is type(plain)
    np.testing.assert_allclose(doubled.toarray(), 2 * plain.toarray())


def test_transformations_of_containers(rng):
    A, T, x = SQUARE, ws.structure_of(SQUARE), rng.normal(size=6)
    X, data = rng.normal(size=(3, 6)), rng.normal(size=(3, SQUARE.nnz))
    np.testing.assert_allclose(wg.vmap(lambda A, x: A @ x, in_axes=(None, 0))(A, X).T, A @ X.T)
    batch = ws.from_structure(T, data)
    want = [T.filled(d) @ x for d, x in zip(data, X, strict=True)]
    np.testing.assert_allclose(wg.vmap(lambda A, x: A @ x)(batch, X), want)
    assert wg.vmap(lambda A: 2.0 * A)(batch).data.shape == data.shape
    tangent = wg.jvp(lambda A: A * 3.0, (A,), (A,))[1]
    cotangent = wg.vjp(lambda A: A * 3.0, A)[1](A)[0]
    for found in (tangent, cotangent):
        assert type(found) is type(A)
        np.testing.assert_allclose(found.data, 3.0 * A.data)
    rows = wg.jacobian(lambda A: A @ x)(A)
    assert rows.structure == T and rows.data.shape == (6, A.nnz)
    sums = wg.jit(lambda A: wg.scan(lambda A, _: (A * 0.9, A.sum()), A, None, length=3)[1])(A)
    np.testing.assert_allclose(sums, A.sum() * 0.9 ** np.arange(3))
    wg.testing.check_grads(lambda A: (A @ A).sum(), (A,), order=2)


def test_arrays_that_loops_carry(rng):
    T = ws.structure_of(SQUARE)

    def power(data):
        A, y = ws.from_structure(T, data), W
        for _ in range(40):
            A = A * 0.9
            y = A @ y
        return np.sum(y)

    def limit(data):
        A, y, k = ws.from_structure(T, data), W, 0
        while np.sum(y**2) > 1e-3 and k < 30:
            y = 0.3 * (A @ y)
            k += 1
        return np.sum(y)

    np.testing.assert_allclose(wg.jit(wg.grad(power))(SQUARE.data), wg.grad(power)(SQUARE.data))
    np.testing.assert_allclose(wg.jit(limit)(SQUARE.data), limit(SQUARE.data))


def test_arrays_of_integers(rng):
    A = sp.csr_array((np.arange(1, SQUARE.nnz + 1), SQUARE.indices, SQUARE.indptr), shape=(6, 6))
    found = wg.jit(lambda A, x: A @ x)(A, np.arange(6))
    assert found.dtype.kind == "i"
    np.testing.assert_array_equal(found, A @ np.arange(6))
    np.testing.assert_allclose(wg.jit(wg.grad(lambda x: (A @ x).sum()))(W), A.sum(axis=0))


def test_graphs_with_arrays_are_saved(tmp_path, rng):
    T = ws.structure_of(SQUARE)
    graph = wg.trace(lambda data: ws.from_structure(T, data) @ W)(SQUARE.data)
    graph.save(tmp_path / "graph")
    np.testing.assert_allclose(wg.load(tmp_path / "graph")(SQUARE.data), SQUARE @ W)


def test_arrays_of_scipy_in_functions_of_tensors(rng):
    A, x = OTHER, rng.normal(size=4)
    D = A.toarray()

    def loss(A):
        def of(x):
            y = A @ x + x[:3].sum() * (A / x[0]) @ x
            return np.sum(y**2) + np.sum((A * x[1]) @ x) + np.sum((x[2] * A).T @ y)

        return of

    def dense(x):
        y = D @ x + x[:3].sum() * (D / x[0]) @ x
        return np.sum(y**2) + np.sum((D * x[1]) @ x) + np.sum((x[2] * D).T @ y)

    assert np.isclose(loss(A)(x), dense(x))
    want = wg.grad(dense)(x)
    np.testing.assert_allclose(wg.grad(loss(A))(x), want, rtol=1e-12)
    np.testing.assert_allclose(wg.jit(wg.grad(loss(A)))(x), want, rtol=1e-12)
    np.testing.assert_allclose(wg.hessian(loss(A))(x), wg.hessian(dense)(x), rtol=1e-11)


def test_a_captured_array_that_changes_is_read_again(rng):
    A, x = OTHER.copy(), rng.normal(size=4)
    compiled = wg.jit(lambda x: A @ x)
    for change in range(3):
        if change == 1:
            A.data[0] += 1.0
        if change == 2:
            A.indices[0] = (A.indices[0] + 1) % 4
        np.testing.assert_allclose(compiled(x), A.toarray() @ x, rtol=1e-14)


def test_a_captured_array_of_tensors_that_changes_is_read_again(rng):
    x = rng.normal(size=4)
    for data in (OTHER.data.copy(), wg.tensor(OTHER.data)):
        A = ws.from_structure(ws.structure_of(OTHER), data)
        compiled = wg.jit(lambda x, A=A: A @ x)
        gradient = wg.jit(wg.grad(lambda x, A=A: np.sum(A @ x)))
        for change in range(4):
            if change == 1:
                A.data[0] = 7.0
            if change == 2:
                A.data = A.data * 2.0
            if change == 3:
                A[0, 1] = 9.0
            D = A.numpy().toarray()
            np.testing.assert_allclose(compiled(x), D @ x, rtol=1e-14)
            np.testing.assert_allclose(gradient(x), D.sum(axis=0), rtol=1e-14)


def test_assembly_sums_duplicates_in_order():
    rows, columns = np.array([2, 0, 2, 2, 1]), np.array([1, 0, 1, 1, 2])
    data = np.array([1e16, 2.0, 1.0, -1e16, 4.0])

    def assembled(data):
        return sp.csr_array((data, (rows, columns)), shape=(3, 3)).data

    want = np.array([2.0, 4.0, (1e16 + 1.0) - 1e16])
    for run in (wg.jit(assembled), lambda d: wg.vjp(assembled, d)[0]):
        np.testing.assert_array_equal(run(data), want)
    np.testing.assert_array_equal(
        wg.jacobian(assembled)(data), [[0, 1, 0, 0, 0], [0, 0, 0, 0, 1], [1, 0, 1, 1, 0]]
    )


@pytest.mark.parametrize("dtype", [np.float32, np.complex128, np.complex64])
def test_other_dtypes(dtype, rng):
    plain = example("csr", rng, complex).astype(dtype) if dtype != np.float32 else None
    if plain is None:
        plain = example("csr", rng).astype(dtype)
    x = rng.normal(size=4).astype(dtype)

    def product(data, x):
        return ws.as_sparse(plain).with_data(data) @ x

    got = wg.jit(product)(plain.data, x)
    assert got.dtype == dtype
    tolerance = 1e-5 if np.finfo(dtype).eps > 1e-10 else 1e-13
    np.testing.assert_allclose(got, plain @ x, rtol=tolerance)
    matrix = dense_map(plain).astype(dtype)

    def dense(data, x):
        return (matrix @ data).reshape(6, 4) @ x

    def of(f):
        return lambda d, x: np.sum(abs(f(d, x)) ** 2)

    want = wg.grad(of(dense), argnums=(0, 1))(plain.data, x)
    for run in (wg.grad, lambda *a, **k: wg.jit(wg.grad(*a, **k))):
        for a, b in zip(run(of(product), argnums=(0, 1))(plain.data, x), want, strict=True):
            assert a.dtype == dtype
            np.testing.assert_allclose(a, b, rtol=10 * tolerance, atol=10 * tolerance)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0), (3, 2)])
def test_arrays_without_elements(shape):
    def product(data, x):
        return sp.csr_array((data, (np.zeros(0, int), np.zeros(0, int))), shape=shape) @ x

    x = np.ones(shape[1])
    for run in (wg.jit(product), lambda *a: wg.vjp(product, *a)[0]):
        np.testing.assert_array_equal(run(np.zeros(0), x), np.zeros(shape[0]))
    gradient = wg.grad(lambda d, x: np.sum(product(d, x)), argnums=(0, 1))(np.zeros(0), x)
    assert gradient[0].shape == (0,) and gradient[1].shape == (shape[1],)


def test_creation(rng):
    data, D = rng.normal(size=3), rng.normal(size=(2, 3))
    forms = {
        "coordinates": lambda sp, d: sp.csr_array((d, ([0, 1, 1], [2, 0, 2]))),
        "compressed": lambda sp, d: sp.csc_array((d, [0, 1, 0], [0, 2, 2, 3]), shape=(2, 3)),
        "diagonals": lambda sp, d: sp.dia_array((np.stack([d, 2 * d]), [0, 1]), shape=(3, 3)),
        "one diagonal": lambda sp, d: sp.dia_array((d, 0), shape=(3, 3)),
        "dense": lambda sp, d: sp.coo_array(d * D),
        "blocks": lambda sp, d: sp.bsr_array(
            (d[:, None, None] * np.ones((3, 2, 2)), [0, 1, 1], [0, 2, 3]), shape=(4, 4)
        ),
        "matrix": lambda sp, d: sp.csr_matrix((d, ([0, 1, 1], [2, 0, 2]))),
        "other format": lambda sp, d: sp.csc_array(sp.coo_array((d, ([0, 1, 1], [2, 0, 2])))),
    }
    for make in forms.values():
        want = make(sp, data)
        got = wg.jit(lambda d, make=make: make(sp, d))(data)
        assert type(got) is type(want)
        np.testing.assert_allclose(got.toarray(), want.toarray())
        np.testing.assert_allclose(
            wg.jacobian(lambda d, make=make: make(sp, d).toarray())(data),
            wg.jacobian(lambda d, make=make: make(ws, d).toarray())(data),
        )
    assert type(ws.csr_array(D)) is sp.csr_array  # without tensors, SciPy's


def test_matrices_use_the_matrix_product(rng):
    plain = sp.csr_matrix(OTHER)

    def loss(A):
        assert isinstance(A, sp.csr_matrix) and sp.issparse(A) and sp.isspmatrix(A)
        assert (A * V).shape == (6,) and A.sum(axis=0).shape == (1, 4)
        return np.sum((A.T * A) ** 2 @ V) + A.multiply(A).sum()

    D = plain.toarray()
    want = wg.grad(lambda D: np.sum((D.T @ D) @ (D.T @ D) @ V) + np.sum(D * D))(D)
    np.testing.assert_allclose(wg.grad(loss)(plain).toarray(), want * (D != 0), rtol=1e-12)


@pytest.mark.filterwarnings("ignore:Changing the sparsity structure")
def test_elements_are_assigned(rng):
    plain = example("coo", rng).tocsr()

    def assigned(A, x):
        A[0, 3] = x[0] ** 2
        A[2:4, 1] = x[1]
        A[[4, 5], [1, 3]] = x[:2] * 3.0
        A.setdiag(np.sin(x))
        return A

    x = rng.normal(size=3)
    want = assigned(plain.copy(), x)
    got = wg.jit(lambda d, x: assigned(ws.as_sparse(plain).with_data(d), x))(plain.data, x)
    np.testing.assert_allclose(got.toarray(), want.toarray())
    np.testing.assert_allclose(
        wg.grad(lambda x: weighted(assigned(ws.as_sparse(plain), x)))(x),
        wg.grad(lambda x: weighted(_dense_assigned(plain.toarray(), x)))(x),
        rtol=1e-12,
    )


def _dense_assigned(D, x):
    D = wg.tensor(D)
    D[0, 3] = x[0] ** 2
    D[2:4, 1] = x[1]
    D[[4, 5], [1, 3]] = x[:2] * 3.0
    for i in range(3):
        D[i, i] = np.sin(x[i])
    return D


CONSTRUCTIONS = {
    "hstack": lambda sp, A, x: sp.hstack([A, OTHER, A]),
    "vstack": lambda sp, A, x: sp.vstack([A, A], format="csc"),
    "blocks": lambda sp, A, x: sp.block_array([[A, None], [None, A.T], [x[:4, None].T, None]]),
    "bmat": lambda sp, A, x: sp.bmat([[A, A], [OTHER, None]]),
    "block_diag": lambda sp, A, x: sp.block_diag([A, x[None, :], OTHER]),
    "kron": lambda sp, A, x: sp.kron(A, OTHER),
    "kron dense": lambda sp, A, x: sp.kron(A.T, x[:, None]),
    "kronsum": lambda sp, A, x: sp.kronsum(A[:4], sp.diags_array(x)),
    "tril": lambda sp, A, x: sp.tril(A, -1),
    "triu": lambda sp, A, x: sp.triu(A, format="csc"),
    "find": lambda sp, A, x: sp.find(A)[2],
    "diags": lambda sp, A, x: sp.diags([x, x[1:] ** 2], [0, 1]),
    "diags of numbers": lambda sp, A, x: sp.diags(
        [x[0], 2.0, x[1]], [-1, 0, 2], shape=(5, 6), format="csr"
    ),
    "diags_array": lambda sp, A, x: sp.diags_array([x[:3], x[:2]], offsets=[-1, 2]),
    "one diagonal": lambda sp, A, x: sp.diags_array(x) @ A,
}


@pytest.mark.parametrize("name", CONSTRUCTIONS)
def test_construction(name, rng):
    make, x = CONSTRUCTIONS[name], rng.normal(size=6)
    plain = example("csr", rng)
    plain.sum_duplicates()
    pattern = ws.as_sparse(plain)

    def made(data, x):
        return make(sp, pattern.with_data(data), x)

    def loss(data, x):
        return weighted(made(data, x))

    def plain_loss(data, x):
        return weighted(make(sp, pattern.scipy_array(data), x))

    want, got = make(sp, plain, x), wg.jit(made)(plain.data, x)
    assert type(got) is type(want)
    np.testing.assert_allclose(as_dense(got), as_dense(want), rtol=1e-13)
    gradient = wg.grad(loss, argnums=(0, 1))
    for bars in (gradient(plain.data, x), wg.jit(gradient)(plain.data, x)):
        dots = [rng.normal(size=bar.shape) for bar in bars]
        moved = [plain_loss(plain.data + h * dots[0], x + h * dots[1]) for h in (1e-6, -1e-6)]
        slope = sum(np.sum(bar * dot) for bar, dot in zip(bars, dots, strict=True))
        np.testing.assert_allclose(slope, (moved[0] - moved[1]) / 2e-6, rtol=1e-6, atol=1e-7)


POINTS = ([1, 3, 5],)


def _changed(A):
    A = A + 0.0 * A
    A += A
    A *= 2.0
    A /= 3.0
    A -= A.T
    A.data *= 2
    A.data[:3] = A.data[3:6] ** 2
    return (A @ W).sum()


def _repeated(A):
    y = W
    for _ in range(20):
        y = 0.3 * (A @ y)
    return y.sum()


def _checked(A):
    assert isinstance(A, sp.csr_array) and isinstance(A, sp.sparray) and sp.issparse(A)
    assert not isinstance(A, sp.csc_array) and not isinstance(A, sp.csr_matrix)
    return A.sum()


USES = {
    "row": lambda A: A[2] @ W,
    "vector": lambda A: sp.coo_array((A.data[:3], POINTS), shape=(6,)) @ W,
    "product with a vector": lambda A: (
        A @ sp.csr_array(sp.coo_array((A.data[:3], POINTS), shape=(6,)))
    ).sum(),
    "np.sum": lambda A: np.sum(A) + np.sum(np.sqrt(A).data) + np.abs(A).sum(),
    "np.matmul": lambda A: np.sum(np.matmul(FULL.T, A)) + np.multiply(2.0, A).sum(),
    "ufuncs of tensors": lambda A: np.sum(np.matmul(A.data[0] * FULL.T, A)),
    "numbers": lambda A: (np.float64(2.0) * A + 2 * A).sum() + (A.data[0] * A).sum(),
    "dense": lambda A: (W * A).sum() + (np.ones((6, 6)) + A).sum() + (np.ones((6, 6)) - A).sum(),
    "arrays of SciPy": lambda A: (
        (SQUARE @ A).sum() + (SQUARE.T @ A).sum() + (SQUARE * A).sum() + (SQUARE + A).sum()
    ) + SQUARE.dot(A).sum() + (sp.eye_array(6) - A).sum(),
    "changes": _changed,
    "repeated product": _repeated,
    "loop": lambda A: wg.fori_loop(0, 5, lambda i, y: 0.1 * (A @ y), W).sum(),
    "rows": lambda A: sum(row @ W for row in A),
    "classes": _checked,
    "copies": lambda A: sp.csr_matrix(A).dot(W).sum() + sp.csr_array(A, copy=True).sum(),
    "dense determinant": lambda A: np.linalg.det(A.toarray() + np.eye(6)),
    "complex": lambda A: (A * 1j).T.conj().imag.sum(),
}  # fmt: skip


@pytest.mark.parametrize("name", USES)
def test_uses(name, rng):
    use = USES[name]
    gradient, compiled = wg.grad(use)(SQUARE), wg.jit(wg.grad(use))(SQUARE)
    np.testing.assert_allclose(compiled.data, gradient.data, rtol=1e-12, atol=1e-13)
    tangent = rng.normal(size=SQUARE.nnz)
    run = wg.jit(use)
    ends = [run(_with(SQUARE, SQUARE.data + h * tangent)) for h in (1e-6, -1e-6)]
    if "np.matmul" not in name and "ufunc" not in name:  # which SciPy's arrays do not have
        np.testing.assert_allclose(run(SQUARE), use(SQUARE.copy()), rtol=1e-12, atol=1e-12)
    slope = (ends[0] - ends[1]) / 2e-6
    np.testing.assert_allclose(gradient.data @ tangent, slope, rtol=1e-5, atol=1e-7)


def _with(plain, data):
    return type(plain)((data, plain.indices, plain.indptr), shape=plain.shape)


def test_functions_imported_from_scipy(rng):
    A, b = (SQUARE + 9.0 * sp.eye_array(6)).tocsc(), rng.normal(size=6)
    want = -np.outer(spsolve(A.T, np.ones(6)), spsolve(A, b))[A.tocoo().coords]

    def solution(data):
        return spsolve(make_csc((data, A.indices, A.indptr)), b).sum()

    def by_names(data):
        return sp.linalg.spsolve(sp.csc_array((data, A.indices, A.indptr)), b).sum()

    for f in (solution, by_names):
        np.testing.assert_allclose(wg.grad(f)(A.data), want, rtol=1e-11)
        np.testing.assert_allclose(wg.jit(wg.grad(f))(A.data), want, rtol=1e-11)


def test_conversions_that_would_lose_a_derivative_are_refused():
    with pytest.raises(ConversionError, match="toarray"):
        wg.grad(lambda A: np.asarray(A).sum())(SQUARE)
    plain = sp.lil_array(sp.eye_array(4))
    with pytest.raises(ConversionError, match="or assign to its lil_array"):
        wg.grad(lambda x: plain.__setitem__((0, 0), x[0]))(V)
    with pytest.raises(ConversionError, match="use the operator"):
        wg.grad(lambda A: SQUARE.multiply(A).sum())(SQUARE)


def test_changes_that_depend_on_values_are_refused(rng):
    plain = example("csr", rng)
    refused = {
        "eliminate_zeros": lambda A: A.eliminate_zeros(),
        "gt": lambda A: A > 0,
        "nonzero": lambda A: A.nonzero(),
        "quotient": lambda A: A / A,
    }
    for name, change in refused.items():
        with pytest.raises(ConversionError, match=name):
            wg.grad(lambda d, change=change: change(ws.as_sparse(plain).with_data(d)))(plain.data)
    with pytest.raises(TraceError, match="not known while a graph is built"):
        wg.jit(lambda d, i: ws.as_sparse(plain).with_data(d)[i, 0], source=False)(plain.data, 1)
    with pytest.raises(ShapeError, match="last length of A"):
        wg.grad(lambda d: np.sum(ws.as_sparse(plain).with_data(d) @ W))(plain.data)
    with pytest.raises(ConversionError, match="use the operator"):
        wg.grad(lambda x: plain.multiply(x).sum())(V)
    with pytest.raises(NotImplementedError, match="would not stay zero"):
        wg.grad(lambda d: ws.as_sparse(plain).with_data(d).power(-1).sum())(plain.data)


def test_copies_and_files(rng):
    A = ws.as_sparse(example("csr", rng)).with_data(wg.tensor(rng.normal(size=8)))
    for B in (copy.copy(A), copy.deepcopy(A), pickle.loads(pickle.dumps(A)), A.copy()):
        assert type(B) is type(A) and B.structure == A.structure
        np.testing.assert_array_equal(B.numpy().toarray(), A.numpy().toarray())
    assert "with 8 stored elements" in repr(A) and A.nnz == 8 and A.shape == (6, 4)
    assert not A.has_canonical_format
    A.sum_duplicates()
    assert A.has_canonical_format and A.has_sorted_indices and A.nnz == 7
