"""Strip-mined loops, which read an operand across its rows, in every layout."""

import numpy as np
import pytest
from wengert.backends import backend

import wengert as wg
from wengert._engine.backends.llvm.tuning import thresholds

RNG = np.random.default_rng(0)
SHAPES = [(1, 1), (3, 5), (33, 70), (64, 64), (100, 31), (7, 3, 40), (40, 3, 7)]


@pytest.mark.sample(6)
@pytest.mark.parametrize("named", [False, True], ids=["numbers", "names"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_transposed_arrays_are_read_right(shape, named):
    a = RNG.normal(size=shape)
    of = wg.spec(tuple("ijk"[: a.ndim])) if named else a
    for f in (
        lambda a: a.T * 2.0 + 1.0,
        lambda a: np.transpose(a)[..., None] * 2.0,
        lambda a: np.swapaxes(a, 0, -1) - np.swapaxes(np.exp(a), 0, -1),
    ):
        graph = wg.trace(f)(of)
        np.testing.assert_allclose(wg.computation(graph, backend="llvm")(a), f(a), rtol=1e-13)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_strips_are_shared_out(threads, monkeypatch):
    monkeypatch.setattr(thresholds, "parallel_loop_work", 10_000)
    f = wg.jit(lambda a: a.T * 2.0 + 1.0, threads=threads)
    a = RNG.normal(size=(300, 200))
    assert np.array_equal(f(a), a.T * 2.0 + 1.0)


LAYOUTS = {
    "in order": lambda x: x.copy(),
    "fortran": np.asfortranarray,
    "part": lambda x: np.kron(x, np.ones((2, 2)))[::2, ::2],
    "backwards": lambda x: x[::-1, ::-1].copy()[::-1, ::-1],
    "across": lambda x: x.T.copy().T,
    "one row": lambda x: np.broadcast_to(x[0], x.shape),
    "one number": lambda x: np.broadcast_to(x[0, 0], x.shape),
}


@pytest.mark.sample(9)
@pytest.mark.parametrize("first", LAYOUTS)
@pytest.mark.parametrize("second", ["in order", "fortran", "part"])
def test_arrays_are_read_where_they_lie(first, second):
    x, w = LAYOUTS[first](RNG.normal(size=(6, 7))), LAYOUTS[second](RNG.normal(size=(7, 4)))

    def f(x, w):
        return np.sum((x @ w) ** 2) + np.sum(x.reshape(-1)[:5] * 3.0)

    g = wg.jit(wg.grad(f, argnums=(0, 1)))
    for _ in range(5):  # copied at first, then read where it lies
        for found, expected in zip(g(x, w), wg.grad(f, argnums=(0, 1))(x, w), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-11)


def test_complex_parts_of_records_are_copied():
    records = np.zeros(5, [("z", complex), ("n", float)])
    records["z"] = np.arange(5) * (1 + 2j)
    f = wg.jit(lambda z: np.sum(z * z))
    for _ in range(5):
        assert f(records["z"]) == np.sum(records["z"] ** 2)


@pytest.mark.parametrize("shape", [(300, 100), (5, 6, 100), (1, 80), (70, 1)], ids=str)
def test_sums_over_rows_go_row_by_row(shape):
    x = RNG.normal(size=shape)
    axes = tuple(range(len(shape) - 1))
    f = wg.jit(lambda x: (np.sum(np.exp(x), axis=axes), np.max(x, axis=axes), x * 2.0))
    for found, expected in zip(
        f(x), (np.sum(np.exp(x), axis=axes), np.max(x, axis=axes), x * 2.0), strict=True
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-13)


def test_what_is_read_across_is_walked_in_strips():
    program = backend("llvm").program(wg.trace(lambda a: a + a.T)(wg.spec((50, 50))))
    ((nest, _),) = program.nests
    assert nest.spaces[0].strips


def test_constants_do_not_make_vectors_narrow():
    def widths(f):
        graph = wg.trace(f)(wg.spec(1000, "float32"))
        return [nest.spaces[0].width for nest, _ in backend("llvm").program(graph).nests]

    assert widths(lambda x: np.exp(x * 0.7)) == widths(lambda x: np.exp(x * x))
