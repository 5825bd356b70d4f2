"""Kernels that wait for memory: the gradient of sum((a x + y)^2) / 2 by x, which is a (a x + y).

Two arrays are read and one is written, 24 bytes an element; beside it a copy, 16 bytes an element,
which shows what the memory can give.  *Fresh* arrays come from the system page by
page when they are first written, and each page costs more than filling it; *recycled* ones do not.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from . import by_numba, compiled, libraries
from .case import Call, Case, generator

TITLE = "Memory: the gradient of an axpy"
TEXT = (
    "a (a x + y) of 10,000,000 float64: 80 MB arrays, two read and one written; and copies of "
    "160 MB in all. GB/s counts what a perfect program moves. *fresh*: the result is a new array; "
    "*in place*: it is written where one was. Faults are pages that the system handed out for "
    "each call."
)
TARGET = "85 % of the bandwidth of a copy in place; no page faults once memory is recycled"
A = 1.5


def function(x: Any, y: Any) -> Any:
    """What is differentiated."""
    return 0.5 * ((A * x + y) ** 2).sum()


def cases(quick: bool) -> Iterator[Case]:
    """A copy, then the gradient."""
    n = 1_000_000 if quick else 10_000_000
    x, y = generator(5).normal(size=(2, n))
    out = np.zeros(n)
    yield Case(
        f"copy of {n:.0e}".replace("e+0", "e"),
        {
            "NumPy, in place": lambda: Call(np.copyto, (out, x), numbers=lambda _: out),
            "NumPy, fresh": lambda: Call(np.copy, (x,)),
        },
        bytes=16.0 * n,
    )
    yield Case(
        f"gradient of an axpy of {n:.0e}".replace("e+0", "e"), contestants(x, y), bytes=24.0 * n
    )


def contestants(x: Any, y: Any) -> dict[str, Any]:
    """All of them, by name."""

    def c(fresh: bool) -> Call:
        gradient = compiled.library("axpy").axpy_gradient
        fixed = (
            compiled.size(x.size), compiled.real(A, "float64"),
            compiled.address(x), compiled.address(y),
        )  # fmt: skip
        if not fresh:
            out = np.zeros_like(x)
            return Call(gradient, (*fixed, compiled.address(out)), numbers=lambda _: out)

        def run() -> Any:
            out = np.empty_like(x)
            gradient(*fixed, compiled.address(out))
            return out

        return Call(run)

    def by_hand(x: Any, y: Any) -> Any:
        out = A * x
        out += y
        out *= A
        return out

    def torch(compile: bool) -> Call:
        libraries.torch()
        return libraries.torch_gradient(function, x, y, compile=compile, value=False)

    return {
        "wengert": lambda: libraries.wengert(function, x, y, value=False),
        "C, in place": lambda: c(False),
        "C, fresh": lambda: c(True),
        "numba": lambda: libraries.numba_call(by_numba.axpy_gradient, x, y, A),
        "NumPy": lambda: Call(by_hand, (x, y)),
        "JAX": lambda: libraries.jax_gradient(function, x, y, value=False),
        "torch": lambda: torch(False),
        "torch.compile": lambda: torch(True),
        "PyTensor": lambda: libraries.pytensor_gradient(
            lambda pt, x, y: function(x, y), x, y, value=False
        ),
    }
