"""Run the checks of modules in all processes; the first prints those that fail, as JSON.

    python tests/distributed/run_checks.py [--quick] checks_of_operations ...

With --quick machine code is made in a hurry (tests/machine_code.py), checks that compile most
choose a half or a fourth of their programs, and run derivatives of second order eagerly or compiled
by turns (sampling.py).
"""

from __future__ import annotations

import gc
import importlib
import json
import sys
import traceback

from tests import machine_code
from tests.distributed import sampling

from wengert import distributed


def main(*modules: str) -> None:
    comm = distributed.world()
    failed: dict[str, str] = {}
    for module in modules:
        checks = importlib.import_module(f"tests.distributed.{module}")
        gc.collect(1)
        gc.freeze()  # as tests/conftest.py does
        for name in sorted(n for n in vars(checks) if n.startswith("check_")):
            error = None
            try:
                getattr(checks, name)(comm)
            except Exception:
                error = traceback.format_exc()
            # A process that fails leaves the others waiting; they are compared in another
            # communicator.
            errors = comm.mpi.allgather(error)
            if any(errors):
                found = [f"process {k}: {e}" for k, e in enumerate(errors) if e]
                failed[f"{module}: {name}"] = "\n".join(found)
    if comm.rank == 0:
        print("checks: " + json.dumps(failed), flush=True)


if __name__ == "__main__":
    arguments = sys.argv[1:]
    if arguments[0] == "--quick":
        machine_code.quick_code()
        sampling.step = 4
        arguments = arguments[1:]
    main(*arguments)
