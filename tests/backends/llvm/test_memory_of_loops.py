"""Results of loops in the memory of what the loops begin with."""

from __future__ import annotations

import numpy as np
import pytest

import wengert as wg

N = 200
X = np.random.default_rng(0).normal(size=(N, N))


def filled_by_rows(x):
    y = np.full_like(x, 2.0)
    for i in range(1, N):
        y[i, :i] += x[i, :i] * y[i - 1, 0]
    return y


def computed_before(x):
    y = np.sin(x)
    for i in range(1, N):
        y[i] = y[i] + 0.5 * y[i - 1]
    return y


def two_loops(x):
    y = np.sin(x)
    for i in range(1, N):
        y[i] = y[i] + 0.5 * y[i - 1]
    for i in range(N - 1):
        y[:, i + 1] -= y[:, i] * 0.25
    return y


def stored_before(x):
    y = x.copy()
    y[0] = 1.0
    for i in range(1, N):
        y[i] += y[i - 1] * x[i]
    y[-1] = 0.0
    return y


IN_PLACE = [filled_by_rows, computed_before, two_loops, stored_before]


def also_read_afterwards(x):
    start = np.sin(x)
    y = start.copy()
    for i in range(1, N):
        y[i] = y[i] + y[i - 1] * 0.5
    return y, start * 2.0


def also_returned(x):
    start = np.sin(x)
    y = start.copy()
    for i in range(1, N):
        y[i] = y[i] + y[i - 1] * 0.5
    return y, start


def also_read_in_the_loop(x):
    start = np.sin(x)
    y = start.copy()
    for i in range(1, N):
        y[i] = y[i] + start[i - 1] * 0.5 + start[-i, ::-1]
    return y


def an_element_of_what_is_written_over(x):
    a, b, total = np.ones(N), np.full(N, 2.0), 0.0 * x[0]
    for k in range(40):
        s = a + b
        total[k % 5] += s[k % 7]
        s[k % 7] *= 0.5
        a, b = s, 0.0 * b
    return a, b, total


def carried_twice(x):
    zeros = np.zeros_like(x)
    y, z = zeros.copy(), zeros.copy()
    for i in range(1, N):
        y[i] = z[i - 1] + x[i]
        z[i] = y[i - 1] * 0.5 - x[i]
    return y, z


def exchanged(x):
    y, z = np.sin(x), np.cos(x)
    for _ in range(11):
        y, z = z * 0.5 + y[::-1], y
    return y, z


def new_in_each_step(x):
    y = np.sin(x)
    for _ in range(9):
        y = y[::-1].T * 0.5 + 1.0
    return y


def until(x):
    y, k = np.sin(x), 1
    while k < N and np.sum(y[k - 1]) < 1e3:
        y[k] += y[k - 1] * 0.5
        k += 1
    return y, k


def result_not_used(x):
    y, total = np.sin(x), 0.0
    for i in range(1, N):
        y[i] = y[i] + y[i - 1] * 0.5
        total = total + y[i, 0]
    return total


def in_branches(x):
    y = np.sin(x)
    for i in range(1, N):
        if y[i, 0] > 0:
            y[i] = y[i - 1] * 0.5
        else:
            y[0] += y[i]
    return y


def no_steps(x):
    y = np.sin(x)
    for i in range(len(x) - N):
        y[i] = 0.0
    return y


OTHERS = [
    also_read_afterwards, also_returned, also_read_in_the_loop, carried_twice, exchanged,
    an_element_of_what_is_written_over,
    new_in_each_step, until, result_not_used, in_branches, no_steps,
]  # fmt: skip


def _listed(x):
    return x if isinstance(x, tuple) else (x,)


@pytest.mark.sample(8)
@pytest.mark.parametrize("f", IN_PLACE + OTHERS, ids=lambda f: f.__name__)
def test_values(f):
    compiled = wg.jit(f)
    for x in (X, np.asfortranarray(X), X):
        for got, want in zip(_listed(compiled(x)), _listed(f(x)), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-13)


@pytest.mark.sample(3)
@pytest.mark.parametrize("f", IN_PLACE + OTHERS, ids=lambda f: f.__name__)
def test_gradients(f):
    def total(x):
        return sum(np.sum(np.sin(y)) for y in _listed(f(x)))

    gradient = wg.grad(total)
    np.testing.assert_allclose(wg.jit(gradient)(X), gradient(X), rtol=1e-10, atol=1e-10)


@pytest.mark.sample(2)
@pytest.mark.parametrize("f", IN_PLACE, ids=lambda f: f.__name__)
def test_no_array_beside_the_result(f):
    profile = wg.profile(f, repeats=1)(X)
    assert profile.peak < 2.5 * X.nbytes  # the argument, and the result
