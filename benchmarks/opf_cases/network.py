"""Electric networks for optimal power flow, from MATPOWER files or generated.

Network   buses, generators and branches that are in service, in per unit
read      a network from a case file of MATPOWER (version 2)
ring      a generated network
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Network:
    """A network in per unit of a base power, angles in radians.

    demand, shunt : complex power demanded and admittance, of each bus.
    lowest, highest : limits of the voltage magnitude.
    reference : the bus whose angle is zero.
    generator_bus : of each generator.
    least, most : limits of complex power.
    cost : coefficients of the square, of the power, and constants.
    origin, target : buses of each branch.
    admittance : of its series element; charging : at its ends.
    tap : complex ratio of its transformer.
    rating : the limit of apparent power.
    least_angle, most_angle : limits of the difference of angles.
    """

    demand: Array
    shunt: Array
    lowest: Array
    highest: Array
    reference: Array
    generator_bus: Array
    least: Array
    most: Array
    cost: Array
    origin: Array
    target: Array
    admittance: Array
    charging: Array
    tap: Array
    rating: Array
    least_angle: Array
    most_angle: Array

    @property
    def sizes(self) -> tuple[int, int, int]:
        """The numbers of buses, generators and branches."""
        return len(self.demand), len(self.generator_bus), len(self.origin)


def _table(text: str, name: str) -> Array:
    found = re.search(rf"mpc\.{name}\s*=\s*\[(.*?)\];", text, re.S)
    assert found is not None, name
    rows = [re.sub(r"%.*", "", row).split() for row in re.split(r"[;\n]", found[1])]
    rows = [row for row in rows if row]
    width = max(map(len, rows))
    return np.array([[float(x) for x in row] + [0.0] * (width - len(row)) for row in rows])


def read(path: str | Path) -> Network:
    """A network from a case file of MATPOWER, without what is out of service."""
    text = Path(path).read_text()
    found = re.search(r"mpc\.baseMVA\s*=\s*([\d.eE+-]+)", text)
    assert found is not None
    base = float(found[1])
    bus, generators, costs = _table(text, "bus"), _table(text, "gen"), _table(text, "gencost")
    branches = _table(text, "branch")
    bus = bus[bus[:, 1] != 4]
    number = {int(name): k for k, name in enumerate(bus[:, 0])}
    in_service = generators[:, 7] > 0
    in_service &= np.array([int(b) in number for b in generators[:, 0]])
    generators, costs = generators[in_service], costs[: len(in_service)][in_service]
    linked = np.array([int(a) in number and int(b) in number for a, b in branches[:, :2]])
    branches = branches[(branches[:, 10] > 0) & linked]
    polynomial = np.zeros((len(costs), 3))  # of the square, the power, and constants
    for row, cost in zip(polynomial, costs, strict=True):
        count = int(cost[3])
        assert cost[0] == 2 and count <= 3, "costs are polynomials of degree two"
        row[3 - count :] = cost[4 : 4 + count]
    polynomial *= np.array([base * base, base, 1.0])
    ratio = np.where(branches[:, 8] == 0.0, 1.0, branches[:, 8])
    return Network(
        demand=(bus[:, 2] + 1j * bus[:, 3]) / base,
        shunt=(bus[:, 4] + 1j * bus[:, 5]) / base,
        lowest=bus[:, 12],
        highest=bus[:, 11],
        reference=np.flatnonzero(bus[:, 1] == 3),
        generator_bus=np.array([number[int(b)] for b in generators[:, 0]]),
        least=(generators[:, 9] + 1j * generators[:, 4]) / base,
        most=(generators[:, 8] + 1j * generators[:, 3]) / base,
        cost=polynomial,
        origin=np.array([number[int(b)] for b in branches[:, 0]]),
        target=np.array([number[int(b)] for b in branches[:, 1]]),
        admittance=1.0 / (branches[:, 2] + 1j * branches[:, 3]),
        charging=0.5j * branches[:, 4],
        tap=ratio * np.exp(1j * np.deg2rad(branches[:, 9])),
        rating=np.where(branches[:, 5] == 0.0, np.inf, branches[:, 5]) / base,
        least_angle=np.deg2rad(branches[:, 11]),
        most_angle=np.deg2rad(branches[:, 12]),
    )


def ring(buses: int, seed: int = 0) -> Network:
    """A ring of buses with some chords; every third bus has a generator."""
    rng = np.random.default_rng(seed)
    k = np.arange(buses)
    chords = k[:: max(buses // 5, 1)]
    origin = np.concatenate([k, chords])
    target = np.concatenate([(k + 1) % buses, (chords + buses // 2) % buses])
    generators, count = k[::3], len(origin)
    cost = np.stack([rng.uniform(50, 150, len(generators)), rng.uniform(1e3, 4e3, len(generators))])
    return Network(
        demand=rng.uniform(0.1, 0.4, buses) * (1.0 + 0.3j),
        shunt=np.zeros(buses, complex),
        lowest=np.full(buses, 0.9),
        highest=np.full(buses, 1.1),
        reference=k[:1],
        generator_bus=generators,
        least=np.full(len(generators), -1.0j),
        most=np.full(len(generators), 2.0 + 1.0j),
        cost=np.stack([*cost, np.zeros(len(generators))], axis=1),
        origin=origin,
        target=target,
        admittance=1.0 / (rng.uniform(0.002, 0.01, count) + 1j * rng.uniform(0.02, 0.08, count)),
        charging=0.5j * rng.uniform(0.0, 0.05, count),
        tap=np.ones(count, complex),
        rating=np.full(count, 1.0),
        least_angle=np.full(count, -0.5),
        most_angle=np.full(count, 0.5),
    )
