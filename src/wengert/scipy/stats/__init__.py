"""scipy.stats, for arrays and tensors: differentiable densities and distributions, random numbers.

bounded                  uniform beta truncnorm triang powerlaw vonmises genextreme genpareto
continuous_distribution  what distributions have in common: logpdf, pdf, cdf, sf, logcdf, logsf,
                         ppf, isf, mean, var, std, entropy, median, support, rvs; logpmf and pmf
counts                   bernoulli binom nbinom poisson geom hypergeom betabinom zipf dlaplace
descriptive_statistics   zscore, sem, gmean, hmean, moment, skew, kurtosis ... of samples
discrete_distribution    what distributions of whole numbers have in common
folded                   foldnorm foldcauchy halflogistic genhalflogistic halfgennorm
from_normal              maxwell nakagami levy fatiguelife recipinvgauss powerlognorm alpha
further_counts           planck boltzmann yulesimon zipfian betanbinom nhypergeom
gamma_family             expon gamma invgamma chi2 chi f
half_line                lognorm weibull_min weibull_max pareto rayleigh halfnorm halfcauchy
                         invgauss
hypothesis_tests         pearsonr, linregress, t and F, wasserstein_distance, gaussian_kde
implicit_quantiles       quantiles without a formula, by the implicit function theorem
intervals                anglit arcsine argus bradford cosine johnsonsb loguniform rdist
                         semicircular
multivariate             multivariate_normal, multivariate_t, dirichlet, multinomial, matrix_normal
noncentral               ncx2 rice skellam
powers                   fisk burr burr12 lomax mielke kappa3 betaprime loglaplace
real_line                norm t cauchy laplace logistic gumbel_r gumbel_l skewnorm exponnorm
sample_statistics        trim_mean, tvar, iqr, circmean, kstat, differential_entropy, yeojohnson
skewed                   crystalball jf_skew_t norminvgauss genhyperbolic geninvgauss gausshyper
truncated                truncexpon truncpareto truncweibull_min trapezoid wrapcauchy kappa4
weibulls                 invweibull exponweib exponpow gengamma erlang gompertz genexpon
whole_line               gennorm dgamma dweibull genlogistic hypsecant johnsonsu moyal loggamma

Names, signatures and parameters are SciPy's.  Distributions are differentiable with respect to the
point and all parameters; outside of the support the log-density is -inf and its derivative 0.
Random numbers are functions of a key (``random_state=wengert.random.key(0)``); those of continuous
distributions have derivatives with respect to the parameters (wengert.random).
"""

from typing import Any

from wengert._engine.core.lazy_import import public_dir

from . import (
    bounded,
    counts,
    descriptive_statistics,
    folded,
    from_normal,
    further_counts,
    gamma_family,
    half_line,
    hypothesis_tests,
    intervals,
    multivariate,
    noncentral,
    powers,
    real_line,
    sample_statistics,
    skewed,
    truncated,
    weibulls,
    whole_line,
)

_CONTINUOUS = (real_line, gamma_family, half_line, bounded, powers, weibulls, from_normal, folded)
_FURTHER = (whole_line, skewed, intervals, truncated, noncentral)
_NAMES: dict[str, Any] = {}
for _module in (
    *_CONTINUOUS,
    *_FURTHER,
    counts,
    further_counts,
    multivariate,
    descriptive_statistics,
    sample_statistics,
    hypothesis_tests,
):
    _NAMES |= {name: vars(_module)[name] for name in _module.__all__}
globals().update(_NAMES)

__all__ = sorted(_NAMES)


def __getattr__(name: str) -> Any:
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__dir__ = public_dir(__name__)
