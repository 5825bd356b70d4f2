"""The adapter: answers GradBench's messages, one JSON object a line, over standard streams.

    PYTHONPATH=src:benchmarks python -m gradbench.tool

    start      answers with the tool's name
    define     imports the module of the eval: answers whether there is one
    evaluate   makes a task of the input, runs it once (which compiles it: "prepare"), then as often
               as min_runs and min_seconds ask; answers with the output and all times ("evaluate")
    others     are acknowledged

An input without min_runs and min_seconds is evaluated once.  What goes wrong is answered as an
error with its traceback, and the next message is read.  One thread is used unless ``--threads``
says otherwise, as the others' tools do.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import traceback
from collections.abc import Iterable, Iterator
from importlib import import_module
from time import perf_counter_ns
from typing import Any


def respond(messages: Iterable[str]) -> Iterator[dict[str, Any]]:
    """The response to each message."""
    for line in messages:
        message = json.loads(line)
        answer = {"start": start, "define": define, "evaluate": evaluate}.get(message["kind"])
        response: dict[str, Any] = {"id": message["id"]}
        if answer is not None:
            try:
                response |= answer(message)
            except Exception:  # of whatever kind: the protocol has a place for it
                response |= {"success": False, "error": traceback.format_exc()}
        yield response


def start(message: dict[str, Any]) -> dict[str, Any]:
    """The tool's name and version."""
    import wengert

    return {"tool": "wengert", "config": {"version": wengert.__version__}}


def functions(module: str) -> dict[str, Any]:
    """The functions of an eval by name."""
    found: dict[str, Any] = import_module(f"gradbench.evals.{module}").FUNCTIONS
    return found


def define(message: dict[str, Any]) -> dict[str, Any]:
    """Whether there is a module of that name."""
    functions(message["module"])
    return {"success": True}


def evaluate(message: dict[str, Any]) -> dict[str, Any]:
    """Output and times of a function at an input."""
    given = message["input"]
    rules = given if isinstance(given, dict) else {}
    begin = perf_counter_ns()
    task = functions(message["module"])[message["function"]](given)
    task.once()
    prepared = perf_counter_ns() - begin
    result, times = task.times(rules.get("min_runs", 1), rules.get("min_seconds", 0.0))
    timings = [{"name": "prepare", "nanoseconds": prepared}]
    timings += [{"name": "evaluate", "nanoseconds": spent} for spent in times]
    return {"success": True, "output": task.answer(result), "timings": timings}


def main() -> int:
    """Answer until there is no more input."""
    parser = argparse.ArgumentParser(description="wengert as a tool of GradBench")
    parser.add_argument("--threads", type=int, default=1, help="how many to use (default 1)")
    threads = str(parser.parse_args().threads)
    for variable in ("WENGERT_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[variable] = threads
    for response in respond(sys.stdin):
        print(json.dumps(response), flush=True)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (BrokenPipeError, KeyboardInterrupt):
        sys.exit(0)
