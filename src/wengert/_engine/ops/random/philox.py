"""Philox 4x64 on NumPy arrays: the words of a block as a function of its counter and a key.

The generator is that of J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw, "Parallel random
numbers: as easy as 1, 2, 3", SC11 (2011), with ten rounds: for every key of two words a bijection
of counters of four words, so different counters never give the same block.  `numpy.random.Philox`
implements it in C for one key; `blocks` is vectorized over keys.

The words of a counter, which ensure that no block is used twice with the same key:

    word 0    the number of the block, from 1 as in NumPy
    word 1    the position of a stream; the integer folded in; the trial of a rejection sampler
    word 2    zero
    word 3    the purpose: DRAWS, SPLIT, FOLD, TRIALS

    rounds, round_keys    the generator, for NumPy arrays and LLVM values
                          (backends/llvm/kernels/random/philox.py)
    blocks                the four words of blocks, for any counters and keys
    raw                   the words of blocks 1, 2, ... of one key, from NumPy's generator
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

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
