"""scipy.stats, for arrays and tensors alike: log-densities that differentiate, and draws.

    distribution    what distributions have in common: logpdf, pdf, cdf, sf, logcdf, logsf, ppf,
                    isf, mean, var, std, entropy, median, support, rvs; logpmf and pmf
    real_line       norm t cauchy laplace logistic gumbel_r gumbel_l skewnorm exponnorm
    gamma_family    expon gamma invgamma chi2 chi f
    half_line       lognorm weibull_min weibull_max pareto rayleigh halfnorm halfcauchy invgauss
    bounded         uniform beta truncnorm triang powerlaw vonmises genextreme genpareto
    counts          bernoulli binom nbinom poisson geom hypergeom betabinom zipf dlaplace ...
    multivariate    multivariate_normal, multivariate_t, dirichlet, multinomial, matrix_normal ...
    summaries       zscore, sem, gmean, hmean, moment, skew, kurtosis ... of samples

Names, signatures and parameters are SciPy's.  A distribution differentiates by the point and by
all parameters; outside of its support the logarithm of the density is -inf, and the derivative 0.
Random numbers are functions of a key (``random_state=wengert.random.key(0)``), and of continuous
distributions they have derivatives by the parameters (wengert.draws).
"""

from typing import Any

from . import bounded, counts, gamma_family, half_line, multivariate, real_line, summaries

_NAMES: dict[str, Any] = {}
for _module in (real_line, gamma_family, half_line, bounded, counts, multivariate, summaries):
    _NAMES |= {name: vars(_module)[name] for name in _module.__all__}
globals().update(_NAMES)

__all__ = sorted(_NAMES)


def __getattr__(name: str) -> Any:
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
