"""Taylor series: derivatives of high order along a line, beside JAX.

    python benchmarks/taylor.py                 measure on one thread, print, write
                                                results/taylor.json
    python benchmarks/taylor.py --quick         small sizes, little time, nothing written
    python benchmarks/taylor.py --only NAME     some workloads only (may be repeated); the others'
                                                results stay as they are
    python benchmarks/taylor.py --render        write docs/benchmarks-taylor.md

Workloads are modules of benchmarks/taylor_cases; how they are run is
said in _suite.py.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from _suite import Suite

PAGE = "benchmarks-taylor.md"  # under docs
WORKLOADS = ("programs",)


def render(results: dict[str, Any]) -> str:
    """Return docs/benchmarks-taylor.md for saved results."""
    from native import page

    return page.render(results, "taylor", "Taylor series", "1e-8")


def flags() -> list[str]:
    """What C is compiled with."""
    from native.compiled import STRICT

    return STRICT


if __name__ == "__main__":
    suite = Suite(Path(__file__).resolve(), "taylor_cases", WORKLOADS, PAGE, render, flags)
    sys.exit(suite.main())
