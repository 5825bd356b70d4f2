"""Hypergeometric series in decimal arithmetic of sufficient precision.

A series whose terms grow before they fall loses as many digits as its largest term has more than
the sum.  `decimal` has any number of them, at 0.1 microseconds an operation; how many are needed is
seen when it has been summed, and where they were too few it is summed again.

A `Box` is the shape of power series in small steps of the parameters, each to an order of its own:
a list of numbers, one for each combination of powers.  Parameters are `LinearParameter`: a number
and how much it moves with each step.

    Box             products and quotients of series and linear terms
    hypergeometric  a generalized hypergeometric series, DLMF 16.2.1
    gauss           2F1 on the whole of x < 1, continued along its differential equation
    enough          a computation with as many digits as it takes
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext
from itertools import product
from typing import Any, NamedTuple

__all__: list[str] = []

Series = list[Decimal]
_WANTED = 22  # digits of the result
_MOST_DIGITS = 20_000  # digits; beyond, it would take minutes an element
_TERMS = 400_000
_POLYNOMIAL_TERMS = 100
_UNDERFLOW_DIGITS = -345  # decimal exponent below which a number is zero in double precision


class LinearParameter(NamedTuple):
    """A number, and what is added to it for each unit of the steps."""

    constant: Decimal
    slopes: tuple[int, ...]

    def plus(self, n: int) -> LinearParameter:
        """The same, more by an integer."""
        return LinearParameter(self.constant + n, self.slopes)


class Box:
    """The combinations of powers of steps up to an order each.

    Attributes
    ----------
    size : int
        How many there are; the last is that of the highest powers.
    number : callable
        Makes a coefficient of a number: decimals, or what else has their operators.
    """

    def __init__(self, orders: Sequence[int], number: Callable[[Any], Any] = Decimal) -> None:
        self.number = number
        self.powers = list(product(*[range(n + 1) for n in orders]))
        self.size = len(self.powers)
        place = {p: i for i, p in enumerate(self.powers)}
        self._before = [
            [
                place.get(tuple(q - (e == d) for e, q in enumerate(p)), -1)
                for d in range(len(orders))
            ]
            for p in self.powers
        ]

    def one(self) -> Series:
        """The series that is 1."""
        return [self.number(1)] + [self.number(0)] * (self.size - 1)

    def times(self, c: Series, by: LinearParameter) -> Series:
        """A series times a linear term."""
        out = [x * by.constant for x in c]
        for d, slope in enumerate(by.slopes):
            if slope:
                for i, before in enumerate(self._before):
                    if before[d] >= 0:
                        out[i] += slope * c[before[d]]
        return out

    def over(self, c: Series, by: LinearParameter) -> Series:
        """A series divided by a linear term, whose number is not zero."""
        out: Series = []
        for x, before in zip(c, self._before, strict=True):
            for d, slope in enumerate(by.slopes):
                if slope and before[d] >= 0:
                    x = x - slope * out[before[d]]
            out.append(x / by.constant)
        return out

    def exponential(self, rate: Decimal, by: tuple[int, ...]) -> Series:
        """exp(rate * the sum of by * step)."""
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
        place = {p: i for i, p in enumerate(self.powers)}
        for p, x in zip(self.powers, c, strict=True):
            for q, y in zip(self.powers, e, strict=True):
                i = place.get(tuple(map(int.__add__, p, q)))
                if i is not None:
                    out[i] += x * y
        return out


class SeriesSum:
    """A sum of series, and how large the largest term was."""

    def __init__(self, start: Series) -> None:
        self.total = list(start)
        self.largest = [abs(x) for x in start]

    def add(self, term: Series) -> None:
        """One more term."""
        for i, x in enumerate(term):
            self.total[i] += x
            if abs(x) > self.largest[i]:
                self.largest[i] = abs(x)

    def lost(self) -> int:
        """How many digits the highest coefficient has lost."""
        top, total = self.largest[-1], self.total[-1]
        if not top:
            return 0
        return 10**9 if not total else max(0, top.adjusted() - total.adjusted())


def hypergeometric(
    box: Box,
    over: Sequence[LinearParameter],
    under: Sequence[LinearParameter],
    x: Decimal,
    start: Series,
) -> SeriesSum:
    """The sum of start (a)_n ... / ((b)_n ...) x^n / n!."""
    term = start
    found = SeriesSum(start)
    precision = _precision()
    calm = 0
    for n in range(_TERMS):
        for a in over:
            term = box.times(term, a.plus(n))
        for b in under:
            term = box.over(term, b.plus(n))
        ratio = x / (n + 1)
        term = [t * ratio for t in term]
        found.add(term)
        if all(_is_small(t, s, precision) for t, s in zip(term, found.largest, strict=True)):
            calm += 1
            # A parameter that is still negative may let terms grow again.
            if calm > 2 and all(p.constant + n > 0 for p in (*over, *under)):
                return found
        else:
            calm = 0
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
    if _ends(box, a) or _ends(box, b):  # what is zero is exactly zero then, and needs no digits
        return hypergeometric(box, (a, b), (c,), x, start)
    if x < Decimal("-0.6"):
        # Pfaff's transformation
        left = tuple(q - p for p, q in zip(b.slopes, c.slopes, strict=True))
        other = LinearParameter(c.constant - b.constant, left)
        rate = -(1 - x).ln()
        factor = box.exponential(rate, a.slopes)
        scale = (a.constant * rate).exp()
        start = [scale * v for v in box.product(factor, start)]
        return gauss(box, a, other, c, x / (x - 1), start)
    if x <= Decimal("0.6"):
        return hypergeometric(box, (a, b), (c,), x, start)
    z = Decimal("0.5")
    value = hypergeometric(box, (a, b), (c,), z, start)
    slope = box.over(box.times(box.times(start, a), b), c)
    slopes = hypergeometric(box, (a.plus(1), b.plus(1)), (c.plus(1),), z, slope)
    largest = max(*value.largest, *slopes.largest)
    u, v = value.total, slopes.total
    while z < x:
        after = min(x, (1 + z) / 2)
        u, v, more = _along(box, a, b, c, z, after - z, u, v)
        largest = max(largest, more)
        z = after
    found = SeriesSum(u)
    # Errors grow as the other solution does, (1 - x)^(c - a - b).
    growth = -min(c.constant - a.constant - b.constant, Decimal(0)) * -(1 - x).log10()
    found.largest[-1] = largest.scaleb(int(growth))
    return found


def _ends(box: Box, a: LinearParameter) -> bool:
    """Whether a parameter that does not move ends the series, and soon: DLMF 15.2.4."""
    moves = any(order and slope for order, slope in zip(box.powers[-1], a.slopes, strict=True))
    return not moves and -_POLYNOMIAL_TERMS <= a.constant <= 0 and a.constant == int(a.constant)


def _along(
    box: Box,
    a: LinearParameter,
    b: LinearParameter,
    c: LinearParameter,
    z: Decimal,
    h: Decimal,
    u: Series,
    v: Series,
) -> tuple[Series, Series, Decimal]:
    """Value and slope at z + h from those at z, by the differential equation's Taylor series.

    And the largest number on the way.
    """
    both = tuple(map(int.__add__, a.slopes, b.slopes))
    precision = _precision()
    value, slope = SeriesSum(u), SeriesSum(v)
    value.add([h * y for y in v])
    power, n = h, 0
    first, second = u, v  # the coefficients of h^n and h^(n+1)
    base = z * (1 - z)
    calm = 0
    while calm < 3:
        middle = LinearParameter(
            (1 - 2 * z) * n + c.constant - (a.constant + b.constant + 1) * z, (0,) * len(both)
        )
        bent = box.times(second, middle)
        for d, (p, q) in enumerate(zip(c.slopes, both, strict=True)):
            if p or q:  # the slope of c - (a + b + 1) z, which is not an integer
                moved = box.times(second, LinearParameter(Decimal(0), _unit(len(both), d)))
                bent = [x + (p - q * z) * y for x, y in zip(bent, moved, strict=True)]
        tail = box.times(box.times(first, a.plus(n)), b.plus(n))
        under = base * (n + 1) * (n + 2)
        third = [(t - (n + 1) * m) / under for t, m in zip(tail, bent, strict=True)]
        slope.add([(n + 2) * power * x for x in third])
        power *= h
        term = [power * x for x in third]
        value.add(term)
        small = [_is_small(t, s, precision) for t, s in zip(term, value.largest, strict=True)]
        calm = calm + 1 if all(small) else 0
        first, second, n = second, third, n + 1
        if n > _TERMS:
            raise OverflowError(f"a Taylor series at {float(z)!r} has too many terms")
    return value.total, slope.total, max(*value.largest, *slope.largest)


def _unit(count: int, d: int) -> tuple[int, ...]:
    return tuple(int(e == d) for e in range(count))


def enough(compute: Callable[[], SeriesSum]) -> Decimal:
    """The highest coefficient of what is computed, with as many digits as it takes.

    Raises
    ------
    OverflowError
        More than 20,000 would be needed.
    """
    digits = _WANTED + 14
    context = Context(prec=digits, Emax=MAX_EMAX, Emin=MIN_EMIN)
    while digits <= _MOST_DIGITS:
        context.prec = digits
        with localcontext(context):
            found = compute()
            lost = found.lost()
        total, top = found.total[-1], found.largest[-1]
        if lost <= digits - _WANTED or (
            top.adjusted() - digits < _UNDERFLOW_DIGITS and abs(total) < 1
        ):
            return total
        if lost >= digits - 4:  # what is left is rounding: the sum may be zero, and no count tells
            digits *= 2
        else:
            digits = max(digits + 10, lost + _WANTED + 10)
    raise OverflowError("a hypergeometric series would need more than 20,000 digits")
