"""Python's loops, compiled from source, beside the same programs with `scan` and `while_loop`.

    python benchmarks/plain_loops.py             measure on one thread, print, write
                                                 results/plain_loops.json
    python benchmarks/plain_loops.py --render    write docs/benchmarks-plain-loops.md

Workloads are modules of benchmarks/plain_loop_cases; the options are described in _suite.py.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from _harness import machine_line
from _suite import Suite

PAGE = "benchmarks-plain-loops.md"  # under docs
WORKLOADS = ("evals",)


def render(results: dict[str, Any]) -> str:
    """Return docs/benchmarks-plain-loops.md for saved results."""
    from native import page

    parts = [
        "# Benchmarks: Python's loops",
        "Written by `python benchmarks/plain_loops.py --render` from "
        "`benchmarks/results/plain_loops.json`. Read the ratios: times are one machine's. The last "
        "columns are the time of the functional program, divided by that of the plain one: above "
        "one, the plain loops are faster.",
        machine_line(results["machine"], results["sections"]),
    ]
    for section in results["sections"]:
        parts += page.workload(section)
    return "\n\n".join(parts) + "\n"


def main() -> int:
    """Measure, or render; returns 1 if a contestant computed wrong numbers."""
    script = Path(__file__).resolve()
    return Suite(script, "plain_loop_cases", WORKLOADS, PAGE, render, lambda: []).main()


if __name__ == "__main__":
    sys.exit(main())
