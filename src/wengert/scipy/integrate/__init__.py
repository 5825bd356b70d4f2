"""The functions of scipy.integrate, for arrays and tensors: integrals of samples and functions.

sampled              trapezoid, cumulative_trapezoid, simpson, cumulative_simpson, romb
fixed_quadrature     fixed_quad, newton_cotes
adaptive_quadrature  quad, quad_vec, dblquad, tplquad

Integrals of samples are differentiable with respect to the samples and to `x` or `dx`; integrals of
functions with respect to the limits and everything that the function depends on.
"""

from wengert._engine.core.lazy_import import public_dir

from .adaptive_quadrature import dblquad, quad, quad_vec, tplquad
from .fixed_quadrature import fixed_quad, newton_cotes
from .sampled import cumulative_simpson, cumulative_trapezoid, romb, simpson, trapezoid

__all__ = [
    "cumulative_simpson",
    "cumulative_trapezoid",
    "dblquad",
    "fixed_quad",
    "newton_cotes",
    "quad",
    "quad_vec",
    "romb",
    "simpson",
    "tplquad",
    "trapezoid",
]

__dir__ = public_dir(__name__)
