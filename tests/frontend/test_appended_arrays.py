"""Elements of lists that compiled loops fill are the arrays that were appended, not copies of them.

SHARED     programs whose results are those of NumPy
REFUSED    programs in which it is not known which element an array is; using it is an error
"""

import numpy as np
import pytest

import wengert as wg
from wengert.errors import TraceError

N = 14  # above the length of loops that are unrolled
X = np.linspace(0.1, 1.0, 5)
SHARED, REFUSED = [], []


def filled(x):
    out = []
    y = x * 1.0
    for _ in range(N):
        y = y + x
        out.append(y)
    return out, y


@SHARED.append
def modified_in_the_next_iteration(x):
    out = []
    y = x * 1.0
    for _ in range(N):
        y *= 0.9
        y = y + x
        out.append(y)
    return np.sum(np.array(out) ** 2) + np.sum(y**2)


@SHARED.append
def modified_two_iterations_later(x):
    out = []
    y, z = x * 1.0, x * 2.0
    for _ in range(N):
        y *= 0.9
        y = z
        z = y + x
        out.append(z)
    return np.sum(np.array(out) ** 2)


@SHARED.append
def a_view_modified_in_the_next_iteration(x):
    out = []
    y = x * 1.0
    for _ in range(N):
        v = y[2:]
        v[0] = v[1] * 0.9
        y = y + x
        out.append(y[1:])
    return np.sum(np.array(out) ** 2)


@SHARED.append
def in_a_tuple_that_is_exchanged(x):
    out = []
    p = (x * 1.0, x * 2.0)
    for _ in range(N):
        p[0][1:] *= 0.5
        p = (p[1], p[0] + x)
        out.append(p[1])
    return np.sum(np.array(out) ** 2)


@SHARED.append
def of_a_dict_and_in_a_dict(x):
    out = []
    d = {"a": x * 1.0}
    for _ in range(N):
        d["a"] *= 0.9
        d["a"] = d["a"] + x
        out.append({"b": d["a"]})
    return sum(np.sum(v["b"] ** 2) for v in out)


@SHARED.append
def appended_in_some_iterations(x):
    out = []
    y = x * 1.0
    for i in range(N):
        y *= 0.9
        y = y + x
        if x[0] > 0.01 * i:
            out.append(y)
    return np.sum(np.array(out) ** 2)


@SHARED.append
def in_a_comprehension(x):
    y = x * 1.0

    def step():
        nonlocal y
        y *= 0.9
        y = y + x
        return y

    out = [step() for _ in range(N)]
    return np.sum(np.array(out) ** 2)


@SHARED.append
def the_last_one_modified(x):
    out, y = filled(x)
    y[1:] *= 2.0
    return np.sum(np.array(out) ** 2) + np.sum(y**2)


@SHARED.append
def the_last_element_modified(x):
    out, y = filled(x)
    out[-1][1:] = 0.5
    return np.sum(np.array(out) ** 2) + np.sum(y**2)


@SHARED.append
def the_last_one_of_tuples_modified(x):
    out = []
    y = x * 1.0
    for i in range(N):
        y = y + x
        out.append((y, i * x[0]))
    y *= 0.5
    return sum(np.sum(v**2) for v, _ in out) + np.sum(y**2)


@SHARED.append
def the_last_one_of_several_modified(x):
    out = []
    y, z = x * 1.0, x * 0.5
    for _ in range(N):
        y = y + x
        z = z + y
        out.append(z)
        out.append(y)
    z[0] *= 0.5
    y[1] *= 0.5
    return np.sum(np.array(out) ** 2) + np.sum(y**2) + np.sum(z**2)


@SHARED.append
def the_next_one_modified(x):
    out = []
    y = x * 1.0
    for _ in range(N):
        out.append(y)
        y = y + x
    y *= 2.0
    return np.sum(np.array(out) ** 2) + np.sum(y**2)


@SHARED.append
def elements_modified_in_a_loop_over_them(x):
    out, y = filled(x)
    for v in out:
        v *= 0.5
    return np.sum(np.array(out) ** 2) + np.sum(y**2)


