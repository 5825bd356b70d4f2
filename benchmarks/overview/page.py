"""docs/benchmarks.md: targets, all workloads, plots.

The plots are files beside the page, docs/plots/NAME.svg, one of everything and one for each suite
that has something to compare.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from _harness import PAGES, machine_line, table

from . import curves, plots
from .results import Everything, Section
from .rows import ROWS

PAGE, PLOTS = "benchmarks.md", "plots"  # under docs
ALL = "overview"
FEW = "selection"
NAMES = {
    "native": "native code", "loops": "loops", "eager": "eager operations, import, memory",
    "linalg": "linear algebra", "convolution": "convolution", "learning": "training",
    "sequences": "sequence models", "vmap": "vmap", "graphs": "building graphs",
    "interpreter": "the interpreter", "gradbench": "GradBench",
    "kernels": "kernels of an ocean model, and orders", "growth": "growth",
    "sparse": "sparse derivatives", "taylor": "Taylor series",
    "solvers": "derivatives of solutions", "odes": "differential equations",
    "distributed": "two processes", "posteriors": "Bayesian models",
}  # fmt: skip


def drawn(found: Everything) -> dict[str, str]:
    """Every plot, by name."""
    made = {ALL: plots.of_all(found), FEW: plots.of_few(found)}
    for suite in found.raw:
        if picture := curves.drawn(found.raw[suite]) or plots.of_suite(found.of(suite)):
            made[suite] = picture
    return made


def files(found: Everything) -> dict[str, str]:
    """Everything that is written under docs, by path."""
    pictures = {f"{PLOTS}/{name}.svg": picture for name, picture in drawn(found).items()}
    return {PAGE: text(found), **pictures}


def text(found: Everything) -> str:
    """The page."""
    rows = [target.row(found) for target in ROWS]
    met = sum(row[3] == "met" for row in rows)
    measured = sum(row[3] != "-" for row in rows)
    parts = [
        "# Benchmarks",
        "Written by `python benchmarks/overview.py --render` from all files of "
        "`benchmarks/results`; `make bench` measures again. Every contestant computes the same "
        "numbers first; then all take turns in one process, and medians count. Read the ratios: "
        "times are one machine's.",
        "## Targets",
        f"What [the design](design/) set out to reach, and what was measured: {met} of {measured} "
        "rows that were measured are met. The figure is that of the case that stands worst; a row "
        "is met if all its cases are.",
        table(["workload", "wanted", "worst case measured", "", "where time goes"], rows),
        "## All workloads",
        f"![The time of others over that of wengert]({PLOTS}/{ALL}.svg)",
        "The least, the middle and the greatest ratio of the cases of each workload: the time of "
        "the best peer library over wengert's, and of C by hand. Above one, wengert is faster.",
        table(
            ["workload", "threads", "cases", "best peer / wengert", "C by hand / wengert"],
            [row for s in found.sections if (row := workload(s))],
        ),
        "## Each suite",
        "In the plots 1 is wengert; what stands to the left is faster. Marks of C, NumPy and numba "
        "are square: programs with derivatives by hand.",
    ]
    for suite, results in found.raw.items():
        parts += of_suite(suite, results, found.of(suite))
    return "\n\n".join(parts) + "\n"


def workload(section: Section) -> list[str] | None:
    """A row of the second table; None where there is nothing to compare."""
    peers, hand = section.ratios("peer", "", section.peers), section.ratios("C")
    if not peers and not hand:
        return None
    name = f"{section.suite}: {section.title}"
    return [name, f"{section.threads}", f"{len(section.cases)}", between(peers), between(hand)]


def between(ratios: Mapping[str, float]) -> str:
    """Least, middle and greatest."""
    if not ratios:
        return "-"
    ordered = sorted(ratios.values())
    ends = [ordered[0], ordered[len(ordered) // 2], ordered[-1]]
    shown = [f"{x:.2g}" if x < 100 else f"{x:.0f}" for x in ends]
    return shown[0] if len(ordered) == 1 else " - ".join(shown if len(ordered) > 2 else shown[::2])


def of_suite(suite: str, results: Mapping[str, Any], sections: Sequence[Section]) -> list[str]:
    """Heading, machine, page and plot of one suite, and who could not take part."""
    page = f"benchmarks-{suite}.md"
    name = NAMES.get(suite, suite)
    parts = [f"### {name[0].upper()}{name[1:]}"]
    there = f"[All cases and times]({page}). " if (PAGES / page).exists() else ""
    parts.append(there + machine_line(results["machine"]))
    if curves.drawn(results):
        parts.append(f"![How figures grow: {suite}]({PLOTS}/{suite}.svg)")
    elif plots.of_suite(sections):
        parts.append(f"![Times over wengert's: {suite}]({PLOTS}/{suite}.svg)")
    return parts
