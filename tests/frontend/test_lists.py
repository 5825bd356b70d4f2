"""Lists that loops fill, comprehensions, and built-in functions of traced arrays.

Loops that become nodes give small graphs; the others are unrolled, with equal results.
"""

import numpy as np
import pytest

import wengert as wg
from wengert.errors import TraceError

N = 48
X = np.linspace(0.1, 1.0, N)
A = np.outer(X, X) + np.eye(N)


def appended(x):
    out = []
    for i in range(N):
        out.append(x[i] ** 2 * i)
    return np.sum(np.array(out) * x)


def rows(x):
    out = []
    for i in range(N):
        out.append(np.sin(x * i))
    return np.sum(np.stack(out) * A) + np.sum(np.vstack(out) ** 2) + np.sum(np.concatenate(out))


def columns(x):
    out = []
    for i in range(N):
        out.append(np.sin(x * i))
    return np.sum(np.stack(out, axis=1) * A)


def after_a_first_element(x):
    out = [x[0]]
    for i in range(N - 1):
        out.append(x[i] * x[i + 1])
    return np.sum(np.array(out) * x)


def two_lists(x):
    a = []
    b = []
    for v in x:
        a.append(v * 2)
        b.append(v * v)
        a.append(v)
    return np.sum(np.array(a) ** 2) + np.array(b) @ x + len(a)


def nested_loops(x):
    out = []
    for i in range(N):
        for j in range(12):
            out.append(x[i] * x[j])
    return np.sum(np.array(out) ** 2)


def lists_of_rows(x):
    out = []
    for i in range(N):
        row = []
        for j in range(12):
            row.append(x[i] * x[j])
        out.append(row)
    return np.sum(np.array(out) ** 2 * 2) + out[2][3]


def pairs(x):
    out = []
    for i in range(N):
        out.append((x[i], x[i] ** 2))
    return np.sum(np.array(out) ** 2) + out[3][1]


def plus_equals(x):
    out = []
    for i in range(N):
        out += [x[i] ** 2]
    return np.sum(np.array(out) ** 2)


def elements(x):
    out = []
    for i in range(N):
        out.append(x[i] ** 3)
    out[1] = 2.0 * out[2]
    return out[-1] * out[3] + sum(out[1:6])


def sums_so_far(x):
    out = []
    s = 0
    for i in range(N):
        s += x[i]
        out.append(s)
    return np.sum(np.asarray(out) * x)


def in_a_branch_of_values(x):
    out = []
    for i in range(N):
        if x[i] > 0.5:
            y = x[i] ** 2
        else:
            y = x[i]
        out.append(y)
    return np.sum(np.array(out) * x)


def looped_over(x):
    out = []
    for i in range(N):
        out.append(x[i] ** 2)
    s = 0.0
    for v in out:
        s += np.sin(v)
    for a, b in zip(out, x, strict=False):
        s += a * b
    for k, a in enumerate(out):
        s += a * k
    return s + sum(out) * max(out)


def copies(x):
    out = []
    y = np.zeros(3)
    for i in range(N):
        y[0] = y[0] + x[i]
        out.append(y.copy())
    return np.sum(np.array(out) * np.arange(3.0 * N).reshape(N, 3))


def made_by_a_function(x):
    def build(x):
        out = []
        for i in range(N):
            out.append(x[i] ** 2)
        return out

    return np.sum(np.array(build(x)) * x)


def comprehension(x):
    return np.sum(np.array([x[i] ** 2 * i for i in range(N)]) * x)


def nested_comprehension(x):
    return np.sum(np.array([[x[i] * x[j] for j in range(12)] for i in range(N)]) ** 2)


def sum_of_a_generator(x):
    k = 2.0
    return sum(k * x[i] ** 2 * i for i in range(N)) + sum((v for v in x), 3.0)


def sum_of_a_nested_generator(x):
    return sum(x[i] * x[j] for i in range(N) for j in range(i))


def sum_of_pairs(x):
    return sum(a * b for a, b in zip(x, np.sin(x), strict=False))


def extremes_of_generators(x):
    return max(x[i] ** 2 for i in range(N)) + min(x[i] * x[i] for i in range(N))


def any_and_all(x):
    s = 0.0
    if any(x[i] > 0.9 for i in range(N)):
        s += x[1]
    if all(x[i] > 0.9 for i in range(N)):
        s += x[2]
    if any(x > 0.9) and not all(x > 0.9):
        s += x[3] ** 2
    return s + x[0]


def from_iterators(x):
    made = np.fromiter((x[i] ** 2 for i in range(N)), float)
    return np.sum(made * x) + np.sum(np.array(list(x[i] for i in range(N))))


def of_arrays(x):
    return sum(x) ** 2 + max(x) * min(x) + np.sum(sum(np.outer(x, x)))


