"""Plots: every case is a row, every contestant a mark on an axis of ratios.

    of_all      all workloads: the best peer, and C by hand, over wengert; a mark for each case
    of_few      the same for the workloads on one thread that the first page of the site shows
    of_suite    one suite: the time of each contestant over wengert's; a row for each case

One is where wengert stands; right of it is slower than wengert.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence

from native.page import duration, kind

from .results import Everything, Section, Times
from .svg import Drawing, Logarithmic

WIDTH, LEFT, RIGHT, ROW, HEAD = 900, 330, 880, 15, 22
COLOURS = {
    "NumPy": "#1f77b4", "JAX": "#d62728", "torch": "#ff7f0e",
    "torch.compile": "#bc9a00", "PyTensor": "#9467bd", "autograd": "#8c564b", "CasADi": "#17becf",
    "numba": "#2ca02c", "wengert": "#e377c2",
}  # fmt: skip
PEER, HAND = "#d62728", "#444444"
FEW = "native", "npbench", "loops", "sparse"
LARGEST = 10_000.0  # what is further away stands at the edge


def color(name: str) -> str:
    """Of a library, in all its ways."""
    if is_c(name):
        return {"C": HAND, "C ": "#888888", "C,": "#bbbbbb"}[name[:2]]
    return COLOURS.get(name, COLOURS.get(kind(name), COLOURS["NumPy"]))


def is_c(name: str) -> bool:
    """C in any way: "C", "C -ffast-math", "C, fresh"."""
    return name[:2] in ("C", "C ", "C,")


def ours(times: Times) -> float | None:
    """The time of wengert, the best of its ways."""
    return min((t for name, t in times.items() if kind(name) == "wengert"), default=None)


def clipped(value: float) -> float:
    """Within the axis."""
    return min(max(value, 1.0 / LARGEST), LARGEST)


def axis(drawing: Drawing, scale: Logarithmic, top: float, bottom: float) -> None:
    """Lines and numbers; the line at one is dark."""
    for tick in scale.ticks():
        x = scale.at(tick)
        one = abs(tick - 1.0) < 1e-9
        drawing.line(x, top, x, bottom, "#222222" if one else "#dddddd", 1.2 if one else 1.0)
        drawing.text(x, top - 4, f"{tick:g}", "middle", 10)


def legend(drawing: Drawing, names: Sequence[tuple[str, str, str]], y: float) -> float:
    """Marks and what they mean; returns where the next line begins."""
    x = 10.0
    for name, tint, shape in names:
        step = 22 + 7 * len(name)
        if x + step > WIDTH:
            x, y = 10.0, y + 16
        drawing.dot(x + 4, y - 4, tint, name, shape)
        drawing.text(x + 12, y, name)
        x += step
    return y + 16


def titled(section: Section) -> str:
    """A heading; threads are named where there are several."""
    return section.title + (f", {section.threads} threads" if section.threads > 1 else "")


def of_few(found: Everything) -> str:
    """The best peer and C over wengert, for native code, loops, NPBench and sparse derivatives."""
    return of_all(found, [s for s in found.sections if s.suite in FEW and s.threads == 1])


def of_all(found: Everything, sections: Sequence[Section] | None = None) -> str:
    """The best peer and C over wengert, for all workloads or those given."""
    rows: list[tuple[Section, Mapping[str, float], Mapping[str, float]]] = []
    for section in found.sections if sections is None else sections:
        peers, hand = section.ratios("peer", "", section.peers), section.ratios("C")
        if peers or hand:
            rows.append((section, peers, hand))
    values = [clipped(v) for _, peers, hand in rows for v in (*peers.values(), *hand.values())]
    drawing, scale = Drawing(WIDTH), Logarithmic(values, LEFT, RIGHT)
    drawing.text(10, 18, "Time of the others over wengert's: right of 1, wengert is faster",
                 size=13, weight="bold")  # fmt: skip
    marks = [("best peer library, a case", PEER, "circle"), ("C by hand", HAND, "square")]
    top = legend(drawing, marks, 38) + 14
    bottom = top + ROW * len(rows)
    axis(drawing, scale, top, bottom)
    for i, (section, peers, hand) in enumerate(rows):
        y = top + ROW * (i + 0.5)
        label = f"{section.suite}: {titled(section)}"
        drawing.text(10, y + 4, textwrap.shorten(label, 52, placeholder=" ..."))
        for ratios, tint, shape in ((hand, HAND, "square"), (peers, PEER, "circle")):
            for case, ratio in ratios.items():
                drawing.dot(scale.at(clipped(ratio)), y, tint, f"{case}: {ratio:.3g}", shape)
    return drawing.written(bottom + 10)


def of_suite(sections: Sequence[Section]) -> str | None:
    """Every contestant of every case over wengert; None where there is nothing to compare."""
    kept = [
        (section, {case: t for case, t in section.cases.items() if ours(t) and len(t) > 1})
        for section in sections
    ]
    kept = [(section, cases) for section, cases in kept if cases]
    if not kept:
        return None
    ratios = [
        clipped(t / (ours(times) or 1.0))
        for _, cases in kept
        for times in cases.values()
        for t in times.values()
    ]
    drawing, scale = Drawing(WIDTH), Logarithmic(ratios, LEFT, RIGHT)
    names = dict.fromkeys(
        n if is_c(n) else kind(n) for _, cases in kept for times in cases.values() for n in times
    )
    drawing.text(10, 18, "Time over wengert's: left of 1, faster than wengert", size=13,
                 weight="bold")  # fmt: skip
    marks = [(n, color(n), shape(n)) for n in names if n != "wengert"]
    y = legend(drawing, marks, 38) + 4
    for section, cases in kept:
        drawing.text(10, y + 12, titled(section), size=12, weight="bold")
        y += HEAD + 6
        axis(drawing, scale, y, y + ROW * len(cases))
        for case, times in cases.items():
            line(drawing, scale, y + ROW / 2, case, times)
            y += ROW
        y += 8
    return drawing.written(y + 4)


def shape(name: str) -> str:
    """By hand is square."""
    return "square" if is_c(name) or kind(name) in ("NumPy", "numba") else "circle"


def line(drawing: Drawing, scale: Logarithmic, y: float, case: str, times: Times) -> None:
    """One case."""
    drawing.text(10, y + 4, case[:54])
    base = ours(times) or 1.0
    for name, t in times.items():
        if kind(name) != "wengert":
            says = f"{name}: {t / base:.3g} times ({duration(t)})"
            drawing.dot(scale.at(clipped(t / base)), y, color(name), says, shape(name))
