"""AC optimal power flow in CasADi's symbols, with the equations of model.py.

solve   the program by CasADi's Ipopt, with times
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from .model import coefficients, flow, program
from .network import Network

_FUNCTIONS = ("f", "grad_f", "g", "jac_g", "hess_l")


def solve(
    net: Network, options: dict[str, Any], repeats: int = 3, long_seconds: float = 3.0
) -> dict[str, Any]:
    """The cost, the number of iterations, and seconds as in opf.py."""
    import casadi as c

    begin = time.process_time()
    given = program(net)
    names = list(given["x0"])
    x = {name: c.SX.sym(name, len(given["x0"][name])) for name in names}
    g = _constraints(c, x, net)
    p = x["generated"]
    cost = c.dot(net.cost[:, 0], p * p) + c.dot(net.cost[:, 1], p) + np.sum(net.cost[:, 2])
    limits = {
        end: c.vertcat(*[c.DM(given[side][name]) for name in g])
        for end, side in (("lbg", "lower"), ("ubg", "upper"))
    }
    nlp = {"x": c.vertcat(*x.values()), "f": cost, "g": c.vertcat(*g.values())}
    quiet = {"print_time": 0, "ipopt": {"print_level": 0, "sb": "yes", **options}}
    solver = c.nlpsol("opf", "ipopt", nlp, quiet)
    build = time.process_time() - begin
    rows = []
    for _ in range(repeats):
        begin = time.process_time()
        found = solver(
            x0=np.concatenate([given["x0"][name] for name in names]),
            lbx=np.concatenate([given["bounds"][0][name] for name in names]),
            ubx=np.concatenate([given["bounds"][1][name] for name in names]),
            **limits,
        )
        total, stats = time.process_time() - begin, solver.stats()
        functions = sum([stats[f"t_proc_nlp_{name}"] for name in _FUNCTIONS])
        rows.append({"functions": functions, "solve": total})
        if total > long_seconds:
            break
    least = {name: min([row[name] for row in rows]) for name in ("functions", "solve")}
    return {
        "cost": float(found["f"]),
        "iterations": stats["iter_count"],
        "build": build,
        **least,
    }


def _constraints(c: Any, x: dict[str, Any], net: Network) -> dict[str, Any]:
    """The constraints of model.py."""
    vm, va = x["magnitude"], x["angle"]
    origin, target = net.origin.tolist(), net.target.tolist()
    near, far, angle = vm[origin], vm[target], va[origin] - va[target]
    at_origin, at_target = [
        [c.DM(np.stack([e.real, e.imag])) for e in ends] for ends in coefficients(net)
    ]
    p_origin, q_origin = flow(c, _Ends.of(at_origin), (near, far), angle)
    p_target, q_target = flow(c, _Ends.of(at_target), (far, near), -angle)
    buses = len(net.demand)
    places = np.concatenate([net.generator_bus, net.origin, net.target])
    at_buses = c.DM.triplet(
        places.tolist(), list(range(len(places))), c.DM.ones(len(places)), buses, len(places)
    )

    def balance(generated: Any, from_origin: Any, from_target: Any) -> Any:
        return at_buses @ c.vertcat(generated, -from_origin, -from_target)

    return {
        "active_balance": balance(x["generated"], x["p_origin"], x["p_target"])
        - net.shunt.real * vm**2,
        "reactive_balance": balance(x["reactive"], x["q_origin"], x["q_target"])
        + net.shunt.imag * vm**2,
        "p_origin": x["p_origin"] - p_origin,
        "q_origin": x["q_origin"] - q_origin,
        "p_target": x["p_target"] - p_target,
        "q_target": x["q_target"] - q_target,
        "difference": angle,
        "rating_origin": x["p_origin"] ** 2 + x["q_origin"] ** 2,
        "rating_target": x["p_target"] ** 2 + x["q_target"] ** 2,
    }


class _Ends:
    """A coefficient with real and imaginary part, as columns."""

    def __init__(self, parts: Any) -> None:
        self.real, self.imag = parts[0, :].T, parts[1, :].T

    @classmethod
    def of(cls, ends: Any) -> tuple[_Ends, _Ends]:
        """The coefficients of own and other voltage."""
        return cls(ends[0]), cls(ends[1])
