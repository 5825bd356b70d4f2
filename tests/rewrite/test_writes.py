"""Reads and writes: rules look at the operand they are about, whatever the others come from."""

import itertools

import numpy as np
import pytest
from wengert.rewrite import simplify

import wengert as wg
from wengert._engine.ops.indexing.getitem import IndexSlot, scatter


def _one(x, v):
    v = v.copy()
    v[1] = 7.0
    return v


# How an array of length three, and integers in it, may have come about.
ARRAYS = {
    "input": lambda x, v, i: v * 1.0,
    "read": lambda x, v, i: x[i],
    "read back": lambda x, v, i: x[::-1],
    "written": lambda x, v, i: _one(x, v),
    "written there": lambda x, v, i: np.put_along_axis(y := x.copy(), i, v, 0) or y,
    "put there": lambda x, v, i: scatter(v, i, index=IndexSlot(0), shape=(3,)),
}
PLACES = {
    "input": lambda i: i * 1,
    "read": lambda i: i[i],
    "written": lambda i: np.put_along_axis(j := i.copy(), i, i, 0) or j,
    "put there": lambda i: scatter(i, i, index=IndexSlot(0), shape=(3,)) % 3,
}
X, V, AT = np.array([1.0, 2.0, 3.0]), np.array([4.0, 5.0, 6.0]), np.array([0, 0, 1])


def _set(x, i, v):
    x = x.copy()
    x[i] = v
    return x


@pytest.mark.parametrize("simplest", [False, True])
def test_operands_that_are_reads_and_writes_themselves(simplest):
    ways = list(itertools.product(ARRAYS.values(), ARRAYS.values(), PLACES.values()))

    def every(x, v, i):
        found = []
        for array, value, place in ways:
            a, b, j = array(x, v, i), value(x, v, i), place(i)
            found += [_set(a, i, b), _set(a, j, b), a[i], a[j]]
            found += [_set(a, slice(1, None), b[1:]), _set(a, slice(None, None, -1), b)]
        return found

    graph, wanted = wg.trace(every)(X, V, AT), every(X, V, AT)
    found = (simplify(graph) if simplest else graph)(X, V, AT)
    assert len(found) == len(wanted) == 6 * len(ways)
    for f, w in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(f, w)


def _row_of_none(x):
    v = x * 1.0
    w = v[None]
    w[0] = 2.0
    return v * x


def _rest(x):
    a = x * 1.0
    b = a[1:]
    b[0] = 5.0
    return a * x


def _rows(x):
    a = np.stack([x, 2.0 * x])
    for row in a:
        row[:] = row * x
    return a


def _columns_of_none(x):
    a = np.outer(x, x)
    b = a[:, None, 1:]
    b[:, 0] = np.sin(x)[:, None]
    b[1:, :, :1] += 3.0
    return a * x


def _views_of_views(x):
    a = np.outer(x, x)
    a[None, ::-1][0, 1:][None][..., 0] = x[1:]
    return a * x


@pytest.mark.sample(3)
@pytest.mark.parametrize("f", [_row_of_none, _rest, _rows, _columns_of_none, _views_of_views])
def test_writes_through_views_of_new_axes(f):
    x = np.array([0.3, 1.2, -0.7])
    slope = wg.grad(lambda x: np.sum(np.sin(f(x))))
    wanted = f(x.copy())
    h = 1e-6
    for make, value in ((f, wanted), (slope, slope(x))):
        np.testing.assert_array_equal(make(x), value)
        np.testing.assert_array_equal(simplify(wg.trace(make)(x))(x), value)
        np.testing.assert_allclose(wg.jit(make)(x), value, 1e-14, 1e-15)
    for k, e in enumerate(np.eye(3) * h):
        differences = (np.sum(np.sin(f(x + e))) - np.sum(np.sin(f(x - e)))) / (2 * h)
        np.testing.assert_allclose(slope(x)[k], differences, 1e-8)


