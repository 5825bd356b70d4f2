"""Prices of European calls and their sensitivities to spot, time and volatility.

The derivative of every price by its own arguments: the pullback of ones.  A library whose compiler
sees the whole shares logarithm, exponentials and error functions between price and derivatives; the
C does so by hand.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from . import by_numba, compiled, libraries
from .case import Call, Case, generator

TITLE = "Black-Scholes: price, delta, theta and vega"
TEXT = (
    "Each option is a call: four arrays in, four out. *NumPy* is written by hand with "
    "`scipy.special.ndtr`; *C* by hand, in one loop, into arrays that exist; *numba* the same "
    "loop, into new arrays."
)
TARGET = "within 1.5 times of C; 3 times faster than the best peer in float64, 1.3 in float32"
RATE = 0.03


def pricer(xp: Any, erf: Any) -> Any:
    """Price of (spot, strike, time, volatility) over a namespace."""

    def price(spot: Any, strike: Any, time: Any, sigma: Any) -> Any:
        spread = sigma * xp.sqrt(time)
        d1 = (xp.log(spot / strike) + (RATE + 0.5 * sigma * sigma) * time) / spread
        d2 = d1 - spread
        n1, n2 = (0.5 + 0.5 * erf(d * 0.5**0.5) for d in (d1, d2))
        return spot * n1 - strike * xp.exp(-RATE * time) * n2

    return price


def greeks(vjp: Any, ones_like: Any, price: Any) -> Any:
    """Price, and its derivatives by spot, time and volatility, for libraries with a ``vjp``."""

    def run(spot: Any, strike: Any, time: Any, sigma: Any) -> Any:
        value, pullback = vjp(lambda s, t, v: price(s, strike, t, v), spot, time, sigma)
        return value, *pullback(ones_like(value))

    return run


def cases(quick: bool) -> Iterator[Case]:
    """Both precisions."""
    n = 100_000 if quick else 1_000_000
    for dtype in ("float64", "float32"):
        random = generator(3)
        ranges = [(80, 120), (80, 120), (0.1, 2.0), (0.1, 0.5)]
        arrays = tuple(random.uniform(*r, size=n).astype(dtype) for r in ranges)
        yield Case(f"{n:,} options, {dtype}", contestants(arrays), dtype)


def by_hand(spot: Any, strike: Any, time: Any, sigma: Any) -> Any:
    """Price and sensitivities as one writes them in NumPy."""
    from scipy.special import ndtr

    root = np.sqrt(time)
    spread = sigma * root
    d1 = (np.log(spot / strike) + (RATE + 0.5 * sigma * sigma) * time) / spread
    n1 = ndtr(d1)
    paid = strike * np.exp(-RATE * time) * ndtr(d1 - spread)
    bell = spot * np.exp(-0.5 * d1 * d1) * spot.dtype.type(1 / np.sqrt(2 * np.pi))
    return spot * n1 - paid, n1, bell * sigma / (2.0 * root) + RATE * paid, bell * root


def contestants(arrays: tuple[Any, ...]) -> dict[str, Any]:
    """All of them, by name."""
    dtype = str(arrays[0].dtype)

    def wengert() -> Call:
        import wengert as wg
        from wengert._engine.ops.elementwise.error_function import erf

        return Call(libraries.jit(greeks(wg.vjp, np.ones_like, pricer(np, erf))), arrays)

    def c() -> Call:
        outs = [np.empty_like(arrays[0]) for _ in range(4)]
        function = compiled.library("black_scholes", dtype).black_scholes
        ins = map(compiled.address, arrays)
        rate = compiled.real(RATE, dtype)
        arguments = (compiled.size(arrays[0].size), *ins, rate, *map(compiled.address, outs))
        return Call(function, arguments, numbers=lambda _: outs)

    def jax() -> Call:
        j = libraries.jax()
        price = pricer(j.numpy, j.scipy.special.erf)
        return libraries.jax_call(greeks(j.vjp, j.numpy.ones_like, price), *arrays)

    def torch(compile: bool) -> Call:
        t = libraries.torch()
        return libraries.torch_gradient(pricer(t, t.erf), *arrays, by=(0, 2, 3), compile=compile)

    def pytensor() -> Call:
        def build(pt: Any, spot: Any, strike: Any, time: Any, sigma: Any) -> Any:
            value = pricer(pt, pt.erf)(spot, strike, time, sigma)
            return [value, *pt.grad(value.sum(), [spot, time, sigma])]

        return libraries.pytensor_call(build, *arrays)

    def in_casadi(c: Any, *symbols: Any) -> Any:
        return pricer(c, c.erf)(*symbols)

    def autograd() -> Call:
        import autograd.numpy as anp
        from autograd import make_vjp
        from autograd.scipy.special import erf

        price = pricer(anp, erf)

        def run(spot: Any, strike: Any, time: Any, sigma: Any) -> Any:
            f = lambda at: price(at[0], strike, at[1], at[2])  # noqa: E731
            pullback, value = make_vjp(f)((spot, time, sigma))
            return value, *pullback(np.ones_like(value))

        return Call(run, arrays)

    scalars = (arrays[0].dtype.type(RATE), arrays[0].dtype.type(0.5))
    return {
        "wengert": wengert,
        "C": c,
        "numba": lambda: libraries.numba_call(by_numba.black_scholes, *arrays, *scalars),
        "NumPy": lambda: Call(by_hand, arrays),
        "JAX": jax,
        "torch": lambda: torch(False),
        "torch.compile": lambda: torch(True),
        "PyTensor": pytensor,
        **libraries.casadi_gradient(in_casadi, *arrays, by=(0, 2, 3)),
        "autograd": autograd,
    }
