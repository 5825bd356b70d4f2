"""Statements and functions of Python with traced values: match, in, :=, filter, tables, nditer."""

import functools
import itertools

import numpy as np
import pytest

import wengert as wg
from wengert.errors import TraceError

RNG = np.random.default_rng(11)
A, X = RNG.normal(size=(5, 5)), RNG.normal(size=12)
K = RNG.integers(0, 12, 12)
TABLE = [np.linspace(0, 1, 12), np.linspace(1, 2, 12), np.ones(12)]
FUNCTIONS = [np.sin, lambda v: v * v, lambda v: -v]
NUMBERS = {0: 0.5, 1: 1.5, 7: 2.5}


def matched(A, x, k):
    s = 0.0
    for i in range(12):
        match k[i] % 4:
            case 0:
                s += x[i]
            case 1 | 2:
                s += x[i] ** 2
            case n:
                s -= x[i] * n
    return s


def matched_with_guards(A, x, k):
    def sign(v):
        match v:
            case 0.0:
                return 0.0
            case y if y > 0:
                return y**2
            case y:
                return -y

    return sum(sign(v) for v in x) + sign(0.0 * x[0])


def matched_and_left(A, x, k):
    s = 0.0
    for i in range(12):
        match k[i] % 5:
            case 3:
                break
            case 1:
                continue
            case None:
                s = 100.0
        s += x[i]
    return s


def matched_sequences(A, x, k):
    match x.shape:
        case (n,):
            s = x[0] * n
        case _:
            s = x[1]
    for i in range(12):
        if x[i] > 0:
            s += x[i]
    return s


def named_in_conditions(A, x, k):
    s, i = 0.0, 0
    while (v := x[i]) < 1.0 and i < 11:
        s += v
        i += 1
    while i < 11 and (w := x[i]) > -5:
        s += w * i
        i += 1
    if s > 0 and (m := x.max()) > 0:
        s += m
    elif i > 3 or (m := x.min()) > 0:
        s += 2.0
    return s


def named_with_else(A, x, k):
    i, s = 0, 0.0
    while i < 10 and (v := x[i]) < 5:
        s += v
        i += 1
    else:
        s *= 2
    return s


def contained(A, x, k):
    s = 0.0
    for i in range(12):
        if k[i] in (1, 3, 5):
            s += x[i]
        if k[i] not in {2, 4}:
            s += 2 * x[i]
        if i in [1, 2] or k[i] in range(0, 12, 3):
            s -= x[i] ** 2
        if k[i] in k[:4]:
            s += 0.5 * x[i]
    return s * (2.0 if k[0] in (3, 4) else 1.0)


def filtered(A, x, k):
    return sum(filter(lambda v: v > 0, x)) + len([*filter(None, [1, 0, 2])])


def iterators(A, x, k):
    return (
        max(map(abs, x))
        + min(map(lambda v: v * v, x))
        + functools.reduce(lambda a, b: 0.5 * a + b, x)
        + sum(a * b for a, b in itertools.pairwise(x))
    )


def enumerated(A, x, k):
    s = 0.0
    for (i, j), v in np.ndenumerate(A):
        s += v * (i - j) ** 2
    for (i,), v in np.ndenumerate(x):
        s += v * i
    return s


def iterated(A, x, k):
    x, s = x.copy(), 0.0
    for v in np.nditer(x, op_flags=["readwrite"]):
        v[...] = 2 * v * v
    for v in np.nditer(A, order="C"):
        s = 0.5 * s + v
    return s + x.sum()


def unraveled(A, x, k):
    i, j = np.unravel_index(np.argmax(A), A.shape)
    return A[i, j] * x[i] + j


def arrays_of_a_table(A, x, k):
    s = (TABLE[k[0] % 3] * x).sum()
    for i in range(12):
        s += TABLE[k[i] % 3][i] * x[i] - TABLE[-1 - k[i] % 3].sum()
    return s


def functions_of_a_table(A, x, k):
    s = FUNCTIONS[k[1] % 3](x).sum()
    for i in range(12):
        s += FUNCTIONS[k[i] % 3](x[i])
    return s


def numbers_of_a_dict(A, x, k):
    s = 0.0
    for i in range(12):
        s += NUMBERS[(k[i] % 2) * 7] * x[i]
    return s


