"""Loops: value and derivatives beside C written by hand and the peer libraries.

    python benchmarks/loops.py                 measure on one thread, print, write
                                               results/loops.json
    python benchmarks/loops.py --quick         small sizes, little time, nothing written
    python benchmarks/loops.py --only NAME     some workloads only (may be repeated); the others'
                                               results stay as they are
    python benchmarks/loops.py --render        write docs/benchmarks-loops.md, and README's sentence

Workloads are modules of benchmarks/loop_cases, C sources are in benchmarks/c; how they are run is
said in _suite.py.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from _harness import PAGES
from _suite import Suite

PAGE = "benchmarks-loops.md"  # under docs
WORKLOADS = ("lorenz", "kalman", "garch", "lstm", "nested", "rules", "lengths", "memory")


def render(results: dict[str, Any]) -> str:
    """Return docs/benchmarks-loops.md for saved results."""
    from native import page

    agreement = "1e-10 in float64, 5e-3 in float32"
    return page.render(results, "loops", "loops", agreement)


def flags() -> list[str]:
    """What C is compiled with."""
    from native.compiled import STRICT

    return STRICT


def main() -> int:
    """Measure, or render; returns 1 if a contestant computed wrong numbers."""
    suite = Suite(Path(__file__).resolve(), "loop_cases", WORKLOADS, PAGE, render, flags)
    if "--render" in sys.argv:
        from native import readme

        readme.write(PAGES.parent / "README.md", suite.found(), readme.said)
    return suite.main()


if __name__ == "__main__":
    sys.exit(main())
