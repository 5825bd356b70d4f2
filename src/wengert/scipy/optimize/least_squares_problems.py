"""Nonlinear least squares, and what fits need of the Jacobian at the solution.

least_squares       sums of squares, with bounds and robust losses
LeastSquaresSolver  the solver
has_full_rank       whether a covariance is determined
covariance_of       the covariance of the solution
minpack_factors     the factors of the Jacobian under MINPACK's names
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
import scipy.optimize

from wengert._engine.autodiff.grad import grad
from wengert._engine.autodiff.jacobians import jacobian
from wengert._engine.core.handle import describe, is_traced, value_of
from wengert._engine.core.spec import Spec
from wengert._engine.core.user_functions import original
from wengert._engine.implicit.functions import GraphFunction
from wengert._engine.ops import casts
from wengert.errors import ArgumentError, at, user_line

from ..dispatch import array_of, converted_when_called, floating, holds_tensors
from ..linalg import solve_triangular
from .equations import Equation, TracedFunctions, solve_equation, uses_tensors
from .minimize_solver import Ends, bounds_of, plain_start
from .optimality import at_bounds, minimal_value_of, projected
from .roots import result_of
from .solver_operation import Function, Outcome, SolverOptions

__all__ = ["least_squares"]

# The losses of SciPy: functions of z, the squares of scaled residuals.
_LOSSES: dict[str, Function] = {
    "linear": lambda z: z,
    "soft_l1": lambda z: 2.0 * (np.sqrt(1.0 + z) - 1.0),
    "huber": lambda z: np.where(z <= 1.0, z, 2.0 * np.sqrt(np.where(z <= 1.0, 1.0, z)) - 1.0),
    "cauchy": lambda z: np.log1p(z),
    "arctan": lambda z: np.arctan(z),
}


_STATUS_OF_MINPACK = {1: 2, 2: 3, 3: 4, 4: 1, 5: 0}  # of least_squares
_CALLS_PER_UNKNOWN = 100  # at most, as in least_squares


@dataclass(frozen=True)
class LeastSquaresSolver:
    """`scipy.optimize.least_squares` with its options; starts may end with bounds."""

    method: str
    loss: Any
    options: SolverOptions

    def __call__(self, functions: Sequence[Function], starts: Sequence[Any]) -> Outcome:
        """Call SciPy; elements at active bounds are set to these."""
        more: dict[str, Any] = {} if len(starts) == 1 else {"bounds": tuple(starts[1:])}
        found = scipy.optimize.least_squares(
            lambda x: np.array(functions[0](x), float),
            np.asarray(starts[0], float),
            lambda x: np.array(functions[1](x), float),
            method=self.method,
            loss=self.loss,
            **more,
            **self.options.value,
        )
        x = np.array(found.x)
        if len(starts) > 1:
            x = np.where(found.active_mask < 0, starts[1], x)
            x = np.where(found.active_mask > 0, starts[2], x)
        return Outcome(x, bool(found.success), found.status, found.nfev, -1, found)

    def without_result(self, functions: Sequence[Function], starts: Sequence[Any]) -> Outcome:
        """The same without SciPy's result.

        MINPACK is called as `scipy.optimize.leastsq` calls it: `least_squares` takes several times
        as long as MINPACK for small problems.
        """
        options, start = self.options.value, np.asarray(starts[0], float)
        first = functions[0](start) if self._is_minpack(len(starts)) else None
        if first is None or first.size < start.size or not np.all(np.isfinite(first)):
            return self(functions, starts)
        x, _, details, _, code = scipy.optimize.leastsq(
            functions[0],
            start,
            Dfun=functions[1],
            full_output=True,
            **{name: options[name] for name in ("ftol", "xtol", "gtol")},
            maxfev=options["max_nfev"] or _CALLS_PER_UNKNOWN * start.size,
        )
        if code not in _STATUS_OF_MINPACK:
            return self(functions, starts)
        status = _STATUS_OF_MINPACK[code]
        return Outcome(x, status > 0, status, details["nfev"])

    def _is_minpack(self, starts: int) -> bool:
        """Whether options are those of MINPACK, and steps are scaled by it."""
        given = self.options.value
        tolerances = [given[name] for name in ("ftol", "xtol", "gtol")]
        return (
            (self.method, self.loss, starts) == ("lm", "linear", 1)
            and isinstance(given.get("x_scale"), str)
            and not given.keys() & {"tr_options", "callback", "workers"}
            and not given["verbose"]
            and all([tol is not None and tol > np.finfo(float).eps for tol in tolerances])
        )


def least_squares(
    fun: Callable[..., Any],
    x0: Any,
    jac: Any = "2-point",
    bounds: Any = (-np.inf, np.inf),
    method: str = "trf",
    ftol: float | None = 1e-8,
    xtol: float | None = 1e-8,
    gtol: float | None = 1e-8,
    x_scale: Any = None,
    loss: Any = "linear",
    f_scale: float = 1.0,
    diff_step: Any = None,
    tr_solver: str | None = None,
    tr_options: dict[str, Any] | None = None,
    jac_sparsity: Any = None,
    max_nfev: int | None = None,
    verbose: int = 0,
    args: Any = (),
    kwargs: dict[str, Any] | None = None,
    callback: Any = None,
    workers: Any = None,
) -> Any:
    """A minimum of a sum of squares, as ``scipy.optimize.least_squares``.

    Parameters
    ----------
    fun : callable
        ``fun(x, *args, **kwargs)``, the residuals, a vector; captured tensors are differentiated.
    x0 : array
        The initial guess; its derivative is zero.
    jac : callable or str, optional
        A callable gives the Jacobian to the method; otherwise the exact one is computed.
    bounds : pair or Bounds
        The ends may be tensors, which are differentiated.
    method, ftol, xtol, gtol, x_scale, loss, f_scale, tr_solver, tr_options, max_nfev, verbose, \
