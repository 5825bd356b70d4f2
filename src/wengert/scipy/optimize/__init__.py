"""The functions of scipy.optimize, for functions of arrays and tensors.

solver_operation          a solver of SciPy as one operation, with compiled functions; compiled
                          functions, as SciPy calls them
equations                 a solver and the equation of its solution; functions made from the graphs
                          of the user's, kept for equal graphs
roots                     root, fsolve, fixed_point
bracketing                bracketing methods as loops of graphs
scalar_roots              root_scalar, brentq, brenth, ridder, bisect, toms748, newton
minimization              minimize; differential_evolution, dual_annealing, shgo, direct,
                          basinhopping
minimize_solver           SciPy's minimize as a solver; the forms of constraints
scalar_minimization       minimize_scalar; brent, golden, fminbound
least_squares_problems    least_squares; ranks and factors of Jacobians
curve_fitting             curve_fit
linear_least_squares      nnls, lsq_linear; isotonic_regression
linear_programs           linprog, linear_sum_assignment
mixed_integer_programs    milp
other_functions           fmin, fmin_bfgs, fmin_slsqp and others: minimize with a method; broyden1,
                          anderson and others: root with a method; leastsq; rosen, rosen_der,
                          rosen_hess, rosen_hess_prod; the other functions, which refuse tensors
optimality                the conditions at a minimum, and the derivative of the minimal value

Solutions are differentiable with respect to everything that the functions depend on; the derivative
is that of the equation (docs/solvers.md).  Without tensors, SciPy's functions are called.
"""

import scipy.optimize as _scipy_optimize

from wengert._engine.core.lazy_import import public_dir

from .curve_fitting import curve_fit
from .least_squares_problems import least_squares
from .linear_least_squares import isotonic_regression, lsq_linear, nnls
from .linear_programs import linear_sum_assignment, linprog
from .minimization import (
    basinhopping,
    differential_evolution,
    direct,
    dual_annealing,
    minimize,
    shgo,
)
from .mixed_integer_programs import milp
from .other_functions import (
    REMEDIES,
    anderson,
    broyden1,
    broyden2,
    diagbroyden,
    excitingmixing,
    fmin,
    fmin_bfgs,
    fmin_cg,
    fmin_cobyla,
    fmin_l_bfgs_b,
    fmin_ncg,
    fmin_powell,
    fmin_slsqp,
    fmin_tnc,
    leastsq,
    linearmixing,
    newton_krylov,
    plain_function,
    rosen,
    rosen_der,
    rosen_hess,
    rosen_hess_prod,
)
from .roots import fixed_point, fsolve, root
from .scalar_minimization import brent, fminbound, golden, minimize_scalar
from .scalar_roots import bisect, brenth, brentq, newton, ridder, root_scalar, toms748

__all__ = [
    "anderson",
    "basinhopping",
    "bisect",
    "brent",
    "brenth",
    "brentq",
    "broyden1",
    "broyden2",
    "curve_fit",
    "diagbroyden",
    "differential_evolution",
    "direct",
    "dual_annealing",
    "excitingmixing",
    "fixed_point",
    "fmin",
    "fmin_bfgs",
    "fmin_cg",
    "fmin_cobyla",
    "fmin_l_bfgs_b",
    "fmin_ncg",
    "fmin_powell",
    "fmin_slsqp",
    "fmin_tnc",
    "fminbound",
    "fsolve",
    "golden",
    "isotonic_regression",
    "least_squares",
    "leastsq",
    "linear_sum_assignment",
    "linearmixing",
    "linprog",
    "lsq_linear",
    "milp",
    "minimize",
    "minimize_scalar",
    "newton",
    "newton_krylov",
    "nnls",
    "ridder",
    "root",
    "root_scalar",
    "rosen",
    "rosen_der",
    "rosen_hess",
    "rosen_hess_prod",
    "shgo",
    "toms748",
]

_PLAIN_FUNCTIONS = frozenset(REMEDIES)  # read by the front end
_SCIPYS = frozenset(dir(_scipy_optimize))


def __getattr__(name: str) -> object:
    if name.startswith("_") or name not in _SCIPYS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return plain_function(name)


__dir__ = public_dir(__name__)
