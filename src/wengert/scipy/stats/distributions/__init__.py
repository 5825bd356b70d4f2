"""Univariate distributions, one file for a distribution or a family.

common                  constants, base classes and formulas that several distributions share
alpha                   alpha
argus                   argus
beta                    beta powerlaw rdist arcsine semicircular betaprime
binomial                bernoulli binom betabinom
bradford                bradford
breit_wigner            rel_breitwigner
burr                    burr burr12 fisk mielke
cauchy                  cauchy halfcauchy foldcauchy skewcauchy wrapcauchy
chi                     chi chi2 ncx2
cosine                  cosine anglit
crystal_ball            crystalball
exponential             expon truncexpon exponpow genexpon
extreme_value           genextreme gumbel_r gumbel_l gompertz
f                       f
fatigue_life            fatiguelife
gamma                   gamma erlang invgamma dgamma gengamma loggamma
gauss_hypergeometric    gausshyper
generalized_hyperbolic  genhyperbolic norminvgauss geninvgauss
hyperbolic_secant       hypsecant
hypergeometric          hypergeom nhypergeom
inverse_gaussian        invgauss wald recipinvgauss
johnson                 johnsonsb johnsonsu
kappa                   kappa3 kappa4
laplace                 laplace laplace_asymmetric loglaplace dlaplace
levy                    levy levy_l
logarithmic             logser
logistic                logistic genlogistic halflogistic genhalflogistic
lognormal               lognorm gibrat powerlognorm
moyal                   moyal
negative_binomial       nbinom geom betanbinom
normal                  norm truncnorm halfnorm foldnorm skewnorm exponnorm powernorm gennorm
                        halfgennorm
pareto                  pareto genpareto lomax truncpareto
planck                  planck boltzmann
poisson                 poisson skellam
rayleigh                rayleigh rice maxwell nakagami
student_t               t jf_skew_t
triangular              triang trapezoid
uniform                 uniform loguniform reciprocal randint
von_mises               vonmises vonmises_line
weibull                 weibull_min weibull_max dweibull exponweib invweibull truncweibull_min
zipf                    zipf zipfian yulesimon

Each class has the formulas of the standard form (location 0, scale 1), as described in
continuous_distribution.py and discrete_distribution.py.  They keep their digits in the tails.
"""

from . import (
    alpha,
    argus,
    beta,
    binomial,
    bradford,
    breit_wigner,
    burr,
    cauchy,
    chi,
    cosine,
    crystal_ball,
    exponential,
    extreme_value,
    f,
    fatigue_life,
    gamma,
    gauss_hypergeometric,
    generalized_hyperbolic,
    hyperbolic_secant,
    hypergeometric,
    inverse_gaussian,
    johnson,
    kappa,
    laplace,
    levy,
    logarithmic,
    logistic,
    lognormal,
    moyal,
    negative_binomial,
    normal,
    pareto,
    planck,
    poisson,
    rayleigh,
    student_t,
    triangular,
    uniform,
    von_mises,
    weibull,
    zipf,
)

MODULES = (
    alpha,
    argus,
    beta,
    binomial,
    bradford,
    breit_wigner,
    burr,
    cauchy,
    chi,
    cosine,
    crystal_ball,
    exponential,
    extreme_value,
    f,
    fatigue_life,
    gamma,
    gauss_hypergeometric,
    generalized_hyperbolic,
    hyperbolic_secant,
    hypergeometric,
    inverse_gaussian,
    johnson,
    kappa,
    laplace,
    levy,
    logarithmic,
    logistic,
    lognormal,
    moyal,
    negative_binomial,
    normal,
    pareto,
    planck,
    poisson,
    rayleigh,
    student_t,
    triangular,
    uniform,
    von_mises,
    weibull,
    zipf,
)
