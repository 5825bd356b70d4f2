"""kmeans: the sum of the squared distances of points to the nearest centroid, and Newton's step.

The Hessian of the cost by the centroids is diagonal, so its product with ones is the diagonal: a
forward derivative of the reverse one gives the gradient and the diagonal together.  Which centroid
is nearest is found by |c|**2 - 2 p c, since |p|**2 does not matter for it; the cost is of the
differences themselves.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import wengert as wg
from gradbench.task import Task, listed, number


def cost(points: Any, centroids: Any) -> Any:
    """Return the sum of squared distances."""
    nearest = np.argmin(np.sum(centroids**2, axis=1) - 2.0 * points @ centroids.T, axis=1)
    return np.sum((points - centroids[nearest]) ** 2)


def direction(points: Any, centroids: Any) -> Any:
    """Return the gradient over the diagonal of the Hessian."""
    gradient = wg.grad(lambda centroids: cost(points, centroids))
    slope, curvature = wg.jvp(gradient, (centroids,), (np.ones_like(centroids),))
    return slope / curvature


def arrays(given: dict[str, Any]) -> tuple[Any, Any]:
    """Return points and centroids."""
    return np.array(given["points"]), np.array(given["centroids"])


FUNCTIONS = {
    "cost": lambda given: Task(wg.jit(cost), arrays(given), number),
    "dir": lambda given: Task(wg.jit(direction), arrays(given), listed),
}