@SHARED.append
def elements_modified_in_a_loop_over_two_lists(x):
    (out, y), (more, z) = filled(x), filled(x * 0.5)
    for i, (v, w) in enumerate(zip(out, more, strict=True)):
        v += w * i
    return np.sum(np.array(out) ** 2) + np.sum(np.array(more) ** 2) + np.sum(y**2) + np.sum(z**2)


@SHARED.append
def counted_before_an_element_is_modified(x):
    out = []
    y = x * 1.0
    if x[0] > 0.05:
        out.append(y)
    n = len(out)
    y *= 0.5
    return n * np.sum(np.array(out) ** 2)


@SHARED.append
def an_array_from_before_a_loop_that_ends_early(x):
    out = []
    y = x * 2.0
    for i in range(N):
        out.append(y)
        if x[1] * 20.0 < i:
            break
    y[1] = x[0]
    return np.sum(np.array(out) ** 2)


@SHARED.append
def modified_and_appended_in_a_loop_that_ends_early(x):
    out = []
    y = x * 1.0
    for i in range(N):
        y *= 0.9
        if x[0] > 0.02 * i:
            out.append(y)
        if np.sum(y) < 1.0:
            break
    return np.sum(np.array(out) ** 2)


@SHARED.append
def the_last_one_modified_in_a_loop(x):
    out, y = filled(x)
    for _ in range(N):
        y *= 0.9
        y = y + x
    return np.sum(np.array(out) ** 2) + np.sum(y)


@SHARED.append
def elements_modified_in_a_loop_by_their_positions(x):
    out, _ = filled(x)
    for i in range(N):
        out[-1][i % 5] *= 0.9
        out[2][i % 5] *= 0.8
    return np.sum(np.array(out) ** 2)


@REFUSED.append
def rows_of_a_matrix(x):
    A = np.outer(np.ones(N), x)
    rows = [A[i] for i in range(N)]
    A[3] *= 2.0
    return np.sum(np.array(rows) ** 2)


@REFUSED.append
def a_matrix_of_which_a_row_is_modified(x):
    A = np.outer(np.ones(N), x)
    rows = [A[i] for i in range(N)]
    rows[3][2] *= 2.0
    return np.sum(A**2)


@REFUSED.append
def the_last_one_in_two_lists(x):
    out = []
    more = []
    y = x * 1.0
    for _ in range(N):
        y = y + x
        out.append(y)
        more.append(y)
    y *= 0.5
    return np.sum(np.array(out) ** 2) + np.sum(np.array(more) ** 2)


@REFUSED.append
def an_element_of_two_lists(x):
    out = []
    more = []
    y = x * 1.0
    for _ in range(N):
        y = y + x
        out.append(y)
        more.append(y)
    out[5] *= 0.5
    return np.sum(np.array(more) ** 2)


@REFUSED.append
def the_array_from_before_the_loop(x):
    first = y = x * 1.0
    out = []
    for _ in range(N):
        out.append(y)
        y = y + x
    first *= 0.5
    return np.sum(np.array(out) ** 2)


@REFUSED.append
def the_last_but_one(x):
    out = []
    y, z = x * 1.0, x * 2.0
    for _ in range(N):
        z = y
        y = y + x
        out.append(y)
    z *= 0.5
    return np.sum(np.array(out) ** 2) + np.sum(y**2)


@REFUSED.append
def views_of_the_last_one(x):
    out = []
    y = x * 1.0
    for _ in range(N):
        y = y + x
        out.append(y[1:])
    y *= 0.5
    return np.sum(np.array(out) ** 2)


@REFUSED.append
def the_last_one_of_a_loop_that_ends_early(x):
    out = []
    y = x * 1.0
    for _ in range(N):
        y = y + x
        out.append(y)
        if np.sum(y) > 20.0:
            break
    y[1] = 0.5
    return np.sum(np.array(out) ** 2)


@REFUSED.append
def the_last_one_of_a_list_of_unknown_length(x):
    out = []
    y = x * 1.0
    for i in range(N):
        y = y + x
        if x[0] > 0.01 * i:
            out.append(y)
    n = len(out)
    y *= 0.5
    return n * np.sum(np.array(out) ** 2)


