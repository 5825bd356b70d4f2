"""Operations on keys of random numbers: splitting a key, folding in an integer.

    random_split    keys from a key: blocks 1, 2, ... of the counter space SPLIT
    random_fold     a key from a key and integers: one block for each, in the counter space FOLD

A key is the first two words (uint64) of a Philox block.  The counter spaces (ops/random/bits.py)
are disjoint, so no block is used for two keys or numbers.  Keys derived in different ways collide
with the probability of equal random 128-bit numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.core.dispatch import Example, Operation
from wengert._engine.core.op import register
from wengert._engine.core.spec import Spec
from wengert._engine.core.symbolic.constraints import broadcast
from wengert._engine.kinds.batching import fronted

from .bits import FOLD, SPLIT, blocks, raw

if TYPE_CHECKING:
    from wengert._engine.core.types import Array

WORD = np.dtype(np.uint64)


def expect_key(spec: Spec) -> None:
    """Raise ValueError unless the spec is that of a key."""
    if not spec.shape or spec.shape[-1] != 2 or spec.dtype != WORD:
        raise ValueError(f"expected a key uint64[2], got {spec}")


class SplitKeys(Operation):
    """Keys from a key."""

    discrete = True

    def run(self, key: Array, *, shape: tuple[int, ...]) -> Any:
        """An array of keys of the given shape, for each key in `key`."""
        shape = tuple(shape)
        if key.ndim == 1:
            keys = raw(key, 4 * prod(shape), space=SPLIT).reshape(-1, 4)[:, :2]
            return np.ascontiguousarray(keys).reshape(*shape, 2)
        number = np.arange(1, prod(shape) + 1, dtype=WORD)
        words = blocks((number, 0, 0, SPLIT), key[..., None, :])
        return np.stack(words[:2], -1).reshape(*key.shape[:-1], *shape, 2)

    def oracle(self, key: Any, *, shape: Any) -> Any:
        """The same keys, block by block."""
        shape = tuple(shape)
        keys = np.empty((*key.shape[:-1], prod(shape), 2), WORD)
        for *outer, i in np.ndindex(*keys.shape[:-1]):
            keys[(*outer, i)] = [int(w) for w in blocks((i + 1, 0, 0, SPLIT), key[*outer])[:2]]
        return keys.reshape(*key.shape[:-1], *shape, 2)

    def infer(self, specs: Sequence[Any], params: dict[str, Any]) -> Spec:
        """Keys of the requested shape, for each key."""
        (key,) = specs
        expect_key(key)
        return Spec((*key.shape[:-1], *params["shape"], 2), WORD)

    def batched_as_kind(self, args: Any, batched: Any, size: Any, params: dict[str, Any]) -> Any:
        """Split all keys of a batch."""
        return self(args[0], **params)


class FoldIn(Operation):
    """A key from a key and an integer."""

    discrete = True

    def run(self, key: Array, data: Array) -> Any:
        """One key for each key and integer; their leading axes broadcast."""
        number = np.asarray(data).astype(WORD)
        if key.ndim == 1 and number.ndim == 0:
            return raw(key, 2, int(number), FOLD)
        return np.stack(blocks((1, number, 0, FOLD), key)[:2], -1)

    def oracle(self, key: Any, data: Any) -> Any:
        """The same keys, one by one, from NumPy's generator."""
        number = np.asarray(data).astype(WORD)
        shape = np.broadcast_shapes(key.shape[:-1], number.shape)
        keys, numbers = np.broadcast_to(key, (*shape, 2)), np.broadcast_to(number, shape)
        result = np.empty((*shape, 2), WORD)
        for i in np.ndindex(*shape):
            result[i] = raw(keys[i], 2, int(numbers[i]), FOLD)
        return result

    def infer(self, specs: Sequence[Any], params: dict[str, Any]) -> Spec:
        """A key for each integer."""
        key, data = specs
        expect_key(key)
        if data.dtype.kind not in "iu":
            raise TypeError(f"the number folded into a key must be an integer, got {data}")
        return Spec((*broadcast(key.shape[:-1], data.shape), 2), WORD)

    def batched_as_kind(self, args: Any, batched: Any, size: Any, params: dict[str, Any]) -> Any:
        """A batch of keys, of integers, or both."""
        key, data = args
        if np.ndim(data) - batched[1] or len(key.shape) - batched[0] > 1:
            return NotImplemented
        return self(fronted(key, batched[0], size), data) if batched[1] else self(key, data)


split = register(SplitKeys("random_split", "Keys of a given shape from a key."))
fold = register(FoldIn("random_fold", "A key from a key and an integer."))


def _key(rng: np.random.Generator, *shape: int) -> Any:
    return rng.integers(0, 1 << 63, (*shape, 2)).astype(WORD)


@split.examples
def _(rng: np.random.Generator) -> Iterator[Example]:
    for shape in ((3,), (2, 2), ()):
        yield (_key(rng),), {"shape": shape}
    yield (_key(rng, 4),), {"shape": (3,)}


@fold.examples
def _(rng: np.random.Generator) -> Iterator[Example]:
    yield (_key(rng), np.int64(3)), {}
    yield (_key(rng, 3), np.array([3, -4, 0])), {}
    yield (_key(rng, 4), np.int32(7)), {}
