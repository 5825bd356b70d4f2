"""What a target is, and how its figures are read from results; the targets are in rows.py.

A row has words for the workload and what is wanted, the figures (by case, in the unit of the limit)
and the limit, the page where they stand, and the record that says where the time goes and what is
to be tried next.  Nobody types a figure.  What was not measured is said to be so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import exp, log

from native.page import kind

from .results import Everything, Section

Figures = Mapping[str, float]


@dataclass(frozen=True)
class Target:
    """A row of the table.

    figures : of all results, by case; empty if nothing was measured.
    limit, most : the figure wanted; whether it is the greatest allowed, or the least.
    shown : a figure in words.
    record : of design decisions; where a miss is explained.
    """

    workload: str
    wanted: str
    figures: Callable[[Everything], Figures]
    limit: float
    page: str
    record: str
    most: bool = False
    shown: Callable[[float], str] = lambda x: f"{x:.3g}"

    def holds(self, value: float) -> bool:
        """Whether one figure is good enough, as it is shown."""
        return value <= self.limit if self.most else value >= self.limit

    def row(self, found: Everything) -> list[str]:
        """Workload, wanted, measured, verdict."""
        figures = self.figures(found)
        name = self.page.removeprefix("benchmarks-").removesuffix(".md")
        given = [self.workload, self.wanted]
        if not figures:
            return [*given, "not measured", "-", self.explained]
        good = [case for case, value in figures.items() if self.holds(value)]
        worst = (max if self.most else min)(figures, key=lambda case: figures[case])
        text = self.shown(figures[worst])
        if len(figures) > 1:
            text += f" ({worst})"
            other = (min if self.most else max)(figures.values())
            text += f"; best {self.shown(other)}"
        met = len(good) == len(figures)
        verdict = (
            "met" if met else "missed" if not good else f"met in {len(good)} of {len(figures)}"
        )
        why = "" if met else self.explained
        return [*given, f"{text} [{name}]({self.page})", verdict, why]

    @property
    def explained(self) -> str:
        """The link to where a miss is explained."""
        return f"[why, and what next](design/{self.record})"


# ---- figures -----------------------------------------------------------------------------------


def joined(parts: Iterable[tuple[str, Figures]]) -> dict[str, float]:
    """Figures of several sections, each with a word before its cases if there is one."""
    return {f"{word}{case}": v for word, figures in parts for case, v in figures.items()}


def ratios(
    suite: str,
    *names: str,
    of: str = "peer",
    pattern: str = "",
    peers: Sequence[str] | None = None,
    every_thread: bool = False,
) -> Callable[[Everything], Figures]:
    """The time of C or of a peer over wengert's, of some sections, on one thread or on any."""

    def read(found: Everything) -> Figures:
        chosen = [
            s for s in found.of(suite) if s.name in names and (every_thread or s.threads == 1)
        ]
        return joined(
            (f"{s.threads} threads, " if s.threads > 1 else "", s.ratios(of, pattern, peers))
            for s in chosen
        )

    return read


def both(*reads: Callable[[Everything], Figures]) -> Callable[[Everything], Figures]:
    """Figures of several kinds."""
    return lambda found: {case: v for read in reads for case, v in read(found).items()}


def times(suite: str, name: str, pattern: str = "") -> Callable[[Everything], Figures]:
    """Seconds of wengert."""

    def read(found: Everything) -> Figures:
        section = found.section(suite, name)
        cases = section.chosen(pattern) if section else {}
        return {case: t["wengert"] for case, t in cases.items() if "wengert" in t}

    return read


def published(suite: str, name: str) -> Callable[[Everything], Figures]:
    """The best time that others have published over that of wengert."""

    def read(found: Everything) -> Figures:
        figures = {}
        for section in found.raw.get(suite, {}).get("sections", ()):
            for case in section["cases"] if section["name"] == name else ():
                times = case["contestants"]
                known = [t["published"] for t in times.values() if "published" in t]
                if known and "median" in times["wengert"]:
                    figures[case["case"]] = min(known) / times["wengert"]["median"]
        return figures

    return read


