"""Turbulent kinetic energy: one time step, with a tridiagonal system in every column of water.

Gaspar, Gregoris and Lefevre, *A simple eddy kinetic energy model for simulations of the oceanic
vertical mixing*, J. Geophys. Res. 95 (1990).  Vertical mixing and dissipation are implicit, so each
column is a tridiagonal system; diffusion to the sides is explicit; energy is carried by the flow
with Roe's superbee limiter (Sweby, SIAM J. Numer. Anal. 21, 1984); tendencies are extrapolated by
Adams and Bashforth.  Arrays and layout are those of the kernel in pyhpc-benchmarks, which takes it
from Veros; the program is ours.

    thomas        elimination and substitution, by two scans along the vertical
    mixed         energy after vertical mixing and dissipation
    spread_out    its tendency by horizontal diffusion
    carried       its tendency by advection
    turbulence    all of the step: new energy, tendency, what was added at the surface
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from native.case import Case

from . import grid, peers
from .grid import Ocean

TITLE = "Turbulent kinetic energy"
TEXT = (
    "A time step: an implicit one in the vertical, a tridiagonal system for each column (by two "
    "scans; NumPy: LAPACK's `dgtsv`; *JAX, solver*: `jax.lax.linalg.tridiagonal_solve`), explicit "
    "diffusion, advection with the superbee limiter in three directions. Adjoint: value and "
    "gradient of a weighted sum of all outputs by energy, flow, mixing coefficients, forcing and "
    "the tendency before."
)
TEXT += " PyTorch, which runs eagerly, is left out of the largest size."
TARGET = "faster than JAX"

Array = Any
INNER = slice(2, -2)
STEP, DISSIPATION, DIFFUSION = 1.0, 0.7, 2000.0
AHEAD = 0.1  # of Adams and Bashforth, for stability
TINY = 1e-20


def thomas(library: peers.Library, a: Array, b: Array, c: Array, d: Array) -> Array:
    """Solutions of the columns' systems."""
    xp, scan = library.xp, library.scan
    assert scan is not None
    rows = tuple(xp.moveaxis(x, 2, 0) for x in (a, b, c, d))

    def eliminate(carry: Any, row: Any) -> Any:
        ratio, part = carry
        a, b, c, d = row
        scale = 1.0 / (b - a * ratio)
        now = c * scale, (d - a * part) * scale
        return now, now

    def substitute(below: Any, row: Any) -> Any:
        ratio, part = row
        now = part - ratio * below
        return now, now

    zero = xp.zeros_like(rows[0][0])
    _, reduced = scan(eliminate, (zero, zero), rows)
    _, solved = scan(substitute, zero, reduced, reverse=True)
    return xp.moveaxis(solved, 0, 2)


def mixed(library: peers.Library, ocean: Ocean, tke: Array, kappa: Array, size: Array,
          forcing: Array, surface: Array) -> Array:  # fmt: skip
    """Energy of the inner columns after vertical mixing and dissipation."""
    xp = library.xp
    bottom = ocean.bottom[INNER, INNER, None]
    water = (bottom >= 0) & (ocean.layers >= bottom)
    inside = (bottom >= 0) & (ocean.layers > bottom)
    kappa = kappa[INNER, INNER]
    delta = (0.5 * STEP) / ocean.dz[1:] * (kappa[..., :-1] + kappa[..., 1:])
    above = xp.pad(delta, ((0, 0), (0, 0), (0, 1)))
    below = xp.where(inside, xp.pad(delta, ((0, 0), (0, 0), (1, 0))), 0.0)
    height = heights(xp, ocean)
    energy = tke[INNER, INNER]
    lost = STEP * DISSIPATION * xp.sqrt(xp.maximum(0.0, energy)) / size[INNER, INNER]
    right = energy + STEP * forcing[INNER, INNER]
    above_surface = STEP / height[-1] * surface[INNER, INNER, None]
    right = right + xp.where(ocean.layers == ocean.layers[-1], above_surface, 0.0)
    a = -below / height
    b = xp.where(water, 1.0 + (above + below) / height + lost, 1.0)
    c = xp.where(water, -above / height, 0.0)
    d = xp.where(water, right, 0.0)
    solve = library.tridiagonal or (lambda *system: thomas(library, *system))
    return xp.where(water, solve(a, b, c, d), energy)


def heights(xp: Any, ocean: Ocean) -> Array:
    """Of the layers around upper faces: the uppermost is a half."""
    return xp.concatenate([ocean.dz_face[:-1], 0.5 * ocean.dz_face[-1:]])


def divergence(ocean: Ocean, east: Array, north: Array) -> Array:
    """Of fluxes across the faces around the inner columns."""
    cos = ocean.cos[:, INNER]
    along = (east[1:] - east[:-1]) / (cos * ocean.dx[INNER])
    return along + (north[:, 1:] - north[:, :-1]) / (cos * ocean.dy[:, INNER])


def spread_out(ocean: Ocean, tke: Array) -> Array:
    """The tendency by horizontal diffusion."""
    faces, beyond = slice(1, -2), slice(2, -1)
    east = tke[beyond, INNER] - tke[faces, INNER]
    east = DIFFUSION * east / (ocean.cos[:, INNER] * ocean.dx_face[faces])
    north = tke[INNER, beyond] - tke[INNER, faces]
    north = DIFFUSION * north / ocean.dy_face[:, faces] * ocean.cos_face[:, faces]
    across = east * ocean.east[faces, INNER], north * ocean.north[INNER, faces]
    return ocean.up[INNER, INNER] * divergence(ocean, *across)


