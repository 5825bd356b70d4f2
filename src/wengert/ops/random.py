"""Random numbers as operations: a pure function of a state and a position.

The state is an array of three words (uint64): a key of two words, and a position; an array of
states has them along its last axis, and gives numbers for each.  The numbers at a position follow
from the key and the position alone (Philox 4x64, Salmon et al. 2011, "Parallel random numbers: as
easy as 1, 2, 3"), so a line of a graph gives the same numbers for the same state, may be computed
again or merged with an equal line, and never waits for another.

    random_uniform, random_normal, random_integers

A stream that moves the position along is wengert.random.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ..core.apply import Example, Operation
from ..core.op import register
from ..core.spec import Spec

WORD = np.dtype(np.uint64)
_ROUND = 1 << 64


def generator_at(state: Any, number: int) -> np.random.Generator:
    """NumPy's generator at a position: each has 2**64 blocks of its own."""
    low, high, position = map(int, state)
    # As words: of a list of Python's numbers NumPy would make floats where they are large.
    counter = np.array([0, (position + number) % _ROUND, 0, 0], WORD)
    return np.random.Generator(np.random.Philox(key=low | high << 64, counter=counter))


class Draw(Operation):
    """Random numbers of a state.

    Parameters
    ----------
    name : str
    draw : callable
        ``draw(generator, shape, dtype, **options)``.
    doc : str
    """

    discrete = True

    def __init__(self, name: str, draw: Callable[..., Any], doc: str) -> None:
        super().__init__(name, doc)
        self.draw = draw
        self.oracle = self._the_long_way

    def run(self, state: Any, *, number: int, shape: Any, dtype: Any, **options: Any) -> Any:  # type: ignore[override]
        """The numbers at the position of the state, and `number` further."""
        shape, dtype = tuple(shape), np.dtype(dtype)
        if state.ndim == 1:
            out = self.draw(generator_at(state, number), shape, dtype, **options)
            return out if shape else dtype.type(out)
        out = np.empty((*state.shape[:-1], *shape), dtype)
        for i in np.ndindex(*state.shape[:-1]):
            out[i] = self.draw(generator_at(state[i], number), shape, dtype, **options)
        return out

    def _the_long_way(self, state: Any, *, number: int, shape: Any, dtype: Any, **more: Any) -> Any:
        """The same numbers, by a generator that walks to the position."""
        if state.ndim > 1:
            more = {"number": number, "shape": shape, "dtype": dtype, **more}
            return np.array([self._the_long_way(s, **more) for s in state])
        low, high, position = map(int, state)
        bits = np.random.Philox(key=low | high << 64).advance((position + number) << 64)
        return np.asarray(self.draw(np.random.Generator(bits), shape, np.dtype(dtype), **more))

    def infer(self, specs: Sequence[Any], params: dict[str, Any]) -> Spec:
        """Shape and dtype as asked for, once for each state."""
        (state,) = specs
        if not state.shape or state.shape[-1] != 3 or state.dtype != WORD:
            raise ValueError(f"the state of random numbers is uint64[3], not {state}")
        return Spec((*state.shape[:-1], *params["shape"]), np.dtype(params["dtype"]))

    def batched_as_kind(self, args: Any, batched: Any, size: Any, params: dict[str, Any]) -> Any:
        """The states of all rows together."""
        return self(args[0], **params)


uniform = register(
    Draw("random_uniform", lambda g, shape, dtype: g.random(shape, dtype), "Uniform in [0, 1).")
)
normal = register(
    Draw(
        "random_normal",
        lambda g, shape, dtype: g.standard_normal(shape, dtype),
        "Normal, of mean 0 and deviation 1.",
    )
)
integers = register(
    Draw(
        "random_integers",
        lambda g, shape, dtype, low, high: g.integers(low, high, shape, dtype),
        "Whole numbers from low to before high, each equally likely.",
    )
)


def _examples(rng: np.random.Generator) -> Iterator[Example]:
    for states, shape in (((), (2, 3)), ((), ()), ((), (0,)), ((2,), (4,))):
        state = rng.integers(0, 1 << 63, (*states, 3)).astype(WORD)
        yield (state,), {"number": 2, "shape": shape, "dtype": np.dtype(np.float64)}


uniform.examples(_examples)
normal.examples(_examples)


@integers.examples
def _(rng: np.random.Generator) -> Iterator[Example]:
    state = np.array([[1, 2, 3], [1, 2, 4]], WORD)
    params = {"number": 0, "shape": (4,), "dtype": np.dtype(np.int64), "low": -2, "high": 5}
    yield (state,), params
