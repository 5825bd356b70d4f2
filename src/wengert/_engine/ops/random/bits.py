"""Random numbers as operations: a pure function of a state and a position, by Philox 4x64.

    random_uniform, random_normal, random_integers    as NumPy's generator
    random_bits              64-bit words, or their 32-bit halves
    random_tail              signed tail probabilities, for symmetric distributions
    rounds, round_keys       Philox, for NumPy arrays and LLVM values
                             (backends/llvm/kernels/philox.py)
    blocks                   the four words of blocks, for any counters and keys
    raw                      the words of blocks 1, 2, ... of one key, from NumPy's generator

The state is an array of uint64 words: a key of two words, and a position, which is 0 if omitted.
An array of states has the words along its last axis; numbers are drawn for each state.  The numbers
depend only on key and position, so nodes are deterministic: they may be recomputed, reordered, or
merged with equal nodes.  The words of a counter, which ensure that no block is used twice with the
same key:

    word 0    the number of the block, from 1 as in NumPy
    word 1    the position of a stream; the integer folded in; the trial of a rejection sampler
    word 2    zero
    word 3    the purpose: DRAWS, SPLIT, FOLD, TRIALS

The generator is that of J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw, "Parallel random
numbers: as easy as 1, 2, 3", SC11 (2011), with ten rounds: for every key of two words a bijection
of counters of four words, so different counters never give the same block.  `numpy.random.Philox`
implements it in C for one key; `blocks` is vectorized over keys.

Functions of tail probabilities are in ops/random/tail_functions.py; streams that advance the
position, and functions of keys, in wengert.random.

Operations on keys of random numbers: splitting a key, folding in an integer.

    random_split    keys from a key: blocks 1, 2, ... of the counter space SPLIT
    random_fold     a key from a key and integers: one block for each, in the counter space FOLD

A key is the first two words (uint64) of a Philox block.  The counter spaces (ops/random/bits.py)
are disjoint, so no block is used for two keys or numbers.  Keys derived in different ways collide
with the probability of equal random 128-bit numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.core.dispatch import Example, Operation
from wengert._engine.core.op import register
from wengert._engine.core.spec import Spec
from wengert._engine.core.symbolic.constraints import broadcast
from wengert._engine.kinds.batching import fronted

if TYPE_CHECKING:
    from wengert._engine.core.types import Array

DRAWS, SPLIT, FOLD, TRIALS = 0, 1, 2, 3

_ROUNDS = 10
_FACTORS = 0xD2E7470EE14C6C93, 0xCA5A826395121157
_STEPS = 0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B
_HALF = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)


def products(x: Any, factor: int) -> tuple[Any, Any]:
    """The high and low words of products, computed from half words with explicit carries.

    x is an array, or another value with the same operators (vectors of the native kernel).
    """
    low_factor, high_factor = np.uint64(factor & 0xFFFFFFFF), np.uint64(factor >> 32)
    low, high = x & _LOW, x >> _HALF
    cross = low * high_factor
    carry = high * low_factor + ((low * low_factor) >> _HALF)
    middle = cross + (carry & _LOW)
    return high * high_factor + (carry >> _HALF) + (middle >> _HALF), x * np.uint64(factor)


def round_keys(key: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
    """The two words of the key in each round."""
    first, second = key
    for number in range(_ROUNDS):
        if number:
            first, second = first + np.uint64(_STEPS[0]), second + np.uint64(_STEPS[1])
        yield first, second


def rounds(
    counter: Sequence[Any],
    keys: Iterable[Sequence[Any]],
    multiply: Callable[[Any, int], tuple[Any, Any]] = products,
) -> tuple[Any, Any, Any, Any]:
    """The four words of a block; also used by the native kernel, on LLVM values."""
    a, b, c, d = counter
    for first, second in keys:
        high0, low0 = multiply(a, _FACTORS[0])
        high1, low1 = multiply(c, _FACTORS[1])
        a, b, c, d = high1 ^ b ^ first, low1, high0 ^ d ^ second, low0
    return a, b, c, d


def blocks(counter: Any, key: Any) -> tuple[Any, Any, Any, Any]:
    """The four words of blocks.

    Parameters
    ----------
    counter : sequence of four array_like
        Arrays of uint64, broadcast with each other and the key.
    key : array_like
        uint64[..., 2].

    Returns
    -------
    tuple of four ndarray
    """
    key = np.asarray(key, np.uint64)
    words = np.broadcast_arrays(*[np.asarray(c, np.uint64) for c in counter], key[..., 0])
    # NumPy warns about overflow for 0-d arrays.
    state = [np.atleast_1d(w) for w in words[:4]]
    keys = round_keys([np.atleast_1d(key[..., k]) for k in range(2)])
    shape = words[0].shape
    a, b, c, d = (w.reshape(shape) for w in rounds(state, keys))
    return a, b, c, d


def bit_generator(key: Any, position: int = 0, space: int = DRAWS) -> np.random.Philox:
    """NumPy's generator, positioned before block 1 of a key; positions are 2**64 blocks apart."""
    counter = np.array([0, position, 0, space], np.uint64)
    return np.random.Philox(key=np.asarray(key, np.uint64), counter=counter)


