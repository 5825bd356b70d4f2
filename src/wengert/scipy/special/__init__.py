"""The functions of scipy.special, for arrays and tensors; all are differentiable.

gamma                                 gamma, gammaln, rgamma, digamma, polygamma ...
beta                                  beta, betaln, poch, binom, comb, perm, factorial
incomplete_gamma                      incomplete gamma functions and their inverses, differentiable
                                      in both arguments: DLMF 8.2
incomplete_beta                       incomplete beta functions and their inverses, differentiable
                                      in all arguments: DLMF 8.17
reparameterization                    implicit derivative of gamma random numbers; von Mises
                                      distribution, and its implicit derivative
error_functions                       error functions, the normal distribution, Dawson, Faddeeva and
                                      Voigt functions: DLMF 7
exponential_integrals_lambertw        expi, expn, sici, fresnel, spence; lambertw, wrightomega
elementary                            elementary functions of scipy.special: powers, exponentials,
                                      Box-Cox, degrees, multiples of pi; quotients such as (exp(x) -
                                      1) / x
entropy_logsumexp                     logsumexp, softmax, log_softmax; xlogy, entr, rel_entr,
                                      kl_div, huber ...
airy_kelvin                           Airy functions; Kelvin functions
bessel                                Bessel functions of real order and modified Bessel functions,
                                      and integrals of them: DLMF 10
bessel_orders                         derivatives of Bessel functions with respect to the order;
                                      integral representations of derivatives of Bessel functions
                                      with respect to the order
spherical_functions                   spherical Bessel functions and harmonics, Legendre functions
orthogonal_polynomials                orthogonal polynomials of real order; orthogonal polynomials
                                      on other intervals; their constructors
elliptic                              Carlson's symmetric elliptic integrals; elliptic integrals of
                                      Legendre, Jacobi elliptic functions, agm
hypergeometric                        hyp0f1, hyp1f1, hyp2f1, hyperu, Struve functions
hypergeometric_parameter_derivatives  derivatives of hypergeometric functions with respect to the
                                      parameters: DLMF 13, 15, 16
decimal_series                        hypergeometric series in decimal arithmetic
double_double                         double-double arithmetic, and hypergeometric series in it:
                                      DLMF 13, 15, 16
series_and_quadrature                 loops for arrays and for traced scalars of native code; Gauss-
                                      Legendre quadrature of many integrals; truncated power series
                                      in two parameters
zeta                                  zeta functions of Riemann and Hurwitz
distribution_functions                distribution functions based on incomplete gamma and beta
                                      functions: DLMF 8
student_t_ndtr                        Student's t, normal and Kolmogorov distributions
noncentral_chi2                       noncentral chi-square distribution and its inverses
register                              families of functions: derivatives of any order, indexed by
                                      integers; registration of functions of scipy.special as
                                      operations, with oracles

Ufuncs are those of SciPy (`wengert.scipy.special.gammaln is scipy.special.gammaln`), and dispatch
to the operations here if called with tensors.  Functions that are not ufuncs are defined here, and
call SciPy's for plain arrays.  Public names are those in `__all__` of each module.
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
globals().update(_NAMES)  # after the imports, as a module may have the name of a function

__all__ = sorted(_NAMES)


def __getattr__(name: str) -> Any:
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__dir__ = public_dir(__name__)
