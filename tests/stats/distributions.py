"""Parameters of distributions, and points, for the tests."""

import numpy as np

# name: lists of shape parameters
CONTINUOUS = {
    "norm": [()],
    "t": [(0.7,), (4.0,), (1e7,)],
    "cauchy": [()],
    "laplace": [()],
    "logistic": [()],
    "gumbel_r": [()],
    "gumbel_l": [()],
    "skewnorm": [(-2.0,), (0.0,), (5.0,)],
    "exponnorm": [(0.3,), (2.0,)],
    "expon": [()],
    "gamma": [(0.3,), (1.0,), (4.5,), (300.0,)],
    "invgamma": [(0.5,), (3.2,), (40.0,)],
    "chi2": [(0.6,), (2.0,), (9.0,)],
    "chi": [(0.6,), (1.0,), (9.0,)],
    "f": [(0.8, 5.0), (7.0, 9.5)],
    "lognorm": [(0.2,), (1.7,)],
    "weibull_min": [(0.6,), (1.0,), (3.5,)],
    "weibull_max": [(0.6,), (3.5,)],
    "pareto": [(0.6,), (3.5,)],
    "rayleigh": [()],
    "halfnorm": [()],
    "halfcauchy": [()],
    "invgauss": [(0.3,), (2.5,)],
    "uniform": [()],
    "beta": [(0.4, 0.7), (1.0, 1.0), (3.0, 8.0)],
    "truncnorm": [(-1.0, 2.0), (1.0, np.inf), (-9.0, -7.5), (8.0, 9.0)],
    "triang": [(0.0,), (0.3,), (1.0,)],
    "powerlaw": [(0.4,), (1.0,), (5.0,)],
    "vonmises": [(0.0,), (0.5,), (30.0,)],
    "genextreme": [(-0.4,), (0.0,), (0.3,)],
    "genpareto": [(-0.4,), (0.0,), (0.3,)],
}
DISCRETE = {
    "bernoulli": [(0.3,), (0.0,), (1.0,)],
    "binom": [(12, 0.3), (400, 0.9), (5, 0.0)],
    "nbinom": [(3, 0.4), (0.5, 0.9)],
    "poisson": [(0.4,), (35.0,), (0.0,)],
    "geom": [(0.3,), (1.0,)],
    "hypergeom": [(20, 7, 12), (50, 3, 49)],
    "betabinom": [(10, 0.6, 2.0), (30, 5.0, 3.0)],
    "zipf": [(1.3,), (4.0,)],
    "dlaplace": [(0.3,), (2.5,)],
    "randint": [(-3, 7)],
    "logser": [(0.2,), (0.9,)],
}
# Parameters at which derivatives are taken.
INSIDE = {name: next(s for s in several if 0.0 not in s) for name, several in CONTINUOUS.items()}
INSIDE |= {"t": (4.0,), "truncnorm": (-1.0, 2.0), "vonmises": (0.5,), "triang": (0.3,)}
INSIDE |= {"gamma": (4.5,), "skewnorm": (-2.0,)}


def points(theirs, shapes, loc, scale):
    """Points of the support, at its ends and beyond."""
    law = theirs(*shapes, loc=loc, scale=scale)
    q = np.array([1e-12, 1e-3, 0.05, 0.3, 0.5, 0.8, 0.99, 1 - 1e-9])
    x = law.ppf(q)
    return np.concatenate([x, [loc - 50.0 * scale, loc + 50.0 * scale, np.inf, -np.inf, np.nan]])
