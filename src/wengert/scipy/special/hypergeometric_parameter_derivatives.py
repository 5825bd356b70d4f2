"""Derivatives of hypergeometric functions with respect to the parameters: DLMF 13, 15, 16.

    hyp0f1_orders  hyp1f1_orders  hyp2f1_orders     0F1, 1F1, 2F1
    struve_orders  the series of Struve functions, DLMF 11.2

Each is a series with terms that are rational in the parameters.  The interpreter sums it in decimal
arithmetic with as many digits as are needed (decimal_series.py), so that the result is accurate to
rounding; this takes about a millisecond per element.  Native code sums it with 31 digits
(double_double_series.py), and calls the interpreter where these are not sufficient.  The m-th
derivative with respect to the argument is (a)_m / (b)_m times the function with m added to all
parameters (DLMF 13.3.16, 15.5.2).  For x > 1, where 2F1 is complex, the result is NaN.
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
from .double_double import DoubleDouble
from .oracle_expression import OracleExpression
from .traced_loops import is_traced_scalar

__all__: list[str] = []

SumSeries = Callable[[Box, Series, list[LinearParameter], Decimal], SeriesSum]


def _derivative_of_series(
    orders: Sequence[int],
    numerators: int,
    m: int,
    operands: Sequence[Any],
    sum_series: tuple[SumSeries, Any],
    valid: Any,
) -> Any:
    """The derivative for each element; the first `numerators` parameters are numerator parameters.

    The first of `sum_series` sums decimals, the second is for native code.
    """
    factorials = float(prod(map(factorial, orders)))
    out = np.full_like(operands[0], np.nan)
    count = len(operands) - 1
    inside = valid
    for k, p in enumerate(operands):
        inside = np.isfinite(p) & inside
        if numerators <= k < count:
            inside = inside & ~((p <= 0) & (p == np.rint(p)))
    if is_traced_scalar(out):
        selected = [p[inside] for p in operands]
        result = _sum_natively(orders, numerators, m, selected, sum_series[1])
        out[inside] = factorials * result
        return out
    for i in np.nonzero(inside)[0]:
        values = [float(p[i]) for p in operands]

        def compute(values: list[float] = values) -> SeriesSum:
            box = Box(orders)
            x = +Decimal(values[-1])
            start, parameters = _start(box, numerators, m, map(Decimal, values[:-1]))
            return sum_series[0](box, start, parameters, x)

        out[i] = float(enough(compute)) * factorials
    return out


def _start(
    box: Box, numerators: int, m: int, values: Iterable[Any]
) -> tuple[Series, list[LinearParameter]]:
    """The series of the factor (a)_m / (b)_m, and the parameters plus m."""
    constants = list(values)
    start, parameters = box.one(), []
    for d, v in enumerate(constants):
        p = LinearParameter(v, tuple(int(d == e) for e in range(len(constants))))
        for n in range(m):
            start = box.times(start, p.plus(n)) if d < numerators else box.over(start, p.plus(n))
        parameters.append(p.plus(m))
    return start, parameters


def _sum_natively(
    orders: Sequence[int], numerators: int, m: int, operands: Sequence[Any], sum_series: Any
) -> Any:
    """The derivative in native code, divided by the factorials of the orders."""
    box = double_double_series.box_of(orders, operands[-1])
    start, parameters = _start(box, numerators, m, map(DoubleDouble, operands[:-1]))
    return sum_series(box, start, parameters, operands[-1])


def _limit(box: Box, start: Series, p: list[LinearParameter], x: Decimal) -> SeriesSum:
    return hypergeometric(box, (), p, x, start)


def _kummer(box: Box, start: Series, p: list[LinearParameter], x: Decimal) -> SeriesSum:
    """1F1; for negative x by Kummer's transformation, DLMF 13.2.39, to avoid cancellation."""
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


def _is_finite_series(a: Any) -> Any:
    """Whether the series with this numerator parameter is finite."""
    return (a <= 0) & (a == np.rint(a))


def _struve(m: int) -> SumSeries:
    """The sum of the m-th derivative of 1F2(1; 3/2, b; x): m is added to all parameters."""

    def sum_series(box: Box, start: Series, p: list[LinearParameter], x: Decimal) -> SeriesSum:
        fixed = (0,) * len(p[0].slopes)
        one, half = LinearParameter(Decimal(1), fixed), LinearParameter(Decimal("1.5"), fixed)
        for n in range(m):
            start = box.over(box.times(start, one.plus(n)), half.plus(n))
        return hypergeometric(box, (one.plus(m),), (half.plus(m), p[0]), x, start)

    return sum_series


@family(
    native=True, oracle=OracleExpression("b x", "diff(lambda b, x: hyp0f1(b, x), (b, x), (k, m))")
)
def hyp0f1_orders(b: Any, x: Any, *, k: int, m: int) -> Any:
    """The derivative of 0F1(; b; x) of orders k in b and m in x."""
    return _derivative_of_series((k,), 0, m, (b, x), (_limit, double_double_series.limit), True)


@family(
    native=True,
    oracle=OracleExpression("a b x", "diff(lambda a, b, x: hyp1f1(a, b, x), (a, b, x), (j, k, m))"),
)
def hyp1f1_orders(a: Any, b: Any, x: Any, *, j: int, k: int, m: int) -> Any:
    """The derivative of 1F1(a; b; x) of orders j, k, m in a, b, x."""
    return _derivative_of_series(
        (j, k), 1, m, (a, b, x), (_kummer, double_double_series.kummer), True
    )


@family(
    native=True,
    oracle=OracleExpression(
        "a b c x", "diff(lambda a, b, c, x: hyp2f1(a, b, c, x), (a, b, c, x), (i, j, k, m))"
    ),
)
def hyp2f1_orders(a: Any, b: Any, c: Any, x: Any, *, i: int, j: int, k: int, m: int) -> Any:
    """The derivative of 2F1(a, b; c; x) of orders i, j, k, m in a, b, c, x."""
    is_polynomial = _is_finite_series(a) & (i == 0) | _is_finite_series(b) & (j == 0)
    sum_series = _gauss, double_double_series.gauss
    return _derivative_of_series(
        (i, j, k), 2, m, (a, b, c, x), sum_series, (x < 1.0) | is_polynomial
    )


@family(
    native=True,
    oracle=OracleExpression("b x", "diff(lambda b, x: hyper([1], [1.5, b], x), (b, x), (k, m))"),
)
def struve_orders(b: Any, x: Any, *, k: int, m: int) -> Any:
    """The derivative of 1F2(1; 3/2, b; x), for Struve functions, of orders k in b and m in x."""
    sum_series = _struve(m), functools.partial(double_double_series.struve, m=m)
    return _derivative_of_series((k,), 0, m, (b, x), sum_series, True)


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
