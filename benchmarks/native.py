"""Native code: value and derivatives beside C written by hand and the peer libraries.

    python benchmarks/native.py                 measure on one thread, print, write
                                                results/native.json
    python benchmarks/native.py --threads       on all threads, beside what was measured on one
    python benchmarks/native.py --quick         small sizes, little time, nothing written
    python benchmarks/native.py --only NAME     some workloads only (may be repeated); the others'
                                                results stay as they are
    python benchmarks/native.py --render        write docs/benchmarks-native.md, and the table of
                                                README.md

Workloads are modules of benchmarks/native, C sources are in benchmarks/c.  A workload runs in a
process of its own, whose environment tells every library how many threads there are; in it all
contestants take turns.  Before anything is timed all of them have computed the same numbers.  A
library that is not installed is skipped by name.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from _harness import PAGES, RESULTS, load, machine, save

PAGE = "benchmarks-native.md"  # under docs
WORKLOADS = (
    "calls", "elementwise", "black_scholes", "reductions", "bandwidth", "mixture", "perceptron",
    "higher", "cold",
)  # fmt: skip
PACKAGES = (
    "wengert", "numpy", "scipy", "llvmlite", "torch", "jax", "jaxlib", "autograd", "pytensor",
    "casadi", "numba",
)  # fmt: skip
SECONDS = 3.0  # for each case
SECONDS_QUICK = 0.3
SECONDS_OF_WORKER = "BENCHMARK_SECONDS"  # the variable that hands the choice to a process


def render(results: dict[str, Any]) -> str:
    """Return docs/benchmarks-native.md for saved results."""
    from native import page

    return page.render(results)


def workload(name: str, threads: int, quick: bool, seconds: float) -> dict[str, Any]:
    """Run one workload in a process of its own."""
    from native.environment import environment

    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "results.json"
        command = [sys.executable, __file__, "--worker", name, str(out)]
        command += ["--quick"] * quick
        variables = environment(threads) | {SECONDS_OF_WORKER: str(seconds)}
        done = subprocess.run(command, env=variables, stdout=sys.stderr, check=False)
        if done.returncode:
            raise SystemExit(f"{name} ended with status {done.returncode}")
        section: dict[str, Any] = json.loads(out.read_text())
    return section


def worker(name: str, out: str, quick: bool) -> None:
    """In the process of a workload: measure, and write to a file."""
    from native import libraries, measure
    from native.environment import threads

    module = importlib.import_module(f"native.{name}")
    if name == "cold":
        cases = module.measure(quick, threads())
    else:
        cases = []
        for case in module.cases(quick):
            cases.append(measure.measure(case, float(os.environ[SECONDS_OF_WORKER])))
            print(f"  {case.name}", flush=True)
    section = {
        "name": name,
        "threads": threads(),
        "title": module.TITLE,
        "text": module.TEXT,
        "target": module.TARGET,
        "peers": getattr(module, "PEERS", None),
        "jit": libraries.has_jit(),
        "cases": cases,
    }
    Path(out).write_text(json.dumps(section))


def collect(names: list[str], threads: int, quick: bool, seconds: float) -> dict[str, Any]:
    """Measure; workloads that are not asked for keep their results; each is saved when done."""
    old = {}
    if not quick and (RESULTS / "native.json").exists():
        old = {(s["name"], s["threads"]): s for s in load("native")["sections"]}
    for name in names:
        print(f"{name}, {threads} thread(s)", file=sys.stderr, flush=True)
        old[name, threads] = workload(name, threads, quick, seconds)
        results = arranged(old)
        if not quick:
            save("native", results)
    return results


def arranged(found: dict[tuple[str, int], dict[str, Any]]) -> dict[str, Any]:
    """Sections in the order of the page, and what they were measured on."""
    from native.compiled import FLAGS

    order = sorted(found, key=lambda key: (key[1], WORKLOADS.index(key[0])))
    sections = [found[key] for key in order]
    return {
        "machine": machine(PACKAGES),
        "compiler": f"gcc {' '.join(f for f in FLAGS if f.startswith(('-O', '-m', '-ff')))}",
        "jit": all(section["jit"] for section in sections),
        "sections": sections,
    }


def main() -> int:
    """Measure, or render; returns 1 if a contestant computed wrong numbers."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, nothing written")
    parser.add_argument("--only", action="append", choices=WORKLOADS, help="some workloads")
    parser.add_argument("--threads", action="store_true", help="all threads instead of one")
    parser.add_argument("--seconds", type=float, help=f"for each case (default {SECONDS:g})")
    parser.add_argument("--render", action="store_true", help=f"write docs/{PAGE}")
    parser.add_argument("--worker", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--cold", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        worker(*options.worker, options.quick)
        return 0
    if options.cold:
        from native import cold

        print(json.dumps(cold.once(*options.cold)))
        return 0
    if options.render:
        from native import readme

        found = load("native") if (RESULTS / "native.json").exists() else None
        readme.write(PAGES.parent / "README.md", found)
        if found is None:
            print("nothing measured yet; `make bench` measures")
            return 0
        (PAGES / PAGE).write_text(render(found))
        print(f"wrote docs/{PAGE}")
        return 0
    threads = (os.cpu_count() or 1) if options.threads else 1
    seconds = options.seconds or (SECONDS_QUICK if options.quick else SECONDS)
    results = collect(options.only or list(WORKLOADS), threads, options.quick, seconds)
    print(render(results))
    if not options.quick:
        print("wrote benchmarks/results/native.json")
    return any(
        "wrong" in contestant
        for section in results["sections"]
        for case in section["cases"]
        for contestant in case["contestants"].values()
    )


if __name__ == "__main__":
    sys.exit(main())
