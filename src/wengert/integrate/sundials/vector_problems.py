"""Problems for a vector: arguments checked, functions traced, the solution as for other methods.

solve_vector   the solution of a problem for `wengert.integrate.solve`
solve_residual the solution of F(t, y, y') = 0
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from wengert._engine.autodiff.jvp_vjp import jvp
from wengert._engine.core.handle import describe, is_traced, value_of
from wengert._engine.core.loop_variants import patterns
from wengert._engine.core.spec import Spec
from wengert._engine.implicit.functions import GraphFunction, is_constant
from wengert._engine.implicit.solver_calls import solver_call
from wengert._engine.ops import casts
from wengert._engine.tensor.numpy_dispatch import as_array, as_tensor
from wengert.errors import ArgumentError, DtypeError, ShapeError, at, user_line
from wengert.integrate.sundials_names import solver_of
from wengert.scipy.integrate.ivp.initial_value import IvpOptions, checked_rhs, checked_state
from wengert.scipy.integrate.ivp.program import IvpOutcome

from .library import Array, require
from .rules import StatesRule
from .system import Basis, System, joined
from .trajectory import SolverOperands

_FLOAT = np.dtype(float)
_UNKNOWN = -1  # numbers that SUNDIALS does not report
_RANK_TOLERANCE = 1e-12


def solve_vector(
    f: Callable[[Any, Any], Any],
    t0: Any,
    t1: Any,
    y0: Any,
    options: IvpOptions,
    what: str,
    times: Any,
    refused: dict[str, bool],
) -> IvpOutcome:
    """The solution of ``M y' = f(t, y)``.

    Parameters
    ----------
    f : callable
    t0, t1 : float or Tensor
    y0 : vector
    options : IvpOptions
    what : str
        The caller, for messages.
    times : vector or None
        Those of the result; None: the end.
    refused : dict of bool
        Arguments that SUNDIALS' methods do not take, and whether they are given.

    Raises
    ------
    BackendError
        SUNDIALS is not installed.
    ArgumentError, ShapeError, DtypeError
        An argument cannot be.
    """
    solver = solver_of(options.method)
    assert solver is not None
    require(what)
    given = [name for name, is_given in refused.items() if is_given]
    if given:
        raise ArgumentError(
            f"{what}: method={options.method!r} takes no {given[0]}. Leave it out, or choose one "
            f"of wengert's own methods, as 'rodas5p' or 'tsit5'{at(user_line())}."
        )
    y0 = _real_state(y0, what)
    spec = Spec(tuple(describe(y0).shape), _FLOAT)
    n = spec.shape[0]
    checked = checked_rhs(f, spec, what)
    mass, basis = None, None
    if solver == "IDA":
        mass = np.eye(n) if options.mass is None else _constant_mass(options.mass, n, what)
        basis = _basis_of(mass)
    elif options.mass is not None:
        raise ArgumentError(
            f"{what}: method={options.method!r} takes no mass matrix. Use method='IDA', or one of "
            f"'rodas5p', 'Radau', 'BDF'{at(user_line())}."
        )

    def function(x: Any) -> list[Any]:
        value = checked(x[0], x[1 : n + 1])
        return [value if mass is None else mass @ x[n + 1 :] - value]

    packed = Spec((1 + n * (1 + (basis is not None)),), _FLOAT)
    traced, captured = GraphFunction.traced(function, [packed], what)
    system = System(solver, traced, n, basis, int(options.max_steps))
    return _solution(system, captured, (t0, t1), (y0, np.zeros(n)), options, times, what)


def solve_residual(
    residual: Callable[[Any, Any, Any], Any],
    t0: Any,
    t1: Any,
    y0: Any,
    slope0: Any,
    algebraic: Array | None,
    options: IvpOptions,
    what: str,
    times: Any,
) -> IvpOutcome:
    """The solution of ``residual(t, y, slope) = 0``.

    Parameters
    ----------
    residual : callable
    t0, t1 : float or Tensor
    y0, slope0 : vector
    algebraic : array of bool or None
        Which components have no derivative in the residual; None: found from its graph.
    options, what, times
        As in `solve_vector`.
    """
    require(what)
    y0, slope0 = _real_state(y0, what), _real_state(slope0, what)
    spec = Spec(tuple(describe(y0).shape), _FLOAT)
    n = spec.shape[0]

    def function(x: Any) -> list[Any]:
        slope = x[n + 1 :]
        return [checked_rhs(lambda t, y: residual(t, y, slope), spec, what)(x[0], x[1 : n + 1])]

    traced, captured = GraphFunction.traced(function, [Spec((2 * n + 1,), _FLOAT)], what)
    if algebraic is None:
        algebraic = _without_derivative(traced, captured, n)
    identity = np.eye(n)
    basis = Basis(identity[:, ~algebraic], identity[:, algebraic])
    system = System("IDA", traced, n, basis, int(options.max_steps))
    return _solution(system, captured, (t0, t1), (y0, slope0), options, times, what)


def _without_derivative(function: GraphFunction, captured: Any, n: int) -> Array:
    """The components whose derivative does not occur in the residual, from its graph."""

    def products(x: Any, v: Any) -> list[Any]:
        direction = joined([np.zeros(n + 1), v])
        return [jvp(lambda x: function(captured, [x])[0], (x,), (direction,))[1]]

    specs = [Spec((2 * n + 1,), _FLOAT), Spec((n,), _FLOAT)]
    found, _ = GraphFunction.traced(products, specs, "products with the Jacobian")
    pattern = patterns().pattern_of(found.body, found.captured + 1)
    if pattern is None:
        return np.zeros(n, bool)
    occurs: Array = np.asarray(abs(pattern).sum(axis=0)).ravel() > 0
    return ~occurs


def _solution(
    system: System,
    captured: Any,
    ends: tuple[Any, Any],
    start: tuple[Any, Any],
    options: IvpOptions,
    times: Any,
    what: str,
) -> IvpOutcome:
    t0, t1 = [casts.astype(as_tensor(t) if is_traced(t) else as_array(t), float) for t in ends]
    at_times = joined([_row(t1)]) if times is None else times
    first = np.nan if options.first_step is None else options.first_step
    atol = as_array(options.atol) + np.zeros(system.size)
    if len(describe(options.rtol).shape):
        raise ShapeError(
            f"{what}: rtol has shape {tuple(describe(options.rtol).shape)}, and must be a number "
            f"for method={options.method!r}{at(user_line())}."
        )
    numbers = [as_array(x) * 1.0 for x in (options.max_step, first)]
    rtol = as_array(options.rtol) * 1.0
    given = SolverOperands.of([*captured, t0, *start, rtol, atol, *numbers, at_times])
    ys, _, last, counts = solver_call(StatesRule.of(system, given), given.operands())
    reached, status, steps, nfev, njev = [counts[k] for k in range(5)]
    attempts = np.where(steps == _UNKNOWN, 2 * _UNKNOWN, steps + _UNKNOWN)
    y = ys[-1]
    if not is_traced(status) and int(value_of(status)) < 0:
        t_end, y = last[0], last[1:]
    else:
        t_end = at_times[-1] if times is None else t1
    unknown = np.int64(_UNKNOWN)
    return IvpOutcome(
        t_end, y, status, steps, attempts, (nfev, njev, unknown), (reached, ys[1:]), ()
    )


def _row(t: Any) -> Any:
    return t.reshape(1)


def _real_state(y: Any, what: str) -> Any:
    y = checked_state(y, what)
    if y.dtype.kind == "c":
        raise DtypeError(
            f"{what}: SUNDIALS is for real states, and the state is {y.dtype}. Choose one of "
            "wengert's own methods, or give the real and the imaginary part as two components"
            f"{at(user_line())}."
        )
    return y


def _constant_mass(mass: Any, n: int, what: str) -> Array:
    """The mass matrix, which is a known array."""
    if not is_constant(mass):
        raise ArgumentError(
            f"{what}: with method='IDA' the mass matrix is an array of known numbers, since its "
            "rank decides which components are algebraic. For a matrix with parameters write "
            "`solve_dae(lambda t, y, ydot: mass @ ydot - f(t, y), ...)`, or choose "
            f"method='rodas5p'{at(user_line())}."
        )
    matrix = np.array(value_of(mass), float)
    if matrix.shape != (n, n):
        raise ShapeError(
            f"{what}: mass has shape {matrix.shape}, and must have shape {(n, n)} for a state of "
            f"shape {(n,)}{at(user_line())}."
        )
    if not np.isfinite(matrix).all():
        raise ArgumentError(f"{what}: all elements of mass must be finite{at(user_line())}.")
    return matrix


def _basis_of(mass: Array) -> Basis:
    """The parts of the state on which a mass matrix is regular, and zero."""
    n = len(mass)
    is_zero = ~mass.any(axis=0)
    _, sizes, rows = np.linalg.svd(mass)
    rank = int(np.sum(sizes > _RANK_TOLERANCE * max(sizes[0], np.finfo(float).tiny)))
    if n - rank == np.sum(is_zero):
        return Basis(np.eye(n)[:, ~is_zero], np.eye(n)[:, is_zero])
    return Basis(np.ascontiguousarray(rows[:rank].T), np.ascontiguousarray(rows[rank:].T))
