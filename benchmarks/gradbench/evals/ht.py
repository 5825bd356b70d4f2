"""ht: hand tracking, the differences between points and a hand in a pose, and their Jacobian.

A pose has 26 parameters: a rotation, a translation, and four angles of each finger.  A point
belongs to a vertex ("simple"), or to a place in a triangle with two coordinates of its own
("complicated").  The Jacobian by the pose is `wg.jacfwd`; that by the places is sparse, as a point
depends on its own place alone, and GradBench asks for its two columns: two directions, for all
points at once.
"""

from __future__ import annotations

from functools import cache
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


def skinned(bones: Any, base: Any, weights: Any) -> Any:
    """Where vertices are: the mean, by their weights, of where the bones take them."""
    mean = (weights @ bones.reshape(-1, 12)).reshape(-1, 3, 4)
    return np.sum(mean * base[:, None], axis=2)


def placed(at: Any, us: Any, corners: Any) -> Any:
    """Where the points should be: at a vertex, or within a triangle."""
    if corners.ndim == 1:
        return at[corners]
    first, second = us[:, :1], us[:, 1:]
    a, b, c = (at[corners[:, k]] for k in range(3))
    return first * a + second * b + (1.0 - first - second) * c


def objective(parents: Any, mirror: Any, theta: Any, us: Any, points: Any, corners: Any,
              relatives: Any, inverses: Any, base: Any, weights: Any) -> Any:  # fmt: skip
    """All differences, one after the other."""
    bones = mirror * posed(theta[6:].reshape(5, 4), parents, relatives, inverses)
    at = skinned(bones, base, weights) @ rotation(theta[:3]).T + theta[3:6]
    return (points - placed(at, us, corners)).reshape(-1)


def jacobian(parents: Any, mirror: Any, theta: Any, us: Any, points: Any, corners: Any,
             *model: Any) -> Any:  # fmt: skip
    """A row for each difference: by the place (two columns for all of them), then by the pose."""

    def differences(theta: Any, us: Any) -> Any:
        return objective(parents, mirror, theta, us, points, corners, *model)

    by_pose = wg.jacfwd(differences)(theta, us)
    if corners.ndim == 1:
        return by_pose
    along = lambda d: wg.jvp(lambda us: differences(theta, us), (us,), (d,))[1]  # noqa: E731
    each = np.broadcast_to(np.eye(2)[:, None], (2, *us.shape))
    return np.concatenate([wg.vmap(along)(each).T, by_pose], axis=1)


def arrays(given: dict[str, Any]) -> tuple[Any, ...]:
    """Pose, places (none if they are vertices), points, what they belong to, and the model."""
    data, places = given["data"], given["us"]
    model, corners = data["model"], np.array(given["data"]["correspondences"])
    if places:
        corners = np.array(model["triangles"])[corners]
    us = np.array(places, float).reshape(-1, 2)
    own = (np.array(model[name], float) for name in ARRAYS)
    return np.array(given["theta"], float), us, np.array(data["points"], float), corners, *own


@cache
def compiled(function: Any, parents: tuple[int, ...], mirrored: bool) -> Any:
    """A program for a tree of bones."""
    mirror = np.array([[-1.0 if mirrored else 1.0], [1.0], [1.0]])
    return wg.jit(lambda *arrays: function(parents, mirror, *arrays))


def task(function: Any) -> Any:
    """Make a task of an input."""

    def made(given: dict[str, Any]) -> Task:
        model = given["data"]["model"]
        program = compiled(function, tuple(model["parents"]), bool(model["is_mirrored"]))
        return Task(program, arrays(given), listed)

    return made


FUNCTIONS = {"objective": task(objective), "jacobian": task(jacobian)}
