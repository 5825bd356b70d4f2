"""NPBench's programs, source unchanged: values and gradients beside NumPy, numba, JAX and DaCe.

    NPBENCH=path python benchmarks/npbench.py             measure on one thread, print, write
                                                          results/npbench.json
    NPBENCH=path python benchmarks/npbench.py --check S   whether values and gradients are right,
                                                          at a size (npbench_cases/check.py)
    python benchmarks/npbench.py --render                 write docs/benchmarks-npbench.md

The options of all suites are described in _suite.py.  `NPBENCH` is a checkout of
github.com/spcl/npbench; DACE, for one of the workloads, one of github.com/spcl/dace.  Without
NPBENCH nothing is measured.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from _suite import Suite

PAGE = "benchmarks-npbench.md"  # under docs
WORKLOADS = ("values", "gradients", "dace")
SECONDS = "0.5"  # for each contestant


def render(results: dict[str, Any]) -> str:
    """Return docs/benchmarks-npbench.md for saved results."""
    from npbench_cases import page

    return page.render(results)


def main() -> int:
    """Measure, check or render; returns 1 if a contestant computed wrong numbers."""
    if "--program" in sys.argv:
        from npbench_cases import one_program

        one_program.run(*sys.argv[sys.argv.index("--program") + 1 :])
        return 0
    if "--check" in sys.argv:
        from npbench_cases import check

        return check.main(sys.argv[1:])
    if "--render" not in sys.argv and "NPBENCH" not in os.environ:
        print("nothing is measured: NPBENCH does not name a checkout of github.com/spcl/npbench")
        return 0
    if not {"--render", "--quick", "--worker", "--seconds"} & set(sys.argv):
        sys.argv += ["--seconds", SECONDS]
    script = Path(__file__).resolve()
    return Suite(script, "npbench_cases", WORKLOADS, PAGE, render, lambda: []).main()


if __name__ == "__main__":
    sys.exit(main())