def flux(xp: Any, at: Callable[[Array, int], Array], flow: Array, tke: Array, water: Array,
         width: Array) -> Array:  # fmt: skip
    """Energy carried across faces; ``at(field, n)`` is the field n cells further on."""
    near, next_ = at(tke, 0), at(tke, 1)
    open_ = [at(water, n) * at(water, n + 1) for n in (-1, 0, 1)]
    rise = (next_ - near) * open_[1]
    before, after = (near - at(tke, -1)) * open_[0], (at(tke, 2) - next_) * open_[2]
    upwind = xp.where(flow > 0.0, before, after)
    ratio = upwind / xp.where(xp.abs(rise) < TINY, TINY, rise)
    first, second = -xp.maximum(-1.0, -2.0 * ratio), -xp.maximum(-2.0, -ratio)
    limit = xp.maximum(0.0, xp.maximum(first, second))
    share = 1.0 - limit + xp.abs(flow * STEP / width) * limit
    return 0.5 * (flow * (next_ + near) - xp.abs(flow) * share * rise)


def carried(xp: Any, ocean: Ocean, tke: Array, u: Array, v: Array, w: Array) -> Array:
    """The tendency by advection."""
    faces = slice(1, -2)

    def east(field: Array, n: int) -> Array:
        return field[1 + n : field.shape[0] - 2 + n, INNER]

    def north(field: Array, n: int) -> Array:
        return field[INNER, 1 + n : field.shape[1] - 2 + n]

    def up(field: Array, n: int) -> Array:
        return field[..., 1 + n : field.shape[2] - 2 + n]

    water, cos = ocean.up, ocean.cos
    wide = cos[:, INNER] * ocean.dx[faces], (cos * ocean.dy)[:, faces]
    along = flux(xp, east, u[faces, INNER], tke, water, wide[0])
    v = ocean.cos_face[:, faces] * v[INNER, faces]
    side = flux(xp, north, v, tke, water, wide[1])
    around = ((0, 0), (0, 0), (1, 1))
    column, wet = (xp.pad(x[INNER, INNER], around) for x in (tke, water))
    rise = flux(xp, up, w[INNER, INNER, :-1], column, wet, ocean.dz_face[:-1])
    rise = xp.pad(rise, around)
    upward = (rise[..., 1:] - rise[..., :-1]) / heights(xp, ocean)
    return -water[INNER, INNER] * divergence(ocean, along, side) - upward


def turbulence(library: peers.Library) -> Any:
    """The kernel."""
    xp = library.xp

    def run(tke: Array, u: Array, v: Array, w: Array, kappa: Array, size: Array, forcing: Array,
            surface: Array, tendency: Array, ocean: Ocean) -> tuple[Array, ...]:  # fmt: skip
        new = mixed(library, ocean, tke, kappa, size, forcing, surface)
        top = (0.5 / STEP) * ocean.dz_face[-1] * xp.maximum(0.0, -new[..., -1])
        new = xp.concatenate([new[..., :-1], xp.maximum(0.0, new[..., -1:])], axis=2)
        now = carried(xp, ocean, tke, u, v, w)
        ahead = (1.5 + AHEAD) * now - (0.5 + AHEAD) * tendency[INNER, INNER]
        return new + STEP * (spread_out(ocean, tke) + ahead), now, top

    return run


def fields(cells: int) -> tuple[tuple[Array, ...], Ocean]:
    """Energy, flow, coefficients, forcing, the tendency before, and where they are."""
    ocean = grid.ocean(grid.shape(cells))
    ranges = (
        (1e-3, 1e-5, 1e-4), (0.3, 0.0, 0.2), (0.1, 0.0, 0.2), (0.0, 0.0, 1e-3),
        (1e-1, 1e-3, 1e-3), (10.0, 40.0, 1.0), (1e-4, 0.0, 1e-4),
    )  # fmt: skip
    found = [grid.profile(ocean, *numbers, seed=10 + k) for k, numbers in enumerate(ranges)]
    for k in (0, 4, 5):  # energy is positive; JAX's derivative of its root is NaN where it is not
        found[k] = np.abs(found[k]) + 1e-6
    surface = grid.generator(84).normal(2e-3, 1e-2, size=ocean.bottom.shape)
    tendency = grid.profile(ocean, 0.0, 0.0, 1e-6, 19)
    return (*found, surface, tendency), ocean


def cases(quick: bool) -> Iterator[Case]:
    """Value and adjoint, three sizes."""
    more = {"JAX, solver": lambda: peers.jax(solver=True)}
    for cells in grid.SIZES_QUICK if quick else grid.SIZES:
        arrays, ocean = fields(cells)
        count = f"{arrays[0].size:,} cells"
        by = grid.weights(turbulence(peers.numpy())(*arrays, ocean))
        found = peers.values(turbulence, arrays, ocean, more=more)
        yield Case(count, found, within=1e-8)
        found = peers.adjoints(turbulence, arrays, by, ocean, more=more)
        yield Case(f"adjoint, {count}", found, within=1e-7)
