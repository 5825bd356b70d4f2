"""The distributions of the page for users of Stan have the densities of Stan's definitions.

Each row has the call of the page, at x, and the logarithm of the density as Stan's reference manual
defines it.
"""

import numpy as np
import pytest
from scipy.special import betaln, erfc, gammaln, i0

from wengert.scipy import stats

X, K = 2.3, 4
A, B, M = 1.7, 0.6, 0.9
NORMAL = -0.5 * np.log(2 * np.pi)
ROWS = {
    "normal": (stats.norm.logpdf(X, M, B), NORMAL - np.log(B) - 0.5 * ((X - M) / B) ** 2),
    "double_exponential": (stats.laplace.logpdf(X, M, B), -np.log(2 * B) - abs(X - M) / B),
    "gumbel": (
        stats.gumbel_r.logpdf(X, M, B),
        -np.log(B) - (X - M) / B - np.exp(-(X - M) / B),
    ),
    "lognormal": (
        stats.lognorm.logpdf(X, B, scale=np.exp(M)),
        NORMAL - np.log(B * X) - 0.5 * ((np.log(X) - M) / B) ** 2,
    ),
    "exponential": (stats.expon.logpdf(X, scale=1 / B), np.log(B) - B * X),
    "gamma": (
        stats.gamma.logpdf(X, A, scale=1 / B),
        A * np.log(B) - gammaln(A) + (A - 1) * np.log(X) - B * X,
    ),
    "inv_gamma": (
        stats.invgamma.logpdf(X, A, scale=B),
        A * np.log(B) - gammaln(A) - (A + 1) * np.log(X) - B / X,
    ),
    "weibull": (
        stats.weibull_min.logpdf(X, A, scale=B),
        np.log(A / B) + (A - 1) * np.log(X / B) - (X / B) ** A,
    ),
    "frechet": (
        stats.invweibull.logpdf(X, A, scale=B),
        np.log(A / B) - (A + 1) * np.log(X / B) - (X / B) ** -A,
    ),
    "pareto": (
        stats.pareto.logpdf(X, A, scale=M),
        np.log(A) + A * np.log(M) - (A + 1) * np.log(X),
    ),
    "pareto_type_2": (
        stats.lomax.logpdf(X, A, M, B),
        np.log(A / B) - (A + 1) * np.log1p((X - M) / B),
    ),
    "beta_proportion": (
        stats.beta.logpdf(0.3, B * A, (1 - B) * A),
        (B * A - 1) * np.log(0.3) + ((1 - B) * A - 1) * np.log(0.7) - betaln(B * A, (1 - B) * A),
    ),
    "skew_normal": (
        stats.skewnorm.logpdf(X, A, M, B),
        NORMAL
        - np.log(B)
        - 0.5 * ((X - M) / B) ** 2
        + np.log(erfc(-A * (X - M) / (B * np.sqrt(2)))),
    ),
    "exp_mod_normal": (
        stats.exponnorm.logpdf(X, 1 / (B * A), M, B),
        np.log(A / 2)
        + A / 2 * (2 * M + A * B**2 - 2 * X)
        + np.log(erfc((M + A * B**2 - X) / (np.sqrt(2) * B))),
    ),
    "von_mises": (
        stats.vonmises.logpdf(X, A, M),
        A * np.cos(X - M) - np.log(2 * np.pi * i0(A)),
    ),
    "neg_binomial_2": (
        stats.nbinom.logpmf(K, A, A / (A + B)),
        gammaln(K + A)
        - gammaln(K + 1)
        - gammaln(A)
        + K * np.log(B / (B + A))
        + A * np.log(A / (B + A)),
    ),
}


@pytest.mark.parametrize("name", ROWS)
def test_density_is_that_of_stan(name):
    here, defined = ROWS[name]
    np.testing.assert_allclose(here, defined, rtol=1e-12)
