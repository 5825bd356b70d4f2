"""Lists that loops read and assign at indices that are not known: of numbers, arrays, tuples.

The compiled function has NumPy's value, and its gradient is that of the eager tape and of
differences.  Programs in `NODES` have loops in their graphs; those in `PYTHON` are unrolled.
"""

import gc

import numpy as np
import pytest

import wengert as wg

N = 30
X = np.linspace(0.2, 1.2, N)


def numbers(x):
    s = [x[0] * 1.0 for _ in range(12)]
    for k in range(12):
        s[k] = s[k - 1] * 0.5 + x[k]
    return sum(v * v for v in s)


def negative_indices(x):
    s = [x[i] for i in range(12)]
    for k in range(12):
        s[-k - 1] = s[k] * 0.5 + x[k]
    return sum(v * (i + 1) for i, v in enumerate(s))


def indices_from_data(x):
    s = [0] * 5
    for k in range(N):
        j = int(x[k] * 4)
        s[j] = s[j] + x[k] ** 2
    return sum(v * (i + 1) for i, v in enumerate(s)) + s[0] + s[-1]


def augmented(x):
    s = [0.0] * 5
    for k in range(N):
        s[k % 5] += x[k] ** 2
    return s[0] * s[1] + s[2] * s[3] * s[4]


def arrays(x):
    s = [np.zeros(3) for _ in range(20)]
    for k in range(20):
        s[k] = s[k] + x[k : k + 3]
    for k in range(1, 20):
        s[k - 1] = s[k - 1] * s[k]
    return sum(np.sum(v * v) for v in s)


def arrays_in_place(x):
    s = [np.zeros(3) for _ in range(20)]
    for k in range(20):
        s[k][0] += x[k]
        s[k][1:] = x[k : k + 2]
        s[k] *= 2.0
    for k in range(1, 20):
        a = s[k]
        a[0] = a[0] * x[k]
        s[k - 1] = s[k - 1] + a
    return sum(np.sum(v * v) for v in s)


def tuples(x):
    s = [(x[k], x[k : k + 2]) for k in range(12)]
    for i in range(20):
        y = x[i]
        for k in range(12):
            h, c = s[k]
            s[k] = (np.tanh(h + y), c * 0.9 + h)
            y = s[k][0]
    return sum(h * np.sum(c) for h, c in s)


def swaps(x):
    s = [x[i] for i in range(12)]
    for i in range(11):
        s[i], s[i + 1] = s[i + 1], s[i] * 2
    return sum(v * (i + 1) for i, v in enumerate(s))


def bubble_sort(x):
    s = [x[(7 * i) % 12] for i in range(12)]
    for _ in range(12):
        for j in range(11):
            if s[j] > s[j + 1]:
                s[j], s[j + 1] = s[j + 1], s[j]
    return sum(v * (i + 1) for i, v in enumerate(s))


def longest_path(x):
    n = 15
    best = [0.0] * (n + 1)
    for i in range(1, n + 1):
        m = 0.0
        for j in range(i):
            m = max(m, best[j] + x[i - 1] * x[j])
        best[i] = m
    return best[n]


def entries_of_a_dict(x):
    d = {"a": [x[0]] * 12, "b": [x[1]] * 12}
    for k in range(1, 12):
        d["a"][k] = d["a"][k - 1] + d["b"][k] * x[k]
        d["b"][k] = d["a"][k] * 0.5
    return sum(d["a"]) + sum(d["b"])


def by_a_function(x):
    s = [x[k] for k in range(12)]

    def step(k):
        s[k] = s[k] * s[k - 1]
        return s[k]

    total = 0.0
    for k in range(12):
        total += step(k)
    return total + s[3]


def two_names(x):
    s = [x[k] for k in range(12)]
    t = s
    for k in range(12):
        s[k] = s[k] * 2.0
        t[k - 1] = t[k] + x[k]
    return sum(t) + s[0] * t[1]


def known_indices_beside(x):
    s = [x[k] for k in range(12)]
    for k in range(12):
        s[0] = s[0] + s[k]
        s[k] = s[-1] * 0.5 + len(s)
    return sum(v * (k + 1) for k, v in enumerate(s))


def a_while_loop(x):
    s, k = [x[i] for i in range(12)], 0
    while s[k] < 0.5:
        s[k + 1] = s[k] * 1.2
        k += 1
    return s[k] * sum(s)


def branches(x):
    s = [0.0] * 12
    for k in range(N):
        if x[k] > 0.6:
            s[k % 12] = s[k % 12] * 0.5 + x[k]
        else:
            s[0] = s[0] + x[k]
    return sum(v * (k + 1) for k, v in enumerate(s))


def constants(x):
    weights = [0.5, 0.25, 0.125] * 5
    y = 0.0
    for k in range(15):
        y = y * weights[k] + x[k]
    return y


def read_before_assigned(x):
    s = [x[k : k + 2] * 1.0 for k in range(12)]
    t = 0.0
    for k in range(12):
        old = s[k]
        s[k] = s[k - 1] * 0.5
        t = t + np.sum(old * s[k])
    return t


def outside_of_loops(x):
    s = [x[0], x[1] ** 2, 3.0]
    k = int(x[5] * 5)
    s[k] = s[k - 1] * x[4]
    return s[0] + 2 * s[1] + 3 * s[2] + s[k]


