"""Problems with published times of derivatives: SciMLBenchmarks, AutomaticDifferentiation.

lotka_volterra    two species, 3 parameters
pkpd              a drug in 4 compartments and its effect, 14 parameters, a dose each day
pollution         25 reactions of 20 species, stiff (Verwer 1994)
brusselator       reaction and diffusion on a periodic grid of 5 x 5 points, 100 parameters
robertson         three species, very stiff (Robertson 1966)

PUBLISHED         times of Julia on the machine named in MACHINE
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .problem import Problem

MACHINE = (
    "AMD EPYC 7502, Julia 1.10.2, OrdinaryDiffEq 6.74.1, SciMLSensitivity 7.56.2 "
    "(SciMLBenchmarksOutput, SimpleODEAD, the fastest of all ways); Robertson: a machine that is "
    "not named (gist fd62e005 of C. Rackauckas: Rosenbrock23, and numbalsoda)"
)
PUBLISHED = {  # seconds: kind, problem
    ("jacobian", "Lotka-Volterra"): 48.76e-6,
    ("gradient", "Lotka-Volterra"): 127.6e-6,
    ("jacobian", "PKPD"): 2.167e-3,
    ("gradient", "PKPD"): 2.322e-3,
    ("jacobian", "pollution"): 8.201e-3,
    ("gradient", "pollution"): 6.088e-3,
    ("jacobian", "Brusselator"): 0.4599,
    ("gradient", "Brusselator"): 92.52e-3,
    ("value", "Robertson"): 9.2e-6,
}


def _lotka_volterra(t: Any, y: Any, p: Any) -> tuple[Any, ...]:
    prey, predators = y[0], y[1]
    met = prey * predators
    return p[0] * prey - p[1] * met, met - p[2] * predators


def lotka_volterra() -> Problem:
    """Prey and predators to time 10."""
    return Problem(
        "Lotka-Volterra", _lotka_volterra, np.ones(2), np.array([1.5, 1.0, 3.0]),
        10.0, np.linspace(0.0, 10.0, 21), steps=256,
    )  # fmt: skip


def _pkpd(t: Any, y: Any, p: Any) -> tuple[Any, ...]:
    absorbed, by_time = p[0] * y[0], p[1]
    central, near, far = y[1] / p[2], y[2] / p[4], y[3] / p[13]
    to_near, to_far = p[3] * (central - near), p[12] * (central - far)
    cleared = (by_time + p[10] / (p[11] + central)) * central
    effect = p[8] * central ** p[9] / (p[7] ** p[9] + central ** p[9])
    return (
        -absorbed,
        absorbed - cleared - to_near - to_far,
        to_near,
        to_far,
        p[5] * (1.0 - effect) - p[6] * y[4],
    )


def pkpd() -> Problem:
    """Ten days with a dose of 100 each; parameters in the order of their publication.

    Ka1, CL, Vc, Q, Vp, Kin, Kout, IC50, IMAX, gamma, Vmax, Km, Q2, Vp2.  The loss takes ten states
    of each day (the publication: 101 states of the first 50 hours, solved to 240 hours).
    """
    tiny = np.finfo(np.float64).eps  # the power has no derivative at zero
    parameters = [1.0, 1.0, 20.0, 2.0, 10.0, 10.0, 2.0, 2.0, 1.0, 1.0, 0.0, 2.0, 0.5, 100.0]
    return Problem(
        "PKPD", _pkpd, np.array([100.0, tiny, tiny, tiny, 5.0]), np.array(parameters),
        240.0, np.linspace(0.0, 24.0, 11), steps=256, period=24.0, dose=100.0,
    )  # fmt: skip


def _pollution(t: Any, y: Any, p: Any) -> tuple[Any, ...]:
    no2, no, ozone = y[0], y[1], y[3]
    r1, r2, r3 = p[0] * no2, p[1] * no * ozone, p[2] * y[4] * no
    r4, r5, r6 = p[3] * y[6], p[4] * y[6], p[5] * y[6] * y[5]
    r7, r8, r9 = p[6] * y[8], p[7] * y[8] * y[5], p[8] * y[10] * no
    r10, r11, r12 = p[9] * y[10] * no2, p[10] * y[12], p[11] * y[9] * no
    r13, r14, r15 = p[12] * y[13], p[13] * no2 * y[5], p[14] * y[2]
    r16, r17, r18 = p[15] * ozone, p[16] * ozone, p[17] * y[15]
    r19, r20, r21 = p[18] * y[15], p[19] * y[16] * y[5], p[20] * y[18]
    r22, r23, r24 = p[21] * y[18], p[22] * no2 * ozone, p[23] * y[18] * no2
    r25 = p[24] * y[19]
    lost = r1 + r10 + r14 + r23 + r24
    return (
        r2 + r3 + r9 + r11 + r12 + r22 + r25 - lost,
        r1 + r21 - r2 - r3 - r9 - r12,
        r1 + r17 + r19 + r22 - r15,
        r15 - r2 - r16 - r17 - r23,
        2.0 * r4 + r6 + r7 + r13 + r20 - r3,
        r3 + 2.0 * r18 - r6 - r8 - r14 - r20,
        r13 - r4 - r5 - r6,
        r4 + r5 + r6 + r7,
        -r7 - r8,
        r7 + r9 - r12,
        r8 + r11 - r9 - r10,
        r9,
        r10 - r11,
        r12 - r13,
        r14,
        r16 - r18 - r19,
        -r20,
        r20,
        r23 + r25 - r21 - r22 - r24,
        r24 - r25,
    )


RATES = np.array([
    0.35, 26.6, 12.3e3, 0.86e-3, 0.82e-3, 15e3, 0.13e-3, 24e3, 16.5e3, 9e3, 0.022, 12e3, 1.88,
    16.3e3, 4.8e6, 0.35e-3, 0.0175, 1e8, 0.444e12, 1240.0, 2.1, 5.78, 0.0474, 1780.0, 3.12,
])  # fmt: skip


def pollution() -> Problem:
    """One hour of the reactions, in minutes."""
    start = np.zeros(20)
    start[[1, 3, 6, 7, 8, 16]] = 0.2, 0.04, 0.1, 0.3, 0.01, 0.007
    return Problem(
        "pollution", _pollution, start, RATES, 60.0, np.linspace(0.0, 60.0, 121),
        stiff=True, steps=256,
    )  # fmt: skip


def _brusselator(points: int) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Of arrays, and with loops; states and parameters are fields on the grid, one after another.

    Parameters: A, B, and the two diffusivities.
    """
    nodes, cells = np.linspace(0.0, 1.0, points), points * points
    x, y = nodes[:, None], nodes[None, :]
    heated = 5.0 * ((x - 0.3) ** 2 + (y - 0.6) ** 2 <= 0.1**2)
    squared = 1.0 / (points - 1) ** 2

    def of_arrays(xp: Any) -> Callable[..., Any]:
        fixed = xp.asarray(heated)

        def laplacian(u: Any) -> Any:
            around = xp.roll(u, 1, 1) + xp.roll(u, -1, 1) + xp.roll(u, 1, 2) + xp.roll(u, -1, 2)
            return (around - 4.0 * u) / squared

        def f(t: Any, state: Any, p: Any) -> Any:
            fields = xp.reshape(state, (2, points, points))
            given = xp.reshape(p, (4, points, points))
            u, v = fields[0], fields[1]
            grown = u * u * v
            spread = given[2:] * laplacian(fields)
            source = given[1] + fixed * (t >= 1.1)
            du = spread[0] + source + grown - (given[0] + 1.0) * u
            dv = spread[1] + given[0] * u - grown
            return xp.stack((du, dv)).ravel()

        return f

    flat = tuple(float(h) for h in heated.ravel())

    def by_loops(t: Any, state: Any, p: Any, out: Any) -> None:
        for i in range(points):
            for j in range(points):
                at = i * points + j
                left, right = (i - 1) % points * points + j, (i + 1) % points * points + j
                below, above = i * points + (j - 1) % points, i * points + (j + 1) % points
                u, v = state[at], state[cells + at]
                spread_u = state[left] + state[right] + state[below] + state[above] - 4.0 * u
                spread_v = state[cells + left] + state[cells + right] + state[cells + below]
                spread_v = spread_v + state[cells + above] - 4.0 * v
                grown = u * u * v
                out[at] = p[2 * cells + at] * spread_u / squared + p[cells + at] + grown
                out[at] = out[at] - (p[at] + 1.0) * u + flat[at] * (t >= 1.1)
                out[cells + at] = p[3 * cells + at] * spread_v / squared + p[at] * u - grown

    return of_arrays, by_loops


