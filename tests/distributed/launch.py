"""Programs of several processes in tests: mpirun, found beside the interpreter or in the PATH."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


def mpirun() -> str | None:
    """The program that starts processes, if mpi4py and an MPI library are installed."""
    if importlib.util.find_spec("mpi4py") is None:
        return None
    own = Path(sys.executable).parent / "mpirun"
    return str(own) if own.exists() else shutil.which("mpirun")


def process_of(count: int, script: Path, *arguments: str) -> subprocess.Popen[str]:
    """Start a script in several processes; they are one process group."""
    program = mpirun()
    assert program is not None
    version = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
    options = []
    if "Open MPI" in version.stdout + version.stderr:
        options = ["--allow-run-as-root", "--oversubscribe"]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]),
        "OPENBLAS_NUM_THREADS": "1",
        "OMPI_MCA_mpi_yield_when_idle": "1",  # processes that wait leave the cores to the others
        "OMPI_MCA_btl_vader_single_copy_mechanism": "none",  # not permitted in containers
    }
    command = [program, *options, "-np", str(count), sys.executable, str(script), *arguments]
    return subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment,
        start_new_session=True,
    )


def started(count: int, script: Path, *arguments: str, seconds: float = 120.0) -> Any:
    """Run a script in several processes: its exit status and output; killed after `seconds`."""
    process = process_of(count, script, *arguments)
    try:
        output, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        output, _ = process.communicate()
        output += f"\nkilled after {seconds} s"
    return process.returncode, output


def failures(count: int, *modules: str, seconds: float = 600.0) -> dict[str, str]:
    """The checks in modules of this folder that fail with `count` processes."""
    program = Path(__file__).parent / "run_checks.py"
    status, output = started(count, program, *modules, seconds=seconds)
    for line in output.splitlines():
        if line.startswith("checks: "):
            found: dict[str, str] = json.loads(line.removeprefix("checks: "))
            return found
    return {"the program": f"exit status {status}\n{output[-6000:]}"}
