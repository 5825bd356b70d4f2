"""Jacobians along all unit vectors at once are what single passes give, and exist in graphs."""

import numpy as np
import pytest

import wengert as wg
from wengert._engine.autodiff import jacobians, pullback

X = np.random.default_rng(0).normal(size=20)


def pair(x):
    return {"a": np.outer(x[:5], np.sin(x)), "b": np.cumsum(x) * x[0], "none": np.ones(2)}


def two(x, y):
    return np.tanh(x[:, None] * y), np.sum(x) * y


def of_complex(x):
    return np.abs(x) ** 2, np.sum(np.abs(x))


def holomorphic(x):
    return np.exp(x) * x[0], np.sum(np.abs(x))


def to_complex(x):
    return np.exp(1j * x) * x[0], x


CASES = [
    (wg.jacobian, pair, (X,)),
    (wg.jacrev, pair, (X,)),
    (lambda f: wg.jacobian(f, (0, 1)), two, (X, X[:3])),
    (lambda f: wg.jacobian(f, (0, 1), mode="rev"), two, (X, X[:3])),
    (wg.jacfwd, of_complex, (X + 1j * X[::-1],)),
    (wg.jacrev, of_complex, (X + 1j * X[::-1],)),
    (wg.jacfwd, holomorphic, (X + 1j * X[::-1],)),
    (wg.jacrev, to_complex, (X,)),
    (wg.jacfwd, to_complex, (X,)),
    (wg.hessian, lambda x: np.sum(np.sin(x) * x[0] ** 2) * np.max(x), (X,)),
    (wg.jacobian, lambda x: x[:0], (X,)),
    (wg.jacobian, lambda x: (x, x), (X,)),
    (wg.jacobian, lambda x: np.convolve(x, x), (X,)),
    (wg.jacobian, lambda x: np.where(x > 0, np.log(np.where(x > 0, x, 1.0)), 0.0 * x), (X,)),
    (wg.jacobian, lambda x: np.where(x > 0, np.sqrt(x), 0.0), (np.maximum(X, 0.0),)),
]


@pytest.mark.parametrize(("derivative", "f", "args"), CASES)
def test_all_at_once_is_one_after_the_other(derivative, f, args, monkeypatch):
    calls = []
    swept = pullback.map_over_batch
    monkeypatch.setattr(pullback, "map_over_batch", lambda *a: calls.append(1) or swept(*a))
    monkeypatch.setattr(jacobians, "is_faster_batched", lambda *a, **k: True)
    with np.errstate(all="ignore"):
        got = derivative(f)(*args)
        assert calls
        monkeypatch.setattr(jacobians, "is_faster_batched", lambda *a, **k: False)
        calls.clear()
        want = derivative(f)(*args)
        assert not calls
    for a, b in zip(leaves(got), leaves(want), strict=True):
        assert a.dtype == b.dtype
        assert a.flags.writeable
        np.testing.assert_allclose(a, b, rtol=1e-13, atol=1e-15)


def leaves(tree):
    return wg._engine.core.pytree.flatten(tree)[0]


def test_in_parts(monkeypatch):
    want = wg.jacobian(np.sin)(X)
    monkeypatch.setattr(pullback, "CHUNK", 13 * 20)
    assert np.array_equal(wg.jacobian(np.sin)(X), want)


def test_two_results_of_one_value_share_no_memory():
    a, b = wg.jacobian(lambda x: (x, x))(X)
    a += 1.0
    assert np.array_equal(b, np.eye(20))


def test_a_derivative_of_it():
    f = lambda x: np.sin(x) * x[0]  # noqa: E731
    got = wg.grad(lambda x: np.sum(wg.jacobian(f)(x) ** 2))(X)
    row = lambda k: wg.grad(lambda x: f(x)[k])  # noqa: E731
    want = wg.grad(lambda x: sum(np.sum(row(k)(x) ** 2) for k in range(20)))(X)
    np.testing.assert_allclose(got, want, rtol=1e-12)


def test_a_rule_that_looks_at_values_is_called_for_each(monkeypatch):
    @wg.primitive
    def doubled(x):
        return 2.0 * x

    @wg.extend.vjp(doubled)
    def _(g, out, x):
        return (2.0 * np.asarray(g) if np.asarray(g).any() else np.zeros(20),)

    try:
        assert np.array_equal(wg.jacrev(doubled)(X), 2.0 * np.eye(20))
    finally:
        del wg._engine.core.op.REGISTRY[doubled.name]


def test_hooks_see_each_row():
    seen = []

    def f(x):
        y = x * 2.0
        y.register_hook(lambda t: seen.append(np.array(t)))
        return y

    wg.jacrev(f)(X)
    assert np.array_equal(np.stack(seen), np.eye(20))


def test_loops_over_the_elements_of_large_arrays_stay_single(monkeypatch):
    def running(x):
        y = np.zeros_like(x)
        for i in range(20):
            y[i] = y[i - 1] * 0.5 + x[i] ** 2
        return y[:20]

    x = np.linspace(0.0, 1.0, 400)
    want = wg.jacrev(running)(x)
    monkeypatch.setattr(pullback, "map_over_batch", None)  # not called
    assert np.array_equal(wg.jacrev(running)(x), want)
    monkeypatch.undo()
    monkeypatch.setattr(pullback, "PARTIAL_ACCESS_LIMITS", (2000, 2000))
    np.testing.assert_allclose(wg.jacrev(running)(x), want, rtol=1e-13)


@pytest.mark.parametrize("derivative", [wg.jacobian, wg.jacfwd, wg.jacrev])
def test_in_a_graph_for_every_size(derivative):
    f = lambda x: np.sin(x) * np.sum(x)  # noqa: E731
    graph = wg.trace(derivative(f))(wg.spec("n"))
    for n in (1, 4, 20):
        np.testing.assert_allclose(graph(X[:n]), derivative(f)(X[:n]), rtol=1e-13)


def test_hessian_in_a_graph():
    f = lambda w, x: np.sum(np.tanh(x @ w) ** 2)  # noqa: E731
    graph = wg.trace(wg.hessian(f))(wg.spec("k"), wg.spec(("n", "k")))
    A = X.reshape(5, 4)
    np.testing.assert_allclose(graph(X[:4], A), wg.hessian(f)(X[:4], A), rtol=1e-12)
    assert max(n.level for n in graph.nodes) == 2


def test_several_inputs_in_a_graph():
    graph = wg.trace(wg.jacobian(two, (0, 1)))(wg.spec("m"), wg.spec("n"))
    got, want = graph(X, X[:3]), wg.jacobian(two, (0, 1))(X, X[:3])
    for a, b in zip(leaves(got), leaves(want), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-13)
