"""Every suite of benchmarks in one command: what `make bench` runs.

    python benchmarks/suites.py                 measure all, on one thread and then on all threads,
                                                and write all pages
    python benchmarks/suites.py --only native   some suites only (may be repeated)
    python benchmarks/suites.py --one-thread    nothing on all threads
    python benchmarks/suites.py --quick         small sizes, little time, nothing written
    python benchmarks/suites.py --render        write all pages from what was measured

A suite is a script of this folder that takes ``--quick`` and ``--render`` and writes
results/NAME.json; a new one is found by itself.  One that fails does not stop the others; the
status tells, and its name is printed at the end.  Where processes wait for one another (a loop of
steps, one process for each first call) all threads add nothing, so those are measured on one.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path
from time import perf_counter

HERE = Path(__file__).resolve().parent
NOT_SUITES = ("suites", "overview", "guard")
ONE_THREAD = ("loops", "gradbench")  # steps that wait for one another; published as one thread
THREADS_OPTION = "_suite import"  # whoever stands on it takes --threads


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
            threaded = THREADS_OPTION in script.read_text() and name not in ONE_THREAD
            ways = [[], ["--threads"]] if threaded and not options.one_thread else [[]]
            failed += [f"{name} {' '.join(way)}" for way in ways if not run(script, *quick, *way)]
    if not options.quick:
        failed += rendered(chosen)
    if failed:
        print(f"failed: {', '.join(name.strip() for name in failed)}")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
