"""Points of surfaces in space, and values of functions at random points, with noise.

    make_regression, make_friedman, make_sine
    make_s_curve, make_swiss_roll

The noise is added to the values; points have none.

The second result is the position along the curve; the noise is added to the points.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert.errors import ArgumentError, at, user_line

from ..samplers import as_generator
from .class_sets import Array, Pair, finished, sample_count


def make_regression(
    n_samples: int = 100,
    n_features: int = 10,
    *,
    n_informative: int | None = None,
    bias: float = 0.0,
    noise: float = 0.0,
    rng: Any = None,
    dtype: Any = float,
) -> tuple[Array, Array, Array]:
    """A linear function of normally distributed features.

    Parameters
    ----------
    n_samples : int, default 100
    n_features : int, default 10
    n_informative : int, optional
        The number of features with nonzero coefficients; default all.
    bias : float, default 0.0
    noise : float, default 0.0
        Standard deviation of the noise of the values.
    rng : int, numpy.random.Generator or key, optional
    dtype : dtype, default float64

    Returns
    -------
    x : array, shape (n_samples, n_features)
    y : array, shape (n_samples,)
        ``x @ coefficients + bias``, plus noise.
    coefficients : array, shape (n_features,)
        Uniformly distributed from 1 to 10, in random positions; the others are 0.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert.data.synthetic import make_regression
    >>> x, y, coefficients = make_regression(20, 5, n_informative=2, bias=1.0, rng=0)
    >>> bool(np.allclose(y, x @ coefficients + 1.0)), int(np.sum(coefficients != 0))
    (True, 2)
    """
    n, rng = sample_count("make_regression", n_samples, noise), as_generator(rng)
    informative = n_features if n_informative is None else n_informative
    if not 0 <= informative <= n_features:
        raise ArgumentError(
            f"make_regression: n_informative must be from 0 to the number of features, "
            f"{n_features}, got {n_informative!r}{at(user_line())}."
        )
    coefficients = np.zeros(n_features)
    coefficients[rng.permutation(n_features)[:informative]] = rng.uniform(1.0, 10.0, informative)
    x = rng.normal(size=(n, n_features))
    found = finished(x, x @ coefficients + bias, noise, rng, dtype, noisy_labels=True)
    return *found, coefficients.astype(dtype)


def make_friedman(
    n_samples: int = 100,
    n_features: int = 10,
    *,
    noise: float = 0.0,
    rng: Any = None,
    dtype: Any = float,
) -> Pair:
    """Friedman's first function: 10 sin(pi x0 x1) + 20 (x2 - 1/2)**2 + 10 x3 + 5 x4.

    Parameters
    ----------
    n_samples : int, default 100
    n_features : int, default 10
        At least 5; the others have no influence.
    noise : float, default 0.0
        Standard deviation of the noise of the values.
    rng : int, numpy.random.Generator or key, optional
    dtype : dtype, default float64

    Returns
    -------
    x : array, shape (n_samples, n_features)
        Uniformly distributed from 0 to 1.
    y : array, shape (n_samples,)

    References
    ----------
    .. [1] J. H. Friedman, "Multivariate adaptive regression splines", Annals of Statistics 19,
       1991.
    """
    n, rng = sample_count("make_friedman", n_samples, noise), as_generator(rng)
    if n_features < 5:
        raise ArgumentError(
            f"make_friedman: n_features must be at least 5, got {n_features!r}{at(user_line())}."
        )
    x = rng.uniform(0.0, 1.0, (n, n_features))
    y = 10.0 * np.sin(np.pi * x[:, 0] * x[:, 1]) + 20.0 * (x[:, 2] - 0.5) ** 2
    return finished(x, y + 10.0 * x[:, 3] + 5.0 * x[:, 4], noise, rng, dtype, noisy_labels=True)


def make_sine(
    n_samples: int = 100,
    *,
    periods: float = 1.0,
    noise: float = 0.0,
    rng: Any = None,
    dtype: Any = float,
) -> Pair:
    """One feature from -1 to 1, and sin(pi periods x).

    Parameters
    ----------
    n_samples : int, default 100
    periods : float, default 1.0
        The number of periods from -1 to 1.
    noise : float, default 0.0
        Standard deviation of the noise of the values.
    rng : int, numpy.random.Generator or key, optional
    dtype : dtype, default float64

    Returns
    -------
    x : array, shape (n_samples, 1)
    y : array, shape (n_samples,)
    """
    n, rng = sample_count("make_sine", n_samples, noise), as_generator(rng)
    x = rng.uniform(-1.0, 1.0, (n, 1))
    y = np.sin(np.pi * periods * x[:, 0])
    return finished(x, y, noise, rng, dtype, noisy_labels=True)


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
