"""Sums of loops that start at what is added to them."""

import numpy as np
import pytest

import wengert as wg

X = np.linspace(-1.0, 2.0, 12).reshape(3, 4)
W = np.linspace(0.5, 1.5, 4)


def summed(step, x, w):
    start = x * w

    def each(total, i):
        return step(total, i, x, w), None

    total, _ = wg.scan(each, np.zeros((3, 4)), np.arange(5))
    return start + total


def added(total, i, x, w):
    return total + np.sin(x * i)


def added_by_rows(total, i, x, w):
    total[i % 3] += w * i
    total[1:, :2] -= x[1:, :2]
    return total


def added_in_an_inner_loop(total, i, x, w):
    def inner(total, k):
        total[k % 3, 1:] += x[0, 1:] * (i + k)
        return total, None

    return wg.scan(inner, total, np.arange(4))[0]


def added_to_computed_slices(total, i, x, w):
    total[:, : i % 4] += x[:, : i % 4] * w[: i % 4]
    return total


SUMS = [added, added_by_rows, added_in_an_inner_loop, added_to_computed_slices]


def cleared(total, i, x, w):
    total[0] = 0.0
    return total + x


def scaled(total, i, x, w):
    return total * 0.5 + x


def doubled(total, i, x, w):
    return total + total + x


def read(total, i, x, w):
    return total + np.sin(total[0, 0]) * x


def subtracted_from(total, i, x, w):
    return x - total


def moved(total, i, x, w):
    total[0] = total[1] + x[0]
    return total


OTHERS = [cleared, scaled, doubled, read, subtracted_from, moved]


def adds_after_loops(graph):
    loops = [k for k, n in enumerate(graph) if n.op.name == "scan"]
    assert loops
    return [n for n in list(graph)[loops[0] :] if n.op.name == "add"]


@pytest.mark.parametrize("step", SUMS + OTHERS)
def test_the_value_is_the_same(step):
    f = lambda x, w: summed(step, x, w)  # noqa: E731
    graph = wg.trace(f)(X, W)
    np.testing.assert_allclose(graph.simplify()(X, W), graph(X, W), rtol=1e-13)
    np.testing.assert_allclose(wg.jit(f)(X, W), graph(X, W), rtol=1e-13)


@pytest.mark.parametrize("step", SUMS)
def test_sums_start_at_the_value(step):
    graph = wg.trace(lambda x, w: summed(step, x, w))(X, W).simplify()
    assert not adds_after_loops(graph)


@pytest.mark.parametrize("step", OTHERS)
def test_other_loops_stay(step):
    graph = wg.trace(lambda x, w: summed(step, x, w))(X, W).simplify()
    assert len(adds_after_loops(graph)) == 1


def test_a_value_that_depends_on_the_loop_is_added_afterwards():
    def f(x):
        def each(carry, i):
            total, other = carry
            return (total + x * i, other * 0.5 + x), None

        (total, other), _ = wg.scan(each, (np.zeros((3, 4)), x), np.arange(5))
        return total + other

    graph = wg.trace(f)(X).simplify()
    assert len(adds_after_loops(graph)) == 1
    np.testing.assert_allclose(graph(X), f(X), rtol=1e-13)


def test_a_sum_that_is_used_twice_is_kept():
    def f(x):
        total, _ = wg.scan(lambda t, i: (t + x * i, None), np.zeros((3, 4)), np.arange(5))
        return total + x, total * 2.0

    graph = wg.trace(f)(X).simplify()
    for a, b in zip(graph(X), f(X), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-13)


def test_a_sum_that_another_result_reads_is_kept():
    def f(x):
        def each(total, i):
            return total + x * i, np.sum(total)

        total, rows = wg.scan(each, np.zeros((3, 4)), np.arange(5))
        return total + x, rows

    graph = wg.trace(f)(X).simplify()
    for a, b in zip(graph(X), f(X), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-13)


@pytest.mark.parametrize("step", SUMS)
def test_derivatives_after_the_rewriting(step):
    f = lambda x, w: np.sum(np.sin(summed(step, x, w)))  # noqa: E731
    graph = wg.trace(f)(X, W)
    for a, b in zip(
        graph.simplify().grad(argnums=(0, 1))(X, W), wg.grad(f, argnums=(0, 1))(X, W), strict=True
    ):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)
    hessian = wg.jit(wg.jacfwd(wg.grad(f, argnums=1), argnums=1))(X, W)
    np.testing.assert_allclose(hessian, wg.hessian(f, argnums=1)(X, W), rtol=1e-10, atol=1e-12)


def test_backward_loops_of_nests_accumulate_in_the_outer_sum():
    def f(x, w):
        y = np.zeros((9, 9))
        for i in range(9):
            for j in range(9):
                y[i, j] = np.sum(x[i : i + 2, j : j + 2] * w)
        return np.sum(y**2)

    x, w = np.random.default_rng(0).normal(size=(10, 10)), np.array([[1.0, 2.0], [-1.0, 0.5]])
    found = wg.jit(wg.grad(f, argnums=(0, 1)))(x, w)
    for a, b in zip(found, wg.grad(f, argnums=(0, 1))(x, w), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-13)
    graph = wg.trace(wg.grad(f, argnums=(0, 1)))(x, w).simplify()
    (loop,) = [n for n in graph if n.op.name == "scan" and n.params["reverse"]]
    sums = [n for n in loop.params["body"].nodes if n.op.name == "add" and n.spec.shape]
    assert not sums


def test_a_number_fills_the_sum():
    def f(x):
        total = np.zeros_like(x)
        for i in range(12):
            total[: i % 4] += x[: i % 4] * i
        return (total + 1.0) * 2.0, total.dtype

    graph = wg.trace(lambda x: f(x)[0])(X).simplify()
    assert not adds_after_loops(graph)
    np.testing.assert_allclose(graph(X), f(X)[0], rtol=1e-13)


ORDER = np.array([0, 3, 1, 4, 2, 5, 8, 6, 9, 7])


def rank_two_update(c, a, b, beta):
    """As NPBench's syr2k: cotangents of the factors are sums over slices and over elements."""
    c = c.copy()
    for i in range(len(a)):
        c[i, : i + 1] *= beta
        for q in range(a.shape[1]):
            k = ORDER[q]  # so that the loop remains one
            c[i, : i + 1] += a[: i + 1, k] * b[i, k] + b[: i + 1, k] * a[i, k]
    return np.sum(c)


def test_sums_over_slices_and_elements_start_at_the_outer_sum():
    rng = np.random.default_rng(1)
    args = rng.normal(size=(11, 11)), rng.normal(size=(11, 10)), rng.normal(size=(11, 10)), 1.5
    gradient = wg.grad(rank_two_update, argnums=(0, 1, 2))
    for got, want in zip(wg.jit(gradient)(*args), gradient(*args), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-13)
    (outer,) = [n for n in wg.jit(gradient).lower(*args).graph if n.op.name == "scan"]
    body = outer.params["body"]
    assert not [n for n in body.nodes if n.op.name == "full"]  # no zeros in a step
    assert not [n for n in body.nodes if n.op.name == "add" and n.spec.shape]
    (inner,) = [n for n in body.nodes if n.op.name == "scan"]
    # The cotangent of an array that only has something added is the same in all steps.
    carried = inner.args[-inner.params["carried"] :]
    assert all(n.spec.shape != (11, 11) for n in carried)
