"""Quantiles without a formula: SciPy's value, and the implicit function theorem for its derivative.

    Implicit       a continuous distribution with formulas for `lower` and `log_density`, but not
                   for the inverse
    quantile_of_*  the operations: the x with cdf(x) = q

F(x; a) = q at the result, so dx/dq = 1 / f, where f is the density, and dx/da = -(dF/da) / f
(U. Dini; M. Figurnov, S. Mohamed, A. Mnih, Implicit reparameterization gradients, 2018).  The rule
uses the distribution's formulas at the result, so it can be differentiated to any order.  The
smaller of cdf and sf is differentiated, as the other rounds to 1.  The value is SciPy's, refined by
Newton steps, as SciPy's solver stops early for some distributions.

Random variates are quantiles of uniform variates.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy  # scipy.stats is loaded when it is first used

from wengert._engine.autodiff.jvp_vjp import jvp
from wengert.random import functions

from ..special.register import FunctionFamily, family
from .continuous_distribution import Continuous

__all__: list[str] = []

_DISTRIBUTIONS: dict[str, Implicit] = {}
_NEWTON_STEPS = 2


class Implicit(Continuous):
    """A continuous distribution whose quantile has no closed form."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        _DISTRIBUTIONS[name] = self

    def quantile(self, q: Any, *shapes: Any) -> Any:
        """The x with cdf(x) = q."""
        return QUANTILES[len(shapes)](q, *shapes, law=self.name, upper=False)

    def upper_quantile(self, q: Any, *shapes: Any) -> Any:
        """The x with sf(x) = q."""
        return QUANTILES[len(shapes)](q, *shapes, law=self.name, upper=True)

    def standard_draw(self, key: Any, shape: Any, *shapes: Any) -> Any:
        """The quantile of a uniform variate."""
        return self.quantile(functions.uniform(key, shape), *shapes)

    def cdf_or_sf(self, x: Any, shapes: list[Any], upper: bool) -> Any:
        """The cdf, or sf if `upper`, of the standard form."""
        names = ("upper", "lower") if upper else ("lower", "upper")
        return self._from_formulas(names, x, shapes)


def _refined_quantile(q: Any, *shapes: Any, law: str, upper: bool) -> Any:
    """SciPy's quantile of the standard form, refined by Newton steps."""
    distribution, theirs = _DISTRIBUTIONS[law], getattr(scipy.stats, law)
    x = (theirs.isf if upper else theirs.ppf)(q, *shapes)
    low, high = distribution.support_of(*shapes)
    for _ in range(_NEWTON_STEPS):
        residual = distribution.cdf_or_sf(x, list(shapes), upper) - q
        step = residual / np.exp(distribution.log_density(x, *shapes))
        new = x + step if upper else x - step
        accepted = np.isfinite(new) & (np.abs(step) < 1e-3 * (1.0 + np.abs(x)))
        accepted = accepted & (new > low) & (new < high)
        new = np.where(accepted, new, x)
        new_residual = distribution.cdf_or_sf(new, list(shapes), upper) - q
        x = np.where(np.abs(new_residual) < np.abs(residual), new, x)
    return x


def _by_probability(t: Any, out: Any, q: Any, *shapes: Any, law: str, upper: bool) -> Any:
    """The partial with respect to the probability."""
    partial = t * np.exp(-_DISTRIBUTIONS[law].log_density(out, *shapes))
    return -partial if upper else partial


def _by_shape(k: int) -> Any:
    """The partial with respect to shape parameter k."""

    def rule(t: Any, out: Any, q: Any, *shapes: Any, law: str, upper: bool) -> Any:
        distribution = _DISTRIBUTIONS[law]

        def derivative(of_upper: bool) -> Any:
            def function(a: Any) -> Any:
                return distribution.cdf_or_sf(out, [*shapes[:k], a, *shapes[k + 1 :]], of_upper)

            return jvp(function, (shapes[k],), (np.ones_like(shapes[k]),))[1]

        in_lower_half = (q < 0.5) != upper
        cdf_derivative = np.where(in_lower_half, derivative(False), -derivative(True))
        return -t * cdf_derivative * np.exp(-distribution.log_density(out, *shapes))

    return rule


@family(oracle=lambda q, *, law, upper: _oracle(q, law=law, upper=upper))
def quantile_of_none(q: Any, *, law: str, upper: bool) -> Any:
    """The quantile of a distribution without shape parameters."""
    return _refined_quantile(q, law=law, upper=upper)


@family(oracle=lambda q, a, *, law, upper: _oracle(q, a, law=law, upper=upper))
def quantile_of_one(q: Any, a: Any, *, law: str, upper: bool) -> Any:
    """The quantile of a distribution with one shape parameter."""
    return _refined_quantile(q, a, law=law, upper=upper)


@family(oracle=lambda q, a, b, *, law, upper: _oracle(q, a, b, law=law, upper=upper))
def quantile_of_two(q: Any, a: Any, b: Any, *, law: str, upper: bool) -> Any:
    """The quantile of a distribution with two shape parameters."""
    return _refined_quantile(q, a, b, law=law, upper=upper)


@family(oracle=lambda q, a, b, c, *, law, upper: _oracle(q, a, b, c, law=law, upper=upper))
def quantile_of_three(q: Any, a: Any, b: Any, c: Any, *, law: str, upper: bool) -> Any:
    """The quantile of a distribution with three shape parameters."""
    return _refined_quantile(q, a, b, c, law=law, upper=upper)


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
