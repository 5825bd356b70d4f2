"""Loops that native code can trace, quadrature of many integrals, truncated power series.

    repeat              a loop with carried values, and a condition for each element
    fail_where          raises an error where a value cannot be computed
    is_traced_scalar    whether a value is a traced scalar of native code, which has no value yet
    integrals           Gauss-Legendre, elementwise from low to high
    trapezoid           of analytic functions that vanish at both ends
    edge                the distance at which a concave exponent has decreased by a given amount
    exponential         exp of a series, divided by exp(c[0, 0])
    product             a series times a polynomial of degree 1 in one variable
    log_gamma           the series of log gamma(x + h), without its constant
    stirling_remainder  log gamma minus Stirling's formula, without cancellation
    log_minus_psi       log(x) - psi(x), without cancellation
    zeros               the series 0
    BERNOULLI           the Bernoulli numbers B_2, B_4 ... of DLMF 24.2(iv)

Python loops are unrolled while tracing.  `repeat` is for loops with many iterations, or with a
number of iterations that depends on values.

Derivatives of special functions with respect to orders and parameters are integrals of smooth
functions that are negligible outside of a window.  For these, a Gauss-Legendre rule of 24 points on
each of a few panels is accurate to rounding.  The cost is an exponential at each point, so elements
that need equally many panels are integrated together, in chunks that fit in memory.

A series is an array whose first two axes are the powers: c[j, k] is the coefficient of h**j g**k.
The derivative of orders j and k is j! k! c[j, k].  The other axes are those of the elements.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import log, pi
from typing import Any

import numpy as np
from scipy import special

__all__: list[str] = []

# ---- loops -------------------------------------------------------------------------------------


def is_traced_scalar(x: Any) -> bool:
    """Whether x is a scalar with which native code traces a function."""
    return hasattr(x, "writer")


def fail_where(condition: Any, message: Callable[[], str]) -> None:
    """Raise an error if a condition holds for any element.

    In native code such elements are computed again by the interpreter, which raises the error.

    Raises
    ------
    OverflowError
        The condition holds for an element.
    """
    if is_traced_scalar(condition):
        condition.writer.refuse(condition)
    elif np.any(condition):
        raise OverflowError(message())


def repeat(
    step: Callable[..., Any],
    state: Sequence[Any],
    times: int,
    continues: Callable[..., Any] | None = None,
) -> tuple[Any, ...]:
    """Apply a step repeatedly to carried values.

    Parameters
    ----------
    step : callable
        ``step(k, *state)`` returns the next state, with the same dtypes; k counts from 0.
    state : sequence of ndarray
        The initial values.
    times : int
        The maximum number of steps.
    continues : callable, optional
        ``continues(*state)`` is a mask of the elements that need another step; the others do not
        change.

    Returns
    -------
    tuple of ndarray
    """
    writer = next((x.writer for x in state if is_traced_scalar(x)), None)
    if writer is not None:
        return writer.repeat(step, state, times, continues)  # type: ignore[no-any-return]
    for k in range(times):
        if continues is None:
            state = step(k, *state)
            continue
        active = continues(*state)
        if not np.any(active):
            break
        pairs = zip(step(k, *state), state, strict=True)
        state = [np.where(active, new, old) for new, old in pairs]
    return tuple(state)


# ---- quadrature --------------------------------------------------------------------------------


NODES, WEIGHTS = np.polynomial.legendre.leggauss(24)
FALL = 42.0  # exp(-42) is below the rounding error of the sum
_MIDDLES = np.arange(-7.0, 8.0, 2.0) / 8.0
_MAX_POINTS = 1 << 20  # points evaluated at once


def integrals(
    f: Callable[[Any, Any], Any], low: Any, high: Any, panels: Any, dtype: Any = float
) -> Any:
    """The integral from `low` to `high` of ``f(points, indices)``, for each element.

    Parameters
    ----------
    f : callable
        Takes points of shape (elements, points), and the indices of these elements.
    low, high : ndarray of shape (n,)
        Finite bounds; an empty window (high <= low) has the integral 0.
    panels : ndarray of shape (n,)
        The minimum number of panels; it is rounded up to a power of two.
    dtype : dtype, default float
        That of the result.
    """
    if is_traced_scalar(low):
        return low.writer.quadrature(f, (low, high), panels, (NODES, WEIGHTS), dtype)
    total = np.zeros(len(low), dtype)
    number = 1 << np.ceil(np.log2(np.maximum(panels, 4))).astype(int)
    number[~(high > low)] = 0
    for count in np.unique(number[number > 0]):
        indices = np.nonzero(number == count)[0]
        rows = max(1, _MAX_POINTS // (24 * count))
        for start in range(0, len(indices), rows):
            chunk = indices[start : start + rows]
            total[chunk] = _integrate_chunk(f, low[chunk], high[chunk], count, chunk, dtype)
    return total


def _integrate_chunk(f: Any, low: Any, high: Any, count: int, indices: Any, dtype: Any) -> Any:
    """The integrals of a chunk of elements, each with at most `_MAX_POINTS` points at once."""
    half = (high - low)[:, None] / (2 * count)
    total = np.zeros(len(low), dtype)
    at_once = max(1, _MAX_POINTS // 24)
    for first in range(0, count, at_once):
        centers = np.arange(first, min(first + at_once, count)) * 2.0 + 1.0
        steps = (centers[:, None] + NODES).ravel()
        weights = np.tile(WEIGHTS, len(centers))
        total += (f(low[:, None] + half * steps, indices) * weights).sum(-1)
    return total * half[:, 0]


def trapezoid(
    f: Callable[[Any, Any], Any], low: Any, high: Any, step: float, dtype: Any = float
) -> Any:
    """The integral of an analytic f that vanishes at both ends, with steps of at most `step`.

    Other arguments are those of `integrals`. Points are the centers of the steps.
    """
    if is_traced_scalar(low):
        rule = _MIDDLES, np.full(8, 0.25)
        return low.writer.quadrature(f, (low, high), (high - low) / (8.0 * step), rule, dtype)
    total = np.zeros(len(low), dtype)
    number = 8 * max(4, int(np.ceil(np.max(high - low) / (8.0 * step))))
    steps = (high - low) / number
    rows = max(1, _MAX_POINTS // (2 * number))
    for start in range(0, len(low), rows):
        chunk = np.arange(start, min(start + rows, len(low)))
        points = low[chunk, None] + steps[chunk, None] * (np.arange(number) + 0.5)
        total[chunk] = f(points, chunk).sum(-1)
    return total * steps


def edge(exponent: Callable[[Any], Any], width: Any, fall: float = FALL) -> Any:
    """The distance at which a concave exponent has decreased by `fall`, to a few percent.

    `exponent(distance)` is 0 at distance 0 and decreases; `width` is an initial guess.
    """
    (far,) = repeat(
        lambda _, far: (far * 2.0,), (width * 1.0,), 200, lambda far: exponent(far) > -fall
    )

    def bisect(_: Any, low: Any, far: Any) -> Any:
        middle = 0.5 * (low + far)
        inside = exponent(middle) > -fall
        return np.where(inside, middle, low), np.where(inside, far, middle)

    return repeat(bisect, (np.zeros_like(far), far), 5)[1]


# ---- power series ------------------------------------------------------------------------------


BERNOULLI = (
    1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510,
)  # fmt: skip


def zeros(j: int, k: int, *like: Any) -> Any:
    """The series 0 with powers up to j and k, for elements of the broadcast shape of `like`."""
    if any(map(is_traced_scalar, like)):  # for native code
        return np.full((j + 1, k + 1), 0.0, object)
    return np.zeros((j + 1, k + 1, *np.broadcast_shapes(*[np.shape(x) for x in like])))


def exponential(c: Any) -> Any:
    """The series e of exp(c - c[0, 0]), by j e_j = sum over p of p c_p e_(j-p)."""
    first, second = c.shape[:2]
    e = np.zeros_like(c)
    e[0, 0] = 1.0
    for j in range(first):
        for k in range(second):
            if j == k == 0:
                continue
            if j:  # recurrence in the first variable
                terms = [
                    (p * c[p, q], e[j - p, k - q]) for p in range(1, j + 1) for q in range(k + 1)
                ]
                e[j, k] = sum(a * b for a, b in terms) / j
            else:
                terms = [(q * c[0, q], e[0, k - q]) for q in range(1, k + 1)]
                e[0, k] = sum(a * b for a, b in terms) / k
    return e


def product(c: Any, constant: Any, slope: Any, axis: int) -> Any:
    """The series times (constant + slope * h), or g in place of h for axis 1."""
    out = c * constant
    if axis == 0:
        out[1:] += c[:-1] * slope
    else:
        out[:, 1:] += c[:, :-1] * slope
    return out


def log_gamma(x: Any, order: int) -> list[Any]:
    """The coefficients of h, h**2 ... h**order of log gamma(x + h)."""
    return [
        special.psi(x) if k == 1 else (-1.0) ** k / k * special.zeta(float(k), x)
        for k in range(1, order + 1)
    ]


def stirling_remainder(x: Any) -> Any:
    """Compute log gamma(x) - ((x - 1/2) log x - x + log(2 pi) / 2), DLMF 5.11.1, for x > 0."""
    near = np.minimum(x, 10.0)
    direct = special.gammaln(near) - ((near - 0.5) * np.log(near) - near + 0.5 * log(2.0 * pi))
    far = np.maximum(x, 10.0)
    inverse = 1.0 / (far * far)
    total: Any = 0.0
    for k in range(len(BERNOULLI), 0, -1):
        total = total * inverse + BERNOULLI[k - 1] / (2 * k * (2 * k - 1))
    return np.where(x < 10.0, direct, total / far)


def log_minus_psi(x: Any) -> Any:
    """log(x) - psi(x), DLMF 5.11.2, for x > 0."""
    near = np.minimum(x, 10.0)
    direct = np.log(near) - special.psi(near)
    far = np.maximum(x, 10.0)
    inverse = 1.0 / (far * far)
    total: Any = 0.0
    for k in range(len(BERNOULLI), 0, -1):
        total = total * inverse + BERNOULLI[k - 1] / (2 * k)
    return np.where(x < 10.0, direct, 0.5 / far + total * inverse)
