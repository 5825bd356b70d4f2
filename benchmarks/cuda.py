"""Graphics cards: correctness of all operations on a card, and workloads beside PyTorch and JAX.

    python benchmarks/cuda.py                  check and measure, in at most ten minutes; write
                                               results/cuda.json and docs/benchmarks-cuda.md
    python benchmarks/cuda.py --part page      the page of the results; before a run it says so
    python benchmarks/cuda.py --part checks    the checks only; --part speed
    python benchmarks/cuda.py --resume         what the last run had no time for
    python benchmarks/cuda.py --emulate        the same on the emulated device: no times
    python benchmarks/cuda.py --quick          small sizes, some operations

It needs CuPy and a card; PyTorch and JAX are measured if they have CUDA. Results are written as
they come. With --quick or --emulate nothing is written, unless --results and --page say where.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from time import monotonic
from typing import Any

from _harness import PAGES, RESULTS, machine

PACKAGES = (
    "wengert", "numpy", "cupy-cuda12x", "cupy-cuda13x", "llvmlite", "torch", "jax",
)  # fmt: skip
PARTS = ("checks", "speed")
JOBS = 8  # processes that check; more do not fit beside each other on a card
SHARE = 0.45  # of the minutes for the checks, if both parts run


def main(arguments: Sequence[str]) -> int:
    """The exit status: 0 if nothing differs."""
    options = parsed(arguments)
    if options.worker:
        work(options)
        return 0
    os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"  # JAX leaves memory to the others
    results = started(options)
    if options.part != "page":
        deadlines = {"checks": 60 * options.minutes, "speed": 60 * options.minutes}
        if options.part == "all":
            deadlines["checks"] *= SHARE
        start = monotonic()
        for part in PARTS:
            if options.part in (part, "all"):
                fill(results, part, options, start + deadlines[part])
    from cuda_cases.page import render

    page = render(results)
    print(page)
    if options.page is not None:
        options.page.write_text(page, encoding="utf-8")
    return int(differs(results))


def parsed(arguments: Sequence[str]) -> argparse.Namespace:
    """The options."""
    parser = argparse.ArgumentParser(description="Graphics cards.")
    parser.add_argument("--part", choices=(*PARTS, "page", "all"), default="all")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--jobs", type=int, default=min(JOBS, os.cpu_count() or 1))
    parser.add_argument("--only", nargs="*", help="names of workloads and operations")
    for flag in ("--quick", "--emulate", "--resume"):
        parser.add_argument(flag, action="store_true")
    parser.add_argument("--results", type=Path)
    parser.add_argument("--page", type=Path)
    parser.add_argument("--worker", choices=PARTS, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if not (options.quick or options.emulate):
        options.results = options.results or RESULTS / "cuda.json"
        options.page = options.page or PAGES / "benchmarks-cuda.md"
    return options


def started(options: argparse.Namespace) -> dict[str, Any]:
    """Results of an earlier run that is resumed, or empty ones."""
    keeps = options.resume or options.part != "all"
    if keeps and options.results is not None and options.results.exists():
        found: dict[str, Any] = json.loads(options.results.read_text())
        return found
    card = "emulated by the processor"
    if options.part == "page":
        card = None
    elif not options.emulate:
        from cuda_cases.measure import card_name

        card = card_name()
    empty = {"copy": None, "checks": {}, "speed": {}, "pending": []}
    return {"machine": machine(PACKAGES), "card": card, **empty}


def fill(results: dict[str, Any], part: str, options: argparse.Namespace, deadline: float) -> None:
    """Run a part, as far as there is time; a part that is not resumed begins anew."""
    from cuda_cases import correctness, workers, workloads

    names = correctness.names(options.quick) if part == "checks" else list(workloads.WORKLOADS)
    if options.only:
        names = [name for name in names if name in options.only]
    if not options.resume:
        results[part] = {}
    found = results[part]
    left = [name for name in names if name not in found]

    def report(name: str, result: Any) -> None:
        found[name] = result
        if part == "speed":
            results["copy"] = result.get("copy", results["copy"])
        print(f"{name}: {result}", file=sys.stderr)
        results["pending"] = [n for n in results["pending"] if n not in found]
        write(results, options.results)

    results["pending"] = [n for n in results["pending"] if n not in names] + left
    if options.jobs:
        flags = [f"--{name}" for name in ("quick", "emulate") if vars(options)[name]]
        command = [sys.executable, str(Path(__file__).resolve()), "--worker", part, *flags]
        jobs = options.jobs if part == "checks" else 1
        workers.run(command, left, jobs, deadline, report)
    else:
        with device(options):
            for name in left:
                report(name, worker(part, options)(name))
    write(results, options.results)


def write(results: dict[str, Any], path: Path | None) -> None:
    """Write the results, all or nothing."""
    if path is not None:
        path.parent.mkdir(exist_ok=True)
        beside = path.with_suffix(".part")
        beside.write_text(json.dumps(results, indent=1) + "\n")
        beside.replace(path)


def device(options: argparse.Namespace) -> Any:
    """The block in which the emulated device is used."""
    from wengert.backends import emulated_device

    return emulated_device(threads=64) if options.emulate else contextlib.nullcontext()


def worker(part: str, options: argparse.Namespace) -> Callable[[str], Any]:
    """The work on one name."""
    from cuda_cases import correctness, measure, workloads

    if part == "checks":
        return correctness.checked
    speeds: list[float | None] = [] if not options.emulate else [None]

    def row(name: str) -> Any:
        if not speeds:
            speeds.append(measure.copy_speed(1e6 if options.quick else 1e8))
        workload = workloads.WORKLOADS[name]
        found = measure.measured(workload, options.quick, options.emulate, speeds[0])
        return {**found, "copy": speeds[0]}

    return row


def work(options: argparse.Namespace) -> None:
    """Be a worker."""
    from cuda_cases import workers

    with device(options):
        workers.serve(worker(options.worker, options))


def differs(results: dict[str, Any]) -> bool:
    """Whether a check failed, signs of vectors apart, or a workload had other results."""
    from cuda_cases.correctness import SIGNS

    checks = [name for name, x in results["checks"].items() if x and name not in SIGNS]
    return bool(checks) or any("crash" in row for row in results["speed"].values())


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    sys.exit(main(sys.argv[1:]))
