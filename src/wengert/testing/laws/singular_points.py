"""Laws of singular points: branches that are not taken do not affect derivatives, also in graphs.

Eager backward passes detect NaN and are repeated with strong zeros (docs/conventions.md, "a branch
not taken").  A graph cannot do this: strong zeros are added where an operation declares its partial
derivative `singular`, and after operations that give exact zeros to elements that were not
selected.

    singular_is_declared   0 times a partial derivative is finite, or the operation is `singular`
    strong_zeros_agree     at such points graphs agree with eager execution
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np

from wengert._engine.autodiff.grad import grad
from wengert._engine.autodiff.jvp_vjp import jvp
from wengert._engine.core.op import lookup
from wengert._engine.graphs.trace import trace
from wengert.errors import CheckError

from .common import has_elementwise_derivative, is_condition, is_whole, law
from .tracing import FIRST_RTOL, compare

POINTS = (0.0, -0.0, 1.0, -1.0, 2.0, 0.5, -3.0)
EXPONENTS = (-2.0, -1.0, 0.0, 0.5, 1.0, 1.5, 2.0, 3.0)  # constants of separate graphs


def _points(op: Any) -> tuple[Any, ...]:
    """All combinations of points, an array for each operand."""
    axes: list[Any] = []
    for interval in op.domain:
        if is_condition(interval):
            axes.append([False, True])
        else:
            axes.append([-2, 0, 3] if is_whole(interval) else POINTS)
    return tuple(map(np.array, zip(*product(*axes), strict=True)))


def _slots(op: Any) -> list[int]:
    """The operands with a derivative."""
    return [
        k
        for k, d in enumerate(op.domain)
        if not is_condition(d) and not is_whole(d) and (op.rules[k] or op._gradient)
    ]


@law(applies=has_elementwise_derivative)
def singular_is_declared(op: Any, rng: np.random.Generator) -> None:
    """Where the value is not NaN, 0 times a partial derivative is 0, or `singular` is declared."""
    for _, operands, slots in _cases(op):
        graph = trace(lambda *xs, s=slots, o=operands: _applied(op, xs, s, o))(
            *[operands[k] for k in slots]
        )
        line = next(n for n in graph.nodes if n.op is op)
        if op.differentiation.is_singular(line):
            continue
        with np.errstate(all="ignore"):
            out = op.run(*operands)
            zero = np.zeros(np.shape(out))
            for k in slots:
                g = zero * op._gradient(out, *operands) if op._gradient else op.rules[k](
                    zero, out, *operands
                )  # fmt: skip
                bad = np.isnan(g) & ~np.isnan(out)
                if np.any(bad):
                    at = [np.broadcast_to(x, np.shape(out))[bad][0] for x in operands]
                    raise CheckError(
                        f"{op.name} at {at}: 0 times the partial derivative with respect to "
                        f"{op.arguments[k]} is NaN. Set singular=True, so that graphs have strong "
                        "zeros there."
                    )


def _constants(op: Any) -> Iterator[tuple[Any, ...]]:
    """Constants among the operands: none, or the second of two."""
    yield (None,) * len(op.domain)
    if len(op.domain) == 2:
        for number in EXPONENTS:
            if not is_whole(op.domain[1]) and not is_condition(op.domain[1]):
                yield None, number


def _cases(op: Any) -> Iterator[tuple[tuple[Any, ...], list[Any], list[int]]]:
    """Constants, operands including them, and the operands that are differentiated."""
    for constants in _constants(op):
        operands = [c if c is not None else x for c, x in zip(constants, _points(op), strict=True)]
        slots = [k for k in _slots(op) if constants[k] is None]
        if slots:
            yield constants, operands, slots


def _applied(op: Any, xs: Any, slots: list[int], operands: list[Any]) -> Any:
    full = list(operands)
    for k, x in zip(slots, xs, strict=True):
        full[k] = x
    return op(*full)


def _real(out: Any) -> Any:
    return out.real if out.dtype.kind == "c" else out


@law(applies=has_elementwise_derivative)
def strong_zeros_agree(op: Any, rng: np.random.Generator) -> None:
    """At singular points both modes of a graph agree with eager execution."""
    for constants, operands, slots in _cases(op):
        point = tuple(operands[k] for k in slots)
        for name, f in _programs(lambda *xs, s=slots, o=operands: _real(_applied(op, xs, s, o))):
            derivative = grad(f, tuple(range(len(point))))
            with np.errstate(all="ignore"):
                want = derivative(*point)
            got = trace(derivative)(*point)(*point)
            compare(op, got, want, f"{name} at {[*constants]}", FIRST_RTOL)
            directions = tuple(np.zeros_like(x) for x in point)
            with np.errstate(all="ignore"):
                want = jvp(f, point, directions)[1]
            got = trace(lambda *xs, f=f, d=directions: jvp(f, xs, d)[1])(*point)(*point)
            compare(op, got, want, f"{name} forward at {[*constants]}", FIRST_RTOL)


def _programs(f: Callable[..., Any]) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Functions in which some cotangents are exactly zero."""
    where, exp, total = lookup("where"), lookup("exp"), lookup("sum")

    def chosen(*xs: Any) -> Any:
        return total(where(xs[0] > 0, f(*xs), 0.0))

    def behind(*xs: Any) -> Any:
        return total(where(xs[0] > 0, exp(f(*xs) * 0.5) * xs[-1], xs[0]))

    def times_zero(*xs: Any) -> Any:
        return total(where(xs[0] == 0, 0.0, 1.0) * f(*xs))

    def inside(*xs: Any) -> Any:
        safe = where(xs[0] == 0, 1.0, xs[0])
        return total(where(xs[0] == 0, 0.0, f(safe, *xs[1:])))

    def part(*xs: Any) -> Any:
        return total(f(*xs)[2:])

    def largest(*xs: Any) -> Any:
        return lookup("max")(where(np.isnan(f(*xs)), 0.0, f(*xs)))

    def written(*xs: Any) -> Any:
        y = f(*xs) * 1.0
        y[0:2] = 0.0
        return total(y)

    yield "where", chosen
    yield "behind where", behind
    yield "times zero", times_zero
    yield "double where", inside
    yield "slice", part
    yield "largest", largest
    yield "assignment", written
