"""Vector math: exp, log, sin, erf, gamma ... as LLVM functions of SIMD values.

exponential            exp, exp2, expm1; softplus, log_sigmoid
power                  power, cbrt; log, log2, log10, log1p
trigonometric          sin, cos, tan; arcsin, arccos, arctan, arctan2
hyperbolic             sinh, cosh, tanh; arcsinh, arccosh, arctanh
erf_and_gamma          erf, erfc, gelu; gamma, gammaln; ndtri, for processors without SciPy's
                       functions; random numbers as functions of tail probabilities
float_decomposition    fmod, remainder, floor_divide, nextafter, spacing, ldexp, sign, hypot; sign,
                       exponent and integer part of floating-point numbers
integer_ops            operations of integers and booleans; gcd and powers of unsigned integers;
                       floating point to float16 and to integers
complex_arithmetic     + - * / of complex numbers, sign, absolute value, powers, comparisons
complex_functions      exp, log, power, sqrt, sin, sinh ... of complex numbers
registry               functions by NumPy's names; loops until all lanes are finished, polynomials
"""

from . import integer_ops  # registers rules of the scalar language
from .registry import call_leaf, has_leaf

__all__ = ["call_leaf", "has_leaf", "integer_ops"]
