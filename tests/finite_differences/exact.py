"""Derivatives of formulas in many digits: the reference where differences say too little.

SciPy rounds to sixteen digits, so that differences of its functions lose what a step loses: much at
parameters of 1e-6, all where a formula of its own cancels or underflows.  For functions that meet
that somewhere, formulas.py has another way to compute them, in mpmath, and its differences here
take steps of 1e-20 at eighty digits: twenty digits of a first derivative, and of a second.

    Exact     values and derivatives of a function along a direction
    each      a formula of numbers as one of arrays
"""

from __future__ import annotations

import functools

import mpmath
import numpy as np

DIGITS = 80
STEP = mpmath.mpf(10) ** -20
TURN = 1e-9  # by how much both sides of a slope may differ where there is no kink


def each(formula):
    """A formula of numbers, for arrays that are broadcast."""

    @functools.wraps(formula)
    def of(*args, **named):
        made = np.frompyfunc(lambda *xs: formula(*xs, **named), len(args), 1)(*args)
        return np.asarray(made, object)

    return of


def as_digits(x):
    """Numbers in double precision as ones of mpmath."""
    kind = mpmath.mpc if x.dtype.kind == "c" else mpmath.mpf
    return np.frompyfunc(kind, 1, 1)(x.astype(object))


class Exact:
    """A formula along a direction.

    Attributes
    ----------
    value, slope, bend : array
        In double precision: of the function, its first and its second derivative.
    smooth : bool
        Whether both sides have one slope.
    """

    def __init__(self, joined, inputs, directions, length):
        with mpmath.workdps(DIGITS):
            starts, ways = [as_digits(x) for x in inputs], [as_digits(v) for v in directions]
            h = STEP * mpmath.mpf(length)

            def along(step):
                return joined([x + step * v for x, v in zip(starts, ways, strict=True)])

            left, middle, right = along(-h), along(0), along(h)
            slope = (right - left) / (2 * h)
            bend = (right - 2 * middle + left) / (h * h)
            turn = (right - 2 * middle + left) / h
            self.value, self.slope, self.bend = map(doubles, (middle, slope, bend))
            size = np.max(abs(self.slope), initial=0.0)
            self.smooth = bool(np.max(abs(doubles(turn)), initial=0.0) <= TURN * size)


def doubles(x):
    """Numbers of mpmath in double precision."""
    is_complex = any(isinstance(v, mpmath.mpc) for v in x.ravel())
    return x.astype(complex if is_complex else float)
