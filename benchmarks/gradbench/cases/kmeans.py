"""kmeans: k centroids among n points of d dimensions, the cost and Newton's step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from math import prod
from typing import Any

import numpy as np

from gradbench import byhand, peers
from gradbench.task import Task, listed, number

TITLE = "kmeans: a clustering"
TEXT = (
    "The cost of k centroids for n points of d dimensions, and *dir*, its gradient over the "
    "diagonal of its Hessian. wengert takes a forward derivative of a reverse one; so do JAX and "
    "PyTorch, with the same program (which centroid is nearest, then the distances to it) and, "
    "*minimum*, with the minimum of all distances, as GradBench's programs for them. *C* sums the "
    "points of each centroid."
)
DERIVATIVES = ("dir",)
SEED = 31337
SIZES = sorted(product((10, 100, 1000), (1000, 10000), (8, 16)), key=prod)


def inputs(quick: bool) -> Iterator[tuple[str, dict[str, Any]]]:
    """Random points; the centroids are the last of them, so that each has one."""
    random = np.random.RandomState(SEED)
    for k, n, d in [(2, 9, 3), (4, 20, 2)] if quick else SIZES:
        points = random.rand(n, d).tolist()
        yield f"k={k},n={n},d={d}", {"points": points, "centroids": points[-k:]}


def contestants(function: str, given: dict[str, Any]) -> dict[str, Callable[[], Task]]:
    """C, and JAX and PyTorch in two ways."""
    points, centroids = np.array(given["points"]), np.array(given["centroids"])
    (n, d), k, plain = points.shape, len(centroids), function == "cost"

    def distances(centroids: Any, points: Any) -> Any:
        squares = (points**2).sum(1)[None, :] + (centroids**2).sum(1)[:, None]
        return squares - 2 * centroids @ points.T

    def nearest(argmin: Any) -> Any:
        def f(centroids: Any, points: Any) -> Any:
            place = argmin((centroids**2).sum(1) - 2.0 * points @ centroids.T, 1)
            return ((points - centroids[place]) ** 2).sum()

        return f

    def jax(j: Any, minimum: bool = False) -> Any:
        def least(centroids: Any, points: Any) -> Any:
            return j.numpy.min(distances(centroids, points), axis=0).sum()

        f = least if minimum else nearest(j.numpy.argmin)

        def direction(centroids: Any, points: Any) -> Any:
            ones = j.numpy.ones_like(centroids)
            slope, curvature = j.jvp(j.grad(lambda c: f(c, points)), (centroids,), (ones,))
            return slope / curvature

        return f if plain else direction

    def torch(t: Any, minimum: bool = False) -> Any:
        def least(centroids: Any, points: Any) -> Any:
            return t.min(distances(centroids, points), dim=0)[0].sum()

        f = least if minimum else nearest(t.argmin)

        def direction(centroids: Any, points: Any) -> Any:
            c = centroids.detach().requires_grad_()
            slope = t.autograd.grad(f(c, points), c, create_graph=True)[0]
            return slope.detach() / t.autograd.grad(slope, c, t.ones_like(c))[0]

        return f if plain else direction

    answer, shape = (number, ()) if plain else (listed, (k, d))
    return byhand.both(
        "kmeans", function, (n, k, d), [points, centroids], [shape], lambda out: answer(out[0])
    ) | {
        "JAX": peers.jax(jax, centroids, points, answer=answer),
        "JAX, minimum": peers.jax(lambda j: jax(j, minimum=True), centroids, points, answer=answer),
        "torch": peers.torch(torch, centroids, points, answer=answer),
        "torch, minimum": peers.torch(
            lambda t: torch(t, minimum=True), centroids, points, answer=answer
        ),
    }
