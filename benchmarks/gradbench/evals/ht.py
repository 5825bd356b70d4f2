"""ht: hand tracking, the differences between points and a hand in a pose, and their Jacobian.

A pose has 26 parameters: a rotation, a translation, and four angles of each finger.  A point
belongs to a vertex ("simple"), or to a place in a triangle with two coordinates of its own
("complicated").  The Jacobian by the pose is dense, and pushed forward along unit vectors; that by
the places is sparse, as a point depends on its own place only: two directions give all of it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import wengert as wg
from gradbench.task import Task, listed

SMALL = 1e-4  # a rotation by less is none
ARRAYS = ("base_relatives", "inverse_base_absolutes", "base_positions", "weights")


def rotation(r: Any) -> Any:
    """The matrix of a rotation about ``r`` by its length."""
    angle = np.sqrt(np.sum(r * r))
    axis, c, s = r / angle, np.cos(angle), np.sin(angle)
    matrix = c * np.eye(3) + s * np.cross(np.eye(3), axis) + (1.0 - c) * np.outer(axis, axis)
    return np.where(angle < SMALL, np.eye(3), matrix)


def turned(fingers: Any) -> Any:
    """For each bone the matrix by which a pose turns it: those of the wrist's side are not."""
    still = np.zeros((5, 1))
    bend = np.concatenate([still, fingers[:, :1], fingers[:, 2:]], axis=1)
    spread = np.concatenate([still, fingers[:, 1:2], still, still], axis=1)
    bend, spread = (np.pad(a.reshape(-1), 1) for a in (bend, spread))
    (c, s), (cz, sz) = ((np.cos(a), np.sin(a)) for a in (bend, spread))
    rows = [cz, -sz * c, sz * s, sz, cz * c, -cz * s, 0.0 * c, s, c]
    return np.stack(rows, axis=1).reshape(-1, 3, 3)


def posed(fingers: Any, parents: Any, relatives: Any, inverses: Any) -> Any:
    """For each bone, where it takes what is fixed to it: (bones, 3, 4)."""
    turn = np.concatenate([relatives[:, :, :3] @ turned(fingers), relatives[:, :, 3:]], axis=2)
    absolute: list[Any] = []
    for bone, parent in enumerate(parents):
        absolute.append(turn[bone] if parent < 0 else absolute[parent] @ turn[bone])
    return (np.stack(absolute) @ inverses)[:, :3]


def differences(pose: Any, us: Any, seen: Any, model: Any, parents: Any, mirrored: bool) -> Any:
    """Points less where they should be: (points, 3).

    ``seen``: the points, and for each the vertex or the corners of the triangle it belongs to;
    ``us``: its coordinates there, or None.
    """
    (turn, shift, fingers), (points, corners) = pose, seen
    relatives, inverses, base, weights = model
    bones = posed(fingers.reshape(5, 4), parents, relatives, inverses)
    weighted = (weights.T[:, None] * base.T).reshape(-1, len(base))
    at = bones.transpose(1, 0, 2).reshape(3, -1) @ weighted
    if mirrored:
        at = at * np.array([[-1.0], [1.0], [1.0]])
    at = (rotation(turn) @ at + shift[:, None]).T[corners]
    if us is not None:
        u, v = us[:, :1], us[:, 1:]
        at = u * at[:, 0] + v * at[:, 1] + (1.0 - u - v) * at[:, 2]
    return points - at


def parts(theta: Any) -> tuple[Any, Any, Any]:
    """Rotation, translation, fingers."""
    return theta[:3], theta[3:6], theta[6:]


def objective(theta: Any, us: Any, *others: Any) -> Any:
    """All differences, one after the other."""
    return differences(parts(theta), us, *others).reshape(-1)


def jacobian(theta: Any, us: Any, *others: Any) -> Any:
    """A row for each parameter: places first (two for all of them), then the pose."""

    def pushed(f: Any, x: Any, directions: Any) -> Any:
        return wg.vmap(lambda d: wg.jvp(f, (x,), (d,))[1])(directions)

    pose, rows = parts(theta), []
    if us is not None:
        each = np.broadcast_to(np.eye(2)[:, None], (2, *us.shape))
        rows.append(pushed(lambda us: differences(pose, us, *others), us, each))
    for k, part in enumerate(pose):
        moved = lambda x, k=k: differences((*pose[:k], x, *pose[k + 1 :]), us, *others)  # noqa: E731
        rows.append(pushed(moved, part, np.eye(len(part))))
    return np.concatenate(rows).reshape(-1, 3 * len(others[0][0]))


def arrays(given: dict[str, Any]) -> tuple[Any, ...]:
    """The arguments of both functions."""
    data, us = given["data"], given["us"]
    model = data["model"]
    corners = np.array(data["correspondences"])
    if us:
        corners = np.array(model["triangles"])[corners]
    return (
        np.array(given["theta"], float),
        np.array(us, float) if us else None,
        (np.array(data["points"], float), corners),
        tuple(np.array(model[name], float) for name in ARRAYS),
        tuple(model["parents"]),
        bool(model["is_mirrored"]),
    )


def answer_jacobian(result: Any) -> list[Any]:
    """A row for each difference."""
    return listed(result.T)


def task(function: Any, answer: Any) -> Any:
    """Make a task of an input; the tree of bones is a part of the program."""
    compiled = wg.jit(function, static_argnums=(4, 5))
    return lambda given: Task(compiled, arrays(given), answer)


FUNCTIONS = {
    "objective": task(objective, listed),
    "jacobian": task(jacobian, answer_jacobian),
}
