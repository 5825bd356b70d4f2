"""GradBench's twelve evals: wengert beside C by hand and the peer libraries.

    python benchmarks/gradbench.py                 measure on one thread, print, write
                                                   results/gradbench.json
    python benchmarks/gradbench.py --sizes 99      at all published sizes (by default four of them)
    python benchmarks/gradbench.py --seconds 1     for as long as GradBench does
    python benchmarks/gradbench.py --quick         tiny inputs, nothing written
    python benchmarks/gradbench.py --only NAME     some evals only (may be repeated); the others'
                                                   results stay as they are
    python benchmarks/gradbench.py --render        write docs/benchmarks-gradbench.md

Programs, inputs and contestants are in benchmarks/gradbench, C sources in benchmarks/c/gradbench.
Each eval is measured in a process of its own (_suite.py).  GradBench's own evals, from a checkout
of it, are run by ``GRADBENCH=path make gradbench``.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

from _suite import SECONDS_OF_WORKER, Suite

PAGE = "benchmarks-gradbench.md"  # under docs
EVALS = (
    "hello", "llsq", "lse", "det", "kmeans", "gmm", "ode", "ba", "ht", "lstm", "particle", "saddle",
)  # fmt: skip
SECONDS = 0.2  # for each contestant at each size
SIZES = 4


class Evals(Suite):
    """A suite whose workloads are evals, timed by GradBench's rules."""

    def parser(self) -> argparse.ArgumentParser:
        """The options of every suite, and how many sizes."""
        parser = super().parser()
        parser.add_argument("--sizes", type=int, default=SIZES, help=f"how many (default {SIZES})")
        parser.set_defaults(seconds=SECONDS)
        return parser

    def arranged(self, found: dict[tuple[str, int], dict[str, Any]]) -> dict[str, Any]:
        """Sections, beside what GradBench's own evals have said (gradbench/checkout.py)."""
        own = (self.found() or {}).get("own")
        return super().arranged(found) | ({"own": own} if own else {})

    def worker(self, name: str, out: str, quick: bool) -> None:
        """In the process of an eval: measure, and write to a file."""
        import importlib

        from gradbench import measure
        from native import libraries
        from native.environment import threads

        case = importlib.import_module(f"gradbench.cases.{name}")
        section = {
            "name": name,
            "threads": threads(),
            "title": case.TITLE,
            "text": case.TEXT,
            "jit": libraries.has_jit(),
            "seconds": float(os.environ[SECONDS_OF_WORKER]),
            "cases": measure.measure(name, quick, float(os.environ[SECONDS_OF_WORKER])),
        }
        Path(out).write_text(json.dumps(section))


def render(results: dict[str, Any]) -> str:
    """Return docs/benchmarks-gradbench.md for saved results."""
    from gradbench import page

    return page.render(results)


def flags() -> list[str]:
    """What C is compiled with."""
    from native.compiled import STRICT

    return STRICT


if __name__ == "__main__":
    suite = Evals(Path(__file__).resolve(), "gradbench.cases", EVALS, PAGE, render, flags)
    os.environ["GRADBENCH_SIZES"] = str(suite.parser().parse_args().sizes)
    sys.exit(suite.main())
