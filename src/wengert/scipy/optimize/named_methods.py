"""SciPy's minimizers that are functions of their own: fmin, fmin_bfgs, fmin_slsqp and others.

Each is `minimize` with a method, in SciPy's older signature; the derivatives are those of
`minimize`.  Without tensors, SciPy's functions are called.

    fmin, fmin_powell, fmin_cg, fmin_bfgs, fmin_ncg, fmin_l_bfgs_b, fmin_tnc, fmin_slsqp,
    fmin_cobyla
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.optimize

from wengert.errors import ArgumentError, at, user_line

from ..dispatch import converted_when_called
from .constraints import plain_start
from .equations import uses_tensors
from .minimization import minimize

__all__ = [
    "fmin", "fmin_bfgs", "fmin_cg", "fmin_cobyla", "fmin_l_bfgs_b", "fmin_ncg", "fmin_powell",
    "fmin_slsqp", "fmin_tnc",
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