def over(suite: str, name: str, ours: str, other: str) -> Callable[[Everything], Figures]:
    """The time of one contestant over that of another."""

    def read(found: Everything) -> Figures:
        section = found.section(suite, name)
        cases = section.cases if section else {}
        return {case: t[ours] / t[other] for case, t in cases.items() if ours in t and other in t}

    return read


def mean_over(suite: str, name: str, ours: str, other: str) -> Callable[[Everything], Figures]:
    """The geometric mean of the time of one contestant over that of another."""

    def read(found: Everything) -> Figures:
        logs = [log(r) for r in over(suite, name, ours, other)(found).values()]
        return {"all programs": exp(sum(logs) / len(logs))} if logs else {}

    return read


def bandwidth(found: Everything) -> Figures:
    """The gradient of an axpy, as a share of the rate of a copy in place."""
    suite = found.raw.get("native", {}).get("sections", [])
    rates: dict[str, float] = {}
    for section in suite:
        if (section["name"], section["threads"]) != ("bandwidth", 1):
            continue
        for case in section["cases"]:
            for name, c in case["contestants"].items():
                if "median" in c:
                    rates[f"{case['case'][:4]}{name}"] = case["bytes"] / c["median"]
    ours, copy = rates.get("gradwengert"), rates.get("copyNumPy, in place")
    return {"axpy": ours / copy} if ours and copy else {}


# ---- GradBench ---------------------------------------------------------------------------------


def evals(found: Everything) -> dict[str, Section]:
    """Those measured."""
    return {s.name: s for s in found.of("gradbench") if s.threads == 1}


def derivatives(found: Everything, name: str) -> dict[str, dict[str, float]]:
    """Cases of an eval that are derivatives; the others are its values."""
    saved = found.raw["gradbench"]["sections"]
    marked = {c["case"] for s in saved if s["name"] == name for c in s["cases"] if c["derivative"]}
    return {case: t for case, t in evals(found)[name].cases.items() if case in marked}


def completed(found: Everything) -> Figures:
    """How many evals wengert answers, at all sizes measured."""
    sections = evals(found).values()
    right = [s for s in sections if s.cases and all("wengert" in t for t in s.cases.values())]
    return {"evals": float(len(right))} if sections else {}


def over_c(found: Everything) -> dict[str, float]:
    """Geometric mean over the sizes of the time of derivatives, over that of C, by eval."""
    means = {}
    for name in evals(found):
        cases = derivatives(found, name).values()
        logs = [log(t["wengert"] / t["C"]) for t in cases if "wengert" in t and "C" in t]
        if logs:
            means[name] = exp(sum(logs) / len(logs))
    return means


def mean_over_c(found: Everything) -> Figures:
    """The geometric mean of all evals."""
    means = over_c(found).values()
    return {"all evals": exp(sum(map(log, means)) / len(means))} if means else {}


def ahead(found: Everything) -> Figures:
    """JAX or PyTorch, the better one, over wengert, for every derivative that they have."""
    figures = {}
    for name in evals(found):
        for case, t in derivatives(found, name).items():
            peers = [v for n, v in t.items() if kind(n) in ("JAX", "torch", "torch.compile")]
            if peers and "wengert" in t:
                figures[f"{name}, {case}"] = min(peers) / t["wengert"]
    return figures


def costs(**passes: int) -> Callable[[Everything], Figures]:
    """Time of a derivative over that of the value, of evals, each divided by a number of passes."""

    def read(found: Everything) -> Figures:
        figures = {}
        for name in sorted(passes.keys() & evals(found).keys()):
            marked = derivatives(found, name)
            for case, t in evals(found)[name].cases.items():
                size = case.partition(", ")[2]
                value = [
                    v for c, v in evals(found)[name].cases.items()
                    if c not in marked and c.partition(", ")[2] == size
                ]  # fmt: skip
                if case in marked and value and "wengert" in t and "wengert" in value[0]:
                    figures[f"{name}, {size}"] = t["wengert"] / value[0]["wengert"] / passes[name]
        return figures

    return read
