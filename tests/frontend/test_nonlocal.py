"""Nonlocal and global variables that loops and branches assign.

The compiled function has Python's value, and its gradient agrees with the eager gradient.
"""

import numpy as np
import pytest

import wengert as wg

N = 30
X = np.linspace(0.1, 1.0, N)


def assigned_by_a_call_and_read(x):
    total, y = 0.0, 0.0

    def step(v):
        nonlocal total
        total = total + v

    for i in range(N):
        step(x[i])
        y = y + total
    return y + total


def assigned_by_a_call_only(x):
    total, count = 0.0, 0

    def step(v):
        nonlocal total, count
        total = total * 0.9 + v
        count += 1

    for i in range(N):
        step(x[i])
    return total * count


def assigned_in_a_branch(x):
    total = x[0]

    def step(v):
        nonlocal total
        total = total + v

    for i in range(N):
        if x[i] > 0.5:
            step(x[i])
        else:
            total = total * 0.5
    return total


def assigned_in_one_branch(x):
    total = x[0]

    def step(v):
        nonlocal total
        total = total + v

    if x[1] > 0.05:
        step(x[1])
    return total


def by_an_expression(x):
    last = x[0]

    def keep(v):
        nonlocal last
        last, v = v, last
        return v * 0.9

    s = 0.0
    for i in range(N):
        s += keep(x[i]) if x[i] > 0.4 else keep(s)
    return s + last


def in_two_functions(x):
    total = x[0]

    def outer(v):
        k = 0.0

        def inner(w):
            nonlocal total, k
            total = total * 0.9 + w
            k = k + w

        for j in range(12):
            inner(v * j)
        return k

    s = 0.0
    for i in range(N):
        s += outer(x[i])
    return total + s


def none_before_the_loop(x):
    last = None

    def step(v):
        nonlocal last
        last = v if last is None else last * 0.5 + v

    for i in range(N):
        step(x[i])
    return last


def while_loops(x):
    n, y = 0, x[0]

    def grow():
        nonlocal n, y
        n += 1
        y = y * 1.1

    while y < 10.0:
        grow()
    return n * y


def a_list_as_a_variable(x):
    count, total = [0], [0.0]

    def hit(v):
        count[0] += 1
        total[0] += v

    for i in range(N):
        hit(x[i])
    return count[0] * total[0]


def rebound_by_a_call_and_modified(x):
    def rebind():
        nonlocal x
        x = x * 0.75 + 0.125

    for _ in range(N):
        x *= 0.5
        rebind()
    return x.sum()


LOOPS = [
    rebound_by_a_call_and_modified, assigned_by_a_call_and_read, assigned_by_a_call_only,
    assigned_in_a_branch, assigned_in_one_branch, by_an_expression, in_two_functions,
    none_before_the_loop, while_loops, a_list_as_a_variable,
]  # fmt: skip


@pytest.mark.parametrize("f", LOOPS, ids=lambda f: f.__name__)
def test_variables_of_enclosing_functions(f):
    np.testing.assert_allclose(wg.jit(f)(X.copy()), f(X.copy()), rtol=1e-12)
    np.testing.assert_allclose(wg.jit(wg.grad(f))(X), wg.grad(f)(X), rtol=1e-10, atol=1e-12)
    assert len(wg.trace(f)(X).nodes) < 60


TOTAL = 0.0


def test_a_global_variable_is_carried_by_loops():
    def f(x):
        global TOTAL
        TOTAL = x[0]
        for i in range(N):
            TOTAL = TOTAL * 0.9 + x[i]
        y, TOTAL = TOTAL, 0.0
        return y

    np.testing.assert_allclose(wg.jit(f)(X), f(X), rtol=1e-12)

    def counted(x):
        global TOTAL
        y = x[0]
        while y < 10.0:
            TOTAL += 1
            y = y * 1.1
        return y

    global TOTAL
    TOTAL = 0.0
    expected = counted(X), TOTAL
    TOTAL = 0.0
    assert (wg.jit(counted)(X), TOTAL) == expected
    TOTAL = 0.0
