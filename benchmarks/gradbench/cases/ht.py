"""ht: hands of ours, with as many bones, vertices and triangles as ADBench's.

GradBench sends "complicated" inputs of the large hand (10,000 vertices) with 100 to 100,000
points; ours are those up to 25,600, and some of the small hand (544) and without places in
triangles ("simple"), which its options ask for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from gradbench import byhand, in_jax, peers
from gradbench.evals import ht
from gradbench.task import Task, listed

TITLE = "ht: hand tracking"
TEXT = (
    "Differences between n points and a posed hand of 22 bones, and their Jacobian by the pose (26 "
    "parameters) and by the places of the points in their triangles (a sparse block: two "
    "columns). *C* differentiates only the bones behind each joint; wengert, *JAX* and "
    "*torch* push all directions forwards at once (`jacfwd`, `torch.func`), two for the places."
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
    """C, JAX and PyTorch."""
    theta, us, points, corners, *model = ht.arrays(given)
    n, places, about = len(points), corners.ndim == 2, given["data"]["model"]
    sizes = n, len(model[2]), places, about["is_mirrored"]
    inputs = theta, np.array(about["parents"]), *model, corners, points, us
    outputs = [3 * n] if function == "objective" else [(28 if places else 26, 3 * n), 3 * n]
    c = byhand.both("ht", function, sizes, inputs, outputs, lambda out: listed(out[0].T))
    program = torch_objective if function == "objective" else torch_jacobian
    make = partial(program, parents=about["parents"], mirrored=about["is_mirrored"])
    program = in_jax.ht_objective if function == "objective" else in_jax.ht_jacobian
    jax = partial(program, parents=about["parents"], mirrored=about["is_mirrored"])
    arrays = theta, us, points, corners, *model
    return c | {"JAX": peers.jax(jax, *arrays), "torch": peers.torch(make, *arrays)}


# ---- PyTorch -------------------------------------------------------------------------------------


def torch_differences(t: Any, parents: Sequence[int], mirrored: bool) -> Any:
    """Points less where they should be, as a function of the pose and of their places."""

    def rotation(r: Any) -> Any:
        angle = r.norm()
        k, (x, y, z), zero = r / angle, r / angle, r[0] * 0.0
        cross = t.stack([zero, -z, y, z, zero, -x, -y, x, zero]).reshape(3, 3)
        whole = t.eye(3, dtype=r.dtype)
        return angle.cos() * whole + angle.sin() * cross + (1.0 - angle.cos()) * t.outer(k, k)

    def turned(fingers: Any) -> Any:
        still, ends = fingers[:, :1] * 0.0, fingers[0, :1] * 0.0
        bend = t.cat([still, fingers[:, :1], fingers[:, 2:]], 1).reshape(-1)
        spread = t.cat([still, fingers[:, 1:2], still, still], 1).reshape(-1)
        bend, spread = t.cat([ends, bend, ends]), t.cat([ends, spread, ends])
        c, s, cz, sz = bend.cos(), bend.sin(), spread.cos(), spread.sin()
        rows = [cz, -sz * c, sz * s, sz, cz * c, -cz * s, 0.0 * c, s, c]
        return t.stack(rows, 1).reshape(-1, 3, 3)

    def run(theta: Any, us: Any, points: Any, corners: Any, *model: Any) -> Any:
        relatives, inverses, base, weights = model
        turns = turned(theta[6:].reshape(5, 4))
        local = t.cat([relatives[:, :, :3] @ turns, relatives[:, :, 3:]], 2)
        absolute: list[Any] = []
        for bone, parent in enumerate(parents):
            absolute.append(local[bone] if parent < 0 else absolute[parent] @ local[bone])
        bones = (t.stack(absolute) @ inverses)[:, :3]
        at = ((weights @ bones.reshape(-1, 12)).reshape(-1, 3, 4) * base[:, None]).sum(2)
        if mirrored:
            at = at * t.tensor([-1.0, 1.0, 1.0], dtype=at.dtype)
        at = at @ rotation(theta[:3]).T + theta[3:6]
        if corners.ndim == 1:
            return points - at[corners]
        u, v = us[:, :1], us[:, 1:]
        a, b, c = at[corners[:, 0]], at[corners[:, 1]], at[corners[:, 2]]
        return points - (u * a + v * b + (1.0 - u - v) * c)

    return run


def torch_objective(t: Any, parents: Sequence[int], mirrored: bool) -> Any:
    """All differences, one after the other."""
    f = torch_differences(t, parents, mirrored)
    return lambda *arrays: f(*arrays).reshape(-1)


def torch_jacobian(t: Any, parents: Sequence[int], mirrored: bool) -> Any:
    """A row for each difference; all directions at once, forwards: two for the places."""
    f = torch_differences(t, parents, mirrored)

    def pushed(f: Any, x: Any, directions: Any) -> Any:
        return t.func.vmap(lambda d: t.func.jvp(f, (x,), (d,))[1])(directions)

    def run(theta: Any, us: Any, *others: Any) -> Any:
        rows = [pushed(lambda x: f(x, us, *others), theta, t.eye(26, dtype=theta.dtype))]
        if len(us):
            each = t.eye(2, dtype=us.dtype)[:, None].expand(2, *us.shape)
            rows.insert(0, pushed(lambda x: f(theta, x, *others), us, each))
        return t.cat(rows).reshape(-1, others[0].numel()).T

    return run
