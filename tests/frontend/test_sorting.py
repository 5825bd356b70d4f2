"""Sorting of traced numbers, and strings made of traced values."""

import numpy as np
import pytest

import wengert as wg
from wengert.errors import TraceError

N = 30
X = np.linspace(0.2, 1.2, N)


def shuffled(x, n=10):
    return [x[(k * 7) % n] * 1.0 for k in range(n)]


def sorted_numbers(x):
    return sum(v * (k + 1) for k, v in enumerate(sorted(shuffled(x))))


def sorted_in_reverse(x):
    s = sorted([x[3], x[1], 0.5, x[7]], reverse=True)
    return s[0] * 2 + s[1] * 3 + s[2] * 4


def sorted_by_a_key(x):
    rows = [(x[(k * 7) % 10] * (k % 3 + 1), k, x[k : k + 2]) for k in range(10)]
    s = sorted(rows, key=lambda row: row[0], reverse=True)
    return np.sum(s[0][2]) * 2 + s[3][0] + s[5][1] * s[9][2][1]


def equal_keys_stay_in_order(x):
    rows = [(x[0] * (k % 3), k) for k in range(9)]
    s = sorted(rows, key=lambda row: row[0])
    t = sorted(rows, key=lambda row: row[0], reverse=True)
    return sum(k * (v[1] + 1) + k * k * w[1] for k, (v, w) in enumerate(zip(s, t))) * x[1]  # noqa: B905


def sorted_tuples(x):
    s = sorted([(x[k] * (k % 2), x[(k * 7) % 10], k) for k in range(10)])
    t = sorted([(k % 2, x[(k * 7) % 10]) for k in range(10)], reverse=True)
    return sum((k + 1) * (a * 2 + b) + c * k for k, (a, b, c) in enumerate(s)) + t[0][1] * t[6][1]


def sorted_by_a_known_key(x):
    s = sorted(range(5), key=lambda k: -k)
    t = sorted([3, 1, 2], reverse=True)
    return x[s[0]] * 2 + x[t[0]] * 3


def sorted_in_place(x):
    s = shuffled(x)
    s.sort()
    t = [x[3] * 1.0, x[1] * 1.0, 2]
    t.sort(key=lambda v: -v)
    return sum(v * (k + 1) for k, v in enumerate(s)) + t[0] * 3 + t[1] * 2 + t[2]


def extremes_by_a_key(x):
    best = min([x[0], x[5], x[7]], key=lambda v: (v - 0.5) ** 2)
    pair = max(((x[k], x[k + 1]) for k in range(5)), key=lambda p: p[0] * p[1])
    return best + pair[1] + x[max(range(N), key=lambda k: -abs(k - 5))]


def extremes_of_entries(x):
    d = {k: x[k] ** 2 for k in range(4)}
    return max(d.values()) + min(d.values()) * 3


def strings_of_counters(x):
    log, total = [], 0.0
    for i in range(20):
        n = len(f"{i}") + len(str(i)) + len("%d" % i) + len("{}".format(i))  # noqa: UP031, UP032
        total += x[i] * n
        log.append(f"step {i:3d}")
    return total * len(log[3])


def messages(x):
    total = 0.0
    for i in range(20):
        if x[i] < 0:
            raise ValueError(f"negative: {i}, " + str(x[i]) + " at {}".format(i))  # noqa: UP032
        total += x[i]
    return total


PROGRAMS = [
    sorted_numbers, sorted_in_reverse, sorted_by_a_key, sorted_tuples, equal_keys_stay_in_order,
    sorted_by_a_known_key, sorted_in_place, extremes_by_a_key, extremes_of_entries,
    strings_of_counters, messages,
]  # fmt: skip


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_compiled_functions_are_right(f):
    np.testing.assert_allclose(wg.jit(f)(X), f(X), rtol=1e-12)
    np.testing.assert_allclose(wg.jit(wg.grad(f))(X), wg.grad(f)(X), rtol=1e-10, atol=1e-12)


def test_the_eager_gradient_is_that_of_differences():
    for f in (sorted_by_a_key, sorted_in_place, extremes_by_a_key):
        h = 1e-6 * np.eye(N)[3]
        np.testing.assert_allclose(wg.grad(f)(X)[3], (f(X + h) - f(X - h)) / 2e-6, rtol=1e-5)


def test_sorting_unlike_elements_is_refused():
    with pytest.raises(TraceError, match=r"sorting by values .*: an element has shape.*test_sort"):
        wg.jit(lambda x: sorted([x[:2], x[:3]], key=lambda v: v[0]))(X)
    with pytest.raises(TraceError, match="a key is not a number"):
        wg.jit(lambda x: sorted([x[:2], x[1:3]], key=lambda v: v + 1))(X)


def test_messages_stay_in_nodes():
    assert len(wg.trace(messages)(X).nodes) < 20
