"""Global minima of functions in a box, and from several initial guesses.

    differential_evolution, dual_annealing, shgo, direct   in a box
    basinhopping                                           from an initial guess
    GlobalSolver                                           the solver

The minimum that was found satisfies the conditions of a local one (optimality.py), from which the
derivatives are taken; which minimum is found does not change them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.optimize

from wengert._engine.core.handle import value_of
from wengert._engine.ops import casts
from wengert.errors import ArgumentError, at, user_line

from ..dispatch import converted_when_called, floating
from .constraints import Constraints, bounds_of, plain_start
from .equations import uses_tensors
from .minimization import MinimizationProblem, minimum
from .solver_operation import Function, Outcome, SolverOptions

__all__ = ["basinhopping", "differential_evolution", "direct", "dual_annealing", "shgo"]

_BOUND_DISTANCE = 1e-7  # relative to the interval; elements that are closer are at the bound


@dataclass(frozen=True)
class GlobalSolver:
    """A global minimizer of SciPy with its options; starts may be a guess, or bounds."""

    name: str
    options: SolverOptions

    def __call__(self, functions: Sequence[Function], starts: Sequence[Any]) -> Outcome:
        """Call SciPy."""
        theirs = getattr(scipy.optimize, self.name)
        options = dict(self.options.value)

        def fun(x: Any) -> float:
            return float(functions[0](np.array(x, float)))

        if len(starts) == 1:
            found = theirs(fun, np.asarray(starts[0], float), **options)
            x = np.asarray(found.x, float)
        else:
            low, high = (np.asarray(b, float) for b in starts[1:])
            found = theirs(fun, bounds=list(zip(low, high, strict=True)), **options)
            x = np.asarray(found.x, float)
            near = _BOUND_DISTANCE * (high - low)
            x = np.where(x - low <= near, low, np.where(high - x <= near, high, x))
        counts = found.get("nfev", -1), found.get("nit", -1)
        return Outcome(x, bool(found.get("success", True)), found.get("status", 0), *counts, found)


def _minimized(
    name: str, func: Callable[..., Any], args: Any, x0: Any, bounds: Any, options: dict[str, Any]
) -> Any:
    """The result of SciPy, or one with tensors."""
    args = args if isinstance(args, tuple) else (args,)
    called = converted_when_called(func)
    given = bounds if bounds is None or not hasattr(bounds, "lb") else [bounds.lb, bounds.ub]
    ends = None
    if bounds is not None:
        size = int(np.size(value_of(bounds.lb))) if hasattr(bounds, "lb") else len(bounds)
        ends = bounds_of(bounds, size)
        plain = [np.asarray(value_of(floating(e))) for e in ends]
        start: Any = (plain[0] + plain[1]) / 2.0
    else:
        start = plain_start(x0)
    if not uses_tensors((x0, args, given), lambda: called(start, *args)):
        first = {"x0": x0} if bounds is None else {"bounds": bounds}
        how = {"args": args} if name != "basinhopping" else {}
        if name == "basinhopping" and args:
            options = options | {"minimizer_kwargs": {"args": args}}
        return getattr(scipy.optimize, name)(func, **first, **how, **options)
    refused = [k for k in ("constraints", "integrality") if np.size(options.get(k, ())) > 0]
    if refused:
        raise ArgumentError(
            f"{name} of tensors with {', '.join(refused)}: it has derivatives in a box only. Use "
            f"minimize from the solution{at(user_line())}."
        )
    problem = MinimizationProblem(called, args, None, None, Constraints((), start))
    starts = [start] if ends is None else [start, *ends]
    if ends is None:
        starts = [casts.astype(floating(x0), float).reshape(-1)]
    else:
        problem.ends = ends
    traced, conditions = problem.traced(name, len(start))
    return minimum(traced, conditions, ["fun"], GlobalSolver(name, SolverOptions(options)), starts)


_DOC = """A global minimum, as ``scipy.optimize.{name}``.

    Parameters
    ----------
    func : callable
        ``func(x, *args)``, a number; captured tensors are differentiated.
    {what}
    args : tuple
        Further arguments, which are differentiated.
    **options
        SciPy's other arguments, plain.

    Returns
    -------
    OptimizeResult
        `x`, `fun` and `jac` are tensors.

    Raises
    ------
    ConvergenceError
        A derivative is needed, and SciPy reports no success.
    SingularError
        The derivative of `x` is needed, and the minimum is not strict.

    Notes
    -----
    The derivative is that of the minimum that was found, as a local one. It is as accurate as the
    minimum is.

    See Also
    --------
    minimize

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy import optimize
    >>> def best(a):
    ...     f = lambda x: (x[0] ** 2 - a) ** 2 + 0.1 * x[0]
    ...     return optimize.{name}(f, {example}).fun
    >>> wg.grad(best)(4.0).round(3)
    np.float64(-0.025)
    """


def _in_box(name: str, example: str) -> Callable[..., Any]:
    def minimized(func: Callable[..., Any], bounds: Any, args: Any = (), **options: Any) -> Any:
        return _minimized(name, func, args, None, bounds, options)

    minimized.__name__ = minimized.__qualname__ = name
    what = "bounds : Bounds, or sequence of pairs\n        They may be tensors."
    minimized.__doc__ = _DOC.format(name=name, what=what, example=example)
    return minimized


_SEEDED = "[(-3.0, 3.0)], rng=1"
differential_evolution = _in_box("differential_evolution", _SEEDED)
dual_annealing = _in_box("dual_annealing", _SEEDED)
shgo = _in_box("shgo", "[(-3.0, 3.0)]")
direct = _in_box("direct", "[(-3.0, 3.0)], vol_tol=1e-6, maxfun=9000, maxiter=9000")


def basinhopping(func: Callable[..., Any], x0: Any, **options: Any) -> Any:
    """Documented below."""
    return _minimized("basinhopping", func, (), x0, None, options)


basinhopping.__doc__ = _DOC.replace(
    """    args : tuple
        Further arguments, which are differentiated.
""",
    "",
).format(
    name="basinhopping",
    what="x0 : array\n        The initial guess; its derivative is zero.",
    example="np.array([-1.0]), niter=30, rng=1",
)
