"""Convolution and pooling, and a network of them, beside PyTorch and JAX.

    python benchmarks/convolution.py                 measure on one thread, print, write
                                                     results/convolution.json
    python benchmarks/convolution.py --threads       on all threads, beside what was measured on one
    python benchmarks/convolution.py --quick         small sizes, little time, nothing written
    python benchmarks/convolution.py --only NAME     some workloads only (may be repeated); the
                                                     others' results stay as they are
    python benchmarks/convolution.py --render        write docs/benchmarks-convolution.md

Workloads are modules of benchmarks/convolution_cases; how they are run is said in _suite.py.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from _harness import machine_line
from _suite import Suite
from linalg import flags, workload

PAGE = "benchmarks-convolution.md"  # under docs
WORKLOADS = ("layers", "pooling", "network")
SECONDS = "1.0"  # for each case: there are many


def render(results: dict[str, Any]) -> str:
    """Return docs/benchmarks-convolution.md for saved results."""
    parts = [
        "# Benchmarks: convolution",
        "Written by `python benchmarks/convolution.py --render` from "
        "`benchmarks/results/convolution.json`. Read the ratios: times are one machine's.",
        machine_line(results["machine"], results["sections"]),
        "Every contestant computes the same numbers (checked first, to 1e-3, gradients of layers "
        "to 5e-3; one that deviates is not timed), in one process, in turn; a cell is the median. "
        "The last columns are the time of the best of the libraries that they name over wengert's: "
        "above one, wengert is faster. *processor*: the same of the processor's time, which "
        "neighbors on a busy machine disturb less.",
    ]
    threads = 0
    for section in results["sections"]:
        if section["threads"] != threads:
            threads = section["threads"]
            parts.append(f"*On {'one thread' if threads == 1 else f'{threads} threads'}:*")
        parts += workload(section)
    return "\n\n".join(parts) + "\n"


def main() -> int:
    """Measure, or render; returns 1 if a contestant computed wrong numbers."""
    if not {"--render", "--quick", "--worker", "--seconds"} & set(sys.argv):
        sys.argv += ["--seconds", SECONDS]
    suite = Suite(Path(__file__).resolve(), "convolution_cases", WORKLOADS, PAGE, render, flags)
    return suite.main()


if __name__ == "__main__":
    sys.exit(main())
