"""Roots of functions, and solutions of any equation: custom_root, implicit.

By the implicit function theorem the solution ``y`` of ``F(y, theta) = 0`` has the derivative

    F_y ydot = -F_theta thetadot        F_y^H lambda = ybar,  thetabar = -F_theta^H lambda

taken at the solution, which is an operand of the rule: derivatives of higher order differentiate
this linear system, and never the steps of the solver.

    custom_root   the root of a function, by a given solver
    implicit      a solver whose solution satisfies a given equation
    Root          the rule
    only_if       the solution, if the solver has converged
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wengert._engine.core.conversion_hook import converted
from wengert._engine.core.handle import is_traced, value_of
from wengert._engine.core.op import lookup
from wengert._engine.core.recording import current_trace
from wengert._engine.core.runtime_checks import RuntimeChecks
from wengert._engine.core.validation import function
from wengert.errors import ConvergenceError, at, user_line

from .functions import GraphFunction, Leaves
from .linear_systems import LinearSystem, Solve
from .solver_calls import SolverRule, solver_call


def custom_root(
    f: Callable[[Any], Any],
    initial_guess: Any,
    solve: Callable[[Callable[[Any], Any], Any], Any],
    tangent_solve: Solve | None = None,
) -> Any:
    """Find a root of a function with a given solver, with implicitly defined derivatives.

    Parameters
    ----------
    f : callable
        Takes and returns arrays or containers like `initial_guess`; captured tensors are
        differentiated.
    initial_guess : array or container of arrays
        The derivative with respect to it is zero.
    solve : callable
        ``solve(f, initial_guess)`` returns the root; it is not differentiated.
    tangent_solve : callable, optional
        ``tangent_solve(g, b)`` solves ``g(x) == b`` for a linear function `g`: the derivative of
        `f` at the root, or its adjoint. By default the matrix is computed and factorized.

    Returns
    -------
    root : as `initial_guess`
        With ``f(root) == 0``.

    Raises
    ------
    StructureError, ShapeError, DtypeError
        `f` or `solve` return something else than arrays like `initial_guess`.
    MatrixError
        The Jacobian at the root is singular, and a derivative is taken.

    See Also
    --------
    implicit : solvers with arguments.
    custom_linear_solve : linear equations.

    Notes
    -----
    A derivative costs one linear system at the root, in both modes and at any order; it does not
    depend on how `solve` works. If `solve` did not converge, the derivative is meaningless.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> def newton(f, x):
    ...     for _ in range(20):
    ...         value, slope = wg.jvp(f, (x,), (np.ones_like(x),))
    ...         x = x - value / slope
    ...     return x
    >>> def cube_root(a):
    ...     return wg.custom_root(lambda x: x**3 - a, 1.0, newton)
    >>> cube_root(8.0).round(12), wg.grad(cube_root)(8.0).round(12)
    (np.float64(2.0), np.float64(0.083333333333))
    """
    what = "custom_root"
    function(f, what)
    function(solve, what)
    if tangent_solve is not None:
        function(tangent_solve, what)
    guess = Leaves.of(initial_guess, f"{what}: initial_guess")
    fun = converted(f)

    def of_leaves(*ys: Any) -> list[Any]:
        return guess.like(fun(guess.container(ys)), f"{what}: the result of f")

    residual, consts = GraphFunction.traced(of_leaves, guess.specs, "f")
    rule = Root(what, residual, guess.structure, guess.specs, solve, tangent_solve)
    return guess.container(solver_call(rule, [*consts, *guess.values]))


class Root(SolverRule):
    """The root of a function; operands are the values that it captures, and the initial guess.

    Subclasses may have other arguments of the solver instead of the guess (their derivative is zero
    too), and further results after the solution: whether the solver has converged, and counts.
    """

    def __init__(
        self,
        name: str,
        residual: GraphFunction,
        structure: Any,
        specs: Sequence[Any],
        solve: Callable[..., Any],
        tangent_solve: Solve | None,
    ) -> None:
        self.name, self.residual = name, residual
        self.structure, self.specs = structure, tuple(specs)
        self.solve, self.tangent_solve = solve, tangent_solve
        self._key: tuple[Any, ...] = (name, residual, solve, tangent_solve)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Root) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def size_names(self) -> frozenset[str]:
        """The symbolic sizes in the function."""
        return self.residual.body.size_names

    def at_sizes(self, sizes: Any) -> Root:
        """The same equation with numbers for symbolic sizes."""
        residual = self.residual.at_sizes(sizes)
        specs = [n.spec for n in residual.body.outputs]
        return Root(self.name, residual, self.structure, specs, self.solve, self.tangent_solve)

    def solution(self, operands: Sequence[Any]) -> list[Any]:
        """The root by the given solver."""
        captured = self.residual.captured
        consts, y0 = operands[:captured], operands[captured:]
        guess = Leaves(list(y0), self.specs, self.structure)

        def f(y: Any) -> Any:
            return guess.container(self.residual(consts, guess.like(y, "the argument of f")))

        return guess.like(
            converted(self.solve)(f, guess.container(y0)), f"{self.name}: the result of solve"
        )

    def bars(
        self, operands: Sequence[Any], outs: Sequence[Any], ts: Sequence[Any], saved: Any = None
    ) -> list[Any]:
        """The cotangents: one solution with the adjoint Jacobian."""
        captured, size = self.residual.captured, len(self.specs)
        consts, ys = operands[:captured], self._converged(outs)
        system, values = self._linearized(consts, ys)
        multipliers = system.adjoint(values, ts[:size])
        bars = self.residual.cotangents_of_captured(consts, ys, multipliers)
        return [
            *[None if c is None else -c for c in bars],
            *[None] * (len(operands) - captured),
        ]

    def dots(self, operands: Sequence[Any], outs: Sequence[Any], dots: Sequence[Any]) -> list[Any]:
        """The tangents: one solution with the Jacobian."""
        captured, size = self.residual.captured, len(self.specs)
        consts, ys = operands[:captured], self._converged(outs)
        change = self.residual.tangent_of_captured(consts, ys, dots[:captured])
        if change is None:
            return [None] * len(outs)
        system, values = self._linearized(consts, ys)
        return [*system(values, [-c for c in change]), *[None] * (len(outs) - size)]

    def _converged(self, outs: Sequence[Any]) -> list[Any]:
        """The solution; an error, or NaN where that is not possible, if it did not converge."""
        size = len(self.specs)
        if len(outs) == size:
            return list(outs)
        return only_if(outs[size], outs[:size], self.name, self.reason())

    def reason(self) -> str:
        """Why the solver did not converge, if it is known."""
        return ""

    def _linearized(
        self, consts: Sequence[Any], ys: Sequence[Any]
    ) -> tuple[LinearSystem, list[Any]]:
        """The Jacobian at the root as a linear system, and the values that it captures."""
        system = LinearSystem(self._jacobian, self.structure, self.specs, self.tangent_solve)
        return system, [*consts, *ys]

    @functools.cached_property
    def _jacobian(self) -> GraphFunction:
        """The product of the Jacobian and a vector; it captures constants and the solution."""
        captured, size = self.residual.captured, len(self.specs)

        def product(*xs: Any) -> list[Any]:
            consts, ys, v = xs[:captured], xs[captured : captured + size], xs[captured + size :]
            return self.residual.tangent(consts, ys, v)

        specs = [n.spec for n in self.residual.body.inputs]
        traced, values = GraphFunction.traced(product, [*specs, *self.specs], "the Jacobian")
        assert not values
        return GraphFunction(traced.body, captured + size)


def only_if(success: Any, ys: Sequence[Any], name: str, reason: str = "") -> list[Any]:
    """The solution for a derivative.

    Raises
    ------
    ConvergenceError
        The solver has not converged. In the body of a loop or in a batch the solution is NaN.
    """
    error = ConvergenceError(
        f"{name} did not converge{reason}, so its result has no derivative. Give it a better "
        f"initial guess or more iterations, or use result.success{at(user_line())}."
    )
    if not is_traced(success):
        if not bool(value_of(success)):
            raise error
        return list(ys)
    session = current_trace()
    if session is not None and not session.isolated and RuntimeChecks.may_raise():
        RuntimeChecks.add(lookup("logical_not")(success), error)
        return list(ys)
    return [lookup("where")(success, y, np.nan) for y in ys]


def implicit(
    solver: Callable[..., Any] | None = None,
    residual: Callable[..., Any] | None = None,
    tangent_solve: Solve | None = None,
) -> Any:
    """Make a solver differentiable, given the equation that its solution satisfies.

    Parameters
    ----------
    solver : callable
        ``solver(initial_guess, *args)`` returns the solution ``y``, an array or container of arrays
        like `initial_guess`; it is not differentiated. If it is omitted, a decorator is returned.
    residual : callable
        ``residual(y, *args)`` is zero at the solution, and is nested as ``y``. For a minimum it is
        the gradient, for a fixed point ``y - step(y, *args)``.
    tangent_solve : callable, optional
        As in `custom_root`.

    Returns
    -------
    callable
        The solver with derivatives with respect to `args`, and to what `residual` captures.

    See Also
    --------
    custom_root : a root of one function.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> def ridge_gradient(w, x, y, penalty):
    ...     return x.T @ (x @ w - y) + penalty * w
    >>> @wg.implicit(residual=ridge_gradient)
    ... def ridge(w, x, y, penalty):
    ...     for _ in range(200):
    ...         w = w - 0.1 * ridge_gradient(w, x, y, penalty)
    ...     return w
    >>> x, y = np.array([[1.0, 0.0], [1.0, 1.0]]), np.array([1.0, 3.0])
    >>> wg.grad(lambda penalty: np.sum(ridge(np.zeros(2), x, y, penalty)))(1.0).round(6)
    np.float64(-0.6)
    """
    function(residual, "implicit: residual")
    assert residual is not None
    if solver is None:
        return functools.partial(implicit, residual=residual, tangent_solve=tangent_solve)
    function(solver, "implicit: solver")
    run, equation = solver, residual

    @functools.wraps(run)
    def differentiable(initial_guess: Any, *args: Any) -> Any:
        return custom_root(
            lambda y: converted(equation)(y, *args),
            initial_guess,
            lambda _, guess: converted(run)(guess, *args),
            tangent_solve,
        )

    return differentiable
