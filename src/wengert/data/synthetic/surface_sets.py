"""Points of curved surfaces in space: an S, and a roll.

    make_s_curve, make_swiss_roll

The second result is the position along the curve; the noise is added to the points.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..rng_state import as_generator
from .sample_noise import Pair, finished, sample_count


def make_s_curve(
    n_samples: int = 100, *, noise: float = 0.0, rng: Any = None, dtype: Any = float
) -> Pair:
    """Points of a surface with the section of an S.

    Parameters
    ----------
    n_samples : int, default 100
    noise : float, default 0.0
        Standard deviation of the noise of the points.
    rng : int, numpy.random.Generator or key, optional
    dtype : dtype, default float64

    Returns
    -------
    x : array, shape (n_samples, 3)
        The second coordinate is the position across, from 0 to 2.
    t : array, shape (n_samples,)
        The position along the curve, from -3 pi / 2 to 3 pi / 2.
    """
    n, rng = sample_count("make_s_curve", n_samples, noise), as_generator(rng)
    t, across = rng.uniform(-1.5 * np.pi, 1.5 * np.pi, n), rng.uniform(0.0, 2.0, n)
    x = np.stack([np.sin(t), across, np.sign(t) * (np.cos(t) - 1.0)], axis=1)
    return finished(x, t, noise, rng, dtype)


def make_swiss_roll(
    n_samples: int = 100, *, noise: float = 0.0, rng: Any = None, dtype: Any = float
) -> Pair:
    """Points of a rolled surface.

    Parameters
    ----------
    n_samples : int, default 100
    noise : float, default 0.0
        Standard deviation of the noise of the points.
    rng : int, numpy.random.Generator or key, optional
    dtype : dtype, default float64

    Returns
    -------
    x : array, shape (n_samples, 3)
        (t cos t, position across from 0 to 21, t sin t).
    t : array, shape (n_samples,)
        The position along the roll, from 3 pi / 2 to 9 pi / 2.
    """
    n, rng = sample_count("make_swiss_roll", n_samples, noise), as_generator(rng)
    t, across = rng.uniform(1.5 * np.pi, 4.5 * np.pi, n), rng.uniform(0.0, 21.0, n)
    x = np.stack([t * np.cos(t), across, t * np.sin(t)], axis=1)
    return finished(x, t, noise, rng, dtype)
