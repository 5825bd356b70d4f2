"""Philox 4x64 on NumPy arrays: the words of a block, as a function of its counter and a key.

The generator is that of J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw, "Parallel random
numbers: as easy as 1, 2, 3", SC11 (2011), with ten rounds: a bijection of counters of four words
for every key of two words, so different counters never give the same block.  NumPy has it as
`numpy.random.Philox`, which is C and walks along one key; `blocks` is for many keys at once.

A counter is divided among those who ask for words, so that none of them is ever used twice with
the same key:

    word 0    the number of the block: of an element, of a child; from 1 on, as NumPy counts
    word 1    the position of a stream; what is folded in; the trial of a sampler that rejects
    word 2    zero
    word 3    who asks: DRAWS, SPLIT, FOLD, TRIALS

    blocks    the four words of blocks, any counters and keys
    raw       the words of the blocks from 1 on, for one key, by NumPy's own generator
"""

from __future__ import annotations

from typing import Any

import numpy as np

DRAWS, SPLIT, FOLD, TRIALS = 0, 1, 2, 3

_ROUNDS = 10
_FACTORS = 0xD2E7470EE14C6C93, 0xCA5A826395121157
_STEPS = 0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B
_HALF = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)


def _products(x: Any, factor: int) -> tuple[Any, Any]:
    """The high and the low words of products: of halves of words, with carries by hand."""
    low_factor, high_factor = np.uint64(factor & 0xFFFFFFFF), np.uint64(factor >> 32)
    low, high = x & _LOW, x >> _HALF
    across = low * high_factor
    carried = high * low_factor + ((low * low_factor) >> _HALF)
    middle = across + (carried & _LOW)
    return high * high_factor + (carried >> _HALF) + (middle >> _HALF), x * np.uint64(factor)


def blocks(counter: Any, key: Any) -> tuple[Any, Any, Any, Any]:
    """The four words of blocks.

    Parameters
    ----------
    counter : sequence of four array_like
        Words of uint64, which broadcast with each other and the key.
    key : array_like
        uint64[..., 2].

    Returns
    -------
    tuple of four ndarray
    """
    key = np.asarray(key, np.uint64)
    words = np.broadcast_arrays(*[np.asarray(c, np.uint64) for c in counter], key[..., 0])
    # Of arrays without axes NumPy would warn that products wrap.
    a, b, c, d = (np.atleast_1d(w) for w in words[:4])
    first, second = np.atleast_1d(key[..., 0]), np.atleast_1d(key[..., 1])
    for turn in range(_ROUNDS):
        if turn:
            first, second = first + np.uint64(_STEPS[0]), second + np.uint64(_STEPS[1])
        high0, low0 = _products(a, _FACTORS[0])
        high1, low1 = _products(c, _FACTORS[1])
        a, b, c, d = high1 ^ b ^ first, low1, high0 ^ d ^ second, low0
    shape = words[0].shape
    return a.reshape(shape), b.reshape(shape), c.reshape(shape), d.reshape(shape)


def bit_generator(key: Any, position: int = 0, space: int = DRAWS) -> np.random.Philox:
    """NumPy's generator before block 1 of a key; each position has 2**64 blocks of its own."""
    counter = np.array([0, position, 0, space], np.uint64)
    return np.random.Philox(key=np.asarray(key, np.uint64), counter=counter)


def raw(key: Any, count: int, position: int = 0, space: int = DRAWS) -> Any:
    """The first `count` words of a key, one block after the other from block 1 on."""
    return bit_generator(key, position, space).random_raw(count)
