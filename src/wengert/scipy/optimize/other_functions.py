"""Older names of solvers, functions for plain arrays only, and Rosenbrock's function.

    fmin, fmin_powell, fmin_cg, fmin_bfgs, fmin_ncg, fmin_l_bfgs_b, fmin_tnc, fmin_slsqp,
    fmin_cobyla      minimize with a method, in SciPy's older signature
    broyden1, broyden2, anderson, linearmixing, diagbroyden, excitingmixing, newton_krylov
                     root with a method, in SciPy's older signature
    leastsq          least_squares by Levenberg and Marquardt
    plain_function   SciPy's function of a name
    REMEDIES         what to use instead, by name
    rosen            the function
    rosen_der        its gradient
    rosen_hess       its Hessian
    rosen_hess_prod  the product of the Hessian with a vector

Without tensors, SciPy's functions are called.  By a function for plain arrays, a tensor that is
differentiated or traced is refused, as an argument and as a result of a function that is an
argument, with the function to use instead; one that depends on nothing is its value.  Some of these
functions would run with tensors, and return constants: a golden section search does not depend on
the values of the function except for comparisons.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.optimize

from wengert._engine.autodiff.grad import grad
from wengert._engine.autodiff.jacobians import hessian
from wengert._engine.autodiff.jvp_vjp import jvp
from wengert._engine.core import pytree
from wengert._engine.core.conversion_hook import converted
from wengert._engine.core.handle import Handle, is_traced, value_of
from wengert._engine.core.node import Node
from wengert._engine.core.symbolic.dim import Dim
from wengert.errors import ArgumentError, at, user_line

from ..dispatch import converted_when_called, counterpart, floating
from .equations import uses_tensors
from .least_squares_problems import covariance_of, has_full_rank, least_squares, minpack_factors
from .minimization import minimize
from .minimize_solver import plain_start
from .roots import root

__all__ = [
    "anderson", "broyden1", "broyden2", "diagbroyden", "excitingmixing", "fmin", "fmin_bfgs",
    "fmin_cg", "fmin_cobyla", "fmin_l_bfgs_b", "fmin_ncg", "fmin_powell", "fmin_slsqp", "fmin_tnc",
    "leastsq", "linearmixing", "newton_krylov", "rosen", "rosen_der", "rosen_hess",
    "rosen_hess_prod",
]  # fmt: skip


class _Named(NamedTuple):
    """How a function of SciPy is expressed by `minimize`.

    method : the method.
    options : the options of the method by the names of the arguments.
    parts : the parts of the result that follow x with ``full_output=True``.
    """

    method: str
    options: dict[str, str]
    parts: Sequence[str]


_SIMPLE = {"maxiter": "maxiter", "disp": "disp", "retall": "return_all"}
_SEARCH = {**_SIMPLE, "c1": "c1", "c2": "c2"}
_COUNTS = ("nfev", "njev", "status")
_NAMED = {
    "fmin": _Named(
        "nelder-mead",
        {
            **_SIMPLE, "xtol": "xatol", "ftol": "fatol", "maxfun": "maxfev",
            "initial_simplex": "initial_simplex",
        },
        ("fun", "nit", "nfev", "status"),
    ),
    "fmin_powell": _Named(
        "powell",
        {**_SIMPLE, "xtol": "xtol", "ftol": "ftol", "maxfun": "maxfev", "direc": "direc"},
        ("fun", "direc", "nit", "nfev", "status"),
    ),
    "fmin_cg": _Named("cg", {**_SEARCH, "gtol": "gtol", "norm": "norm"}, ("fun", *_COUNTS)),
    "fmin_bfgs": _Named(
        "bfgs",
        {**_SEARCH, "gtol": "gtol", "norm": "norm", "xrtol": "xrtol", "hess_inv0": "hess_inv0"},
        ("fun", "jac", "hess_inv", *_COUNTS),
    ),
    "fmin_ncg": _Named(
        "newton-cg", {**_SEARCH, "avextol": "xtol"}, ("fun", "nfev", "njev", "nhev", "status")
    ),
    "fmin_l_bfgs_b": _Named(
        "l-bfgs-b",
        {"m": "maxcor", "pgtol": "gtol", "maxfun": "maxfun", "maxiter": "maxiter",
         "maxls": "maxls"},
        (),
    ),
    "fmin_tnc": _Named(
        "tnc",
        {
            "scale": "scale", "offset": "offset", "maxCGit": "maxCGit", "maxfun": "maxfun",
            "eta": "eta", "stepmx": "stepmx", "accuracy": "accuracy", "fmin": "minfev",
            "ftol": "ftol", "xtol": "xtol", "pgtol": "gtol", "rescale": "rescale",
        },
        (),
    ),
    "fmin_slsqp": _Named(
        "slsqp", {"iter": "maxiter", "acc": "ftol"}, ("fun", "nit", "status", "message")
    ),
    "fmin_cobyla": _Named(
        "cobyla",
        {"rhobeg": "rhobeg", "rhoend": "tol", "maxfun": "maxiter", "catol": "catol"},
        (),
    ),
}  # fmt: skip
_WITH_VALUES = ("fmin_l_bfgs_b", "fmin_tnc")  # without fprime, func returns value and gradient


def _constraints(given: dict[str, Any], args: tuple[Any, ...]) -> list[dict[str, Any]]:
    """The constraints of fmin_slsqp and fmin_cobyla, in the form of `minimize`."""
    found = [("eq", f, args) for f in given.get("eqcons", ())]
    found += [("ineq", f, args) for f in given.get("ieqcons", ())]
    if given.get("f_eqcons") is not None:
        found = [("eq", given["f_eqcons"], args)]
    if given.get("f_ieqcons") is not None:
        found = [c for c in found if c[0] == "eq"] + [("ineq", given["f_ieqcons"], args)]
    if "cons" in given:
        own = args if given["consargs"] is None else given["consargs"]
        functions = given["cons"] if isinstance(given["cons"], Sequence) else [given["cons"]]
        found = [("ineq", f, own if isinstance(own, tuple) else (own,)) for f in functions]
    return [{"type": kind, "fun": f, "args": own} for kind, f, own in found]


def _jacobian(name: str, given: dict[str, Any]) -> Any:
    if given.get("fprime") is not None:
        return given["fprime"]
    return True if name in _WITH_VALUES and not given["approx_grad"] else None


def _minimizer(name: str) -> Callable[..., Any]:
    """The function of a name."""
    theirs, own = getattr(scipy.optimize, name), _NAMED[name]
    signature = inspect.signature(theirs)

    def minimizer(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        given = dict(bound.arguments)
        func, x0 = list(given.values())[:2]
        more = given["args"] if isinstance(given["args"], tuple) else (given["args"],)
        limits = _constraints(given, more)
        bounds = given.get("bounds") or None

        def call() -> Any:
            start = plain_start(x0)
            values = [converted_when_called(c["fun"])(start, *c["args"]) for c in limits]
            return [converted_when_called(func)(start, *more), values]

        if not uses_tensors((x0, more, bounds), call):
            return theirs(*args, **kwargs)
        options = {o: given[k] for k, o in own.options.items() if given[k] is not None}
        if name == "fmin_l_bfgs_b":
            options["ftol"] = given["factr"] * np.finfo(float).eps
        found = minimize(
            func, x0, more, own.method, _jacobian(name, given), given.get("fhess"),
            bounds=bounds, constraints=limits, callback=given["callback"], options=options,
        )  # fmt: skip
        return _returned(name, found, given)

    minimizer.__name__ = minimizer.__qualname__ = name
    minimizer.__signature__ = signature  # type: ignore[attr-defined]
    minimizer.__doc__ = _DOC.format(name=name, method=own.method)
    return minimizer


def _returned(name: str, found: Any, given: dict[str, Any]) -> Any:
    """What SciPy's function returns."""
    if name == "fmin_l_bfgs_b":
        counts = {"funcalls": found.nfev, "nit": found.nit, "warnflag": found.status}
        return found.x, found.fun, {"grad": found.jac, "task": found.get("message", ""), **counts}
    if name == "fmin_tnc":
        return found.x, found.nfev, found.status
    if not given.get("full_output"):
        return (found.x, found["allvecs"]) if given.get("retall") else found.x
    parts = [_part(found, key, name) for key in _NAMED[name].parts]
    return (found.x, *parts, *([found["allvecs"]] if given.get("retall") else []))


