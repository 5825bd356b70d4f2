"""Laws of elementwise operations over their full range, and of singular points, also in graphs.

    singular_is_declared  0 times a partial derivative is finite, or the operation is `singular`
    strong_zeros_agree    at such points graphs agree with eager execution

The laws in common.py use moderate operands.  Here operands are close to 0 and 1, at the ends of the
domain, where exp overflows, and where a tail underflows.  The oracle is mpmath with 40 digits, and
errors are measured in units in the last place: a body that is inaccurate in a tail (0.5 + 0.5
tanh(x/2) for the sigmoid) fails, although its absolute error is small.

Eager backward passes detect NaN and are repeated with strong zeros (docs/conventions.md, "a branch
not taken").  A graph cannot do this: strong zeros are added where an operation declares its partial
derivative `singular`, and after operations that give exact zeros to elements that were not
selected.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from math import isinf, nextafter
from typing import Any

import numpy as np

from wengert._engine.autodiff.grad import grad
from wengert._engine.autodiff.jvp_vjp import jvp
from wengert._engine.core.op import lookup
from wengert._engine.core.spec import spec_of
from wengert._engine.graphs.trace import trace
from wengert.errors import CheckError

from ..grad_checks import check_grads
from ..mpmath_oracle import mpmath, oracle_of
from .common import (
    draw,
    has_derivative,
    has_elementwise_derivative,
    is_condition,
    is_elementwise,
    is_whole,
    law,
)
from .tracing import FIRST_RTOL, compare

ULPS = 4.0  # error of a body; for operations with a ufunc in addition to the error of the ufunc
PARTIAL_RTOL = 1e-12
HARD = (
    0.0, 1e-300, 1e-18, 1e-9, 1e-4, 0.03, 0.25, 0.5, 0.84, 0.9, 1.0, 1.0 + 1e-9, 1.2, 1.3, 1.5708,
    2.0, 2.86, 3.1416, 5.3, 9.0, 19.5, 26.0, 37.3, 40.0, 88.1, 333.3, 700.9, 745.0, 2000.1, 1e10,
    1e160,
)  # fmt: skip
FEW_POINTS = (1e-9, 0.25, 1.0, 1.3, 3.1416, 40.0, 700.9)  # for two or more operands


def hard_points(op: Any) -> list[tuple[Any, ...]]:
    """Combinations of difficult numbers inside the domains of the operands."""
    numbers = HARD if len(op.arguments) == 1 else FEW_POINTS
    axes = []
    for interval in op.domain:
        low, high = interval
        if is_whole(interval):
            axes.append([low, 0, high])
            continue
        if is_condition(interval):
            axes.append([False, True])
            continue
        some = [s * v for v in numbers for s in (1.0, -1.0)]
        for end, inward in ((low, 1.0), (high, -1.0)):
            if not isinf(end):
                some += [end + inward * d for d in (1e-3, 1e-9)] + [nextafter(end, end + inward)]
        some = sorted(set(some))
        axes.append([v for v in some if low < v < high and v not in op.kinks])
    return list(product(*axes))


def _has_exact_values(op: Any) -> bool:
    """Whether mpmath can compute the values of an elementwise operation."""
    # mpmath's nextafter gives the direction of the neighbor only
    return is_elementwise(op) and isinstance(op.oracle, str) and op.name != "nextafter"


def _has_exact_partials(op: Any) -> bool:
    return _has_exact_values(op) and has_derivative(op)


def _takes_complex(op: Any) -> bool:
    return is_elementwise(op) and op.complex_ok


def _values(run: Any, points: list[tuple[Any, ...]]) -> Any:
    with np.errstate(all="ignore"):
        return np.asarray(run(*map(np.array, zip(*points, strict=True))))


def _exact_values(oracle: Any, points: list[tuple[Any, ...]]) -> list[Any]:
    mp = mpmath()
    found = []
    for x in points:
        try:
            v = oracle(*x)
        except (ZeroDivisionError, OverflowError, ValueError):
            v = mp.nan
        found.append(v)
    return found


def error_in_ulps(got: Any, want: Any) -> float:
    """The error of a float in units in the last place; for subnormal numbers the smallest unit."""
    mp = mpmath()
    nearest = np.float64(float(want))
    if np.isinf(nearest) or np.isnan(nearest):
        return 0.0 if got == nearest or np.isnan(nearest) else np.inf
    if not np.isfinite(got):
        return 0.0 if abs(nearest) > 1.797e308 else np.inf
    unit = mp.mpf(float(np.spacing(np.abs(nearest))))
    return float(abs(mp.mpf(float(got)) - want) / unit)


@law(applies=_has_exact_values)
def value_keeps_its_digits(op: Any, rng: np.random.Generator) -> None:
    """The body agrees with mpmath over the full range, to a few units in the last place."""
    oracle = oracle_of(op)
    points = hard_points(op)
    bodies = _values(op._run_body, points)
    if bodies.dtype.kind not in "f":
        return
    theirs = _values(op.run, points) if op.ufunc is not None else bodies
    # Near the edge of a step function either value is allowed, because its operand is rounded.
    for x, body, their, want in zip(
        points, bodies, theirs, _exact_values(oracle, points), strict=True
    ):
        if isinstance(want, mpmath().mpc) or (op.discrete and body == their):
            continue
        error = error_in_ulps(body, want)
        allowed = ULPS + (4.0 * error_in_ulps(their, want) if op.ufunc is not None else 0.0)
        if not error <= allowed:
            raise CheckError(
                f"{op.name} at {x}: the body gives {body!r}, mpmath {float(want)!r}, "
                f"{error:.3g} units in the last place; {allowed:.3g} are allowed."
            )


@law(applies=_has_exact_partials)
def partials_keep_their_digits(op: Any, rng: np.random.Generator) -> None:
    """Partial derivatives agree with mpmath's derivatives of the oracle over the full range."""
    oracle = oracle_of(op)
    points = hard_points(op)
    operands = [np.array(c) for c in zip(*points, strict=True)]
    for k in range(len(op.arguments)):
        if operands[k].dtype.kind != "f":
            continue
        with np.errstate(all="ignore"):
            _, got = jvp(
                lambda x, k=k: op(*operands[:k], x, *operands[k + 1 :]),
                (operands[k],),
                (np.ones_like(operands[k]),),
            )
        for x, g in zip(points, got, strict=True):
            _check_partial(op, oracle, k, x, g)


