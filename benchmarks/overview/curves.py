"""Curves: figures that grow with a size, both axes logarithmic.

A section is drawn so if its cases have a ``point``, a number: a panel for each of its figures that
all cases have (time of a call, time to compile, memory), a line for each contestant.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import log10
from typing import Any

from native.page import duration, kind

from .plots import COLOURS
from .svg import Drawing

WIDTH, MARGIN, PANEL, TALL = 900, 52, 300, 170
FIGURES = {"median": "a call", "compile": "the first call, beyond a later one",
           "added": "memory after the import, MB"}  # fmt: skip
Points = list[tuple[float, float]]


def drawn(results: Mapping[str, Any]) -> str | None:
    """All sections that have points; None where no section has."""
    found = [s for s in results.get("sections", []) if lines(s, "median")]
    if not found:
        return None
    drawing, y = Drawing(WIDTH), 24.0
    names = list(dict.fromkeys(n for s in found for n in lines(s, "median")))
    x = 10.0
    for name in names:
        drawing.dot(x + 4, y - 10, tint(name), name)
        drawing.text(x + 12, y - 6, name)
        x += 26 + 7 * len(name)
    for section in found:
        drawing.text(10, y + 14, section["title"], size=12, weight="bold")
        panels = [(key, curves) for key in FIGURES if (curves := lines(section, key))]
        for i, (key, curves) in enumerate(panels):
            panel(drawing, i * PANEL, y + 34, FIGURES[key], curves, key == "added")
        y += TALL + 62
    return drawing.written(y)


def lines(section: Mapping[str, Any], key: str) -> dict[str, Points]:
    """Points of every contestant that has two or more."""
    found: dict[str, Points] = {}
    for case in section["cases"]:
        if not case.get("point", "").isdigit():
            return {}
        for name, c in case["contestants"].items():
            if c.get(key, 0.0) > 0.0:
                found.setdefault(name, []).append((float(case["point"]), c[key]))
    return {name: points for name, points in found.items() if len(points) > 1}


def tint(name: str) -> str:
    """Of a library; wengert's is dark."""
    if kind(name) == "wengert":
        return "#222222" if name == "wengert" else "#888888"
    return COLOURS.get(name, COLOURS.get(kind(name), COLOURS["NumPy"]))


def panel(
    drawing: Drawing, left: float, top: float, title: str, curves: dict[str, Points], plain: bool
) -> None:
    """Axes, numbers, lines."""
    xs = [log10(x) for points in curves.values() for x, _ in points]
    ys = [log10(y) for points in curves.values() for _, y in points]
    low, high = min(ys), max(max(ys), min(ys) + 0.5)
    x0, x1, y0, y1 = left + MARGIN, left + PANEL - 26, top + TALL - 20, top + 6
    first, last = min(xs), max(max(xs), min(xs) + 0.5)

    def at(x: float, y: float) -> tuple[float, float]:
        return (
            x0 + (log10(x) - first) / (last - first) * (x1 - x0),
            y0 + (log10(y) - low) / (high - low) * (y1 - y0),
        )

    drawing.text(x0, top - 4, title, size=10)
    drawing.line(x0, y0, x1, y0, "#888888")
    drawing.line(x0, y0, x0, y1, "#888888")
    for value in (10.0**low, 10.0 ** ((low + high) / 2.0), 10.0**high):
        _, y = at(10.0**first, value)
        drawing.line(x0, y, x1, y)
        drawing.text(x0 - 4, y + 4, f"{value:.0f}" if plain else duration(value), "end", 10)
    for value in ticks(sorted({x for points in curves.values() for x, _ in points})):
        x, _ = at(value, 10.0**low)
        drawing.text(x, y0 + 14, f"{value:,.0f}", "middle", 10)
    for name, points in curves.items():
        placed = [at(x, y) for x, y in points]
        for (a, b), (c, d) in pairwise(placed):
            drawing.line(a, b, c, d, tint(name), 1.5)
        for (x, y), (size, value) in zip(placed, points, strict=True):
            says = f"{name}, {size:,.0f}: {value:.0f} MB" if plain else ""
            drawing.dot(x, y, tint(name), says or f"{name}, {size:,.0f}: {duration(value)}")


def ticks(values: Sequence[float]) -> list[float]:
    """The ends, and what lies in the middle of many."""
    chosen = {0, len(values) - 1}
    if len(values) > 4:
        chosen.add(len(values) // 2)
    return [values[i] for i in sorted(chosen)]
