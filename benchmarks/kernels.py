"""The three kernels of an ocean model that pyhpc-benchmarks times, with their adjoints.

    python benchmarks/kernels.py                 measure on one thread, print, write
                                                 results/kernels.json
    python benchmarks/kernels.py --threads       on all threads, beside what was measured on one
    python benchmarks/kernels.py --quick         small sizes, little time, nothing written
    python benchmarks/kernels.py --only NAME     some workloads only (may be repeated); the others'
                                                 results stay as they are
    python benchmarks/kernels.py --render        write docs/benchmarks-kernels.md

Workloads are modules of benchmarks/kernel_cases, C sources are in benchmarks/c; how they are run
is said in _suite.py.  pyhpc-benchmarks (Häfner and Vicentini) times values; here the adjoints are
timed, too.  Programs are ours, written from the papers that each module names; they give the
numbers of that suite's NumPy kernels to rounding (seen once, with the version of 2021).
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from _suite import Suite

PAGE = "benchmarks-kernels.md"  # under docs
WORKLOADS = ("state", "mixing", "turbulence", "orders")
SECONDS = "2.0"  # for each case


def render(results: dict[str, Any]) -> str:
    """Return docs/benchmarks-kernels.md for saved results."""
    from native import page

    agreement = "1e-10 of the volume, 1e-8 of other values, 1e-7 of adjoints"
    return page.render(results, "kernels", "kernels of an ocean model, and orders", agreement)


def flags() -> list[str]:
    """What C is compiled with."""
    from native.compiled import FLAGS

    return FLAGS


def main() -> int:
    """Measure, or render; returns 1 if a contestant computed wrong numbers."""
    if not {"--render", "--quick", "--worker", "--seconds", "--once"} & set(sys.argv):
        sys.argv += ["--seconds", SECONDS]
    suite = Suite(Path(__file__).resolve(), "kernel_cases", WORKLOADS, PAGE, render, flags)
    return suite.main()


if __name__ == "__main__":
    sys.exit(main())
