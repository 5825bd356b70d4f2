"""Contractions with a factor that is the same along some axes: the other factor is summed first."""

import numpy as np
import pytest
from wengert.rewrite import simplify

import wengert as wg

RNG = np.random.default_rng(31)
COLUMN, ROW, MATRIX = RNG.normal(size=(5, 1)), RNG.normal(size=4), RNG.normal(size=(6, 4))

CASES = {
    "equal rows": lambda c, r, x: np.einsum("ij,kj->ik", np.broadcast_to(r, (5, 4)), x),
    "equal columns": lambda c, r, x: np.einsum("ij,kj->ik", np.broadcast_to(c, (5, 4)), x),
    "one number": lambda c, r, x: np.einsum("ij,kj->ik", np.broadcast_to(c[2, 0], (5, 4)), x),
    "ones": lambda c, r, x: np.einsum("ij,kj->ik", np.ones((5, 4)), x),
    "second factor": lambda c, r, x: np.einsum("kj,ij->ki", x, np.broadcast_to(c, (5, 4))),
    "transposed": lambda c, r, x: np.einsum("ij,kj->ki", np.broadcast_to(c, (5, 4)), x),
    "both": lambda c, r, x: np.einsum(
        "ij,kj->ik", np.broadcast_to(c, (5, 4)), np.broadcast_to(r, (6, 4))
    ),
    "a batch": lambda c, r, x: np.einsum(
        "bij,bkj->bik", np.broadcast_to(r, (3, 5, 4)), np.stack([x, 2 * x, x * x])
    ),
    "to a vector": lambda c, r, x: np.einsum("ij,kj->i", np.broadcast_to(c, (5, 4)), x),
    "to a number": lambda c, r, x: np.einsum("ij,kj->", np.ones((5, 4)), x),
    "a sum of one factor": lambda c, r, x: np.einsum("ij,kl->kl", np.ones((5, 2)), x),
    "an empty sum": lambda c, r, x: np.einsum(
        "ij,kj->ik", np.broadcast_to(c[0, 0], (5, 0)), x[:, :0]
    ),
    "no rows": lambda c, r, x: np.einsum("ij,kj->ik", np.ones((0, 4)), x),
}


@pytest.mark.parametrize("name", CASES)
def test_the_same_numbers(name):
    graph, wanted = wg.trace(CASES[name])(COLUMN, ROW, MATRIX), CASES[name](COLUMN, ROW, MATRIX)
    for f in (simplify(graph), wg.jit(CASES[name])):
        np.testing.assert_allclose(f(COLUMN, ROW, MATRIX), wanted, rtol=1e-12, atol=1e-12)


def products(graph):
    """The products of two matrices among the contractions."""
    found = [n for n in graph.nodes if n.op.name in ("einsum", "strong_einsum")]
    return [n for n in found if min(map(len, n.params["subscripts"][:2])) > 1]


@pytest.mark.parametrize("factor", [1.0, 1.5, 0.0])
def test_the_gradient_of_the_sum_of_a_product_has_no_product_of_matrices(factor):
    a, b, c = (RNG.normal(size=x) for x in ((5, 6), (6, 7), (7, 8)))
    gradient = wg.grad(lambda a, b, c, s: np.sum(s * a @ b @ c), (0, 1, 2))
    graph = simplify(wg.trace(gradient)(a, b, c, factor))
    assert not products(graph)
    up = np.ones((5, 8))
    wanted = factor * up @ c.T @ b.T, factor * a.T @ up @ c.T, factor * (a @ b).T @ up
    for got in (graph(a, b, c, factor), wg.jit(gradient)(a, b, c, factor)):
        for x, y in zip(got, wanted, strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-12)


def test_sizes_that_are_not_known():
    gradient = wg.jit(wg.grad(lambda a, b: np.sum(a @ b), (0, 1)))
    for m, k, n in ((3, 4, 5), (4, 5, 6), (7, 0, 2), (0, 3, 2), (300, 200, 100)):
        a, b = RNG.normal(size=(m, k)), RNG.normal(size=(k, n))
        for x, y in zip(
            gradient(a, b), (np.ones((m, n)) @ b.T, a.T @ np.ones((m, n))), strict=True
        ):
            np.testing.assert_allclose(x, y, rtol=1e-11, atol=1e-11)


def test_strong_zeros_of_a_broadcast():
    """A branch that is not taken has the cotangent 0, which an infinite factor does not change."""
    b = np.array([[1.0, np.inf], [2.0, 3.0]])

    def f(s, a):
        return np.where(s > 0, np.sum(a @ b), np.sum(a))

    found = wg.jit(wg.grad(f, 1))(-1.0, np.ones((2, 2)))
    np.testing.assert_array_equal(found, np.ones((2, 2)))


def test_the_gradient_of_the_square_of_a_product_computes_the_product_once():
    """Twice a product is not a product of twice a factor: that would be one more."""
    a, b = RNG.normal(size=(3, 20, 16)), RNG.normal(size=(3, 24, 16))

    def f(a, b):
        return np.sum(np.exp(-0.01 * np.sum(np.einsum("kij,knj->kni", a, b) ** 2, axis=2)))

    gradient = wg.grad(f, (0, 1))
    graph = simplify(wg.trace(gradient)(a, b))
    assert len(products(graph)) == 3
    c = np.einsum("kij,knj->kni", a, b)
    up = -0.02 * c * np.exp(-0.01 * np.sum(c**2, axis=2, keepdims=True))
    wanted = np.einsum("kni,knj->kij", up, b), np.einsum("kni,kij->knj", up, a)
    for got in (graph(a, b), wg.jit(gradient)(a, b)):
        for x, y in zip(got, wanted, strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-11, atol=1e-12)
