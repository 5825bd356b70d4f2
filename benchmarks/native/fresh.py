"""A measurement in a process of its own: the first call of a function, timed there.

A script of a suite runs itself again, `SUITE.py --once MODULE ...`, and the module's function
``once`` prints what it measured as JSON.  So nothing that another contestant imported, allocated or
compiled is there.

    timed     time the first call and a second one, in this process
    process   run ``once`` of a module in a fresh process
    repeated  so for several contestants in turn, with nothing kept on disk
    agreed    contestants whose numbers agree, by name; for the others the reason
"""

from __future__ import annotations

import compileall
import functools
import importlib.util
import json
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np

from . import elsewhere, libraries
from .case import Call
from .environment import environment
from .measure import arrays, deviation, middle

LIMIT = 100  # seconds for one process


def started(library: str) -> None:
    """Import a library and start what it starts once."""
    if library.startswith("JAX"):
        libraries.jax().numpy.zeros(1).block_until_ready()
    elif library.startswith("torch"):
        libraries.torch().zeros(1)
    else:
        __import__(library.partition(",")[0].lower())


def timed(make: Callable[[], Call], library: str) -> dict[str, Any]:
    """Time the first call, and a second one; the library is imported before."""
    started(library)

    def run(call: Call) -> Any:
        result = call.function(*call.arguments)
        return call.ready(result) if call.ready else result

    cpu, begin = process_time(), perf_counter()
    call = make()
    result = run(call)
    first, busy = perf_counter() - begin, process_time() - cpu
    begin = perf_counter()
    run(call)
    again = perf_counter() - begin
    numbers = [[float(a.sum()), float(np.linalg.norm(a)), *a[:5]] for a in arrays(result)]
    return {"first": first, "processor": busy, "again": again, "numbers": numbers}


def process(
    script: str, arguments: Sequence[str], variables: Mapping[str, str], limit: float = LIMIT
) -> dict[str, Any]:
    """Run ``once`` of a module, ``arguments[0]``, in a fresh process."""
    write_bytecode()
    path = Path(__file__).resolve().parent.parent / script
    command = [elsewhere.python(arguments[-1]), str(path), "--once", *arguments]
    try:
        done = subprocess.run(
            command, env=dict(variables), capture_output=True, text=True, timeout=limit, check=False
        )
    except subprocess.TimeoutExpired:
        return {"failed": f"more than {limit:g} s"}
    lines = done.stdout.strip().splitlines()
    if done.returncode or not lines:
        error = (done.stderr.strip().splitlines() or ["?"])[-1][:300]
        missing = error.startswith("ModuleNotFoundError")
        return {"skipped" if missing else "failed": error}
    return dict(json.loads(lines[-1]))


@functools.cache
def write_bytecode() -> None:
    """Let wengert have its bytecode beside its source, as every package has that pip installs.

    A checkout may have none (PYTHONDONTWRITEBYTECODE), and then each process compiles all of it.
    """
    found = importlib.util.find_spec("wengert")
    folders = list((found and found.submodule_search_locations) or ())
    for folder in [*folders, Path(__file__).parent.parent]:
        compileall.compile_dir(folder, quiet=2)


def repeated(
    script: str, module: str, what: str, names: Sequence[str], threads: int, repetitions: int
) -> dict[str, list[Any]]:
    """Run ``once(what, name)`` of a module for all names in turn, each in a fresh process."""
    samples: dict[str, list[Any]] = {name: [] for name in names}
    for _ in range(repetitions):
        for name, group in samples.items():
            with tempfile.TemporaryDirectory() as folder:
                variables = environment(threads, fresh=folder, keep=False)
                group.append(process(script, [module, what, name], variables))
    return samples


def agreed(
    samples: Mapping[str, Sequence[Any]], within: float, of: Callable[[Sequence[Any]], Any]
) -> dict[str, Any]:
    """What `of` makes of the samples of each contestant, or why there is nothing."""
    numbers = {
        name: [[np.array(a) for a in s["numbers"]] for s in group if "numbers" in s]
        for name, group in samples.items()
    }
    right = middle(every) if (every := [n for group in numbers.values() for n in group]) else []
    contestants: dict[str, Any] = {}
    for name, group in samples.items():
        bad = [s for s in group if "numbers" not in s]
        off = max([deviation(n, right) for n in numbers[name]], default=0.0)
        if bad:
            contestants[name] = bad[0]
        else:
            contestants[name] = {"wrong": off} if off > within else of(group)
    return contestants
