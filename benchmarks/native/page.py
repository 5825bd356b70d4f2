"""Saved results as Markdown: a table for each workload, cases in rows and contestants in columns.

A cell is the median, with the error after it where contestants approximate; what others published
is in italics.  Two ratios stand at the end of each row: the time of the best peer library, and that
of C by hand, over wengert's, of elapsed time and of the processor's; so more than one is faster,
less than one slower.  Contestants without a time are listed below the table, with the reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from _harness import machine_line, table

WENGERT = "wengert"
FAST_C = "C -ffast-math"  # beside C that rounds as written, where that is what targets speak of
BY_HAND = ("C", FAST_C, "NumPy", "numba")
BUSY_LOAD = 1.5  # processes, of which the run is one
UNITS = [(1e-3, 1e6, "us"), (1.0, 1e3, "ms"), (float("inf"), 1.0, "s")]


def duration(seconds: float) -> str:
    """A time in a unit that suits it."""
    for limit, scale, unit in UNITS:
        if seconds < limit:
            value = seconds * scale
            return f"{value:.3g} {unit}" if value < 1000 else f"{value:.0f} {unit}"
    raise AssertionError


def kind(name: str) -> str:
    """Without what follows a comma: "C, fresh" is of C."""
    return name.partition(",")[0]


def best(times: dict[str, float], of: str, peers: Sequence[str] | None) -> float | None:
    """The least time of C, or of the peer libraries (of some only, where a target says so)."""
    found = [
        seconds
        for name, seconds in times.items()
        if kind(name) != WENGERT
        and (of == "C" or peers is None or {name, kind(name)} & set(peers))
        and (kind(name) == "C" if of == "C" else not {name, kind(name)} & set(BY_HAND))
    ]
    return min(found) if found else None


def over(times: dict[str, float], of: str, peers: Sequence[str] | None) -> float | None:
    """The best of C or of the peers over wengert, the best of its modes where it shows several."""
    least = best(times, of, peers)
    ours = min([t for name, t in times.items() if kind(name) == WENGERT], default=None)
    return least / ours if least and ours else None


def workload(section: dict[str, Any]) -> list[str]:
    """Heading, text, table and notes of one workload."""
    cases = section["cases"]
    names: list[str] = []
    for case in cases:
        names += [name for name in case["contestants"] if name not in names]
    rows, notes = [], []
    for case in cases:
        times = {n: c["median"] for n, c in case["contestants"].items() if "median" in c}
        busy = {n: c["processor"] for n, c in case["contestants"].items() if "processor" in c}
        rate = case.get("bytes")
        cells = []
        for name in names:
            seconds = times.get(name)
            cell = None if seconds is None else duration(seconds)
            if cell and rate:
                cell += f", {rate / seconds / 1e9:.3g} GB/s"
                cell += f", {case['contestants'][name]['faults']:.0f} faults"
            if cell and "megabytes" in case["contestants"][name]:
                cell += f", {case['contestants'][name]['megabytes']:.1f} MB"
            if cell and "error" in case["contestants"][name]:
                cell += f", {case['contestants'][name]['error']:.0e}"
            if "published" in case["contestants"].get(name, {}):
                cell = f"*{duration(case['contestants'][name]['published'])}*"
            cells.append("cannot" if "cannot" in case["contestants"].get(name, {}) else cell)
        ratios = [
            over(measured, of, section.get("peers"))
            for measured, of in ((times, "peer"), (times, "C"), (busy, "peer"), (busy, "C"))
        ]
        rows.append([case["case"], *cells, *ratios])
        notes += [
            f"* {case['case']}, {name}: {reason} ({detail:.1e} off)"
            if reason == "wrong"
            else f"* {case['case']}, {name}: {reason}: {detail}"
            for name, c in case["contestants"].items()
            for reason, detail in c.items()
            if reason in ("wrong", "failed", "skipped", "cannot")
        ]
        notes += [
            f"* {case['case']}, {name}: kept {c['cores']:.1f} cores busy"
            for name, c in case["contestants"].items()
            if section["threads"] == 1 and c.get("cores", 0) > 1.2
        ]
    head = [
        "",
        *names,
        " or ".join(section.get("peers") or ["best peer"]),
        "C",
        "the same, processor",
        "C, processor",
    ]
    parts = [f"## {section['title']}", section["text"], f"Target: {section['target']}."]
    parts.append(table(head, rows))
    return [*parts, "\n".join(dict.fromkeys(notes))] if notes else parts


def render(
    results: dict[str, Any],
    suite: str = "native",
    title: str = "native code",
    agreement: str = "1e-6 in float64, 1e-3 in float32",
) -> str:
    """Return docs/benchmarks-<suite>.md for saved results."""
    parts = [
        f"# Benchmarks: {title}",
        f"Written by `python benchmarks/{suite}.py --render` from "
        f"`benchmarks/results/{suite}.json`. Read the ratios: times are one machine's.",
        machine_line(results["machine"], results["sections"]),
        f"Every contestant computes the same numbers (checked first: {agreement}; "
        "one that deviates is not timed), in one process, in turn; a cell is the median. "
        "Each library has its own arrays and makes new results, as its users let it. C: "
        f"`{results['compiler']}`. The last columns are the time of the best peer library, and of "
        "C, over wengert's: above one, wengert is faster. *processor*: the same of the processor's "
        "time, which neighbors on a busy machine disturb less.",
    ]
    if results.get("load", 0.0) > BUSY_LOAD:
        parts.append(
            f"**The machine was busy**: {results['load']} processes ran on "
            f"{results['machine']['cores']} cores, this run included, on the average of the last "
            "five minutes."
        )
    if not results["jit"]:
        parts.append("**wengert is measured eagerly: this version has no `wg.jit`.**")
    threads = 0
    for section in results["sections"]:
        if section["threads"] != threads:
            threads = section["threads"]
            parts.append(f"*On {'one thread' if threads == 1 else f'{threads} threads'}:*")
        parts += workload(section)
    return "\n\n".join(parts) + "\n"
