"""Calls of the distributions of scipy.stats: the methods of a distribution are called the same way.

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
    "betanbinom": (5, 3.7, 2.3),
    "betaprime": (1.7, 4.3),
    "betabinom": (5, 1.7, 2.3),
    "binom": (5, 0.4),
    "boltzmann": (0.6, 9),
    "burr": (4.7, 2.3),
    "burr12": (4.7, 2.3),
    "f": (5.5, 7.2),
    "fisk": (4.7,),
    "genextreme": (0.2,),
    "genhalflogistic": (0.6,),
    "genpareto": (0.2,),
    "geom": (0.4,),
    "hypergeom": (9, 5, 6),
    "invgamma": (4.5,),
    "invweibull": (2.3,),
    "kappa4": (0.3, 0.2),
    "loglaplace": (4.7,),
    "logser": (0.4,),
    "loguniform": (0.1, 1.3),
    "lomax": (4.7,),
    "mielke": (1.7, 4.3),
    "nbinom": (4.5, 0.4),
    "nhypergeom": (19, 7, 5),
    "norminvgauss": (2.3, 0.8),
    "pareto": (4.5,),
    "poisson": (1.6,),
    "powerlaw": (1.7,),
    "randint": (0, 5),
    "reciprocal": (0.1, 1.3),
    "skellam": (1.2, 0.8),
    "skewcauchy": (0.4,),
    "skewnorm": (0.8,),
    "t": (5.5,),
    "trapezoid": (0.2, 0.7),
    "triang": (0.4,),
    "truncnorm": (-1.1, 2.3),
    "truncpareto": (1.7, 4.0),
    "truncweibull_min": (1.7, 0.1, 1.9),
    "wrapcauchy": (0.4,),
    "yulesimon": (3.7,),
    "zipf": (3.2,),
    "zipfian": (1.3, 9),
    "zipf.entropy": (15.0,),  # where SciPy's sum has all digits
}
BEHIND_ONE = {"pareto", "truncpareto"}  # places above one, and with a sign
BELOW_NOUGHT = {"levy_l", "weibull_max"}
FREE = (1.7, 2.3, 1.2, 0.9)


def call_of_method(name: str, distribution: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a method, as ``norm.logpdf``, of the distribution of SciPy."""
    which, _, method = name.partition(".")
    discrete = hasattr(distribution, "logpmf")
    names = (distribution.shapes or "").replace(" ", "")
    count = len(names.split(",")) if names else 0
    shapes = SHAPES.get(name, SHAPES.get(which, FREE[:count]))
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