def _check_partial(op: Any, oracle: Any, k: int, x: tuple[Any, ...], got: Any) -> None:
    mp = mpmath()
    exact = [v if isinstance(v, bool) else mp.mpf(v) for v in x]
    point = exact[k]

    def along(v: Any) -> Any:
        return oracle(*exact[:k], v, *exact[k + 1 :])

    def slope(v: Any, h: Any) -> Any:
        return (along(v + h) - along(v - h)) / (2 * h)

    try:
        for digits in (120, 800):
            with mp.workdps(digits):
                h = (min(abs(point), 1) if point else 1) / mp.pi * mp.mpf(10) ** -25
                want = slope(point, h)
            if want != 0 and abs(point) < 1e30:
                break  # otherwise it may be zero by cancellation
        if isinstance(want, mp.mpf) and abs(mp.mpf(float(got)) - want) <= PARTIAL_RTOL * abs(want):
            return
        with mp.workdps(digits):
            part = abs(point) * mp.mpf(2) ** -52 / mp.e  # a fraction of a unit in the last place
            near = [slope(point + n * part, h) for n in (-2, -1, 1, 2)]
            bend = abs(along(point + h) + along(point - h) - 2 * along(point))
    except (ZeroDivisionError, OverflowError, ValueError):
        return
    if any(isinstance(w, mp.mpc) or mp.isnan(w) for w in (want, *near)):
        return
    size = abs(want)
    if bend > h * size or (size and not 1e-290 < size < 1e300):
        return  # a kink or a jump between the points, or close to overflow
    # Allow for the rounding of the operand.
    allowed = PARTIAL_RTOL * size + 16 * max(abs(w - want) for w in near)
    if not abs(mp.mpf(float(got)) - want) <= allowed:
        raise CheckError(
            f"{op.name}, partial derivative with respect to {op.arguments[k]} at {x}: {got!r}, but "
            "mpmath's derivative of "
            f"the oracle is {float(want)!r}."
        )


# ---- complex numbers ---------------------------------------------------------------------------


def complex_points(op: Any, rng: np.random.Generator) -> Iterator[tuple[Any, ...]]:
    """Complex operands with real parts in the domain, away from axes and branch cuts."""
    for shape in [(4,), ()]:
        operands = []
        for interval in op.domain:
            if is_condition(interval) or is_whole(interval):
                operands.append(np.asarray(draw(interval, rng, shape)))
                continue
            imaginary = rng.uniform(0.2, 1.0, size=shape) * rng.choice([-1.0, 1.0], size=shape)
            operands.append(np.asarray(draw(interval, rng, shape) + 1j * imaginary))
        yield tuple(operands)


