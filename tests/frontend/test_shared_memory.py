"""Names of one array: after branches and loops that may bind them anew, writes reach both.

The compiled function has NumPy's value, leaves NumPy's values in its arguments, and its gradient is
that of the eager tape.
"""

import numpy as np
import pytest

import wengert as wg
from wengert.errors import TraceError

N = 12
RNG = np.random.default_rng(5)
A, X = RNG.uniform(0.1, 1.0, (N, N)), RNG.uniform(0.1, 1.0, N)
SIGNS = np.where(np.arange(N) == 0, -1.0, 1.0)


def argument_in_one_branch(a, x):
    if x[0] > 0:
        x = x * 0.5
    x[1] = 1.0
    return x.sum()


def one_of_two_arrays(a, x):
    e = x if x[0] > 0 else a[3]
    a[3] *= 0.5
    s = e.sum()
    x += 1.0
    s = s + 2 * e.sum()
    e[2] = 7.0
    return s + 3 * x.sum() + 5 * (a * a).sum()


def view_in_one_branch(a, x):
    if x[0] > 0:
        a = a.T
    elif x[1] > 0:
        a = a + 1.0
    a[-1] = 0.5
    return a.sum()


def nested_branches(a, x):
    y = x[1:]
    if x[0] > 0:
        y[2] = 3.0
        if x[1] > 0.5:
            x = x * 0.5
    x[2] = 0.25
    s = y[1] * 3
    y[2] = 10.0
    return s + x.sum()


def written_in_a_loop(a, x):
    u = a[1] if x[0] > 0 else a[:, 2]
    for i in range(N):
        u[i] = 0.5 * u[i - 1]
    return a.sum() + u[2]


def branch_in_a_loop(a, x):
    for i in range(N):
        if a[i, 0] > 0.5 * x[0]:
            x = x * 0.5
        x[i] = 0.25
    x[1] = 1.0
    return x.sum()


def perhaps_no_trips(a, x):
    while x.sum() > 5.0:
        x = x * 0.5
    x[1] = 1.0
    return x.sum()


def exchanged(a, x):
    u, v = a[0], x
    for _ in range(11):
        u[1:-1] = 0.5 * v[2:]
        u, v = v, u
    return u[1] + 2 * v[2] + a.sum()


def view_bound_in_a_loop(a, x):
    y = x[1:]
    for _ in range(11):
        y = x[1:]
        y *= 0.5
    x[2:] = 0.25
    return y.sum()


def old_name_of_a_carried_array(a, x):
    old = x
    s = 0.0
    for i in range(N):
        x[i] = x[i - 1] * 0.5
        s += old[i]
        x = x * 1.5
    return s


def one_name_for_another(a, x):
    b = a
    for _ in range(N):
        a = a * 0.5
        b = a
        b[0] = 1.0
    a[1] = 5.0
    return b.sum()


def array_from_outside(a, x):
    u = x * 2.0
    for i in range(N):
        u = x
        x[i] = 2.0
    u[2] = 1.0
    return x.sum()


def reversed_in_one_branch(a, x):
    if x[-1] > 0.2:
        a = a[::-1]
    a[N - 1] = 0.5
    return x.sum()


def in_a_nested_loop(a, x):
    y = x
    for i in range(N):
        for j in range(i):
            if a[i, j] > 0.5:
                x = x + a[i]
            x[j] *= 0.5
        y[i] += 0.25
    return x.sum() + y[3]


def boundary_values(a, x):
    for _ in range(N):
        x[0] = 0.0
        x = x + 0.1 * np.sin(x)
        x[-1] = 1.0
    return x.sum()


def one_name_of_two_in_a_nested_branch(a, x):
    u, v = a[1], a[2]
    w = u if x[1] > 0.3 else v
    e = np.zeros(N)
    if x[0] > 0.2:
        if x[2] > 0.4:
            e = u
        else:
            e = 2 * u
    e[1] = 5.0 * x[2]
    return u.sum() + 3 * v.sum() + 7 * w.sum() + e.sum()


def reversed_in_a_nested_branch(a, x):
    y = x[1:]
    if x[0] > 0.2:
        y[1] = 0.25
        if x[1] > 0.3:
            x = x[::-1]
    x[6] *= 0.3
    return np.sum(y * np.arange(11)) + 10 * np.sum(x * np.arange(12))


def new_arrays_of_one_branch(a, x):
    u, v = np.zeros(N), np.zeros(N)
    if x[0] > 0.2:
        new = a[0] * 2
        u = new if x[1] > 0.3 else 3 * new
        v = new if x[2] > 0.4 else 2 * new
    v[1] = 5.0 * x[2]
    return u.sum() + 10 * (v * x).sum()


