"""Lines of an AC power network: neighbors are data, read at index arrays.

Constraints are the active and reactive power at both ends of each line, four functions of the
angles and voltages of its two buses; 1.6 lines for each bus, the network is random.  The Jacobian
has 16 entries a line; the Hessian of the Lagrangian, with a multiplier for each constraint, has ten
products a line, several of which may belong to one entry.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from native import libraries
from native.case import Call, Case, generator

from . import peers

TITLE = "AC power lines: sparse Jacobian and Hessian"
TEXT = (
    "Active and reactive power at both ends of each line of a random network, float64. J: the "
    "Jacobian of all flows; H: the lower triangle of the Hessian of their sum with multipliers, "
    "which are an argument. *wengert* is the vector of entries, `.plan(x).values`; *wengert, "
    "matrix* what `sparse_jacobian` and `sparse_hessian` give. *CasADi* (SX) finds the pattern "
    "too. *numba* writes the derivatives of a line by hand, in one loop, and adds each to its "
    "entry."
)
PEERS = ("CasADi",)
TARGET = "H: 0.08 ms for 1354 buses, 0.7 ms for 9241"


class Network(NamedTuple):
    """Buses, and lines between them: from, to; conductance, susceptance, charging."""

    buses: int
    start: Any
    end: Any
    g: Any
    b: Any
    charging: Any


def network(buses: int) -> Network:
    """A tree of near buses, and further lines; directions are random."""
    r = generator(81, buses)
    lines = int(1.6 * buses)
    start = np.concatenate([np.arange(1, buses), r.integers(0, buses, lines - buses + 1)])
    near = np.maximum(start[: buses - 1] - 1 - r.integers(0, 50, buses - 1), 0)
    steps = r.integers(1, min(100, buses), lines - buses + 1)
    far = (start[buses - 1 :] + steps) % buses
    end = np.concatenate([near, far])
    turned = r.uniform(size=lines) < 0.5
    start, end = np.where(turned, end, start), np.where(turned, start, end)
    return Network(
        buses,
        start,
        end,
        r.uniform(1, 5, lines),
        -r.uniform(5, 20, lines),
        r.uniform(0, 0.1, lines),
    )


def flows(net: Network, xp: Any) -> Callable[[Any], Any]:
    """All flows, as a function of angles and voltages; `xp` has cos, sin and concatenate."""
    n, f, t, g, b, c = net

    def function(x: Any) -> Any:
        angles, voltages = x[:n], x[n:]
        vf, vt, d = voltages[f], voltages[t], angles[f] - angles[t]
        cos, sin, v = xp.cos(d), xp.sin(d), vf * vt
        return xp.concatenate(
            [
                g * vf**2 - v * (g * cos + b * sin),
                -(b + c) * vf**2 - v * (g * sin - b * cos),
                g * vt**2 - v * (g * cos - b * sin),
                -(b + c) * vt**2 + v * (g * sin + b * cos),
            ]
        )

    return function


class CasadiNames:
    """CasADi's functions under NumPy's names."""

    def __init__(self) -> None:
        import casadi

        self.cos, self.sin = casadi.cos, casadi.sin
        self.concatenate = lambda parts: casadi.vertcat(*parts)


def cases(quick: bool) -> Iterator[Case]:
    """Of several sizes."""
    for buses in (30,) if quick else (300, 1354, 9241):
        net, r = network(buses), generator(82, buses)
        x = np.concatenate([r.uniform(-0.3, 0.3, buses), r.uniform(0.9, 1.1, buses)])
        multipliers = r.normal(size=4 * net.start.size)
        yield Case(f"J, {buses} buses", jacobians(net, x), within=1e-10)
        yield Case(f"H, {buses} buses", hessians(net, x, multipliers), within=1e-10)


def jacobians(net: Network, x: Any) -> dict[str, Callable[[], Call]]:
    """All of the Jacobian."""
    f = flows(net, np)

    def derivative() -> Any:
        import wengert as wg

        return wg.sparse_jacobian(f)

    def numba() -> Call:
        slots, out = jacobian_slots(net)
        given = net.start, net.end, net.g, net.b, net.charging, slots, out
        return libraries.numba_call(jacobian_by_hand, x, *given)

    def casadi() -> Call:
        return casadi_call(net, False, x)

    return {
        "wengert": lambda: peers.entries(derivative(), x),
        "wengert, matrix": lambda: peers.matrix(derivative(), x),
        "CasADi": casadi,
        "numba": numba,
    }


def hessians(net: Network, x: Any, multipliers: Any) -> dict[str, Callable[[], Call]]:
    """All of the Hessian."""
    f = flows(net, np)

    def derivative() -> Any:
        import wengert as wg

        return wg.sparse_hessian(lambda x, m: np.sum(m * f(x)), triangle="lower")

    def wengert() -> Call:
        return Call(derivative().plan(x, multipliers).values, (x, multipliers))

    def wrapped() -> Call:
        hess = derivative()
        hess(x, multipliers)
        return Call(hess, (x, multipliers), numbers=lambda found: found.data)

    def numba() -> Call:
        slots, out = hessian_slots(net)
        given = net.start, net.end, net.g, net.b, net.charging, slots, out
        return libraries.numba_call(hessian_by_hand, x, multipliers, *given)

    def casadi() -> Call:
        return casadi_call(net, True, x, multipliers)

    return {"wengert": wengert, "wengert, matrix": wrapped, "CasADi": casadi, "numba": numba}


# ---- CasADi --------------------------------------------------------------------------------------


def casadi_call(net: Network, of_sum: bool, *given: Any) -> Call:
    """The Jacobian, or the Hessian of the sum with multipliers, in CasADi's symbols."""

    def make() -> Any:
        import casadi

        symbols = [casadi.SX.sym(f"x{k}", a.size) for k, a in enumerate(given)]
        lists = net._replace(start=net.start.tolist(), end=net.end.tolist())
        out = flows(lists, CasadiNames())(symbols[0])
        if of_sum:
            matrix = casadi.tril(casadi.hessian(casadi.dot(symbols[1], out), symbols[0])[0])
        else:
            matrix = casadi.jacobian(out, symbols[0])
        return casadi.Function("f", symbols, [matrix])

    call = libraries.casadi(make, *given)["CasADi"]()
    return replace(call, numbers=peers.in_rows)


