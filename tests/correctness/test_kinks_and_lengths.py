"""Roots, lengths and angles at 0: the subgradient of least norm, or infinity where there is none.

|x|, norms, `hypot` and standard deviations are convex with a minimum there; 0 is the member of
least norm of their subdifferential (F. H. Clarke, Optimization and Nonsmooth Analysis, 1983, 2.1).
The root is vertical at 0.  JAX and PyTorch give NaN for norms, `std` or `hypot` at 0.
"""

import numpy as np
import pytest

import wengert as wg

from .ways import case, check

norm = np.linalg.norm
RELU = wg.nn.functional.relu

CASES = {
    "norm": case(norm, [0.0, 0.0], gradient=[0, 0]),
    "norm of order 1": case(lambda x: norm(x, 1), [0.0, -2.0], gradient=[0, -1]),
    "norm of order 3": case(lambda x: norm(x, 3), [0.0, 0.0], gradient=[0, 0]),
    "norm of order inf": case(lambda x: norm(x, np.inf), [0.0, 0.0], gradient=[0, 0]),
    "norms of rows": case(
        lambda x: np.sum(norm(x, axis=1)), [[0.0, 0.0], [3.0, 4.0]], gradient=[[0, 0], [0.6, 0.8]]
    ),
    "Frobenius norm": case(norm, [[0.0, 0.0], [0.0, 0.0]], gradient=[[0, 0], [0, 0]]),
    "distances of points": case(
        lambda x: np.sum(norm(x[:, None] - x[None], axis=-1)),
        [[0.0, 0.0], [3.0, 4.0]],
        gradient=[[-1.2, -1.6], [1.2, 1.6]],
    ),
    "std": case(np.std, [1.0, 1.0, 1.0], gradient=[0, 0, 0]),
    "std of rows": case(
        lambda x: np.sum(np.std(x, axis=1)),
        [[1.0, 1.0], [0.0, 2.0]],
        gradient=[[0, 0], [-0.5, 0.5]],
    ),
    "var": case(np.var, [1.0, 1.0, 1.0], gradient=[0, 0, 0], hessian=2 / 3 * (np.eye(3) - 1 / 3)),
    "hypot": case(np.hypot, 0.0, 0.0, gradient=(0.0, 0.0)),
    "hypot on an axis": case(np.hypot, 0.0, 2.0, gradient=(0.0, 1.0)),
    "hypot of large numbers": case(np.hypot, 3e30, 4e30, gradient=(0.6, 0.8)),
    "arctan2": case(np.arctan2, 0.0, 0.0, gradient=(0.0, 0.0)),
    "arctan2 on the cut": case(np.arctan2, 0.0, -2.0, gradient=(-0.5, 0.0)),
    "sqrt": case(lambda x: np.sum(np.sqrt(x)), [0.0, 4.0], gradient=[np.inf, 0.25], orders=1),
    "cbrt": case(lambda x: np.sum(np.cbrt(x)), [0.0, 8.0], gradient=[np.inf, 1 / 12], orders=1),
    "abs": case(lambda x: np.sum(np.abs(x)), [0.0, -0.0, -1.0, 1.0], gradient=[0, 0, -1, 1]),
    "sign": case(lambda x: np.sum(np.sign(x) * x), [0.0, -2.0], gradient=[0, -1]),
    "relu": case(lambda x: np.sum(RELU(x)), [0.0, -0.0, -1.0, 1.0], gradient=[0, 0, 0, 1]),
    "square of a root": case(
        lambda x: np.sum(np.where(x > 0, np.sqrt(x) ** 2, 0.0)), [0.0, 4.0], gradient=[0, 1]
    ),
}


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", CASES)
def test_kinks(name):
    check(CASES[name])


def test_a_step_along_a_zero_distance_stays_finite():
    """Gradient descent from equal points, which fails by NaN where norms have no slope at 0."""
    x = np.zeros((3, 2))
    for _ in range(3):
        x = x - 0.1 * wg.grad(lambda x: np.sum(norm(x[:, None] - x[None] + 1e-3, axis=-1)))(x)
    assert np.isfinite(x).all()
