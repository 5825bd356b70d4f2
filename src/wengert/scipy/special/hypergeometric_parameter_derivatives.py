"""Derivatives of hypergeometric functions with respect to the parameters: DLMF 13, 15, 16.

    hyp0f1_orders    hyp1f1_orders  hyp2f1_orders     0F1, 1F1, 2F1
    struve_orders    the series of Struve functions, DLMF 11.2
    derivatives      of U(a, b, x), of orders j, k, m in a, b, x

Each is a series with terms that are rational in the parameters.  The interpreter sums it in decimal
arithmetic with as many digits as are needed (decimal_series.py), so that the result is accurate to
rounding; this takes about a millisecond per element.  Native code sums it with 31 digits
(double_double.py), and calls the interpreter where these are not sufficient.  The m-th
derivative with respect to the argument is (a)_m / (b)_m times the function with m added to all
parameters (DLMF 13.3.16, 15.5.2).  For x > 1, where 2F1 is complex, the result is NaN.

For a > 0, U(a, b, x) is the integral of exp(-x t) t^(a-1) (1+t)^(b-a-1) / gamma(a) over t > 0; in
log t the integrand has one maximum.  Derivatives with respect to a and b multiply the integrand by
polynomials in log t and log(1 + t).  Small and negative a are reached from a >= 1 by the recurrence
DLMF 13.3.7.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from math import factorial, prod
from typing import Any

import numpy as np
from scipy import special

from . import double_double
from .decimal_series import Box, LinearParameter, Series, SeriesSum, enough, gauss, hypergeometric
from .double_double import DoubleDouble
from .register import OracleExpression, family
from .series_and_quadrature import (
    edge,
    exponential,
    fail_where,
    integrals,
    is_traced_scalar,
    log_gamma,
    product,
    repeat,
    zeros,
)

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
    box = double_double.box_of(orders, operands[-1])
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
    return _derivative_of_series((k,), 0, m, (b, x), (_limit, double_double.limit), True)


@family(
    native=True,
    oracle=OracleExpression("a b x", "diff(lambda a, b, x: hyp1f1(a, b, x), (a, b, x), (j, k, m))"),
)
def hyp1f1_orders(a: Any, b: Any, x: Any, *, j: int, k: int, m: int) -> Any:
    """The derivative of 1F1(a; b; x) of orders j, k, m in a, b, x."""
    return _derivative_of_series((j, k), 1, m, (a, b, x), (_kummer, double_double.kummer), True)


@family(
    native=True,
    oracle=OracleExpression(
        "a b c x", "diff(lambda a, b, c, x: hyp2f1(a, b, c, x), (a, b, c, x), (i, j, k, m))"
    ),
)
def hyp2f1_orders(a: Any, b: Any, c: Any, x: Any, *, i: int, j: int, k: int, m: int) -> Any:
    """The derivative of 2F1(a, b; c; x) of orders i, j, k, m in a, b, c, x."""
    is_polynomial = _is_finite_series(a) & (i == 0) | _is_finite_series(b) & (j == 0)
    sum_series = _gauss, double_double.gauss
    return _derivative_of_series(
        (i, j, k), 2, m, (a, b, c, x), sum_series, (x < 1.0) | is_polynomial
    )


@family(
    native=True,
    oracle=OracleExpression("b x", "diff(lambda b, x: hyper([1], [1.5, b], x), (b, x), (k, m))"),
)
def struve_orders(b: Any, x: Any, *, k: int, m: int) -> Any:
    """The derivative of 1F2(1; 3/2, b; x), for Struve functions, of orders k in b and m in x."""
    sum_series = _struve(m), functools.partial(double_double.struve, m=m)
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


_MAX_STEPS = 5000  # of the recurrence


def derivatives(j: int, k: int, m: int, a: Any, b: Any, x: Any) -> Any:
    """The derivative of U(a, b, x) of orders j, k, m in a, b, x, for x > 0."""
    # The m-th derivative in x is (-1)^m (a)_m U(a + m, b + m, x), DLMF 13.3.22.
    found = _series(j, k, a + m, b + m, x)
    for i in range(m):
        found = -product(found, a + i, 1.0, 0)
    return factorial(j) * factorial(k) * found[j, k]


def _series(j: int, k: int, a: Any, b: Any, x: Any) -> Any:
    """The series of U in steps of a and b."""
    steps = np.where(a < 1.0, np.ceil(1.0 - a), 0.0)
    fail_where(steps > _MAX_STEPS, lambda: "the first parameter of hyperu is below -5000")
    here, above = _integral(j, k, a + steps, b, x), _integral(j, k, a + steps + 1.0, b, x)
    size = (j + 1) * (k + 1)

    def series(coefficients: Any) -> Any:
        out = zeros(j, k, a)
        for i, c in enumerate(coefficients):
            out[divmod(i, k + 1)] = c
        return out

    def step(_: Any, left: Any, *state: Any) -> Any:
        here, above = series(state[:size]), series(state[size:])
        p = a + left
        # U(a-1) = (2a - b + x) U(a) - a (a - b + 1) U(a+1)
        first = product(here, 2.0 * p - b + x, 2.0, 0)
        if k:
            first[:, 1:] -= here[:, :-1]
        second = product(product(above, p - b + 1.0, 1.0, 0), p, 1.0, 0)
        if k:
            second[:, 1:] -= product(above, p, 1.0, 0)[:, :-1]
        below = first - second
        return left - 1.0, *_coefficients(below), *_coefficients(here)

    state = steps, *_coefficients(here), *_coefficients(above)
    found = repeat(step, state, _MAX_STEPS, lambda left, *_: left > 0.0)
    return series(found[1 : size + 1])


def _coefficients(c: Any) -> list[Any]:
    """The coefficients of a series as a flat list."""
    return [c[j, k] for j in range(c.shape[0]) for k in range(c.shape[1])]


def _integral(j: int, k: int, a: Any, b: Any, x: Any) -> Any:
    """The series of U in steps of a and b, for a >= 1, by quadrature."""
    c = b - a - 1.0
    # The maximum is at the root of x u^2 + (x - a - c) u = a.
    half = 0.5 * (x - a - c)
    root = np.hypot(half, np.sqrt(a * x))
    top = np.where(half < 0, (root - half) / x, a / (root + half))
    peak = np.log(top)

    def exponent(s: Any, a: Any, c: Any, x: Any) -> Any:
        return a * s + c * np.logaddexp(0.0, s) - x * np.exp(s)

    height = exponent(peak, a, c, x)
    with np.errstate(over="ignore"):
        right = edge(lambda d: exponent(peak + d, a, c, x) - height, np.full_like(a, 0.01))
        left = edge(lambda d: exponent(peak - d, a, c, x) - height, np.full_like(a, 0.01))
    logs = log_gamma(a, j)
    out = zeros(j, k, a)
    for p in range(j + 1):
        for q in range(k + 1):

            def f(s: Any, i: Any, p: int = p, q: int = q) -> Any:
                column = a[i, None], c[i, None], x[i, None]
                far = np.logaddexp(0.0, s)
                series = zeros(p, q, s)
                if p:
                    series[1, 0] = s - far - logs[0][i, None]
                for n in range(2, p + 1):
                    series[n, 0] = -logs[n - 1][i, None]
                if q:
                    series[0, 1] = far
                weight = exponential(series)[p, q]
                return np.exp(exponent(s, *column) - height[i, None]) * weight

            low, high = peak - left, peak + right
            found = integrals(f, low, peak, left / 1.2) + integrals(f, peak, high, right / 1.2)
            out[p, q] = found
    return out * np.exp(height - special.gammaln(a))
