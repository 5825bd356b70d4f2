"""The last, partial vector of a row writes the elements of the row and nothing beyond.

LLVM has known faults here, where what is written is narrower than what it was computed in.
"""

import ctypes

import numpy as np
import pytest

import wengert as wg

from .guard_pages import Guarded, guarded

NARROW = [np.dtype(c) for c in "bBhHiIfdqQ?"]


class Watched(Guarded):
    """Memory that knows where everything was placed."""

    def __init__(self):
        super().__init__(at_end=False)
        self.placed = []

    def place(self, array):
        """The address of a copy, behind which there is nothing but ones."""
        address = super().place(array)
        self.placed.append((address, np.asarray(array).nbytes))
        return address

    def close(self):
        """See what lies behind each array now."""
        self.behind = [ctypes.string_at(address + size, 64) for address, size in self.placed]
        super().close()


def program(x, y, narrow):
    """So much work that the loop takes eight elements at a time, and something narrower."""
    return np.copy(x.T), np.sum(y), np.tanh(y) * 0.5, x.T.astype(narrow)


@pytest.mark.sample(1)
@pytest.mark.parametrize("wide", ["q", "d"])
@pytest.mark.parametrize("n", [1, 2, 8, 9, 15, 17, 33])
def test_nothing_is_written_behind_a_row(n, wide):
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 2, size=(n, 20)).astype(wide), rng.normal(size=(20, n))
    for narrow in NARROW:
        graph = wg.trace(lambda x, y, to=narrow: program(x, y, to))(x, y)
        memory = Watched()
        found = guarded(graph, at_end=False, memory=memory)([x, y], {})
        assert np.array_equal(found[3], x.T.astype(narrow)), narrow
        assert all(set(bytes_) == {0xFF} for bytes_ in memory.behind), narrow


@pytest.mark.sample(11)
@pytest.mark.parametrize("dtype", ["d", "f", "i", "q"])
@pytest.mark.parametrize("n", [8, 11, 32])
def test_part_of_a_row_is_written_and_the_rest_of_the_array_stays(n, dtype):
    """Without AVX-512, LLVM reads the half of a vector that constants mask, or ends the process."""
    parts = sorted({1, 2, 3, 4, 5, 7, n // 2, n // 2 + 1, n - 1})

    def f(x, *vs):
        results = []
        for k, v in zip(parts, vs, strict=True):
            y = x * 1
            y[1, :k] = v
            results.append(y * 2)
        return results

    x = np.arange(3 * n).reshape(3, n).astype(dtype)
    rows = [np.arange(100, 200).astype(dtype)[:k] for k in parts]
    for found, right in zip(wg.jit(f, source=False)(x, *rows), f(x, *rows), strict=True):
        np.testing.assert_array_equal(found, right)
