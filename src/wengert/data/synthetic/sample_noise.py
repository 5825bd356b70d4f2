"""What all synthetic data sets share.

sample_count   the number of samples, after checking the options
finished       points and labels with noise, in random order, in the given dtype
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert.errors import ArgumentError, at, user_line

Array = np.ndarray[Any, Any]
Pair = tuple[Array, Array]


def sample_count(what: str, n_samples: Any, noise: float) -> int:
    """The number of samples, after checking the options."""
    is_integer = isinstance(n_samples, int | np.integer) and not isinstance(n_samples, bool)
    if not is_integer or n_samples < 1:
        raise ArgumentError(
            f"{what}: n_samples must be an integer of at least 1, got {n_samples!r}"
            f"{at(user_line())}."
        )
    if not noise >= 0.0:
        raise ArgumentError(f"{what}: noise must not be negative, got {noise!r}{at(user_line())}.")
    return int(n_samples)


def finished(
    x: Any, y: Any, noise: float, rng: np.random.Generator, dtype: Any, noisy_labels: bool = False
) -> Pair:
    """Points and labels with noise, in random order, in the given dtype."""
    if noisy_labels:
        y = y + noise * rng.normal(size=y.shape)
    else:
        x = x + noise * rng.normal(size=x.shape)
    order = rng.permutation(len(x))
    labels = y[order]
    return x[order].astype(dtype), labels.astype(dtype) if labels.dtype.kind == "f" else labels
