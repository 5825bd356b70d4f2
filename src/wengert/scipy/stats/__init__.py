"""scipy.stats for arrays and tensors, differentiable.

continuous_distribution  methods of continuous distributions: logpdf, pdf, cdf, sf, logcdf, logsf,
                         ppf, isf, mean, var, std, entropy, median, support, rvs
descriptive_statistics   zscore, sem, gmean, hmean, moment, skew, kurtosis ... of samples
discrete_distribution    methods of discrete distributions: logpmf, pmf, cdf, ...
distributions/           the univariate distributions, one file for a distribution or a family
hypothesis_tests         pearsonr, linregress, t and F, wasserstein_distance, gaussian_kde
implicit_quantiles       quantiles without a formula, by the implicit function theorem
multivariate             multivariate_normal, multivariate_t, dirichlet, multinomial, matrix_normal
sample_statistics        trim_mean, tvar, iqr, circmean, kstat, differential_entropy, yeojohnson

Names, signatures and parameters are SciPy's.  A distribution can be differentiated with respect to
the point and to all parameters; outside of the support the log-density is -inf and its derivative
0.  Random variates are functions of a key (``random_state=wengert.random.key(0)``); those of
continuous distributions can be differentiated with respect to the parameters (wengert.random).
"""

from typing import Any

from wengert._engine.core.lazy_import import public_dir

from . import (
    descriptive_statistics,
    distributions,
    hypothesis_tests,
    multivariate,
    sample_statistics,
)

_NAMES: dict[str, Any] = {}
for _module in (
    distributions,
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
