"""Derivatives in loops in derivatives: particle and saddle, and Newton's iteration.

particle   Pearlmutter and Siskind, *Using programming language theory to make automatic
           differentiation sound and efficient* (2008): a charged particle flies (a while loop, in
           whose body a potential is differentiated), and a parameter is found, by gradient descent
           (a while loop with the derivative of the flight), with which it crosses the origin
saddle     of the same paper: min max f by gradient descent in gradient descent, the outer one
           differentiating through the inner one
kepler     Kepler's equation solved by Newton's iteration (a while loop, in whose body the equation
           is differentiated) for 1000 anomalies, and the sum differentiated

The minimiser and its numbers are those of GradBench, whose expected results these programs give.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from native import libraries
from native.case import Call, Case

from . import peers

TITLE = "Loops that end when they say so, in derivatives"
TEXT = (
    "*particle* and *saddle* (Siskind and Pearlmutter, as GradBench states them): nested "
    "derivatives in nested while loops; *wengert* differentiates the loops in reverse, *wengert, "
    "forward* by tangents, as JAX must; the better one counts. *Kepler*: Newton's iteration for "
    "1000 anomalies, and the gradient of the sum by two parameters. *C* is forward mode by hand."
)
TARGET = "right, compiled; within 3 times of C (column C at least 0.33)"
ECCENTRIC = np.array([0.6, 0.01])


def cases(quick: bool) -> Iterator[Case]:
    """Particle, saddle, Kepler."""
    w, start, out, bar = 0.0, np.array([1.0, 1.0]), np.zeros(4), np.zeros(2)
    c = peers.by_hand("nested", "particle", (w,), lambda value: value)
    yield Case("particle", minimised(particle, w) | c, within=1e-10)
    c = peers.by_hand("nested", "saddle", (start, out), lambda _: out)
    yield Case("saddle", minimised(saddle, start) | c, within=1e-10)
    n = 50 if quick else 1000
    found = peers.differentiated(kepler(n), ECCENTRIC, forward=True, slow=())
    c = peers.by_hand("nested", "kepler", (n, ECCENTRIC, bar), lambda value: (value, bar))
    yield Case(f"Kepler, n = {n}", found | c, within=1e-10)


def minimised(program: Any, x: Any) -> dict[str, Any]:
    """A program ``program(loops, both)(x)``, for the libraries and their modes.

    ``both(f)`` gives the value and the gradient, in that mode.
    """

    def wengert(forward: bool) -> Call:
        import wengert as wg

        both = pushed(wg.jvp, wg.vmap, np) if forward else wg.value_and_grad
        return Call(libraries.jit(program(peers.wengert(), both)), (x,))

    def jax(forward: bool) -> Call:
        j = libraries.jax()
        both = pushed(j.jvp, each(j.numpy), j.numpy) if forward else j.value_and_grad
        return libraries.jax_call(program(peers.jax(), both), x)

    return {
        "wengert": lambda: wengert(False),
        "wengert, forward": lambda: wengert(True),
        "JAX, reverse": lambda: jax(False),
        "JAX, forward": lambda: jax(True),
    }


def each(xp: Any) -> Any:
    """A vmap that is one call for each row: JAX's makes of choices in loops a computing of both."""

    def vmap(f: Any, out_axes: Any) -> Any:
        def run(rows: Any) -> Any:
            value, slopes = zip(*[f(row) for row in rows], strict=True)
            return value[0], xp.stack(slopes)

        return run

    return vmap


def pushed(jvp: Any, vmap: Any, xp: Any) -> Any:
    """Value and gradient by forward mode, all directions at once if `vmap` can."""

    def both(f: Any) -> Any:
        def run(x: Any) -> Any:
            if xp.ndim(x) == 0:
                return jvp(f, (x,), (xp.ones_like(x),))
            along = lambda row: jvp(f, (x,), (row,))  # noqa: E731
            return vmap(along, out_axes=(None, 0))(xp.eye(x.size))

        return run

    return both


