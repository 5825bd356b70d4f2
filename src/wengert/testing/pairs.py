"""check_pairs: compositions of two elementwise operations.

The laws of single operations do not see what goes wrong between two: a value that a rule keeps, a
rewriting of their composition, a fused loop.  So for each pair f and g these are checked:

    f(g(x)), f(x, g(x))    the second for operations of at least two operands

    eager       value, first derivative by reverse and by forward mode, second derivative, against
                finite differences of the composition of the plain NumPy functions
    graph       value and both derivatives, run by the interpreter, against the eager ones
    native      the same in one native program for many pairs, against the interpreter

    check_pairs   checks all pairs of operations
    pairable      the operations that have such compositions
    Composed      a composition with points where its differences are accurate

If no value of g is in the domain of f, a linear function is between them.  Points are chosen where
no kink and no end of a domain is near; differences are computed with two steps, and their
difference bounds the error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isinf
from typing import Any, NamedTuple

import numpy as np

from wengert._engine.autodiff.grad import grad
from wengert._engine.autodiff.jvp_vjp import jvp
from wengert._engine.core import display
from wengert._engine.core.op import REGISTRY, Op, lookup
from wengert._engine.graphs.trace import trace
from wengert._engine.jit import jit
from wengert.errors import CheckError

from .laws.common import draw, has_elementwise_derivative, is_condition, is_whole

STEP = 2.0**-9  # relative to a point
POINTS, CANDIDATES, ATTEMPTS = 3, 400, 5
LARGEST_VALUE = (
    30.0  # of a value of g, and of a derivative of the composition relative to its value
)
LEAST_VALUE = 1e-30
OFFSETS = np.array([-2.0, -1.0, 0.0, 1.0, 2.0])
FIRST = np.array([1.0, -8.0, 0.0, 8.0, -1.0]) / 12.0
SECOND = np.array([-1.0, 16.0, -30.0, 16.0, -1.0]) / 12.0
FIRST_TOLERANCE, SECOND_TOLERANCE = 1e-8, 1e-5
EXACT_TOLERANCE = 1e-11  # of results of the same operations, by another way


@display.shown_fields
@dataclass(frozen=True)
class PairReport:
    """The compositions that `check_pairs` has checked, and those without suitable points."""

    checked: int
    without_points: tuple[str, ...]

    def __str__(self) -> str:
        word = "composition" if self.checked == 1 else "compositions"
        return f"{self.checked} {word}, {len(self.without_points)} without suitable points"


class Composed(NamedTuple):
    """A composition of two operations.

    name : the formula, for messages.
    plain : the composition of the NumPy functions.
    ours : the composition of the operations.
    x : points where differences are accurate.
    """

    name: str
    plain: Callable[[Any], Any]
    ours: Callable[[Any], Any]
    x: Any


def pairable() -> list[Any]:
    """The differentiable elementwise operations of the registry with an operand of real numbers."""
    return [
        op
        for op in REGISTRY.values()
        if has_elementwise_derivative(op) and _real_slots(op) and _is_real(op)
    ]


def check_pairs(
    ops: Sequence[Op | str] | None = None,
    partners: Sequence[Op | str] | None = None,
    *,
    seed: int = 0,
    native: bool = True,
) -> PairReport:
    """Check the compositions f(g(x)) and f(x, g(x)) of elementwise operations.

    Parameters
    ----------
    ops : sequence of Op or str, optional
        The operations f; default all.
    partners : sequence of Op or str, optional
        The operations g; default all.
    seed : int
        Seed of the points.
    native : bool, default True
        Whether native code is compared, too, in a program for each f.

    Returns
    -------
    PairReport
        The number of compositions.

    Raises
    ------
    CheckError
        A value or derivative is wrong; the message names both operations, the point and the
        numbers.

    Examples
    --------
    >>> from wengert.testing import check_pairs
    >>> print(check_pairs(["tanh", "multiply"], ["exp", "sqrt"], native=False))
    6 compositions, 0 without suitable points
    """
    checked, missing = 0, []
    inner = [_op(g) for g in partners or pairable()]
    for f in [_op(f) for f in ops or pairable()]:
        found = []
        for g in inner:
            rng = np.random.default_rng([seed, *f"{f.name} {g.name}".encode()])
            for twice in (False, True)[: 1 + (len(_real_slots(f)) > 1)]:
                one = composed(f, g, twice, rng)
                if one is None:
                    missing.append(f"{f.name} of {g.name}")
                else:
                    found.append(one)
        derived = [check_composed(one) for one in found]
        if native and found:
            _check_native(f.name, found, derived)
        checked += len(found)
    return PairReport(checked, tuple(missing))


def _op(op: Op | str) -> Any:
    return lookup(op) if isinstance(op, str) else op


# ---- compositions ------------------------------------------------------------------------------


def _real_slots(op: Any) -> list[int]:
    """The operands of real numbers that have a derivative."""
    return [
        k
        for k, interval in enumerate(op.domain)
        if not is_whole(interval) and not is_condition(interval) and op.rules[k] is not None
    ]


def _is_real(op: Any) -> bool:
    """Whether the results for real numbers are real."""
    with np.errstate(all="ignore"):
        out = op.run(*[draw(interval, np.random.default_rng(0), (1,)) for interval in op.domain])
    return bool(np.asarray(out).dtype.kind == "f")


def _inside(op: Any, slot: int, u: Any) -> Any:
    """Whether values are inside an operand's domain, and away from its kinks."""
    low, high = op.domain[slot]
    good = np.isfinite(u) & (u > low) & (u < high) & (np.abs(u) < LARGEST_VALUE) & ~_is_tiny(u)
    for kink in op.kinks:
        good &= np.abs(u - kink) > 0.02
    return good


