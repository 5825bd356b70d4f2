"""Quantiles without a formula: SciPy's value, and the implicit function theorem for its derivative.

    Implicit     a continuous distribution with formulas for `lower` and `log_density`, but not for
                 the inverse
    quantile_of  the operations: the x with cdf(x) = q

F(x; a) = q at the result, so dx/dq = 1 / f, where f is the density, and dx/da = -(dF/da) / f
(U. Dini; M. Figurnov, S. Mohamed, A. Mnih, Implicit reparameterization gradients, 2018).  The rule
uses the distribution's formulas at the result, so it can be differentiated to any order.  The
smaller of cdf and sf is differentiated, as the other rounds to 1.  The value is SciPy's, improved
by Newton steps where SciPy stopped early.

Random variates are quantiles of uniform variates.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy  # scipy.stats is loaded when it is first used

from wengert._engine.autodiff.jvp_vjp import jvp
from wengert.random import functions

from ..special.derivative_families import FunctionFamily, family
from .continuous_distribution import Continuous, chosen

__all__: list[str] = []

_LAWS: dict[str, Implicit] = {}
_STEPS = 2


class Implicit(Continuous):
    """A continuous distribution whose quantile has no closed form."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        _LAWS[name] = self

    def quantile(self, q: Any, *shapes: Any) -> Any:
        """The x with cdf(x) = q."""
        return QUANTILES[len(shapes)](q, *shapes, law=self.name, upper=False)

    def upper_quantile(self, q: Any, *shapes: Any) -> Any:
        """The x with sf(x) = q."""
        return QUANTILES[len(shapes)](q, *shapes, law=self.name, upper=True)

    def standard_draw(self, key: Any, shape: Any, *shapes: Any) -> Any:
        """The quantile of a uniform variate."""
        return self.quantile(functions.uniform(key, shape), *shapes)

    def part(self, x: Any, shapes: list[Any], upper: bool) -> Any:
        """The cdf, or sf if `upper`, of the standard form."""
        names = ("upper", "lower") if upper else ("lower", "upper")
        return self._by_any(names, x, shapes)


def _found(q: Any, *shapes: Any, law: str, upper: bool) -> Any:
    """SciPy's quantile of the standard form, improved by Newton steps."""
    mine, theirs = _LAWS[law], getattr(scipy.stats, law)
    x = (theirs.isf if upper else theirs.ppf)(q, *shapes)
    low, high = mine.support_of(*shapes)
    for _ in range(_STEPS):
        part = mine.part(x, list(shapes), upper)
        step = (part - q) / np.exp(mine.log_density(x, *shapes))
        moved = x + step if upper else x - step
        fine = np.isfinite(moved) & (np.abs(step) < 1e-3 * (1.0 + np.abs(x)))
        fine = fine & (moved > low) & (moved < high)
        moved = np.where(fine, moved, x)
        off = np.abs(mine.part(moved, list(shapes), upper) - q)
        x = np.where(off < np.abs(part - q), moved, x)
    return x


def _by_probability(t: Any, out: Any, q: Any, *shapes: Any, law: str, upper: bool) -> Any:
    slope = t * np.exp(-_LAWS[law].log_density(out, *shapes))
    return -slope if upper else slope


def _by_shape(k: int) -> Any:
    def rule(t: Any, out: Any, q: Any, *shapes: Any, law: str, upper: bool) -> Any:
        mine = _LAWS[law]

        def slope(of_upper: bool) -> Any:
            def moved(a: Any) -> Any:
                return mine.part(out, [*shapes[:k], a, *shapes[k + 1 :]], of_upper)

            return jvp(moved, (shapes[k],), (np.ones_like(shapes[k]),))[1]

        near_low = (q < 0.5) != upper
        rate = chosen(near_low, slope(False), -slope(True))
        return -t * rate * np.exp(-mine.log_density(out, *shapes))

    return rule


@family(oracle=lambda q, *, law, upper: _oracle(q, law=law, upper=upper))
def quantile_of_none(q: Any, *, law: str, upper: bool) -> Any:
    """The quantile of a distribution without shape parameters."""
    return _found(q, law=law, upper=upper)


@family(oracle=lambda q, a, *, law, upper: _oracle(q, a, law=law, upper=upper))
def quantile_of_one(q: Any, a: Any, *, law: str, upper: bool) -> Any:
    """The quantile of a distribution with one shape parameter."""
    return _found(q, a, law=law, upper=upper)


@family(oracle=lambda q, a, b, *, law, upper: _oracle(q, a, b, law=law, upper=upper))
def quantile_of_two(q: Any, a: Any, b: Any, *, law: str, upper: bool) -> Any:
    """The quantile of a distribution with two shape parameters."""
    return _found(q, a, b, law=law, upper=upper)


@family(oracle=lambda q, a, b, c, *, law, upper: _oracle(q, a, b, c, law=law, upper=upper))
def quantile_of_three(q: Any, a: Any, b: Any, c: Any, *, law: str, upper: bool) -> Any:
    """The quantile of a distribution with three shape parameters."""
    return _found(q, a, b, c, law=law, upper=upper)


QUANTILES: list[FunctionFamily] = [
    quantile_of_none,
    quantile_of_one,
    quantile_of_two,
    quantile_of_three,
]
for _k, _op in enumerate(QUANTILES):
    _op.partials(_by_probability, *[_by_shape(i) for i in range(_k)])


def _oracle(q: Any, *shapes: Any, law: str, upper: bool) -> Any:
    theirs = getattr(scipy.stats, law)
    return (theirs.isf if upper else theirs.ppf)(q, *shapes)


@quantile_of_none.examples
def _of_none(rng: Any) -> Any:
    yield (rng.uniform(0.2, 0.8, size=2),), {"law": "cosine", "upper": False}


@quantile_of_one.examples
def _of_one(rng: Any) -> Any:
    yield (rng.uniform(0.2, 0.8, size=2), rng.uniform(0.5, 2.0)), {"law": "foldnorm", "upper": True}


@quantile_of_two.examples
def _of_two(rng: Any) -> Any:
    shapes = rng.uniform(0.5, 2.0, size=2)
    yield (rng.uniform(0.2, 0.8, size=2), *shapes), {"law": "ncx2", "upper": False}


@quantile_of_three.examples
def _of_three(rng: Any) -> Any:
    shapes = rng.uniform(0.5, 2.0, size=3)
    yield (rng.uniform(0.2, 0.8, size=2), *shapes), {"law": "genexpon", "upper": False}
