"""Slices that loops write into the arrays that they carry: in place where that is possible."""

import numpy as np
import pytest

import wengert as wg
from wengert._engine.backends.llvm.loops.in_place import _in_place, updates_of

DTYPES = [np.float64, np.float32]


def alternating(steps, a, b):
    for _ in range(steps):
        b[1:-1, 1:-1] = 0.2 * (a[1:-1, 1:-1] + a[:-2, 1:-1] + a[2:, 1:-1] + a[1:-1, :-2])
        a[1:-1, 1:-1] = 0.3 * (b[1:-1, 1:-1] + b[1:-1, 2:] - b[2:, 1:-1])


def own_places(steps, a, b):
    for _ in range(steps):
        a[1:] -= 0.5 * (b[1:] - b[:-1])
        b[:-1] += 0.25 * (a[1:] - a[:-1])


def edges(steps, a, b):
    for t in range(steps):
        a[0] = t
        a[1:, 1:-1] = 0.5 * b[1:, 1:-1]
        a[:, 0] = b[:, 1]
        b[:, -1] = 2.0


def reads_neighbors(steps, a, b):
    for _ in range(steps):
        a[1:-1] = 0.5 * (a[:-2] + a[2:])
        b[:, 1:] = a[:, 1:] * b[:, :-1]


def reads_old_elements_later(steps, a, b):
    for _ in range(steps):
        old = a.copy()
        a[1:] = 0.5 * b[1:]
        b[:-1] = b[:-1] + old[1:] - a[:-1]


def values_used_again(steps, a, b):
    for _ in range(steps):
        new = np.cos(b[1:-1]) * 0.5
        a[1:-1] = new
        b[2:] = new + a[2:] - new[::-1]
        b[:-2] = new * a[:-2]


def swapped(steps, a, b):
    for _ in range(steps):
        a[1:] = 0.5 * b[1:]
        b[1:] = a[1:] + 1.0
        a, b = b, a
    return a - 2.0 * b


def values_of_each_other(steps, a, b):
    for _ in range(steps):
        x, y = np.sin(a[1:]), np.cos(b[1:])
        a[0] = 0.5 * y[0]
        b[0] = 0.5 * x[0]
        a[1:] = x
        b[1:] = y
        a[0] += b[1] + x[1]


def a_sum_of_what_was(steps, a, b):
    total = 0.0
    for _ in range(steps):
        before = np.sum(a)
        a[1:-1] = 0.9 * b[1:-1]
        b[:] = b + 0.01 * before
        total += before - np.sum(a)
    return total


def until_small(steps, a, b):
    n = 0
    while np.max(np.abs(a)) > 1e-3 and n < 7 * steps:
        a[1:-1] = 0.5 * b[1:-1]
        b[1:] = 0.5 * a[1:]
        b[0] = a[0] = 0.0
        a[-1] = 0.0
        n += 1
    return n


def reads_rows_of_another(steps, a, b):
    for t in range(steps):
        a[1:] = 0.5 * a[1:] + b[t % 3] * np.cos(b[(2 * t) % 3])
        a[:1] -= b[t % 2]


def reads_own_rows(steps, a, b):
    for t in range(steps):
        a[1:] = 0.5 * a[1:] + a[t % 3]
        b[1:] = 0.5 * b[1:] + (2.0 * b)[t % 3]


PROGRAMS = [
    alternating, own_places, edges, reads_neighbors, reads_old_elements_later, values_used_again,
    reads_rows_of_another, reads_own_rows, swapped, values_of_each_other, a_sum_of_what_was,
    until_small,
]  # fmt: skip


def given(shape, dtype):
    rng = np.random.default_rng(sum(shape))
    return [rng.normal(size=shape).astype(dtype) for _ in range(2)]


@pytest.mark.sample(8)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(3, 40), (17, 19), (40, 64)])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_arrays_are_as_in_numpy(program, shape, dtype):
    wanted, found = given(shape, dtype), given(shape, dtype)
    compiled = wg.jit(program)
    for _ in range(2):
        right, out = program(5, *wanted), compiled(5, *found)
        tolerance = 20 * np.finfo(dtype).eps
        for x, y in zip(wanted, found, strict=True):
            np.testing.assert_allclose(y, x, rtol=tolerance, atol=tolerance)
        if right is not None:
            np.testing.assert_allclose(out, right, rtol=100 * tolerance, atol=100 * tolerance)


@pytest.mark.sample(3)
@pytest.mark.parametrize("program", PROGRAMS[:8], ids=lambda p: p.__name__)
def test_elements_that_are_not_finite(program):
    wanted, found = given((19, 23), np.float64), given((19, 23), np.float64)
    for arrays in (wanted, found):
        arrays[0][4, 5], arrays[0][7, 7], arrays[1][12, 3] = np.nan, np.inf, -np.inf
    with np.errstate(all="ignore"):
        program(3, *wanted)
    wg.jit(program)(3, *found)
    for x, y in zip(wanted, found, strict=True):
        np.testing.assert_allclose(y, x, rtol=1e-14, atol=1e-14)


@pytest.mark.sample(1)
@pytest.mark.parametrize("program", PROGRAMS[:11], ids=lambda p: p.__name__)
def test_gradients_are_those_of_the_tape(program):
    def loss(a, b):
        out = program(3, a, b)
        return np.sum(np.sin(a)) + np.sum(b * b) + (0.0 if out is None else np.sum(out))

    a, b = given((6, 30), np.float64)
    gradient = wg.grad(loss, argnums=(0, 1))
    wanted, found = gradient(a.copy(), b.copy()), wg.jit(gradient)(a.copy(), b.copy())
    for x, y in zip(wanted, found, strict=True):
        np.testing.assert_allclose(y, x, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        (alternating, [True, True]),
        (own_places, [True, True]),
        (edges, [True, True]),
        (reads_neighbors, [False, False]),
        (reads_old_elements_later, [False, True]),
        (reads_rows_of_another, [True]),
    ],
    ids=lambda p: getattr(p, "__name__", ""),
)
def test_which_arrays_are_written_in_place(program, expected):
    a, b = given((20, 30), np.float64)
    graph = wg.trace(lambda a, b: (program(9, a, b), a, b)[1:])(a, b)
    (loop,) = [n for n in graph if n.op.name == "scan"]
    ((body, updates, _, _),) = updates_of(loop)
    shapes = [body.inputs[given].spec.shape for given, _ in updates]
    found = [x for x, shape in zip(_in_place(body, updates), shapes, strict=True) if shape]
    assert found == expected


def by_views_of_rows(a):
    for i in range(1, a.shape[0] - 1):
        v = a[0]
        v[i] = 0.5
        w = a[2]
        w[i] = 0.25
    return a


def by_views_in_a_short_loop(a):
    for i in range(1, a.shape[0] - 1):
        for k in range(0, 6, 2):
            row = a[k]
            row[i] = a[1, i] * row[i]
    return a


@pytest.mark.parametrize("fun", [by_views_of_rows, by_views_in_a_short_loop])
def test_stores_at_one_index_of_several_rows(fun):
    """Two rows of one array are different arrays: one is not written over the other."""
    a = np.random.default_rng(3).normal(size=(8, 8))

    def loss(a):
        return np.sum(np.sin(fun(a * 1.0)) ** 2)

    np.testing.assert_allclose(wg.jit(lambda a: fun(a * 1.0))(a), fun(a * 1.0), rtol=1e-15)
    np.testing.assert_allclose(wg.jit(wg.grad(loss))(a), wg.grad(loss)(a), rtol=1e-12, atol=1e-15)
