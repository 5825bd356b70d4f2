"""Vector math: exp, log, sin, erf, gamma ... as LLVM functions of SIMD values.

exponential            exp, exp2, expm1; softplus, log_sigmoid
power                  power, cbrt; log, log2, log10, log1p
trigonometric          sin, cos, tan; range reduction of arguments of any size
inverse_trigonometric  arcsin, arccos, arctan, arctan2
hyperbolic             sinh, cosh, tanh; arcsinh, arccosh, arctanh
erf                    erf, erfc, gelu
gamma                  gamma, gammaln
normal_quantile        ndtri, for processors without SciPy's functions; random numbers as functions
                       of tail probabilities
float_decomposition    fmod, remainder, floor_divide, nextafter, spacing, ldexp, sign, hypot; sign,
                       exponent and integer part of floating-point numbers
integer_ops            operations of integers and booleans; gcd and powers of unsigned integers;
                       floating point to float16 and to integers
registry               functions by NumPy's names
lane_loops             loops that run until all lanes are finished; polynomials
complex/               complex arithmetic and functions
"""

from . import integer_ops  # registers rules of the scalar language
from .registry import call_leaf, has_leaf

__all__ = ["call_leaf", "has_leaf", "integer_ops"]