def test_convolution_with_indices_of_rows_and_columns():
    def convolved(inputs, weights):
        size = weights.shape[0]
        rows, columns = inputs.shape[1] - size + 1, inputs.shape[2] - size + 1
        output = np.empty((inputs.shape[0], rows, columns, weights.shape[3]), like=inputs)
        for i in range(rows):
            for j in range(columns):
                output[:, i, j, :] = np.sum(
                    inputs[:, i : i + size, j : j + size, :, np.newaxis]
                    * weights[np.newaxis, :, :, :],
                    axis=(1, 2, 3),
                )
        return output

    def layer(inputs, weights):
        padded = np.zeros((2, 4, 4, 2), like=inputs)
        padded[:, 1:-1, 1:-1, :] = convolved(inputs, weights)
        for image in padded:
            image[:, 0][None] += 1.0
        return np.sum(np.maximum(padded, 0.1) ** 2)

    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(2, 3, 3, 2)), rng.normal(size=(2, 2, 2, 2))
    slope = wg.value_and_grad(layer, (0, 1))
    value, (dx, dw) = wg.jit(slope)(x, w)
    eager, (ex, ew) = slope(x, w)
    for found, wanted in ((value, eager), (dx, ex), (dw, ew)):
        np.testing.assert_allclose(found, wanted, 1e-13)


def test_what_is_stored_again_needs_no_store():
    def f(x, i):
        y = x * 1.0
        y[i] = y[i]
        y[1:] = y[1:]
        return y

    graph = wg.trace(f)(X, AT).simplify()
    assert "setitem" not in [n.op.name for n in graph]
    np.testing.assert_array_equal(graph(X, AT), X)


def test_what_is_stored_at_another_place_is_kept():
    def f(x, i):
        y = x * 1.0
        z = y * 1.0
        y[i] = y[i[::-1]]
        z[1:] = y[:-1]
        return y, z

    graph = wg.trace(f)(X, AT).simplify()
    for got, want in zip(graph(X, AT), f(X, AT), strict=True):
        np.testing.assert_array_equal(got, want)


def test_a_number_that_fills_a_slice_is_read_back():
    def f(x):
        y = x * 1.0
        y[1:] = 0.5
        return y[1:] * x[1:]

    graph = wg.trace(f)(X).simplify()
    assert "setitem" not in [n.op.name for n in graph]
    np.testing.assert_array_equal(graph(X), f(X))


def test_the_cotangent_of_a_modified_slice_is_written_once():
    def f(x, w):
        y = x * 1.0
        y[1:] += w
        y[:2] *= 3.0
        return np.sum(np.sin(y))

    gradient = wg.grad(f, argnums=(0, 1))
    graph = wg.trace(gradient)(X, V[1:]).simplify()
    assert [n.op.name for n in graph].count("setitem") <= 3  # two of the value
    for got, want in zip(graph(X, V[1:]), gradient(X, V[1:]), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-14)


def _row_before(a, i, v):
    a[i] = v
    return a[i - 1] + a[i]


def _same_after_all(a, i, v):
    a[i] = v
    return a[i - 1 + 1], a[2 - 2 + i], a[i]


def _same_of_four_rows(a, i, v):
    k = i % 4 - 4
    a[k] = v
    return a[k + 4], a[k + 3], a[k + 1 - 1]


def _columns_at_two_counters(a, i, v):
    a[:, i] = v
    a[:, i - 2] += 2.0 * a[:, i + 1 - 2]
    a[:, i] = a[:, i] + a[:, i - 2]
    return a[1:, i], a[:2, i - 1], a[1, i - 2]


def _numbers(a, i, v):
    a[1] = v
    a[-1, 2] = 7.0
    a[i] += a[-3] - a[2, 2] + a[3, -2]
    return a[1], a[0], a[3, 2]


def _arrays_and_masks(a, i, v):
    a[[0, 2], i] = 5.0
    b = a[[0, 2], i - 1] + a[[2, 0], i]
    a[:, 1] = np.where(a[:, 0] > 0.5, 3.0, a[:, 1])
    return b, a[1], a[..., i], a[None][0, i - 1]


def _narrow_counters(a, i, v):
    k = np.asarray(i, dtype=np.int8)
    a[k] = v
    return a[k + np.int8(1) - np.int8(2)], a[k]


_BESIDE = [
    _row_before, _same_after_all, _same_of_four_rows, _columns_at_two_counters, _numbers,
    _arrays_and_masks, _narrow_counters,
]  # fmt: skip


