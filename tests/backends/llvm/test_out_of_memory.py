"""Out of memory for what a program allocates itself: no crash, no leak, no wrong number.

The k-th time that it asks it gets none, for every k.  Such a run ends with a status, and then the
interpreter says what is the matter, or goes on in a way that needs less.
"""

import numpy as np
import pytest

import wengert as wg

from .guard_pages import Guarded, guarded


class Scarce(Guarded):
    """Memory of which the k-th block is not there."""

    def __init__(self, missing):
        super().__init__(at_end=True)
        self.missing = missing

    def _alloc(self, size):
        self.asked += 1
        if self.asked == self.missing + 1:
            return None
        self.asked -= 1
        return super()._alloc(size)


def softmax(x):
    e = np.exp(x - np.max(x, axis=1, keepdims=True))
    return e / np.sum(e, axis=1, keepdims=True)


FUNCTIONS = {
    "kept between stages": (lambda x: np.cumsum(np.exp(x), axis=0) @ np.ones((90, 90)), (90, 90)),
    "rows": (softmax, (3, 70_000)),
    "rows of several threads": (softmax, (40, 9_000)),
    "parts": (lambda x: (np.sum(np.exp(x)), np.max(np.sin(x))), (300_000,)),
    "sorted": (lambda x: np.sort(np.exp(x), axis=0) + np.sum(x), (500, 40)),
    "solved": (lambda x: np.linalg.solve(x @ x.T + np.eye(90), x), (90, 90)),
}


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_memory_that_is_not_there(name, rng):
    f, shape = FUNCTIONS[name]
    x = rng.normal(size=shape)
    graph = wg.trace(f)(x)
    wanted = graph(x)
    wanted = wanted if isinstance(wanted, tuple) else (wanted,)
    for missing in range(40):
        memory = Scarce(missing)
        found = guarded(graph, True, threads=2, memory=memory)([x], {})
        if memory.asked <= missing:
            break
        if found is not None:
            for a, b in zip(found, wanted, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)
    assert memory.asked == missing > 0, "it asks for none, or never ends to ask"
    assert found is not None
