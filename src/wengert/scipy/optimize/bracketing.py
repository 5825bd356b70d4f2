"""SciPy's methods for a root in an interval, as loops of graphs.

SciPy takes functions of Python only, so a compiled program would return to Python for each value.
In a graph the methods of `scipy.optimize.Zeros` are loops: they compute the same numbers in the
same order, and results are equal to the last bit (tests/scipy/test_bracketing.py).  They become
native code with the function inside, and loops over batches.

    METHODS          the methods
    root_in_graph    the root, whether it has converged, its status, and counts
    root_unchecked   the root, without errors for the signs at the ends
    bracketed        the identity, with SciPy's errors for the signs at the ends, and for NaN

R. P. Brent, "Algorithms for minimization without derivatives", 1973; C. Ridders, "A new algorithm
for computing a single root of a real continuous function", 1979.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from wengert._engine.control_flow import while_loop
from wengert._engine.core.spec import Spec
from wengert._engine.kinds.opaque import opaque
from wengert.errors import ArgumentError, at, user_line

Function = Callable[[Any], Any]


class RootLimits(NamedTuple):
    """The tolerances of a method, and the maximal number of its steps."""

    xtol: float
    rtol: float
    maxiter: int


class _BracketState(NamedTuple):
    """The result of a method so far, and what it carries from step to step.

    x : the root if the method stops now.
    value : that of the function, for the check of NaN.
    steps, calls : counts.
    done : whether it has converged, or cannot continue.
    own : tuple of numbers.
    """

    x: Any
    value: Any
    steps: Any
    calls: Any
    done: Any
    own: Any


def _same_signs(x: Any, y: Any) -> Any:
    return np.signbit(x) == np.signbit(y)


def _brent(extrapolated: Callable[..., Any]) -> Callable[..., Any]:
    def step(f: Function, own: Any, limits: RootLimits) -> tuple[Any, ...]:
        xpre, xcur, xblk, fpre, fcur, fblk, spre, scur = own
        changes = (fpre != 0.0) & (fcur != 0.0) & ~_same_signs(fpre, fcur)
        xblk, fblk = np.where(changes, xpre, xblk), np.where(changes, fpre, fblk)
        spre = np.where(changes, xcur - xpre, spre)
        scur = np.where(changes, xcur - xpre, scur)
        swaps = np.abs(fblk) < np.abs(fcur)
        xpre, xcur, xblk = (
            np.where(swaps, xcur, xpre),
            np.where(swaps, xblk, xcur),
            np.where(swaps, xcur, xblk),
        )
        fpre, fcur, fblk = (
            np.where(swaps, fcur, fpre),
            np.where(swaps, fblk, fcur),
            np.where(swaps, fcur, fblk),
        )
        delta = (limits.xtol + limits.rtol * np.abs(xcur)) / 2.0
        sbis = (xblk - xcur) / 2.0
        done = (fcur == 0.0) | (np.abs(sbis) < delta)
        interpolated = -fcur * (xcur - xpre) / (fcur - fpre)
        dpre = (fpre - fcur) / (xpre - xcur)
        dblk = (fblk - fcur) / (xblk - xcur)
        stry = np.where(xpre == xblk, interpolated, extrapolated(fpre, fcur, fblk, dpre, dblk))
        bound = np.minimum(np.abs(spre), 3.0 * np.abs(sbis) - delta)
        short = (np.abs(spre) > delta) & (np.abs(fcur) < np.abs(fpre))
        short = short & (2.0 * np.abs(stry) < bound)
        spre, scur = np.where(short, scur, sbis), np.where(short, stry, sbis)
        moved = xcur + np.where(np.abs(scur) > delta, scur, np.where(sbis > 0.0, delta, -delta))
        value = f(moved)
        after = (xcur, moved, xblk, fcur, value, fblk, spre, scur)
        return done, xcur, fcur, moved, value, after, 1

    return step


def _bisect(f: Function, own: Any, limits: RootLimits) -> tuple[Any, ...]:
    xa, fa, dm = own
    dm = dm * 0.5
    xm = xa + dm
    fm = f(xm)
    left = np.where(_same_signs(fm, fa), xm, xa)
    done = (fm == 0.0) | (np.abs(dm) < limits.xtol + limits.rtol * np.abs(xm))
    return done, xm, fm, left, fm, (left, fa, dm), 1


def _ridder(f: Function, own: Any, limits: RootLimits) -> tuple[Any, ...]:
    xa, xb, fa, fb, tol = own
    dm = 0.5 * (xb - xa)
    xm = xa + dm
    fm = f(xm)
    dn = np.where(fb - fa > 0.0, 1.0, -1.0) * dm * fm / np.sqrt(fm * fm - fa * fb)
    xn = xm - np.where(dn > 0.0, 1.0, -1.0) * np.minimum(np.abs(dn), np.abs(dm) - 0.5 * tol)
    fn = f(xn)
    inner, left = ~_same_signs(fn, fm), ~_same_signs(fn, fa)
    xa, xb, fa, fb = (
        np.where(inner, xn, np.where(left, xa, xn)),
        np.where(inner, xm, np.where(left, xn, xb)),
        np.where(inner, fn, np.where(left, fa, fn)),
        np.where(inner, fm, np.where(left, fn, fb)),
    )
    tol = limits.xtol + limits.rtol * xn
    done = (fn == 0.0) | (np.abs(xb - xa) < tol)
    value = np.where(np.isnan(fm), fm, fn)
    return done, xn, value, xn, value, (xa, xb, fa, fb, tol), 2


METHODS: dict[str, Callable[..., Any]] = {
    "brentq": _brent(
        lambda fpre, fcur, fblk, dpre, dblk: (
            -fcur * (fblk * dblk - fpre * dpre) / (dblk * dpre * (fblk - fpre))
        )
    ),
    "brenth": _brent(
        lambda fpre, fcur, fblk, dpre, dblk: -fcur * (fblk - fpre) / (fblk * dpre - fpre * dblk)
    ),
    "bisect": _bisect,
    "ridder": _ridder,
}


def _start(method: str, a: Any, b: Any, fa: Any, fb: Any, limits: RootLimits) -> tuple[Any, ...]:
    zero = 0.0 * a
    if method == "bisect":
        return a, fa, b - a
    if method == "ridder":
        tol = limits.xtol + limits.rtol * np.minimum(np.abs(a), np.abs(b))
        return a, b, fa, fb, tol
    return a, b, zero, fa, fb, zero, zero, zero


def root_in_graph(method: str, f: Function, a: Any, b: Any, limits: RootLimits) -> list[Any]:
    """The root of a traced function in an interval: root, success, status, nfev, nit.

    Parameters
    ----------
    method : str
        A key of `METHODS`.
    f : callable
        Of one number.
    a, b : number
        The ends of the interval.
    limits : RootLimits
    """
    last, ends = _last_state(method, f, a, b, limits)
    root = bracketed(last.x, *ends, last.value)
    success = last.done
    status = np.where(success, np.int64(0), np.int64(1))
    return [root, success, status, last.calls, last.steps]


def root_unchecked(method: str, f: Function, a: Any, b: Any, limits: RootLimits) -> Any:
    """The root as by `root_in_graph`; an end, without an error, if the signs there are equal."""
    return _last_state(method, f, a, b, limits)[0].x


def _last_state(
    method: str, f: Function, a: Any, b: Any, limits: RootLimits
) -> tuple[_BracketState, tuple[Any, Any]]:
    """The last state of the loop, and the values at the ends of the interval."""
    advance, one = METHODS[method], np.int64(1)
    # Of Brent's methods the value at the root is known when it is tested, one step later.
    tests_later = method.startswith("brent")
    fa, fb = f(a), f(b)

    def goes_on(state: Any) -> Any:
        return ~state[4] & (state[2] < limits.maxiter)

    def step(state: Any) -> Any:
        old = _BracketState(*state)
        done, x, value, moved, latest, after, calls = advance(f, old.own, limits)
        counted = old.calls + np.where(done, np.int64(0), one) if tests_later else old.calls + calls
        broken = np.isnan(latest) & ~done if tests_later else np.isnan(latest)
        return _BracketState(
            np.where(done, x, moved),
            np.where(done, value, latest),
            old.steps + one,
            counted,
            done | broken,
            after,
        )

    at_end = (fa == 0.0) | (fb == 0.0)
    x = np.where(fa == 0.0, a, b)
    broken = np.isnan(fa) | np.isnan(fb) | (_same_signs(fa, fb) & ~at_end)
    start = _BracketState(
        x,
        np.where(fa == 0.0, fa, fb),
        np.int64(0),
        np.int64(2),
        at_end | broken,
        _start(method, a, b, fa, fb, limits),
    )
    return _BracketState(*while_loop(goes_on, step, start)), (fa, fb)


@opaque(name="bracketed", trusted=True, oracle=lambda x, fa, fb, value: x)
def bracketed(x: Any, fa: Any, fb: Any, value: Any) -> Any:
    """x, unless the function has equal signs at the ends, or is NaN."""
    for y in (fa, fb, value):
        if np.any(np.isnan(y)):
            raise ArgumentError(
                f"the function value at x={x} is NaN; the solver cannot continue{at(user_line())}."
            )
    if np.any((np.signbit(fa) == np.signbit(fb)) & (fa != 0.0) & (fb != 0.0)):
        raise ArgumentError(f"f(a) and f(b) must have different signs{at(user_line())}.")
    return np.array(x)[()]


@bracketed.spec
def _(x: Spec, fa: Spec, fb: Spec, value: Spec) -> Any:
    return x


@bracketed.define_vjp
def _(t: Any, out: Any, x: Any, fa: Any, fb: Any, value: Any) -> Any:
    return t, None, None, None


@bracketed.define_jvp
def _(dots: Any, out: Any, x: Any, fa: Any, fb: Any, value: Any) -> Any:
    return dots[0]


@bracketed.batch
def _(args: Any, batched: Any, size: Any) -> Any:
    return bracketed(*args) if batched[0] else NotImplemented


@bracketed.examples
def _(rng: np.random.Generator) -> Any:
    yield (np.float64(rng.normal()), np.float64(-1.0), np.float64(2.0), np.float64(1e-9)), {}
    ends = np.array([-0.5, -1.0, -2.0])
    yield (rng.normal(size=3), ends, -ends, np.zeros(3)), {}
