"""AC optimal power flow in polar coordinates, as a nonlinear program for `wengert.optim.nlp`.

Unknowns are voltage angles and magnitudes, complex power of generators, and the power that enters
each branch at either end.

    flows         the power that voltages drive into the branches
    objective     the cost
    constraints   balances and limits
    program       all arguments of `nlp`
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .network import Network


def coefficients(net: Network) -> tuple[Any, Any]:
    """Of each end of the branches: own admittance, and that to the other end, conjugated."""
    own = (net.admittance + net.charging).conj()
    ratio = net.tap
    at_origin = own / abs(ratio) ** 2, -(net.admittance / ratio.conj()).conj()
    at_target = own, -(net.admittance / ratio).conj()
    return at_origin, at_target


def flow(xp: Any, ends: Any, vm: tuple[Any, Any], angle: Any) -> tuple[Any, Any]:
    """Real and imaginary part of the power that enters branches at one end."""
    own, mutual = ends
    near, far = vm
    product, c, s = near * far, xp.cos(angle), xp.sin(angle)
    real = own.real * near**2 + product * (mutual.real * c - mutual.imag * s)
    imaginary = own.imag * near**2 + product * (mutual.imag * c + mutual.real * s)
    return real, imaginary


def objective(x: dict[str, Any], net: Network) -> Any:
    """The cost of generation."""
    p = x["generated"]
    return np.sum(net.cost[:, 0] * p**2 + net.cost[:, 1] * p) + np.sum(net.cost[:, 2])


def constraints(x: dict[str, Any], net: Network) -> dict[str, Any]:
    """Balances of power at the buses, flows, and limits of branches."""
    buses = len(net.demand)
    vm, va = x["magnitude"], x["angle"]
    near, far = vm[net.origin], vm[net.target]
    angle = va[net.origin] - va[net.target]
    at_origin, at_target = coefficients(net)
    p_origin, q_origin = flow(np, at_origin, (near, far), angle)
    p_target, q_target = flow(np, at_target, (far, near), -angle)

    def at_buses(generated: Any, from_origin: Any, from_target: Any) -> Any:
        places = np.concatenate([net.generator_bus, net.origin, net.target])
        powers = np.concatenate([generated, -from_origin, -from_target])
        return np.bincount(places, weights=powers, minlength=buses)

    square = vm**2
    return {
        "active_balance": at_buses(x["generated"], x["p_origin"], x["p_target"])
        - net.shunt.real * square,
        "reactive_balance": at_buses(x["reactive"], x["q_origin"], x["q_target"])
        + net.shunt.imag * square,
        "p_origin": x["p_origin"] - p_origin,
        "q_origin": x["q_origin"] - q_origin,
        "p_target": x["p_target"] - p_target,
        "q_target": x["q_target"] - q_target,
        "difference": angle,
        "rating_origin": x["p_origin"] ** 2 + x["q_origin"] ** 2,
        "rating_target": x["p_target"] ** 2 + x["q_target"] ** 2,
    }


def program(net: Network) -> dict[str, Any]:
    """The arguments of `nlp` but for the functions."""
    buses, generators, branches = net.sizes
    free = np.full(buses, np.inf)
    fixed = free.copy()
    fixed[net.reference] = 0.0
    ends = ("p_origin", "q_origin", "p_target", "q_target")
    upper_x = {
        "angle": fixed,
        "magnitude": net.highest,
        "generated": net.most.real,
        "reactive": net.most.imag,
        **dict.fromkeys(ends, net.rating),
    }
    lower_x = {name: -limit for name, limit in upper_x.items()}
    lower_x |= {"magnitude": net.lowest, "generated": net.least.real, "reactive": net.least.imag}
    zero = np.zeros(branches)
    both = {
        "active_balance": net.demand.real,
        "reactive_balance": net.demand.imag,
        **dict.fromkeys(ends, zero),
    }
    start = {
        "angle": np.zeros(buses),
        "magnitude": np.ones(buses),
        "generated": np.zeros(generators),
        "reactive": np.zeros(generators),
        **dict.fromkeys(ends, zero),
    }
    no_limit = np.full(branches, -np.inf)
    ratings = dict.fromkeys(("rating_origin", "rating_target"), net.rating**2)
    return {
        "x0": start,
        "bounds": (lower_x, upper_x),
        "lower": {**both, "difference": net.least_angle, **dict.fromkeys(ratings, no_limit)},
        "upper": {**both, "difference": net.most_angle, **ratings},
    }
