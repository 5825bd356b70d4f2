"""ht: hands of ours, with as many bones, vertices and triangles as ADBench's.

GradBench sends "complicated" inputs of the large hand (10,000 vertices) with 100 to 100,000
points; ours are those up to 25,600, and some of the small hand (544) and without places in
triangles ("simple"), which its options ask for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from gradbench import byhand
from gradbench.evals import ht
from gradbench.task import Task, listed

TITLE = "ht: hand tracking"
TEXT = (
    "Differences between n points and a posed hand of 22 bones, and their Jacobian by the pose (26 "
    "parameters) and by the places of the points in their triangles (a sparse block: two "
    "columns). *C* differentiates only the bones behind each joint."
)
DERIVATIVES = ("jacobian",)
PARENTS = [-1, *(parent for k in range(5) for parent in (0, 4 * k + 1, 4 * k + 2, 4 * k + 3)), 0]
SIZES = (
    (544, 100, False), (544, 100, True), (544, 1600, True),
    *((10_000, n, True) for n in (100, 192, 200, 400, 800, 1600, 3200, 6400, 12_800, 25_600)),
    (10_000, 25_600, False),
)  # fmt: skip
TRIANGLES = 1084


def hand(random: np.random.Generator, vertices: int) -> dict[str, Any]:
    """A model: rigid bones, vertices that belong to four of them each."""
    bones = len(PARENTS)
    relative = np.tile(np.eye(4), (bones, 1, 1))
    relative[:, :3, :3] = np.linalg.qr(random.normal(size=(bones, 3, 3)))[0]
    relative[:, :3, 3] = random.normal(scale=0.3, size=(bones, 3))
    absolute: list[Any] = []
    for k, parent in enumerate(PARENTS):
        absolute.append(relative[k] if parent < 0 else absolute[parent] @ relative[k])
    weights = np.zeros((vertices, bones))
    for v in range(vertices):
        weights[v, random.choice(bones, 4, replace=False)] = random.dirichlet(np.ones(4))
    positions = np.concatenate([random.normal(size=(vertices, 3)), np.ones((vertices, 1))], axis=1)
    triangles = random.integers(0, min(vertices, 544), size=(TRIANGLES, 3))
    return {
        "bone_count": bones,
        "bone_names": [f"bone {k}" for k in range(bones)],
        "parents": PARENTS,
        "base_relatives": relative.tolist(),
        "inverse_base_absolutes": np.linalg.inv(absolute).tolist(),
        "base_positions": positions.tolist(),
        "weights": weights.tolist(),
        "triangles": triangles.tolist(),
        "is_mirrored": False,
    }


def inputs(quick: bool) -> Iterator[tuple[str, Any]]:
    """Sizes, smallest first."""
    for vertices, n, places in SIZES[:2] if quick else SIZES:
        random = np.random.default_rng([2026, vertices, n, places])
        model = hand(random, vertices)
        corresponding = random.integers(0, TRIANGLES if places else vertices, size=n)
        name = f"{vertices} vertices, n = {n}, {'complicated' if places else 'simple'}"
        yield (
            name,
            {
                "theta": random.normal(size=26).tolist(),
                "data": {
                    "model": model,
                    "correspondences": corresponding.tolist(),
                    "points": random.normal(size=(n, 3)).tolist(),
                },
                "us": random.random(size=(n, 2)).tolist() if places else [],
            },
        )


def contestants(function: str, given: dict[str, Any]) -> dict[str, Callable[[], Task]]:
    """C."""
    theta, us, points, corners, *model = ht.arrays(given)
    n, places, about = len(points), corners.ndim == 2, given["data"]["model"]
    sizes = n, len(model[2]), places, about["is_mirrored"]
    inputs = theta, np.array(about["parents"]), *model, corners, points, us
    if function == "objective":
        return byhand.both("ht", "objective", sizes, inputs, [3 * n], lambda out: listed(out[0]))
    outputs = (28 if places else 26, 3 * n), 3 * n
    return byhand.both("ht", "jacobian", sizes, inputs, outputs, lambda out: listed(out[0].T))
