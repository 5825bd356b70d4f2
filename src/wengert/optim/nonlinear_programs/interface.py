"""nlp: minimize a function with constraints and bounds.

Arguments of the caller become functions of one vector, limits and settings; vectors become
containers again in the result.

    nlp   the function
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wengert._engine.core import pytree
from wengert._engine.core.conversion_hook import converted
from wengert._engine.core.handle import describe, is_traced, value_of
from wengert._engine.core.spec import Spec
from wengert._engine.core.validation import function as check_function
from wengert._engine.ops import casts
from wengert._engine.tensor.numpy_dispatch import as_array
from wengert.errors import ArgumentError, ShapeError, at, user_line
from wengert.optim.minimization import Raveled
from wengert.scipy.dispatch import floating
from wengert.scipy.optimize.minimize_solver import bounds_of
from wengert.scipy.optimize.solver_operation import SolverOptions

from . import ipopt
from .constraint_forms import ConstraintList, element_names
from .problem_data import Multipliers, NLPResult, SolverSettings
from .program import ProgramSolution, Traced, solved

METHODS = ("ipopt", "trust-constr")
_SCALED = ("fun", "x", "constraints")


def nlp(
    f: Callable[..., Any],
    x0: Any,
    constraints: Any = None,
    bounds: Any = None,
    *,
    lower: Any = None,
    upper: Any = None,
    args: tuple[Any, ...] = (),
    method: str | None = None,
    tol: float | None = None,
    scaling: Any = "gradient",
    warm_start: NLPResult | None = None,
    callback: Callable[..., Any] | None = None,
    options: dict[str, Any] | None = None,
) -> NLPResult:
    """Minimize a scalar function with constraints and bounds, by sparse exact derivatives.

    Parameters
    ----------
    f : callable
        ``f(x, *args)``, a real number; captured tensors are differentiated.
    x0 : array or container of arrays
        The initial guess, which need not be feasible; its derivative is zero.
    constraints : callable, or SciPy's LinearConstraint, NonlinearConstraint or dict, or a list or
        dict of them
        A function is called as ``g(x, *args)``, and returns arrays or a container of arrays, with
        the limits `lower` and `upper`. The keys of a dict are names for messages. SciPy's objects
        are called as in SciPy, with `x` only; derivatives that they have are not used.
    bounds : Bounds, or sequence of pairs; or a pair of containers
        Limits of `x`, as in SciPy, if x0 is one array; otherwise ``(lower, upper)``, each a number
        or a container like x0.
    lower, upper : number or container of arrays, optional
        Limits of the constraints that are functions, equal ones for equalities.
    args : tuple
        Further arguments, which are differentiated.
    method : {"ipopt", "trust-constr"}, optional
        By default Ipopt if ipyopt is installed.
    tol : float, optional
        The tolerance of the conditions of a minimum, 1e-8 by default.
    scaling : "gradient", None, or dict
        "gradient" is Ipopt's scaling by gradients at the initial guess. A dict has factors of "x",
        "constraints" and "fun".
    warm_start : NLPResult, optional
        A solution of a similar program, from which the solver begins, with its multipliers.
    callback : callable, optional
        It is called with an `NLPProgress` after each iteration. If it raises StopIteration, the
        solver stops.
    options : dict, optional
        Options of the method: Ipopt's, such as ``{"max_iter": 100, "print_level": 5}``, or SciPy's.

    Returns
    -------
    NLPResult
        `x`, `fun` and `multipliers` have derivatives with respect to `args`, limits and captured
        tensors.

    Raises
    ------
    ConvergenceError
        The derivative of a solution is needed, and it was not found.
    MatrixError
        The derivative is needed, and the solution or its multipliers are not unique.
    ArgumentError, ShapeError, StructureError
        The arguments do not fit together.

    Notes
    -----
    Patterns and code of the derivatives are made once for a graph: repeated calls with other values
    of `args` compile nothing. With Ipopt no Python runs in a solve, unless there is a callback.
    A derivative of `x` costs one linear system, that of `fun` none (envelope theorem). If a limit
    is active with a multiplier of zero (`NLPResult.degenerate`), the derivative is one-sided.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> def cheapest(prices):  # a product of at least 8, at least cost
    ...     positive = [(0.0, None)] * 3
    ...     return wg.optim.nlp(lambda x: prices @ x, np.ones(3), np.prod, positive, lower=8.0).x
    >>> cheapest(np.array([1.0, 1.0, 8.0])).round(5)
    array([4. , 4. , 0.5])
    >>> wg.jacobian(cheapest)(np.array([1.0, 1.0, 8.0])).round(4)
    array([[-2.6667,  1.3333,  0.1667],
           [ 1.3333, -2.6667,  0.1667],
           [ 0.1667,  0.1667, -0.0417]])
    """
    check_function(f, "nlp")
    if callback is not None:
        check_function(callback, "nlp: callback")
    args = args if isinstance(args, tuple) else (args,)
    shape = Raveled(pytree.tree_map(_plain_example, x0), "nlp")
    limited = ConstraintList(constraints, lower, upper)
    leaves, structure = pytree.flatten(args)
    numeric = [k for k, x in enumerate(leaves) if isinstance(describe(x), Spec)]

    def arguments(values: Sequence[Any]) -> Any:
        full = list(leaves)
        for k, value in zip(numeric, values, strict=True):
            full[k] = value
        return pytree.unflatten(structure, full)

    traced = Traced.of(
        lambda v, values: _number(converted(f)(shape.container(v), *arguments(values))),
        lambda v, values: limited.vector(shape.container(v), arguments(values)),
        sum(shape.sizes),
        [leaves[k] for k in numeric],
    )
    names = _unknown_names(x0, shape), limited.names()
    settings = SolverSettings(
        _method(method),
        tol,
        SolverOptions(dict(options or {})),
        SolverOptions(_scaling(scaling)),
        callback,
        warm_start is not None,
        *map(tuple, names),
    )
    limits = [*_bounds(bounds, x0, shape), *limited.limits()]
    found = solved(traced, limits, _starts(x0, shape, warm_start, len(names[1])), settings)
    return _result(found, shape, limited, settings.method)


def _plain_example(x: Any) -> Any:
    """An array like a leaf of x0, whose value may not be known."""
    if is_traced(x):
        return np.zeros(describe(x).shape, describe(x).dtype)
    return np.asarray(value_of(x))


def _number(value: Any) -> Any:
    value = floating(value)
    if value.size != 1:
        raise ShapeError(
            f"nlp: the objective has shape {value.shape}, and must be a number{at(user_line())}."
        )
    return casts.astype(value.reshape(()), float)


def _method(method: str | None) -> str:
    if method is None:
        return "ipopt" if ipopt.is_installed() else "trust-constr"
    if method not in METHODS:
        raise ArgumentError(
            f"nlp: the method {method!r} does not exist. Use one of {', '.join(METHODS)}"
            f"{at(user_line())}."
        )
    return method


def _scaling(given: Any) -> Any:
    if given is None or given == "gradient":
        return given
    if not isinstance(given, dict) or not set(given) <= set(_SCALED):
        raise ArgumentError(
            f"nlp: scaling={given!r}. Use 'gradient', None, or a dict with factors of "
            f"{', '.join(_SCALED)}{at(user_line())}."
        )
    return {
        k: np.asarray(v, float).reshape(-1) if np.ndim(v) else float(v) for k, v in given.items()
    }


def _unknown_names(x0: Any, shape: Raveled) -> list[str]:
    """The names of the unknowns, in the order of the vector."""
    example = shape.container(np.arange(float(sum(shape.sizes))))
    numbers = np.concatenate([np.ravel(x) for x in pytree.flatten(example)[0]])
    names = [f"x{rest}" for rest in element_names(example)]
    return [names[k] for k in np.argsort(numbers)]


def _bounds(bounds: Any, x0: Any, shape: Raveled) -> tuple[Any, Any]:
    size = sum(shape.sizes)
    if bounds is None:
        return np.full(size, -np.inf), np.full(size, np.inf)
    if not isinstance(describe(x0), Spec):
        return shape.bounds(bounds, "nlp")
    if not hasattr(bounds, "lb") and not isinstance(bounds, np.ndarray):
        bounds = list(bounds)
        if len(bounds) != size:
            raise ShapeError(
                f"nlp: there are {len(bounds)} pairs of bounds for {size} unknowns"
                f"{at(user_line())}."
            )
    try:
        return bounds_of(bounds, size)
    except ValueError:
        raise ShapeError(
            f"nlp: bounds do not broadcast to {size} unknowns{at(user_line())}."
        ) from None


def _starts(x0: Any, shape: Raveled, warm: NLPResult | None, count: int) -> list[Any]:
    """Unknowns, multipliers, and multipliers of bounds from which the solver begins."""
    if warm is None:
        return [_as_vector(x0, shape), np.zeros(count), np.zeros(sum(shape.sizes))]
    given = warm.multipliers.constraints
    parts = [np.ravel(value_of(x)) for x in pytree.flatten(given)[0] if x is not None]
    multipliers = np.concatenate([np.zeros(0), *parts])
    if len(multipliers) != count:
        raise ShapeError(
            f"nlp: warm_start has multipliers of {len(multipliers)} constraints, and the program "
            f"has {count} constraints{at(user_line())}."
        )
    return [_as_vector(warm.x, shape), multipliers, _as_vector(warm.multipliers.bounds, shape)]


def _as_vector(x: Any, shape: Raveled) -> Any:
    leaves = pytree.flatten(x)[0]
    if not any(map(is_traced, leaves)):
        return shape.vector(x)
    order = pytree.insertion_order(x)
    flat = [casts.astype(as_array(leaves[k]), float).reshape(-1) for k in order]
    return np.concatenate(flat)


def _result(
    found: ProgramSolution, shape: Raveled, limited: ConstraintList, method: str
) -> NLPResult:
    multipliers = Multipliers(
        limited.container(found.multipliers), shape.container(found.bound_multipliers)
    )
    more: dict[str, Any] = {}
    if found.outcome is not None:
        own = found.outcome
        more = {
            "message": own.message,
            "violation": own.violation,
            "violated": own.violated,
            "evaluations": own.evaluations,
            "seconds": own.seconds,
            "degenerate": own.degenerate,
        }
    return NLPResult(
        shape.container(found.x),
        found.fun,
        multipliers,
        found.success,
        found.status,
        found.nit,
        method,
        **more,
    )
