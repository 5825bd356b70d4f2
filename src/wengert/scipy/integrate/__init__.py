"""The functions of scipy.integrate, for arrays and tensors: integrals of samples and functions.

sampled              trapezoid, cumulative_trapezoid, simpson, cumulative_simpson, romb; fixed_quad,
                     newton_cotes
quad                 quad, quad_vec
nquad                nquad, dblquad, tplquad
cubature_tanhsinh    cubature, tanhsinh
integral_rule        an integral by SciPy, and its derivatives
moving_jumps         jumps of integrands whose positions depend on parameters
integral_operation   SciPy's routines as one operation
native_integral      quad as native code
integrands           integrands as machine code; integrals of functions that cannot be traced
solve_ivp            solve_ivp, also in a graph where only the last step is known; ivp/ the methods
lsoda                solve_ivp by SciPy's own loop
odeint               odeint

Integrals of samples are differentiable with respect to the samples and to `x` or `dx`; integrals of
functions with respect to the limits and everything that the function depends on.
"""

from wengert._engine.core.lazy_import import public_dir

from .cubature_tanhsinh import cubature, tanhsinh
from .nquad import dblquad, nquad, tplquad
from .odeint import odeint
from .quad import quad, quad_vec
from .sampled import (
    cumulative_simpson,
    cumulative_trapezoid,
    fixed_quad,
    newton_cotes,
    romb,
    simpson,
    trapezoid,
)
from .solve_ivp import solve_ivp

__all__ = [
    "cubature",
    "cumulative_simpson",
    "cumulative_trapezoid",
    "dblquad",
    "fixed_quad",
    "newton_cotes",
    "nquad",
    "odeint",
    "quad",
    "quad_vec",
    "romb",
    "simpson",
    "solve_ivp",
    "tanhsinh",
    "tplquad",
    "trapezoid",
]

__dir__ = public_dir(__name__)
