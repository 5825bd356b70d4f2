"""Elementwise operations.

exponential     exponential, logarithm (DLMF 4.2, 4.7), sigmoid, softplus; gelu, silu, softsign and
                other activations
arithmetic      arithmetic and powers
comparison      comparisons, logic, bitwise operations and tests; their derivatives are zero
number_parts    rounding, sign, parts of floating-point numbers; real and imaginary part, conjugate
error_function  erf, erfc and their derivatives (DLMF 7.2)
trigonometric   trigonometric and hyperbolic functions and their inverses (DLMF 4.14 to 4.40)
selection       absolute value, maximum, minimum, where, clip, relu
"""

from . import (
    arithmetic,
    comparison,
    error_function,
    exponential,
    number_parts,
    selection,
    trigonometric,
)

__all__ = [
    "arithmetic",
    "comparison",
    "error_function",
    "exponential",
    "number_parts",
    "selection",
    "trigonometric",
]
