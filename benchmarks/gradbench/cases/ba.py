"""ba: the sizes of ADBench's twenty data sets, with numbers of ours.

A data set is one camera, point, weight and feature, and how often each is repeated.  GradBench
sends the first fourteen; ours are the first eleven, and smaller ones before them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from gradbench import byhand, in_jax, peers
from gradbench.evals import ba
from gradbench.task import Task

TITLE = "ba: bundle adjustment"
TEXT = (
    "Residuals of p observations of m points by n cameras, and their Jacobian in compressed rows "
    "(31 p values, with columns and row pointers). *C* writes formulas of the derivative; wengert "
    "and *JAX* are `vmap` of `jacrev` of one observation, *torch* is one pass back for each of the "
    "two coordinates, for all observations at once."
)
DERIVATIVES = ("jacobian",)
SIZES = (
    (3, 20, 100), (21, 200, 2_000),
    (49, 7_776, 31_843), (21, 11_315, 36_455), (161, 48_126, 182_072), (372, 47_423, 204_472),
    (257, 65_132, 225_911), (539, 65_220, 277_273), (93, 61_203, 287_451), (88, 64_298, 383_937),
    (810, 88_814, 393_775), (1_197, 126_327, 563_734), (1_723, 156_502, 678_718),
)  # fmt: skip
CAM = [-0.6, -0.9, 0.7, 30.0, 35.0, 48.0, 420.0, 6.0, -8.0, 0.09, 0.003]
POINT, WEIGHT, FEATURE = [7.0, 0.001, 3.0], 0.4, [270.0, 834.0]


def inputs(quick: bool) -> Iterator[tuple[str, Any]]:
    """Sizes, smallest first."""
    for n, m, p in SIZES[:2] if quick else SIZES:
        given = {"n": n, "m": m, "p": p, "cam": CAM, "x": POINT, "w": WEIGHT, "feat": FEATURE}
        yield f"n = {n}, m = {m}, p = {p}", given


def contestants(function: str, given: dict[str, Any]) -> dict[str, Callable[[], Task]]:
    """C, JAX and PyTorch."""
    n, m, p = given["n"], given["m"], given["p"]
    arrays = ba.arrays(given)
    if function == "objective":
        outputs: tuple[Any, ...] = ((p, 2), (p,))
        answer = ba.answer_objective
    else:
        whole = np.int32
        outputs = np.zeros(3 * p + 1, whole), np.zeros(31 * p, whole), (31 * p,)
        answer = ba.answer_jacobian
    c = byhand.both("ba", function, (n, m, p), arrays, outputs, answer)
    program = torch_objective if function == "objective" else torch_jacobian
    jax = in_jax.ba_objective if function == "objective" else in_jax.ba_jacobian
    return c | {
        "JAX": peers.jax(jax, *arrays, answer=answer),
        "torch": peers.torch(program, *arrays, answer=answer),
    }


# ---- PyTorch -------------------------------------------------------------------------------------


def torch_residuals(t: Any, cameras: Any, points: Any, weights: Any, features: Any) -> Any:
    """Residuals of observations, a camera and a point for each: (p, 2)."""
    v, rotation = points - cameras[:, 3:6], cameras[:, :3]
    angle = rotation.norm(dim=1, keepdim=True)
    k, c, s = rotation / angle, angle.cos(), angle.sin()
    y = v * c + t.linalg.cross(k, v) * s + k * ((k * v).sum(1, keepdim=True) * (1.0 - c))
    y = y[:, :2] / y[:, 2:]
    square = (y * y).sum(1, keepdim=True)
    y = y * (1.0 + cameras[:, 9:10] * square + cameras[:, 10:] * square * square)
    return weights[:, None] * (cameras[:, 6:7] * y + cameras[:, 7:9] - features)


def torch_objective(t: Any) -> Any:
    """Residuals and 1 - weight**2."""

    def run(cameras: Any, points: Any, weights: Any, features: Any, pairs: Any) -> Any:
        seen = cameras[pairs[:, 0]], points[pairs[:, 1]]
        return torch_residuals(t, *seen, weights, features), 1.0 - weights**2

    return run


def torch_jacobian(t: Any) -> Any:
    """Row pointers, columns, values."""

    def run(cameras: Any, points: Any, weights: Any, features: Any, pairs: Any) -> Any:
        n, m, p = len(cameras), len(points), len(pairs)
        by = cameras[pairs[:, 0]], points[pairs[:, 1]], weights.detach()
        for x in by:
            x.requires_grad_()
        out, blocks = torch_residuals(t, *by, features), []
        for k in range(2):
            of_camera, of_point, of_weight = t.autograd.grad(out[:, k].sum(), by, retain_graph=True)
            blocks.append(t.cat([of_camera, of_point, of_weight[:, None]], 1))
        own = weights.detach().requires_grad_()
        (of_excess,) = t.autograd.grad((1.0 - own**2).sum(), own)
        values = t.cat([t.stack(blocks, 1).reshape(-1), of_excess])
        last = 11 * n + 3 * m + t.arange(p)
        one = t.cat([11 * pairs[:, :1] + t.arange(11),
                     11 * n + 3 * pairs[:, 1:] + t.arange(3), last[:, None]], 1)  # fmt: skip
        columns = t.cat([t.stack([one, one], 1).reshape(-1), last]).int()
        pointers = t.cat([15 * t.arange(2 * p), 30 * p + t.arange(p + 1)]).int()
        return pointers, columns, values

    return run
