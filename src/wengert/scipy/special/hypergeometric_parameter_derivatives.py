"""Derivatives of hypergeometric functions in their parameters, as families: DLMF 13, 15, 16.

    hyp0f1_orders  hyp1f1_orders  hyp2f1_orders     0F1, 1F1, 2F1
    struve_orders  the series of Struve's functions, DLMF 11.2

Each is a series whose terms are rational in the parameters, summed in decimal numbers of as many
digits as it takes (decimals), so that the result is right to rounding; a number costs about a
millisecond.  Native code sums it with 31 digits, and leaves what they are too few for to decimals
(doubled_series).  By the argument m times, a function is (a)_m / (b)_m times itself with all
parameters more by m (DLMF 13.3.16, 15.5.2).  2F1 is real for x < 1; beyond it is NaN.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from math import factorial, prod
from typing import Any

import numpy as np

from . import double_double_series
from .decimal_series import Box, LinearParameter, Series, SeriesSum, enough, gauss, hypergeometric
from .derivative_families import family
from .double_double import Doubled
from .oracle_expression import Witness
from .traced_loops import is_element

__all__: list[str] = []

Summed = Callable[[Box, Series, list[LinearParameter], Decimal], SeriesSum]


def _each(
    orders: Sequence[int],
    over: int,
    m: int,
    operands: Sequence[Any],
    summed: tuple[Summed, Any],
    valid: Any,
) -> Any:
    """The derivative for each element; `over` of the parameters stand above the line.

    It is summed by the first of `summed` in decimals, by the second in native code.
    """
    size = float(prod(map(factorial, orders)))
    out = np.full_like(operands[0], np.nan)
    count = len(operands) - 1
    inside = valid
    for k, p in enumerate(operands):
        inside = np.isfinite(p) & inside
        if over <= k < count:
            inside = inside & ~((p <= 0) & (p == np.rint(p)))
    if is_element(out):
        chosen = [p[inside] for p in operands]
        out[inside] = size * _of_element(orders, over, m, chosen, summed[1])
        return out
    for i in np.nonzero(inside)[0]:
        values = [float(p[i]) for p in operands]

        def compute(values: list[float] = values) -> SeriesSum:
            box = Box(orders)
            x = +Decimal(values[-1])
            start, parameters = _begun(box, over, m, map(Decimal, values[:-1]))
            return summed[0](box, start, parameters, x)

        out[i] = float(enough(compute)) * size
    return out


def _begun(
    box: Box, over: int, m: int, values: Iterable[Any]
) -> tuple[Series, list[LinearParameter]]:
    """For m derivatives with respect to x: their factor, a series, and the parameters plus m."""
    constants = list(values)
    start, parameters = box.one(), []
    for d, v in enumerate(constants):
        p = LinearParameter(v, tuple(int(d == e) for e in range(len(constants))))
        for n in range(m):
            start = box.times(start, p.plus(n)) if d < over else box.over(start, p.plus(n))
        parameters.append(p.plus(m))
    return start, parameters


def _of_element(
    orders: Sequence[int], over: int, m: int, operands: Sequence[Any], summed: Any
) -> Any:
    """The derivative in native code, but for the factorials of the orders."""
    box = double_double_series.box_of(orders, operands[-1])
    start, parameters = _begun(box, over, m, map(Doubled, operands[:-1]))
    return summed(box, start, parameters, operands[-1])


def _limit(box: Box, start: Series, p: list[LinearParameter], x: Decimal) -> SeriesSum:
    return hypergeometric(box, (), p, x, start)


def _kummer(box: Box, start: Series, p: list[LinearParameter], x: Decimal) -> SeriesSum:
    """1F1, for negative x by Kummer's transformation, DLMF 13.2.39, which has no cancellation."""
    a, b = p
    if x >= 0:
        return hypergeometric(box, (a,), (b,), x, start)
    slopes = tuple(t - s for s, t in zip(a.slopes, b.slopes, strict=True))
    other = LinearParameter(b.constant - a.constant, slopes)
    scale = x.exp()
    return hypergeometric(box, (other,), (b,), -x, [scale * v for v in start])


def _gauss(box: Box, start: Series, p: list[LinearParameter], x: Decimal) -> SeriesSum:
    if x >= 1:
        return hypergeometric(box, p[:2], p[2:], x, start)
    a, b, c = p
    return gauss(box, a, b, c, x, start)


def _ends(a: Any) -> Any:
    """Whether the series with this parameter has an end."""
    return (a <= 0) & (a == np.rint(a))


def _struve(m: int) -> Summed:
    """1F2(1; 3/2, b; x) m times by x: all parameters more by m."""

    def summed(box: Box, start: Series, p: list[LinearParameter], x: Decimal) -> SeriesSum:
        fixed = (0,) * len(p[0].slopes)
        one, half = LinearParameter(Decimal(1), fixed), LinearParameter(Decimal("1.5"), fixed)
        for n in range(m):
            start = box.over(box.times(start, one.plus(n)), half.plus(n))
        return hypergeometric(box, (one.plus(m),), (half.plus(m), p[0]), x, start)

    return summed