@law(applies=_takes_complex)
def complex_numbers_are_operands(op: Any, rng: np.random.Generator) -> None:
    """For complex operands, if allowed, the value agrees with the oracle, and both modes agree."""
    for args in complex_points(op, rng):
        got = np.ravel(op.run(*args))
        if isinstance(op.oracle, str):
            for i, x in enumerate(zip(*map(np.ravel, args), strict=True)):
                want = complex(oracle_of(op)(*[v.item() for v in x]))
                if not abs(got[i] - want) <= 1e-13 * max(1.0, abs(want)):
                    raise CheckError(f"{op.name} at {x}: {got[i]}, but mpmath gives {want}.")
        if op.differentiable and not op.discrete:
            check_grads(op, args, order=2)


# ---- dtypes and shapes -------------------------------------------------------------------------


@law(applies=is_elementwise)
def precision_is_kept(op: Any, rng: np.random.Generator) -> None:
    """Values and gradients have the precision of the operands: float16, float32, complex64."""
    dtypes: list[Any] = [np.float16, np.float32] + [np.complex64] * op.complex_ok
    for dtype in dtypes:
        args = [_in_dtype(draw(d, rng, (3,)), dtype, op, k) for k, d in enumerate(op.domain)]
        # With an int8 operand NumPy keeps single precision; with an int64 it would not.
        args = [a.astype(np.int8) if a.dtype.kind == "i" else a for a in args]
        with np.errstate(all="ignore"):
            out = op.run(*args)
        keeps = op.half if dtype == np.float16 else op.single
        stated = op.ufunc is not None or not keeps
        if out.dtype.kind in "fc" and not stated:  # else the ufunc determines the dtype
            bits = np.finfo(out.dtype).bits
            if bits != np.finfo(dtype).bits:
                raise CheckError(f"{op.name} of {np.dtype(dtype)} gives {out.dtype}.")
        if op.discrete or not op.differentiable:
            continue
        slots = [k for k, a in enumerate(args) if a.dtype == dtype]
        bars = grad(lambda *xs: _sum_real(op(*xs)), argnums=slots)(*args)
        for k, bar in zip(slots, bars, strict=True):
            if bar.dtype != dtype:
                raise CheckError(
                    f"{op.name}: operand {op.arguments[k]} is {np.dtype(dtype)}, its gradient "
                    f"{bar.dtype}."
                )


def _sum_real(out: Any) -> Any:
    return (out.real if out.dtype.kind == "c" else out).sum()


def _in_dtype(x: Any, dtype: Any, op: Any, k: int) -> Any:
    if is_whole(op.domain[k]) or is_condition(op.domain[k]):
        return x
    return np.asarray(x).astype(dtype)


@law(applies=is_elementwise)
def python_numbers_are_weak(op: Any, rng: np.random.Generator) -> None:
    """`infer` and `run` agree for all combinations of float32 arrays and Python numbers."""
    single = [_in_dtype(draw(d, rng, (3,)), np.float32, op, k) for k, d in enumerate(op.domain)]
    for weak in product((False, True), repeat=len(single)):
        args = [a[0].item() if w else a for a, w in zip(single, weak, strict=True)]
        with np.errstate(all="ignore"):
            out = op.run(*args)
        want = spec_of(out)
        got = op.infer([spec_of(a) for a in args], {})
        if (got.shape, got.dtype) != (want.shape, want.dtype):
            raise CheckError(
                f"{op.name} of {[str(spec_of(a)) for a in args]} infers {got}, but its value is "
                f"{want}."
            )


@law(applies=is_elementwise)
def empty_arrays_pass(op: Any, rng: np.random.Generator) -> None:
    """Empty arrays have empty values and empty gradients."""
    args = [_in_dtype(draw(d, rng, (2, 0)), np.float64, op, k) for k, d in enumerate(op.domain)]
    out = op.run(*args)
    if np.shape(out) != (2, 0):
        raise CheckError(f"{op.name} of arrays of shape (2, 0) has shape {np.shape(out)}.")
    if op.discrete or not op.differentiable:
        return
    slots = [k for k, a in enumerate(args) if a.dtype.kind == "f"]
    for bar in grad(lambda *xs: _sum_real(op(*xs)), argnums=slots)(*args):
        if bar.shape != (2, 0):
            raise CheckError(f"{op.name} of arrays of shape (2, 0): gradient {bar.shape}.")


# ---- singular points ---------------------------------------------------------------------------


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
