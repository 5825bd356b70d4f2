"""scipy.integrate, for arrays and tensors alike: integrals of samples, and by fixed points.

adaptive_quadrature  quad, quad_vec, dblquad, tplquad
fixed_quadrature     fixed_quad, newton_cotes
sampled              trapezoid, cumulative_trapezoid, simpson, cumulative_simpson, romb

All are differentiable by the samples, and by where they stand, `x` or `dx`; integrals of functions
by the ends and by whatever the function depends on.  Differential equations are not here.
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
