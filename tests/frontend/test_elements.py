"""An element that is read is a number, which later stores to the array do not change."""

import numpy as np
import pytest

import wengert as wg

N = 12
X = np.random.default_rng(3).normal(size=N)
A = np.random.default_rng(4).uniform(-1.0, 1.0, (N, N))
WEIGHTS = np.arange(1.0, N + 1.0)


def swapped(x, a):
    x = x * 1.0
    for i in range(N // 2):
        t = x[i]
        x[i] = x[N - 1 - i]
        x[N - 1 - i] = t
    return np.sum(x * WEIGHTS)


def sorted_by_swaps(x, a):
    x = x * 1.0
    for i in range(N):
        for j in range(N - 1 - i):
            if x[j] > x[j + 1]:
                x[j], x[j + 1] = x[j + 1], x[j]
    return np.sum(x * WEIGHTS)


def inserted(x, a):
    x = x * 1.0
    for i in range(1, N):
        v = x[i]
        j = i - 1
        while j >= 0 and x[j] > v:
            x[j + 1] = x[j]
            j -= 1
        x[j + 1] = v
    return np.sum(x * WEIGHTS)


def read_before_a_store_of_all(x, a):
    x = x * 1.0
    s = 0.0
    for i in range(N):
        v, w = x[i], a[i, i]
        x[:] = 0.5 * x
        a[i, i] = 2.0
        s += v * w
    return s


def added_after_a_shift(x, a):
    for i in range(N):
        x[i] += min(0.5, a[1, i])
        x[1:] = 0.5 * x[:-1]
    return np.sum(x * 0.5)


def replaced_after_a_shift(x, a):
    s = x[0]
    for i in range(N):
        for j in range(N):
            x[j] += np.cos(min(s, a[1, i]))
            s += 0.25
            x[1:] = 0.5 * (x[:-1] + x[i])
    return s + np.sum(x * 0.5)


def read_around_a_branch_and_in_it(x, a):
    s = x[0]
    for i in range(N - 1, 0, -1):
        if s < 9.0:
            s = s + a[0, i] * i
            if i < 9 and a[i, i] < x[N - 1]:
                s = s * 2
    return s


def read_before_an_exit(x, a):
    s = x[0]
    for i in range(N - 1, 0, -1):
        if s > 9.0:
            break
        s = s + a[0, i] * i
        if i < 9 and a[i, i] < x[N - 1]:
            return s
    return s


def stored_twice_in_a_branch(x, a):
    x = x * 1.0
    for i in range(1, N):
        if a[0, i] > 0.0:
            x[i] = x[i] * 5.0
            x[i] = a[0, i] * x[i - 1]
        else:
            x[0] = 2.0 * a[0, i]
            x[0] += x[i] ** 2
    return np.sum(x * WEIGHTS)


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "f",
    [
        swapped,
        sorted_by_swaps,
        inserted,
        read_before_a_store_of_all,
        added_after_a_shift,
        replaced_after_a_shift,
        read_around_a_branch_and_in_it,
        read_before_an_exit,
        stored_twice_in_a_branch,
    ],
    ids=lambda f: f.__name__,
)
def test_compiled_functions_are_right(f):
    def given():
        return X.copy(), A.copy()

    np.testing.assert_allclose(wg.jit(f)(*given()), f(*given()), rtol=1e-12)
    found = wg.jit(wg.grad(f, (0, 1)))(*given())
    for compiled, eager in zip(found, wg.grad(f, (0, 1))(*given()), strict=True):
        np.testing.assert_allclose(compiled, eager, rtol=1e-10, atol=1e-12)


def test_a_number_taken_by_a_traced_index():
    def f(x, i):
        v, view = x[i], x[i, ...]
        x[i] = 0.0
        return v, view

    assert wg.jit(f)(X.copy(), 3) == (X[3], 0.0)


def test_a_row_is_a_view():
    def f(a, i):
        row = a[i]
        a[i, 0] = 5.0
        return row[0]

    assert wg.jit(f)(A.copy(), 3) == 5.0


def test_a_step_of_scan_reads_before_it_stores():
    def step(x, i):
        v = x[i]
        x[i] = 0.0
        return x, v

    def f(x):
        return wg.scan(step, x * 1.0, np.arange(N))[1]

    np.testing.assert_array_equal(wg.jit(f)(X), X)
