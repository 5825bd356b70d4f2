"""Base classes of discrete distributions.

    Discrete    a subclass defines formulas of the standard form, as for `Continuous`
    Finite      distributions with finite support, whose cdf is a sum
    count_of    the operations behind `ppf` and `isf`: SciPy's, piecewise constant in all operands

The point is an integer, so there are derivatives only with respect to the parameters.  A quantile
is piecewise constant in its probability and in the parameters; its derivative is 0.

Entropies without a formula are sums of -p log p over all k with a probability above 1e-18.  Which
these are depends on the values of the parameters, so that such an entropy cannot be traced; its
derivative is that of the sum.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy  # scipy.stats is loaded when it is first used

from wengert._engine.core.handle import shape_of, value_of
from wengert._engine.tensor.numpy_dispatch import values
from wengert.errors import OperandError, TraceError, at, user_line

from ..special.derivative_families import FunctionFamily, family
from .continuous_distribution import Distribution, chosen, exp_of, real

__all__: list[str] = []

_NEVER = 1e-18
_LARGEST_SUPPORT = 3_000_000
_WHOLE_SUPPORT = 4096


class Discrete(Distribution):
    """A distribution of integers; a subclass defines the same formulas as one of `Continuous`.

    The point is an integer, so there are derivatives only with respect to the parameters.
    """

    last = ("loc",)
    ends = (0.0, np.inf)
    inner = 1.0
    light = True  # whether the tail decays fast enough to be summed

    def inside_of(self, *shapes: Any) -> Any:
        """The lower end of the support."""
        low, high = self.support_of(*shapes)
        return chosen(np.isfinite(low), low, high)

    @np.errstate(all="ignore")
    def logpmf(self, k: Any, *args: Any, **given: Any) -> Any:
        """The log of the probability mass at k; -inf where k is not an integer."""
        shapes, loc, _ = self.parsed(args, given)
        z = values(real(k, "k")) - value_of(loc)
        low, high = self.support_of(*shapes)
        inside = np.logical_and(np.logical_and(z >= low, z <= high), z == np.floor(z))
        inside = np.logical_and(inside, np.isfinite(z))
        out = self.log_density(chosen(inside, z, self.inside_of(*shapes)), *shapes)
        return self._finished(chosen(inside, out, -np.inf), z, shapes)

    def pmf(self, k: Any, *args: Any, **given: Any) -> Any:
        """The probability mass function."""
        return np.exp(self.logpmf(k, *args, **given))

    def cdf(self, k: Any, *args: Any, **given: Any) -> Any:
        """The cumulative distribution function."""
        return self._part(k, args, given, "lower", "upper", 0.0, 1.0)

    def sf(self, k: Any, *args: Any, **given: Any) -> Any:
        """The survival function, 1 - cdf."""
        return self._part(k, args, given, "upper", "lower", 1.0, 0.0)

    @np.errstate(all="ignore")
    def logcdf(self, k: Any, *args: Any, **given: Any) -> Any:
        """The logarithm of the cumulative distribution function."""
        return np.log(self.cdf(k, *args, **given))

    @np.errstate(all="ignore")
    def logsf(self, k: Any, *args: Any, **given: Any) -> Any:
        """The logarithm of the survival function."""
        if hasattr(self, "log_upper"):
            return self._part(k, args, given, "log_upper", "log_lower", 0.0, -np.inf)
        return np.log(self.sf(k, *args, **given))

    @np.errstate(all="ignore")
    def _part(
        self, k: Any, args: Any, given: Any, own: str, other: str, before: float, behind: float
    ) -> Any:
        shapes, loc, _ = self.parsed(args, given)
        z = np.floor(values(real(k, "k")) - value_of(loc))
        low, high = self.support_of(*shapes)
        above, below = z >= low, z < high
        inside = chosen(np.logical_and(above, below), z, self.inside_of(*shapes))
        if hasattr(self, own):
            out = getattr(self, own)(inside, *shapes)
        elif hasattr(self, f"log_{own}"):
            out = exp_of(getattr(self, f"log_{own}")(inside, *shapes))
        else:
            out = 1.0 - self.formula(other)(inside, *shapes)
        out = chosen(above, chosen(below, out, behind), before)
        return self._finished(out, z, shapes)

    def ppf(self, q: Any, *args: Any, **given: Any) -> Any:
        """The smallest k with cdf(k) >= q; piecewise constant, so its derivative is 0."""
        return self._count(q, args, given, False)

    def isf(self, q: Any, *args: Any, **given: Any) -> Any:
        """The smallest k with sf(k) <= q; piecewise constant, so its derivative is 0."""
        return self._count(q, args, given, True)

    def _count(self, q: Any, args: Any, given: Any, upper: bool) -> Any:
        q = real(q, "q")
        shapes, loc, _ = self.parsed(args, given, q)
        return COUNTS[len(shapes)](q, *shapes, law=self.name, upper=upper) + loc

    def median(self, *args: Any, **given: Any) -> Any:
        """The median."""
        return self.ppf(0.5, *args, **given)

    def support(self, *args: Any, **given: Any) -> tuple[Any, Any]:
        """Both ends of the support."""
        shapes, loc, _ = self.parsed(args, given)
        low, high = self.support_of(*shapes)
        return loc + low, loc + high

    @np.errstate(all="ignore")
    def entropy(self, *args: Any, **given: Any) -> Any:
        """The entropy."""
        shapes, _, _ = self.parsed(args, given)
        summed = self.light and not hasattr(self, "standard_entropy")
        found = self._summed(shapes) if summed else self.formula("standard_entropy")(*shapes)
        return self._checked(found, shapes, 1)

    def _summed(self, shapes: list[Any]) -> Any:
        low, high = map(_plain, self.support_of(*shapes))
        if low is not None and high is not None and np.max(high - low) <= _WHOLE_SUPPORT:
            first, last = float(np.nanmin(low)), float(np.nanmax(high))
        else:
            first, last = self._reach([np.asarray(self.known(s)) for s in shapes])
        k = numbers(first, last, *shapes)
        return np.sum(self._share(k, shapes), axis=0)

    def _reach(self, known: list[Any]) -> tuple[float, float]:
        """The first and last k with non-negligible probability."""
        low, high = (np.asarray(end, float) for end in self.support_of(*known))
        middle, width = np.floor(self.mean(*known)), 8.0
        while True:
            first = np.maximum(low, middle - width)
            last = np.minimum(high, middle + width)
            before = np.where(first > low, self.cdf(first, *known), 0.0)
            behind = np.where(last < high, self.sf(last, *known), 0.0)
            if not np.any((before > _NEVER) | (behind > _NEVER)):
                return float(np.nanmin(first)), float(np.nanmax(last))
            width = 2.0 * width
            if width > _LARGEST_SUPPORT:
                raise OperandError(
                    f"the entropy of {self.name} is a sum over more than {_LARGEST_SUPPORT} "
                    "integers here. Use the entropy of a similar continuous distribution"
                    f"{at(user_line())}."
                )

    def _share(self, k: Any, shapes: list[Any]) -> Any:
        logs = self.logpmf(k, *shapes)
        some = logs > -np.inf
        return chosen(some, -np.exp(logs) * chosen(some, logs, 0.0), 0.0)

    def known(self, x: Any) -> Any:
        """The value of a parameter that determines the number of terms of a sum.

        Raises
        ------
        TraceError
            The parameter is traced, so its value is unknown.
        """
        shown = values(x) if not isinstance(x, int | float) else x
        if not isinstance(shown, np.ndarray | np.generic | int | float):
            raise TraceError(
                f"{self.name} is a sum whose number of terms varies with the values of its "
                f"parameters, which are unknown during tracing. Compute it outside of the traced "
                f"function, or pass integer parameters as numbers{at(user_line())}."
            )
        return shown

    def _finished(self, out: Any, z: Any, shapes: list[Any]) -> Any:
        return self._checked(chosen(np.isnan(z), np.nan, out), shapes, 1)


class Finite(Discrete):
    """A distribution with finite support, whose cdf is a sum."""

    def lower(self, k: Any, *shapes: Any) -> Any:
        """The cumulative distribution function."""
        return self._sum(k, shapes, True)

    def upper(self, k: Any, *shapes: Any) -> Any:
        """The survival function, 1 - cdf."""
        return self._sum(k, shapes, False)

    def _sum(self, k: Any, shapes: tuple[Any, ...], below: bool) -> Any:
        low, high = (self.known(end) for end in self.support_of(*shapes))
        j = numbers(np.nanmin(low), np.nanmax(high), k, *shapes)
        counted = j <= k if below else j > k
        return np.sum(chosen(counted, self.pmf(j, *shapes), 0.0), axis=0)


def _plain(x: Any) -> Any:
    """The value of x as an array if it is known and finite, else None."""
    shown = values(x) if not isinstance(x, int | float) else x
    known = isinstance(shown, np.ndarray | np.generic | int | float)
    return shown if known and np.all(np.isfinite(shown)) else None


def numbers(first: float, last: float, *others: Any) -> Any:
    """The integers from first to last, along a new leading axis."""
    depth = max([len(shape_of(x)) for x in others], default=0)
    return np.arange(int(first), int(last) + 1.0).reshape(-1, *[1] * depth)


def _found(q: Any, *shapes: Any, law: str, upper: bool) -> Any:
    theirs = getattr(scipy.stats, law)
    return (theirs.isf if upper else theirs.ppf)(q, *shapes)


def _oracle(q: Any, *shapes: Any, law: str, upper: bool) -> Any:
    """The quantile by linear search over SciPy's cdf or sf."""
    theirs = getattr(scipy.stats, law)

    def one(q: float, *shapes: float) -> float:
        k = theirs.support(*shapes)[0]
        while (theirs.sf(k, *shapes) > q) if upper else (theirs.cdf(k, *shapes) < q):
            k += 1
        return float(k)

    return np.vectorize(one)(q, *shapes)


