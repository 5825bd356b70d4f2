"""A suite of workloads, each measured in a process of its own: what native.py and loops.py share.

    python benchmarks/SUITE.py                 measure on one thread, print, write
                                               results/SUITE.json
    python benchmarks/SUITE.py --threads       on all threads, beside what was measured on one
    python benchmarks/SUITE.py --quick         small sizes, little time, nothing written
    python benchmarks/SUITE.py --only NAME     some workloads only (may be repeated); the others'
                                               results stay as they are
    python benchmarks/SUITE.py --render        write the page of the suite under docs

A workload is a module of the suite's package.  It runs in a process of its own, whose environment
tells every library how many threads there are; in it all contestants take turns.  Before anything
is timed all of them have computed the same numbers.  A library that is not installed is skipped by
name.

Rendering needs the standard library only, so what needs more is imported when it measures.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from _harness import PAGES, RESULTS, load, machine, save

PACKAGES = (
    "wengert", "numpy", "scipy", "llvmlite", "torch", "jax", "jaxlib", "autograd", "pytensor",
    "casadi", "numba",
)  # fmt: skip
SECONDS = 3.0  # for each case
SECONDS_QUICK = 0.3
SECONDS_OF_WORKER = "BENCHMARK_SECONDS"  # the variable that hands the choice to a process


class WorkloadError(RuntimeError):
    """The process of a workload failed; what it says is on the standard error."""


def measured(machine: Mapping[str, Any]) -> list[str]:
    """When and where, which the page says of sections that are not of its last run."""
    return [machine["date"], machine["cpu"]]


@dataclass(frozen=True)
class Suite:
    """What one script measures.

    name, package : of its results and of its page; of the folder of its workloads.
    workloads : in the order of the page.
    render : from saved results to the text of the page.
    flags : of the compiler that the page names, from the list with which C is compiled.
    further : libraries that this suite alone measures.
    """

    script: Path
    package: str
    workloads: tuple[str, ...]
    page: str
    render: Callable[[dict[str, Any]], str]
    flags: Callable[[], list[str]]
    further: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Of the results."""
        return self.script.stem

    def found(self) -> dict[str, Any] | None:
        """Saved results."""
        return load(self.name) if (RESULTS / f"{self.name}.json").exists() else None

    def workload(self, name: str, threads: int, quick: bool, seconds: float) -> dict[str, Any]:
        """Run one workload in a process of its own."""
        from native.environment import environment

        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "results.json"
            command = [sys.executable, str(self.script), "--worker", name, str(out)]
            command += ["--quick"] * quick
            variables = environment(threads) | {SECONDS_OF_WORKER: str(seconds)}
            done = subprocess.run(command, env=variables, stdout=sys.stderr, check=False)
            if done.returncode:
                raise WorkloadError(f"{name} ended with status {done.returncode}")
            section: dict[str, Any] = json.loads(out.read_text())
        return section

    def worker(self, name: str, out: str, quick: bool) -> None:
        """In the process of a workload: measure, and write to a file."""
        from native import elsewhere, libraries, measure
        from native.environment import threads

        module = importlib.import_module(f"{self.package}.{name}")
        if hasattr(module, "cases"):
            cases = []
            workers = elsewhere.Workers(self.package, name, quick)
            for case in module.cases(quick):
                placed = workers.placed(case)
                cases.append(measure.measure(placed, float(os.environ[SECONDS_OF_WORKER])))
                print(f"  {case.name}", flush=True)
            workers.close()
        else:
            cases = module.measure(quick, threads())
        section = {
            "name": name,
            "threads": threads(),
            "title": module.TITLE,
            "text": module.TEXT,
            "target": module.TARGET,
            "peers": getattr(module, "PEERS", None),
            "jit": libraries.has_jit(),
            "measured": measured(machine(())),
            "cases": cases,
        }
        Path(out).write_text(json.dumps(section))

    def collect(
        self, names: list[str], threads: int, quick: bool, seconds: float
    ) -> tuple[dict[str, Any], list[str]]:
        """Measure; workloads not asked for keep their results; each is saved when done.

        One that fails keeps its results too, and does not keep the others from being measured.
        """
        before = None if quick else self.found()
        old = {(s["name"], s["threads"]): s for s in before["sections"]} if before else {}
        for section in old.values():
            section.setdefault("measured", measured(before["machine"]))
        failed: list[str] = []
        for name in names:
            print(f"{name}, {threads} thread(s)", file=sys.stderr, flush=True)
            try:
                old[name, threads] = self.workload(name, threads, quick, seconds)
            except WorkloadError as error:
                print(error, file=sys.stderr, flush=True)
                failed.append(name)
            if old and not quick:
                save(self.name, self.arranged(old))
        return self.arranged(old), failed

    def arranged(self, found: dict[tuple[str, int], dict[str, Any]]) -> dict[str, Any]:
        """Sections in the order of the page, and what they were measured on."""
        from native import elsewhere

        order = sorted(found, key=lambda key: (key[1], self.workloads.index(key[0])))
        sections = [found[key] for key in order]
        flags = [f for f in self.flags() if f.startswith(("-O", "-m", "-ff"))]
        return {
            "machine": elsewhere.versions(machine((*PACKAGES, *self.further))),
            "compiler": f"gcc {' '.join(flags)}",
            "load": round(os.getloadavg()[1], 1),  # of five minutes, this run included
            "jit": all(section["jit"] for section in sections),
            "sections": sections,
        }

    def parser(self) -> argparse.ArgumentParser:
        """The options."""
        parser = argparse.ArgumentParser(description=f"Measure, or render docs/{self.page}.")
        parser.add_argument("--quick", action="store_true", help="small sizes, nothing written")
        parser.add_argument("--only", action="append", choices=self.workloads, help="some only")
        parser.add_argument("--threads", action="store_true", help="all threads instead of one")
        parser.add_argument("--seconds", type=float, help=f"for each case (default {SECONDS:g})")
        parser.add_argument("--render", action="store_true", help=f"write docs/{self.page}")
        parser.add_argument("--worker", nargs=2, help=argparse.SUPPRESS)
        parser.add_argument("--once", nargs="+", help=argparse.SUPPRESS)
        return parser

    def main(self) -> int:
        """Measure, or render; returns 1 if a contestant computed wrong numbers."""
        options = self.parser().parse_args()
        if options.worker:
            self.worker(*options.worker, options.quick)
            return 0
        if options.once:
            module = importlib.import_module(f"{self.package}.{options.once[0]}")
            print(json.dumps(module.once(*options.once[1:])))
            return 0
        if options.render:
            found = self.found()
            if found is None:
                print("nothing measured yet; `make bench` measures")
                return 0
            (PAGES / self.page).write_text(self.render(found), encoding="utf-8")
            print(f"wrote docs/{self.page}")
            return 0
        threads = (os.cpu_count() or 1) if options.threads else 1
        seconds = options.seconds or (SECONDS_QUICK if options.quick else SECONDS)
        names = options.only or list(self.workloads)
        results, failed = self.collect(names, threads, options.quick, seconds)
        print(self.render(results))
        if not options.quick:
            print(f"wrote benchmarks/results/{self.name}.json")
        return bool(failed) or any(
            "wrong" in contestant
            for section in results["sections"]
            for case in section["cases"]
            for contestant in case["contestants"].values()
        )
