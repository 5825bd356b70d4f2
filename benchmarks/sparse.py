"""Jacobians and Hessians with few entries, and sparse arrays, beside C by hand and the peers.

    python benchmarks/sparse.py                 measure on one thread, print, write
                                                results/sparse.json
    python benchmarks/sparse.py --quick         small sizes, little time, nothing written
    python benchmarks/sparse.py --only NAME     some workloads only (may be repeated); the others'
                                                results stay as they are
    python benchmarks/sparse.py --render        write docs/benchmarks-sparse.md

Workloads are modules of benchmarks/sparse_cases, C sources are in benchmarks/c; how they are run is
said in _suite.py.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from _suite import Suite

PAGE = "benchmarks-sparse.md"  # under docs
WORKLOADS = ("brusselator", "rosenbrock", "power_flow", "products")


def render(results: dict[str, Any]) -> str:
    """Return docs/benchmarks-sparse.md for saved results."""
    from native import page

    return page.render(results, "sparse", "sparse derivatives", "1e-12")


def flags() -> list[str]:
    """What C is compiled with."""
    from native.compiled import STRICT

    return STRICT


if __name__ == "__main__":
    suite = Suite(Path(__file__).resolve(), "sparse_cases", WORKLOADS, PAGE, render, flags)
    sys.exit(suite.main())