@pytest.mark.parametrize("f", _BESIDE)
def test_elements_beside_those_that_were_written(f):
    a, v = np.arange(16.0).reshape(4, 4) / 16.0, np.array([0.2, 1.1, 0.7, 1.9])

    def of(a, i, v):
        a = a * 1.0
        found = f(a, i, v)
        return found if isinstance(found, tuple) else (found,), a

    def total(a, i, v):
        found, a = of(a, i, v)
        return sum([np.sum(np.sin(x)) for x in found]) + np.sum(a * a)

    traced = wg.trace(of)(a, np.int64(1), v)
    simplest, slope = simplify(traced), wg.grad(total, (0, 2))
    compiled, compiled_slope = wg.jit(of), wg.jit(slope)
    for i in (-1, 0, 1, 2):
        for g in (simplest, compiled):
            (found, array), (wanted, written) = g(a, np.int64(i), v), of(a, i, v)
            for x, y in zip((*found, array), (*wanted, written), strict=True):
                np.testing.assert_array_equal(x, y)
        for x, y in zip(compiled_slope(a, np.int64(i), v), slope(a, i, v), strict=True):
            np.testing.assert_allclose(x, y, 1e-14, 1e-15)


def _of(graph, name):
    return [n for n in graph if n.op.name == name]


def test_elements_beside_are_read_from_the_array_before():
    def f(a, i, v):
        a = a.copy()
        a[:, i] = v
        return a[:, i - 1], a[:, i + 4], a

    graph = simplify(wg.trace(f)(np.ones((4, 4)), np.int64(1), 2.0))
    (write,) = _of(graph, "setitem")
    beside, same, _ = graph.outputs
    assert beside.args[0] is write.args[0]
    assert same.args[0] is write  # the same column, because there are four


def test_an_unknown_number_of_rows_may_make_them_the_same():
    def f(a, i, v):
        a = a.copy()
        a[i] = v
        return a[i - 1], a

    graph = simplify(wg.trace(f)(wg.spec(("n", 2)), wg.spec((), np.int64), 2.0))
    (write,) = _of(graph, "setitem")
    assert graph.outputs[0].args[0] is write
    np.testing.assert_array_equal(graph(np.ones((1, 2)), 0, 2.0)[0], [2.0, 2.0])


def test_stores_that_are_overwritten_before_they_are_read():
    def f(a, i, j, v):
        a = a.copy()
        a[i] = v
        a[j] = 2.0
        b = a[j] * 3.0
        a[i] = b
        return a

    def read(a, i, j, v):
        a = a.copy()
        a[i] = v
        b = a[j] * 3.0  # which may be what was written
        a[i] = b
        return a

    def kept(a, i, j, v):
        a = a.copy()
        a[i] = v
        before = a.copy()
        a[j] = 2.0
        a[i] = 3.0
        return before, a

    a = np.arange(4.0)
    for g, count in ((f, 2), (read, 2), (kept, 3)):
        graph = simplify(wg.trace(g)(a, np.int64(1), np.int64(2), 5.0))
        assert len(_of(graph, "setitem")) == count
        for i, j in itertools.product((0, 1, -1), repeat=2):
            for found in (graph(a, i, j, 5.0), wg.jit(g)(a, i, j, 5.0)):
                np.testing.assert_array_equal(found, g(a, i, j, 5.0))
    with pytest.raises(IndexError):
        wg.jit(f)(a, 4, 1, 5.0)
    with pytest.raises(IndexError):
        wg.jit(f)(a, 1, -5, 5.0)


def test_a_loop_writes_each_array_once_in_a_step():
    def recurrence(a, b):
        for k in range(1, a.shape[1]):
            a[:, k] = 0.5 * b[:, k]
            a[:, k] = a[:, k] / (2.0 + a[:, k - 1])
            b[:, k] = b[:, k] - a[:, k - 1] * b[:, k - 1]
            b[:, k] += 1.0
        return a, b

    a, b = np.random.default_rng(0).normal(size=(2, 5, 12))
    graph = simplify(wg.trace(lambda a, b: recurrence(a.copy(), b.copy()))(a, b))
    (loop,) = _of(graph, "scan")
    assert len(_of(loop.params["body"], "setitem")) == 2
    wanted = recurrence(a.copy(), b.copy())
    for x, y in zip(wg.jit(recurrence)(a.copy(), b.copy()), wanted, strict=True):
        np.testing.assert_allclose(x, y, 1e-14)
    slope = wg.grad(lambda a, b: np.sum(np.sin(sum(recurrence(a, b)))), (0, 1))
    for x, y in zip(wg.jit(slope)(a.copy(), b.copy()), slope(a, b), strict=True):
        np.testing.assert_allclose(x, y, 1e-12, 1e-14)