callback
        As in SciPy; `loss` must be one of SciPy's names.
    diff_step, jac_sparsity, workers
        Without effect: the Jacobian is exact.
    args, kwargs
        Further arguments, which are differentiated.

    Returns
    -------
    OptimizeResult
        `x`, `cost`, `fun`, `jac` and `grad` are tensors. In a graph it has these, `success`,
        `status` and `nfev` only.

    Raises
    ------
    ConvergenceError
        The derivative of the solution is needed, and the method did not converge.
    MatrixError
        The derivative is needed, and the minimum is not unique.

    Notes
    -----
    The derivative is that of the equation ``grad = 0`` with the exact second derivatives of the
    residuals (it is not that of a Gauss-Newton method); the derivative of `cost` needs no linear
    system.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.scipy import optimize
    >>> t = np.linspace(0.0, 1.0, 5)
    >>> def rate(y):
    ...     return optimize.least_squares(lambda p: p[0] * np.exp(-p[1] * t) - y, np.ones(2)).x[1]
    >>> wg.grad(rate)(2.0 * np.exp(-3.0 * t)).round(3)
    array([ 1.243, -1.477, -1.672, -1.25 , -0.808])
    """
    args = args if isinstance(args, tuple) else (args,)
    named = kwargs or {}
    called = converted_when_called(fun)
    start_values = plain_start(x0)
    ends = [bounds.lb, bounds.ub] if hasattr(bounds, "lb") else list(bounds)
    arguments = (x0, args, list(named.values()), ends)
    if not uses_tensors(arguments, lambda: called(start_values, *args, **named)):
        more = {"x_scale": x_scale, "tr_options": tr_options or None, "callback": callback}
        more = {k: v for k, v in (more | {"workers": workers}).items() if v is not None}
        return scipy.optimize.least_squares(
            fun, x0, jac, bounds, method, ftol, xtol, gtol, loss=loss, f_scale=f_scale,
            diff_step=diff_step, tr_solver=tr_solver, max_nfev=max_nfev, verbose=verbose, args=args,
            kwargs=named, jac_sparsity=jac_sparsity, **more,
        )  # fmt: skip
    if loss not in _LOSSES:
        raise ArgumentError(
            f"least_squares: loss={loss!r}. Use one of {', '.join(_LOSSES)}{at(user_line())}."
        )
    start = casts.astype(floating(x0), float).reshape(-1)
    size = int(describe(start).shape[0])
    low_high = _low_high(ends, size)
    given: list[Function] = [lambda x: _vector(called(x, *args, **named))]
    if callable(jac):
        slopes = converted_when_called(jac)
        given.append(lambda x: array_of(slopes(x, *args, **named)))
    spec = Spec((size,), np.dtype(float))
    traced = TracedFunctions.of(given, spec, f"least_squares by {method}", low_high)
    problem = _SumOfSquares(loss, f_scale)
    options = {
        "ftol": ftol, "xtol": xtol, "gtol": gtol, "f_scale": f_scale, "tr_solver": tr_solver,
        "max_nfev": max_nfev, "verbose": verbose,
    }  # fmt: skip
    report = original(callback)
    more = {"x_scale": x_scale, "tr_options": tr_options or None, "callback": report}
    options |= {k: v for k, v in more.items() if v is not None}  # others are SciPy's defaults
    solver = LeastSquaresSolver(method, loss, SolverOptions(options))
    return _minimum(traced, problem, spec, solver, [start, *low_high])


def _minimum(
    traced: TracedFunctions, problem: _SumOfSquares, spec: Spec, solver: Any, starts: Sequence[Any]
) -> Any:
    """SciPy's result, with tensors."""
    names = ("residuals", "jacobian", "condition", "cost", "envelope", "slope")
    graphs = {name: problem.graph(traced, name, spec) for name in names}
    rule = Equation(traced.name, [graphs[k] for k in names[:3]], 2, spec, solver, 2)
    found = solve_equation(rule, traced.consts, starts)
    x, consts = found.solution, traced.consts
    lowest = minimal_value_of(
        graphs["cost"], graphs["envelope"], consts, x, found.success, rule.reason()
    )
    result = result_of(found, graphs["residuals"](consts, [x])[0], cost=lowest)
    result.update(jac=graphs["jacobian"](consts, [x])[0], grad=graphs["slope"](consts, [x])[0])
    return result