def composed(f: Any, g: Any, twice: bool, rng: np.random.Generator) -> Composed | None:
    """f(g(x)), or with `twice` f(x, g(x)); None if no suitable points are found."""
    for attempt in range(ATTEMPTS):
        one = _drawn(f, g, twice, rng, always_scaled=attempt > 1)
        with np.errstate(all="ignore"):
            chosen = one.x[_accurate(one, one.x)][:POINTS]
        if len(chosen) == POINTS:
            return one._replace(x=chosen)
    return None


def _drawn(f: Any, g: Any, twice: bool, rng: np.random.Generator, always_scaled: bool) -> Composed:
    """A composition with random constants as other operands, at points inside the domains."""
    inner, slots = _real_slots(g)[0], _real_slots(f)
    slot = slots[1] if twice else slots[0]
    x = draw(g.domain[inner], rng, (CANDIDATES,))
    fixed_g = [draw(interval, rng, ()) for interval in g.domain]
    fixed_f = [draw(interval, rng, ()) for interval in f.domain]

    def with_g(run: Any, x: Any) -> Any:
        return run(*[x if k == inner else a for k, a in enumerate(fixed_g)])

    def with_f(run: Any, x: Any, u: Any) -> Any:
        given = list(fixed_f)
        given[slot] = u
        if twice:
            given[slots[0]] = x
        return run(*given)

    with np.errstate(all="ignore"):
        scale, shift = _between(f, slot, with_g(g.run, x), rng, always_scaled)
    direct = scale == 1.0 and shift == 0.0

    def scaled(u: Any) -> Any:
        return u if direct else scale * u + shift

    with np.errstate(all="ignore"):
        around = _stencil(x, STEP)
        u = with_g(g.run, around)
        good = _inside(g, inner, around) & ~_is_tiny(u) & _inside(f, slot, scaled(u))
        if twice:
            good &= _inside(f, slots[0], around)
    name = f"{g.name}(x)" if direct else f"{scale:.4g} * {g.name}(x) + {shift:.4g}"
    return Composed(
        f"{f.name}({'x, ' * twice}{name})",
        lambda x: with_f(f.run, x, scaled(with_g(g.run, x))),
        lambda x: with_f(f, x, scaled(with_g(g, x))),
        x[np.all(good, axis=0)],
    )


def _is_tiny(x: Any) -> Any:
    """Whether numbers underflow in squares, or stand for no solution in inverses of SciPy."""
    return (x != 0.0) & (np.abs(x) < LEAST_VALUE)


def _between(
    f: Any, slot: int, u: Any, rng: np.random.Generator, always: bool
) -> tuple[float, float]:
    """Scale and shift that take values of g into the domain of f; 1 and 0 if some are there."""
    if not always and np.sum(_inside(f, slot, u)) >= CANDIDATES // 8:
        return 1.0, 0.0
    usual = u[np.isfinite(u) & (np.abs(u) < LARGEST_VALUE)]
    if not usual.size:
        return 1.0, 0.0
    low, high = f.domain[slot]
    width = 1.0 if isinf(low) or isinf(high) else 0.4 * (high - low)
    middle = float(np.median(draw(f.domain[slot], rng, (9,))))
    scale = width / (2.0 * (float(np.ptp(usual)) + 1.0))
    return scale, middle - scale * float(np.median(usual))


