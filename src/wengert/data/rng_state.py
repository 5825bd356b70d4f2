"""Random generators from seeds, and their states as plain values.

Everything random in this package draws from a `numpy.random.Generator`.  Where a seed is derived
from a state, by a digest, nothing is drawn: others that share the generator notice nothing.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy as np

from wengert.errors import ArgumentError, FileError, at, user_line


def as_generator(rng: Any) -> np.random.Generator:
    """A generator: itself, or of a seed, a tuple of them, a key of `wengert.random`, or fresh.

    Raises
    ------
    ArgumentError
        Something that no generator can be made of.
    """
    if isinstance(rng, np.ndarray) and rng.dtype.kind == "u":  # a key
        rng = [int(word) for word in rng.reshape(-1)]
    try:
        return np.random.default_rng(rng)
    except (TypeError, ValueError) as error:
        raise ArgumentError(
            f"rng={rng!r}: it must be an integer >= 0 or a numpy.random.Generator{at(user_line())}."
        ) from error


def state_of(rng: np.random.Generator) -> dict[str, Any]:
    """The state of a generator: numbers, words and arrays."""
    return dict(rng.bit_generator.state)


def put_state(rng: np.random.Generator, state: Any) -> None:
    """Let a generator go on from a state.

    Raises
    ------
    FileError
        It is the state of another kind of generator, or none at all.
    """
    try:
        rng.bit_generator.state = state
    except (TypeError, ValueError, KeyError) as error:
        kind = state.get("bit_generator") if isinstance(state, dict) else type(state).__name__
        raise FileError(
            f"the state of a generator {kind} does not fit {type(rng.bit_generator).__name__} "
            f"({error}). Use the kind of generator that the state was saved of{at(user_line())}."
        ) from error


def digest(state: Any) -> int:
    """An integer below 2**63 derived from a state."""
    text = json.dumps(state, sort_keys=True, default=_plain)
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little") >> 1


def _plain(x: Any) -> Any:
    return np.asarray(x).tolist()