def of_short_lists(x):
    values = [x[0], 0.5, x[3] * 2.0]
    s = max(values) * min((x[1], x[2])) + sum(values)
    if any([x[0] > 5.0, x[1] > 0.0]) and all((x[0] > 0.0, x[1] < 5.0)):
        s = s * 2.0
    return s + max(v * v for v in values)


def last_element(x):
    out = [x[0]]
    for i in range(1, N):
        out.append(out[-1] * 0.5 + x[i])
    return np.sum(np.array(out) ** 2)


def last_of_several_lists(x):
    a, b = x[0], x[1]
    ys = [a, b]
    zs = []
    zs.append(ys[-1] * 2.0)
    for i in range(N):
        y = 1.5 * ys[-1] - 0.6 * ys[-2] + 0.1 * zs[-1]
        ys.append(y)
        zs += [zs[-1] * 0.5 + ys[-1] * x[i]]
    return np.sum(np.array(ys) ** 2) + zs[-1] * zs[3] + ys[-2]


def last_tuple(x):
    path = [(x, 0.0)]
    for _ in range(N):
        position, time = path[-1]
        path.append((position * 0.99 + 0.01 * time, time + 0.1))
    s = sum(np.sum(p * t) for p, t in path)
    for p, t in path:
        s = s + np.sum(p) * t
    return s


def last_dict_in_nested_loops(x):
    states = [{"a": x, "b": 2.0 * x}]
    for _ in range(12):
        for i in range(12):
            state = states[-1]
            states.append({"a": np.sin(state["b"]), "b": state["a"] * 0.9 + x[i]})
    return np.sum(states[-1]["a"] * states[7]["b"]) + len(states)


def last_array_changed_as_a_copy(x):
    out = [x]
    for _ in range(N):
        y = out[-1].copy()
        y[1:-1] += 0.1 * (out[-1][2:] - out[-1][:-2])
        out.append(y)
    return np.sum(out[-1] ** 2) + np.sum(np.stack(out) * np.arange(N)) + out[5][3]


def backward_over_a_list(x):
    hidden = [x]
    for _ in range(N):
        hidden.append(np.tanh(hidden[-1]))
    d = np.ones_like(x)
    for h in reversed(hidden):
        d = d * (1.0 - h**2) + h
    for a, b in zip(hidden[1:], np.arange(float(N)), strict=True):
        d = d + a * b
    return np.sum(d)


NODES = [
    appended, rows, columns, after_a_first_element, two_lists, nested_loops, lists_of_rows, pairs,
    plus_equals, elements, sums_so_far, in_a_branch_of_values, looped_over, copies,
    made_by_a_function, comprehension, nested_comprehension, sum_of_a_generator,
    sum_of_a_nested_generator, sum_of_pairs, extremes_of_generators, any_and_all, from_iterators,
    of_arrays, last_element, last_of_several_lists, last_tuple, last_dict_in_nested_loops,
    last_array_changed_as_a_copy, backward_over_a_list,
]  # fmt: skip


def last_array_modified(x):
    y = x * 1.0
    out = [y]
    for _ in range(N):
        y = out[-1]
        y *= 0.99
        out.append(y + 1.0)
    return np.sum(np.array(out) ** 2)


def last_element_assigned(x):
    out = [x[0]]
    for i in range(N):
        out[-1] = out[-1] * 2.0
        out.append(out[-1] * x[i])
    return np.sum(np.array(out))


def last_of_a_list_made_empty(x):
    out = []
    for i in range(N):
        out.append(x[i] * 2.0)
        x = x + out[-1] * 0.01
    return np.sum(np.array(out))


def last_read_in_a_function(x):
    out = [x[0]]
    for _ in range(N):
        out.append((lambda: out[-1])() * 0.9)
    return np.sum(np.array(out))


def last_in_one_branch(x):
    out = [x[0]]
    for i in range(N):
        if i % 2:
            out.append(out[-1] * x[i])
    return np.sum(np.array(out)) + out[-1]


def the_same_array(x):
    out = []
    y = np.zeros(3)
    for i in range(N):
        y[0] = y[0] + x[i]
        out.append(y)
    return np.sum(np.array(out))


def modified_later(x):
    out = []
    y = x * 1.0
    for _ in range(N):
        out.append(y)
        y[0] = y[0] * 0.5
        y = y + 1.0
    return np.sum(np.array(out) * A)


def counted_meanwhile(x):
    out = []
    for i in range(N):
        out.append(x[i] * len(out))
    return np.sum(np.array(out) ** 2)


def another_name(x):
    out = []
    same = out
    for i in range(N):
        out.append(x[i] * len(same))
    return np.sum(np.array(same) ** 2)


def of_even_numbers(x):
    out = []
    for i in range(N):
        if i % 2 == 0:
            out.append(x[i] ** 2)
    return np.sum(np.array(out)) + sum([x[i] for i in range(N) if i % 3 == 0])


def late_binding(x):
    made = [lambda: x[i] for i in range(N)]  # noqa: B023
    return sum(f() for f in made)


