"""Loops that read by index arrays: cotangents are added at the positions, which may repeat."""

from __future__ import annotations

import numpy as np
import pytest

import wengert as wg
from wengert.testing import check_grads

N = 90


def _rng():
    return np.random.default_rng(0)


def rows_of_a_table(x):
    """Rows chosen by an array with repetitions, in each step."""
    table, total = x.reshape(30, 3), 0.0
    where = np.array([[0, 29, 0], [-1, 5, 5], [7, 7, 7]])
    for t in range(12):
        total = total + np.sin(table[where[t % 3]] * (t + 1)).sum()
    return total


def sparse_product(x):
    """NPBench's sparse product: rows of different lengths, one of them empty."""
    starts = np.array([0, 3, 3, 7, 8, 8, 12, 14, 15, 16, 20])
    columns = np.array([0, 0, 5, 89, 1, 1, 1, 4, 3, 2, 2, 88, 7, 7, 7, 0, 9, 9, 8, 8])
    values, y = np.linspace(0.5, 2.0, 20), np.zeros(10)
    for i in range(10):
        chosen = columns[starts[i] : starts[i + 1]]
        y[i] = (values[starts[i] : starts[i + 1]] * x[starts[i]]) @ np.tanh(x[chosen])
    return (y**2).sum()


def gathered_and_written(x):
    """An array that is read by an index array and written in the same step."""
    x = x.copy()
    which = np.array([3, 3, 80, 80, 4])
    for i in range(1, 20):
        x[i] = x[which].sum() * x[i - 1] + x[which[i % 5]] ** 2
    return x.sum()


def as_many_as_it_has(x):
    """A permutation in each step."""
    order = np.roll(np.arange(N), 7)
    for t in range(11):
        x = np.sin(x[order]) + x * (0.1 * t)
    return (x**2).sum()


def never(x):
    """No steps."""
    which = np.array([1, 1, 2])
    total = x.sum()
    for t in range(len(x) - N):
        total = total + x[which].sum() * t
    return total


FUNCTIONS = [rows_of_a_table, sparse_product, gathered_and_written, as_many_as_it_has, never]


@pytest.mark.sample(1)
@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_compiled_gradients_are_those_of_eager_runs(f):
    x = _rng().uniform(0.1, 0.9, N)
    gradient = wg.grad(f)
    assert np.allclose(wg.jit(f)(x), f(x), rtol=1e-13, atol=0)
    assert np.allclose(wg.jit(gradient)(x), gradient(x), rtol=1e-12, atol=1e-14)
    check_grads(wg.jit(f), (x,), order=1)


@pytest.mark.sample(2)
@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_second_derivatives(f):
    x, v = _rng().uniform(0.1, 0.9, N), _rng().normal(size=N)
    product = lambda x: wg.hvp(f, (x,), (v,))  # noqa: E731
    by_reverse = wg.jit(wg.grad(lambda x: (wg.grad(f)(x) * v).sum()))
    want = product(x)
    assert np.allclose(by_reverse(x), want, rtol=1e-10, atol=1e-12)
    assert np.allclose(wg.jit(product)(x), want, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("f", [rows_of_a_table, sparse_product], ids=lambda f: f.__name__)
def test_batches(f):
    x = _rng().uniform(0.1, 0.9, (4, N))
    got = wg.jit(wg.vmap(wg.grad(f)))(x)
    assert np.allclose(got, [wg.grad(f)(row) for row in x], rtol=1e-12, atol=1e-14)


def _operations(graph):
    found = [n.op.name for n in graph.nodes]
    for n in graph.nodes:
        for inner in (n.params.get("body"), *n.params.get("branches", ())):
            found += _operations(inner) if inner is not None else []
    return found


@pytest.mark.parametrize("f", [rows_of_a_table, sparse_product, gathered_and_written])
def test_no_step_makes_an_array_of_the_size_of_the_operand(f):
    names = _operations(wg.jit(wg.grad(f)).lower(np.ones(N)).graph)
    assert "scatter_add" in names
    assert "scatter" not in names


def stencil(x):
    """Slices that are used several times in a step."""
    x = x.reshape(9, 10).copy()
    for _ in range(9):
        inner = x[1:-1, 1:-1]
        a = x[2:, 1:-1] - 2.0 * x[1:-1, 1:-1] + x[:-2, 1:-1]
        b = x[1:-1, 2:] - 2.0 * x[1:-1, 1:-1] + x[1:-1, :-2]
        x[1:-1, 1:-1] = 0.1 * a + 0.2 * b * inner + x[1:-1, 1:-1]
    return np.sum(x**2)


def elements_used_twice(x):
    total = 0.0
    for i in range(1, N - 1):
        j = i - 1
        total = total + x[i] * x[i] + x[j] * x[i + 1] * x[i] + np.sin(total) * x[j]
    return total


@pytest.mark.sample(1)
@pytest.mark.parametrize("f", [stencil, elements_used_twice], ids=lambda f: f.__name__)
def test_cotangents_at_the_same_index_are_added_first(f):
    x, v = _rng().uniform(0.1, 0.9, N), _rng().normal(size=N)
    gradient = wg.grad(f)
    assert np.allclose(wg.jit(gradient)(x), gradient(x), rtol=1e-11, atol=1e-12)
    by_reverse = wg.jit(wg.grad(lambda x: (wg.grad(f)(x) * v).sum()))
    assert np.allclose(by_reverse(x), wg.hvp(f, (x,), (v,)), rtol=1e-9, atol=1e-10)
    (loop,) = [n for n in wg.jit(gradient).lower(x).graph if n.params.get("reverse")]
    stores = [n for n in loop.params["body"].nodes if n.op.name == "setitem"]
    assert len({(str(n.params["index"]), n.args[2:]) for n in stores}) == len(stores) - (
        f is stencil  # the primal that is restored
    )
