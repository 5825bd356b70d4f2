"""Orders of the entries: rows, columns, given positions, triangles."""

import numpy as np
import pytest

import wengert as wg
from wengert.errors import ArgumentError, ShapeError


def tridiagonal(x):
    return np.concatenate([x[1:] * x[:-1], x[:1] ** 3])


def chain(x, weight=1.0):
    return np.sum(weight * np.sin(x[1:]) * x[:-1] ** 2)


DERIVATIVES = [
    (wg.sparse_jacobian, wg.jacobian, tridiagonal),
    (wg.sparse_hessian, wg.hessian, chain),
]


@pytest.mark.sample(4)
@pytest.mark.parametrize(("sparse", "dense", "f"), DERIVATIVES)
@pytest.mark.parametrize("order", ["csr", "csc"])
@pytest.mark.parametrize("triangle", [None, "lower", "upper"])
def test_orders_and_triangles(rng, sparse, dense, f, order, triangle):
    x = rng.normal(size=6)
    whole = dense(f)(x)
    part = {None: whole, "lower": np.tril(whole), "upper": np.triu(whole)}[triangle]
    for format in ("csr", "csc", "coo"):
        derivative = sparse(f, order=order, triangle=triangle, format=format)
        found = derivative(x)
        assert found.format == format
        np.testing.assert_allclose(found.toarray(), part, rtol=1e-13)
    plan = derivative.plan(x)
    keys = (plan.rows, plan.cols) if order == "csc" else (plan.cols, plan.rows)
    assert np.array_equal(np.lexsort(keys), np.arange(plan.nnz))
    np.testing.assert_allclose(plan.values(x), whole[plan.rows, plan.cols], rtol=1e-13)
    outer = plan.rows if order == "csr" else plan.cols
    assert np.array_equal(np.repeat(np.arange(6), np.diff(plan.indptr)), outer)
    assert np.array_equal(plan.indices, plan.cols if order == "csr" else plan.rows)


@pytest.mark.sample(2)
@pytest.mark.parametrize(("sparse", "dense", "f"), DERIVATIVES)
@pytest.mark.parametrize("triangle", [None, "lower"])
def test_given_positions(rng, sparse, dense, f, triangle):
    x = rng.normal(size=6)
    plan = sparse(f, triangle=triangle).plan(x)
    extra = [4, 5], [0, 1]  # not in the pattern
    mixed = rng.permutation(plan.nnz + 2)
    rows = np.concatenate([plan.rows, extra[0]])[mixed]
    cols = np.concatenate([plan.cols, extra[1]])[mixed]
    derivative = sparse(f, order="coo", rows=list(rows), cols=cols, triangle=triangle)
    whole = dense(f)(x)
    np.testing.assert_allclose(derivative.values(x), whole[rows, cols], rtol=1e-13)
    assert np.array_equal(derivative.plan(x).rows, rows)
    part = whole if triangle is None else np.tril(whole)
    for format in ("csr", "coo"):
        matrix = derivative.plan(x).matrix(derivative.values(x), format)
        np.testing.assert_allclose(matrix.toarray(), part, rtol=1e-13)
    slope = wg.grad(lambda x: np.sum(np.sin(derivative.values(x))))(x)
    expected = wg.grad(lambda x: np.sum(np.sin(dense(f)(x)[rows, cols])))(x)
    np.testing.assert_allclose(slope, expected, rtol=1e-12)


def test_passes_and_containers(rng):
    x = rng.normal(size=4)

    def f(x):  # a sort has no diagonals
        return {"a": np.sort(x[:2]) * x[2], "b": x * x}

    whole = wg.jacobian(f)(x)
    found = wg.sparse_jacobian(f, order="csc")(x)
    for name in ("a", "b"):
        np.testing.assert_allclose(found[name].toarray(), whole[name], rtol=1e-13)
    plan = wg.sparse_jacobian(f, order="csc").plan(x)
    stacked = np.concatenate([whole["a"], whole["b"]])
    np.testing.assert_allclose(plan.values(x), stacked[plan.rows, plan.cols], rtol=1e-13)


def test_a_lagrangian_with_its_multipliers(rng):
    """The Hessian as solvers of nonlinear programs ask for it."""

    def lagrangian(x, factor, multipliers):
        return factor * chain(x) + np.sum(multipliers * tridiagonal(x))

    x, multipliers = rng.normal(size=6), rng.normal(size=6)
    hess = wg.sparse_hessian(lagrangian, triangle="lower")
    plan = hess.plan(x, 1.0, multipliers)
    assert np.all(plan.rows >= plan.cols)
    for factor in (0.0, 1.0, -2.5):
        whole = wg.hessian(lagrangian)(x, factor, multipliers)
        values = plan.values(x, factor, multipliers)
        np.testing.assert_allclose(values, whole[plan.rows, plan.cols], rtol=1e-12, atol=1e-14)


def test_invalid_options(rng):
    x = rng.normal(size=6)
    rows, cols = [0, 0], [0, 1]
    for given, message in [
        ({"order": "rows"}, "order='rows' is not one of"),
        ({"triangle": "left"}, "triangle='left' is not one of"),
        ({"order": "coo"}, "rows and cols are needed"),
        ({"rows": rows, "cols": cols}, "allowed for no other order"),
        ({"order": "coo", "rows": rows, "cols": [0]}, "rows has 2 elements and cols 1"),
        ({"order": "coo", "rows": [0.5], "cols": [0]}, "rows must be a vector of integers"),
        ({"order": "coo", "rows": [[0]], "cols": [0]}, "rows must be a vector of integers"),
    ]:
        with pytest.raises(ArgumentError, match=message):
            wg.sparse_hessian(chain, **given)
    whole = wg.sparse_hessian(chain).plan(x)
    for rows, cols, message in [
        ([6], [0], r"rows\[0\], cols\[0\] = 6, 0 is outside"),
        ([0, 0], [0, -1], r"rows\[1\], cols\[1\] = 0, -1 is outside"),
        ([0, 0, 0], [0, 1, 0], r"rows\[2\], cols\[2\] = 0, 0 is given twice"),
        (whole.rows[1:], whole.cols[1:], r"1 entries of the pattern, such as \(0, 0\)"),
    ]:
        hess = wg.sparse_hessian(chain, order="coo", rows=rows, cols=cols)
        with pytest.raises(ArgumentError, match=message):
            hess(x)
    hess = wg.sparse_hessian(chain, order="coo", rows=[0], cols=[1], triangle="lower")
    with pytest.raises(ArgumentError, match="not in the lower triangle"):
        hess(x)
    with pytest.raises(ShapeError, match="the matrix is not square"):
        wg.sparse_jacobian(lambda x: x[1:] * x[0], triangle="upper")(x)
