"""The most memory that a process had resident, which takes six training steps.

Each sample is a fresh process that imports one library.  Reported are the whole peak, and how much
of it came after the import.  Nothing is found compiled, but by torch.compile, which compiles in
other processes.
"""

from __future__ import annotations

import resource
from collections.abc import Sequence
from statistics import median
from typing import Any

from native import fresh
from native.environment import environment
from native.measure import arrays

from . import training

TITLE = "Peak memory"
TEXT = (
    "Megabytes of a fresh process that takes six steps, the compiling of the first included: the "
    "whole, and what came after the library's import."
)
PEERS = ("torch", "torch.compile", "JAX")
TARGET = "not more than the least of the others"


def peak() -> float:
    """Megabytes, the most that were resident so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0


def once(name: str, library: str, quick: str) -> dict[str, Any]:
    """In the fresh process."""
    fresh.started(library)
    before = peak()
    call = training.contestants(name, bool(quick))[library]()
    result = call.function(*call.arguments)
    losses = call.numbers(call.ready(result) if call.ready else result)
    numbers = [a.tolist() for a in arrays(losses)]
    return {"whole": peak(), "import": before, "numbers": numbers}


def measure(quick: bool, threads: int) -> list[dict[str, Any]]:
    """Two rows for each model."""
    cases = []
    for name in training.MODELS:
        samples = {}
        for library in training.contestants(name, quick):
            variables = environment(threads, keep=library == "torch.compile")
            arguments = ["memory", name, library, "quick" * quick]
            samples[library] = [fresh.process("learning.py", arguments, variables)]
        contestants = fresh.agreed(samples, training.WITHIN, megabytes)
        cases.append({"case": training.model(name).TITLE, "contestants": contestants})
    return cases


def megabytes(samples: Sequence[Any]) -> dict[str, float]:
    """The whole, and without the import."""
    return {
        "whole": median(s["whole"] for s in samples),
        "added": median(s["whole"] - s["import"] for s in samples),
    }
