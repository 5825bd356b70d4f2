"""Columns that the steps of a loop read and steps before have stored: they are carried."""

import numpy as np
import pytest

import wengert as wg
from wengert._engine.backends.llvm.loops.carried_elements import with_elements


def two_before(x, y):
    for j in range(2, x.shape[1]):
        y[:, j] = 0.5 * x[:, j] + 0.3 * y[:, j - 1] - 0.2 * y[:, j - 2]
    return y


def backwards(x, y):
    for j in range(x.shape[1] - 3, -1, -1):
        y[:, j] = x[:, j + 1] + 0.3 * y[:, j + 1] * x[:, j + 2] - 0.2 * y[:, j + 2]
    return y


def from_the_end(x, y):
    for j in range(x.shape[1]):  # the first column before is the last one
        y[:, j] = 0.5 * x[:, j] + 0.25 * y[:, j - 1]
    return y


def one_beyond(x, y):
    for j in range(1, x.shape[1]):
        y[:, j] = 0.5 * y[:, j - 1] + x[:, j] * y[:, 0] + y[:, j]
    return y


def every_other(x, y):
    for j in range(2, x.shape[1], 2):
        y[:, j] = x[:, j] - 0.5 * y[:, j - 2]
    return y


def some_rows(x, y):
    for j in range(1, x.shape[1]):
        y[1:, j] = 0.5 * y[1:, j - 1] + y[:-1, j - 1]
        y[0, j] = x[0, j]
    return y


def three_axes(x, y):
    x, y = x.reshape(10, -1, x.shape[1]), y.reshape(10, -1, x.shape[1]).copy()
    for k in range(1, x.shape[2]):
        y[:, :, k] = np.sin(y[:, :, k - 1]) + x[:, :, k] * x[:, :, k - 1]
    return y


PROGRAMS = [
    two_before, backwards, from_the_end, one_beyond, every_other, some_rows, three_axes
]  # fmt: skip
CARRIED = {"two_before": 2, "backwards": 2, "from_the_end": 1, "one_beyond": 1, "every_other": 1}


def given(columns=60, rows=120):
    rng = np.random.default_rng(0)
    return rng.normal(size=(rows, columns)), rng.normal(size=(rows, columns))


@pytest.mark.sample(3)
@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("dtype", ["f8", "f4"])
def test_results_are_as_in_numpy(program, dtype):
    compiled = wg.jit(program)
    tolerance = 1e-5 if dtype == "f4" else 1e-13
    for columns in (60, 50, 40, 3, 2, 1):  # the last ones with a symbolic size
        x, y = (a.astype(dtype) for a in given(columns))
        theirs, ours = y.copy(), y.copy()
        wanted, found = program(x, theirs), compiled(x, ours)
        assert np.allclose(found, wanted, rtol=tolerance, atol=tolerance)
        assert np.allclose(ours, theirs, rtol=tolerance, atol=tolerance)


@pytest.mark.sample(2)
@pytest.mark.parametrize("program", PROGRAMS)
def test_derivatives(program):
    x, y = given(50, 100)
    t, u = given(50, 100)[::-1]

    def total(x, y):
        return np.sum(np.sin(program(x, y.copy())))

    eager = wg.grad(total, argnums=(0, 1))(x, y)
    for a, b in zip(wg.jit(wg.grad(total, argnums=(0, 1)))(x, y), eager, strict=True):
        assert np.allclose(a, b, rtol=1e-11, atol=1e-11)
    along = wg.jit(lambda *z: wg.jvp(total, z[:2], z[2:])[1])(x, y, t, u)
    assert np.isclose(along, np.sum(eager[0] * t) + np.sum(eager[1] * u), rtol=1e-10, atol=1e-9)
    batch = wg.jit(wg.vmap(wg.grad(total)))(np.stack([t, x]), np.stack([u, y]))
    assert np.allclose(batch[1], eager[0], rtol=1e-11, atol=1e-11)


def loops_of(program, rows):
    graph = wg.jit(program).lower(*given(60, rows)).graph
    return [n for n in graph if n.op.name == "scan"]


@pytest.mark.parametrize("program", PROGRAMS)
def test_which_columns_are_carried(program):
    (loop,) = loops_of(program, 120)
    found = with_elements(loop.params)
    count = CARRIED.get(program.__name__, 1 if program is three_axes else 0)
    assert count == (0 if found is None else len(found.elements))
    assert with_elements(loops_of(program, 10)[0].params) is None  # a cache keeps the array


def test_columns_that_do_not_exist():
    def beyond(x, y, start):
        for j in range(start, start + 4):
            y[:, j] = x[:, j] + y[:, j - 2]
        return y

    x, y = given()
    for start in (-62, 57, 61):
        with pytest.raises(IndexError):
            wg.jit(beyond)(x, y.copy(), start)
    for start in (-58, -2, 2, 56):
        assert np.allclose(wg.jit(beyond)(x, y.copy(), start), beyond(x, y.copy(), start))


def test_what_is_not_finite():
    x, y = given()
    y[5, 0], y[7, 1] = np.nan, np.inf
    with np.errstate(all="ignore"):
        wanted = two_before(x, y.copy())
    assert np.allclose(wg.jit(two_before)(x, y.copy()), wanted, equal_nan=True)
