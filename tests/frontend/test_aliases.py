"""Variables that are other names of an array on some conditions only.

Branches and loops assign an existing array, or a new one, to a variable; changes in place by one
name must reach the other.  The compiled function has NumPy's value, and its gradient agrees with
the eager gradient; or it raises TraceError, with the line, where an array is read that may or may
not have been modified.
"""

import threading

import numpy as np
import pytest

import wengert as wg
from wengert._engine.core import branch_aliases
from wengert.errors import TraceError

N = 30
X = np.linspace(0.2, 1.2, N)


def one_of_two(x):
    a, b = np.zeros(3), np.ones(3)
    if x[0] > 0:
        c = a
    else:
        c = b
    c[0] = x[1]
    return np.sum(a) + 2 * np.sum(b)


def one_of_two_by_an_expression(x):
    a, b = x * 1.0, x * 2.0
    c = a if x[0] > 1 else b
    b[3] = x[3] ** 2
    c += x
    return np.sum(a) + np.sum(b) * 2 + np.sum(c) * 3


def rebound_if_true(x):
    a = x * 1.0
    b = a
    if x[0] > 0:
        a = a * 2
    a[0] = x[1] * 5
    return np.sum(a * b)


def rebound_if_false(x):
    a = x * 1.0
    b = a
    if x[0] > 5:
        a = a * 2
    a[0] = x[1] * 5
    b[2] = x[3]
    return np.sum(a * b)


def an_argument(x):
    if x[0] > 5:
        x = x * 2.0
    x[0] = x[1] ** 2
    return np.sum(x)


def a_function_that_returns_an_argument(x):
    def larger(a, b):
        if a[0] > b[0]:
            return a
        return b

    a, b = x * 1.0, x[::-1] * 1.0
    c = larger(a, b)
    c *= 3.0
    c[0] = x[0] ** 2
    return np.sum(a) + 2 * np.sum(b)


def two_names_in_a_branch(x):
    y = z = np.zeros(3)
    if x[0] < 1:
        y = x[:3] * 2.0
        z = y
    z[0] = x[4]
    return np.sum(y)


def an_entry(x):
    d = {"a": x * 1.0, "b": x * 2.0}
    if x[0] < 1:
        d["a"] = d["b"]
    d["a"][1] = x[3] ** 2
    return np.sum(d["b"]) + np.sum(d["a"])


def branches_in_branches(x):
    a, b = x * 1.0, np.ones(N)
    for i in range(N):
        if x[i] > 1:
            c = a
        elif x[i] > 0.6:
            c = b
        else:
            c = a * 0.5
        c[i] = c[i] * x[i] * 3
    return np.sum(a * 2 + b)


def branches_one_after_the_other(x):
    a, b = x * 1.0, x * 2.0
    c = a
    if x[1] > 1:
        c = b
    d = c
    if x[2] > 0:
        d = a
    d[0] = x[5]
    b[1] = x[6]
    c[2] = x[7]
    return np.sum(a) + 2 * np.sum(b) + 3 * np.sum(c) + 4 * np.sum(d)


def a_view_in_a_branch(x):
    a, b = x * 1.0, np.ones(N)
    if x[0] > 1:
        c = a[2:5]
    else:
        c = b[1:4]
    c[:] = x[4:7]
    return np.sum(c)


def read_by_another_name(x):
    b = a = x * 1.0
    s = 0.0
    for i in range(N):
        b[i] = x[i] ** 2
        s += a[i] * i
        b = b * 0.5
    return s + np.sum(b) + np.sum(a)


def rebound_in_some_iterations(x):
    a = x * 1.0
    b = a
    for i in range(N):
        if x[i] > 0.5:
            b = a * 0.5
        b[i] = x[i] ** 2
    return np.sum(a) + np.sum(b) * 2


def bound_to_the_same_array_in_each_iteration(x):
    a = x * 1.0
    for _ in range(N):
        b = a
    b[0] = x[1] ** 3
    return np.sum(a)


def two_names_of_a_new_array(x):
    y = z = x * 1.0
    for i in range(N):
        z[i] = z[i] * 2
        y = z = z * 0.9
    y[2] = x[2] ** 2
    return np.sum(z)


def two_names_in_the_next_iteration(x):
    y = z = x * 1.0
    s = 0.0
    for i in range(N):
        z[i] = z[i] * 2
        s += y[i]
        y = z = z * 0.9
    return np.sum(z) + s


