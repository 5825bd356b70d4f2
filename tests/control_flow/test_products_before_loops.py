"""Products of loop-invariant arrays, for all steps of a loop before it."""

from __future__ import annotations

import numpy as np
import pytest

import wengert as wg

K, M = 64, 280
A = np.random.default_rng(0).normal(size=(K, M))
B = np.random.default_rng(1).normal(size=(K, M))


def symmetric(a, b):
    """NPBench's covariance."""
    c = np.zeros((M, M))
    for i in range(M):
        c[i:M, i] = c[i, i:M] = a[:, i] @ a[:, i:M] / 3.0
    return c


def shifted(a, b):
    c = np.eye(M)
    for i in range(M - 1):
        c[i, i + 1 : M] = a[:, i] @ b[:, i + 1 : M]
    return c


def backwards(a, b):
    c = np.zeros((M, M))
    for i in range(M - 1, 0, -1):
        c[i, :i] = a[:, i] @ b[:, :i][:, ::-1]
    return c


def from_the_end(a, b):
    c = np.zeros((M, M))
    for i in range(M):
        c[i] = np.dot(b.T[i], a) + a[:, -1 - i] @ b
    return c


def recurrence(a, b):
    y = np.zeros(M)
    for i in range(1, M):
        y = 0.5 * y + a[:, i] @ b * np.sin(y)
    return y


def by_einsum(a, b):
    c = np.zeros((M, M))
    for i in range(M):
        c[i] = np.einsum("kj,k->j", b, a[:, i])
    return c


HOISTED = [symmetric, shifted, recurrence, by_einsum, from_the_end]


def changed_in_the_loop(a, b):
    a = a.copy()
    for i in range(M - 1):
        a[:, i + 1] += 0.01 * np.mean(a[:, i] @ b)
    return a


def few_steps(a, b):
    y = np.zeros(M)
    for i in range(20):
        y = 0.5 * y + a[:, i] @ b
    return y


def triangular_sums(a, b):
    y = np.zeros(M)
    for i in range(K):
        y = 0.5 * y + a[i:, i] @ b[i:]
    return y


def outer(a, b):
    total = np.zeros((K, M))
    for i in range(M):
        total = total + np.einsum("k,j->kj", a[:, i], b[i % K])
    return total


def no_steps(a, b):
    c = np.zeros((M, M))
    for i in range(len(a) - K):
        c[i] = a[:, i] @ b
    return c


def large_products(a, b):
    y = np.zeros(3 * M)
    wide = np.concatenate([b] * 3, axis=1)
    for i in range(3 * M):
        y = 0.5 * y + wide[:, i] @ wide
    return y


KEPT = [changed_in_the_loop, few_steps, triangular_sums, outer, large_products, no_steps]
ALL = [*HOISTED, *KEPT, backwards]


def _products(graph):
    """The products in bodies of loops."""
    found = []
    for n in graph.nodes:
        for inner in (n.params.get("body"), *n.params.get("branches", ())):
            if inner is not None:
                found += [x for x in inner.nodes if x.op.kind == "contraction"]
                found += _products(inner)
    return found


@pytest.mark.sample(2)
@pytest.mark.parametrize("f", ALL, ids=lambda f: f.__name__)
def test_values_and_gradients(f):
    np.testing.assert_allclose(wg.jit(f)(A, B), f(A, B), rtol=1e-10, atol=1e-11)
    gradient = wg.grad(lambda a, b: np.sum(np.sin(f(a, b))), argnums=(0, 1))
    for got, want in zip(wg.jit(gradient)(A, B), gradient(A, B), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("f", HOISTED[:4], ids=lambda f: f.__name__)
def test_no_products_in_the_loop(f):
    graph = wg.trace(f)(A, B)
    assert not _products(graph)
    assert "einsum" in [n.op.name for n in graph]


@pytest.mark.parametrize("f", KEPT[:5], ids=lambda f: f.__name__)
def test_products_that_stay(f):
    assert _products(wg.trace(f)(A, B))


def test_fori_loop_and_scan():
    def by_fori_loop(a, b):
        def step(i, c):
            c[i] = a[:, i] @ b
            return c

        return wg.fori_loop(0, M, step, np.zeros((M, M)))

    def by_scan(a, b):
        return wg.scan(lambda _, i: (None, a[:, i] @ b), None, np.arange(M))[1]

    for f in (by_fori_loop, by_scan):
        graph = wg.trace(f)(A, B)
        assert not _products(graph)
        np.testing.assert_allclose(graph(A, B), A.T @ B, rtol=1e-12, atol=1e-12)


def test_infinite_elements_that_are_not_used_have_no_effect():
    a, b = A.copy(), B.copy()
    b[:, 0] = np.inf  # shifted reads b[:, 1:]

    def f(a, b):
        return np.sum(np.sin(shifted(a, b)))

    gradient = wg.grad(f, argnums=(0, 1))
    np.testing.assert_allclose(wg.jit(f)(a, b), f(a, b), rtol=1e-10)
    for got, want in zip(wg.jit(gradient)(a, b), gradient(a, b), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-8, atol=1e-8)


def test_batches_and_tangents():
    many = np.stack([A, A[::-1]])
    got = wg.jit(wg.vmap(shifted, (0, None)))(many, B)
    np.testing.assert_allclose(got, [shifted(a, B) for a in many], rtol=1e-10, atol=1e-11)
    _, tangent = wg.jit(lambda a, t: wg.jvp(lambda a: shifted(a, B), (a,), (t,)))(A, B)
    np.testing.assert_allclose(tangent, shifted(B, B) - np.eye(M) * 1.0, rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize("kind", ["float32", "complex128"])
def test_other_dtypes(kind):
    a = (A + 1j * B if kind == "complex128" else A).astype(kind)
    b = B.astype("float32" if kind == "float32" else "float64")

    def f(a, b):
        y = 0.0 * a[0]
        for i in range(M):
            y = 0.5 * y + (a[:, i] @ b)
        return y

    got, want = wg.jit(f)(a, b), f(a, b)
    assert got.dtype == want.dtype
    np.testing.assert_allclose(got, want, rtol=1e-4 if kind == "float32" else 1e-11)
