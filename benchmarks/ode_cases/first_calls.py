"""The first call in a fresh process: from the problem to the first result, import not counted."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any

from _harness import spread
from native import fresh, libraries
from native.case import Call

from . import by_casadi, by_diffrax, by_lsoda, by_wengert, contestants, published

TITLE = "First calls in a fresh process"
TEXT = (
    "Tracing, derivatives, compilation and one run; imports are not counted, and nothing is kept "
    "on disk."
)
PEERS = ("diffrax",)
TARGET = "at most 0.5 s"
MODULES = {
    "wengert": "wengert.integrate",
    "diffrax": "diffrax",
    "CasADi": "casadi",
    "numbalsoda": "numbalsoda",
}
MAKES: dict[str, Callable[..., Call]] = {
    "wengert": by_wengert.call,
    "diffrax": by_diffrax.call,
    "CasADi": by_casadi.call,
    "numbalsoda": by_lsoda.numbalsoda,
}
PROBLEMS = {
    "Lotka-Volterra": published.lotka_volterra,
    "Robertson": published.robertson,
    "pollution": published.pollution,
}
CASES = (
    ("Lotka-Volterra", "value"), ("Lotka-Volterra", "gradient"), ("Robertson", "value"),
    ("Robertson", "gradient"), ("pollution", "gradient"),
)  # fmt: skip
USUAL_REPETITIONS = 2
REPETITIONS = {"diffrax": 1}  # which takes up to 11 s


def once(what: str, library: str) -> dict[str, Any]:
    """In the fresh process."""
    name, kind = what.split(", ")
    importlib.import_module(MODULES[library])
    if library == "diffrax":
        fresh.started("JAX")
    make = MAKES[library]

    def made() -> Call:
        return make(PROBLEMS[name](), kind)

    return fresh.timed(made, "numpy" if library == "CasADi" else library)


def first(group: Sequence[Any]) -> dict[str, float]:
    """Of the samples of one contestant."""
    seconds = [s["first"] for s in group]
    times = spread(seconds * 2 if len(seconds) == 1 else seconds)
    return times | {"processor": sorted(s["processor"] for s in group)[len(group) // 2]}


def measure(quick: bool, threads: int) -> list[dict[str, Any]]:
    """All cases."""
    assert libraries.has_jit()
    results = []
    for name, kind in CASES[:1] if quick else CASES:
        what = f"{name}, {kind}"
        names = [n for n in MAKES if kind == "value" or n != "numbalsoda"]
        samples: dict[str, list[Any]] = {}
        for k in range(1 if quick else USUAL_REPETITIONS):
            turn = [n for n in names if k < REPETITIONS.get(n, USUAL_REPETITIONS)]
            found = fresh.repeated("odes.py", "first_calls", what, turn, threads, 1)
            for n, group in found.items():
                samples.setdefault(n, []).extend(group)
        agreed = fresh.agreed(samples, contestants.WITHIN[kind], first)
        results.append({"case": what, "contestants": agreed})
    return results
