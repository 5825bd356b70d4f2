"""lil_array and dok_array, whose elements are assigned one by one: numbers and tensors."""

import numpy as np
import pytest
import scipy.sparse as theirs

import wengert as wg
from wengert.errors import DtypeError, ShapeError, TraceError
from wengert.scipy import sparse
from wengert.scipy.sparse import linalg
from wengert.testing import check_grads

CLASSES = ["lil_array", "dok_array", "lil_matrix", "dok_matrix"]
V = np.array([1.5, -2.0, 0.5])
MASK = np.arange(12).reshape(3, 4) % 5 == 1

ASSIGNMENTS = {
    "element": ((0, 1), lambda v: v[0]),
    "negative": ((-1, -1), lambda v: v[1]),
    "row": ((1, slice(0, 3)), lambda v: v),
    "whole row": (2, lambda v: v[2] * np.ones(4)),
    "column": ((slice(None), 2), lambda v: v.reshape(3, 1)),
    "block": ((slice(0, 2), slice(1, 3)), lambda v: v[0] * np.arange(1.0, 5.0).reshape(2, 2)),
    "coordinates": (([0, 2, 1], [3, 0, 3]), lambda v: v * 2.0),
    "outer": ((np.array([[0], [2]]), np.array([1, 3])), lambda v: v[1] * np.ones((2, 2))),
    "broadcast": ((slice(None), 0), lambda v: v[2]),
    "mask": (MASK, lambda v: v[1]),
    "sparse": ((slice(0, 3), slice(0, 3)), lambda v: sparse.diags_array(v).tocsr()),
}


def assembled(make, v, names=tuple(ASSIGNMENTS), start=None):
    A = make((3, 4)) if start is None else make(start)
    A[1, 1] = 7.0
    for name in names:
        index, value = ASSIGNMENTS[name]
        A[index] = value(v)
        A[0, 0] = A[0, 0] + 1.0
    return A


@pytest.mark.parametrize("name", CLASSES)
@pytest.mark.parametrize("what", ASSIGNMENTS)
def test_assignments_are_those_of_scipy(name, what):
    start = theirs.random_array((3, 4), density=0.4, rng=np.random.default_rng(0))
    start = getattr(theirs, "csr_" + name[4:])(start)
    want = assembled(getattr(theirs, name), V, [what], start)
    plain = assembled(getattr(sparse, name), V, [what], start)
    found = assembled(getattr(sparse, name), wg.tensor(V), [what], start)
    assert isinstance(plain, getattr(theirs, name)) and type(plain.tocsr()) is type(want.tocsr())
    for x in (plain, found):
        np.testing.assert_array_equal(x.toarray(), want.toarray())
        assert x.format == want.format and x.shape == want.shape and x.dtype == want.dtype


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", CLASSES)
def test_derivatives(name):
    make = getattr(sparse, name)
    names = [k for k in ASSIGNMENTS if k != "sparse"]

    def total(v):
        A = assembled(make, v * v, names)
        return np.sum(np.sin(A.tocsr() @ np.arange(4.0))) + np.sum(A.toarray() ** 2)

    check_grads(total, (V,), order=2)
    np.testing.assert_allclose(wg.jit(wg.grad(total))(V), wg.grad(total)(V), rtol=1e-12)
    rows = np.stack([V, 2.0 * V])
    np.testing.assert_allclose(
        wg.vmap(wg.grad(total))(rows), [wg.grad(total)(v) for v in rows], rtol=1e-12
    )


def test_the_last_assignment_counts():
    def element(v):
        A = sparse.dok_array((2, 2))
        A[0, 0] = v[0]
        A[0, 0] = v[1]
        A[[1, 1], [0, 0]] = v[:2]
        return A[0, 0] + 10.0 * A[1, 0]

    assert wg.grad(element)(V).tolist() == [0.0, 11.0, 0.0]


def test_assembly_of_a_chain():
    """Springs in a row: elements are added in a loop, and the system is solved; SciPy's names."""

    def displacement(k):
        A = theirs.lil_matrix((4, 4))
        for e in range(4):
            A[e, e] += k[e]
            if e:
                A[e - 1, e - 1] += k[e]
                A[e, e - 1] -= k[e]
                A[e - 1, e] -= k[e]
        return linalg.spsolve(A.tocsc(), np.ones(4))[-1]

    k = np.array([1.0, 2.0, 3.0, 4.0])
    loads = np.array([4.0, 3.0, 2.0, 1.0])
    np.testing.assert_allclose(displacement(k), np.sum(loads / k), rtol=1e-12)
    np.testing.assert_allclose(wg.grad(displacement)(k), -loads / k**2, rtol=1e-12)


