"""Lorenz's equations: 1000 steps of the classical Runge-Kutta method, differentiated.

The function is x + y + z after the last step, from (1, 1, 1) with steps of 0.005; the gradient is
by (sigma, rho, beta).  The state is carried as three numbers and as one array of three, since
both are how people write it.  C has the adjoint of a step by hand (benchmarks/c/lorenz.c).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from native import libraries
from native.case import Call, Case

from . import by_numba, peers

TITLE = "Lorenz: Runge-Kutta steps"
TEXT = (
    "The sum of the state after 1000 steps of 0.005, and its gradient by three parameters. The "
    "state is carried as three numbers, or as one array of three. *JAX, forward* is `vmap` of "
    "`jvp` over three directions, *JAX, reverse* `jax.value_and_grad`; of the value there is one. "
    "*torch* and *autograd* loop in Python; *CasADi* is `mapaccum` and its reverse mode, *CasADi, "
    "compiled* its C, *PyTensor* its `scan`. *C* keeps the states and "
    "computes stages again, as written (gcc -O3 -march=native) and with "
    "-ffast-math. *numba* is by hand too, tangents by the three parameters."
)
PEERS = ("JAX",)
TARGET = (
    "value within 1.5 times of C (column C at least 0.67), gradient within 2 times (at least 0.5); "
    "column JAX: the better one of its modes"
)
STEP = 0.005
PARAMETERS = np.array([10.0, 28.0, 8.0 / 3.0])


def cases(quick: bool) -> Iterator[Case]:
    """Value and gradient, both forms of the state."""
    n = 100 if quick else 1000
    value, bar, kept = peers.by_hand, np.zeros(3), np.zeros((n, 3))
    alone = value("lorenz", "lorenz", (n, STEP, PARAMETERS), lambda v: v)
    both = value("lorenz", "lorenz_gradient", (n, STEP, PARAMETERS, kept, bar), lambda v: (v, bar))
    for form, f in (("numbers", of_numbers), ("an array", of_array)):
        found = peers.valued(f(n), PARAMETERS) | alone
        if form == "numbers":
            found["numba"] = lambda: peers.numba_call(by_numba.lorenz, n, STEP, PARAMETERS)
        yield Case(f"value, state as {form}", found, within=1e-10)
        found = peers.differentiated(f(n), PARAMETERS, slow=("torch", "autograd"))
        if form == "numbers":
            found |= libraries.casadi(lambda: casadi(n), PARAMETERS)
            found["PyTensor"] = lambda: pytensor(n)
            found["numba"] = lambda: peers.numba_call(by_numba.lorenz_gradient, n, STEP, PARAMETERS)
        yield Case(f"gradient, state as {form}", found | both, within=1e-10)


def slope(p: Any, s: Any) -> Any:
    """The right-hand side."""
    x, y, z = s
    return p[0] * (y - x), x * (p[1] - z) - y, x * y - p[2] * z


def of_numbers(n: int, h: float = STEP) -> Any:
    """The function with a carry of three numbers."""

    def moved(s: Any, by: float, k: Any) -> Any:
        return tuple(a + by * b for a, b in zip(s, k, strict=True))

    def f(loops: peers.Loops) -> Any:
        def run(p: Any) -> Any:
            def step(s: Any, _: Any) -> Any:
                a = slope(p, s)
                b = slope(p, moved(s, 0.5 * h, a))
                c = slope(p, moved(s, 0.5 * h, b))
                d = slope(p, moved(s, h, c))
                ks = zip(s, a, b, c, d, strict=True)
                w = h / 6.0
                new = tuple(v + w * (i + 2.0 * j + 2.0 * k + m) for v, i, j, k, m in ks)
                return new, None

            s, _ = loops.scan(step, (1.0, 1.0, 1.0), None, length=n)
            return s[0] + s[1] + s[2]

        return run

    return f


def of_array(n: int) -> Any:
    """The function with a carry of one array."""

    def f(loops: peers.Loops) -> Any:
        def run(p: Any) -> Any:
            def rate(s: Any) -> Any:
                return loops.xp.stack(slope(p, (s[0], s[1], s[2])))

            def step(s: Any, _: Any) -> Any:
                a = rate(s)
                b = rate(s + 0.5 * STEP * a)
                c = rate(s + 0.5 * STEP * b)
                d = rate(s + STEP * c)
                return s + STEP / 6.0 * (a + 2.0 * b + 2.0 * c + d), None

            s, _ = loops.scan(step, loops.array(np.ones(3)), None, length=n)
            return s.sum()

        return run

    return f


def casadi(n: int) -> Any:
    """A step as a function, accumulated n times, differentiated in reverse."""
    import casadi as c

    s, p = c.SX.sym("s", 3), c.SX.sym("p", 3)

    def rate(s: Any) -> Any:
        return c.vertcat(*slope((p[0], p[1], p[2]), (s[0], s[1], s[2])))

    a = rate(s)
    b = rate(s + 0.5 * STEP * a)
    d = rate(s + 0.5 * STEP * b)
    e = rate(s + STEP * d)
    step = c.Function("step", [s, p], [s + STEP / 6.0 * (a + 2.0 * b + 2.0 * d + e)])
    q = c.MX.sym("q", 3)
    states = step.mapaccum("all", n)(c.DM.ones(3), c.repmat(q, 1, n))
    value = c.sum1(states[:, -1])
    return c.Function("f", [q], [value, c.gradient(value, q)])


def pytensor(n: int) -> Call:
    """Its scan over three numbers, and the gradient through it."""

    def build(pt: Any, p: Any) -> Any:
        import pytensor

        def step(x: Any, y: Any, z: Any, p: Any) -> Any:
            def moved(by: float, k: Any) -> Any:
                return tuple(v + by * w for v, w in zip((x, y, z), k, strict=True))

            a = slope(p, (x, y, z))
            b = slope(p, moved(0.5 * STEP, a))
            c = slope(p, moved(0.5 * STEP, b))
            d = slope(p, moved(STEP, c))
            ks = zip((x, y, z), a, b, c, d, strict=True)
            return [v + STEP / 6.0 * (i + 2.0 * j + 2.0 * k + m) for v, i, j, k, m in ks]

        start = [pt.constant(np.array(1.0))] * 3
        states, _ = pytensor.scan(step, outputs_info=start, non_sequences=[p], n_steps=n)
        value = sum(s[-1] for s in states)
        return [value, pt.grad(value, p)]

    return libraries.pytensor_call(build, PARAMETERS)
