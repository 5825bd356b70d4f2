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

from wengert._engine.core import pytree
from wengert._engine.core.conversion_hook import converted
from wengert._engine.core.handle import Handle, is_traced, value_of
from wengert._engine.core.op import lookup
from wengert._engine.core.recording import current_trace
from wengert._engine.core.runtime_checks import RuntimeChecks
from wengert._engine.core.validation import function
from wengert.errors import ConvergenceError, StructureError, at, user_line

from .functions import GraphFunction, Leaves
from .kept_graphs import KeptGraphs, by_graph
from .linear_methods import checked_method
from .linear_systems import LinearSystem, Solve
from .solver_calls import SolverRule, communicator_of, solver_call, tolerance, verified


def custom_root(
    f: Callable[[Any], Any],
    initial_guess: Any,
    solve: Callable[[Callable[[Any], Any], Any], Any],
    tangent_solve: Solve | str | None = None,
    *,
    check: bool | float = False,
) -> Any:
    """Find a root of a function with a given solver, with implicitly defined derivatives.

    Parameters
    ----------
    f : callable
        Takes and returns arrays or containers like `initial_guess`; captured tensors are
        differentiated.
    initial_guess : array or container of arrays
        The derivative with respect to it is zero. The solver gets a copy.
    solve : callable
        ``solve(f, initial_guess)`` returns the root; it is not differentiated.
    tangent_solve : callable or str, optional
        ``tangent_solve(g, b)`` solves ``g(x) == b`` for a linear function `g`: the derivative of
        `f` at the root, or its adjoint. By default the matrix is computed and factorized; methods
        by name are those of `custom_linear_solve`.
    check : bool or float, default False
        Whether to verify that `f` is small at the root: at most 1e-6, or this number, times its
        size at the guess plus that of its terms.

    Returns
    -------
    root : as `initial_guess`
        With ``f(root) == 0``.

    Raises
    ------
    StructureError, ShapeError, DtypeError
        `f` or `solve` return something else than arrays like `initial_guess`.
    SingularError
        The Jacobian at the root is singular, or nearly so, and a derivative is taken.
    ConvergenceError
        `f` is not small at the root; only with `check`.

    See Also
    --------
    implicit : solvers with arguments.
    custom_linear_solve : linear equations.

    Notes
    -----
    A derivative costs one linear system at the root, in both modes and at any order; it does not
    depend on how `solve` works. If `solve` did not converge, the derivative is meaningless: use
    `check`, which costs two values of `f` and one product with its Jacobian.

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
    method = checked_method(tangent_solve, f"{what}: tangent_solve")
    return _root(what, f, initial_guess, solve, method, tolerance(check, what))


def _root(
    name: str,
    f: Callable[[Any], Any],
    initial_guess: Any,
    solve: Callable[[Callable[[Any], Any], Any], Any],
    tangent_solve: Solve | str | None,
    check: float | None,
    has_aux: bool = False,
) -> Any:
    guess = Leaves.of(initial_guess, f"{name}: initial_guess")
    fun = converted(f)

    def of_leaves(*ys: Any) -> list[Any]:
        return guess.like(fun(guess.container(ys)), f"{name}: the result of the residual")

    residual, consts = GraphFunction.traced(of_leaves, guess.specs, "f")
    comm = communicator_of(residual, consts, guess.values)
    given = solve, tangent_solve, check, has_aux, comm
    rule = Root(name, residual, guess.structure, guess.specs, *given)
    results = solver_call(rule, [*consts, *guess.values])
    size = len(guess.specs)
    y = guess.container(results[:size])
    return (y, pytree.unflatten(rule.aux_structure, results[size:])) if has_aux else y


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
        tangent_solve: Solve | str | None,
        check: float | None = None,
        has_aux: bool = False,
        comm: Any = None,
    ) -> None:
        self.comm = comm
        self.name, self.residual = name, residual
        self.structure, self.specs = structure, tuple(specs)
        self.solve, self.tangent_solve, self.check_tolerance = solve, tangent_solve, check
        self.has_aux, self.aux_structure = has_aux, None
        self._key: tuple[Any, ...] = (name, residual, solve, tangent_solve, check, has_aux, comm)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Root) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def size_names(self) -> frozenset[str]:
        """The symbolic sizes in the function."""
        return self.residual.body.size_names

    @property
    def sends(self) -> bool:
        """Whether the residual exchanges messages."""
        return self.residual.sends

    def at_sizes(self, sizes: Any) -> Root:
        """The same equation with numbers for symbolic sizes."""
        residual = self.residual.at_sizes(sizes)
        specs = [n.spec for n in residual.outputs]
        more = self.solve, self.tangent_solve, self.check_tolerance, self.has_aux, self.comm
        return Root(self.name, residual, self.structure, specs, *more)

    def solution(self, operands: Sequence[Any]) -> list[Any]:
        """The root by the given solver."""
        captured = self.residual.captured
        consts, y0 = operands[:captured], operands[captured:]
        guess = Leaves(list(y0), self.specs, self.structure)

        def f(y: Any) -> Any:
            return guess.container(self.residual(consts, guess.like(y, "the argument of f")))

        # A solver may overwrite the guess.
        start = guess.container([x if isinstance(x, Handle) else np.array(x) for x in y0])
        result = converted(self.solve)(f, start)
        aux: list[Any] = []
        if self.has_aux:
            result, more = with_aux(result, self.name)
            aux, self.aux_structure = pytree.flatten(more)
        ys = guess.like(result, f"{self.name}: the result of solve")
        return [*self._verified(operands, ys, ys), *aux]

    def _verified(
        self, operands: Sequence[Any], ys: Sequence[Any], results: Sequence[Any]
    ) -> list[Any]:
        """The solution or its derivatives, or an error if the residual has to be small and is not.

        Derivatives need not depend on the solution, so that its check alone might be dropped.
        """
        if self.check_tolerance is None:
            return list(results)
        captured = self.residual.captured
        problem = operands[:captured], operands[captured:], ys
        return verified(self.residual, *problem, self.check_tolerance, self.name, results)

    def bars(
        self, operands: Sequence[Any], outs: Sequence[Any], ts: Sequence[Any], saved: Any = None
    ) -> list[Any]:
        """The cotangents: one solution with the adjoint Jacobian."""
        return self.needed_bars(operands, outs, ts, [True] * len(operands))

    def needed_bars(
        self,
        operands: Sequence[Any],
        outs: Sequence[Any],
        ts: Sequence[Any],
        needed: Sequence[bool],
        saved: Any = None,
    ) -> list[Any]:
        """The same for some of the operands."""
        size, count = len(self.specs), len(operands)
        only = tuple([k for k in range(self.residual.captured) if needed[k]])

        def pulled(*xs: Any) -> list[Any]:
            return self._bars(xs[:count], xs[count : count + size], xs[count + size :], only)

        return by_graph(
            self._key_of("bars", *only), pulled, [*operands, *self._converged(outs), *ts[:size]]
        )

    def _bars(
        self, operands: Sequence[Any], ys: Sequence[Any], ts: Sequence[Any], only: Sequence[int]
    ) -> list[Any]:
        captured = self.residual.captured
        consts = operands[:captured]
        system, values = self._linearized(consts, ys)
        multipliers = system.adjoint_solution(values, self._verified(operands, ys, ts))
        bars = self.residual.cotangents_of_captured(consts, ys, multipliers, only)
        return [
            *[None if c is None else -c for c in bars],
            *[None] * (len(operands) - captured),
        ]

    def dots(self, operands: Sequence[Any], outs: Sequence[Any], dots: Sequence[Any]) -> list[Any]:
        """The tangents: one solution with the Jacobian."""
        captured, size, count = self.residual.captured, len(self.specs), len(operands)
        given = [k for k, d in enumerate(dots[:captured]) if d is not None]

        def pushed(*xs: Any) -> list[Any]:
            found: list[Any] = [None] * captured
            for k, d in zip(given, xs[count + size :], strict=True):
                found[k] = d
            return self._dots(xs[:count], xs[count : count + size], found)

        values = [*operands, *self._converged(outs), *[dots[k] for k in given]]
        return [
            *by_graph(self._key_of("dots", *given), pushed, values),
            *[None] * (len(outs) - size),
        ]

    def _dots(self, operands: Sequence[Any], ys: Sequence[Any], dots: Sequence[Any]) -> list[Any]:
        consts = operands[: self.residual.captured]
        change = self.residual.tangent_of_captured(consts, ys, dots)
        if change is None:
            return [None] * len(self.specs)
        system, values = self._linearized(consts, ys)
        return system(values, self._verified(operands, ys, [-c for c in change]))

    def _key_of(self, *what: Any) -> Any:
        """A key of everything that a derivative depends on; None if a function is part of it."""
        if not isinstance(self.tangent_solve, str | None):
            return None
        return what, self.name, self.residual, self.tangent_solve, self.check_tolerance

    def _converged(self, outs: Sequence[Any]) -> list[Any]:
        """The solution; an error, or NaN where that is not possible, if it did not converge."""
        size = len(self.specs)
        if self.has_aux or len(outs) == size:
            return list(outs[:size])
        return only_if(outs[size], outs[:size], self.name, self.reason())

    def reason(self) -> str:
        """Why the solver did not converge, if it is known."""
        return ""

    def _linearized(
        self, consts: Sequence[Any], ys: Sequence[Any]
    ) -> tuple[LinearSystem, list[Any]]:
        """The Jacobian at the root as a linear system, and the values that it captures."""
        given = self._jacobian, self.structure, self.specs, self.tangent_solve
        system = LinearSystem(*given, comm=self.comm)
        return system.derivative, [*consts, *ys]

    @functools.cached_property
    def _jacobian(self) -> GraphFunction:
        """The product of the Jacobian and a vector; it captures constants and the solution."""
        return _products.get(self.residual, lambda: _product_of(self.residual, self.specs))


_products: KeptGraphs[GraphFunction] = KeptGraphs()


def _product_of(residual: GraphFunction, specs: Sequence[Any]) -> GraphFunction:
    captured, size = residual.captured, len(specs)

    def product(*xs: Any) -> list[Any]:
        consts, ys, v = xs[:captured], xs[captured : captured + size], xs[captured + size :]
        return residual.tangent(consts, ys, v)

    inputs = [n.spec for own in residual.inputs for n in own]
    traced = GraphFunction.traced_alone(product, [*inputs, *specs], "the Jacobian")
    return GraphFunction(traced.body, captured + size, traced.sends)


def with_aux(result: Any, name: str) -> tuple[Any, Any]:
    """The solution and the other results of a solver.

    Raises
    ------
    StructureError
        It returned something else than two values.
    """
    if not isinstance(result, tuple) or len(result) != 2:
        raise StructureError(
            f"{name}: with has_aux=True the solver must return the solution and other results, "
            f"(y, aux). It returned a {type(result).__name__}{at(user_line())}."
        )
    return result


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
    tangent_solve: Solve | str | None = None,
    *,
    check: bool | float = False,
    has_aux: bool = False,
) -> Any:
    """Make a solver differentiable, given the equation that its solution satisfies.

    Parameters
    ----------
    solver : callable
        ``solver(initial_guess, *args, **kwargs)`` returns the solution ``y``, an array or container
        of arrays like `initial_guess`; it is not differentiated. If it is omitted, a decorator is
        returned.
    residual : callable
        ``residual(y, *args, **kwargs)`` is zero at the solution, and is nested as ``y``. For a
        minimum it is the gradient, for a fixed point ``y - step(y, *args)``.
    tangent_solve, check
        As in `custom_root`.
    has_aux : bool, default False
        Whether the solver returns ``(y, aux)``: the solution, and a container of other arrays,
        whose derivative is zero (numbers of iterations, residuals).

    Returns
    -------
    callable
        The solver with derivatives with respect to all arguments except the guess, and to what
        `residual` captures.

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
        return functools.partial(
            implicit, residual=residual, tangent_solve=tangent_solve, check=check, has_aux=has_aux
        )
    function(solver, "implicit: solver")
    method = checked_method(tangent_solve, "implicit: tangent_solve")
    relative = tolerance(check, "implicit")
    run, equation = solver, residual
    name = getattr(solver, "__name__", "implicit")

    @functools.wraps(run)
    def differentiable(initial_guess: Any, *args: Any, **kwargs: Any) -> Any:
        return _root(
            name,
            lambda y: converted(equation)(y, *args, **kwargs),
            initial_guess,
            lambda _, guess: converted(run)(guess, *args, **kwargs),
            method,
            relative,
            has_aux,
        )

    return differentiable
