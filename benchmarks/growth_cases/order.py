"""Growth with the order: derivatives of derivatives of a function of one number."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np

from native import libraries
from native.case import Call

from . import points

TITLE = "Order of the derivative"
TEXT = (
    "The derivative of that order of `tanh(sin(x) exp(-x²))` at 0.6, by `grad` of `grad`. The "
    "formula that the backward pass of a backward pass builds doubles or triples with each order "
    "unless what is common is found; *torch* and *autograd* run it as it is."
)
TARGET = "compiling takes less than three times as long with each order"
ORDERS = (1, 2, 3, 4, 5, 6)


def bell(xp: Any) -> Any:
    """The function."""
    return lambda x: xp.tanh(xp.sin(x) * xp.exp(-x * x))


def calls(order: int) -> dict[str, Callable[[], Call]]:
    """The derivative in every library."""
    x = np.array(0.6)

    def times(grad: Any, f: Any) -> Any:
        return reduce(lambda g, _: grad(g), range(order), f)

    def wengert(compiled: bool) -> Call:
        import wengert as wg

        g = times(wg.grad, bell(np))
        return Call(libraries.jit(g) if compiled else g, (x,))

    def jax() -> Call:
        j = libraries.jax()
        return libraries.jax_call(times(j.grad, bell(j.numpy)), x)

    def torch() -> Call:
        t = libraries.torch()
        leaf = t.from_numpy(x.copy()).requires_grad_()

        def run(x: Any) -> Any:
            out = bell(t)(x)
            for _ in range(order):
                (out,) = t.autograd.grad(out, x, create_graph=True)
            return out.detach()

        return Call(run, (leaf,))

    def autograd() -> Call:
        import autograd.numpy as anp
        from autograd import grad

        return Call(times(grad, bell(anp)), (float(x),))

    return {
        "wengert": lambda: wengert(True),
        "wengert, eager": lambda: wengert(False),
        "JAX": jax,
        "torch": torch,
        "autograd": autograd,
    }


def once(point: str, library: str) -> dict[str, Any]:
    """In the fresh process."""
    return points.once(calls(int(point)), library)


def measure(quick: bool, threads: int) -> list[dict[str, Any]]:
    """A row for each order."""
    chosen = ORDERS[:2] if quick else ORDERS
    return points.measure("order", {str(n): f"order {n}" for n in chosen}, threads)
