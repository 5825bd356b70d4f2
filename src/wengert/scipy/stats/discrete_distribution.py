"""Base classes of discrete distributions.

    Discrete    a subclass defines formulas of the standard form, as for `Continuous`
    Finite      distributions with finite support, whose cdf is a sum
    count_of_*  the operations behind `ppf` and `isf`, computed by SciPy; all derivatives are 0

The point is an integer, so there are derivatives only with respect to the parameters.  A quantile
is piecewise constant in its probability and in the parameters; its derivative is 0.

Entropies without a formula are sums of -p log p over all k between tails of probability 1e-18.  The
range of k depends on the values of the parameters, so such an entropy cannot be traced; its
derivative is that of the sum.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy  # scipy.stats is loaded when it is first used

from wengert._engine.core.handle import shape_of, value_of
from wengert._engine.tensor.numpy_dispatch import values
from wengert.errors import OperandError, TraceError, at, user_line

from ..special.register import FunctionFamily, family
from .continuous_distribution import Distribution, exp_of, real

__all__: list[str] = []

_NEGLIGIBLE = 1e-18  # probability
_MAX_TERMS = 3_000_000
_MAX_FULL_SUPPORT = 4096  # supports up to this size are summed completely


class Discrete(Distribution):
    """A distribution of integers; a subclass defines the same formulas as one of `Continuous`.

    The point is an integer, so there are derivatives only with respect to the parameters.
    """

    last = ("loc",)
    ends = (0.0, np.inf)
    inner = 1.0
    has_light_tail = True  # whether the tail decays fast enough for sums over the support

    def inside_of(self, *shapes: Any) -> Any:
        """The lower end of the support."""
        low, high = self.support_of(*shapes)
        return np.where(np.isfinite(low), low, high)

    @np.errstate(all="ignore")
    def logpmf(self, k: Any, *args: Any, **kwargs: Any) -> Any:
        """The log of the probability mass at k; -inf where k is not an integer."""
        shapes, loc, _ = self.parse_args(args, kwargs)
        z = values(real(k, "k")) - value_of(loc)
        low, high = self.support_of(*shapes)
        inside = np.logical_and(np.logical_and(z >= low, z <= high), z == np.floor(z))
        inside = np.logical_and(inside, np.isfinite(z))
        out = self.log_density(np.where(inside, z, self.inside_of(*shapes)), *shapes)
        return self._finish(np.where(inside, out, -np.inf), z, shapes)

    def pmf(self, k: Any, *args: Any, **kwargs: Any) -> Any:
        """The probability mass function."""
        return np.exp(self.logpmf(k, *args, **kwargs))

    def cdf(self, k: Any, *args: Any, **kwargs: Any) -> Any:
        """The cumulative distribution function."""
        return self._probability(k, args, kwargs, "lower", "upper", 0.0, 1.0)

    def sf(self, k: Any, *args: Any, **kwargs: Any) -> Any:
        """The survival function, 1 - cdf."""
        return self._probability(k, args, kwargs, "upper", "lower", 1.0, 0.0)

    @np.errstate(all="ignore")
    def logcdf(self, k: Any, *args: Any, **kwargs: Any) -> Any:
        """The logarithm of the cumulative distribution function."""
        return np.log(self.cdf(k, *args, **kwargs))

    @np.errstate(all="ignore")
    def logsf(self, k: Any, *args: Any, **kwargs: Any) -> Any:
        """The logarithm of the survival function."""
        if hasattr(self, "log_upper"):
            return self._probability(k, args, kwargs, "log_upper", "log_lower", 0.0, -np.inf)
        return np.log(self.sf(k, *args, **kwargs))

    @np.errstate(all="ignore")
    def _probability(
        self, k: Any, args: Any, kwargs: Any, own: str, other: str, below: float, above: float
    ) -> Any:
        shapes, loc, _ = self.parse_args(args, kwargs)
        z = np.floor(values(real(k, "k")) - value_of(loc))
        low, high = self.support_of(*shapes)
        over_low, under_high = z >= low, z < high
        inside = np.where(np.logical_and(over_low, under_high), z, self.inside_of(*shapes))
        if hasattr(self, own):
            out = getattr(self, own)(inside, *shapes)
        elif hasattr(self, f"log_{own}"):
            out = exp_of(getattr(self, f"log_{own}")(inside, *shapes))
        else:
            out = 1.0 - self.formula(other)(inside, *shapes)
        out = np.where(over_low, np.where(under_high, out, above), below)
        return self._finish(out, z, shapes)

    def ppf(self, q: Any, *args: Any, **kwargs: Any) -> Any:
        """The smallest k with cdf(k) >= q; piecewise constant, so its derivative is 0."""
        return self._count(q, args, kwargs, False)

    def isf(self, q: Any, *args: Any, **kwargs: Any) -> Any:
        """The smallest k with sf(k) <= q; piecewise constant, so its derivative is 0."""
        return self._count(q, args, kwargs, True)

    def _count(self, q: Any, args: Any, kwargs: Any, upper: bool) -> Any:
        q = real(q, "q")
        shapes, loc, _ = self.parse_args(args, kwargs, q)
        return COUNTS[len(shapes)](q, *shapes, law=self.name, upper=upper) + loc

    def median(self, *args: Any, **kwargs: Any) -> Any:
        """The median."""
        return self.ppf(0.5, *args, **kwargs)

    def support(self, *args: Any, **kwargs: Any) -> tuple[Any, Any]:
        """Both ends of the support."""
        shapes, loc, _ = self.parse_args(args, kwargs)
        low, high = self.support_of(*shapes)
        return loc + low, loc + high

    @np.errstate(all="ignore")
    def entropy(self, *args: Any, **kwargs: Any) -> Any:
        """The entropy."""
        shapes, _, _ = self.parse_args(args, kwargs)
        if self.has_light_tail and not hasattr(self, "standard_entropy"):
            out = self._sum_entropy(shapes)
        else:
            out = self.formula("standard_entropy")(*shapes)
        return self._nan_if_invalid(out, shapes, 1)

    def _sum_entropy(self, shapes: list[Any]) -> Any:
        low, high = map(_finite_value, self.support_of(*shapes))
        if low is not None and high is not None and np.max(high - low) <= _MAX_FULL_SUPPORT:
            first, last = float(np.nanmin(low)), float(np.nanmax(high))
        else:
            first, last = self._relevant_range([np.asarray(self.known_value(s)) for s in shapes])
        k = integers(first, last, *shapes)
        return np.sum(self._entropy_terms(k, shapes), axis=0)

    def _relevant_range(self, shapes: list[Any]) -> tuple[float, float]:
        """The first and last k with non-negligible probability."""
        low, high = (np.asarray(end, float) for end in self.support_of(*shapes))
        center, width = np.floor(self.mean(*shapes)), 8.0
        while True:
            first = np.maximum(low, center - width)
            last = np.minimum(high, center + width)
            below = np.where(first > low, self.cdf(first, *shapes), 0.0)
            above = np.where(last < high, self.sf(last, *shapes), 0.0)
            if not np.any((below > _NEGLIGIBLE) | (above > _NEGLIGIBLE)):
                return float(np.nanmin(first)), float(np.nanmax(last))
            width = 2.0 * width
            if width > _MAX_TERMS:
                raise OperandError(
                    f"the entropy of {self.name} with these parameters is a sum of more than "
                    f"{_MAX_TERMS} terms. Use the entropy of a similar continuous distribution"
                    f"{at(user_line())}."
                )

    def _entropy_terms(self, k: Any, shapes: list[Any]) -> Any:
        logs = self.logpmf(k, *shapes)
        positive = logs > -np.inf
        return np.where(positive, -np.exp(logs) * np.where(positive, logs, 0.0), 0.0)

    def known_value(self, x: Any) -> Any:
        """The value of a parameter that determines the number of terms of a sum.

        Raises
        ------
        TraceError
            The parameter is traced, so its value is unknown.
        """
        value = values(x) if not isinstance(x, int | float) else x
        if not isinstance(value, np.ndarray | np.generic | int | float):
            raise TraceError(
                f"{self.name} is a sum whose number of terms varies with the values of its "
                f"parameters, which are not known while tracing. Compute it outside of the traced "
                f"function, or pass integer parameters as numbers{at(user_line())}."
            )
        return value

    def _finish(self, out: Any, z: Any, shapes: list[Any]) -> Any:
        return self._nan_if_invalid(np.where(np.isnan(z), np.nan, out), shapes, 1)


class Finite(Discrete):
    """A distribution with finite support, whose cdf is a sum."""

    def lower(self, k: Any, *shapes: Any) -> Any:
        """The cumulative distribution function."""
        return self._sum(k, shapes, True)

    def upper(self, k: Any, *shapes: Any) -> Any:
        """The survival function, 1 - cdf."""
        return self._sum(k, shapes, False)

    def _sum(self, k: Any, shapes: tuple[Any, ...], below: bool) -> Any:
        low, high = (self.known_value(end) for end in self.support_of(*shapes))
        j = integers(np.nanmin(low), np.nanmax(high), k, *shapes)
        included = j <= k if below else j > k
        return np.sum(np.where(included, self.pmf(j, *shapes), 0.0), axis=0)


def _finite_value(x: Any) -> Any:
    """The value of x as an array if it is known and finite, else None."""
    value = values(x) if not isinstance(x, int | float) else x
    known = isinstance(value, np.ndarray | np.generic | int | float)
    return value if known and np.all(np.isfinite(value)) else None


def integers(first: float, last: float, *others: Any) -> Any:
    """The integers from first to last, along a new leading axis before those of `others`."""
    ndim = max([len(shape_of(x)) for x in others], default=0)
    return np.arange(int(first), int(last) + 1.0).reshape(-1, *[1] * ndim)


def _scipy_quantile(q: Any, *shapes: Any, law: str, upper: bool) -> Any:
    theirs = getattr(scipy.stats, law)
    return (theirs.isf if upper else theirs.ppf)(q, *shapes)


def _oracle(q: Any, *shapes: Any, law: str, upper: bool) -> Any:
    """The quantile by linear search over SciPy's cdf or sf."""
    theirs = getattr(scipy.stats, law)

    def search(q: float, *shapes: float) -> float:
        k = theirs.support(*shapes)[0]
        while (theirs.sf(k, *shapes) > q) if upper else (theirs.cdf(k, *shapes) < q):
            k += 1
        return float(k)

    return np.vectorize(search)(q, *shapes)


@family(oracle=_oracle)
def count_of_one(q: Any, a: Any, *, law: str, upper: bool) -> Any:
    """The quantile of a distribution with one shape parameter."""
    return _scipy_quantile(q, a, law=law, upper=upper)


@family(oracle=_oracle)
def count_of_two(q: Any, a: Any, b: Any, *, law: str, upper: bool) -> Any:
    """The quantile of a distribution with two shape parameters."""
    return _scipy_quantile(q, a, b, law=law, upper=upper)


@family(oracle=_oracle)
def count_of_three(q: Any, a: Any, b: Any, c: Any, *, law: str, upper: bool) -> Any:
    """The quantile of a distribution with three shape parameters."""
    return _scipy_quantile(q, a, b, c, law=law, upper=upper)


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
