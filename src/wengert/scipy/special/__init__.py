"""scipy.special, for arrays and tensors alike: every function here differentiates.

    gamma, polygammas        gamma, its logarithm, digamma and what follows it
    beta                     beta, poch, binom; comb, perm, factorial
    bessel, bessel_of_order  Bessel functions; bessel_orders, their derivatives by the order, which
                             are integrals: bessel_integrals, modified_integrals
    spherical                spherical Bessel functions and harmonics, Ferrers' function
    incomplete_gamma, incomplete_beta    with their inverses; gamma_integrals, beta_integrals
    distributions, counting, student     distribution functions and their inverses
    noncentral               the noncentral chi-square distribution and its inverses
    bessel_derivatives       jvp, yvp, ivp, kvp, h1vp, h2vp
    shifted_polynomials      orthogonal polynomials on other intervals; diric, legendre_p
    hypergeometric           0F1, 1F1, 2F1, U, Struve's; their parameters: hypergeometric_orders,
                             by series of decimals (in native code of doubled numbers,
                             doubled_series), and tricomi_integrals
    polynomials, zeta        orthogonal polynomials of any order; Riemann's and Hurwitz' zeta
    entropy                  xlogy, rel_entr, kl_div, huber ...; boxcox, the transforms
    error_functions          erf, erfcx, ndtr ... and Voigt's profile; their error_slopes
    exponential_integrals    expi, expn, sici, fresnel, spence; lambert: lambertw, wrightomega
    elliptic, carlson        of Legendre, Jacobi and Carlson; agm
    airy, kelvin             Airy's functions, scaled ones; Kelvin's; integrated_bessel
    reductions               logsumexp, softmax, log_softmax
    elementary               of degrees, less one; logit.  relatives: (e^x - 1) / x and its kin
    turns                    sin and cos of multiples of pi
    paths, von_mises         how random numbers move with a parameter of their distribution

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

from .entries import public

_NAMES: dict[str, Any] = {}
for _found in pkgutil.iter_modules(__path__):
    _module = import_module(f"{__name__}.{_found.name}")
    _NAMES |= public(getattr(_module, "__all__", ()), vars(_module))
globals().update(_NAMES)  # behind the imports, as a module may have the name of a function

__all__ = sorted(_NAMES)


def __getattr__(name: str) -> Any:
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__dir__ = public_dir(__name__)
