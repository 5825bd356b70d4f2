"""Random generators from seeds, and their states as plain values.

All random numbers of this package are drawn from a `numpy.random.Generator`.  Seeds are derived
from its state by a hash, which does not advance the generator.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy as np

from wengert.errors import ArgumentError, FileError, at, user_line


def as_generator(rng: Any) -> np.random.Generator:
    """A generator from a generator, one or several seeds, a key of `wengert.random`, or None.

    Raises
    ------
    ArgumentError
        Another argument.
    """
    if isinstance(rng, np.ndarray) and rng.dtype.kind == "u":  # a key
        rng = [int(word) for word in rng.reshape(-1)]
    try:
        return np.random.default_rng(rng)
    except (TypeError, ValueError) as error:
        raise ArgumentError(
            f"rng={rng!r}: rng must be an integer, at least 0, or a numpy.random.Generator"
            f"{at(user_line())}."
        ) from error


def state_of(rng: np.random.Generator) -> dict[str, Any]:
    """The state of a generator: numbers, strings and arrays."""
    return dict(rng.bit_generator.state)


def set_state(rng: np.random.Generator, state: Any) -> None:
    """Set the state of a generator.

    Raises
    ------
    FileError
        It is not a state, or the state of another kind of generator.
    """
    try:
        rng.bit_generator.state = state
    except (TypeError, ValueError, KeyError) as error:
        kind = state.get("bit_generator") if isinstance(state, dict) else type(state).__name__
        raise FileError(
            f"the state of a generator {kind} cannot be loaded into a "
            f"{type(rng.bit_generator).__name__} ({error}). Use the kind of generator that the "
            f"state was saved from{at(user_line())}."
        ) from error


def digest(state: Any) -> int:
    """A hash of a state, an integer below 2**63."""
    text = json.dumps(state, sort_keys=True, default=_to_list)
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little") >> 1


def _to_list(x: Any) -> Any:
    return np.asarray(x).tolist()
