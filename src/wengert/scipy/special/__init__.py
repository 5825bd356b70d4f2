"""scipy.special, for arrays and tensors alike: every function here differentiates.

airy                                  Airy's functions, scaled ones; Kelvin's; integrated_bessel
bessel                                Bessel functions; bessel_orders, their derivatives by the
                                      order, which are integrals: bessel_integrals,
                                      modified_integrals
bessel_argument_derivatives           jvp, yvp, ivp, kvp, h1vp, h2vp
bessel_integrals_of_x                 Integrals of Bessel functions of order 0 from 0 to x: DLMF
                                      10.22(i), 10.43(i)
bessel_order_0_1                      Bessel functions; bessel_orders, their derivatives by the
                                      order, which are integrals: bessel_integrals,
                                      modified_integrals
bessel_order_derivatives              Derivatives of Bessel functions by their order, as families:
                                      DLMF 10.15, 10.38
bessel_order_integrals                Bessel functions differentiated by their order, any number of
                                      times, on plain arrays
beta                                  beta, poch, binom; comb, perm, factorial
beta_integrals                        Incomplete beta functions differentiated by their parameters,
                                      on plain arrays
binomial_distribution                 distribution functions and their inverses
boxcox                                Box and Cox's transforms and their inverses, smooth in lambda
                                      through 0
carlson                               of Legendre, Jacobi and Carlson; agm
decimal_series                        Hypergeometric series in decimal numbers of as many digits as
                                      it takes
derivative_families                   derivatives of a special function, with whole numbers that
                                      say which
distribution_functions                distribution functions and their inverses
double_double                         Numbers of twice the digits: a float and what rounding took
                                      off it, another float
double_double_series                  Hypergeometric series in numbers of twice the digits, for
                                      native code: DLMF 13, 15, 16
elementary                            of degrees, less one; logit.  relatives: (e^x - 1) / x and
                                      its kin
elliptic                              of Legendre, Jacobi and Carlson; agm
entropy_xlogy                         xlogy, rel_entr, kl_div, huber ...; boxcox, the transforms
error_function_derivatives            All derivatives of scaled error functions, with their digits
                                      where the functions fall off
error_functions                       erf, erfcx, ndtr ... and Voigt's profile; their error_slopes
exponential_integrals                 expi, expn, sici, fresnel, spence; lambert: lambertw,
                                      wrightomega
gamma                                 gamma, its logarithm, digamma and what follows it
gamma_integrals                       Incomplete gamma functions differentiated by their parameter,
                                      on plain arrays
gamma_reparameterization              how random numbers move with a parameter of their
                                      distribution
hypergeometric                        0F1, 1F1, 2F1, U, Struve's; their parameters:
                                      hypergeometric_orders, by series of decimals (in native code
                                      of doubled numbers, doubled_series), and tricomi_integrals
hypergeometric_parameter_derivatives  Derivatives of hypergeometric functions by their parameters,
                                      as families: DLMF 13, 15, 16
hyperu_parameter_integrals            Tricomi's function U differentiated by its parameters, on
                                      plain arrays: DLMF 13.4.4
incomplete_beta                       with their inverses; gamma_integrals, beta_integrals
incomplete_gamma                      with their inverses; gamma_integrals, beta_integrals
kelvin                                Airy's functions, scaled ones; Kelvin's; integrated_bessel
lambertw_wrightomega                  Lambert's W and Wright's omega, which solve w e^w = z and w +
                                      log w = z: DLMF 4.13
logsumexp_softmax                     logsumexp, softmax, log_softmax
modified_bessel_order_integrals       Modified Bessel functions differentiated by their order, any
                                      number of times, on plain arrays
noncentral_chi2                       the noncentral chi-square distribution and its inverses
oracle_expression                     mpmath as a witness for functions of orders and parameters,
                                      and for their derivatives
orthogonal_polynomials                orthogonal polynomials of any order; Riemann's and Hurwitz'
                                      zeta
polygammas                            gamma, its logarithm, digamma and what follows it
power_series                          Power series in small steps of two parameters, cut off:
                                      derivatives of any order by both
quadrature                            Many integrals at once: panels of Gauss and Legendre's rule
                                      over windows
register                              How a function of scipy.special becomes an operation: by one
                                      entry, which names it
relative_quotients                    Quotients that are smooth where they are 0 / 0, with all of
                                      their derivatives
shifted_orthogonal_polynomials        orthogonal polynomials on other intervals; diric, legendre_p
sinpi_cospi                           sin and cos of multiples of pi
spherical_functions                   spherical Bessel functions and harmonics, Ferrers' function
student_t_ndtr                        distribution functions and their inverses
traced_loops                          Loops over values that change, for arrays and for the
                                      elements of native code alike
von_mises                             how random numbers move with a parameter of their
                                      distribution
zeta                                  orthogonal polynomials of any order; Riemann's and Hurwitz'
                                      zeta

entries says how a function of scipy.special becomes an operation; family, how functions that it
does not have do, as derivatives by an order or parameter.  quadrature, series and loops are what
these are computed with, witness what they are checked against.

`wengert.scipy.special.gammaln is scipy.special.gammaln`: the ufuncs are SciPy's own, which bring
tensors to the operations here.  What is not a ufunc in SciPy is a function of ours, which calls
SciPy's where no tensor is among its arguments.  Each module states its public names in `__all__`,
and they are collected below.
"""

import pkgutil
from importlib import import_module
from typing import Any

from wengert._engine.core.lazy_import import public_dir

from .register import public

_NAMES: dict[str, Any] = {}
for _found in pkgutil.iter_modules(__path__):
    _module = import_module(f"{__name__}.{_found.name}")
    _NAMES |= public(getattr(_module, "__all__", ()), vars(_module))
globals().update(_NAMES)  # behind the imports, as a module may have the name of a function

__all__ = sorted(_NAMES)


def __getattr__(name: str) -> Any:
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__dir__ = public_dir(__name__)