def a_shadowed_name(x):
    def sum(values):
        return 2.0 * next(iter(values))

    return sum(x[i] for i in range(3, N))


def other_containers(x):
    table = {i: x[i] for i in range(N)}
    return table[3] * len({i % 3 for i in range(N)})


def objects(x):
    class Thing:
        def __init__(self, v):
            self.v = v

    out = []
    for i in range(N):
        out.append(Thing(x[i]))
    return out[2].v * out[-1].v


PYTHON = [
    of_short_lists, the_same_array, modified_later, counted_meanwhile, another_name,
    of_even_numbers, late_binding, a_shadowed_name, other_containers, objects, last_array_modified,
    last_element_assigned, last_of_a_list_made_empty, last_read_in_a_function, last_in_one_branch,
]  # fmt: skip


@pytest.mark.sample(3)
@pytest.mark.parametrize("f", [*NODES, *PYTHON], ids=lambda f: f.__name__)
def test_compiled_functions_are_right(f):
    np.testing.assert_allclose(wg.jit(f)(X), f(X), rtol=1e-12)
    np.testing.assert_allclose(wg.jit(wg.grad(f))(X), wg.grad(f)(X), rtol=1e-10)


@pytest.mark.parametrize("f", NODES, ids=lambda f: f.__name__)
def test_loops_become_nodes(f):
    assert len(wg.trace(f)(X).nodes) <= 56


def test_a_list_returned_from_a_compiled_function():
    def f(x):
        out = []
        for v in x:
            out.append(v * 2)
        return out

    found = wg.jit(f)(X)
    assert len(found) == N
    np.testing.assert_allclose(found, X * 2)


def test_the_last_of_too_few_elements():
    def f(x):
        out = [x]
        for _ in range(20):
            out.append(out[-1] + out[-2])
        return out[-1]

    with pytest.raises(IndexError, match="list index out of range"):
        wg.jit(f)(1.0)


def test_zip_of_other_lengths_is_strict():
    def f(x):
        out = [x]
        for _ in range(20):
            out.append(out[-1] * 2.0)
        for a, b in zip(out, np.arange(20.0), strict=True):
            x = x + a * b
        return x

    with pytest.raises(ValueError, match="shorter"):
        wg.jit(f)(1.0)


def test_a_sum_over_a_traced_range():
    def f(x, n):
        return sum(x * i for i in range(n))

    compiled = wg.jit(f)
    assert [compiled(2.0, n) for n in (100_000, 0, 3)] == [f(2.0, n) for n in (100_000, 0, 3)]
    assert compiled.cache_info().traces == 1


def test_a_list_of_unknown_length_is_refused():
    def f(x):
        out = []
        while x < 10:
            x = x * 2
            out.append(x)
        return np.array(out)

    with pytest.raises(TraceError, match=r"maximum of its length is not known.*test_lists"):
        wg.jit(f)(1.5)


def rows_and_another(x):
    return np.concatenate([x[k % 4, ::-1] for k in range(12)] + [x.T[1]])


def another_and_rows(x):
    return np.concatenate([x.T[1]] + [x[k % 4, ::-1] for k in range(12)])


def rows_over_a_matrix(x):
    return np.vstack([x[k % 4] for k in range(12)] + [x])


@pytest.mark.parametrize("f", [rows_and_another, another_and_rows, rows_over_a_matrix])
def test_rows_beside_arrays_of_other_shapes(f):
    x = np.arange(24.0).reshape(4, 6)
    np.testing.assert_array_equal(wg.jit(f)(x), f(x))


def appended_in_both_branches(x):
    out = []
    for i in range(N):
        if x[i] > 0.7:
            out.append(x[i] ** 2)
        elif x[i] > 0.4:
            y = x[i] * 3
            out.append(y)
        else:
            out.append(0.0)
    return np.sum(np.array(out) * x)


def appended_in_branches_outside_of_loops(x):
    out = [x[0]]
    if x[1] > 0.5:
        out.append((x[2], 1.0))
        out.append(x[1])
    else:
        out.append((x[3], 2))
        out.append(0)
    return out[0] * out[1][0] * out[1][1] + out[2]


def appended_unless_it_raises(x):
    out = []
    for i in range(N):
        if x[i] > 5:
            raise ValueError("large")
        else:
            out.append(x[i] * 2)
    return sum(out)


@pytest.mark.parametrize(
    "f",
    [
        appended_in_both_branches,
        appended_in_branches_outside_of_loops,
        appended_unless_it_raises,
    ],
)
def test_appending_in_both_branches(f):
    np.testing.assert_allclose(wg.jit(f)(X), f(X), rtol=1e-12)
    np.testing.assert_allclose(wg.jit(wg.grad(f))(X), wg.grad(f)(X), rtol=1e-10, atol=1e-12)
    assert len(wg.trace(f)(X).nodes) < 20
