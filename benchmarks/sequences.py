"""Sequence models: value and gradient of an LSTM beside JAX and PyTorch; steps are in learning.py.

    python benchmarks/sequences.py                 measure on one thread, print, write
                                                   results/sequences.json
    python benchmarks/sequences.py --threads       on all threads, beside what was measured on one
    python benchmarks/sequences.py --quick         small sizes, little time, nothing written
    python benchmarks/sequences.py --only NAME     some workloads only (may be repeated); the
                                                   others' results stay as they are
    python benchmarks/sequences.py --render        write docs/benchmarks-sequences.md

Workloads are modules of benchmarks/sequence_cases; how they are run is said in _suite.py.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from _harness import machine_line
from _suite import Suite

PAGE = "benchmarks-sequences.md"  # under docs
WORKLOADS = ("lstm",)


def render(results: dict[str, Any]) -> str:
    """Return docs/benchmarks-sequences.md for saved results."""
    from linalg import workload

    parts = [
        "# Benchmarks: sequence models",
        "Written by `python benchmarks/sequences.py --render` from "
        "`benchmarks/results/sequences.json`. Read the ratios: times are one machine's.",
        machine_line(results["machine"]),
        "Every contestant begins with the same weights and computes the same numbers (checked "
        "first: within 0.5 %, as they are sums in float32; one that deviates is not timed), in one "
        "process, in turn; a cell is the median. The last columns are the time of the best of the "
        "libraries that they name over wengert's: above one, wengert is faster. *processor*: the "
        "same of the processor's time, which neighbors on a busy machine disturb less.",
    ]
    threads = 0
    for section in results["sections"]:
        if section["threads"] != threads:
            threads = section["threads"]
            parts.append(f"*On {'one thread' if threads == 1 else f'{threads} threads'}:*")
        parts += workload(section)
    return "\n\n".join(parts) + "\n"


def flags() -> list[str]:
    """Nothing is compiled from C."""
    return []


if __name__ == "__main__":
    suite = Suite(Path(__file__).resolve(), "sequence_cases", WORKLOADS, PAGE, render, flags)
    sys.exit(suite.main())