@REFUSED.append
def an_array_that_is_appended_again(x):
    out = []
    y = x * 1.0
    for i in range(N):
        if x[0] > 0.01 * i:
            y = y + x
        out.append(y)
    out[3] *= 0.5
    return np.sum(np.array(out) ** 2)


@REFUSED.append
def a_list_of_unknown_length_of_which_elements_are_modified(x):
    out = []
    y = x * 1.0
    for _ in range(N):
        y = y + x
        out.append(y)
        if np.sum(y) > 20.0:
            break
    for v in out:
        v[1] = 0.5
    return np.sum(y)


@REFUSED.append
def elements_modified_at_indices(x):
    out, y = filled(x)
    for i in range(N):
        out[i][2] = i * x[3]
    return np.sum(y**2)


@REFUSED.append
def elements_by_other_names_modified_at_indices(x):
    y = x * 1.0
    out = [y, x * 2.0, x * 3.0]
    for i in range(80):
        out[i % 3][i % 5] *= 0.9
    return np.sum(y**2)


@REFUSED.append
def elements_of_a_list_of_the_same_arrays(x):
    out, _ = filled(x)
    more = [v for v in out]
    more[3][0] = 5.0
    return np.sum(np.array(out) ** 2)


@pytest.mark.parametrize("f", SHARED, ids=lambda f: f.__name__)
def test_elements_are_the_arrays_that_were_appended(f):
    np.testing.assert_allclose(wg.trace(f)(X)(X), f(X), rtol=1e-13)


@pytest.mark.parametrize("f", SHARED[::4], ids=lambda f: f.__name__)
def test_gradients_see_changes_of_elements(f):
    np.testing.assert_allclose(wg.jit(wg.grad(f))(X), wg.grad(f)(X), rtol=1e-12)


@pytest.mark.parametrize("f", REFUSED, ids=lambda f: f.__name__)
def test_elements_that_may_have_been_changed_are_refused(f):
    with pytest.raises(TraceError, match="element of a list"):
        wg.trace(f)(X)
    assert np.isfinite(wg.grad(f)(X)).all()


# ---- branches that write to elements of a list that a loop has filled ----------------------------


def _filled(x):
    w = x + 1.0
    out = []
    for i in range(20):
        out.append(w * 0.5 + i)
    return out


def _weighted(out):
    return np.sum(np.array(out) ** 2 * np.arange(1.0, 21.0)[:, None])


def write_elements(x):
    out = _filled(x)
    if x[0] * 0.1 > 0.05:
        for j in range(len(out)):
            out[j][1] = 0.5
    return _weighted(out)


def assign_and_write(x):
    out = _filled(x)
    if x[0] * 0.1 > 0.05:
        for j in range(len(out)):
            out[j] = out[j] * 2.0
        for j in range(len(out)):
            out[j][0] += 1.0
    else:
        for j in range(10):
            out[j][2] -= 3.0
    return _weighted(out)


def write_twice(x):
    out, s = _filled(x), 0.0
    if x[0] * 0.1 > 0.05:
        for j in range(len(out)):
            out[j][1] = 0.5
            s = s + out[j].sum()
        out[2][0] = 7.0
    for j in range(20):
        out[j][3] *= 2.0
    return _weighted(out) + s


def write_in_a_loop(x):
    out, n = _filled(x), 0
    while n < 3:
        if x[n] * 0.1 > 0.045:
            for j in range(len(out)):
                out[j][1] *= x[n]
        n += 1
    return _weighted(out)


@pytest.mark.parametrize("f", [write_elements, assign_and_write, write_twice, write_in_a_loop])
def test_branches_write_to_elements(f):
    points = np.array([[0.3, 0.475, 0.65, 0.8, 1.0], [0.9, 0.1, 0.4, 0.8, 0.2]])
    for traced_at in points:
        graph = wg.trace(f)(traced_at)
        for x in points:
            np.testing.assert_allclose(graph(x), f(x), rtol=1e-12)
    gradient = wg.jit(wg.grad(f))
    for x in points:
        steps = 1e-6 * np.eye(5)
        expected = [(f(x + d) - f(x - d)) / 2e-6 for d in steps]
        np.testing.assert_allclose(gradient(x), expected, rtol=1e-6)
