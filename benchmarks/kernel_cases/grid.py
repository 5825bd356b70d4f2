"""The ocean that the kernels run on: sizes, masks, spacings and fields, plausible and repeatable.

    shape          of a box of about so many cells, wide and shallow, as pyhpc-benchmarks cuts it
    Ocean          masks and spacings of an Arakawa C grid, in metres, z upward
    ocean          one, with land (a fifth of the cells) and stretched layers
    profile        a field that changes with depth, and is disturbed
    weights        one for each number of the outputs
    weighted       the sum of all outputs times weights: what an adjoint differentiates

Spacings are positive and water is mostly stratified, so that results are of the size of an ocean's
and libraries that round differently still agree.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from native.case import generator

Array = Any
SIZES = (4096, 65536, 1048576)
SIZES_QUICK = (4096,)
EAGER = 100_000  # cells up to which PyTorch is measured, which takes seconds for more


def shape(cells: int) -> tuple[int, int, int]:
    """Eight times as wide as deep."""
    edge = round(cells ** (1 / 3), 9)
    return math.ceil(2 * edge), math.ceil(2 * edge), math.ceil(0.25 * edge)


class Ocean(NamedTuple):
    """Masks (1 is water) of tracer cells and of east, north and upper faces; spacings; cosines.

    dx, dy, dz : of tracer cells, of shape (nx, 1, 1), (1, ny, 1), (nz,).
    dx_face, dy_face, dz_face : between their centers.
    cos, cos_face : of the latitude of centers and of northern faces, of shape (1, ny, 1).
    depth : of centers.
    bottom : index of the deepest layer of water of each column, -1 where there is land.
    layers : 0, 1, 2, ...
    """

    water: Array
    east: Array
    north: Array
    up: Array
    dx: Array
    dx_face: Array
    dy: Array
    dy_face: Array
    dz: Array
    dz_face: Array
    cos: Array
    cos_face: Array
    depth: Array
    bottom: Array
    layers: Array


def ocean(size: tuple[int, int, int]) -> Ocean:
    """An ocean of this shape."""
    random = generator(80)
    nx, ny, nz = size
    masks = [(random.uniform(size=size) < 0.8).astype(np.float64) for _ in range(4)]
    dx, dx_face = (random.uniform(0.8e5, 1.2e5, size=(nx, 1, 1)) for _ in range(2))
    dy, dy_face = (random.uniform(0.8e5, 1.2e5, size=(1, ny, 1)) for _ in range(2))
    dz = np.linspace(200.0, 20.0, nz)
    dz_face = np.append(0.5 * (dz[1:] + dz[:-1]), dz[-1])
    latitude = np.linspace(-1.0, 1.0, ny).reshape(1, ny, 1)
    step = 2.0 / (ny - 1)
    depth = np.cumsum(dz[::-1])[::-1] - 0.5 * dz
    bottom = random.integers(-1, nz - 1, size=(nx, ny))
    cosines = np.cos(latitude), np.cos(latitude + 0.5 * step)
    rest = (depth, bottom, np.arange(nz))
    return Ocean(*masks, dx, dx_face, dy, dy_face, dz, dz_face, *cosines, *rest)


def profile(ocean: Ocean, top: float, deep: float, noise: float, seed: int) -> Array:
    """A field with one value at the top and another at the bottom, and noise."""
    random = generator(81, seed)
    share = ocean.depth / ocean.depth[0]
    return top + (deep - top) * share + noise * random.normal(size=ocean.water.shape)


def weights(outputs: Sequence[Array]) -> list[Array]:
    """One for each number of the outputs, the same in every run; their sums are comparable."""
    random, found = generator(82), []
    for out in outputs:
        typical = float(np.sqrt(np.mean(np.square(out)))) or 1.0
        found.append(random.uniform(0.5, 1.5, size=np.shape(out)) / typical)
    return found


def weighted(outputs: Sequence[Array], by: Sequence[Array]) -> Any:
    """The sum of the outputs times weights."""
    total = 0.0
    for out, weight in zip(outputs, by, strict=True):
        total = total + (weight * out).sum()
    return total
