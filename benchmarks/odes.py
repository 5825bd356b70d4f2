"""Differential equations: values, gradients, sensitivities, many trajectories, first calls.

    python benchmarks/odes.py                measure on one thread, print, write
                                             results/odes.json
    python benchmarks/odes.py --quick        few problems, little time, nothing written
    python benchmarks/odes.py --only NAME    some workloads only (may be repeated); the others'
                                             results stay as they are
    python benchmarks/odes.py --seconds 1    less time for each case: less than 5 minutes
    python benchmarks/odes.py --render       write docs/benchmarks-odes.md

Workloads are modules of benchmarks/ode_cases; how they are run is said in _suite.py.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from _suite import Suite

PAGE = "benchmarks-odes.md"  # under docs
WORKLOADS = ("values", "gradients", "sensitivities", "trajectories", "first_calls")


def render(results: dict[str, Any]) -> str:
    """Return docs/benchmarks-odes.md for saved results."""
    from native import page

    agreement = "against an accurate solution: 3e-3 for values, 0.1 for derivatives"
    return page.render(results, "odes", "differential equations", agreement)


def flags() -> list[str]:
    """What C is compiled with; nothing here."""
    from native.compiled import STRICT

    return STRICT


if __name__ == "__main__":
    script, further = Path(__file__).resolve(), ("diffrax", "numbalsoda")
    suite = Suite(script, "ode_cases", WORKLOADS, PAGE, render, flags, further)
    sys.exit(suite.main())
