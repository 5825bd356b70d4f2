"""The tables of docs/stan-users.md, with arguments.

DENSITIES   Stan's expression, PyMC's distribution and point, and ours; None where there is none
TYPES       a declaration of Stan, and the bijector; both add the same log-Jacobian
SCHOOLS     the data of the first example
"""

S = "np.array([[2.0, 0.5], [0.5, 1.0]])"
STAN_S = "[[2, 0.5], [0.5, 1]]"
X, M = "np.array([0.7, 0.2])", "np.array([1.0, 2.0])"
W, STAN_W = "np.array([[1.5, 0.2], [0.2, 0.8]])", "[[1.5, 0.2], [0.2, 0.8]]"
L, STAN_L = "np.array([[2, 0], [0.5, 1]])", "[[2, 0], [0.5, 1]]"
C, STAN_C = (
    "np.array([[1, 0, 0], [0.6, 0.8, 0], [0, 0.6, 0.8]])",
    "[[1, 0, 0], [0.6, 0.8, 0], [0, 0.6, 0.8]]",
)
LKJ = "lkj_corr_cholesky"
Y = "np.float64(0.7)"
# fmt: off
DENSITIES: list[tuple[str | None, str | None, str]] = [
    ("normal_lpdf(0.7 | 1, 2)", f"Normal.dist(1.0, 2.0), {Y}", "stats.norm.logpdf(0.7, 1, 2)"),
    ("student_t_lpdf(0.7 | 4, 1, 2)", f"StudentT.dist(4.0, mu=1.0, sigma=2.0), {Y}",
     "stats.t.logpdf(0.7, 4, 1, 2)"),
    ("cauchy_lpdf(0.7 | 1, 2)", f"Cauchy.dist(1.0, 2.0), {Y}", "stats.cauchy.logpdf(0.7, 1, 2)"),
    ("double_exponential_lpdf(0.7 | 1, 2)", f"Laplace.dist(1.0, 2.0), {Y}",
     "stats.laplace.logpdf(0.7, 1, 2)"),
    ("logistic_lpdf(0.7 | 1, 2)", f"Logistic.dist(1.0, 2.0), {Y}",
     "stats.logistic.logpdf(0.7, 1, 2)"),
    ("gumbel_lpdf(0.7 | 1, 2)", f"Gumbel.dist(1.0, 2.0), {Y}", "stats.gumbel_r.logpdf(0.7, 1, 2)"),
    ("lognormal_lpdf(0.7 | 1, 2)", f"LogNormal.dist(1.0, 2.0), {Y}",
     "stats.lognorm.logpdf(0.7, 2, scale=np.exp(1))"),
    ("exponential_lpdf(0.7 | 3)", f"Exponential.dist(3.0), {Y}",
     "stats.expon.logpdf(0.7, scale=1 / 3)"),
    ("gamma_lpdf(0.7 | 3, 2)", f"Gamma.dist(3.0, 2.0), {Y}",
     "stats.gamma.logpdf(0.7, 3, scale=1 / 2)"),
    ("inv_gamma_lpdf(0.7 | 3, 2)", f"InverseGamma.dist(3.0, 2.0), {Y}",
     "stats.invgamma.logpdf(0.7, 3, scale=2)"),
    ("weibull_lpdf(0.7 | 3, 2)", f"Weibull.dist(3.0, 2.0), {Y}",
     "stats.weibull_min.logpdf(0.7, 3, scale=2)"),
    ("frechet_lpdf(0.7 | 3, 2)", None, "stats.invweibull.logpdf(0.7, 3, scale=2)"),
    ("pareto_lpdf(0.7 | 0.5, 2)", f"Pareto.dist(2.0, 0.5), {Y}",
     "stats.pareto.logpdf(0.7, 2, scale=0.5)"),
    ("pareto_type_2_lpdf(0.7 | 0.1, 0.5, 2)", None, "stats.lomax.logpdf(0.7, 2, 0.1, 0.5)"),
    ("beta_proportion_lpdf(0.7 | 0.3, 5)", f"Beta.dist(mu=0.3, nu=5.0), {Y}",
     "stats.beta.logpdf(0.7, 0.3 * 5, (1 - 0.3) * 5)"),
    ("skew_normal_lpdf(0.7 | 1, 2, 3)", f"SkewNormal.dist(3.0, 1.0, 2.0), {Y}",
     "stats.skewnorm.logpdf(0.7, 3, 1, 2)"),
    ("exp_mod_normal_lpdf(0.7 | 1, 2, 3)", f"ExGaussian.dist(1.0, 2.0, nu=1.0 / 3.0), {Y}",
     "stats.exponnorm.logpdf(0.7, 1 / (2 * 3), 1, 2)"),
    ("normal_lpdf(0.7 | 0, 2) + log(2)", f"HalfNormal.dist(2.0), {Y}",
     "stats.halfnorm.logpdf(0.7, scale=2)"),
    ("cauchy_lpdf(0.7 | 0, 2) + log(2)", f"HalfCauchy.dist(2.0), {Y}",
     "stats.halfcauchy.logpdf(0.7, scale=2)"),
    ("von_mises_lpdf(0.7 | 1, 2)", f"VonMises.dist(1.0, 2.0), {Y}",
     "stats.vonmises.logpdf(0.7, 2, 1)"),
    ("neg_binomial_2_lpmf(4 | 3, 2)", "NegativeBinomial.dist(mu=3.0, alpha=2.0), 4",
     "stats.nbinom.logpmf(4, 2, 2 / (2 + 3))"),
    ("binomial_lpmf(4 | 6, 0.3)", "Binomial.dist(6, np.float64(0.3)), 4",
     "stats.binom.logpmf(4, 6, 0.3)"),
    ("beta_binomial_lpmf(4 | 6, 3, 2)", "BetaBinomial.dist(np.float64(3), np.float64(2), 6), 4",
     "stats.betabinom.logpmf(4, 6, 3, 2)"),
    ("poisson_lpmf(4 | 3)", "Poisson.dist(np.float64(3)), 4", "stats.poisson.logpmf(4, 3)"),
    (f"multi_normal_lpdf([0.7, 0.2]' | [1, 2]', {STAN_S})", f"MvNormal.dist({M}, {S}), {X}",
     f"stats.multivariate_normal.logpdf({X}, {M}, {S})"),
    (f"multi_student_t_lpdf([0.7, 0.2]' | 4, [1, 2]', {STAN_S})",
     f"MvStudentT.dist(4, mu={M}, scale={S}), {X}",
     f"stats.multivariate_t.logpdf({X}, {M}, {S}, 4)"),
    ("dirichlet_lpdf([0.7, 0.3]' | [1, 2]')", f"Dirichlet.dist({M}), np.array([0.7, 0.3])",
     f"stats.dirichlet.logpdf(np.array([0.7, 0.3]), {M})"),
    (f"wishart_lpdf({STAN_W} | 4, {STAN_S})", f"Wishart.dist(4, {S}), {W}",
     f"stats.wishart.logpdf({W}, 4, {S})"),
    (f"inv_wishart_lpdf({STAN_W} | 4, {STAN_S})", None, f"stats.invwishart.logpdf({W}, 4, {S})"),
    ("bernoulli_logit_lpmf(1 | 0.4)", "Bernoulli.dist(logit_p=np.float64(0.4)), 1",
     "bernoulli_logit(1, 0.4)"),
    ("poisson_log_lpmf(3 | 0.4)", None, "poisson_log(3, 0.4)"),
    ("categorical_logit_lpmf(2 | [0.1, -0.3, 0.5]')",
     "Categorical.dist(logit_p=np.array([0.1, -0.3, 0.5])), 1",
     "categorical_logit(1, np.array([0.1, -0.3, 0.5]))"),
    (f"multi_normal_cholesky_lpdf([0.7, 0.2]' | [1, 2]', {STAN_L})",
     f"MvNormal.dist({M}, chol={L}), {X}", f"multi_normal_cholesky({X}, {M}, {L})"),
    (f"{LKJ}_lpdf({STAN_C} | 2) - {LKJ}_lpdf(identity_matrix(3) | 2)", None,
     f"{LKJ}({C}, 2) - {LKJ}(np.eye(3), 2)"),
    ("log_mix(0.3, normal_lpdf(0.7 | 1, 2), normal_lpdf(0.7 | -1, 2))",
     f"NormalMixture.dist(np.array([0.3, 0.7]), np.array([1.0, -1.0]), np.array([2.0, 2.0])), {Y}",
     "mixture(np.array([0.7]), np.array([0.3, 0.7]), np.array([1, -1]), 2)[0]"),
]
TYPES = {
    "real a": "Real()",
    "matrix[2, 3] a": "Real((2, 3))",
    "real<lower=0> a": "Positive()",
    "real<lower=-2> a": "Lower(-2)",
    "real<upper=3> a": "Upper(3)",
    "real<lower=-2, upper=3> a": "Interval(-2, 3)",
    "ordered[4] a": "Ordered(4)",
    "unit_vector[3] a": "UnitVector(3)",
    "cholesky_factor_corr[3] a": "CorrelationCholesky(3)",
    "cholesky_factor_cov[3] a": "CovarianceCholesky(3)",
}
SCHOOLS = {
    "J": 8,
    "y": [28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0],
    "sigma": [15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0],
}
