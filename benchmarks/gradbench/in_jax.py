"""JAX's programs for the evals with large Jacobians: what evals/ba.py and evals/ht.py compute.

    ba_objective, ba_jacobian    ``vmap`` of ``jacrev`` of one observation
    ht_objective, ht_jacobian    ``jacfwd`` by the pose, two directions pushed for the places

Each takes the library and returns the function that is compiled.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

# ---- bundle adjustment ---------------------------------------------------------------------------


def residual(j: Any) -> Any:
    """Of one observation, in both coordinates."""
    xp = j.numpy

    def run(camera: Any, point: Any, weight: Any, feature: Any) -> Any:
        rotation, v = camera[:3], point - camera[3:6]
        angle = xp.sqrt((rotation * rotation).sum())
        k, c, s = rotation / angle, xp.cos(angle), xp.sin(angle)
        y = v * c + xp.cross(k, v) * s + k * ((k @ v) * (1.0 - c))
        y = y[:2] / y[2]
        square = y @ y
        scale = camera[6] * (1.0 + camera[9] * square + camera[10] * square * square)
        return weight * (scale * y + camera[7:9] - feature)

    return run


def excess(weight: Any) -> Any:
    """What a weight costs."""
    return 1.0 - weight**2


def ba_objective(j: Any) -> Any:
    """Residuals of all observations, and 1 - weight**2."""

    def run(cameras: Any, points: Any, weights: Any, features: Any, pairs: Any) -> Any:
        seen = cameras[pairs[:, 0]], points[pairs[:, 1]]
        return j.vmap(residual(j))(*seen, weights, features), excess(weights)

    return run


def ba_jacobian(j: Any) -> Any:
    """Row pointers, columns, values."""
    xp = j.numpy

    def whole(n: int) -> Any:
        return xp.arange(n, dtype="int32")

    def run(cameras: Any, points: Any, weights: Any, features: Any, pairs: Any) -> Any:
        n, m, p = len(cameras), len(points), len(pairs)
        slopes = j.vmap(j.jacrev(residual(j), (0, 1, 2)))
        seen = cameras[pairs[:, 0]], points[pairs[:, 1]]
        by_camera, by_point, by_weight = slopes(*seen, weights, features)
        blocks = xp.concatenate([by_camera, by_point, by_weight[:, :, None]], 2)
        values = xp.concatenate([blocks.reshape(-1), j.vmap(j.grad(excess))(weights)])
        pairs, last = pairs.astype("int32"), 11 * n + 3 * m + whole(p)
        places = 11 * pairs[:, :1] + whole(11), 11 * n + 3 * pairs[:, 1:] + whole(3)
        one = xp.concatenate([*places, last[:, None]], 1)
        columns = xp.concatenate([xp.stack([one, one], 1).reshape(-1), last])
        return xp.concatenate([15 * whole(2 * p), 30 * p + whole(p + 1)]), columns, values

    return run


# ---- hand tracking -------------------------------------------------------------------------------


def differences(j: Any, parents: Sequence[int], mirrored: bool) -> Any:
    """Points less where they should be, one after the other, by the pose and their places."""
    xp = j.numpy

    def rotation(r: Any) -> Any:
        angle = xp.sqrt((r * r).sum())
        axis, c, s = r / angle, xp.cos(angle), xp.sin(angle)
        return c * xp.eye(3) + s * xp.cross(xp.eye(3), axis) + (1.0 - c) * xp.outer(axis, axis)

    def turned(fingers: Any) -> Any:
        still = xp.zeros((5, 1))
        bend = xp.concatenate([still, fingers[:, :1], fingers[:, 2:]], 1)
        spread = xp.concatenate([still, fingers[:, 1:2], still, still], 1)
        bend, spread = (xp.pad(a.reshape(-1), 1) for a in (bend, spread))
        c, s, cz, sz = xp.cos(bend), xp.sin(bend), xp.cos(spread), xp.sin(spread)
        rows = [cz, -sz * c, sz * s, sz, cz * c, -cz * s, 0.0 * c, s, c]
        return xp.stack(rows, 1).reshape(-1, 3, 3)

    def run(theta: Any, us: Any, points: Any, corners: Any, *model: Any) -> Any:
        relatives, inverses, base, weights = model
        turns = turned(theta[6:].reshape(5, 4))
        local = xp.concatenate([relatives[:, :, :3] @ turns, relatives[:, :, 3:]], 2)
        absolute: list[Any] = []
        for bone, parent in enumerate(parents):
            absolute.append(local[bone] if parent < 0 else absolute[parent] @ local[bone])
        bones = (xp.stack(absolute) @ inverses)[:, :3]
        at = ((weights @ bones.reshape(-1, 12)).reshape(-1, 3, 4) * base[:, None]).sum(2)
        if mirrored:
            at = at * xp.array([-1.0, 1.0, 1.0])
        at = at @ rotation(theta[:3]).T + theta[3:6]
        if corners.ndim == 1:
            return (points - at[corners]).reshape(-1)
        u, v = us[:, :1], us[:, 1:]
        a, b, c = (at[corners[:, k]] for k in range(3))
        return (points - (u * a + v * b + (1.0 - u - v) * c)).reshape(-1)

    return run


def ht_objective(j: Any, parents: Sequence[int], mirrored: bool) -> Any:
    """All differences."""
    return differences(j, parents, mirrored)


def ht_jacobian(j: Any, parents: Sequence[int], mirrored: bool) -> Any:
    """A row for each difference: by the place (two columns for all of them), then by the pose."""
    f, xp = differences(j, parents, mirrored), j.numpy

    def run(theta: Any, us: Any, *others: Any) -> Any:
        by_pose = j.jacfwd(f)(theta, us, *others)
        if not len(us):
            return by_pose
        along = lambda d: j.jvp(lambda us: f(theta, us, *others), (us,), (d,))[1]  # noqa: E731
        each = xp.broadcast_to(xp.eye(2)[:, None], (2, *us.shape))
        return xp.concatenate([j.vmap(along)(each).T, by_pose], 1)

    return run
