"""Integers that become static because slices in loops have equal lengths for their values only."""

from __future__ import annotations

import numpy as np
import pytest

import wengert as wg


def smoothed(u, n, steps):
    """Means of neighbors; the slices have equal lengths unless they are clipped."""
    v = u.copy()
    for _ in range(steps):
        for i in range(1, n - 1):
            v[i, 1 : n - 1] = 0.5 * v[i - 1, 0 : n - 2] + 0.25 * v[i, 2:n] * u[i, 1 : n - 1]
    return v


def _is_masked(graph):
    names = {n.op.name for n in graph.nodes}
    for node in graph.nodes:
        bodies = [node.params.get("body"), *node.params.get("branches", ())]
        names |= {x for b in bodies if b is not None for x in _names(b)}
    return bool({"where", "less", "logical_and"} & names)


def _names(body):
    found = {n.op.name for n in body.nodes}
    for n in body.nodes:
        for inner in (n.params.get("body"), *n.params.get("branches", ())):
            if inner is not None:
                found |= _names(inner)
    return found


def test_the_program_computes_slices_and_no_masks():
    u = np.random.default_rng(0).normal(size=(12, 12))
    compiled = wg.jit(smoothed)
    assert np.allclose(compiled(u, 12, 9), smoothed(u, 12, 9), rtol=1e-14, atol=0)
    assert not _is_masked(compiled.lower(u, 12, 9).graph)


def test_many_values_share_one_program():
    u = np.random.default_rng(1).normal(size=(12, 12))
    compiled = wg.jit(smoothed)
    for n in range(3, 13):
        for _ in range(2):
            assert np.allclose(compiled(u, n, 9), smoothed(u, n, 9), rtol=1e-14, atol=0), n
    assert compiled.cache_info().programs <= 6
    assert _is_masked(compiled.lower(u, 12, 9).graph)


@pytest.mark.sample(1)
def test_gradients_agree():
    u = np.random.default_rng(2).normal(size=(9, 9))
    gradient = wg.grad(lambda u, n: (smoothed(u, n, 9) ** 2).sum())
    compiled = wg.jit(gradient)
    for n in (9, 4, 2, 8, 9, 7, 5):
        assert np.allclose(compiled(u, n), gradient(u, n), rtol=1e-12, atol=1e-14), n


def test_lengths_that_differ_are_an_error():
    u = np.ones((9, 9))
    compiled = wg.jit(smoothed)
    with pytest.raises(ValueError):
        smoothed(u, 10, 9)
    with pytest.raises(ValueError):
        compiled(u, 10, 9)
    assert np.allclose(compiled(u, 9, 9), smoothed(u, 9, 9), rtol=1e-14, atol=0)


def test_a_function_with_captured_arrays():
    u = np.random.default_rng(3).normal(size=(9, 9))
    weight = np.full((), 0.5)

    def weighted(v, n):
        return weight * smoothed(v, n, 9)

    compiled = wg.jit(weighted)
    assert np.allclose(compiled(u, 9), weighted(u, 9), rtol=1e-14, atol=0)
    weight[()] = 2.0
    assert np.allclose(compiled(u, 9), weighted(u, 9), rtol=1e-14, atol=0)
