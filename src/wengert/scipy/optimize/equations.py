"""A solver and the equation of its solution, and functions made from the graphs of the user's.

    uses_tensors         whether a solution depends on tensors
    Equation             the rule: a solver of SciPy, and the derivative of the equation
    Solved               the results of a solver
    raise_unconverged    SciPy's error for a solver that has not converged
    solve                the solution of some functions, as a node with this rule
    solve_equation       the same for graphs
    TracedFunctions      the user's functions as graphs, and functions made from these
    DerivedFunction      a derivative of one function of the unknowns

The user's functions are traced at each call, since what they capture may have changed.  Gradients,
conditions of a minimum and the like depend on their graphs alone: they are kept for equal graphs,
with captured values, and the numbers in them, as operands (implicit/kept_graphs.py).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np

from wengert._engine.core import pytree
from wengert._engine.core.handle import Handle, describe, is_traced, value_of
from wengert._engine.core.recording import current_trace, no_grad
from wengert._engine.core.spec import Spec
from wengert._engine.core.symbolic.dim import Dim
from wengert._engine.implicit.functions import GraphFunction
from wengert._engine.implicit.kept_graphs import KeptGraphs, with_lifted_constants
from wengert._engine.implicit.linear_systems import Solve
from wengert._engine.implicit.roots import Root
from wengert._engine.implicit.solver_calls import solver_call
from wengert.errors import at, user_line

from .solver_operation import Function, Outcome, Solver, run_solver, scipy_solver

# From functions of the unknowns, and the values that are shared, to another function.
Maker = Callable[[Sequence[Function], Sequence[Any]], Function]
_kept: KeptGraphs[GraphFunction] = KeptGraphs()


class TracedFunctions(NamedTuple):
    """Functions of the user as graphs, which have the same captured values.

    graphs : sequence of GraphFunction
    consts : list
        The captured values, then the values that are shared.
    shared : int
        The number of the latter; the graphs do not have them.
    name : str
    """

    graphs: Sequence[GraphFunction]
    consts: list[Any]
    shared: int
    name: str

    @classmethod
    def of(
        cls, functions: Sequence[Function], spec: Spec, name: str, shared: Sequence[Any] = ()
    ) -> TracedFunctions:
        """Trace functions of one argument.

        Parameters
        ----------
        functions : sequence of callable
        spec : Spec
            Of the argument.
        name : str
            For messages.
        shared : sequence
            Further values on which functions that are made from these depend.
        """
        of_leaves = [lambda *ys, f=f: [f(*ys)] for f in functions]
        graphs, consts = GraphFunction.traced_together(of_leaves, [spec], name)
        if current_trace() is None:
            bodies, values = with_lifted_constants([g.body for g in graphs], len(consts))
            consts = [*consts, *values]
            graphs = [GraphFunction(body, len(consts)) for body in bodies]
        return cls(graphs, [*consts, *shared], len(shared), name)

    def made(self, key: Hashable, make: Maker, spec: Spec) -> GraphFunction:
        """A function that is made from these, as a graph with all captured and shared values.

        Parameters
        ----------
        key : hashable
            Of everything else that the function depends on.
        make : callable
        spec : Spec
            Of its argument.
        """
        count = len(self.consts)
        own = count - self.shared
        shared = [describe(x) for x in self.consts[own:]]
        captured = self.graphs[0].body.inputs[:own] if self.graphs else []
        specs = [*[n.spec for n in captured], *shared, spec]

        def made(*xs: Any) -> list[Any]:
            given = [lambda y, f=f: f(xs[:own], [y])[0] for f in self.graphs]
            return [make(given, xs[own:count])(xs[-1])]

        def traced() -> GraphFunction:
            found = GraphFunction.traced_alone(made, specs, self.name)
            return GraphFunction(found.body, count)

        return _kept.get((key, spec, *shared, *self.graphs), traced)


class DerivedFunction(NamedTuple):
    """A function that is the derivative of another one of the unknowns.

    position : of the other among the functions.
    transform : from a function to its derivative.
    """

    position: int
    transform: Callable[[Function], Function]

    def traced(self, functions: Sequence[GraphFunction]) -> GraphFunction:
        """The graph, made from that of the other; it captures the same values."""
        given = functions[self.position]
        return _kept.get((given, self.transform), lambda: self._made(given))

    def _made(self, given: GraphFunction) -> GraphFunction:
        def derivative(*xs: Any) -> list[Any]:
            return [self.transform(lambda y: given(xs[:-1], [y])[0])(xs[-1])]

        specs = [n.spec for n in given.body.inputs]
        found = GraphFunction.traced_alone(derivative, specs, given.body.name)
        return GraphFunction(found.body, given.captured)


def uses_tensors(arguments: Any, call: Callable[[], Any]) -> bool:
    """Whether tensors are among the arguments of a solver, or captured by its function.

    Parameters
    ----------
    arguments : container
    call : callable
        Calls the function with these arguments.
    """
    if any([isinstance(x, Handle | Dim) for x in pytree.flatten(arguments)[0]]):
        return True
    with no_grad():
        result = call()
    return any([isinstance(x, Handle) for x in pytree.flatten(result)[0]])


class Equation(Root):
    """A solver of SciPy, and the equation of its solution.

    Parameters
    ----------
    name : str
    functions : sequence of GraphFunction
        What the solver calls, and the equation; they have the same captured values.
    residual : int
        Which of them is zero at the solution.
    spec : Spec
        Of the unknowns.
    solver : Solver
    count : int
        How many of the functions the solver calls.
    tangent_solve : callable or str, optional
        As in `wengert.custom_root`.
    """

    def __init__(
        self,
        name: str,
        functions: Sequence[GraphFunction],
        residual: int,
        spec: Spec,
        solver: Solver,
        count: int,
        tangent_solve: Solve | str | None = None,
    ) -> None:
        equation = functions[residual]
        super().__init__(name, equation, pytree.flatten(0.0)[1], [spec], solver, tangent_solve)
        self.functions, self.position, self.count = tuple(functions), residual, count
        self.outcome: Outcome | None = None
        self._key = (name, equation, solver, (tangent_solve, *self.functions))

    def at_sizes(self, sizes: Any) -> Equation:
        """The same equation with numbers for symbolic sizes."""
        functions = [f.at_sizes(sizes) for f in self.functions]
        body = functions[self.position].body
        spec = body.inputs[functions[self.position].captured].spec
        return Equation(
            self.name, functions, self.position, spec, self.solve, self.count, self.tangent_solve
        )

    def solution(self, operands: Sequence[Any]) -> list[Any]:
        """The solution, whether the solver has converged, its status, and counts."""
        bodies = tuple([f.body for f in self.functions[: self.count]])
        captured = self.residual.captured
        if any(map(is_traced, operands)):
            in_graph = getattr(self.solve, "in_graph", None)
            found = None if in_graph is None else in_graph(*self._for_graph(operands))
            if found is not None:
                return list(found)
            return list(
                scipy_solver(*operands, functions=bodies, captured=captured, solver=self.solve)
            )
        self.outcome = outcome = run_solver(self.solve, bodies, captured, operands)
        return list(outcome[:5])

    def _for_graph(self, operands: Sequence[Any]) -> tuple[list[Function], list[Any]]:
        """The functions that the solver calls, for traced values, and the starts."""
        captured = self.residual.captured
        consts, starts = operands[:captured], operands[captured:]

        def called(f: GraphFunction) -> Function:
            return lambda y: f(consts, [y])[0]

        return [called(f) for f in self.functions[: self.count]], list(starts)

    def reason(self) -> str:
        """The message of SciPy's result."""
        message = getattr(self.outcome and self.outcome.result, "message", "")
        return f" ({str(message).rstrip('.')})" if message else ""


