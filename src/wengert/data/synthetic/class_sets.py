"""Points of classes: moons, circles, spirals, blobs, a checkerboard; noise of all synthetic sets.

    make_moons, make_circles, make_spirals, make_blobs, make_checkerboard
    sample_count    the number of samples, after checking the options
    finished        points and labels with noise, in random order, in the given dtype

Labels are integers from 0; the numbers of samples of the classes differ by at most one, except on
the checkerboard.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert.errors import ArgumentError, at, user_line

from ..samplers import as_generator

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


def _in_turn(n: int, count: int) -> Array:
    """Classes 0 to count - 1 in turn, so that their numbers differ by at most one."""
    return np.arange(n) % count


def make_moons(
    n_samples: int = 100, *, noise: float = 0.0, rng: Any = None, dtype: Any = float
) -> Pair:
    """Two interleaving half circles.

    Parameters
    ----------
    n_samples : int, default 100
    noise : float, default 0.0
        Standard deviation of the noise of the points.
    rng : int, numpy.random.Generator or key, optional
    dtype : dtype, default float64

    Returns
    -------
    x : array, shape (n_samples, 2)
    y : array of int, shape (n_samples,)
        0 for the upper half circle, around (0, 0), and 1 for the lower one, around (1, 0.5).

    Examples
    --------
    >>> from wengert.data.synthetic import make_moons
    >>> x, y = make_moons(200, noise=0.1, rng=0)
    >>> x.shape, int(y.sum())
    ((200, 2), 100)
    """
    n, rng = sample_count("make_moons", n_samples, noise), as_generator(rng)
    y, angle = _in_turn(n, 2), rng.uniform(0.0, np.pi, n)
    sign = 1.0 - 2.0 * y
    x = np.stack([y + sign * np.cos(angle), 0.5 * y + sign * np.sin(angle)], axis=1)
    return finished(x, y, noise, rng, dtype)


def make_circles(
    n_samples: int = 100,
    *,
    noise: float = 0.0,
    factor: float = 0.5,
    rng: Any = None,
    dtype: Any = float,
) -> Pair:
    """Two circles with one center.

    Parameters
    ----------
    n_samples : int, default 100
    noise : float, default 0.0
        Standard deviation of the noise of the points.
    factor : float, default 0.5
        The radius of the inner circle, from 0 to 1; that of the outer one is 1.
    rng : int, numpy.random.Generator or key, optional
    dtype : dtype, default float64

    Returns
    -------
    x : array, shape (n_samples, 2)
    y : array of int, shape (n_samples,)
        0 for the outer circle, 1 for the inner one.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert.data.synthetic import make_circles
    >>> x, y = make_circles(6, rng=0)
    >>> np.hypot(*x.T)[np.argsort(y)]
    array([1. , 1. , 1. , 0.5, 0.5, 0.5])
    """
    n, rng = sample_count("make_circles", n_samples, noise), as_generator(rng)
    if not 0.0 <= factor < 1.0:
        raise ArgumentError(
            f"make_circles: factor must be from 0 to less than 1, got {factor!r}{at(user_line())}."
        )
    y, angle = _in_turn(n, 2), rng.uniform(0.0, 2.0 * np.pi, n)
    radius = np.where(y == 1, factor, 1.0)
    x = radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return finished(x, y, noise, rng, dtype)


def make_spirals(
    n_samples: int = 100,
    *,
    classes: int = 2,
    turns: float = 1.0,
    noise: float = 0.0,
    rng: Any = None,
    dtype: Any = float,
) -> Pair:
    """Spirals from the origin to radius 1, one for each class.

    Parameters
    ----------
    n_samples : int, default 100
    classes : int, default 2
    turns : float, default 1.0
        The number of turns of a spiral around the origin.
    noise : float, default 0.0
        Standard deviation of the noise of the points.
    rng : int, numpy.random.Generator or key, optional
    dtype : dtype, default float64

    Returns
    -------
    x : array, shape (n_samples, 2)
    y : array of int, shape (n_samples,)
        From 0 to classes - 1.

    Examples
    --------
    >>> from wengert.data.synthetic import make_spirals
    >>> x, y = make_spirals(300, classes=3, rng=0)
    >>> x.shape, sorted(set(y.tolist()))
    ((300, 2), [0, 1, 2])
    """
    n, rng = sample_count("make_spirals", n_samples, noise), as_generator(rng)
    if classes < 1:
        raise ArgumentError(
            f"make_spirals: classes must be at least 1, got {classes!r}{at(user_line())}."
        )
    y, radius = _in_turn(n, classes), np.sqrt(rng.uniform(0.0, 1.0, n))  # evenly along the area
    angle = 2.0 * np.pi * (turns * radius + y / classes)
    x = radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return finished(x, y, noise, rng, dtype)


def make_blobs(
    n_samples: int = 100,
    n_features: int = 2,
    *,
    centers: int | Sequence[Any] | Array = 3,
    cluster_std: float | Sequence[float] = 1.0,
    center_box: tuple[float, float] = (-10.0, 10.0),
    rng: Any = None,
    dtype: Any = float,
) -> Pair:
    """Normally distributed points around centers.

    Parameters
    ----------
    n_samples : int, default 100
    n_features : int, default 2
        The number of coordinates, if `centers` is a number.
    centers : int or array of shape (classes, n_features), default 3
        The number of classes, or their centers.
    cluster_std : float or sequence of float, default 1.0
        Standard deviation of all classes, or of each.
    center_box : pair of float, default (-10, 10)
        The range of the coordinates of random centers.
    rng : int, numpy.random.Generator or key, optional
    dtype : dtype, default float64

    Returns
    -------
    x : array, shape (n_samples, n_features)
    y : array of int, shape (n_samples,)
        From 0 to classes - 1.

    Examples
    --------
    >>> from wengert.data.synthetic import make_blobs
    >>> x, y = make_blobs(50, centers=[[0.0, 0.0, 0.0], [9.0, 9.0, 9.0]], rng=0)
    >>> x.shape, bool((x[y == 1].min(axis=0) > x[y == 0].max(axis=0)).all())
    ((50, 3), True)
    """
    n, rng = sample_count("make_blobs", n_samples, 0.0), as_generator(rng)
    if np.ndim(centers) == 0:
        middle = rng.uniform(*center_box, (int(np.asarray(centers)), n_features))
    else:
        middle = np.asarray(centers, float)
    spread = np.asarray(cluster_std, float)
    if middle.ndim != 2 or not len(middle) or spread.shape not in ((), (len(middle),)):
        raise ArgumentError(
            f"make_blobs: centers must be a number or an array (classes, features), and "
            f"cluster_std a number or one for each class, got shapes {middle.shape} and "
            f"{spread.shape}{at(user_line())}."
        )
    y = _in_turn(n, len(middle))
    x = middle[y] + np.broadcast_to(spread, len(middle))[y, None] * rng.normal(
        size=(n, middle.shape[1])
    )
    return finished(x, y, 0.0, rng, dtype)


def make_checkerboard(
    n_samples: int = 100, *, squares: int = 4, rng: Any = None, dtype: Any = float
) -> Pair:
    """Points of the unit square, with the colors of a checkerboard.

    Parameters
    ----------
    n_samples : int, default 100
    squares : int, default 4
        The number of squares along each side.
    rng : int, numpy.random.Generator or key, optional
    dtype : dtype, default float64

    Returns
    -------
    x : array, shape (n_samples, 2)
    y : array of int, shape (n_samples,)
        0 or 1; 0 for the square at the origin.

    Examples
    --------
    >>> from wengert.data.synthetic import make_checkerboard
    >>> x, y = make_checkerboard(4, squares=1, rng=0)
    >>> y
    array([0, 0, 0, 0])
    """
    n, rng = sample_count("make_checkerboard", n_samples, 0.0), as_generator(rng)
    if squares < 1:
        raise ArgumentError(
            f"make_checkerboard: squares must be at least 1, got {squares!r}{at(user_line())}."
        )
    x = rng.uniform(0.0, 1.0, (n, 2))
    y = np.floor(x * squares).astype(np.int64).sum(axis=1) % 2
    return finished(x, y, 0.0, rng, dtype)
