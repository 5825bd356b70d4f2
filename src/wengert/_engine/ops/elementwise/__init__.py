"""Elementwise operations.

activations     x times a smooth step of x, and the smooth sign; what networks are bent with
arithmetic      Arithmetic and powers
comparison      Comparisons, logic, bits, and tests of single numbers: their derivative is zero
complex_parts   Real part, imaginary part, conjugate; the complex number of two parts
error_function  The error function and its complement, DLMF 7.2, written in the scalar language;
                their slope
exponential     Exponential and logarithm: DLMF 4.2, derivatives 4.7; and the smooth step and its
                integral
hyperbolic      Hyperbolic functions and their inverses: DLMF 4.28 to 4.40
rounding        Rounding, sign, and the parts of a floating-point number
selection       Kinks and choices: absolute value, the larger and the smaller, where, clip, relu
                and its kin
trigonometric   Circular functions and their inverses: DLMF 4.14 to 4.26; angles and lengths
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
