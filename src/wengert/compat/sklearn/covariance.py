"""Covariance functions (kernels) of the distance between samples.

    rbf         exp(-r**2 / 2)                                       smooth to any order
    matern52    (1 + sqrt(5) r + 5 r**2 / 3) exp(-sqrt(5) r)         twice differentiable
    matern32    (1 + sqrt(3) r) exp(-sqrt(3) r)                      once
    matern12    exp(-r)                                              continuous

r is the distance in units of the length scales (Rasmussen and Williams, "Gaussian Processes for
Machine Learning", 2006, chapter 4).  All are functions of r**2 whose derivatives are finite where
samples coincide.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np


def squared_distances(x: Any, z: Any, scales: Any) -> Any:
    """Squared distances of all pairs, in units of the length scales, shape (n, m)."""
    difference = x[:, None, :] / scales - z[None, :, :] / scales
    return np.sum(difference * difference, axis=2)


def rbf(squares: Any) -> Any:
    """The Gaussian kernel."""
    return np.exp(-0.5 * squares)


def matern12(squares: Any) -> Any:
    """The Matern kernel of order 1/2, the exponential kernel."""
    return np.exp(-_root(squares))


def matern32(squares: Any) -> Any:
    """The Matern kernel of order 3/2."""
    r = math.sqrt(3.0) * _root(squares)
    return (1.0 + r) * np.exp(-r)


def matern52(squares: Any) -> Any:
    """The Matern kernel of order 5/2."""
    r = math.sqrt(5.0) * _root(squares)
    return (1.0 + r + 5.0 / 3.0 * squares) * np.exp(-r)


def _root(squares: Any) -> Any:
    apart = squares > 0
    return np.where(apart, np.sqrt(np.where(apart, squares, 1.0)), 0.0)


KERNELS = {"rbf": rbf, "matern12": matern12, "matern32": matern32, "matern52": matern52}