def _vector(value: Any) -> Any:
    return casts.astype(floating(value), float).reshape(-1)


@dataclass(frozen=True)
class _SumOfSquares:
    """What is made from the residuals: cost, and the conditions of a minimum."""

    loss: str
    scale: float

    def graph(self, traced: TracedFunctions, name: str, spec: Spec) -> GraphFunction:
        """A function of the unknowns, as a graph that is kept."""

        def make(functions: Sequence[Function], ends: Sequence[Any]) -> Function:
            residuals = functions[0]
            if name == "residuals":
                return residuals
            if name == "jacobian":
                return functions[1] if len(functions) > 1 else jacobian(residuals)
            cost = self.cost(residuals)
            made: dict[str, Function] = {
                "cost": cost,
                "slope": grad(cost),
                "condition": lambda x: projected(x, grad(cost)(x), *ends),
                "envelope": lambda x: cost(at_bounds(x, grad(cost)(x), *ends) if ends else x),
            }
            return made[name]

        return traced.made((self, name), make, spec)

    def cost(self, residuals: Function) -> Function:
        """Half of the sum of squares, by the loss."""
        loss, scale = _LOSSES[self.loss], self.scale
        return lambda x: 0.5 * scale**2 * np.sum(loss((residuals(x) / scale) ** 2))


def _low_high(ends: Sequence[Any], size: int) -> tuple[Any, ...]:
    """The bounds as vectors; empty if there are none."""
    if all(not holds_tensors(e) and np.all(np.isinf(e)) for e in ends):
        return ()
    return bounds_of(Ends(ends), size)


def has_full_rank(jacobian: Any) -> bool:
    """Whether the columns of a Jacobian are independent; in a graph, where it is not known, True.

    A column counts as dependent if its part that is orthogonal to the others is rounding.
    """
    values = value_of(jacobian)
    if is_traced(values):
        return True
    values = np.asarray(values)
    if values.shape[0] < values.shape[1] or not np.isfinite(values).all():
        return False
    # with columns of size one, since units of parameters differ
    norms = np.linalg.norm(values, axis=0)
    if not norms.all():
        return False
    factor = scipy.linalg.qr(values / norms, mode="r", pivoting=True)[0]
    sizes = np.abs(np.diag(factor))
    return bool(np.all(sizes > np.finfo(float).eps * max(values.shape) * sizes[0]))


def covariance_of(jacobian: Any) -> Any:
    """The inverse of ``J.T @ J``, by a factor of J, whose condition number is not squared."""
    factor: Any = np.linalg.qr(jacobian, mode="r")
    inverse = solve_triangular(factor, np.eye(int(factor.shape[0])))
    return inverse @ inverse.T


def minpack_factors(jacobian: Any, residuals: Any) -> dict[str, Any]:
    """`fjac`, `ipvt` and `qtf` of `scipy.optimize.leastsq`; empty in a graph.

    Signs of rows may differ from those of MINPACK.
    """
    values = [value_of(x) for x in (jacobian, residuals)]
    if any(map(is_traced, values)):
        return {}
    matrix, right = map(np.asarray, values)
    q, r, order = scipy.linalg.qr(matrix, pivoting=True)
    fjac = np.zeros(matrix.shape[::-1])
    fjac[:, : r.shape[0]] = r.T
    return {
        "fjac": fjac,
        "ipvt": order.astype(np.int32) + _first_position(),
        "qtf": (q.T @ right)[: r.shape[1]],
    }


@functools.cache
def _first_position() -> int:
    """Of `ipvt`: SciPy's MINPACK in Fortran began with one, that in C begins with zero."""
    found = scipy.optimize.leastsq(lambda x: x, np.ones(1), full_output=True)
    return int(found[2]["ipvt"][0])
