"""Taylor series of small programs, with `jet` of each library.

number    sin(x) exp(x²) of a number
array     exp(-x²) sin(3x) + sqrt(1 + x²), for 1000 elements
network   tanh of two layers of 32 units, for the direction of one input
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from native import libraries
from native.case import Call, Case, generator

TITLE = "Taylor series"
TEXT = (
    "All derivatives of order 1 to K along a line, `wg.jet` and `jax.experimental.jet`, both "
    "compiled. *wengert, nested* is forward mode of forward mode, order 4 only: its compile time "
    "grows as 2^K."
)
TARGET = "faster than JAX"
ORDERS = (4, 8, 10)
ORDER_NESTED = 4


def number(xp: Any) -> Callable[[Any], Any]:
    """Of a number."""
    return lambda x: xp.sin(x) * xp.exp(x * x)


def array(xp: Any) -> Callable[[Any], Any]:
    """Element by element."""
    return lambda x: xp.exp(-(x * x)) * xp.sin(3.0 * x) + xp.sqrt(1.0 + x * x)


def network(xp: Any) -> Callable[[Any], Any]:
    """Two layers."""
    random = generator(11)
    first, second = random.normal(size=(32, 8)) / 3.0, random.normal(size=(32, 32)) / 6.0
    return lambda x: xp.tanh(xp.matmul(second, xp.tanh(xp.matmul(first, x))))


def cases(quick: bool) -> Iterator[Case]:
    """Programs and orders."""
    x = np.linspace(-1.0, 1.5, 1000)
    points: list[tuple[str, Any, Any]] = [
        ("number", number, np.array(0.6)),
        ("array", array, x),
        ("network", network, x[:8].copy()),
    ]
    for name, function, x in points:
        for order in (4,) if quick else ORDERS:
            yield Case(f"{name}, order {order}", contestants(function, x, order), within=1e-8)


def contestants(function: Any, x: Any, order: int) -> dict[str, Any]:
    """One program."""
    v = np.ones_like(x)

    def wengert() -> Call:
        import wengert as wg

        def run(x: Any, v: Any) -> Any:
            return wg.jet(function(np), (x,), ([v, *[0.0 * np.ones(v.shape)] * (order - 1)],))[1]

        return Call(libraries.jit(run), (x, v))

    def nested() -> Call:
        import wengert as wg

        def run(x: Any, v: Any) -> Any:
            found, f = [], function(np)
            for _ in range(order):
                f = along(f, v)
                found.append(f(x))
            return found

        def along(f: Any, v: Any) -> Any:
            return lambda x: wg.jvp(f, (x,), (v,))[1]

        return Call(libraries.jit(run), (x, v))

    def jax() -> Call:
        from jax.experimental.jet import jet

        j = libraries.jax()

        def run(x: Any, v: Any) -> Any:
            zeros = [j.numpy.zeros_like(x)] * (order - 1)
            return jet(function(j.numpy), (x,), ([v, *zeros],))[1]

        return libraries.jax_call(run, x, v)

    found = {"wengert": wengert, "JAX": jax}
    return found | ({"wengert, nested": nested} if order == ORDER_NESTED else {})