NODES = [
    numbers, negative_indices, indices_from_data, augmented, arrays, arrays_in_place, tuples, swaps,
    bubble_sort, longest_path, entries_of_a_dict, by_a_function, two_names, known_indices_beside,
    a_while_loop, branches, constants, read_before_assigned, outside_of_loops,
]  # fmt: skip


def one_array_in_all_elements(x):
    z = np.zeros(3)
    s = [z] * 12
    for k in range(12):
        s[k][0] += x[k]
    return sum(np.sum(v) for v in s) + z[0]


def an_array_that_is_modified_later(x):
    s, y = [np.zeros(3) for _ in range(12)], x[:3] * 1.0
    for k in range(12):
        y[0] = y[0] * x[k]
        s[k] = y
    return sum(np.sum(v) for v in s)


def a_variable_that_is_modified_in_the_next_trip(x):
    s, y = [np.zeros(3) for _ in range(12)], x[:3] * 1.0
    for k in range(12):
        y[0] = y[0] * x[k]
        y = y + 1.0
        s[k] = y
    return sum(np.sum(v) for v in s)


def a_variable_that_some_trips_bind_anew(x):
    s, y = [np.zeros(3) for _ in range(12)], x[:3] * 1.0
    for k in range(12):
        y[0] = y[0] * x[k]
        s[k] = y
        if x[k] > 0.4:
            y = y + 1.0
    return sum(np.sum(v) for v in s)


def an_element_that_becomes_another(x):
    s = [x[k : k + 2] * 1.0 for k in range(12)]
    for k in range(11):
        s[k] = s[k + 1]
        s[k][0] = s[k][0] * 2.0
    return sum(np.sum(v) * (k + 1) for k, v in enumerate(s))


def an_element_modified_by_another_name(x):
    s = [x[k : k + 2] * 1.0 for k in range(12)]
    t = 0.0
    for k in range(12):
        a = s[k]
        s[k][0] = x[k] ** 2
        t = t + np.sum(a)
    return t


def an_element_that_is_no_longer_one(x):
    s = [x[k : k + 2] * 1.0 for k in range(12)]
    t = 0.0
    for k in range(12):
        a = s[k]
        s[k] = a * 0.5
        a[0] = x[k]
        t = t + np.sum(a) + np.sum(s[k])
    return t


def the_whole_list_in_the_loop(x):
    s = [x[k] for k in range(12)]
    for k in range(12):
        s[k] = s[k] + sum(s) * 0.1
    return s[11]


def unlike_shapes(x):
    s = [x[k:] for k in range(12)]
    for k in range(12):
        s[k] = s[k] * 2.0
    return sum(np.sum(v) for v in s)


def lists_of_lists(x):
    g = [[0.0] * 10 for _ in range(10)]
    for i in range(10):
        for j in range(10):
            g[i][j] = x[i] * x[j] + (g[i - 1][j] if i > 0 else 0.0)
    return sum(sum(r) for r in g)


def an_array_that_is_also_in_a_variable(x):
    a = x[:2] * 1.0
    s = [a, x[2:4] * 2.0] * 6
    for k in range(12):
        s[k] = s[k] * 0.5
    return np.sum(a) + sum(np.sum(v) for v in s)


PYTHON = [
    one_array_in_all_elements, an_array_that_is_modified_later,
    a_variable_that_is_modified_in_the_next_trip, a_variable_that_some_trips_bind_anew,
    an_element_that_becomes_another,
    an_element_modified_by_another_name, an_element_that_is_no_longer_one,
    the_whole_list_in_the_loop, unlike_shapes, lists_of_lists, an_array_that_is_also_in_a_variable,
]  # fmt: skip


@pytest.mark.sample(5)
@pytest.mark.parametrize("f", [*NODES, *PYTHON], ids=lambda f: f.__name__)
def test_compiled_functions_are_right(f):
    np.testing.assert_allclose(wg.jit(f)(X.copy()), f(X.copy()), rtol=1e-12)
    np.testing.assert_allclose(wg.jit(wg.grad(f))(X), wg.grad(f)(X), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("f", NODES, ids=lambda f: f.__name__)
def test_loops_are_nodes(f):
    assert len(wg.trace(f)(X).nodes) < 50


def test_lists_in_garbage_are_not_from_outside():
    """Also where no garbage has been looked for since the function has made them."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        for f in NODES:
            assert len(wg.trace(f)(X).nodes) < 50
    finally:
        if enabled:
            gc.enable()


def test_the_eager_gradient_is_that_of_differences():
    for f in (tuples, arrays_in_place, longest_path, an_element_that_becomes_another):
        h = 1e-6 * np.eye(N)[3]
        np.testing.assert_allclose(wg.grad(f)(X)[3], (f(X + h) - f(X - h)) / 2e-6, rtol=1e-5)


def test_the_list_is_the_same_list_afterwards():
    def f(x, states):
        kept = states
        for k in range(12):
            states[k] = states[k] * x + k
        return kept is states, states[3]

    states, expected = [0.5] * 12, [0.5 * 2.0 + k for k in range(12)]
    assert wg.jit(f)(2.0, states) == (True, expected[3])
    assert states == expected


def test_an_index_out_of_range():
    def f(x, n):
        s = [x, x * 2, x * 3]
        for k in range(n):
            s[k] = s[k] * 2.0
        return s[0] + s[2]

    assert wg.jit(f)(1.0, 3) == 8.0
    with pytest.raises(IndexError, match=r"test_lists_at_indices.py:\d+"):
        wg.jit(f)(1.0, 20)