def the_row_before(x):
    a = np.outer(x, x)
    row = a[0]
    for i in range(1, N):
        a[i] = row * 0.5 + a[i]
        row = a[i]
    return np.sum(a**2)


def swapped(x):
    u, v = x * 1.0, np.zeros(N)
    for _ in range(N):
        v[1:-1] = 0.3 * u[:-2] + 0.4 * u[1:-1] + 0.3 * u[2:]
        u, v = v, u
    u[0] = x[1]
    return np.sum(u * v)


def the_best_so_far(x):
    u = x * 1.0
    best, least = u, 1e9
    for i in range(N):
        u[i] = u[i] * 0.3 - 0.1 * i
        f = np.sum(u**2)
        if f < least:
            least, best = f, u
    return np.sum(best) + np.sum(u)


def a_view_of_one_of_two(x):
    a, b = x * 1.0, np.ones(N)
    if x[0] > 1:
        c = a[2:5]
    else:
        c = b[1:4]
    c[:] = x[4:7]
    return np.sum(b)


def another_array_after_the_first_iteration(x):
    a, b = x * 1.0, np.zeros(N)
    for i in range(3, N):
        b[i] = x[i] ** 2
        b = a
    b[0] = x[1]
    return np.sum(a) + np.sum(b) * 2


def a_while_loop(x):
    first = x * 1.0
    u, k = first, 0
    while np.sum(u) > 1.0 and k < 50:
        u = u * 0.8
        k += 1
    u[0] = x[1]
    return np.sum(u * first)


def a_while_loop_without_an_iteration(x):
    first = x * 1.0
    u, k = first, 0
    while np.sum(u) > 1000.0 and k < 50:
        u = u * 0.8
        k += 1
    u[0] = x[1]
    return np.sum(u * first)


RIGHT = [
    one_of_two, one_of_two_by_an_expression, rebound_if_true, rebound_if_false, an_argument,
    a_function_that_returns_an_argument, two_names_in_a_branch, an_entry, branches_in_branches,
    branches_one_after_the_other, a_view_in_a_branch, read_by_another_name,
    rebound_in_some_iterations, bound_to_the_same_array_in_each_iteration, two_names_of_a_new_array,
    two_names_in_the_next_iteration, the_row_before, swapped, the_best_so_far, a_while_loop,
    a_while_loop_without_an_iteration, a_view_of_one_of_two,
    another_array_after_the_first_iteration,
]  # fmt: skip


@pytest.mark.sample(4)
@pytest.mark.parametrize("f", RIGHT, ids=lambda f: f.__name__)
def test_compiled_functions_are_right(f):
    np.testing.assert_allclose(wg.jit(f)(X.copy()), f(X.copy()), rtol=1e-12)
    np.testing.assert_allclose(wg.jit(wg.grad(f))(X), wg.grad(f)(X), rtol=1e-10, atol=1e-12)


def test_an_argument_is_modified_until_it_is_rebound():
    for limit in (0.0, 5.0):

        def f(x, limit=limit):
            if x[0] > limit:
                x = x * 2.0
            x[0] = 7.0
            return np.sum(x)

        given, expected = X.copy(), X.copy()
        np.testing.assert_allclose(wg.jit(f)(given), f(expected), rtol=1e-12)
        np.testing.assert_array_equal(given, expected)


def test_loops_without_shared_arrays_stay_nodes():
    for f in (swapped, the_row_before, branches_in_branches, a_while_loop):
        assert len(wg.trace(f)(X).nodes) < 30


def the_last_row(x):
    a = np.outer(x, x)
    for row in a:  # noqa: B007
        pass
    row[0] = x[3] ** 3
    return np.sum(a)


def test_arrays_that_may_be_modified_are_refused():
    message = r"used after a write to another.*test_aliases.py:\d+.*x.copy\(\) \(at .*test_aliases"
    with pytest.raises(TraceError, match=message):
        wg.jit(the_last_row)(X)


def test_the_arrays_that_are_being_written_to_are_those_of_a_thread():
    seen = []
    before = branch_aliases._active.handles
    try:
        branch_aliases._active.handles = before | {1}
        thread = threading.Thread(target=lambda: seen.append(branch_aliases._active.handles))
        thread.start()
        thread.join()
    finally:
        branch_aliases._active.handles = before
    assert seen == [frozenset()]
