"""Bayesian models of posteriordb: log-densities with gradients, beside Stan and JAX.

    POSTERIORDB=path python benchmarks/posteriors.py    measure on one thread, print, write
                                                        results/posteriors.json
    POSTERIORDB=path python benchmarks/posteriors.py --means
                                                        whether nutpie's means are the reference
                                                        means (posterior_cases/means.py)
    python benchmarks/posteriors.py --render            write docs/benchmarks-posteriors.md

The options of all suites are described in _suite.py.  `POSTERIORDB` is a checkout of
github.com/stan-dev/posteriordb, which has the data and the Stan programs.  Without it nothing is
measured.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from _suite import Suite

PAGE = "benchmarks-posteriors.md"  # under docs
WORKLOADS = ("gradients",)


def render(results: dict[str, Any]) -> str:
    """Return docs/benchmarks-posteriors.md for saved results."""
    from native import page

    return page.render(results, "posteriors", "Bayesian models")


def main() -> int:
    """Measure, check or render; returns 1 if a contestant computed wrong numbers."""
    if "--render" not in sys.argv and "POSTERIORDB" not in os.environ:
        print("nothing is measured: POSTERIORDB does not name a checkout of stan-dev/posteriordb")
        return 0
    if "--means" in sys.argv:
        from posterior_cases import means

        return means.main()
    script = Path(__file__).resolve()
    further = ("stanli",)
    return Suite(script, "posterior_cases", WORKLOADS, PAGE, render, lambda: [], further).main()


if __name__ == "__main__":
    sys.exit(main())
