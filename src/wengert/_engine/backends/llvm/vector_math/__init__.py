"""Vector math: exp, log, sin, erf, gamma ... as LLVM functions of SIMD values.

exponential            exp, exp2, expm1
logarithms             log, log2, log10, log1p
power                  power, cbrt
trigonometric          sin, cos, tan
inverse_trigonometric  arcsin, arccos, arctan, arctan2
hyperbolic             sinh, cosh, tanh
inverse_hyperbolic     arcsinh, arccosh, arctanh
erf                    erf, erfc, gelu
gamma                  gamma, gammaln
softplus               softplus, log_sigmoid
normal_quantile        ndtri, for processors without SciPy's functions
tail_functions         random numbers as functions of tail probabilities
range_reduction        arguments modulo multiples of pi
payne_hanek            range reduction of arguments of any size
polynomial_evaluation  polynomials with fused multiply-add
float_decomposition    fmod, remainder, floor_divide, nextafter, spacing, ldexp, sign, hypot
float_parts            sign, exponent and integer part of floating-point numbers
integer_ops            operations of integers and booleans
integers               gcd and powers of unsigned integers
conversions            floating point to float16 and to integers
registry               functions by NumPy's names
lane_loops             loops that run until all lanes are finished
complex/               complex arithmetic and functions
"""

from . import conversions, integer_ops  # they register rules of the scalar language
from .registry import call_leaf, has_leaf

__all__ = ["call_leaf", "conversions", "has_leaf", "integer_ops"]