def computed_rows(a, x):
    k = np.argsort(x)
    row = a[0]
    if x[0] > 0.2:
        if x[1] > 0.3:
            row = a[k[1]]
        else:
            row = a[k[2] - 1]
    row[1] *= 5
    a[3] += row
    return np.sum(a * np.arange(N)) + 10 * row.sum()


def one_of_two_rows_in_a_loop(a, x):
    k = np.argsort(x)
    for i in range(N - 1):
        row = a[k[i]] if x[i] > 0.4 else a[:, k[i + 1]]
        row *= 0.9
        row[1] = row[0] * row[1]
        a[k[i + 1], 0] += 0.5 * row.sum()
    return np.sum(a**2)


def rows_out_of_bounds(a, x):
    i = np.sum(x > 0.3) + 4
    row = a[i] if i < N else x
    row *= 2.0
    return np.sum(a**2) + 3 * x.sum()


PROGRAMS = [
    argument_in_one_branch, one_of_two_arrays, view_in_one_branch, nested_branches,
    written_in_a_loop, branch_in_a_loop, perhaps_no_trips, exchanged, view_bound_in_a_loop,
    old_name_of_a_carried_array, one_name_for_another, array_from_outside, reversed_in_one_branch,
    in_a_nested_loop, boundary_values, one_name_of_two_in_a_nested_branch,
    reversed_in_a_nested_branch, new_arrays_of_one_branch, computed_rows, one_of_two_rows_in_a_loop,
    rows_out_of_bounds,
]  # fmt: skip


@pytest.mark.sample(4)
@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_writes_reach_all_names(f):
    compiled, gradient = wg.jit(f), wg.grad(f, (0, 1))
    both = wg.jit(gradient)
    for x in (X, X * SIGNS, -X, X * 0.5):
        want_arguments, arguments = (A.copy(), x.copy()), (A.copy(), x.copy())
        want = f(*want_arguments)
        np.testing.assert_allclose(compiled(*arguments), want, rtol=1e-12)
        for found, wanted in zip(arguments, want_arguments, strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-14)
        for found, wanted in zip(
            both(A.copy(), x.copy()), gradient(A.copy(), x.copy()), strict=True
        ):
            np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-12)


def test_arrays_that_nothing_refers_to_are_not_carried():
    """Two arrays of the function that a loop exchanges: nothing else is carried or computed."""

    def f(x):
        u, v = x * 1.0, x * 2.0
        for _ in range(11):
            u[1:-1] = 0.5 * v[2:]
            u, v = v, u
        return u.sum()

    graph = wg.jit(f).lower(X).graph
    (loop,) = [n for n in graph if n.op.name == "scan"]
    assert loop.params["carried"] == 2
    assert "where" not in [n.op.name for n in loop.params["body"].nodes]


def test_views_of_what_a_branch_leaves_are_not_written_elsewhere():
    def f(a, x):
        for i in range(N):
            if x[i] > 0.5:
                a = a[::-1]
            a[i] *= 0.5
        return a[1].sum()

    with pytest.raises(TraceError, match="may share its memory"):
        wg.jit(f)(A.copy(), X.copy())
    np.testing.assert_allclose(
        wg.jit(lambda a, x: f(a.copy(), x))(A, X), f(A.copy(), X), rtol=1e-12
    )


def test_a_view_at_an_index_of_the_loop_cannot_be_read_after_a_write_to_its_array():
    def f(a, x):
        for i in range(N):
            e = a[i]
        a[3] = 0.0
        return e.sum() + x.sum()

    with pytest.raises(TraceError, match="may share its memory"):
        wg.jit(f)(A.copy(), X.copy())


def test_a_row_of_an_earlier_iteration_is_followed():
    """The branch leaves the row of the iteration before; the loop is unrolled."""

    def f(a, x):
        k = np.argsort(x)
        r = a[0]
        for i in range(N):
            row = a[k[i]]
            if x[i] > 0.4:
                r = row
            r[1] *= 1.1
        return np.sum(a * np.arange(N))

    compiled = wg.jit(f)
    for x in (X, X[::-1], 1.0 - X):
        np.testing.assert_allclose(compiled(A.copy(), x), f(A.copy(), x), rtol=1e-12)


def test_what_a_branch_may_have_written_is_not_used_after_it():
    """Behind `break` the rest of an iteration is a branch."""

    def f(x):
        for i in range(20):
            if i > 10:
                break
            if x[i % N] < 1.5:
                x = x[::-1]
            else:
                x = x + 0.125
            x *= 0.75
        return np.sum(x)

    with pytest.raises(TraceError, match="may share its memory"):
        wg.jit(f)(X.copy())