# ---- differences -------------------------------------------------------------------------------


def _stencil(x: Any, step: float) -> Any:
    return x + step * np.maximum(1.0, np.abs(x)) * OFFSETS[:, None]


def _differences(one: Composed, x: Any, step: float) -> tuple[Any, Any, Any]:
    """Value, first and second derivative by five-point differences."""
    y = np.asarray(one.plain(_stencil(x, step)), float)
    h = step * np.maximum(1.0, np.abs(x))
    return y[2], FIRST @ y / h, SECOND @ y / h**2


def _accurate(one: Composed, x: Any) -> Any:
    """Where differences are accurate: smooth, and not too steep."""
    if not len(x):
        return np.zeros(0, bool)
    y, first, second = _differences(one, x, STEP)
    _, finer, curved = _differences(one, x, STEP / 2)
    size = np.abs(y) + 1e-3
    good = (
        ~_is_tiny(y)
        & np.isfinite(first)
        & np.isfinite(second)
        & (np.abs(y) < 1e6)
        & (np.abs(first) < LARGEST_VALUE * size)
    )
    good &= np.abs(second) < LARGEST_VALUE**2 * size
    good &= np.abs(first - finer) <= 1e-5 * (np.abs(finer) + size)
    return good & (np.abs(second - curved) <= 1e-2 * (np.abs(curved) + size))


# ---- checks ------------------------------------------------------------------------------------


def _derived(ours: Callable[[Any], Any], x: Any) -> tuple[Any, Any, Any]:
    """Value, first derivative by reverse mode, second by forward over reverse."""
    slope = grad(lambda x: np.sum(ours(x)))
    first, second = jvp(slope, (x,), (np.ones_like(x),))
    return ours(x), first, second


def check_composed(one: Composed) -> tuple[Any, Any, Any]:
    """Check a composition in eager mode and in a graph; its value and derivatives.

    Raises
    ------
    CheckError
        A value or derivative is wrong.
    """
    x = one.x
    with np.errstate(all="ignore"):
        y, rough, bent = _differences(one, x, STEP)
        _, first, second = _differences(one, x, STEP / 2)
    value, slope, curve = (np.asarray(a) for a in _derived(one.ours, x))
    forward = np.asarray(jvp(one.ours, (x,), (np.ones_like(x),))[1])
    size = np.abs(y) + np.abs(first) + 1e-3
    _near(one, "the value", value, y, 1e-13 * size)
    allowed = 4.0 * np.abs(rough - first) + FIRST_TOLERANCE * size
    _near(one, "the derivative by reverse mode", slope, first, allowed)
    _near(one, "the derivative by forward mode", forward, first, allowed)
    allowed = 4.0 * np.abs(bent - second) + SECOND_TOLERANCE * (size + np.abs(second))
    _near(one, "the second derivative", curve, second, allowed)
    graph = trace(lambda x: _derived(one.ours, x))(x)
    _agree(one, "the graph", graph(x), (value, slope, curve))
    return value, slope, curve


def _near(one: Composed, what: str, got: Any, want: Any, allowed: Any) -> None:
    wrong = ~(np.abs(got - want) <= allowed)
    if np.any(wrong):
        k = int(np.argmax(wrong))
        raise CheckError(
            f"{one.name} at x = {one.x[k]!r}: {what} is {got[k]!r}, but that of the NumPy "
            f"functions is {want[k]!r}, with an error of at most {allowed[k]:.1g}."
        )


def _agree(one: Composed, who: str, got: Any, want: Any) -> None:
    """Check results of the same operations."""
    for what, a, b in zip(
        ("value", "first derivative", "second derivative"), got, want, strict=True
    ):
        size = np.abs(want[0]) + np.abs(b) + 1e-3
        wrong = ~(np.abs(np.asarray(a) - b) <= EXACT_TOLERANCE * size)
        if np.any(wrong):
            k = int(np.argmax(wrong))
            raise CheckError(
                f"{one.name} at x = {one.x[k]!r}: the {what} of {who} is {np.asarray(a)[k]!r}, but "
                f"that of eager execution is {b[k]!r}."
            )


def _check_native(name: str, found: Sequence[Composed], derived: Sequence[Any]) -> None:
    """Compare one native program with eager results."""

    def program(points: Any) -> Any:
        return [_derived(one.ours, x) for one, x in zip(found, points, strict=True)]

    program.__name__ = f"pairs_of_{name}"
    results = jit(program)([one.x for one in found])
    for one, got, want in zip(found, results, derived, strict=True):
        _agree(one, "native code", got, want)