def descent(loops: peers.Loops, both: Any, x: Any) -> Any:
    """Where a function is least: gradient descent, whose step doubles after ten successes."""
    xp = loops.xp

    def length(v: Any) -> Any:
        return xp.sqrt((v * v).sum())

    def halted(x: Any, fx: Any, gx: Any, eta: Any, i: Any) -> Any:
        return x, fx, gx, eta, i, False

    def larger(x: Any, fx: Any, gx: Any, eta: Any, i: Any) -> Any:
        return x, fx, gx, 2.0 * eta, 0 * i, True

    def smaller(x: Any, fx: Any, gx: Any, eta: Any, i: Any) -> Any:
        return x, fx, gx, 0.5 * eta, 0 * i, True

    def tried(x: Any, fx: Any, gx: Any, eta: Any, i: Any) -> Any:
        new = x - eta * gx
        there, slope = both(new)

        def taken(x: Any, fx: Any, gx: Any, eta: Any, i: Any) -> Any:
            return new, there, slope, eta, i + 1, True

        return loops.cond(there < fx, taken, smaller, x, fx, gx, eta, i)

    def moved(x: Any, fx: Any, gx: Any, eta: Any, i: Any) -> Any:
        near = length(eta * gx) <= 1e-5
        return loops.cond(near, halted, tried, x, fx, gx, eta, i)

    def onward(x: Any, fx: Any, gx: Any, eta: Any, i: Any) -> Any:
        return loops.cond(i == 10, larger, moved, x, fx, gx, eta, i)

    def step(state: Any) -> Any:
        x, fx, gx, eta, i, _ = state
        return loops.cond(length(gx) <= 1e-5, halted, onward, x, fx, gx, eta, i)

    first = (x, *both(x), 1e-5, 0, True)
    return loops.while_loop(lambda state: state[5], step, first)[0]


def particle(loops: peers.Loops, both: Any) -> Any:
    """The parameter with which the particle crosses the origin."""
    xp, h = loops.xp, 0.1

    def flight(w: Any) -> Any:
        def potential(x: Any, y: Any) -> Any:
            ax, ay, by = x - 10.0, y - (10.0 - w), y
            return 1.0 / xp.sqrt(ax * ax + ay * ay) + 1.0 / xp.sqrt(ax * ax + by * by)

        def step(state: Any) -> Any:
            x, y, vx, vy = state
            px, py = loops.grad(potential, (0, 1))(x, y)
            return x + h * vx, y + h * vy, vx - h * px, vy - h * py

        flying = lambda s: s[1] + h * s[3] > 0.0  # noqa: E731
        x, y, vx, vy = loops.while_loop(flying, step, (0.0, 8.0, 0.75, 0.0))
        return (x - y / vy * vx) ** 2

    return lambda w: descent(loops, both(flight), w)


def saddle(loops: peers.Loops, both: Any, inner: Any = None) -> Any:
    """The saddle point of f(p, q) = |p|^2 - |q|^2; ``inner`` is the mode of the inner descent."""
    xp, inner = loops.xp, inner or both

    def run(start: Any) -> Any:
        def against(p: Any) -> Any:
            f = lambda q: (q * q).sum() - (p * p).sum()  # noqa: E731
            return descent(loops, inner(f), start)

        def cost(p: Any) -> Any:
            q = against(p)
            return (p * p).sum() - (q * q).sum()

        p = descent(loops, both(cost), start)
        return xp.concatenate([p, against(p)])

    return run


def kepler(n: int) -> Any:
    """The sum of the eccentric anomalies."""
    means = 2.0 * np.pi * np.arange(n) / n

    def f(loops: peers.Loops) -> Any:
        xp, rows = loops.xp, loops.array(means)

        def run(p: Any) -> Any:
            def solved(_: Any, mean: Any) -> Any:
                m = mean + p[1]
                residual = lambda x: x - p[0] * xp.sin(x) - m  # noqa: E731

                def newton(state: Any) -> Any:
                    x, _ = state
                    step = residual(x) / loops.grad(residual)(x)
                    return x - step, step

                going = lambda state: abs(state[1]) > 1e-10  # noqa: E731
                return None, loops.while_loop(going, newton, (m, 0.0 * m + 1.0))[0]

            return loops.scan(solved, None, rows)[1].sum()

        return run

    return f
