"""scipy.integrate, for arrays and tensors alike: integrals of samples, and by fixed points.

    samples    trapezoid, cumulative_trapezoid, simpson, cumulative_simpson, romb
    points     fixed_quad, newton_cotes

All are differentiable by the samples, and by where they stand, `x` or `dx`; fixed_quad by its ends
and by whatever its function depends on.  Adaptive integration and differential equations are not
here.
"""

from .points import fixed_quad, newton_cotes
from .samples import cumulative_simpson, cumulative_trapezoid, romb, simpson, trapezoid

__all__ = [
    "cumulative_simpson",
    "cumulative_trapezoid",
    "fixed_quad",
    "newton_cotes",
    "romb",
    "simpson",
    "trapezoid",
]
