"""Calls of the distributions of scipy.stats: every method of one distribution is called alike.

    call_of_method    the arguments of ``norm.logpdf`` and its sisters

A density is called with four places, the parameters of shape, a location and a scale, all of which
are differentiated by; a quantile with four probabilities; a moment with the parameters alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np

PLACES = np.array([0.31, 0.72, 0.55, 0.18])
COUNTS = np.array([1, 2, 1, 3])

# Parameters of shape for which the four places are inside; elsewhere 1.7, 2.3, 1.2 ...
SHAPES: dict[str, tuple[Any, ...]] = {
    "bernoulli": (0.4,),
    "betabinom": (5, 1.7, 2.3),
    "binom": (5, 0.4),
    "boltzmann": (0.6, 9),
    "f": (5.5, 7.2),
    "genextreme": (0.2,),
    "genpareto": (0.2,),
    "geom": (0.4,),
    "hypergeom": (9, 5, 6),
    "invgamma": (4.5,),
    "logser": (0.4,),
    "nbinom": (4.5, 0.4),
    "pareto": (4.5,),
    "poisson": (1.6,),
    "powerlaw": (1.7,),
    "randint": (0, 5),
    "skellam": (1.2, 0.8),
    "skewnorm": (0.8,),
    "t": (5.5,),
    "triang": (0.4,),
    "truncnorm": (-1.1, 2.3),
    "zipf": (3.2,),
}
BEHIND_ONE = {"pareto"}  # places above one, and with a sign
BELOW_NOUGHT = {"weibull_max"}
FREE = (1.7, 2.3, 1.2, 0.9)


def call_of_method(name: str, distribution: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a method, as ``norm.logpdf``, of the distribution of SciPy."""
    which, _, method = name.partition(".")
    discrete = hasattr(distribution, "logpmf")
    names = (distribution.shapes or "").replace(" ", "")
    count = len(names.split(",")) if names else 0
    shapes = SHAPES.get(which, FREE[:count])
    parameters = [np.float64(a) if isinstance(a, float) else a for a in shapes]
    if not discrete:  # a location and a scale
        parameters += [np.float64(-0.05), np.float64(1.3)]
    if method in ("entropy", "mean", "var", "std"):
        return tuple(parameters), {}
    if method in ("ppf", "isf"):
        return (PLACES, *parameters), {}
    places = COUNTS * (which != "bernoulli") if discrete else PLACES
    places = places * 1.3 + 1.5 if which in BEHIND_ONE else places
    return (-places if which in BELOW_NOUGHT else places, *parameters), {}