def brusselator(points: int = 5) -> Problem:
    """To time 10; a disk is heated from 1.1 on."""
    of_arrays, by_loops = _brusselator(points)
    nodes = np.linspace(0.0, 1.0, points)
    hump = (nodes * (1.0 - nodes)) ** 1.5
    start = np.empty((2, points, points))
    start[0], start[1] = 22.0 * hump[None, :], 27.0 * hump[:, None]
    parameters = np.concatenate(
        [np.full(points**2, 3.4), np.ones(points**2), np.full(2 * points**2, 10.0)]
    )
    return Problem(
        "Brusselator", None, start.ravel(), parameters, 10.0, np.linspace(0.0, 10.0, 101),
        stiff=True, steps=512, of_arrays=of_arrays, by_loops=by_loops,
    )  # fmt: skip


def _robertson(t: Any, y: Any, p: Any) -> tuple[Any, ...]:
    first, second, third = p[0] * y[0], p[1] * y[1] * y[1], p[2] * y[1] * y[2]
    return third - first, first - second - third, second


def robertson() -> Problem:
    """To time 1e5, with the tolerances of the published times."""
    return Problem(
        "Robertson", _robertson, np.array([1.0, 0.0, 0.0]), np.array([0.04, 3e7, 1e4]),
        1e5, np.concatenate([[0.0], 10.0 ** np.arange(-2.0, 5.5, 0.5)]),
        rtol=1e-3, atol=1e-6, stiff=True, steps=512,
    )  # fmt: skip
