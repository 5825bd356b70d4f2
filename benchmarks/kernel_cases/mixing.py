"""Isoneutral mixing: the diffusion tensor of a tracer, along surfaces of neutral density.

Griffies et al., *Isoneutral diffusion in a z-coordinate ocean model*, J. Phys. Oceanogr. 28 (1998):
the slope of a neutral surface is computed for triads, one horizontal and one vertical difference
that share a cell, of which four meet at each face.  Where slopes are steep the diffusivity is
tapered (Danabasoglu and McWilliams, J. Climate 8, 1995).  The arrays and the layout are those of
the kernel in pyhpc-benchmarks, which takes it from Veros; the program is ours: both horizontal
directions are one function.

    Densities    changes of density by the differences of heat and salt at faces
    sides        a horizontal component of the tensor, and the triads of its faces
    tops         the vertical component, and the triads of upper faces
    mixing       all outputs, of salinity, temperature, diffusivity and the ocean
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from native.case import Case

from . import grid, peers
from .grid import Ocean

TITLE = "Isoneutral mixing"
TEXT = (
    "Slopes of neutral surfaces by Griffies' triads and the three components of the diffusion "
    "tensor: differences, products, tanh, minima and maxima on a staggered grid with masks, seven "
    "outputs. Adjoint: value and gradient of a weighted sum of all outputs by salinity, "
    "temperature and diffusivity. One program for all libraries."
)
TEXT += " PyTorch, which runs eagerly, is left out of the largest size."
TARGET = "faster than JAX"

Array = Any
INNER = slice(2, -2)
ALL = slice(None)
LAST, FIRST = slice(0, -1), slice(1, None)  # layers without the last, without the first
SLOPE, WIDTH, STEEP = 1e-3, 1e-3, 50.0  # where tapering begins, how wide it is; least diffusivity
TINY = 1e-20
DENSITY, GRAVITY, COLD = 1024.0, 9.81, 283.0 - 273.15
EXPANDS, WARMER, DEEPER, HALINE = 1.67e-4, 1e-5, 1.1e-8, 0.78e-3  # of a state linear in salinity


def sliced(axis: int, along: slice, z: slice = ALL) -> tuple[slice, ...]:
    """An index: a slice along one horizontal axis, the interior of the other."""
    return (along, INNER, z) if axis == 0 else (INNER, along, z)


def tapered(xp: Any, slope: Array) -> Array:
    """One for slopes that are gentle, zero for steep ones."""
    return 0.5 * (1.0 + xp.tanh((SLOPE - xp.abs(slope)) / WIDTH))


def placed(xp: Any, inner: Array, before: tuple[int, ...], after: tuple[int, ...]) -> Array:
    """With zeros around."""
    return xp.pad(inner, tuple(zip(before, after, strict=True)))


def differences(xp: Any, ocean: Ocean, field: Array) -> tuple[Array, Array, Array]:
    """Gradients at eastern and northern faces, one fewer than cells, and at all upper faces."""
    east = ocean.east[:-1] * (field[1:] - field[:-1]) / (ocean.dx_face[:-1] * ocean.cos)
    north = ocean.north[:, :-1] * (field[:, 1:] - field[:, :-1]) / ocean.dy_face[:, :-1]
    up = ocean.up[..., :-1] * (field[..., 1:] - field[..., :-1]) / ocean.dz_face[:-1]
    return east, north, placed(xp, up, (0, 0, 0), (0, 0, 1))


class Densities:
    """How density changes by what changes at a face, with the state of a cell beside it."""

    def __init__(self, xp: Any, ocean: Ocean, salt: Array, heat: Array) -> None:
        thermal = EXPANDS * (1.0 + DEEPER * GRAVITY * DENSITY * ocean.depth)
        self.by_heat = -DENSITY * ocean.water * (WARMER * (heat - COLD) + thermal)
        self.by_salt = (DENSITY * HALINE) * ocean.water
        self.heat, self.salt = differences(xp, ocean, heat), differences(xp, ocean, salt)
        self.xp = xp

    def change(self, cell: Any, axis: int, face: Any) -> Array:
        """Across faces of a direction, seen from cells."""
        return self.by_heat[cell] * self.heat[axis][face] + (
            self.by_salt[cell] * self.salt[axis][face]
        )

    def slope(self, cell: Any, axis: int, face: Any, top: Any) -> Array:
        """Of neutral surfaces: by the change across a face and that across an upper one."""
        upward = self.xp.minimum(0.0, self.change(cell, 2, top))
        return -self.change(cell, axis, face) / (upward - TINY)


def sides(xp: Any, ocean: Ocean, of: Densities, k: Array, axis: int) -> tuple[Array, Array]:
    """A horizontal component of the tensor at its faces, and the slopes of their triads."""
    near, beyond, faces = slice(1, -2), slice(2, -1), slice(1, -1)
    both = k[sliced(axis, near)] + k[sliced(axis, beyond)]
    inside = 0.25 * (both[..., 1:] + both[..., :-1])
    mean = xp.concatenate([0.5 * both[..., :1], inside], axis=2)
    mask = (ocean.east, ocean.north)[axis][sliced(axis, near)]
    total, slopes = 0.0, []
    for side in (near, beyond):
        for cells, tops in ((FIRST, LAST), (ALL, ALL)):  # the triad below, the one above
            at = [sliced(axis, side, cells), axis, sliced(axis, faces, cells)]
            slope = of.slope(*at, sliced(axis, side, tops))
            share, water = tapered(xp, slope), mask[..., cells]
            part = ocean.dz_face[tops] * water * xp.maximum(STEEP, mean[..., cells] * share)
            missing = (0, 0, int(cells == FIRST))
            total = total + placed(xp, part, missing, (0, 0, 0))
            slopes.append(placed(xp, share * slope * water, missing, (0, 0, 0)))
    return total / (4.0 * ocean.dz), xp.stack(slopes, axis=-1)


def tops(xp: Any, ocean: Ocean, of: Densities, k: Array) -> tuple[Array, Array, Array]:
    """The vertical component of the tensor, and the slopes of triads to the east and north."""
    water = ocean.up[INNER, INNER, LAST]
    widths = ocean.dx_face, ocean.cos_face * ocean.dy_face
    parts: list[Any] = [0.0, 0.0]
    slopes: tuple[list[Array], list[Array]] = ([], [])
    for axis in (0, 1):
        for side in (1, 2):
            along = (ALL,) * axis + (slice(side, side - 4),)
            for cells in (LAST, FIRST):
                face = sliced(axis, slice(side, side - 3), cells)
                slope = of.slope((INNER, INNER, cells), axis, face, (INNER, INNER, LAST))
                share = tapered(xp, slope)
                diffused = k[INNER, INNER, LAST] * share * (slope * slope) * water
                parts[axis] = parts[axis] + widths[axis][along] * diffused
                slopes[axis].append(share * slope * water)
    east = parts[0] / (4.0 * ocean.dx[INNER])
    north = parts[1] / (4.0 * ocean.dy[:, INNER] * ocean.cos[:, INNER])
    return east + north, xp.stack(slopes[0], axis=-1), xp.stack(slopes[1], axis=-1)


def mixing(library: peers.Library) -> Any:
    """The kernel."""
    xp = library.xp
    missing = ((1, 2, 0), (2, 2, 0)), ((2, 1, 0), (2, 2, 0)), ((2, 2, 0), (2, 2, 1))

    def run(salt: Array, heat: Array, k: Array, ocean: Ocean) -> tuple[Array, ...]:
        of = Densities(xp, ocean, salt, heat)
        k11, east = sides(xp, ocean, of, k, 0)
        k22, north = sides(xp, ocean, of, k, 1)
        k33, top_east, top_north = tops(xp, ocean, of, k)
        tensor = (k11, k22, k33)
        kept = [
            placed(xp, x, before, after) for x, (before, after) in zip(tensor, missing, strict=True)
        ]
        triads = ((east, 0), (north, 1), (top_east, 2), (top_north, 2))
        for slopes, where in triads:
            before, after = missing[where]
            kept.append(placed(xp, slopes, (*before, 0), (*after, 0)))
        return tuple(kept)

    return run


def fields(cells: int) -> tuple[tuple[Array, ...], Ocean]:
    """Salinity, temperature, diffusivity, and where they are."""
    ocean = grid.ocean(grid.shape(cells))
    salt = grid.profile(ocean, 34.0, 35.0, 0.02, 0)
    heat = grid.profile(ocean, 20.0, 2.0, 0.5, 1)
    return (salt, heat, grid.profile(ocean, 1000.0, 500.0, 50.0, 2)), ocean


def cases(quick: bool) -> Iterator[Case]:
    """Value and adjoint, three sizes."""
    for cells in grid.SIZES_QUICK if quick else grid.SIZES:
        arrays, ocean = fields(cells)
        count = f"{arrays[0].size:,} cells"
        by = grid.weights(mixing(peers.numpy())(*arrays, ocean))
        yield Case(count, peers.values(mixing, arrays, ocean), within=1e-8)
        yield Case(f"adjoint, {count}", peers.adjoints(mixing, arrays, by, ocean), within=1e-7)
