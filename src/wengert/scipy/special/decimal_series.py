"""Hypergeometric series in decimal arithmetic of sufficient precision.

If the terms of a series grow before they decrease, the sum loses as many digits as its largest term
has more than the sum.  `decimal` has arbitrary precision, at 0.1 microseconds per operation.  The
number of lost digits is known after summation; if too few are left, the series is summed again with
more digits.

A series here is a truncated power series in small steps of the parameters, stored as a list of
coefficients.  A `Box` lists the powers, up to an order for each parameter.  A parameter is a
`LinearParameter`: a constant, and a coefficient for each step.

    Box             products and quotients of series and linear terms
    hypergeometric  generalized hypergeometric series, DLMF 16.2.1
    gauss           2F1 for all x < 1, continued along its differential equation
    enough          repeats a computation with more digits until the result is accurate
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext
from itertools import product
from typing import Any, NamedTuple

__all__: list[str] = []

Series = list[Decimal]
_RESULT_DIGITS = 22
_MAX_DIGITS = 20_000  # more would take minutes per element
_MAX_TERMS = 400_000
_POLYNOMIAL_TERMS = 100
_UNDERFLOW_EXPONENT = -345  # decimal exponent below which a double is zero


class LinearParameter(NamedTuple):
    """A parameter constant + sum of slope * step."""

    constant: Decimal
    slopes: tuple[int, ...]

    def plus(self, n: int) -> LinearParameter:
        """The parameter plus an integer."""
        return LinearParameter(self.constant + n, self.slopes)


class Box:
    """All combinations of powers of the steps, up to an order for each step.

    Attributes
    ----------
    size : int
        The number of combinations; the last one has the highest powers.
    number : callable
        Converts a number to a coefficient: a Decimal, or another type with arithmetic operators.
    """

    def __init__(self, orders: Sequence[int], number: Callable[[Any], Any] = Decimal) -> None:
        self.number = number
        self.powers = list(product(*[range(n + 1) for n in orders]))
        self.size = len(self.powers)
        index = {p: i for i, p in enumerate(self.powers)}
        self._lower = [
            [
                index.get(tuple(q - (e == d) for e, q in enumerate(p)), -1)
                for d in range(len(orders))
            ]
            for p in self.powers
        ]

    def one(self) -> Series:
        """The series that is 1."""
        return [self.number(1)] + [self.number(0)] * (self.size - 1)

    def times(self, c: Series, by: LinearParameter) -> Series:
        """A series times a parameter."""
        out = [x * by.constant for x in c]
        for d, slope in enumerate(by.slopes):
            if slope:
                for i, lower in enumerate(self._lower):
                    if lower[d] >= 0:
                        out[i] += slope * c[lower[d]]
        return out

    def over(self, c: Series, by: LinearParameter) -> Series:
        """A series divided by a parameter whose constant is not zero."""
        out: Series = []
        for x, lower in zip(c, self._lower, strict=True):
            for d, slope in enumerate(by.slopes):
                if slope and lower[d] >= 0:
                    x = x - slope * out[lower[d]]
            out.append(x / by.constant)
        return out

    def exponential(self, rate: Decimal, by: tuple[int, ...]) -> Series:
        """The series of exp(rate * sum of by * step)."""
        out = self.one()
        for i, p in enumerate(self.powers):
            x = self.number(1)
            for d, q in enumerate(p):
                for n in range(1, q + 1):
                    x = x * rate * by[d] / n
            out[i] = x
        return out

    def product(self, c: Series, e: Series) -> Series:
        """The product of two series."""
        out = [self.number(0)] * self.size
        index = {p: i for i, p in enumerate(self.powers)}
        for p, x in zip(self.powers, c, strict=True):
            for q, y in zip(self.powers, e, strict=True):
                i = index.get(tuple(map(int.__add__, p, q)))
                if i is not None:
                    out[i] += x * y
        return out


class SeriesSum:
    """A sum of series, with the largest absolute value of its terms for each coefficient."""

    def __init__(self, start: Series) -> None:
        self.total = list(start)
        self.largest = [abs(x) for x in start]

    def add(self, term: Series) -> None:
        """Add a term."""
        for i, x in enumerate(term):
            self.total[i] += x
            if abs(x) > self.largest[i]:
                self.largest[i] = abs(x)

    def lost_digits(self) -> int:
        """The number of digits that the highest coefficient has lost by cancellation."""
        top, total = self.largest[-1], self.total[-1]
        if not top:
            return 0
        return 10**9 if not total else max(0, top.adjusted() - total.adjusted())


def hypergeometric(
    box: Box,
    numerator: Sequence[LinearParameter],
    denominator: Sequence[LinearParameter],
    x: Decimal,
    start: Series,
) -> SeriesSum:
    """The sum over n of start (a)_n ... / ((b)_n ...) x^n / n!."""
    term = start
    found = SeriesSum(start)
    precision = _precision()
    small_terms = 0
    for n in range(_MAX_TERMS):
        for a in numerator:
            term = box.times(term, a.plus(n))
        for b in denominator:
            term = box.over(term, b.plus(n))
        ratio = x / (n + 1)
        term = [t * ratio for t in term]
        found.add(term)
        if all(_is_small(t, s, precision) for t, s in zip(term, found.largest, strict=True)):
            small_terms += 1
            # Terms may grow again while a parameter plus n is negative.
            if small_terms > 2 and all(p.constant + n > 0 for p in (*numerator, *denominator)):
                return found
        else:
            small_terms = 0
    raise OverflowError(f"a hypergeometric series at {float(x)!r} has too many terms")


def _precision() -> int:
    with localcontext() as here:
        return here.prec


def _is_small(term: Decimal, largest: Decimal, precision: int) -> bool:
    return not term or (bool(largest) and term.adjusted() < largest.adjusted() - precision - 2)


def gauss(
    box: Box, a: LinearParameter, b: LinearParameter, c: LinearParameter, x: Decimal, start: Series
) -> SeriesSum:
    """2F1(a, b; c; x) times a series, for x < 1; DLMF 15.2.1, 15.8.1, 15.10.1."""
    if _ends(box, a) or _ends(box, b):  # a polynomial, whose zeros are exact
        return hypergeometric(box, (a, b), (c,), x, start)
    if x < Decimal("-0.6"):
        # Pfaff's transformation, DLMF 15.8.1
        slopes = tuple(q - p for p, q in zip(b.slopes, c.slopes, strict=True))
        other = LinearParameter(c.constant - b.constant, slopes)
        rate = -(1 - x).ln()
        factor = box.exponential(rate, a.slopes)
        scale = (a.constant * rate).exp()
        start = [scale * v for v in box.product(factor, start)]
        return gauss(box, a, other, c, x / (x - 1), start)
    if x <= Decimal("0.6"):
        return hypergeometric(box, (a, b), (c,), x, start)
    z = Decimal("0.5")
    value = hypergeometric(box, (a, b), (c,), z, start)
    factor = box.over(box.times(box.times(start, a), b), c)
    derivative = hypergeometric(box, (a.plus(1), b.plus(1)), (c.plus(1),), z, factor)
    largest = max(*value.largest, *derivative.largest)
    u, v = value.total, derivative.total
    while z < x:
        next_z = min(x, (1 + z) / 2)
        u, v, largest_of_step = _taylor_step(box, a, b, c, z, next_z - z, u, v)
        largest = max(largest, largest_of_step)
        z = next_z
    found = SeriesSum(u)
    # Errors grow like the second solution of the equation, (1 - x)^(c - a - b).
    growth = -min(c.constant - a.constant - b.constant, Decimal(0)) * -(1 - x).log10()
    found.largest[-1] = largest.scaleb(int(growth))
    return found


def _ends(box: Box, a: LinearParameter) -> bool:
    """Whether a parameter without a step ends the series after few terms: DLMF 15.2.4."""
    has_step = any(order and slope for order, slope in zip(box.powers[-1], a.slopes, strict=True))
    return not has_step and -_POLYNOMIAL_TERMS <= a.constant <= 0 and a.constant == int(a.constant)


def _taylor_step(
    box: Box,
    a: LinearParameter,
    b: LinearParameter,
    c: LinearParameter,
    z: Decimal,
    h: Decimal,
    u: Series,
    v: Series,
) -> tuple[Series, Series, Decimal]:
    """Value and derivative at z + h from those at z, by the Taylor series of the solution.

    The third result is the largest absolute value of the terms.
    """
    ab_slopes = tuple(map(int.__add__, a.slopes, b.slopes))
    precision = _precision()
    value, slope = SeriesSum(u), SeriesSum(v)
    value.add([h * y for y in v])
    power, n = h, 0
    first, second = u, v  # the coefficients of h^n and h^(n+1)
    base = z * (1 - z)
    small_terms = 0
    while small_terms < 3:
        middle = LinearParameter(
            (1 - 2 * z) * n + c.constant - (a.constant + b.constant + 1) * z, (0,) * len(ab_slopes)
        )
        middle_term = box.times(second, middle)
        for d, (p, q) in enumerate(zip(c.slopes, ab_slopes, strict=True)):
            if p or q:  # the step of c - (a + b + 1) z, whose coefficient is not an integer
                of_step = box.times(second, LinearParameter(Decimal(0), _unit(len(ab_slopes), d)))
                middle_term = [
                    x + (p - q * z) * y for x, y in zip(middle_term, of_step, strict=True)
                ]
        last_term = box.times(box.times(first, a.plus(n)), b.plus(n))
        divisor = base * (n + 1) * (n + 2)
        third = [(t - (n + 1) * m) / divisor for t, m in zip(last_term, middle_term, strict=True)]
        slope.add([(n + 2) * power * x for x in third])
        power *= h
        term = [power * x for x in third]
        value.add(term)
        small = [_is_small(t, s, precision) for t, s in zip(term, value.largest, strict=True)]
        small_terms = small_terms + 1 if all(small) else 0
        first, second, n = second, third, n + 1
        if n > _MAX_TERMS:
            raise OverflowError(f"a Taylor series at {float(z)!r} has too many terms")
    return value.total, slope.total, max(*value.largest, *slope.largest)


def _unit(count: int, d: int) -> tuple[int, ...]:
    return tuple(int(e == d) for e in range(count))


def enough(compute: Callable[[], SeriesSum]) -> Decimal:
    """The highest coefficient of a sum, computed with as many digits as are needed.

    Raises
    ------
    OverflowError
        More than 20,000 digits are needed.
    """
    digits = _RESULT_DIGITS + 14
    context = Context(prec=digits, Emax=MAX_EMAX, Emin=MIN_EMIN)
    while digits <= _MAX_DIGITS:
        context.prec = digits
        with localcontext(context):
            found = compute()
            lost_digits = found.lost_digits()
        total, top = found.total[-1], found.largest[-1]
        if lost_digits <= digits - _RESULT_DIGITS or (
            top.adjusted() - digits < _UNDERFLOW_EXPONENT and abs(total) < 1
        ):
            return total
        if lost_digits >= digits - 4:  # only rounding errors are left, and the sum may be zero
            digits *= 2
        else:
            digits = max(digits + 10, lost_digits + _RESULT_DIGITS + 10)
    raise OverflowError("a hypergeometric series would need more than 20,000 digits")
