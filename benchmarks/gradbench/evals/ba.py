"""ba: bundle adjustment, residuals of many observations and their sparse Jacobian.

A residual depends on one camera, one point and one weight, so its two rows of the Jacobian have 15
numbers each: those of `wg.jacrev` of one observation, batched over all (`wg.vmap`).  The rows go
into compressed form as they are: row pointers, columns, values.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import wengert as wg
from gradbench.task import Task

CAMERA, POINT = 11, 3
COLUMNS = CAMERA + POINT + 1  # in a row


def rotated(rotation: Any, v: Any) -> tuple[Any, Any, Any]:
    """A vector turned about the axis ``rotation`` by its length (Rodrigues' formula)."""
    square = sum(r * r for r in rotation)
    still = square == 0.0  # then there is no axis, and to first order v + rotation x v
    angle = np.sqrt(np.where(still, 1.0, square))
    k0, k1, k2 = (r / angle for r in rotation)
    v0, v1, v2 = v
    c, s = np.where(still, 1.0, np.cos(angle)), np.where(still, 1.0, np.sin(angle))
    along = (k0 * v0 + k1 * v1 + k2 * v2) * (1.0 - c)
    return (
        v0 * c + (k1 * v2 - k2 * v1) * s + k0 * along,
        v1 * c + (k2 * v0 - k0 * v2) * s + k1 * along,
        v2 * c + (k0 * v1 - k1 * v0) * s + k2 * along,
    )


def residual(camera: Any, point: Any, weight: Any, feature: Any) -> Any:
    """How far a point is from where a camera saw it, in both coordinates."""
    camera, point = [*camera], [*point]
    rotation, center, (focal, u, v, k1, k2) = camera[:3], camera[3:6], camera[6:]
    x, y, depth = rotated(rotation, [p - c for p, c in zip(point, center, strict=True)])
    x, y = x / depth, y / depth
    square = x * x + y * y
    scale = focal * (1.0 + k1 * square + k2 * square * square)
    return np.stack([weight * (scale * x + u - feature[0]), weight * (scale * y + v - feature[1])])


def excess(weight: Any) -> Any:
    """What a weight costs."""
    return 1.0 - weight**2


def objective(cameras: Any, points: Any, weights: Any, features: Any, pairs: Any) -> Any:
    """Residuals of all observations, and 1 - weight**2."""

    def one(pair: Any, weight: Any, feature: Any) -> Any:
        return residual(cameras[pair[0]], points[pair[1]], weight, feature)

    return wg.vmap(one)(pairs, weights, features), excess(weights)


def columns(n: int, m: int, pairs: Any) -> tuple[Any, Any]:
    """Row pointers, and the column of each value."""
    p, whole = len(pairs), np.int32
    pairs, last = pairs.astype(whole), CAMERA * n + POINT * m + np.arange(p, dtype=whole)
    of_camera = CAMERA * pairs[:, :1] + np.arange(CAMERA, dtype=whole)
    of_point = CAMERA * n + POINT * pairs[:, 1:] + np.arange(POINT, dtype=whole)
    one = np.concatenate([of_camera, of_point, last[:, None]], axis=1)
    both = np.stack([one, one], axis=1).reshape(-1)
    starts = COLUMNS * np.arange(2 * p, dtype=whole)
    ends = 2 * COLUMNS * p + np.arange(p + 1, dtype=whole)
    return np.concatenate([starts, ends]), np.concatenate([both, last])


def jacobian(cameras: Any, points: Any, weights: Any, features: Any, pairs: Any) -> Any:
    """The Jacobian of residuals and of 1 - weight**2 in compressed rows."""

    def rows(pair: Any, weight: Any, feature: Any) -> Any:
        slopes = wg.jacrev(residual, argnums=(0, 1, 2))
        by_camera, by_point, by_weight = slopes(cameras[pair[0]], points[pair[1]], weight, feature)
        return np.concatenate([by_camera, by_point, by_weight[:, None]], axis=1)

    blocks = wg.vmap(rows)(pairs, weights, features)
    values = np.concatenate([blocks.reshape(-1), wg.vmap(wg.grad(excess))(weights)])
    return *columns(len(cameras), len(points), pairs), values


def arrays(given: dict[str, Any]) -> tuple[Any, ...]:
    """Cameras, points, weights, features, and who saw what: the one of a message, repeated."""
    n, m, p = given["n"], given["m"], given["p"]
    i = np.arange(p)
    pairs = np.stack([i % n, i % m], axis=1)
    tiled = [np.tile(np.array(given[k], float), (times, 1))
             for k, times in (("cam", n), ("x", m), ("feat", p))]  # fmt: skip
    return tiled[0], tiled[1], np.full(p, float(given["w"])), tiled[2], pairs


def answer_objective(result: Any) -> dict[str, Any]:
    """The first residual and how often there is one: all are equal."""
    residuals, excess = result
    return {
        "reproj_error": {"elements": residuals.reshape(-1)[:2].tolist(), "repeated": len(excess)},
        "w_err": {"element": float(excess[0]), "repeated": len(excess)},
    }


def answer_jacobian(result: Any) -> dict[str, Any]:
    """The first 30 and the last of rows, columns and values."""
    names = ("rows", "cols", "vals")
    return {k: [*a[:30].tolist(), a[-1].item()] for k, a in zip(names, result, strict=True)}


def task(function: Any, answer: Any) -> Any:
    """Make a task of an input."""
    compiled = wg.jit(function)
    return lambda given: Task(compiled, arrays(given), answer)


FUNCTIONS = {
    "objective": task(objective, answer_objective),
    "jacobian": task(jacobian, answer_jacobian),
}
