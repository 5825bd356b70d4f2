"""Training: steps of four models, their memory, and the time to the first, beside PyTorch and JAX.

    python benchmarks/learning.py                 measure on one thread, print, write
                                                  results/learning.json
    python benchmarks/learning.py --threads       on all threads, beside what was measured on one
    python benchmarks/learning.py --quick         small sizes, little time, nothing written
    python benchmarks/learning.py --only NAME     some workloads only (may be repeated); the others'
                                                  results stay as they are
    python benchmarks/learning.py --render        write docs/benchmarks-learning.md

Workloads are modules of benchmarks/learning_cases; how they are run is said in _suite.py.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from _harness import machine_line, table
from _suite import Suite
from linalg import flags, workload

PAGE = "benchmarks-learning.md"  # under docs
WORKLOADS = ("steps", "memory", "start")
SECONDS = "3.0"  # for each case


def render(results: dict[str, Any]) -> str:
    """Return docs/benchmarks-learning.md for saved results."""
    parts = [
        "# Benchmarks: learning",
        "Written by `python benchmarks/learning.py --render` from "
        "`benchmarks/results/learning.json`. Read the ratios: times are one machine's.",
        machine_line(results["machine"], results["sections"]),
        "Every contestant begins with the same weights, and the losses of the first six steps are "
        "compared before anything is timed (within 0.5 %, as they are sums in float32). The last "
        "columns are what the best of PyTorch and JAX takes over what wengert takes: above one, "
        "wengert is better. *processor*: the same of the processor's time, which neighbors on a "
        "busy machine disturb less.",
    ]
    threads = 0
    for section in results["sections"]:
        if section["threads"] != threads:
            threads = section["threads"]
            parts.append(f"*On {'one thread' if threads == 1 else f'{threads} threads'}:*")
        parts += {"steps": workload, "memory": memory, "start": start}[section["name"]](section)
    return "\n\n".join(parts) + "\n"


def introduced(section: dict[str, Any]) -> list[str]:
    """Heading, text, target."""
    return [f"## {section['title']}", section["text"], f"Target: {section['target']}."]


def memory(section: dict[str, Any]) -> list[str]:
    """Two tables: the whole of a process, and what came after the import."""
    parts = introduced(section)
    for key, title in (("whole", "whole process, MB"), ("added", "after the import, MB")):
        parts.append(rows_of(section, key, title, lambda x: f"{x:.0f}"))
    return parts


def start(section: dict[str, Any]) -> list[str]:
    """Seconds."""
    return [*introduced(section), rows_of(section, "median", "seconds", lambda x: f"{x:.2f}")]


def rows_of(section: dict[str, Any], key: str, title: str, shown: Any) -> str:
    """A table of one figure, and of the best peer's over ours; why there is none, where so."""
    names = list(dict.fromkeys(n for c in section["cases"] for n in c["contestants"]))
    rows: list[list[Any]] = []
    for case in section["cases"]:
        found = case["contestants"]
        values = {n: c[key] for n, c in found.items() if key in c}
        best = min((values[n] for n in section["peers"] if n in values), default=None)
        ratio = best / values["wengert"] if best and "wengert" in values else None
        cells = [
            shown(values[n])
            if n in values
            else next((c[k] for k in ("failed", "skipped", "wrong") if k in c), None)
            for n in names
            for c in [found.get(n, {})]
        ]
        rows.append([case["case"], *cells, ratio])
    return table([title, *names, "best peer over wengert"], rows)


def main() -> int:
    """Measure, or render; returns 1 if a contestant computed wrong numbers."""
    if not {"--render", "--quick", "--worker", "--seconds", "--once"} & set(sys.argv):
        sys.argv += ["--seconds", SECONDS]
    suite = Suite(Path(__file__).resolve(), "learning_cases", WORKLOADS, PAGE, render, flags)
    return suite.main()


if __name__ == "__main__":
    sys.exit(main())
