"""Growth: time to compile, time of a call and memory, against size, depth, order and parameters.

    python benchmarks/growth.py                 measure on one thread, print, write
                                                results/growth.json
    python benchmarks/growth.py --threads       on all threads, beside what was measured on one
    python benchmarks/growth.py --quick         the first points only, nothing written
    python benchmarks/growth.py --only NAME     some workloads only (may be repeated); the others'
                                                results stay as they are
    python benchmarks/growth.py --render        write docs/benchmarks-growth.md

Workloads are modules of benchmarks/growth_cases; how they are run is said in _suite.py, how a point
is measured in growth_cases/points.py.  In the saved results each row has its `point`, the place on
the axis, beside the figures, so curves can be drawn from them.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from _harness import machine_line, table
from _suite import Suite

PAGE = "benchmarks-growth.md"  # under docs
WORKLOADS = ("size", "depth", "straight", "order", "leaves", "peaks")
FIGURES = {
    "compile": "the first call, beyond a later one",
    "processor": "the first call, processor's time",
    "median": "a later call",
    "added": "memory after the import, MB",
    "whole": "memory of the process, MB",
}
SHOWN = {"order": ("compile", "processor", "median"), "peaks": ("whole", "added", "median")}


def render(results: dict[str, Any]) -> str:
    """Return docs/benchmarks-growth.md for saved results."""
    parts = [
        "# Benchmarks: growth",
        "Written by `python benchmarks/growth.py --render` from `benchmarks/results/growth.json`. "
        "Read how rows follow each other: times are one machine's.",
        machine_line(results["machine"]),
        "Each figure is from a fresh process, in which nothing was compiled before and nothing is "
        "kept. Results are compared first. The last column is the power of the axis with which "
        "wengert's figure grew from the row above: 1 is in proportion, 0 is not at all.",
    ]
    threads = 0
    for section in results["sections"]:
        if section["threads"] != threads:
            threads = section["threads"]
            parts.append(f"*On {'one thread' if threads == 1 else f'{threads} threads'}:*")
        parts += [f"## {section['title']}", section["text"], f"Target: {section['target']}."]
        for key in SHOWN.get(section["name"], ("compile", "processor", "median", "added")):
            parts.append(rows_of(section, key))
        if section["name"] == "straight":
            parts.append(per_node(section))
        parts += notes(section)
    return "\n\n".join(parts) + "\n"


def rows_of(section: dict[str, Any], key: str) -> str:
    """A table of one figure."""
    from native.page import duration

    is_memory = key in ("added", "whole")
    shown: Callable[[float], str] = (lambda x: f"{x:.0f}") if is_memory else duration
    names = list(dict.fromkeys(n for c in section["cases"] for n in c["contestants"]))
    rows: list[list[Any]] = []
    before: tuple[float, float] | None = None
    for case in section["cases"]:
        found = {n: c[key] for n, c in case["contestants"].items() if key in c}
        cells = [shown(found[n]) if n in found else None for n in names]
        power, now = None, None
        if case["point"].isdigit() and found.get("wengert", 0.0) > 0.0:
            now = float(case["point"]), found["wengert"]
            if before:
                power = math.log(now[1] / before[1]) / math.log(now[0] / before[0])
        before = now
        rows.append([case["case"], *cells, None if power is None else f"{power:.2f}"])
    return table([FIGURES[key], *names, "power"], rows)


def per_node(section: dict[str, Any]) -> str:
    """The time of the first call for each node."""
    each = [
        (case["case"], case["contestants"]["wengert"]["processor"] / int(case["point"]))
        for case in section["cases"]
        if "processor" in case["contestants"]["wengert"]
    ]
    return table(["the first call", "ms a node"], [[n, f"{1e3 * t:.2f}"] for n, t in each])


def notes(section: dict[str, Any]) -> list[str]:
    """Why a figure is missing."""
    found = [
        f"* {case['case']}, {name}: {reason}: {c[reason]}"
        for case in section["cases"]
        for name, c in case["contestants"].items()
        for reason in ("wrong", "failed", "skipped")
        if reason in c
    ]
    return ["\n".join(found)] if found else []


def flags() -> list[str]:
    """Nothing is compiled from C."""
    return []


if __name__ == "__main__":
    suite = Suite(Path(__file__).resolve(), "growth_cases", WORKLOADS, PAGE, render, flags)
    sys.exit(suite.main())
