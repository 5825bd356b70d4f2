"""Processes that check or measure: a crash of one ends neither the others nor the benchmark.

    serve    what a worker does: read names, write a line for each
    run      workers for a list of names, side by side, until a deadline

A worker that ends, or is silent for too long, is replaced by another for the names that are left.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from time import monotonic
from typing import Any

_MARK = "@result "
_SILENT = 150.0  # seconds


def serve(work: Callable[[str], Any]) -> None:
    """Work on the names of standard input, and write the results to standard output."""
    for name in json.loads(sys.stdin.read()):
        line = json.dumps({"name": name, "result": work(name)})
        print(f"\n{_MARK}{line}", flush=True)


def run(
    command: Sequence[str],
    names: Sequence[str],
    jobs: int,
    deadline: float,
    report: Callable[[str, Any], None],
) -> None:
    """Work on names by `jobs` processes, until `monotonic()` is at the deadline.

    Parameters
    ----------
    command : sequence of str
        Starts a worker.
    report : callable
        ``report(name, result)``; a result of ``{"crash": ...}`` is of a worker that ended.
    """
    lock = threading.Lock()

    def locked(name: str, result: Any) -> None:
        with lock:
            report(name, result)

    shares = [names[k::jobs] for k in range(jobs)]
    threads = [
        threading.Thread(target=_supervise, args=(command, share, deadline, locked))
        for share in shares
        if share
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _supervise(
    command: Sequence[str],
    names: Sequence[str],
    deadline: float,
    report: Callable[[str, Any], None],
) -> None:
    pending = list(names)
    while pending and monotonic() < deadline:
        reason = _one_worker(command, pending, deadline, report)
        if pending and monotonic() < deadline:
            report(pending.pop(0), {"crash": reason})


def _one_worker(
    command: Sequence[str],
    pending: list[str],
    deadline: float,
    report: Callable[[str, Any], None],
) -> str:
    """Run a worker to its end; names with results are taken from the list."""
    pipe = subprocess.PIPE
    errors: list[str] = []
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as worker:
        assert worker.stdin is not None and worker.stdout is not None and worker.stderr is not None
        reader = threading.Thread(target=errors.extend, args=(worker.stderr,))
        reader.start()
        worker.stdin.write(json.dumps(pending))
        worker.stdin.close()
        timer = _started(worker, deadline)
        for line in worker.stdout:
            if line.startswith(_MARK):
                timer.cancel()
                found = json.loads(line.removeprefix(_MARK))
                report(found["name"], found["result"])
                pending.remove(found["name"])
                timer = _started(worker, deadline)
        timer.cancel()
        reader.join()
    last = "".join(errors).strip().rsplit("\n", 1)[-1]
    return f"the process ended with status {worker.returncode}. {last}"[:300]


def _started(worker: subprocess.Popen[str], deadline: float) -> threading.Timer:
    timer = threading.Timer(max(min(_SILENT, deadline - monotonic()), 0.0), worker.kill)
    timer.start()
    return timer
