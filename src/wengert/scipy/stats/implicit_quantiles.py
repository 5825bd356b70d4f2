"""Quantiles without a formula: SciPy's value, and the implicit function theorem for its derivative.

    Implicit     a continuous distribution of which `lower` and `log_density` are known, and the
                 inverse is not
    quantile_of  the operations: the x at which the distribution function is q

F(x; a) = q at the result, so that x moves by 1 / f with q, where f is the density, and by
-(dF/da) / f with a parameter (U. Dini; the reparameterisation of M. Figurnov, S. Mohamed, A. Mnih,
Implicit reparameterization gradients, 2018).  The rule is written with the distribution's own
formulas at the result itself, so it differentiates to any order.  Of the tails the nearer one is
differentiated, as the other is 1 but for rounding.  The result is SciPy's, improved by a step of
Newton's where SciPy stopped early.

A distribution that has a quantile has draws: the quantile of a uniform number.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy  # scipy.stats is loaded when it is first used

from wengert._engine.autodiff.jvp_vjp import jvp
from wengert.random import functions

from ..special.derivative_families import Family, family
from .continuous_distribution import Continuous, chosen

__all__: list[str] = []

_LAWS: dict[str, Implicit] = {}
_STEPS = 2


class Implicit(Continuous):
    """A continuous distribution whose quantile is found, and not written down."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        _LAWS[name] = self

    def quantile(self, q: Any, *shapes: Any) -> Any:
        """The x at which the distribution function is q."""
        return QUANTILES[len(shapes)](q, *shapes, law=self.name, upper=False)

    def upper_quantile(self, q: Any, *shapes: Any) -> Any:
        """The x beyond which the probability is q."""
        return QUANTILES[len(shapes)](q, *shapes, law=self.name, upper=True)

    def standard_draw(self, key: Any, shape: Any, *shapes: Any) -> Any:
        """A uniform number's quantile."""
        return self.quantile(functions.uniform(key, shape), *shapes)

    def part(self, x: Any, shapes: list[Any], upper: bool) -> Any:
        """The probability of less, or of more, of the standard form."""
        names = ("upper", "lower") if upper else ("lower", "upper")
        return self._by_any(names, x, shapes)


def _found(q: Any, *shapes: Any, law: str, upper: bool) -> Any:
    """SciPy's quantile of the standard form; where a step of Newton's betters it, that."""
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
    """The quantile of a distribution without parameters of shape."""
    return _found(q, law=law, upper=upper)


@family(oracle=lambda q, a, *, law, upper: _oracle(q, a, law=law, upper=upper))
def quantile_of_one(q: Any, a: Any, *, law: str, upper: bool) -> Any:
    """The quantile of a distribution with one parameter of shape."""
    return _found(q, a, law=law, upper=upper)


@family(oracle=lambda q, a, b, *, law, upper: _oracle(q, a, b, law=law, upper=upper))
def quantile_of_two(q: Any, a: Any, b: Any, *, law: str, upper: bool) -> Any:
    """The quantile of a distribution with two parameters of shape."""
    return _found(q, a, b, law=law, upper=upper)


@family(oracle=lambda q, a, b, c, *, law, upper: _oracle(q, a, b, c, law=law, upper=upper))
def quantile_of_three(q: Any, a: Any, b: Any, c: Any, *, law: str, upper: bool) -> Any:
    """The quantile of a distribution with three parameters of shape."""
    return _found(q, a, b, c, law=law, upper=upper)


QUANTILES: list[Family] = [quantile_of_none, quantile_of_one, quantile_of_two, quantile_of_three]
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
