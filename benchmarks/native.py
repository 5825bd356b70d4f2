"""Native code: value and derivatives beside C written by hand and the peer libraries.

    python benchmarks/native.py                 measure on one thread, print, write
                                                results/native.json
    python benchmarks/native.py --threads       on all threads, beside what was measured on one
    python benchmarks/native.py --quick         small sizes, little time, nothing written
    python benchmarks/native.py --only NAME     some workloads only (may be repeated); the others'
                                                results stay as they are
    python benchmarks/native.py --render        write docs/benchmarks-native.md, and the table of
                                                README.md

Workloads are modules of benchmarks/native, C sources are in benchmarks/c; how they are run is said
in _suite.py.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from _harness import PAGES
from _suite import Suite

PAGE = "benchmarks-native.md"  # under docs
WORKLOADS = (
    "calls", "elementwise", "black_scholes", "reductions", "bandwidth", "mixture", "perceptron",
    "higher", "cold",
)  # fmt: skip


def render(results: dict[str, Any]) -> str:
    """Return docs/benchmarks-native.md for saved results."""
    from native import page

    return page.render(results)


def flags() -> list[str]:
    """What C is compiled with."""
    from native.compiled import FLAGS

    return FLAGS


def main() -> int:
    """Measure, or render; returns 1 if a contestant computed wrong numbers."""
    suite = Suite(Path(__file__).resolve(), "native", WORKLOADS, PAGE, render, flags)
    if "--render" in sys.argv:
        from native import readme

        readme.write(PAGES.parent / "README.md", suite.found())
    return suite.main()


if __name__ == "__main__":
    sys.exit(main())
