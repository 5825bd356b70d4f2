"""Derivatives of solutions: roots, minima, sparse systems, random effects, integrals.

    python benchmarks/solvers.py                measure on one thread, print, write
                                                results/solvers.json
    python benchmarks/solvers.py --quick        small sizes, little time, nothing written
    python benchmarks/solvers.py --only NAME    some workloads only (may be repeated); the others'
                                                results stay as they are
    python benchmarks/solvers.py --render       write docs/benchmarks-solvers.md

Workloads are modules of benchmarks/solver_cases; how they are run is said in _suite.py.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from _suite import Suite

PAGE = "benchmarks-solvers.md"  # under docs
WORKLOADS = ("roots", "minima", "systems", "effects", "integrals", "peers")


def render(results: dict[str, Any]) -> str:
    """Return docs/benchmarks-solvers.md for saved results."""
    from native import page

    return page.render(results, "solvers", "derivatives of solutions", "1e-6")


def flags() -> list[str]:
    """What C is compiled with."""
    from native.compiled import STRICT

    return STRICT


if __name__ == "__main__":
    suite = Suite(Path(__file__).resolve(), "solver_cases", WORKLOADS, PAGE, render, flags)
    sys.exit(suite.main())
