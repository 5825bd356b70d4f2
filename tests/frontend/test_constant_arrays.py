"""Elements of constant arrays at indices that are not known while a graph is built."""

import numpy as np
import pytest

import wengert as wg
from wengert.errors import TraceError

WEIGHTS = np.linspace(0.5, 1.0, 12)
TABLE = np.arange(12.0).reshape(4, 3)
X, K = np.linspace(0.0, 1.0, 4), np.array([1, 2, 0, 3])


class Model:
    def __init__(self):
        self.scale, self.weights = 0.75, WEIGHTS.copy()

    def term(self, v, i):
        return v * self.scale + self.weights[i]


model = Model()


def of_an_object(x, k):
    return model.term(x, k)


def of_a_global_variable(x, k):
    return x * WEIGHTS[k]


def a_row(x, k):
    return np.sum(TABLE[k] * x)


def of_a_matrix(x, k):
    return TABLE[k, 1] * x + TABLE[1, 0]


def of_a_slice(x, k):
    return np.sum(TABLE[1:, k - 1] * x)


def in_a_loop(x, k):
    s = 0.0
    for r in range(20):
        s = s + WEIGHTS[(r + k) % 12] * x
    return s


@pytest.mark.parametrize(
    "f", [of_an_object, of_a_global_variable, a_row, of_a_matrix, of_a_slice, in_a_loop]
)
def test_batches_of_indices(f):
    want = [f(x, k) for x, k in zip(X, K, strict=True)]
    np.testing.assert_allclose(wg.vmap(f)(X, K), want, rtol=1e-14)
    np.testing.assert_allclose(wg.vmap(wg.jit(f))(X, K), want, rtol=1e-14)


def test_indices_of_a_functional_loop():
    scale = np.array([1.0, 2.0, 4.0])
    assert wg.fori_loop(0, 3, lambda i, s: s + scale[i], 0.0) == 7.0


def test_a_graph_keeps_the_elements_as_they_were():
    weights = np.ones(3)
    graph = wg.trace(lambda x, k: x * weights[k])(2.0, np.int64(1))
    weights *= 3.0
    assert graph(2.0, np.int64(1)) == 2.0


def test_rows_may_not_be_assigned_to():
    """In Python this changes the array."""

    def f(x, k):
        row = TABLE[k]
        row[0] = 5.0
        return np.sum(row * x)

    with pytest.raises(TraceError, match=r"a part of a constant array.*\.copy\(\)"):
        wg.vmap(f)(X, K)