@family(oracle=_oracle)
def count_of_one(q: Any, a: Any, *, law: str, upper: bool) -> Any:
    """The quantile of a distribution with one shape parameter."""
    return _found(q, a, law=law, upper=upper)


@family(oracle=_oracle)
def count_of_two(q: Any, a: Any, b: Any, *, law: str, upper: bool) -> Any:
    """The quantile of a distribution with two shape parameters."""
    return _found(q, a, b, law=law, upper=upper)


@family(oracle=_oracle)
def count_of_three(q: Any, a: Any, b: Any, c: Any, *, law: str, upper: bool) -> Any:
    """The quantile of a distribution with three shape parameters."""
    return _found(q, a, b, c, law=law, upper=upper)


COUNTS: dict[int, FunctionFamily] = {1: count_of_one, 2: count_of_two, 3: count_of_three}
for _k, _op in COUNTS.items():
    _op.partials(*[None] * (_k + 1))


@count_of_one.examples
def _of_one(rng: Any) -> Any:
    yield (rng.uniform(0.2, 0.8, size=2), rng.uniform(0.5, 2.0)), {"law": "poisson", "upper": True}


@count_of_two.examples
def _of_two(rng: Any) -> Any:
    shapes = rng.uniform(2.0, 4.0), rng.uniform(0.3, 0.6)
    yield (rng.uniform(0.2, 0.8, size=2), *shapes), {"law": "nbinom", "upper": False}


@count_of_three.examples
def _of_three(rng: Any) -> Any:
    shapes = 9, *rng.uniform(0.5, 2.0, size=2)  # the first is an integer
    yield (rng.uniform(0.2, 0.8, size=2), *shapes), {"law": "betabinom", "upper": False}
