"""sum(tanh(x w + b) exp(-x^2)) and its gradient with respect to x: two transcendental functions.

A thousand numbers fit into the first cache and cost a few microseconds; ten million come from
memory, and the gradient is 80 MB of fresh pages each time unless they are recycled.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from . import by_numba, compiled, libraries
from .case import Call, Case, generator

TITLE = "Elementwise: sum(tanh(x w + b) exp(-x²))"
TEXT = (
    "Value and gradient with respect to x. *C* is one loop over the array, its functions those of "
    "glibc's libmvec, writing into an array that exists; the others return a new one. *numba* is "
    "the same loop by hand."
)
TARGET = "n = 1e3: at most 4 us; else within 1.3 times of C and 2 times faster than JAX"
W, B = 0.7, 0.3


def function(xp: Any) -> Any:
    """The function over a namespace."""
    return lambda x: (xp.tanh(x * W + B) * xp.exp(-x * x)).sum()


def cases(quick: bool) -> Iterator[Case]:
    """Sizes, in both precisions."""
    for dtype in ("float64", "float32"):
        for n in (1_000, 100_000) if quick else (1_000, 100_000, 10_000_000):
            x = generator(n).normal(size=n).astype(dtype)
            yield Case(f"n = {n:.0e}, {dtype}".replace("e+0", "e"), contestants(x), dtype)


def by_hand(x: Any) -> Any:
    """NumPy, every array reused that can be."""
    t = x * x.dtype.type(W)
    t += x.dtype.type(B)
    np.tanh(t, out=t)
    e = x * x
    np.negative(e, out=e)
    np.exp(e, out=e)
    value = np.dot(t, e)
    gradient = t * t
    np.subtract(1, gradient, out=gradient)
    gradient *= x.dtype.type(W)
    t *= x
    t *= 2
    gradient -= t
    gradient *= e
    return value, gradient


def contestants(x: Any) -> dict[str, Any]:
    """All of them, by name."""
    dtype = str(x.dtype)

    def c() -> Call:
        out = np.empty_like(x)
        function = compiled.library("sum_tanh", dtype).sum_tanh
        function.restype = type(compiled.real(0.0, dtype))
        arguments = (
            compiled.size(x.size), compiled.address(x), compiled.real(W, dtype),
            compiled.real(B, dtype), compiled.address(out),
        )  # fmt: skip
        return Call(function, arguments, numbers=lambda value: (value, out))

    def autograd() -> Call:
        import autograd.numpy as anp

        return libraries.autograd_gradient(function(anp), x)

    def torch(compile: bool) -> Call:
        t = libraries.torch()
        return libraries.torch_gradient(function(t), x, compile=compile)

    scalars = (x.dtype.type(W), x.dtype.type(B))
    return {
        "wengert": lambda: libraries.wengert(function(np), x),
        "C": c,
        "numba": lambda: libraries.numba_call(by_numba.sum_tanh, x, *scalars),
        "NumPy": lambda: Call(by_hand, (x,)),
        "JAX": lambda: libraries.jax_gradient(function(libraries.jax().numpy), x),
        "torch": lambda: torch(False),
        "torch.compile": lambda: torch(True),
        "PyTensor": lambda: libraries.pytensor_gradient(lambda pt, x: function(pt)(x), x),
        **libraries.casadi_gradient(lambda c, x: c.sum1(c.tanh(x * W + B) * c.exp(-x * x)), x),
        "autograd": autograd,
    }