class Solved(NamedTuple):
    """The results of a solver, as tensors or plain values; SciPy's result if it was run.

    `functions` evaluate the graphs of its functions, without calling those of the user.
    """

    solution: Any
    success: Any
    status: Any
    nfev: Any
    nit: Any
    result: Any
    functions: Sequence[Function] = ()


def raise_unconverged(found: Solved, name: str, maxiter: int) -> None:
    """Raise SciPy's RuntimeError if a solver has not converged; in a graph it is not known.

    Raises
    ------
    RuntimeError
        It has not converged.
    """
    if not is_traced(found.success) and not np.all(value_of(found.success)):
        raise RuntimeError(
            f"{name} failed to converge after {maxiter} iterations{at(user_line())}."
        )


def solve(
    name: str,
    functions: Sequence[Function | DerivedFunction],
    residual: int,
    spec: Spec,
    solver: Solver,
    starts: Sequence[Any],
    count: int | None = None,
    tangent_solve: Solve | str | None = None,
) -> Solved:
    """The solution of a solver, with the derivative of an equation.

    Parameters
    ----------
    name : str
        For messages.
    functions : sequence of callable
        Of the unknowns; the solver calls the first `count`. Derivatives come after their functions.
    residual : int
        Which of them is zero at the solution.
    spec : Spec
        Of the unknowns.
    solver : Solver
    starts : sequence
        Initial guesses or brackets.
    count : int, optional
        By default all functions.
    tangent_solve : callable or str, optional
        As in `wengert.custom_root`.
    """
    given = [f for f in functions if not isinstance(f, DerivedFunction)]
    traced = TracedFunctions.of(given, spec, name)
    remaining, graphs = iter(traced.graphs), list[GraphFunction]()
    for f in functions:
        graphs.append(f.traced(graphs) if isinstance(f, DerivedFunction) else next(remaining))
    used = len(functions) if count is None else count
    rule = Equation(name, graphs, residual, spec, solver, used, tangent_solve)
    return solve_equation(rule, traced.consts, starts)


def solve_equation(rule: Equation, consts: Sequence[Any], starts: Sequence[Any]) -> Solved:
    """The solution of an equation, for captured values and initial guesses or brackets."""
    solution, success, status, nfev, nit = solver_call(rule, [*consts, *starts])
    known = None if rule.outcome is None else rule.outcome.result
    called = [lambda y, f=f: f(consts, [y])[0] for f in rule.functions]
    return Solved(solution, success, status, nfev, nit, known, called)
