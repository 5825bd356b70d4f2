"""Elementwise operations.

activations     gelu, silu, softsign and other activations
arithmetic      arithmetic and powers
comparison      comparisons, logic, bitwise operations and tests; their derivatives are zero
complex_parts   real and imaginary part, conjugate
error_function  erf, erfc and their derivatives (DLMF 7.2)
exponential     exponential, logarithm (DLMF 4.2, 4.7), sigmoid, softplus
hyperbolic      hyperbolic functions and their inverses (DLMF 4.28 to 4.40)
rounding        rounding, sign, parts of floating-point numbers
selection       absolute value, maximum, minimum, where, clip, relu
trigonometric   trigonometric functions and their inverses (DLMF 4.14 to 4.26)
"""

from . import (
    activations,
    arithmetic,
    comparison,
    complex_parts,
    error_function,
    exponential,
    hyperbolic,
    rounding,
    selection,
    trigonometric,
)

__all__ = [
    "activations",
    "arithmetic",
    "comparison",
    "complex_parts",
    "error_function",
    "exponential",
    "hyperbolic",
    "rounding",
    "selection",
    "trigonometric",
]
