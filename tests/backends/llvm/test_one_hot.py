"""One element of each row: selected, and scattered into zeros, without a temporary array."""

import numpy as np
import pytest
from wengert.backends import backend

import wengert as wg
from wengert._engine.backends.llvm.profile.program_summary import summary_of
from wengert._engine.core.op import lookup

RNG = np.random.default_rng(0)


def loss(z, labels):
    logs = wg.numpy.log_softmax(z, axis=1)
    return -np.mean(logs[wg.numpy.arange(z.shape[0]), labels])


@pytest.mark.parametrize("sizes", [(7, 11), ("n", 11), ("n", "k")])
def test_cross_entropy_is_one_fused_loop(sizes):
    z, labels = RNG.normal(size=(7, 11)) * 3.0, RNG.integers(-11, 11, 7)
    f = wg.value_and_grad(loss)
    graph = wg.trace(f)(wg.spec(sizes), wg.spec(sizes[:1], "int64")).simplify()
    made = backend("llvm").program(graph)
    assert not made.host_callbacks
    summary = summary_of(made)
    assert len(summary.nests) <= 2 and not summary.calls
    value, slope = wg.computation(
        wg.trace(f)(wg.spec(sizes), wg.spec(sizes[:1], "int64")), backend="llvm"
    )(z, labels)
    expected, bar = f(z, labels)
    np.testing.assert_allclose(value, expected, rtol=1e-13)
    np.testing.assert_allclose(slope, bar, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("shape, index", [
    ((5, 4), (np.arange(5), [0, 3, -1, 3, 2])),
    ((5, 4), ([0, 4, -1, 4, 2][:4], np.arange(4))),
    ((3, 5, 4), (slice(None), np.arange(5), [0, 3, -1, 3, 2])),
    ((5, 2, 4), (np.arange(5), slice(None), [0, 3, -1, 3, 2])),
    ((5, 4), (np.arange(5)[::-1].copy(), [0, 3, -1, 3, 2])),
    ((5, 4), ([0, 0, 1, 1, 1], [0, 0, 3, 3, 2])),
])  # fmt: skip
def test_picking_and_its_transpose_agree_with_numpy(shape, index):
    x = RNG.normal(size=shape)
    index = tuple(np.asarray(i) if isinstance(i, list) else i for i in index)
    arrays = [i for i in index if isinstance(i, np.ndarray)]
    f = wg.jit(wg.grad(lambda x, *arrays: np.sum(np.sin(x[index_of(index, arrays)] * 2.0))))
    np.testing.assert_allclose(f(x, *arrays), wg.grad(lambda x: np.sum(np.sin(x[index] * 2.0)))(x))


def index_of(index, arrays):
    rest = iter(arrays)
    return tuple(next(rest) if isinstance(i, np.ndarray) else i for i in index)


def test_rows_that_are_not_counted_are_added_up():
    scatter = lookup("scatter")
    where = np.array([1, 1, 2]), np.array([0, 0, 3])
    f = wg.jit(wg.grad(lambda x: np.sum(x[where] ** 2)))
    x = RNG.normal(size=(4, 5))
    expected = np.zeros((4, 5))
    np.add.at(expected, where, 2.0 * x[where])
    np.testing.assert_allclose(f(x), expected)
    assert scatter.differentiation.masks


@pytest.mark.parametrize("odd", [11, -12])
def test_a_label_out_of_range_is_an_index_error(odd):
    z, labels = RNG.normal(size=(7, 11)), np.zeros(7, int)
    f = wg.jit(wg.value_and_grad(loss))
    f(z, labels)
    labels[3] = odd
    with pytest.raises(IndexError, match=f"index {odd} is out of bounds"):
        f(z, labels)
