"""Univariate distributions, one file for each distribution or family: the imports are the table.

Each class has the formulas of the standard form (location 0, scale 1), as described in
continuous_distribution.py and discrete_distribution.py.  They are accurate in the tails.
common.py has constants, base classes and formulas that several distributions share.
"""

# ruff: noqa: F401

from ..continuous_distribution import Distribution
from .alpha import alpha
from .argus import argus
from .beta import arcsine, beta, betaprime, powerlaw, rdist, semicircular
from .binomial import bernoulli, betabinom, binom
from .bradford import bradford
from .breit_wigner import rel_breitwigner
from .burr import burr, burr12, fisk, mielke
from .cauchy import cauchy, foldcauchy, halfcauchy, skewcauchy, wrapcauchy
from .chi import chi, chi2, ncx2
from .cosine import anglit, cosine
from .crystal_ball import crystalball
from .exponential import expon, exponpow, genexpon, truncexpon
from .extreme_value import genextreme, gompertz, gumbel_l, gumbel_r
from .f import f
from .fatigue_life import fatiguelife
from .gamma import dgamma, erlang, gamma, gengamma, invgamma, loggamma
from .gauss_hypergeometric import gausshyper
from .generalized_hyperbolic import genhyperbolic, geninvgauss, norminvgauss
from .hyperbolic_secant import hypsecant
from .hypergeometric import hypergeom, nhypergeom
from .inverse_gaussian import invgauss, recipinvgauss, wald
from .johnson import johnsonsb, johnsonsu
from .kappa import kappa3, kappa4
from .laplace import dlaplace, laplace, laplace_asymmetric, loglaplace
from .levy import levy, levy_l
from .logarithmic import logser
from .logistic import genhalflogistic, genlogistic, halflogistic, logistic
from .lognormal import gibrat, lognorm, powerlognorm
from .moyal import moyal
from .negative_binomial import betanbinom, geom, nbinom
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
from .pareto import genpareto, lomax, pareto, truncpareto
from .planck import boltzmann, planck
from .poisson import poisson, skellam
from .rayleigh import maxwell, nakagami, rayleigh, rice
from .student_t import jf_skew_t, t
from .triangular import trapezoid, triang
from .uniform import loguniform, randint, reciprocal, uniform
from .von_mises import vonmises, vonmises_line
from .weibull import dweibull, exponweib, invweibull, truncweibull_min, weibull_max, weibull_min
from .zipf import yulesimon, zipf, zipfian

__all__ = sorted(name for name, value in globals().items() if isinstance(value, Distribution))
