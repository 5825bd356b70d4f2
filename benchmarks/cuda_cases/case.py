"""What a workload of benchmarks/cuda.py is.

    Workload    the same numbers by wengert, PyTorch and JAX
    rng         a generator with a fixed seed
    scaled      a number of elements at a scale
    moved       bytes of arrays

Arrays are made on the host by NumPy, and put on the card before the time runs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np


class Workload(NamedTuple):
    """A workload.

    name : in the table.
    ours : function of wengert, to be compiled.
    torch, jax : given the module, the function of its arrays; compiled where that pays.
    arguments : ``arguments(scale)`` returns arrays; a scale of 1 is the published size.
    bytes : ``bytes(*arguments)`` that a run must move at least; None if arithmetic is the limit.
    tolerance : relative to the largest element of a result.
    """

    name: str
    ours: Callable[..., Any]
    torch: Callable[[Any], Callable[..., Any]]
    jax: Callable[[Any], Callable[..., Any]]
    arguments: Callable[[float], tuple[Any, ...]]
    bytes: Callable[..., int] | None = None
    tolerance: float = 1e-9


def rng() -> np.random.Generator:
    """A generator."""
    return np.random.default_rng(0)


def scaled(count: float, scale: float, least: int = 10) -> int:
    """A number of elements."""
    return max(int(count * scale), least)


def moved(*arrays: Any) -> int:
    """Their bytes."""
    return sum(x.nbytes for x in arrays)
