"""Samplers: the order of items in an epoch; random generators from seeds, and their states.

    SequentialSampler      items in order
    RandomSampler          a random permutation, or draws with replacement
    WeightedRandomSampler  draws with given weights
    SubsetRandomSampler    a random permutation of given indices

All random numbers of wengert.data are drawn from a `numpy.random.Generator`.  Seeds are derived
from its state by a hash, which does not advance the generator.

A sampler defines its length and ``order(rng)``, the indices of an epoch.  It has no state, so a
loader can resume in the middle of an epoch from the state of its generator.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy as np

from wengert.errors import ArgumentError, FileError, StructureError, at, user_line

__all__ = [
    "RandomSampler", "Sampler", "SequentialSampler", "SubsetRandomSampler", "WeightedRandomSampler",
]  # fmt: skip


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


class Sampler:
    """Base class of samplers: define ``__len__`` and ``order(rng)``."""

    def __len__(self) -> int:
        raise StructureError(
            f"{type(self).__name__} has no length. Define __len__(self){at(user_line())}."
        )

    def order(self, rng: np.random.Generator) -> Any:
        """The indices of an epoch, drawn from a generator."""
        raise StructureError(
            f"{type(self).__name__} has no order. Define order(self, rng){at(user_line())}."
        )


class SequentialSampler(Sampler):
    """Items in order."""

    def __init__(self, dataset: Any) -> None:
        self.dataset = dataset

    def __len__(self) -> int:
        return len(self.dataset)

    def order(self, rng: np.random.Generator) -> Any:
        """0, 1, 2, ..."""
        return np.arange(len(self))


class RandomSampler(Sampler):
    """Items in random order.

    Parameters
    ----------
    dataset : sized
    replacement : bool, default False
        Draw with replacement.
    num_samples : int, optional
        Items per epoch, by default all. Without replacement, a larger number than that of items
        is drawn as several permutations in sequence.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert.data import RandomSampler
    >>> sorted(RandomSampler(range(5)).order(np.random.default_rng(0)))
    [np.int64(0), np.int64(1), np.int64(2), np.int64(3), np.int64(4)]
    """

    def __init__(
        self, dataset: Any, replacement: bool = False, num_samples: int | None = None
    ) -> None:
        if num_samples is not None and num_samples < 1:
            raise ArgumentError(
                f"RandomSampler(num_samples={num_samples}): num_samples must be at least 1"
                f"{at(user_line())}."
            )
        self.dataset, self.replacement = dataset, replacement
        self.num_samples = num_samples

    def __len__(self) -> int:
        return len(self.dataset) if self.num_samples is None else self.num_samples

    def order(self, rng: np.random.Generator) -> Any:
        """Random indices."""
        count, wanted = len(self.dataset), len(self)
        if not count:
            return np.arange(0)
        if self.replacement:
            return rng.integers(count, size=wanted)
        orders = [rng.permutation(count) for _ in range(-(-wanted // count))]
        return np.concatenate(orders)[:wanted]


class WeightedRandomSampler(Sampler):
    """Items drawn with given weights.

    Parameters
    ----------
    weights : array_like of float, shape (n,)
        A weight of at least 0 for each item, not all 0; they need not sum to 1.
    num_samples : int
        Items per epoch.
    replacement : bool, default True

    Raises
    ------
    ArgumentError
        Weights that are negative, not finite or all 0; without replacement, more samples than
        items of nonzero weight.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert.data import WeightedRandomSampler
    >>> WeightedRandomSampler([0.0, 1.0, 0.0], 4).order(np.random.default_rng(0))
    array([1, 1, 1, 1])
    """

    def __init__(self, weights: Any, num_samples: int, replacement: bool = True) -> None:
        self.weights = np.asarray(weights, float)
        valid = self.weights.ndim == 1 and np.isfinite(self.weights).all()
        if not valid or (self.weights < 0).any() or not self.weights.sum() > 0:
            raise ArgumentError(
                "WeightedRandomSampler: weights must be finite and at least 0, one for each item, "
                f"and not all 0. Change them{at(user_line())}."
            )
        most = np.inf if replacement else np.count_nonzero(self.weights)
        if not 1 <= num_samples <= most:
            raise ArgumentError(
                f"WeightedRandomSampler(num_samples={num_samples}): num_samples must be at least "
                "1 and, without replacement, at most the number of items of nonzero weight"
                f"{at(user_line())}."
            )
        self.num_samples, self.replacement = int(num_samples), replacement

    def __len__(self) -> int:
        return self.num_samples

    def order(self, rng: np.random.Generator) -> Any:
        """Indices drawn with the weights."""
        shares = self.weights / self.weights.max()
        return rng.choice(
            len(shares), self.num_samples, replace=self.replacement, p=shares / shares.sum()
        )


class SubsetRandomSampler(Sampler):
    """Given items in random order.

    Parameters
    ----------
    indices : sequence of int
    """

    def __init__(self, indices: Any) -> None:
        self.indices = np.asarray(indices, np.int64)

    def __len__(self) -> int:
        return len(self.indices)

    def order(self, rng: np.random.Generator) -> Any:
        """The indices in random order."""
        return rng.permutation(self.indices)