def local_tables(A, x, k):
    tables = [A * 1.0, A @ A, np.eye(5)]
    return tables[k[0] % 3].sum() * (x[0], x[1] * 2, 3.0)[k[1] % 3]


def sorted_positions(A, x, k):
    order = sorted(range(12), key=lambda i: x[i])
    return sum(x[i] * n for n, i in enumerate(order))


def named_where_a_loop_ends(A, x, k):
    i, s = 0, 0.0
    while (v := x[i]) < 0.8 and i < 11:
        s += v
        i += 1
    n = 0
    while (n := n + 1) < 20 and s < 4:
        s += abs(x[n % 12])
    y = 1.0
    while abs(d := (y * y - 2 - 0.1 * x[0]) / (2 * y)) > 1e-9:
        y -= d
    return s + v + 1e6 * d + y * n


def named_with_else_that_leaves(A, x, k):
    s = 0.0
    for i in range(12):
        j = 0
        while (v := x[(i + j) % 12]) < 0.5 and j < 4:
            s += v
            j += 1
        else:
            if s > 3:
                break
            if v > 0.7:
                continue
        s += v * j
    return s * i + v


def with_types(A, x, k):
    last: int
    s: float = 0.0
    for i in range(12):
        last = i
        if x[i] > 0:
            part: float = x[i] * last
            s += part
    if s > 100.0:
        total: float = np.sum(x)
        return total
    rest: float = s * 2.0
    return rest


PROGRAMS = [
    named_where_a_loop_ends, named_with_else_that_leaves, matched, matched_with_guards,
    matched_and_left, matched_sequences, named_in_conditions, named_with_else,
    contained, filtered, iterators, enumerated, iterated, unraveled,
    arrays_of_a_table, functions_of_a_table, numbers_of_a_dict, local_tables, sorted_positions,
    with_types,
]  # fmt: skip


@pytest.mark.sample(2)
@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_values_and_gradients(f):
    inputs = [(A, X, K), (-A.T, -X[::-1].copy(), K[::-1].copy()), (A * A, 0.3 * X, (K * 5) % 12)]
    gradient = wg.grad(f, (0, 1))
    compiled, compiled_gradient = wg.jit(f), wg.jit(gradient)
    for given in inputs:
        np.testing.assert_allclose(compiled(*given), f(*given), rtol=1e-10)
        for a, b in zip(compiled_gradient(*given), gradient(*given), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)
    batch = [np.stack(column) for column in zip(*inputs, strict=True)]
    np.testing.assert_allclose(wg.vmap(f)(*batch), [f(*given) for given in inputs], rtol=1e-10)
    np.testing.assert_allclose(wg.trace(f)(A, X, K)(*inputs[1]), f(*inputs[1]), rtol=1e-10)


def test_an_element_of_a_table_is_not_assigned_to():
    def assigned(x, k):
        tables = [x * 1.0, 2 * x]
        row = tables[k]
        row[0] = 5.0
        return tables[0].sum() + tables[1].sum()

    with pytest.raises(TraceError, match=r"not known while a graph is built.*copy\(\)"):
        wg.trace(assigned)(X, np.int64(1))


def test_an_element_of_a_table_after_a_store_to_the_table():
    def stored(x, k):
        tables = [x * 1.0, 2 * x]
        row = tables[k]
        tables[0][0] = 5.0
        return row.sum()

    with pytest.raises(TraceError, match="may share its memory"):
        wg.trace(stored)(X, np.int64(1))


def test_missing_keys_and_indices():
    def key(x, k):
        return NUMBERS[k] * x[0]

    def call(x, k):
        return FUNCTIONS[k](x[0])

    graph = wg.trace(key)(X, np.int64(1))
    assert np.isclose(graph(X, np.int64(7)), 2.5 * X[0])
    with pytest.raises(KeyError, match="missing"):
        graph(X, np.int64(3))
    graph = wg.trace(call)(X, np.int64(1))
    assert np.isclose(graph(X, np.int64(-1)), -X[0])
    with pytest.raises(IndexError, match="out of range"):
        graph(X, np.int64(3))


def test_nditer_of_an_unknown_order_is_refused():
    def iterated(A):
        return sum(v for v in np.nditer(A))

    with pytest.raises(TraceError, match="order of its memory is not known"):
        wg.jit(iterated)(A)
