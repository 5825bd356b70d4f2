"""Samplers: the order of items in an epoch, with or without repetition.

    SequentialSampler      one after the other
    RandomSampler          each once in a fresh order, or drawn with replacement
    WeightedRandomSampler  drawn by weights: rare classes more often
    SubsetRandomSampler    some of them, in a fresh order

A sampler states its length and ``order(rng)``, the indices of a pass.  It has no state of its own,
so a loader that knows the state of its generator can go on in the middle of any pass.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import ArgumentError, StructureError, at, user_line

__all__ = [
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "SubsetRandomSampler",
    "WeightedRandomSampler",
]


class Sampler:
    """Base of samplers: define ``__len__`` and ``order(rng)``."""

    def __len__(self) -> int:
        raise StructureError(
            f"{type(self).__name__} has no length. Define __len__(self){at(user_line())}."
        )

    def order(self, rng: np.random.Generator) -> Any:
        """The indices of one pass, drawn from a generator."""
        raise StructureError(
            f"{type(self).__name__} has no order. Define order(self, rng){at(user_line())}."
        )


class SequentialSampler(Sampler):
    """One item after the other."""

    def __init__(self, dataset: Any) -> None:
        self.dataset = dataset

    def __len__(self) -> int:
        return len(self.dataset)

    def order(self, rng: np.random.Generator) -> Any:
        """0, 1, 2 ..."""
        return np.arange(len(self))


class RandomSampler(Sampler):
    """Items in random order.

    Parameters
    ----------
    dataset : sized
    replacement : bool, default False
        Draw each independently, so that one may come twice.
    num_samples : int, optional
        How many in a pass; by default as many as there are. Without replacement, more than there
        are come in several orders, one after the other.

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
                f"RandomSampler(num_samples={num_samples}): at least one{at(user_line())}."
            )
        self.dataset, self.replacement = dataset, replacement
        self.num_samples = num_samples

    def __len__(self) -> int:
        return len(self.dataset) if self.num_samples is None else self.num_samples

    def order(self, rng: np.random.Generator) -> Any:
        """Indices in random order."""
        count, wanted = len(self.dataset), len(self)
        if not count:
            return np.arange(0)
        if self.replacement:
            return rng.integers(count, size=wanted)
        orders = [rng.permutation(count) for _ in range(-(-wanted // count))]
        return np.concatenate(orders)[:wanted]


class WeightedRandomSampler(Sampler):
    """Items drawn by weights.

    Parameters
    ----------
    weights : array_like of float, shape (n,)
        One for each item, at least 0, not all 0; they need not sum to 1.
    num_samples : int
        How many in a pass.
    replacement : bool, default True

    Raises
    ------
    ArgumentError
        Weights that are negative, not finite or all 0; without replacement, more samples than
        items with a weight.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert.data import WeightedRandomSampler
    >>> WeightedRandomSampler([0.0, 1.0, 0.0], 4).order(np.random.default_rng(0))
    array([1, 1, 1, 1])
    """

    def __init__(self, weights: Any, num_samples: int, replacement: bool = True) -> None:
        self.weights = np.asarray(weights, float)
        fits = self.weights.ndim == 1 and np.isfinite(self.weights).all()
        if not fits or (self.weights < 0).any() or not self.weights.sum() > 0:
            raise ArgumentError(
                "WeightedRandomSampler: weights are finite numbers of at least 0, one for each "
                f"item, and not all 0. Change them{at(user_line())}."
            )
        most = np.inf if replacement else np.count_nonzero(self.weights)
        if not 1 <= num_samples <= most:
            raise ArgumentError(
                f"WeightedRandomSampler(num_samples={num_samples}): at least 1 and, without "
                f"replacement, at most the number of items with a weight{at(user_line())}."
            )
        self.num_samples, self.replacement = int(num_samples), replacement

    def __len__(self) -> int:
        return self.num_samples

    def order(self, rng: np.random.Generator) -> Any:
        """Indices, drawn by weight."""
        shares = self.weights / self.weights.max()
        return rng.choice(
            len(shares), self.num_samples, replace=self.replacement, p=shares / shares.sum()
        )


class SubsetRandomSampler(Sampler):
    """Some items in a fresh order.

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
