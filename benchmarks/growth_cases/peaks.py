"""Peak memory: the gradient of a chain of large arrays, and of a perceptron.

chain        100 operations on 500,000 numbers (4 MB each), as in depth.py: a tape keeps the arrays
             that the derivative needs; a compiler that fuses keeps hardly any
perceptron   784-256-256-10, batch 4096, float32: loss and gradients (of native/perceptron.py)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from native import libraries, perceptron
from native.case import Call

from . import depth, points

TITLE = "Peak memory"
TEXT = (
    "*Chain*: the gradient through 100 operations on 500,000 numbers, 4 MB each. *Perceptron*: "
    "loss and gradients, 784-256-256-10, batch 4096, float32. The most that a fresh process had "
    "resident, compiling included."
)
TARGET = "not more than the least of the others"
PROGRAMS = {"chain": "chain of 100 operations", "perceptron": "perceptron, batch 4096"}
PROGRAMS_QUICK = {"chain-quick": "chain of 100 operations, small"}


def chain(numbers: int) -> dict[str, Any]:
    """Value and gradient in every library."""
    f, _ = depth.program(100)
    return points.gradients(f, np.linspace(0.2, 0.3, numbers))


def layers() -> dict[str, Any]:
    """Loss and gradients in every library; autograd has no log_softmax."""
    parameters, x, labels = perceptron.data(4096)

    def eager() -> Call:
        import wengert as wg

        return Call(wg.value_and_grad(perceptron.wengert_loss()), (parameters, x, labels))

    def jax() -> Call:
        j = libraries.jax()
        f = perceptron.loss(j.numpy, lambda z: j.nn.log_softmax(z, axis=1))
        return libraries.jax_gradient(f, parameters, x, labels)

    def torch() -> Call:
        t = libraries.torch()
        f, at = perceptron.torch_loss(t), (t.from_numpy(x), t.from_numpy(labels))
        leaves = [t.from_numpy(p).requires_grad_() for p in parameters]

        def run() -> Any:
            out = f(leaves, *at)
            return out, t.autograd.grad(out, leaves)

        return Call(run)

    return {
        "wengert": lambda: libraries.wengert(perceptron.wengert_loss(), parameters, x, labels),
        "wengert, eager": eager,
        "JAX": jax,
        "torch": torch,
    }


def once(point: str, library: str) -> dict[str, Any]:
    """In the fresh process."""
    if point == "perceptron":
        return points.once(layers(), library)
    return points.once(chain(5000 if point == "chain-quick" else 500_000), library)


def measure(quick: bool, threads: int) -> list[dict[str, Any]]:
    """A row for each program."""
    if quick:
        return points.measure("peaks", PROGRAMS_QUICK, threads)
    (chained, layered) = ({k: v} for k, v in PROGRAMS.items())
    found = points.measure("peaks", chained, threads)
    names = [name for name in points.LIBRARIES if name != "autograd"]
    return found + points.measure("peaks", layered, threads, 1e-3, names)
