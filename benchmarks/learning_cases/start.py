"""From the first import to the end of the first training step, in a fresh process.

    cold    nothing compiled before
    warm    another process, which finds on disk what one before has kept

The clock starts before NumPy is imported, which all need.  torch.compile is measured once, and
given up after a while.
"""

from __future__ import annotations

import importlib
import tempfile
from collections.abc import Sequence
from statistics import median
from time import perf_counter
from typing import Any

TITLE = "From import to the end of the first step"
TEXT = (
    "A fresh process: imports, the model, its compilation, one step. *cold*: nothing was compiled "
    "before; *warm*: another process that finds what one has kept on disk (PyTorch alone keeps "
    "nothing, so it is the same)."
)
PEERS = ("torch", "torch.compile", "JAX")
TARGET = "at most half of the others' time, so 2 or more"
KEEPING = ("wengert", "JAX", "torch.compile")  # these keep what they compile
LIMIT = 15.0  # seconds


def once(name: str, library: str, quick: str) -> dict[str, Any]:
    """In the fresh process."""
    begin = perf_counter()
    training = importlib.import_module("learning_cases.training")
    call = training.contestants(name, bool(quick))[library]()
    result = call.function(*call.arguments)
    if call.ready:
        call.ready(result)
    first = perf_counter() - begin
    return {"first": first, "numbers": [[float(result)]]}


def measure(quick: bool, threads: int) -> list[dict[str, Any]]:
    """Two rows for each model: cold and warm."""
    fresh = importlib.import_module("native.fresh")
    training = importlib.import_module("learning_cases.training")
    cases = []
    for name in training.MODELS:
        title = training.model(name).TITLE
        cold, warm = sampled(name, list(training.contestants(name, quick)), quick, threads)
        for state, samples in (("cold", cold), ("warm", cold | warm)):
            contestants = fresh.agreed(samples, training.WITHIN, seconds)
            cases.append({"case": f"{title}: {state}", "contestants": contestants})
    return cases


def sampled(
    name: str, libraries: Sequence[str], quick: bool, threads: int
) -> tuple[dict[str, list[Any]], dict[str, list[Any]]]:
    """What processes of all libraries in turn report, cold and warm."""
    fresh = importlib.import_module("native.fresh")
    environment = importlib.import_module("native.environment").environment
    cold: dict[str, list[Any]] = {}
    warm: dict[str, list[Any]] = {}
    for repetition in range(1 if quick else 2):
        for library in libraries:
            if library == "torch.compile" and (quick or repetition):
                continue
            keeps = library in KEEPING
            states = [cold, warm] if keeps else [cold]
            with tempfile.TemporaryDirectory() as folder:
                variables = environment(threads, fresh=folder, keep=keeps)
                arguments = ["start", name, library, "quick" * quick]
                for state in states:
                    found = fresh.process("learning.py", arguments, variables, LIMIT)
                    state.setdefault(library, []).append(found)
                    if "numbers" not in found:
                        break
    return cold, warm


def seconds(samples: Sequence[Any]) -> dict[str, float]:
    """The median."""
    return {"median": median(s["first"] for s in samples)}