def _part(found: Any, key: str, name: str) -> Any:
    if key not in found:
        raise ArgumentError(
            f"{name}: full_output=True in a graph, where {key} is not known. Use "
            f"minimize{at(user_line())}."
        )
    return found[key]


_DOC = """A minimum of a scalar function, as ``scipy.optimize.{name}``.

    The parameters and results are those of SciPy. Derivatives that are not given are exact, and
    `epsilon` is not used; the derivative of the result is that of
    ``minimize(..., method={method!r})``.

    See Also
    --------
    minimize : the general function.
    """

fmin = _minimizer("fmin")
fmin_powell = _minimizer("fmin_powell")
fmin_cg = _minimizer("fmin_cg")
fmin_bfgs = _minimizer("fmin_bfgs")
fmin_ncg = _minimizer("fmin_ncg")
fmin_l_bfgs_b = _minimizer("fmin_l_bfgs_b")
fmin_tnc = _minimizer("fmin_tnc")
fmin_slsqp = _minimizer("fmin_slsqp")
fmin_cobyla = _minimizer("fmin_cobyla")


_OPTIONS = {
    "iter": "nit", "verbose": "disp", "maxiter": "maxiter", "f_tol": "fatol", "f_rtol": "ftol",
    "x_tol": "xatol", "x_rtol": "xtol", "tol_norm": "tol_norm", "line_search": "line_search",
}  # fmt: skip
_LEAST_TOLERANCE = 1.01 * np.finfo(float).eps  # of least_squares


