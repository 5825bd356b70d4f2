"""Lists to which only some iterations append: their length is not known while a graph is built."""

import numpy as np
import pytest

import wengert as wg
from wengert.errors import TraceError

X = np.random.default_rng(5).normal(size=13)


def positive(x):
    out = []
    for v in x:
        if v > 0:
            out.append(v * v)
    return sum(out) + len(out) * x[0]


def array(x):
    out = []
    for i in range(len(x)):
        if x[i] > 0:
            out.append(x[i])
    a = np.array(out)
    return a.mean() + a.max() * a[0] + np.sort(a)[1] + np.median(out) + np.std(out)


def both_signs(x):
    positive, negative = [], []
    for v in x:
        if v > 0:
            positive.append(v)
        else:
            negative.append(-v)
    return sum(positive) * 2 + np.prod(negative) + len(positive)


def one_or_two(x):
    out = [x[0]]
    for v in x:
        out.append(v)
        if v > 0.3:
            out.append(2 * v)
    return np.sum(np.array(out) * np.cumsum(out))


def left_early(x):
    out = [x[0]]
    for i in range(1, len(x)):
        if x[i] > 1.0:
            break
        out.append(0.5 * out[-1] + x[i])
    return sum(out) + out[-1] + len(out)


def skipped(x):
    out = []
    for v in x:
        if v < 0:
            continue
        out.append(np.sqrt(v))
    return np.sum(out) / len(out) if len(out) > 0 else x[0]


def of_tuples(x):
    events = []
    for i, v in enumerate(x):
        if v > 0:
            events.append((i, v))
    total = 0.0
    for i, v in events:
        total += i * v
    return total + events[0][1]


def of_rows(x):
    rows = []
    for i in range(11):
        if x[i] < x[i + 1]:
            rows.append(x[i : i + 2] ** 2)
    table = np.array(rows)
    return (table[:, 0] * table[:, 1]).sum() + rows[0][1] + np.vstack(rows).max()


def peaks(x):
    found = []
    for i in range(1, len(x) - 1):
        if x[i - 1] < x[i] > x[i + 1]:
            found.append(i)
    return sum(x[i] for i in found) + sum(x[found]) + len(found)


def nested(x):
    out = []
    for i in range(10):
        for j in range(i):
            if x[i] > x[j]:
                out.append(x[i] - x[j])
    return np.array(out).sum() + len(out)


def comprehension(x):
    chosen = [v**2 for v in x if v > 0]
    return sum(chosen) + max(chosen) + len(chosen) + sum([v for v in x if v < 0])


def min_and_max(x):
    return min(v for v in x if v > 0) + max(2 * v for v in x if v < 0)


def filled_from_a_filled(x):
    first = [v for v in x if v > -0.5]
    second = []
    for v in first:
        if v < 0.5:
            second.append(v)
    return np.mean(second) + len(second)


def appended_to_twice(x):
    out = []
    for v in x:
        if v > 0:
            out.append(v)
    out.append(3.0)
    for v in x:
        if v < 0:
            out.append(v)
    return (np.array(out) * np.cumsum(out)).sum()


def truth(x):
    out = []
    for v in x:
        if v > 5:
            out.append(v)
    if out:
        return sum(out)
    return x[1] if not out else x[2]


def short(x):
    out = []
    for i in range(3):
        if x[i] > 0:
            out.append(x[i])
    if x[4] > 0:
        out.append(x[4])
    return sum(out) + len(out)


PROGRAMS = [
    positive, array, both_signs, one_or_two, left_early, skipped, of_tuples,
    of_rows, peaks, nested, comprehension, min_and_max, filled_from_a_filled, appended_to_twice,
    truth, short,
]  # fmt: skip


@pytest.mark.sample(2)
@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_values_and_gradients(f):
    inputs = [X, -X[::-1].copy(), 0.5 * np.roll(X, 5)]
    compiled, gradient = wg.jit(f), wg.jit(wg.grad(f))
    for x in inputs:
        np.testing.assert_allclose(compiled(x), f(x), rtol=1e-10)
        np.testing.assert_allclose(gradient(x), wg.grad(f)(x), rtol=1e-9, atol=1e-12)
    batch = np.stack(inputs)
    np.testing.assert_allclose(wg.vmap(f)(batch), [f(x) for x in inputs], rtol=1e-10)


def test_what_needs_the_length_is_refused():
    def concatenated(x):
        out = []
        for v in x:
            if v > 0:
                out.append(v)
        return sum(out + [1.0])  # noqa: RUF005

    with pytest.raises(TraceError, match=r"appended to a list.*\+ requires it.*np\.array\(out\)"):
        wg.jit(concatenated)(X)


def test_a_list_with_another_name_is_refused():
    def renamed(x):
        out = [x[0]]
        same = out
        if x[1] > 0:
            out.append(x[2])
        return sum(same)

    with pytest.raises(TraceError, match="which may have another name"):
        wg.jit(renamed)(X)


def test_a_list_of_unknown_length_has_other_names():
    def renamed(x):
        out = []
        for v in x:
            if v > 0:
                out.append(v)
        same = out
        out.append(2.0)
        return sum(same) + len(same)

    assert np.isclose(wg.jit(renamed)(X), renamed(X))