@pytest.mark.parametrize("form", ["csr", "coo", "dia"])
def test_conversions(form):
    A = sparse.csr_array((wg.tensor(V), ([0, 1, 1], [1, 0, 2])), shape=(3, 4)).asformat(form)
    for there in (A.tolil(), A.todok(), A.tolil().todok().tolil()):
        assert there.format in ("lil", "dok")
        np.testing.assert_array_equal(there.toarray(), A.toarray())
        assert there.tocsr().format == "csr" and there.tobsr().format == "bsr"
        copied = there.copy()
        copied[0, 0] = 5.0
        assert there[0, 0] == 0.0 and copied[0, 0] == 5.0 and copied.nnz == there.nnz + 1


def test_results_and_arguments_of_transformed_functions():
    def made(v):
        A = sparse.lil_array((2, 2))
        A[0, :] = v[:2]
        return A

    for result in (wg.jit(made)(V), wg.vjp(made, V)[0]):
        np.testing.assert_array_equal(result.toarray(), [[1.5, -2.0], [0.0, 0.0]])
    A = theirs.eye_array(2).tolil()
    B = sparse.lil_array(A)
    np.testing.assert_array_equal(wg.grad(lambda B: np.sum(3.0 * (B @ V[:2])))(B).data, 3 * V[:2])


def test_functions_of_sparse():
    A = assembled(sparse.lil_array, wg.tensor(V))
    plain = assembled(theirs.lil_array, V)
    for function in (
        lambda m, a: m.kron(a, a),
        lambda m, a: m.hstack([a, a]),
        lambda m, a: m.block_array([[a, None], [None, a]]),
        lambda m, a: (a + a) * 2.0 - a.T.T,
        lambda m, a: m.csr_array(a).T @ a,
        lambda m, a: a[1:, [0, 2]],
    ):
        want = function(theirs, plain).toarray()
        np.testing.assert_allclose(function(sparse, A).toarray(), want, rtol=1e-12)
    np.testing.assert_allclose(A.sum(axis=0), plain.sum(axis=0))
    np.testing.assert_allclose(linalg.norm(A), np.linalg.norm(plain.toarray()))
    assert "List of Lists sparse array" in repr(A) and sparse.issparse(A)


def test_the_diagonal():
    for values in (V, wg.tensor(V)):
        A = sparse.lil_array((3, 4))
        A[0, 0] = values[0]
        A.setdiag(values, 1)
        A.setdiag(2.0, -1)
        want = np.diag(V, 1)[:3] + np.diag([2.0, 2.0, 0.0], -1)[:3]
        np.testing.assert_array_equal(A.toarray(), want + np.diag([1.5, 0.0, 0.0, 0.0])[:3])


def test_the_interface_of_a_dict():
    A = sparse.dok_array((2, 3))
    A[1, 2] = wg.tensor(3.0)
    A[0, 1] = 2.0
    assert sorted(A.keys()) == [(0, 1), (1, 2)] and (1, 2) in A and (0, 0) not in A
    assert [float(x) for x in A.values()] == [3.0, 2.0] and len(A) == 2
    assert A.get((0, 0)) == 0.0 and A.get((0, 0), 5.0) == 5.0 and A.setdefault((0, 1), 9.0) == 2.0
    del A[1, 2]
    assert [key for key, _ in A.items()] == [(0, 1)]
    vector = sparse.dok_array((4,))
    vector[1] = wg.tensor(2.0)
    np.testing.assert_array_equal(vector.toarray(), [0.0, 2.0, 0.0, 0.0])


def test_what_is_refused():
    A = sparse.lil_array((2, 2))
    A[0, 0] = wg.tensor(1.0)
    with pytest.raises(DtypeError, match="dtype=complex"):
        A[0, 1] = wg.tensor(1j)
    with pytest.raises(IndexError):
        A[2, 0] = wg.tensor(1.0)
    with pytest.raises(IndexError):
        A[0, 0, 0] = 1.0
    with pytest.raises(ShapeError, match="must be equal"):
        A[:, :] = theirs.eye_array(3)
    with pytest.raises(TraceError, match="not known"):
        wg.jit(lambda i: A.__setitem__((i, 0), 1.0))(np.array(1))
    B = sparse.lil_array((2, 2), dtype=complex)
    B[0, 1] = wg.tensor(1j)
    assert B.toarray()[0, 1] == 1j
