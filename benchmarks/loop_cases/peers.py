"""Loops of every library under one name, so that a workload is written once.

A `Loops` has ``xp``, the library's NumPy, and scan, while_loop, cond and grad with JAX's
argument order, which is wengert's too.  For PyTorch and autograd, which have no loop that they
differentiate, a loop is Python's.  C is compiled twice: as written (the targets speak of
gcc -O3 -march=native), and with -ffast-math, which is shown beside it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from native import compiled, libraries
from native.case import Call
from native.page import FAST_C

Function = Callable[..., Any]


@dataclass(frozen=True)
class Loops:
    """A library as a workload sees it; a function that it lacks is None."""

    xp: Any
    array: Function  # from NumPy's
    scan: Function
    while_loop: Function | None = None
    cond: Function | None = None
    grad: Function | None = None


def wengert() -> Loops:
    """Loops of wengert on NumPy."""
    import wengert as wg

    return Loops(np, np.asarray, wg.scan, wg.while_loop, wg.cond, wg.grad)


def jax() -> Loops:
    """Loops of JAX."""
    j = libraries.jax()
    return Loops(j.numpy, j.numpy.asarray, j.lax.scan, j.lax.while_loop, j.lax.cond, j.grad)


def python_scan(stack: Function) -> Function:
    """A scan that is Python's loop."""

    def scan(f: Function, carry: Any, xs: Any, length: int | None = None) -> Any:
        ys, rows = [], xs.unbind() if hasattr(xs, "unbind") else xs
        for k in range(len(xs) if length is None else length):
            carry, y = f(carry, None if rows is None else rows[k])
            ys.append(y)
        return carry, None if not ys or ys[0] is None else stack(ys)

    return scan


def torch() -> Loops:
    """PyTorch, whose loops are Python's."""
    t = libraries.torch()
    return Loops(t, t.from_numpy, python_scan(t.stack))


def autograd() -> Loops:
    """HIPS autograd, whose loops are Python's."""
    import autograd.numpy as anp

    return Loops(anp, np.asarray, python_scan(anp.stack))


def differentiated(
    f: Function, x: Any, *, forward: bool = False, slow: Sequence[str] = ("torch", "autograd")
) -> dict[str, Callable[[], Call]]:
    """Value and gradient of ``f(loops)(x)`` by a vector ``x``, in every library that is asked for.

    JAX is asked twice: by reverse mode (``jax.value_and_grad``), and by forward mode, ``jax.vmap``
    of ``jax.jvp`` over the unit vectors, whose loop runs once with the values beside all tangents.
    (``jax.linearize`` would store the loop's residuals, and ``jax.jacfwd`` beside the function
    runs the loop twice; both are slower.)  wengert too, if `forward`.
    """

    def wengert_forward() -> Call:
        import wengert as wg

        g = f(wengert())
        return Call(libraries.jit(lambda x: (g(x), wg.jacfwd(g)(x))), (x,))

    def jax_forward() -> Call:
        j, g = libraries.jax(), f(jax())

        def run(x: Any) -> Any:
            along = lambda d: j.jvp(g, (x,), (d,))  # noqa: E731
            return j.vmap(along, out_axes=(None, 0))(j.numpy.eye(x.size))

        return libraries.jax_call(run, x)

    found: dict[str, Callable[[], Call]] = {
        "wengert": lambda: libraries.wengert(f(wengert()), x),
        "JAX, reverse": lambda: libraries.jax_gradient(f(jax()), x),
        "JAX, forward": jax_forward,
    }
    if forward:
        found["wengert, forward"] = wengert_forward
    if "torch" in slow:
        found["torch"] = lambda: libraries.torch_gradient(f(torch()), x)
    if "autograd" in slow:
        found["autograd"] = lambda: libraries.autograd_gradient(f(autograd()), x)
    return found


def valued(f: Function, x: Any) -> dict[str, Callable[[], Call]]:
    """The value alone of ``f(loops)(x)``, compiled."""
    return {
        "wengert": lambda: Call(libraries.jit(f(wengert())), (x,)),
        "JAX, reverse": lambda: libraries.jax_call(f(jax()), x),
    }


def numba_call(function: Function, *arguments: Any) -> Call:
    """A loop with its derivative by hand, compiled by numba as it rounds."""
    return libraries.numba_call(function, *arguments, fast=False)


def by_hand(
    source: str, function: str, arguments: Sequence[Any], numbers: Function
) -> dict[str, Callable[[], Call]]:
    """A function of benchmarks/c that returns a double, compiled as written and fast.

    Arrays among the arguments are passed by address, integers as size_t, others as double.
    Adjoints by hand are checked where they are timed: measure.py compares the numbers of all
    contestants at full size, to the case's 1e-10, before it starts a clock.
    """

    def placed(x: Any) -> Any:
        if isinstance(x, np.ndarray):
            return compiled.address(x)
        return compiled.size(x) if isinstance(x, int) else ctypes.c_double(x)

    def made(flags: list[str]) -> Call:
        run = compiled.library(source, flags=flags)[function]
        run.restype = ctypes.c_double
        return Call(run, tuple(placed(x) for x in arguments), numbers=numbers)

    return {
        "C": lambda: made(compiled.STRICT),
        FAST_C: lambda: made(compiled.FLAGS),
    }
