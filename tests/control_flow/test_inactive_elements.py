"""Batch elements that do not take a branch, or have finished a loop: their indices are not read.

What they would compute may be out of bounds, or may not end.
"""

import numpy as np
import pytest

import wengert as wg

X = np.random.default_rng(3).random((4, 12))
BOUNDS = np.array([0.3, 0.5, 0.7, 5.0])


def condition_with_an_index(x, m):
    w, s = 0, 0.0
    while w < x.shape[0] and x[w] < m:
        s += x[w] ** 2
        w += 1
    return s


def loop_that_ends_for_some(x, m):
    s = 0.0
    for j in range(12):
        if x[j] > 0.5:
            while x[j] > 0.1:  # without end if x[j] did not change
                x[j] = x[j] * 0.5
                s += x[j]
            continue
        s += x[j] * m
    return s


def early_exit(x, m):
    s = 0.0
    for i in range(100):
        if i >= 12 or x[i] > m:
            break
        s += x[i] * x[i]
        x[i] = 0.5
    return s + x.sum()


def one_branch_out_of_bounds(x, m):
    k = (10.0 * m).astype(np.int64)
    return wg.cond(k < 12, lambda: x[k] ** 2, lambda: x[k - 45] * 3.0)


FUNCTIONS = [
    condition_with_an_index, loop_that_ends_for_some, early_exit, one_branch_out_of_bounds
]  # fmt: skip


@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.__name__)
def test_only_active_elements_read(f):
    for g in (f, wg.grad(f)):
        one, many = wg.jit(g), wg.vmap(wg.jit(g))
        want = [one(x.copy(), m) for x, m in zip(X, BOUNDS, strict=True)]
        np.testing.assert_allclose(many(X.copy(), BOUNDS), want, rtol=1e-12)
        np.testing.assert_allclose(wg.jit(many)(X.copy(), BOUNDS), want, rtol=1e-12)


def test_active_elements_out_of_bounds_raise():
    with pytest.raises(IndexError):
        wg.vmap(wg.jit(one_branch_out_of_bounds))(X.copy(), BOUNDS + 20.0)
