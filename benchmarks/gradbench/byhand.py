"""Derivatives by hand in C, as tasks that C itself times.

A source benchmarks/c/gradbench/NAME.c defines functions ``void f(void **a)``: ``a[0]`` are the
sizes (int64), then the arrays in the order in which they are given here, inputs first.  They are
called through a pointer by repeat.c, which reads the clock before and after each call, so that no
call from Python is in their times.  Flags are those of GradBench's own (-O3 -march=native), or,
under its own name, with -ffast-math.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from native import compiled

from .task import Task

CHUNK = 100_000  # evaluations between two returns to Python


@dataclass
class ByHand(Task):
    """A task whose evaluations C times; ``kept`` are the arrays that it points to."""

    kept: tuple[Any, ...] = ()

    def times(self, min_runs: int, min_seconds: float) -> tuple[Any, list[int]]:
        """The last result, and the nanoseconds of every evaluation."""
        repeat = compiled.library("gradbench/repeat").repeat
        repeat.restype = ctypes.c_int64
        spent: list[int] = []
        least = round(min_seconds * 1e9)  # in whole nanoseconds, so that the end is met exactly
        while len(spent) < min_runs or least > 0:
            found = np.zeros(CHUNK, np.int64)
            n = repeat(
                self.address, self.pointers, compiled.address(found), ctypes.c_int64(CHUNK),
                ctypes.c_int64(min_runs - len(spent)), ctypes.c_int64(least),
            )  # fmt: skip
            spent += found[:n].tolist()
            least -= int(found[:n].sum())
        return self.once(), spent

    @property
    def address(self) -> ctypes.c_void_p:
        """Of the function."""
        return ctypes.cast(self.arguments[0], ctypes.c_void_p)

    @property
    def pointers(self) -> Any:
        """Of the arrays."""
        return self.arguments[1]


def task(
    source: str,
    function: str,
    sizes: Sequence[int],
    inputs: Sequence[Any],
    outputs: Sequence[Any],
    answer: Callable[[Any], Any],
    fast: bool = False,
) -> ByHand:
    """The task of ``function`` of benchmarks/c/gradbench/<source>.c.

    Inputs are made float64 arrays unless they are arrays of integers (int64 then); outputs are
    shapes of float64 arrays, or arrays of another dtype, and ``answer`` gets the list of them,
    filled.
    """
    library = compiled.library(f"gradbench/{source}", flags=compiled.FLAGS if fast else STRICT)
    given = [np.ascontiguousarray(a, _dtype(a)) for a in inputs]
    made = [a if isinstance(a, np.ndarray) else np.zeros(a) for a in outputs]
    held = [np.array(sizes, np.int64), *given, *made]
    pointers = (ctypes.c_void_p * len(held))(*(a.ctypes.data for a in held))
    called = library[function]
    called.restype = None

    def run(_: Any, pointers: Any) -> Any:
        called(pointers)
        return made

    return ByHand(run, (called, pointers), answer, kept=(library, held))


STRICT = compiled.STRICT


def _dtype(a: Any) -> type:
    integers = isinstance(a, np.ndarray) and a.dtype.kind in "iu"
    return np.int64 if integers else np.float64


def both(*arguments: Any) -> dict[str, Callable[[], Task]]:
    """C as written and with -ffast-math, under the names that contestants have."""
    return {
        "C": lambda: task(*arguments),
        "C -ffast-math": lambda: task(*arguments, fast=True),
    }
