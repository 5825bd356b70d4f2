"""Every suite of benchmarks in one command: what `make bench` runs.

    python benchmarks/suites.py                 measure all, on one thread and then on all threads,
                                                and write all pages
    python benchmarks/suites.py --only native   some suites only (may be repeated)
    python benchmarks/suites.py --one-thread    nothing on all threads
    python benchmarks/suites.py --quick         small sizes, little time, nothing written
    python benchmarks/suites.py --render        write all pages from what was measured

A suite is a script of this folder that takes ``--quick`` and ``--render`` and writes
results/NAME.json; a new one is found by itself.  One that fails does not stop the others; the
status tells, and its name is printed at the end.  Where more threads have nothing to do (steps of a
loop, calls of a few numbers, first calls, memory) one thread is measured alone.
"""

from __future__ import annotations

import argparse
import importlib.util
import subprocess
import sys
from pathlib import Path
from time import perf_counter

HERE = Path(__file__).resolve().parent
NOT_SUITES = ("suites", "overview", "guard", "opf", "s2mpj", "cuda", "cuda_traffic")
ALONE = {  # on one thread only: whole suites, or some of their workloads
    "loops": None, "growth": None, "sparse": None, "taylor": None,
    "solvers": None, "odes": None, "posteriors": None,
    "gradbench": None,  # its rules
    "distributed": None,  # one thread for each process
    "native": ("calls", "higher", "cold"), "learning": ("memory", "start"), "kernels": ("orders",),
}  # fmt: skip


def suites() -> dict[str, Path]:
    """All scripts, by name."""
    return {p.stem: p for p in sorted(HERE.glob("[a-z]*.py")) if p.stem not in NOT_SUITES}


def run(script: Path, *options: str) -> bool:
    """Run one; whether it went well."""
    begin = perf_counter()
    print(f"==== {script.stem} {' '.join(options)}", flush=True)
    status = subprocess.run([sys.executable, str(script), *options], check=False).returncode
    minutes = (perf_counter() - begin) / 60
    print(
        f"==== {script.stem}: {'well' if not status else 'FAILED'}, {minutes:.1f} min", flush=True
    )
    return not status


def on_all_threads(script: Path) -> list[str] | None:
    """The options that measure a suite on all threads; None if there is nothing to measure so."""
    alone = ALONE.get(script.stem, ())
    spec = importlib.util.spec_from_file_location(f"suite_{script.stem}", script)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    workloads = getattr(module, "WORKLOADS", ())
    if alone is None or not workloads:
        return None
    chosen = [name for name in workloads if name not in alone]
    return ["--threads", *(word for name in chosen for word in ("--only", name))]


def rendered(chosen: dict[str, Path]) -> list[str]:
    """Write the pages; names of those that failed."""
    pages = [*chosen.values(), HERE / "overview.py"]
    return [script.stem for script in pages if not run(script, "--render")]


def main() -> int:
    """Measure, or render; 1 if something failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", action="append", choices=sorted(suites()), help="some only")
    parser.add_argument("--quick", action="store_true", help="small sizes, nothing written")
    parser.add_argument("--one-thread", action="store_true", help="nothing on all threads")
    parser.add_argument("--render", action="store_true", help="write pages, measure nothing")
    options = parser.parse_args()
    found = suites()
    chosen = {name: found[name] for name in options.only or found}
    failed: list[str] = []
    if not options.render:
        quick = ["--quick"] * options.quick
        for name, script in chosen.items():
            more = None if options.one_thread else on_all_threads(script)
            ways = [[]] if more is None else [[], more]
            failed += [f"{name} {' '.join(way)}" for way in ways if not run(script, *quick, *way)]
    if not options.quick:
        failed += rendered(chosen)
    if failed:
        print(f"failed: {', '.join(name.strip() for name in failed)}")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
