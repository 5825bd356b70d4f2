"""Tests of functions of scipy.special: derivatives against mpmath, to second order.

`compare(case)` takes a `Case`: our function, the same in mpmath, and points.  mpmath differentiates
its function by differences with many digits; all ways to compute our derivative must agree with it:

    first    reverse and forward mode, vmap, a graph
    second   reverse over reverse and forward over reverse

`table(cases)` prints the largest relative errors at many points: `make test-all` with `-s`.
"""

from typing import NamedTuple

import mpmath as mp
import numpy as np
import pytest

import wengert as wg

DIGITS = 100


class Case(NamedTuple):
    """A function, its reference, and points.

    name : of the function, and of the test.
    ours : a function of numbers or tensors.
    exact : the same function of mpmath numbers.
    points : tuples of operands.
    slots : the operands to differentiate with respect to; None for all.
    first, second : relative tolerances, of derivatives of first and second order.
    digits : the precision of mpmath; steps have a fifth and a quarter of these digits.
    """

    name: str
    ours: object
    exact: object
    points: list
    slots: tuple | None = None
    first: float = 1e-13
    second: float = 1e-12
    digits: int = DIGITS

    def is_inside(self, point):
        """Whether the function is finite there."""
        try:
            with np.errstate(all="ignore"):
                return bool(np.isfinite(self.ours(*map(np.float64, point))))
        except ValueError:
            return False


def exact_derivative(case, point, slot, order):
    """The derivative of mpmath's function, as a float.

    If two step sizes disagree, only rounding and truncation errors are left: the derivative is
    zero.
    """
    with mp.workdps(case.digits):
        fixed = [mp.mpf(x) for x in point]
        steps = [mp.mpf(10) ** -(case.digits // k) for k in (5, 4)]
        one, two = [difference(case, fixed, slot, order, h) for h in steps]
        return float(two) if abs(one - two) <= 1e-6 * abs(two) else 0.0


def difference(case, fixed, slot, order, step):
    """The central difference quotient of order 1 or 2."""
    x = fixed[slot]
    h = step * (abs(x) or 1)
    left, here, right = [
        mp.re(case.exact(*fixed[:slot], v, *fixed[slot + 1 :])) for v in (x - h, x, x + h)
    ]
    return (right - left) / (2 * h) if order == 1 else (right - 2 * here + left) / h**2


def along(case, operands, slot):
    """The function of one operand, elementwise."""

    def f(x):
        return case.ours(*operands[:slot], x, *operands[slot + 1 :])

    return f


def derivatives(case, operands, slot):
    """For each way to compute it: a name, the order and the derivative for every element."""
    f, x = along(case, operands, slot), operands[slot]
    ones = np.ones_like(x)
    gradient = wg.grad(lambda x: np.sum(f(x)))
    tangent = lambda x: wg.jvp(f, (x,), (ones,))[1]  # noqa: E731
    yield "reverse", 1, gradient(x)
    yield "forward", 1, tangent(x)
    yield "graph", 1, wg.trace(gradient)(x)(x)
    batched = wg.vmap(lambda *xs: wg.grad(case.ours, argnums=slot)(*xs))
    yield "vmap", 1, batched(*operands)
    yield "reverse over reverse", 2, wg.grad(lambda x: np.sum(gradient(x)))(x)
    yield "forward over reverse", 2, wg.jvp(gradient, (x,), (ones,))[1]


def relative(got, want):
    """Relative errors; values below 1e-280 count as 0."""
    got, want = np.asarray(got, float), np.asarray(want, float)
    size = np.where(np.abs(want) < 1e-280, 1e-280, np.abs(want))
    same = (got == want) | (np.maximum(np.abs(got), np.abs(want)) < 1e-280)
    with np.errstate(all="ignore"):
        return np.where(same, 0.0, np.abs(got - want) / size)


def errors_of(case):
    """For each slot and way: name, order, relative errors, values, reference."""
    operands = [np.array(column, float) for column in zip(*case.points, strict=True)]
    for slot in range(len(operands)) if case.slots is None else case.slots:
        want = {
            order: [exact_derivative(case, p, slot, order) for p in case.points] for order in (1, 2)
        }
        with np.errstate(all="ignore"):  # not around a yield: it would hold for the caller too
            computed = list(derivatives(case, operands, slot))
        for name, order, got in computed:
            yield slot, name, order, relative(got, want[order]), got, want[order]


@pytest.fixture
def make_case():
    return Case


@pytest.fixture
def compare():
    def check(case):
        for slot, name, order, error, got, want in errors_of(case):
            allowed = case.first if order == 1 else case.second
            k = int(np.argmax(np.where(np.isnan(error), np.inf, error)))
            assert error[k] <= allowed, (
                f"{case.name} at {case.points[k]}, operand {slot}, {name}: {got[k]!r}, but "
                f"mpmath's derivative of order {order} is {want[k]!r}, error {error[k]:.2g}"
            )

    return check


def perturbed(points, rng):
    """Four points near each point."""
    return [tuple(x * np.exp(0.2 * rng.normal()) for x in p) for p in points * 4]


def column(points, slot):
    return np.array([p[slot] for p in points])


@pytest.fixture
def table(rng):
    """Print the largest relative errors at points near those of the cases, and return them.

    Points near a zero of a derivative are skipped, where its relative error is large: those where
    the derivative times the operand is less than a millionth of the value.
    """

    def print_table(cases):
        rows = []
        for case in cases:
            near = list(filter(case.is_inside, perturbed(case.points, rng)))
            found = {1: 0.0, 2: 0.0}
            for slot, _, order, error, _, want in errors_of(case._replace(points=near)):
                size = np.abs(np.asarray(want))
                for _ in range(order):  # one by one: the square of a large operand overflows
                    size = size * np.abs(column(near, slot))
                counted = size >= 1e-6 * np.array([abs(float(case.ours(*p))) for p in near])
                found[order] = max(found[order], float(np.max(error[counted], initial=0.0)))
            rows.append((case.name, len(near), found[1], found[2]))
            print(f"{case.name:20} {len(near):4} points   {found[1]:9.1e} {found[2]:9.1e}")
        return rows

    return print_table
