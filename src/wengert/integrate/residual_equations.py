"""Equations F(t, y, y') = 0 for states that are containers of arrays, by SUNDIALS' IDA.

solve_dae   the solution

Arguments are checked and converted here; the solver and its derivatives are in `sundials`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wengert._engine.core import pytree
from wengert._engine.core.conversion_hook import converted
from wengert._engine.core.validation import function
from wengert.errors import ShapeError, at, user_line
from wengert.scipy.integrate.ivp.initial_value import IvpOptions

from .solution import Solution
from .solve import finished, times_of
from .state_leaves import StateLeaves, as_state

_WHAT = "solve_dae"


def solve_dae(
    residual: Callable[..., Any],
    t: Sequence[Any] | Any,
    y0: Any,
    ydot0: Any = None,
    args: tuple[Any, ...] = (),
    *,
    algebraic: Any = None,
    rtol: Any = 1e-6,
    atol: Any = 1e-9,
    saveat: Any = None,
    first_step: Any = None,
    max_step: Any = np.inf,
    max_steps: int = 100_000,
    check: bool = True,
) -> Solution:
    """Solve residual(t, y, ydot, *args) = 0, with ydot the derivative of y, by SUNDIALS' IDA.

    Parameters
    ----------
    residual : callable
        ``residual(t, y, ydot, *args)``, like `y`; captured tensors are differentiated.
    t : sequence of float or Tensor
        As in `solve`.
    y0, ydot0 : array or container of arrays
        The initial state and its derivative, by default zero. The algebraic part of `y0`, and
        `ydot0`, are first guesses, of which consistent values are found by Newton's method.
    args : tuple
        Further arguments of `residual`, which are differentiated.
    algebraic : container of bool like `y0`, optional
        Which components have no derivative in the residual. By default found from its graph.
    rtol, atol, saveat, first_step, max_step, max_steps, check
        As in `solve`; `rtol` is a number.

    Returns
    -------
    Solution
        Numbers that SUNDIALS does not report are -1.

    Raises
    ------
    BackendError
        SUNDIALS is not installed: ``pip install 'wengert[sundials]'``.
    ConvergenceError
        The end is not reached, or no consistent initial values are found, with `check`.
    ArgumentError, ShapeError, DtypeError, StructureError
        An argument cannot be.

    See Also
    --------
    solve : equations that are solved for the derivative, also with a mass matrix.

    Notes
    -----
    The index of the equations must be 1: the derivatives of the differential components, and the
    algebraic components, follow from the equations. The derivative of the solution, in both modes
    and at any order, is that of the sensitivity equations and of the adjoint equation, integrated
    by IDA and CVODE to the same tolerances. With respect to the initial state it is zero for
    algebraic components. In compiled functions each solution is a host callback, in batches one for
    each row.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.integrate import solve_dae
    >>> def circuit(t, y, ydot, resistance):  # a capacitor is charged through a resistor
    ...     voltage, current = y
    ...     return np.array([ydot[0] - current, resistance * current + voltage - 1.0])
    >>> def charged(resistance):
    ...     return solve_dae(circuit, (0.0, 1.0), np.zeros(2), args=(resistance,)).y[0]
    >>> [round(float(x), 4) for x in wg.value_and_grad(charged)(2.0)]  # doctest: +SKIP
    [0.3935, -0.1516]
    """
    from .sundials.vector_problems import solve_residual

    function(residual, _WHAT)
    times, t0, t1 = times_of(t, saveat, _WHAT)
    y0 = as_state(y0)
    leaves = StateLeaves(y0, f"{_WHAT}: the state")
    result = StateLeaves(y0, f"{_WHAT}: the result of the function")
    start = leaves.vector(leaves.leaves.values)
    slope = np.zeros(sum(leaves.sizes))
    if ydot0 is not None:
        slope = StateLeaves(y0, f"{_WHAT}: ydot0").vector_like(as_state(ydot0))

    def vector_residual(time: Any, y: Any, ydot: Any) -> Any:
        found = converted(residual)(time, leaves.container(y), leaves.container(ydot), *args)
        return result.vector_like(found)

    outcome = solve_residual(
        vector_residual,
        t0,
        t1,
        start,
        slope,
        None if algebraic is None else _flags(algebraic, leaves),
        IvpOptions("IDA", rtol, atol, first_step, max_step, max_steps),
        _WHAT,
        times,
    )
    return finished(None, outcome, "end" if times is None else "times", times, leaves, check, _WHAT)


def _flags(algebraic: Any, leaves: StateLeaves) -> np.ndarray[Any, Any]:
    """Which components of the vector are algebraic."""
    parts, structure = pytree.flatten(as_state(algebraic))
    shapes = [tuple(s.shape) for s in leaves.leaves.specs]
    if structure != leaves.leaves.structure or [np.shape(x) for x in parts] != shapes:
        raise ShapeError(
            f"{_WHAT}: `algebraic` must have the structure and the shapes of y0, {shapes}"
            f"{at(user_line())}."
        )
    return np.concatenate([np.asarray(x, bool).ravel() for x in parts])