def _solver(name: str) -> Callable[..., Any]:
    """The function of a name."""
    theirs, method = getattr(scipy.optimize, name), name.replace("newton_", "")
    signature = inspect.signature(theirs)

    def solver(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        given = dict(bound.arguments)
        fun, x0, callback = given.pop("F"), given.pop("xin"), given.pop("callback")
        if not uses_tensors(x0, lambda: converted_when_called(fun)(np.asarray(x0, float))):
            return theirs(*args, **kwargs)
        options = {o: given.pop(k) for k, o in _OPTIONS.items()}
        options = {k: v for k, v in options.items() if v is not None}
        more = {**given.pop("kw", {}), **given}
        options["jac_options"] = {k: v for k, v in more.items() if v is not None}
        found = root(fun, x0, (), method, callback=callback, options=options)
        if not is_traced(found.success) and not bool(value_of(found.success)):
            raise scipy.optimize.NoConvergence(np.asarray(value_of(found.x)))
        return found.x

    solver.__name__ = solver.__qualname__ = name
    solver.__signature__ = signature  # type: ignore[attr-defined]
    solver.__doc__ = _DOC_OF_ROOTS.format(name=name, method=method)
    return solver


_DOC_OF_ROOTS = """A root of a vector function, as ``scipy.optimize.{name}``.

    The parameters are those of SciPy; the derivative is that of ``root(..., method={method!r})``.

    Raises
    ------
    NoConvergence
        The method has not converged. In a graph it is not known: derivatives raise
        ConvergenceError.

    See Also
    --------
    root : the general function.
    """

broyden1 = _solver("broyden1")
broyden2 = _solver("broyden2")
anderson = _solver("anderson")
linearmixing = _solver("linearmixing")
diagbroyden = _solver("diagbroyden")
excitingmixing = _solver("excitingmixing")
newton_krylov = _solver("newton_krylov")


def leastsq(
    func: Callable[..., Any],
    x0: Any,
    args: Any = (),
    Dfun: Any = None,
    full_output: bool = False,
    col_deriv: bool = False,
    ftol: float = 1.49012e-08,
    xtol: float = 1.49012e-08,
    gtol: float = 0.0,
    maxfev: int = 0,
    epsfcn: Any = None,
    factor: float = 100,
    diag: Any = None,
) -> Any:
    """A minimum of a sum of squares, as ``scipy.optimize.leastsq``.

    The parameters and results are those of SciPy; `epsfcn` and `factor` have no effect, and in a
    graph the factors of the Jacobian are not in `infodict`. The derivative is that of
    `least_squares`, also that of the covariance, which is None if the Jacobian has not full rank.

    See Also
    --------
    least_squares : the general function.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy import optimize
    >>> t = np.linspace(0.0, 1.0, 5)
    >>> def rate(y):
    ...     return optimize.leastsq(lambda p: p[0] * np.exp(-p[1] * t) - y, np.ones(2))[0][1]
    >>> wg.grad(rate)(2.0 * np.exp(-3.0 * t)).round(3)
    array([ 1.243, -1.477, -1.672, -1.25 , -0.808])
    """
    args = args if isinstance(args, tuple) else (args,)
    called = converted_when_called(func)
    if not uses_tensors((x0, args), lambda: called(np.atleast_1d(np.asarray(x0, float)), *args)):
        return scipy.optimize.leastsq(
            func, x0, args, Dfun, full_output, col_deriv, ftol, xtol, gtol, maxfev, epsfcn, factor,
            diag,
        )  # fmt: skip
    slopes: Any = "2-point"
    if Dfun is not None:
        given = converted_when_called(Dfun)
        slopes = (lambda x, *args: given(x, *args).T) if col_deriv else given
    tolerances = [max(tol, _LEAST_TOLERANCE) for tol in (ftol, xtol, gtol)]
    scale: Any = "jac" if diag is None else 1.0 / np.asarray(diag, float)
    found = least_squares(
        func, x0, slopes, method="lm", ftol=tolerances[0], xtol=tolerances[1], gtol=tolerances[2],
        x_scale=scale, max_nfev=maxfev or None, args=args,
    )  # fmt: skip
    code = np.where(found.status < 2, 5 - found.status, found.status - 1)  # MINPACK's
    if not full_output:
        return found.x, code
    full = has_full_rank(found.jac)
    covariance = covariance_of(found.jac) if full else None
    details = {"nfev": found.nfev, "fvec": found.fun, **minpack_factors(found.jac, found.fun)}
    return found.x, covariance, details, found.get("message", ""), code


# ---- functions for plain arrays only -----------------------------------------------------------


REMEDIES = {
    "approx_fprime": "Use wengert.grad(f)(x) or wengert.jacobian(f)(x), which are exact",
    "bracket": "Use minimize_scalar(f), which finds the bracket",
    "brute": "Use differential_evolution(f, bounds), or minimize from the best point of a grid",
    "check_grad": "Use wengert.testing.check_grads",
    "line_search": "Use minimize; or detach the arguments and the results of the functions",
    "linprog_verbose_callback": "Print with wengert.debug_print",
    "quadratic_assignment": "Detach the matrices, and index them with the result: "
    "np.sum(A * B[p[:, None], p])",
}


@functools.cache
def plain_function(name: str) -> Any:
    """SciPy's function of a name, for plain arrays; a class, or a module, as it is."""
    theirs = getattr(scipy.optimize, name)
    if not callable(theirs) or isinstance(theirs, type):
        return theirs

    def refused() -> ArgumentError:
        remedy = REMEDIES.get(name, "If no derivative is needed, detach the tensors")
        return ArgumentError(
            f"scipy.optimize.{name} takes plain arrays only. {remedy}{at(user_line())}."
        )

    def plain(x: Any) -> Any:
        if isinstance(x, Dim):
            raise refused()
        if not isinstance(x, Handle):
            return x
        if is_traced(x) or type(x.node) is Node:
            raise refused()
        return value_of(x)

    def plain_result(x: Any) -> Any:
        if not isinstance(x, Handle | tuple | list):
            return x
        leaves, structure = pytree.flatten(x)
        return pytree.unflatten(structure, [plain(leaf) for leaf in leaves])

    def plain_argument(x: Any) -> Any:
        if callable(x) and not isinstance(x, Handle | type):
            called: Callable[..., Any] = converted(x)
            return functools.wraps(x)(lambda *args, **kw: plain_result(called(*args, **kw)))
        if isinstance(x, tuple | list | scipy.optimize.OptimizeResult):
            parts = x.values() if isinstance(x, dict) else x
            checked = [plain_argument(part) for part in parts]
            if any([a is not b for a, b in zip(checked, parts, strict=True)]):
                return (
                    type(x)(zip(x, checked, strict=True))
                    if isinstance(x, dict)
                    else type(x)(checked)
                )
            return x
        return plain(x)

    @functools.wraps(theirs)
    def function(*args: Any, **kwargs: Any) -> Any:
        given = [plain_argument(x) for x in args]
        return theirs(*given, **{k: plain_argument(v) for k, v in kwargs.items()})

    return function


# ---- Rosenbrock's function ---------------------------------------------------------------------


def _value(x: Any) -> Any:
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2, axis=0)


def _slope(x: Any) -> Any:
    return grad(lambda y: np.sum(_value(y)))(x)


@counterpart(scipy.optimize.rosen)
def rosen(x: Any) -> Any:
    """Rosenbrock's function of a vector, as ``scipy.optimize.rosen``.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy import optimize
    >>> wg.grad(optimize.rosen)(np.array([0.0, 2.0]))
    array([ -2., 400.])
    """
    return _value(floating(x))


@counterpart(scipy.optimize.rosen_der)
def rosen_der(x: Any) -> Any:
    """The gradient of Rosenbrock's function, as ``scipy.optimize.rosen_der``."""
    return _slope(floating(x))


@counterpart(scipy.optimize.rosen_hess)
def rosen_hess(x: Any) -> Any:
    """The Hessian of Rosenbrock's function, as ``scipy.optimize.rosen_hess``."""
    return hessian(_value)(floating(x))


@counterpart(scipy.optimize.rosen_hess_prod)
def rosen_hess_prod(x: Any, p: Any) -> Any:
    """The product of the Hessian with `p`, as ``scipy.optimize.rosen_hess_prod``."""
    return jvp(_slope, (floating(x),), (floating(p),))[1]
