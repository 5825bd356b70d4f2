"""Saved results as docs/benchmarks-gradbench.md.

First a table of the evals: the time of wengert's derivatives over that of C by hand (geometric
mean of the sizes, and the worst), and that of the best peer library over wengert's (the smallest of
the sizes); then the times of every eval.  Only derivatives make ratios.
"""

from __future__ import annotations

from math import exp, log
from typing import Any

from _harness import machine_line, table
from native.page import duration, kind

MEAN, WORST = 3.0, 10.0  # the targets: of all evals, and of each
TEXT = (
    "The evals of [GradBench](https://github.com/gradbench/gradbench), answered with the programs "
    "of `benchmarks/gradbench/evals`, at its published inputs and by its rules: a function is "
    "evaluated for a number of seconds, each evaluation timed by itself. Contestants take turns; a "
    "cell is the median. Before anything is timed, every answer has agreed with that of *C*, "
    "written by hand with derivatives by hand (`benchmarks/c/gradbench`), compiled with the flags "
    "that GradBench uses and timed in C. *C -ffast-math* is the same source. A peer that has no "
    "column cannot do the eval, or has no program of GradBench for it."
)


OWN = (
    "A checkout of GradBench, its own evals as processes beside our tool "
    "(`GRADBENCH=path make gradbench`); whether an answer is valid is said by the eval. *its C++* "
    "are its own derivatives by hand (`manual`), compiled and timed beside ours; that of *det* "
    "expands minors anew, that of *ode* differentiates a closed form and runs no step: they are "
    "other algorithms than ours, so the mean is said without them too."
)
ANOTHER_ALGORITHM = ("det", "ode")  # in GradBench's C++


def median(case: dict[str, Any], who: str) -> float | None:
    """Seconds of a contestant, if it was timed."""
    found: float | None = case["contestants"].get(who, {}).get("median")
    return found


def of_c(name: str) -> bool:
    """Whether it is C, or C with other flags or of another kind."""
    return name == "C" or name.startswith(("C ", "C,"))


def best_peer(case: dict[str, Any]) -> float | None:
    """The least time of a library."""
    names = [n for n in case["contestants"] if kind(n) != "wengert" and not of_c(n)]
    return min((t for name in names if (t := median(case, name))), default=None)


def ratios(section: dict[str, Any]) -> tuple[list[float], list[float]]:
    """Of every derivative: wengert over C, and the best peer over wengert."""
    over, ahead = [], []
    for case in section["cases"]:
        ours, c, peer = median(case, "wengert"), median(case, "C"), best_peer(case)
        if case["derivative"] and ours:
            over += [ours / c] if c else []
            ahead += [peer / ours] if peer else []
    return over, ahead


def mean(values: list[float]) -> float:
    """The geometric mean."""
    return exp(sum(map(log, values)) / len(values))


def summary(sections: list[dict[str, Any]]) -> list[str]:
    """The table of all evals, and how the targets stand."""
    rows, means, worst, behind = [], [], 0.0, []
    for section in sections:
        over, ahead = ratios(section)
        wrong = any("wrong" in c for case in section["cases"] for c in case["contestants"].values())
        rows.append([
            section["name"], "wrong" if wrong else "right", mean(over) if over else None,
            max(over, default=None), min(ahead, default=None),
        ])  # fmt: skip
        means += [mean(over)] if over else []
        worst = max([worst, *over])
        behind += [section["name"]] if ahead and min(ahead) < 1 else []
    head = ["eval", "answers", "wengert / C", "worst size", "best peer / wengert, least"]
    right = sum(row[1] == "right" for row in rows)
    lines = [f"{right} of {len(rows)} evals right."]
    if means:
        lines.append(
            f"Geometric mean of wengert over C: {mean(means):.2f} (target: at most {MEAN:g}); "
            f"the worst size of any eval: {worst:.2f} (target: at most {WORST:g})."
        )
    lines.append(
        f"Behind a peer at some size: {', '.join(behind)}." if behind
        else "Ahead of every peer at every size."
    )  # fmt: skip
    return [table(head, rows), " ".join(lines)]


def of_checkout(own: dict[str, dict[str, Any]]) -> list[str]:
    """What GradBench's own evals said."""
    rows = [
        [f"{name} {said['arguments']}".strip(), said["valid"], said["errors"], said.get("mean"),
         said.get("worst")]
        for name, said in own.items()
    ]  # fmt: skip
    means = {name: said["mean"] for name, said in own.items() if "mean" in said}
    same = [value for name, value in means.items() if name not in ANOTHER_ALGORITHM]
    head = ["eval", "answers valid", "errors", "wengert / its C++", "worst size"]
    text = OWN
    if same:
        text += (
            f" Geometric mean of wengert over its C++ where both run the same algorithm: "
            f"{mean(same):.2f}; with {' and '.join(ANOTHER_ALGORITHM)}: "
            f"{mean(list(means.values())):.2f}."
        )
    return ["## Under GradBench's own evals", text, table(head, rows)]


def of_eval(section: dict[str, Any]) -> list[str]:
    """Heading, text, times and notes of one eval."""
    names: list[str] = []
    rows, notes = [], []
    for case in section["cases"]:
        names += [name for name in case["contestants"] if name not in names]
    names.sort(key=lambda name: (name != "wengert", name != "C", not name.startswith("C")))
    for case in section["cases"]:
        times = [median(case, name) for name in names]
        rows.append([case["case"], *(t and duration(t) for t in times)])
        for name, found in case["contestants"].items():
            for reason in ("wrong", "failed", "skipped"):
                if reason in found:
                    notes.append(f"* {case['case']}, {name}: {reason}: {found[reason]}")
    parts = [f"## {section['title']}", section["text"], table(["", *names], rows)]
    return [*parts, "\n".join(notes)] if notes else parts


def render(results: dict[str, Any]) -> str:
    """Return the page."""
    sections = results["sections"]
    seconds = min(section["seconds"] for section in sections)
    parts = [
        "# Benchmarks: GradBench",
        "Written by `python benchmarks/gradbench.py --render` from "
        "`benchmarks/results/gradbench.json`. Read the ratios: times are one machine's.",
        machine_line(results["machine"], results["sections"]),
        f"{TEXT} On one thread, at least {seconds:g} s each; `{results['compiler']}`.",
    ]
    alone = [section for section in sections if section["threads"] == 1]
    parts += summary(alone or sections)
    if results.get("own"):
        names = dict.fromkeys(section["name"] for section in sections)
        parts += of_checkout({n: results["own"][n] for n in names if n in results["own"]})
    for section in sections:
        parts += of_eval(section)
    return "\n\n".join(parts) + "\n"