def raw(key: Any, count: int, position: int = 0, space: int = DRAWS) -> Any:
    """The first `count` words of the blocks of a key, from block 1."""
    return bit_generator(key, position, space).random_raw(count)


WORD = np.dtype(np.uint64)
_POSITIONS = 1 << 64


def generator_at(state: Any, number: int) -> np.random.Generator:
    """NumPy's generator at a position; positions are 2**64 blocks apart."""
    position = int(state[2]) if len(state) == 3 else 0
    return np.random.Generator(bit_generator(state[:2], (position + number) % _POSITIONS))


class Draw(Operation):
    """Random numbers drawn from a state.

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
        self.oracle = self._by_advancing

    def run(
        self,
        state: Array,
        *,
        number: int,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        **options: Any,
    ) -> Any:
        """The numbers at the position of the state plus `number`."""
        shape, dtype = tuple(shape), np.dtype(dtype)
        if state.ndim == 1:
            out = self.draw(generator_at(state, number), shape, dtype, **options)
            return out if shape else dtype.type(out)
        out = np.empty((*state.shape[:-1], *shape), dtype)
        for i in np.ndindex(*state.shape[:-1]):
            out[i] = self.draw(generator_at(state[i], number), shape, dtype, **options)
        return out

    def _by_advancing(
        self,
        state: Any,
        *,
        number: int,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        **options: Any,
    ) -> Any:
        """The same numbers, from a generator that is advanced to the position."""
        if state.ndim > 1:
            options = {"number": number, "shape": shape, "dtype": dtype, **options}
            return np.array([self._by_advancing(s, **options) for s in state])
        low, high, position = (*map(int, state), 0)[:3]
        bits = np.random.Philox(key=low | high << 64).advance((position + number) << 64)
        return np.asarray(self.draw(np.random.Generator(bits), shape, np.dtype(dtype), **options))

    def infer(self, specs: Sequence[Any], params: dict[str, Any]) -> Spec:
        """The requested shape and dtype, for each state."""
        (state,) = specs
        if not state.shape or state.shape[-1] not in (2, 3) or state.dtype != WORD:
            raise ValueError(
                f"expected a key uint64[2] or the state of a stream uint64[3], got {state}"
            )
        return Spec((*state.shape[:-1], *params["shape"]), np.dtype(params["dtype"]))

    def batched_as_kind(self, args: Any, batched: Any, size: Any, params: dict[str, Any]) -> Any:
        """Draw for all states of a batch."""
        return self(args[0], **params)


uniform = register(
    Draw("random_uniform", lambda g, shape, dtype: g.random(shape, dtype), "Uniform in [0, 1).")
)
normal = register(
    Draw(
        "random_normal",
        lambda g, shape, dtype: g.standard_normal(shape, dtype),
        "Normal, with mean 0 and standard deviation 1.",
    )
)
integers = register(
    Draw(
        "random_integers",
        lambda g, shape, dtype, low, high: g.integers(low, high, shape, dtype),
        "Uniform integers in [low, high).",
    )
)


def _words(generator: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    """64-bit words, or their 32-bit halves, the lower half first."""
    count = int(np.prod(shape))
    if dtype.itemsize == 8:
        return generator.bit_generator.random_raw(count).reshape(shape)
    words = generator.bit_generator.random_raw(-(-count // 2))
    return words.astype("<u8").view("<u4").astype(np.uint32)[:count].reshape(shape)


def _tails(generator: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    """Signed odd integers, scaled to (-1/2, 1/2)."""
    is_single = dtype.itemsize == 4
    words = _words(generator, shape, np.dtype(np.uint32 if is_single else np.uint64))
    signed = (words | words.dtype.type(1)).view(np.int32 if is_single else np.int64)
    return signed.astype(dtype) * dtype.type(2.0**-32 if is_single else 2.0**-64)


bits = register(Draw("random_bits", _words, "Random bits: uint64 or uint32."))
tail = register(
    Draw(
        "random_tail",
        _tails,
        "Uniform in (-1/2, 1/2) without 0, with the full relative precision of the dtype near 0.",
    )
)


def _examples(rng: np.random.Generator) -> Iterator[Example]:
    for states, shape in (((), (2, 3)), ((), ()), ((), (0,)), ((2,), (4,))):
        state = rng.integers(0, 1 << 63, (*states, 3)).astype(WORD)
        yield (state,), {"number": 2, "shape": shape, "dtype": np.dtype(np.float64)}


uniform.examples(_examples)
normal.examples(_examples)
tail.examples(_examples)


@bits.examples
def _(rng: np.random.Generator) -> Iterator[Example]:
    for dtype, states, shape in (("u8", (), (2, 3)), ("u4", (4,), (5,)), ("u4", (), ())):
        state = rng.integers(0, 1 << 63, (*states, 2)).astype(WORD)
        yield (state,), {"number": 0, "shape": shape, "dtype": np.dtype(dtype)}


@integers.examples
def _(rng: np.random.Generator) -> Iterator[Example]:
    state = np.array([[1, 2, 3], [1, 2, 4]], WORD)
    params = {"number": 0, "shape": (4,), "dtype": np.dtype(np.int64), "low": -2, "high": 5}
    yield (state,), params


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
