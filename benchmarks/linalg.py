"""Linear algebra: many small matrices, and one large one, beside JAX and PyTorch.

    python benchmarks/linalg.py                 measure on one thread, print, write
                                                results/linalg.json
    python benchmarks/linalg.py --threads       on all threads, beside what was measured on one
    python benchmarks/linalg.py --quick         small sizes, little time, nothing written
    python benchmarks/linalg.py --only NAME     some workloads only (may be repeated); the others'
                                                results stay as they are
    python benchmarks/linalg.py --render        write docs/benchmarks-linalg.md

Workloads are modules of benchmarks/linalg_cases; how they are run is said in _suite.py.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from _harness import machine_line, table
from _suite import Suite

PAGE = "benchmarks-linalg.md"  # under docs
WORKLOADS = ("batched", "large")
SECONDS = "0.5"  # for each case: there are many, and JAX is slow at some


def render(results: dict[str, Any]) -> str:
    """Return docs/benchmarks-linalg.md for saved results."""
    parts = [
        "# Benchmarks: linear algebra",
        "Written by `python benchmarks/linalg.py --render` from `benchmarks/results/linalg.json`. "
        "Read the ratios: times are one machine's.",
        machine_line(results["machine"]),
        "Every contestant computes the same numbers (checked first: 1e-6 in float64, 1e-3 in "
        "float32, 1e-5 for gradients of one large matrix; one that deviates is not timed), in one "
        "process, in turn; a cell is the median. Each library has its own arrays and makes new "
        "results, as its users let it. The last columns are the time of the best of the libraries "
        "that they name over wengert's: above one, wengert is faster. *processor*: the same of the "
        "processor's time, which neighbors on a busy machine disturb less.",
    ]
    threads = 0
    for section in results["sections"]:
        if section["threads"] != threads:
            threads = section["threads"]
            parts.append(f"*On {'one thread' if threads == 1 else f'{threads} threads'}:*")
        parts += workload(section)
        if section["name"] == "large":
            parts += costs(section)
    return "\n\n".join(parts) + "\n"


def workload(section: dict[str, Any]) -> list[str]:
    """Heading, text and table of one workload, and who has no time."""
    from native import page

    cases, peers = section["cases"], section["peers"]
    names = list(dict.fromkeys(n for case in cases for n in case["contestants"]))
    rows: list[list[Any]] = []
    notes: list[str] = []
    for case in cases:
        found = case["contestants"]
        times = {n: c["median"] for n, c in found.items() if "median" in c}
        busy = {n: c["processor"] for n, c in found.items() if "processor" in c}
        cells = [page.duration(times[n]) if n in times else None for n in names]
        rows.append([case["case"], *cells, *(page.over(t, "peer", peers) for t in (times, busy))])
        notes += [
            f"* {case['case']}, {n}: {reason}: {c[reason]}"
            for n, c in found.items()
            for reason in ("wrong", "failed", "skipped", "cannot")
            if reason in c
        ]
    head = ["", *names, " or ".join(peers), "the same, processor"]
    parts = [f"## {section['title']}", section["text"], f"Target: {section['target']}."]
    return [*parts, table(head, rows), *(["\n".join(notes)] if notes else [])]


def costs(section: dict[str, Any]) -> list[str]:
    """What a gradient costs beside the forward run, for each library."""
    times: dict[str, dict[str, dict[str, float]]] = {}
    for case in section["cases"]:
        name, _, way = case["case"].partition(", ")
        times.setdefault(name, {})[way] = {
            n: c["median"] for n, c in case["contestants"].items() if "median" in c
        }
    libraries = list(dict.fromkeys(n for t in times.values() for n in t.get("gradient", {})))
    libraries.sort(key=lambda name: not name.startswith("wengert"))
    rows = []
    for name, found in times.items():
        forward, gradient = found.get("forward", {}), found.get("gradient", {})
        cells: list[Any] = []
        for library in libraries:
            # eager code calls NumPy
            base = forward.get("NumPy" if library.endswith("eager") else library)
            cells.append(gradient[library] / base if library in gradient and base else None)
        rows.append([name, *cells])
    text = "Value and gradient, divided by the same library's forward run; eager: by NumPy's."
    return [text, table(["gradient over forward", *libraries], rows)]


def flags() -> list[str]:
    """Nothing is compiled from C."""
    return []


def main() -> int:
    """Measure, or render; returns 1 if a contestant computed wrong numbers."""
    if not {"--render", "--quick", "--worker", "--seconds"} & set(sys.argv):
        sys.argv += ["--seconds", SECONDS]
    suite = Suite(Path(__file__).resolve(), "linalg_cases", WORKLOADS, PAGE, render, flags)
    return suite.main()


if __name__ == "__main__":
    sys.exit(main())
