"""docs/benchmarks-npbench.md from saved results."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from _harness import machine_line, table
from native.page import duration

from .program import SINGLE
from .values import MUCH_SLOWER, NOT_AT_THIS_SIZE

REASONS = ("wrong", "failed", "cannot")
# Versions for JAX that compute something else.
OTHER_VALUES = {
    "channel_flow": "its version does not use the pressure that it computes, and returns the "
    "number of steps only"
}
# Gradients that are not those of finite differences, with which wengert's agree.
OTHER_GRADIENTS = ("trmm", "vadv")


def geometric(ratios: Iterable[float]) -> float | None:
    """The geometric mean; None of nothing."""
    logs = [math.log(r) for r in ratios if r > 0]
    return math.exp(sum(logs) / len(logs)) if logs else None


def median_of(case: dict[str, Any], name: str) -> float | None:
    """The time of a contestant."""
    found: float | None = case["contestants"].get(name, {}).get("median")
    return found


def ratio(case: dict[str, Any], over: str, under: str = "wengert") -> float | None:
    """The time of one contestant, divided by that of another."""
    a, b = median_of(case, over), median_of(case, under)
    return a / b if a and b else None


def ratios(cases: list[dict[str, Any]], over: str, under: str = "wengert") -> list[float]:
    """The ratio of all cases that have both times."""
    return [r for case in cases if (r := ratio(case, over, under)) is not None]


def notes(cases: list[dict[str, Any]]) -> str:
    """Who has no time, and why."""
    lines = [
        f"* {case['case']}, {name}: {reason}: {c[reason]}"
        for case in cases
        for name, c in case["contestants"].items()
        for reason in REASONS
        if reason in c and c[reason] != NOT_AT_THIS_SIZE
    ]
    return "\n".join(lines)


def times(case: dict[str, Any], names: list[str]) -> list[str | None]:
    """Cells with the times of contestants."""
    found = [median_of(case, name) for name in names]
    return [None if t is None else duration(t) for t in found]


def values(section: dict[str, Any]) -> list[str]:
    """The section of values: a table for each size."""
    cases = [_without_jax(c, OTHER_VALUES) for c in section["cases"]]
    larger = [
        _without_jax({"case": c["case"], "contestants": c["larger"]}, OTHER_VALUES)
        for c in section["cases"]
        if "larger" in c
    ]
    parts = _values_at(cases)
    if not larger:
        return parts
    text = (
        f"numba runs its fastest version at size S, and JAX takes part where it was at most "
        f"{MUCH_SLOWER:g} times slower than wengert there."
    )
    return [*parts, "### At size M", text, *_values_at(larger)]


def _values_at(cases: list[dict[str, Any]]) -> list[str]:
    names = ["wengert", "NumPy", "numba", "JAX"]
    others = names[1:]
    rows = [[c["case"], *times(c, names), *(ratio(c, n) for n in others)] for c in cases]
    rows.append(["geometric mean", *[None] * 4, *(geometric(ratios(cases, n)) for n in others)])
    slower = [c["case"] for c in cases if (ratio(c, "NumPy") or 1.0) < 1.0]
    behind = [c["case"] for c in cases if (ratio(c, "JAX") or 1.0) < 1.0]
    text = (
        f"Slower than NumPy: {', '.join(slower) or 'none'}. "
        f"Slower than JAX: {', '.join(behind) or 'none'}."
    )
    head = ["", *names, *(f"{n} / wengert" for n in others)]
    return [table(head, rows), text, notes(cases)]


def gradients(section: dict[str, Any]) -> list[str]:
    """The section of gradients."""
    others = dict.fromkeys(
        OTHER_GRADIENTS, "the gradient of its version differs from finite differences"
    )
    cases = [_without_jax(c, others) for c in section["cases"] if not c.get("none")]
    names = ["wengert", "value", "JAX"]
    rows = []
    for c in cases:
        calls = [None if c.get(k) is None else duration(c[k]) for k in ("first", "again")]
        agreement = c["contestants"].get("JAX", {}).get("difference")
        differs = None if agreement is None else f"{agreement:.0e}"
        cells = [ratio(c, "wengert", "value"), ratio(c, "JAX"), differs, *calls]
        rows.append([c["case"], *times(c, names), *cells])
    first = sorted(c["first"] for c in cases if c.get("first") is not None)
    text = f"First calls: median {duration(first[len(first) // 2])}." if first else ""
    text += " The gradients of `correlation` and `softmax` are zero up to rounding."
    mean = geometric(ratios(cases, "JAX"))
    means = [geometric(ratios(cases, "wengert", "value")), mean, None, None, None]
    rows.append(["geometric mean", None, None, None, *means])
    head = ["", *names, "gradient / value", "JAX / wengert", "difference", "first", "again"]
    return [table(head, rows), text, notes(cases)]


def _without_jax(case: dict[str, Any], reasons: dict[str, str]) -> dict[str, Any]:
    """The case without JAX's time where its version computes something else."""
    if case["case"] not in reasons:
        return case
    other = {"JAX": {"cannot": reasons[case["case"]]}}
    return case | {"contestants": case["contestants"] | other}


def dace(section: dict[str, Any]) -> list[str]:
    """The section of DaCe's tests."""
    cases, names = section["cases"], ["wengert", "DaCe", "JAX"]
    if not cases:
        return ["Not measured."]
    rows = [[c["case"], *times(c, names), ratio(c, "DaCe"), ratio(c, "JAX")] for c in cases]
    means = [geometric(ratios(cases, n)) for n in ("DaCe", "JAX")]
    rows.append(["geometric mean", None, None, None, *means])
    return [table(["", *names, "DaCe / wengert", "JAX / wengert"], rows), notes(cases)]


def render(results: dict[str, Any]) -> str:
    """Return docs/benchmarks-npbench.md for saved results."""
    parts = [
        "# Benchmarks: NPBench",
        "Written by `python benchmarks/npbench.py --render` from `benchmarks/results/npbench.json`."
        " Read the ratios: times are one machine's. The programs are those of "
        "[NPBench](https://github.com/spcl/npbench), source unchanged, at its size S (values also "
        "at M), on one thread; each runs in a process of its own, the contestants in turn, each "
        "call with new copies of the arguments, which are not part of the time. Before anything "
        "is timed, all have computed the same numbers: results differ from NumPy's by less than "
        "the relative error that NPBench accepts in single precision "
        f"({SINGLE:.0e}, or what it states for a program), and by less than a tenth of it in "
        "double precision, relative to the largest element. A ratio above one means that wengert "
        "is faster.",
        machine_line(results["machine"], results["sections"]),
    ]
    for section in results["sections"]:
        body = {"values": values, "gradients": gradients, "dace": dace}[section["name"]](section)
        parts += [f"## {section['title']}", section["text"], f"Target: {section['target']}."]
        parts += [part for part in body if part]
    return "\n\n".join(parts) + "\n"
