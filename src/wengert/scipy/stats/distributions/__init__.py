"""Univariate distributions, one file for each distribution or family: the imports are the table.

Each class has the formulas of the standard form (location 0, scale 1), as described in
continuous_distribution.py and discrete_distribution.py.  They are accurate in the tails.  Where a
module names no other source of a distribution, those of continuous distributions are from N. L.
Johnson, S. Kotz, N. Balakrishnan, Continuous Univariate Distributions (1994, 1995).  common.py has
constants, base classes and formulas that several distributions share.
"""

# ruff: noqa: F401

from ..continuous_distribution import Distribution
from .beta import arcsine, beta, betaprime, gausshyper, powerlaw, rdist, semicircular
from .binomial_poisson import (
    bernoulli,
    betabinom,
    betanbinom,
    binom,
    geom,
    hypergeom,
    nbinom,
    nhypergeom,
    poisson,
    skellam,
)
from .burr_logistic import (
    burr,
    burr12,
    fisk,
    genhalflogistic,
    genlogistic,
    halflogistic,
    hypsecant,
    kappa3,
    kappa4,
    logistic,
    mielke,
)
from .chi import chi, chi2, maxwell, nakagami, ncx2, rayleigh, rice
from .exponential_laplace import (
    dlaplace,
    expon,
    exponpow,
    genexpon,
    laplace,
    laplace_asymmetric,
    loglaplace,
    truncexpon,
)
from .extreme_value_weibull import (
    dweibull,
    exponweib,
    genextreme,
    gompertz,
    gumbel_l,
    gumbel_r,
    invweibull,
    truncweibull_min,
    weibull_max,
    weibull_min,
)
from .gamma_student_t_f import dgamma, erlang, f, gamma, gengamma, invgamma, jf_skew_t, loggamma, t
from .inverse_gaussian_particle_physics import (
    argus,
    crystalball,
    genhyperbolic,
    geninvgauss,
    invgauss,
    levy,
    levy_l,
    moyal,
    norminvgauss,
    recipinvgauss,
    rel_breitwigner,
    wald,
)
from .lognormal_johnson import (
    alpha,
    fatiguelife,
    gibrat,
    johnsonsb,
    johnsonsu,
    lognorm,
    powerlognorm,
)
from .normal import (
    exponnorm,
    foldnorm,
    gennorm,
    halfgennorm,
    halfnorm,
    norm,
    powernorm,
    skewnorm,
    truncnorm,
)
from .pareto_cauchy import (
    bradford,
    cauchy,
    foldcauchy,
    genpareto,
    halfcauchy,
    lomax,
    pareto,
    skewcauchy,
    truncpareto,
    wrapcauchy,
)
from .uniform_cosine_von_mises import (
    anglit,
    cosine,
    loguniform,
    randint,
    reciprocal,
    trapezoid,
    triang,
    uniform,
    vonmises,
    vonmises_line,
)
from .zipf_planck_logarithmic import boltzmann, logser, planck, yulesimon, zipf, zipfian

__all__ = sorted(name for name, value in globals().items() if isinstance(value, Distribution))