@family(native=True, oracle=Witness("b x", "diff(lambda b, x: hyp0f1(b, x), (b, x), (k, m))"))
def hyp0f1_orders(b: Any, x: Any, *, k: int, m: int) -> Any:
    """The derivative, k times by b and m times by x, of 0F1(; b; x)."""
    return _each((k,), 0, m, (b, x), (_limit, double_double_series.limit), True)


@family(
    native=True,
    oracle=Witness("a b x", "diff(lambda a, b, x: hyp1f1(a, b, x), (a, b, x), (j, k, m))"),
)
def hyp1f1_orders(a: Any, b: Any, x: Any, *, j: int, k: int, m: int) -> Any:
    """The derivative j, k, m times by a, b, x of 1F1(a; b; x)."""
    return _each((j, k), 1, m, (a, b, x), (_kummer, double_double_series.kummer), True)


@family(
    native=True,
    oracle=Witness(
        "a b c x", "diff(lambda a, b, c, x: hyp2f1(a, b, c, x), (a, b, c, x), (i, j, k, m))"
    ),
)
def hyp2f1_orders(a: Any, b: Any, c: Any, x: Any, *, i: int, j: int, k: int, m: int) -> Any:
    """The derivative i, j, k, m times by a, b, c, x of 2F1(a, b; c; x)."""
    ends = _ends(a) & (i == 0) | _ends(b) & (j == 0)  # a polynomial in x
    summed = _gauss, double_double_series.gauss
    return _each((i, j, k), 2, m, (a, b, c, x), summed, (x < 1.0) | ends)


@family(
    native=True, oracle=Witness("b x", "diff(lambda b, x: hyper([1], [1.5, b], x), (b, x), (k, m))")
)
def struve_orders(b: Any, x: Any, *, k: int, m: int) -> Any:
    """The derivative k, m times by b, x of 1F2(1; 3/2, b; x), which makes Struve's functions."""
    summed = _struve(m), functools.partial(double_double_series.struve, m=m)
    return _each((k,), 0, m, (b, x), summed, True)


hyp0f1_orders.partials(
    lambda t, out, b, x, k, m: t * hyp0f1_orders(b, x, k=k + 1, m=m),
    lambda t, out, b, x, k, m: t * hyp0f1_orders(b, x, k=k, m=m + 1),
)
hyp1f1_orders.partials(
    lambda t, out, a, b, x, j, k, m: t * hyp1f1_orders(a, b, x, j=j + 1, k=k, m=m),
    lambda t, out, a, b, x, j, k, m: t * hyp1f1_orders(a, b, x, j=j, k=k + 1, m=m),
    lambda t, out, a, b, x, j, k, m: t * hyp1f1_orders(a, b, x, j=j, k=k, m=m + 1),
)
hyp2f1_orders.partials(
    lambda t, out, a, b, c, x, i, j, k, m: t * hyp2f1_orders(a, b, c, x, i=i + 1, j=j, k=k, m=m),
    lambda t, out, a, b, c, x, i, j, k, m: t * hyp2f1_orders(a, b, c, x, i=i, j=j + 1, k=k, m=m),
    lambda t, out, a, b, c, x, i, j, k, m: t * hyp2f1_orders(a, b, c, x, i=i, j=j, k=k + 1, m=m),
    lambda t, out, a, b, c, x, i, j, k, m: t * hyp2f1_orders(a, b, c, x, i=i, j=j, k=k, m=m + 1),
)


struve_orders.partials(
    lambda t, out, b, x, k, m: t * struve_orders(b, x, k=k + 1, m=m),
    lambda t, out, b, x, k, m: t * struve_orders(b, x, k=k, m=m + 1),
)


@struve_orders.examples
@hyp0f1_orders.examples
def _zero(rng: Any) -> Any:
    yield (rng.uniform(0.5, 3.0, size=(2, 1)), rng.uniform(-3.0, 3.0, size=1)), {"k": 1, "m": 0}


@hyp1f1_orders.examples
def _one(rng: Any) -> Any:
    operands = rng.uniform(0.5, 3.0, size=1), rng.uniform(0.5, 3.0), rng.uniform(-3.0, 3.0)
    yield operands, {"j": 1, "k": 0, "m": 0}


@hyp2f1_orders.examples
def _two(rng: Any) -> Any:
    parameters = rng.uniform(0.5, 3.0, size=1), rng.uniform(0.5, 3.0), rng.uniform(0.5, 3.0)
    yield (*parameters, rng.uniform(-0.5, 0.5)), {"i": 1, "j": 0, "k": 0, "m": 0}
