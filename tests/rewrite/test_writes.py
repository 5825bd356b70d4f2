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
