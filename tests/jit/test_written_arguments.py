"""Compiled functions that modify their arguments: native entry points that copy new values back."""

import numpy as np
import pytest

import wengert as wg
from wengert._engine.backends.llvm.abi import is_available
from wengert._engine.jit.compiled_program import preferred_backend

GRID = np.arange(12.0).reshape(3, 4)


def first_row(a):
    a[0] = a[1] * 2.0


def total_after(a, b):
    a += b
    return a.sum()


def both(a, b):
    a[0] += 1.0
    b *= a[0, 0]
    return a, b.sum()


def shifted(a, b):
    b[1:] = a[:-1]


def named(a, n):
    a[1] *= n
    return {"sum": a.sum()}


def copies(args):
    return [x.copy() if isinstance(x, np.ndarray) else x for x in args]


def has_entry(compiled):
    native = preferred_backend() == "llvm" and is_available()
    return not native or "entry" in vars(type(compiled))


@pytest.mark.parametrize(
    ("fun", "args"),
    [
        (first_row, [GRID]),
        (first_row, [GRID.astype(np.float32)]),
        (first_row, [GRID.astype(complex)]),
        (total_after, [GRID, GRID * 2.0]),
        (both, [GRID, np.ones(3)]),
        (shifted, [np.arange(5.0), np.zeros(5)]),
        (shifted, [np.zeros((1, 0)), np.zeros((1, 0))]),
    ],
)
def test_results_and_arguments_are_those_of_numpy(fun, args):
    compiled = wg.jit(fun)
    for _ in range(3):
        given, expected = copies(args), copies(args)
        found, wanted = compiled(*given), fun(*expected)
        for x, y in zip(given, expected, strict=True):
            np.testing.assert_array_equal(x, y)
        if wanted is None:
            assert found is None
        elif isinstance(wanted, tuple):
            for x, y in zip(found, wanted, strict=True):
                np.testing.assert_array_equal(x, y)
        else:
            assert found == wanted
    assert has_entry(compiled)


def test_results_in_containers():
    compiled = wg.jit(named)
    for _ in range(3):
        a = GRID.copy()
        found = compiled(a, 2.0)
        np.testing.assert_array_equal(a[1], 2.0 * GRID[1])
        assert found["sum"] == a.sum()


def test_arguments_in_containers():
    def step(state):
        state["x"] += state["v"]
        return state["x"].sum()

    compiled = wg.jit(step)
    state = {"x": np.zeros(3), "v": np.ones(3)}
    for k in range(1, 4):
        assert compiled(state) == 3.0 * k
        np.testing.assert_array_equal(state["x"], np.full(3, float(k)))


@pytest.mark.parametrize("offset", [0, 1, 5])
def test_arguments_that_share_memory(offset):
    compiled = wg.jit(shifted)
    compiled(np.arange(5.0), np.zeros(5))
    ours, numpys = np.arange(10.0), np.arange(10.0)
    compiled(ours[:5], ours[offset : offset + 5])
    shifted(numpys[:5], numpys[offset : offset + 5])
    np.testing.assert_array_equal(ours, numpys)


def test_the_same_array_twice():
    compiled = wg.jit(total_after)
    compiled(np.ones(3), np.ones(3))
    x = np.ones(3)
    assert compiled(x, x) == 6.0
    np.testing.assert_array_equal(x, 2.0)


def test_strided_arrays():
    compiled = wg.jit(shifted)
    compiled(np.arange(5.0), np.zeros(5))
    for base, view in ((np.arange(10.0), np.s_[::2]), (np.arange(5.0), np.s_[::-1])):
        ours, numpys = base.copy(), base.copy()
        for _ in range(3):
            compiled(np.arange(5.0), ours[view])
            shifted(np.arange(5.0), numpys[view])
            np.testing.assert_array_equal(ours, numpys)
    np.testing.assert_array_equal(
        compiled(np.arange(10.0)[::2], x := np.zeros(5)) or x, [0, 0, 2, 4, 6]
    )


def test_read_only_arrays_are_refused():
    compiled = wg.jit(shifted)
    compiled(np.arange(5.0), np.zeros(5))
    x = np.zeros(5)
    x.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        compiled(np.arange(5.0), x)
    np.testing.assert_array_equal(x, 0.0)


def test_a_failed_run_modifies_nothing():
    def store(a, i):
        a[0] = 7.0
        a[i] = 1.0

    compiled = wg.jit(store)
    x = np.zeros(3)
    compiled(x, 2)
    np.testing.assert_array_equal(x, [7.0, 0.0, 1.0])
    x = np.zeros(3)
    for _ in range(2):
        with pytest.raises(IndexError):
            compiled(x, 5)
        np.testing.assert_array_equal(x, 0.0)


def test_other_arguments_after_the_entry_exists():
    compiled = wg.jit(first_row)
    compiled(GRID.copy())
    assert has_entry(compiled)
    for other in (GRID[:, :2].copy(), GRID.astype(np.float32), np.asfortranarray(GRID), GRID.T):
        ours, numpys = other.copy("K"), other.copy("K")
        compiled(ours)
        first_row(numpys)
        np.testing.assert_array_equal(ours, numpys)
    x = wg.tensor(GRID)
    compiled(x)
    np.testing.assert_array_equal(x.numpy()[0], 2.0 * GRID[1])


def test_captured_arrays():
    scale = np.ones(3)

    def add(a):
        a += scale

    compiled = wg.jit(add)
    x = np.zeros(3)
    compiled(x)
    compiled(x)
    scale *= 5.0
    compiled(x)
    np.testing.assert_array_equal(x, 7.0)


def test_a_modified_captured_array():
    counts = np.zeros(2)

    def count(a):
        counts[0] += 1.0
        a[0] = counts[0]

    compiled = wg.jit(count)
    x = np.zeros(2)
    for k in range(1, 5):
        compiled(x)
        assert x[0] == counts[0] == k
    compiled(counts)  # now it is an argument too
    assert counts[0] == 5.0


def test_gradients_of_functions_that_modify_arguments():
    def filled(buffer, x):
        buffer[:] = x**2
        return buffer.sum()

    gradient = wg.jit(wg.grad(filled, argnums=1))
    buffer, x = np.zeros(3), np.arange(3.0)
    for _ in range(3):
        buffer[:] = 0.0
        np.testing.assert_array_equal(gradient(buffer, x), 2.0 * x)
        np.testing.assert_array_equal(buffer, x**2)
    assert has_entry(gradient)
