"""The functions of scipy.optimize, for functions of arrays and tensors.

solver_operation  a solver of SciPy as one operation, with compiled functions
equations         a solver and the equation of its solution
roots             root, fsolve, fixed_point
scalar_roots      root_scalar, brentq, brenth, ridder, bisect, toms748, newton
minimization      minimize; constraints.py, minimize_solver.py
scalar_minimization  minimize_scalar
optimality        the conditions at a minimum, and the derivative of the minimal value

Solutions are differentiable with respect to everything that the functions depend on; the derivative
is that of the equation (docs/solvers.md).  Without tensors, SciPy's functions are called.
"""

from wengert._engine.core.lazy_import import public_dir

from .minimization import minimize
from .roots import fixed_point, fsolve, root
from .scalar_minimization import minimize_scalar
from .scalar_roots import bisect, brenth, brentq, newton, ridder, root_scalar, toms748

__all__ = [
    "bisect",
    "brenth",
    "brentq",
    "fixed_point",
    "fsolve",
    "minimize",
    "minimize_scalar",
    "newton",
    "ridder",
    "root",
    "root_scalar",
    "toms748",
]

__dir__ = public_dir(__name__)
