"""A gradient of a few numbers: what is measured is the call.

    sin(x) x**2     by x, which is a Python float, or an array of no dimensions
    Rosenbrock      10 numbers

numba compiles the derivative that a person wrote; it is what a call of native code costs in
Python, not a peer.  C is called through ctypes with its arguments converted beforehand.  For a
Python float PyTensor checks its arguments; its arrays it trusts.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from . import compiled, libraries
from .case import Call, Case

TITLE = "Calls: gradients of a few numbers"
TEXT = (
    "The gradient alone, called from Python. *numba* and *C* (through ctypes, arguments converted "
    "beforehand) are derivatives written by hand. *CasADi, compiled* is its generated C (gcc -O3 "
    "-march=native); *CasADi, buffers* is that C called without making a result: it reads one "
    "array and writes another. Arguments are each library's own arrays, made beforehand."
)
TARGET = "at most 0.5 us, and 4 times faster than the best peer library"


def sine_square(xp: Any) -> Any:
    """The function over a namespace."""
    return lambda x: xp.sin(x) * x**2


def rosenbrock(x: Any) -> Any:
    """Rosenbrock's function, of any library's arrays."""
    return (100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2).sum()


def cases(quick: bool) -> Iterator[Case]:
    """A float, an array, ten numbers."""
    yield Case("sin(x) x**2, float", scalar(0.7))
    yield Case("sin(x) x**2, array ()", scalar(np.array(0.7)))
    x = np.linspace(-1.2, 1.1, 10)
    yield Case("Rosenbrock, n = 10", {"NumPy": lambda: Call(by_hand, (x,)), **of_numbers(x)})


def scalar(x: Any) -> dict[str, Any]:
    """Contestants for one number; ``x`` is a float or an array, for those that take both."""
    is_float = isinstance(x, float)

    def c() -> Call:
        function = compiled.library("calls").sine_square
        function.restype = ctypes.c_double
        return Call(function, (ctypes.c_double(float(x)),))

    def numba() -> Call:
        from numba import njit

        return Call(njit(lambda x: (math.cos(x) * x + 2.0 * math.sin(x)) * x), (float(x),))

    def jax() -> Call:
        call = libraries.jax_gradient(sine_square(libraries.jax().numpy), x, value=False)
        return Call(call.function, (x,), call.ready) if is_float else call

    def torch() -> Call:
        t = libraries.torch()
        function = sine_square(t)
        if not is_float:
            return libraries.torch_gradient(function, x, value=False)

        def run(x: float) -> Any:
            leaf = t.tensor(x, dtype=t.float64, requires_grad=True)
            return t.autograd.grad(function(leaf), leaf)[0]

        return Call(run, (x,))

    def pytensor() -> Call:
        call = libraries.pytensor_gradient(
            lambda pt, x: pt.sin(x) * x**2, x, mode="CVM", value=False
        )
        call.function.trust_input = not is_float
        return Call(call.function, (x,))

    def casadi() -> Any:
        import casadi

        x_ = casadi.SX.sym("x")
        f = casadi.sin(x_) * x_**2
        return casadi.Function("g", [x_], [casadi.gradient(f, x_)])

    def autograd() -> Call:
        import autograd.numpy as anp

        return libraries.autograd_gradient(sine_square(anp), x, value=False)

    hand = (lambda x: (np.cos(x) * x + 2.0 * np.sin(x)) * x, (x,))
    return {
        "wengert": lambda: libraries.wengert(sine_square(np), x, value=False),
        "C": c,
        "numba": numba,
        "NumPy": lambda: Call(*hand),
        "PyTensor": pytensor,
        "JAX": jax,
        **of_casadi(casadi, x),
        "torch": torch,
        "autograd": autograd,
    }


def by_hand(x: Any) -> Any:
    """The gradient of Rosenbrock's function."""
    off = x[1:] - x[:-1] ** 2
    gradient = np.zeros_like(x)
    gradient[:-1] = -400.0 * off * x[:-1] - 2.0 * (1.0 - x[:-1])
    gradient[1:] += 200.0 * off
    return gradient


def hand_loop(x: Any) -> Any:
    """The same as a loop, for numba."""
    gradient = np.zeros_like(x)
    for i in range(x.size - 1):
        off = x[i + 1] - x[i] * x[i]
        gradient[i] += -400.0 * off * x[i] - 2.0 * (1.0 - x[i])
        gradient[i + 1] += 200.0 * off
    return gradient


def casadi_gradient(n: int) -> Any:
    """CasADi's function for the gradient of Rosenbrock's function."""
    import casadi

    x = casadi.SX.sym("x", n)
    f = casadi.sum1(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)
    return casadi.Function("g", [x], [casadi.gradient(f, x)])


def of_casadi(make: Any, x: Any) -> dict[str, Any]:
    """Interpreted, compiled, and compiled without conversions."""

    def buffers() -> Call:
        return libraries.casadi_buffers(libraries.casadi_compiled(make()), x)

    return {**libraries.casadi(make, x), "CasADi, buffers": buffers}


def of_numbers(x: Any) -> dict[str, Any]:
    """Contestants for Rosenbrock's function."""

    def c() -> Call:
        out = np.empty_like(x)
        arguments = (compiled.size(x.size), compiled.address(x), compiled.address(out))
        return Call(compiled.library("calls").rosenbrock, arguments, numbers=lambda _: out)

    def numba() -> Call:
        from numba import njit

        return Call(njit(hand_loop), (x,))

    return {
        "wengert": lambda: libraries.wengert(rosenbrock, x, value=False),
        "C": c,
        "numba": numba,
        "PyTensor": lambda: libraries.pytensor_gradient(
            lambda pt, x: rosenbrock(x), x, mode="CVM", value=False
        ),
        "JAX": lambda: libraries.jax_gradient(rosenbrock, x, value=False),
        **of_casadi(lambda: casadi_gradient(x.size), x),
        "torch": lambda: libraries.torch_gradient(rosenbrock, x, value=False),
        "autograd": lambda: libraries.autograd_gradient(rosenbrock, x, value=False),
    }
