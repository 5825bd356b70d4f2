"""One program in a process of its own: a first call is cold, and a failure is one line of a table.

in_process("values", "cholesky", "S")    what values.one("cholesky", "S") returned there
"""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

LIMIT = 600  # seconds
SCRIPT = Path(__file__).resolve().parent.parent / "npbench.py"


def in_process(module: str, *arguments: str, environment: Any = None) -> dict[str, Any]:
    """Return what ``module.one(*arguments)`` returns in a new process, or why it failed."""
    from native.fresh import write_bytecode  # not in the process that is measured

    write_bytecode()
    command = [sys.executable, str(SCRIPT), "--program", module, *arguments]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=LIMIT, check=False, env=environment
        )
    except subprocess.TimeoutExpired:
        return {"failed": f"not in {LIMIT} s"}
    lines = done.stdout.strip().splitlines()
    if done.returncode == 0 and lines:
        found: dict[str, Any] = json.loads(lines[-1])
        return found
    text = [x for x in done.stderr.strip().splitlines() if x and not x.startswith(" ")]
    return {"failed": text[-1][:300] if text else f"exit status {done.returncode}"}


def run(module: str, *arguments: str) -> None:
    """In the process of a program: print its results."""
    print(json.dumps(importlib.import_module(f"npbench_cases.{module}").one(*arguments)))