# ---- by hand -------------------------------------------------------------------------------------


def _slots(rows: Any, cols: Any, width: int) -> Any:
    """The position of each product among the entries, row by row, and a vector for these."""
    keys = rows * width + cols
    wanted = np.unique(keys)
    return np.searchsorted(wanted, keys), np.zeros(wanted.size)


def jacobian_slots(net: Network) -> Any:
    """For each line, the positions of the entries of four rows, by angles and voltages."""
    f, t, n, lines = net.start, net.end, net.buses, net.start.size
    columns = np.stack([f, t, f + n, t + n], axis=1)
    rows = np.arange(lines)[:, None, None] + lines * np.arange(4)[:, None]
    return _slots(np.broadcast_to(rows, (lines, 4, 4)), columns[:, None, :], 2 * n)


def hessian_slots(net: Network) -> Any:
    """For each line, the positions of the products in the order of `hessian_by_hand`."""
    f, t, n = net.start, net.end, net.buses
    at = np.stack([f, t, f + n, t + n], axis=1)
    first = at[:, [0, 1, 0, 2, 2, 3, 3, 2, 3, 2]]
    second = at[:, [0, 1, 1, 0, 1, 0, 1, 2, 3, 3]]
    return _slots(np.maximum(first, second), np.minimum(first, second), 2 * n)


def jacobian_by_hand(
    x: Any, start: Any, end: Any, g: Any, b: Any, charging: Any, slots: Any, out: Any
) -> Any:
    """Sixteen entries of each line; buses at its ends differ, so each entry is one number."""
    n = x.size // 2
    for k in range(start.size):
        f, t = start[k], end[k]
        vf, vt, d = x[n + f], x[n + t], x[f] - x[t]
        cos, sin, v = math.cos(d), math.sin(d), vf * vt
        gc, gs, bc, bs = g[k] * cos, g[k] * sin, b[k] * cos, b[k] * sin
        shunt = b[k] + charging[k]
        sums = (gc + bs, gs - bc, gc - bs, -gs - bc)
        slopes = (bc - gs, gc + bs, -gs - bc, bs - gc)
        squares = ((2.0 * g[k] * vf, 0.0), (-2.0 * shunt * vf, 0.0))
        others = ((0.0, 2.0 * g[k] * vt), (0.0, -2.0 * shunt * vt))
        own = (squares[0], squares[1], others[0], others[1])
        for i in range(4):
            out[slots[k, i, 0]] = -v * slopes[i]
            out[slots[k, i, 1]] = v * slopes[i]
            out[slots[k, i, 2]] = own[i][0] - vt * sums[i]
            out[slots[k, i, 3]] = own[i][1] - vf * sums[i]
    return out


def hessian_by_hand(
    x: Any, m: Any, start: Any, end: Any, g: Any, b: Any, charging: Any, slots: Any, out: Any
) -> Any:
    """The Lagrangian of a line is A vf^2 + B vt^2 - vf vt (P cos d + Q sin d)."""
    n, lines = x.size // 2, start.size
    out[:] = 0.0
    for k in range(lines):
        f, t = start[k], end[k]
        vf, vt, d = x[n + f], x[n + t], x[f] - x[t]
        m0, m1, m2, m3 = m[k], m[lines + k], m[2 * lines + k], m[3 * lines + k]
        p = g[k] * (m0 + m2) - b[k] * (m1 + m3)
        q = b[k] * (m0 - m2) + g[k] * (m1 - m3)
        cos, sin = math.cos(d), math.sin(d)
        e, slope = p * cos + q * sin, q * cos - p * sin
        shunt = b[k] + charging[k]
        w = vf * vt * e
        out[slots[k, 0]] += w
        out[slots[k, 1]] += w
        out[slots[k, 2]] -= w
        out[slots[k, 3]] -= vt * slope
        out[slots[k, 4]] += vt * slope
        out[slots[k, 5]] -= vf * slope
        out[slots[k, 6]] += vf * slope
        out[slots[k, 7]] += 2.0 * (m0 * g[k] - m1 * shunt)
        out[slots[k, 8]] += 2.0 * (m2 * g[k] - m3 * shunt)
        out[slots[k, 9]] -= e
    return out
