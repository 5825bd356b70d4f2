"""Run the checks of a module in all processes; the first prints those that fail, as JSON."""

from __future__ import annotations

import importlib
import json
import sys
import traceback

from wengert import distributed


def main(module: str) -> None:
    comm = distributed.world()
    checks = importlib.import_module(f"tests.distributed.{module}")
    failed: dict[str, str] = {}
    for name in sorted(n for n in vars(checks) if n.startswith("check_")):
        error = None
        try:
            getattr(checks, name)(comm)
        except Exception:
            error = traceback.format_exc()
        # A process that fails leaves the others waiting; they are compared in another communicator.
        errors = comm.mpi.allgather(error)
        if any(errors):
            failed[name] = "\n".join(f"process {k}: {e}" for k, e in enumerate(errors) if e)
    if comm.rank == 0:
        print("checks: " + json.dumps(failed), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
