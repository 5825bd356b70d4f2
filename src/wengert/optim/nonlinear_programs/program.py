"""A nonlinear program as graphs, the conditions of its solution, and the derivative.

With ``L = f + y g + nu x``, limits ``l <= g <= u`` of the constraints and ``a <= x <= b`` of the
unknowns, the conditions of Karush, Kuhn and Tucker are equations of ``z = (x, y, nu)``:

    f_x + y g_x + nu = 0
    g = u where y > 0,  g = l where y < 0 or l = u,  y = 0 elsewhere
    x = b where nu > 0, x = a where nu < 0 or a = b, nu = 0 elsewhere

The solver decides which limits are active: it returns multipliers that are zero elsewhere
(newton_steps.py).  A derivative of the solution solves one linear system with their Jacobian; that
of the minimal value is ``L_theta``, with the active limits for g and x (envelope theorem).

    Traced             the functions of a program as graphs
    NonlinearProgram   the rule
    solved             solution and minimal value, with derivatives
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from wengert._engine.autodiff.grad import grad
from wengert._engine.control_flow.closure_conversion import closed, together
from wengert._engine.control_flow.eager_loops import becomes_node, strong
from wengert._engine.core import pytree
from wengert._engine.core.graph_classes import Body
from wengert._engine.core.graph_copies import inline_graph
from wengert._engine.core.handle import Handle, describe, is_traced, value_of, wrap
from wengert._engine.core.node import Node, constant
from wengert._engine.core.recording import current_trace, is_recording, tracing_body
from wengert._engine.core.spec import Spec
from wengert._engine.core.tracing import placeholder
from wengert._engine.implicit.functions import GraphFunction
from wengert._engine.implicit.kept_graphs import KeptGraphs, with_lifted_constants
from wengert._engine.implicit.roots import Root
from wengert._engine.implicit.solver_calls import solver_call
from wengert.scipy.optimize.optimality import minimal_value_of

from .newton_steps import SparseConditions, is_active
from .problem_data import ProgramFunctions, ProgramOutcome, SolverSettings, as_handle
from .solve_program import leaves_of, nonlinear_program, solve_program

_LIMITS = 4
_DENSE_SIZE = 300  # equations up to which the linear system of a derivative is dense


class Traced(NamedTuple):
    """The functions of a program as graphs, and the values that they capture."""

    functions: ProgramFunctions
    consts: list[Any]

    @classmethod
    def of(cls, fun: Any, constraints: Any, size: int, leaves: Sequence[Any]) -> Traced:
        """Trace functions of a vector and of further leaves, which become captured values."""
        vector = Spec((size,), np.dtype(float))
        specs = [_spec_of(x) for x in leaves]
        closures = [
            closed(lambda *v, f=f: [f(v[-1], v[:-1])], [*specs, vector], name, hoist=False)
            for f, name in ((fun, "the objective"), (constraints, "the constraints"))
        ]
        bodies, captured = together(closures)
        consts = [_plain_if_constant(x) for x in (*captured, *leaves)]
        # Patterns depend on the values of indices, so integers are constants.
        known = [isinstance(x, np.ndarray) and x.dtype.kind in "biu" for x in consts]
        objective, constrained = [_with_constants(body, consts, known) for body in bodies]
        objective.name, constrained.name = "objective", "constraints"
        consts = [x for x, is_known in zip(consts, known, strict=True) if not is_known]
        if current_trace() is None:  # so that code is kept for other numbers
            given = [objective, constrained], len(consts)
            (objective, constrained), values = with_lifted_constants(*given)
            consts += values
        return cls(ProgramFunctions(objective, constrained, len(consts)), consts)


def _plain_if_constant(x: Any) -> Any:
    """A captured value; tensors that are constants as arrays."""
    if isinstance(x, Handle) and type(x.node) is not Node and not is_traced(x):
        return np.asarray(value_of(x))
    return x


def _with_constants(body: Body, consts: Sequence[Any], known: Sequence[bool]) -> Body:
    """A body with the values of some of its captured inputs as constants."""
    if not any(known) and not any([n.spec.weak for n in body.outputs]):
        return body
    inputs, rest = body.inputs[: len(consts)], body.inputs[len(consts) :]
    with tracing_body():
        given = [
            constant(x) if is_known else placeholder(n.spec)
            for x, n, is_known in zip(consts, inputs, known, strict=True)
        ]
        ends = [placeholder(n.spec) for n in rest]
        outputs = inline_graph(body, [wrap(n) for n in (*given, *ends)])
    remaining = [n for n, is_known in zip(given, known, strict=True) if not is_known]
    return Body(*[strong(y).node for y in map(as_handle, outputs)], inputs=[*remaining, *ends])


def _spec_of(x: Any) -> Spec:
    spec: Any = describe(x)
    return Spec(spec.shape, spec.dtype)


class Conditions:
    """The conditions of a solution, as a function of captured values, limits and z."""

    def __init__(self, functions: ProgramFunctions) -> None:
        self.functions = functions

    def parts(self, z: Any) -> tuple[Any, Any, Any]:
        """Unknowns, multipliers of constraints, multipliers of bounds."""
        n, m = self.functions.size, self.functions.constraint_count
        return z[:n], z[n : n + m], z[n + m :]

    def __call__(self, *operands: Any) -> Any:
        """The equations."""
        own, captured = self.functions, self.functions.captured
        consts, limits, z = operands[:captured], operands[captured:-1], operands[-1]
        x, y, nu = self.parts(z)
        slope = grad(lambda x: own.lagrangian(x, 1.0, y, *consts))(x)
        rows = [slope + nu]
        if own.constraint_count:
            rows.append(_distance(y, own.constrained(x, *consts), limits[2], limits[3], y))
        rows.append(_distance(nu, x, limits[0], limits[1], nu))
        return np.concatenate(rows)

    def lagrangian(self, consts: Sequence[Any], limits: Sequence[Any], z: Any) -> Any:
        """The Lagrange function, with active limits for x and g."""
        own = self.functions
        x, y, nu = self.parts(z)
        at_limits = x - _distance(nu, x, *limits[:2])
        value = own.value(at_limits, *consts)
        if own.constraint_count:
            g = own.constrained(at_limits, *consts)
            value = value + y @ _distance(y, g, *limits[2:])
        return value


def _distance(multipliers: Any, values: Any, lower: Any, upper: Any, otherwise: Any = 0.0) -> Any:
    """The distance from the active limit, or something else if there is none."""
    below, above = is_active(multipliers, lower, upper)
    return np.where(below, values - lower, np.where(above, values - upper, otherwise))


class NonlinearProgram(Root):
    """A nonlinear program; operands are captured values, limits, and where the solver begins.

    The first of the captured values are indices that only the conditions capture.
    """

    def __init__(
        self, functions: ProgramFunctions, settings: SolverSettings, residual: GraphFunction
    ) -> None:
        spec = Spec((2 * functions.size + functions.constraint_count,), np.dtype(float))
        super().__init__("nlp", residual, pytree.flatten(0.0)[1], [spec], solve_program, None)
        self.functions, self.settings = functions, settings
        self.outcome: ProgramOutcome | None = None
        self._key = ("nlp", functions, settings)

    @classmethod
    def of(
        cls, functions: ProgramFunctions, settings: SolverSettings
    ) -> tuple[NonlinearProgram, list[Any]]:
        """The program with the graph of its conditions, and the indices that they capture."""
        residual, _, _, indices = _graphs.get(functions, lambda: _made(functions))
        return cls(functions, settings, residual), list(indices)

    def at_sizes(self, sizes: Any) -> NonlinearProgram:
        """The program itself: its sizes are numbers."""
        return self

    def solution(self, operands: Sequence[Any]) -> list[Any]:
        """The solution, whether it was found, the objective, the status, and the iterations."""
        own = operands[self.residual.captured - self.functions.captured - _LIMITS :]
        if any(map(is_traced, operands)):
            given = {"functions": self.functions, "settings": self.settings}
            return list(nonlinear_program(*own, **given))
        self.outcome = solve_program(self.functions, self.settings, own)
        return list(leaves_of(self.outcome))

    def _linearized(self, consts: Sequence[Any], ys: Sequence[Any]) -> Any:
        """The Jacobian of the conditions as a linear system: sparse if it is large."""
        if self.specs[0].size <= _DENSE_SIZE:
            return super()._linearized(consts, ys)
        skipped = len(consts) - self.functions.captured - _LIMITS
        return SparseConditions(self.functions, skipped), [*consts, *ys]

    def reason(self) -> str:
        """The message of the solver."""
        return f" ({self.outcome.message})" if self.outcome is not None else ""


def _spec_of_node(node: Any) -> Spec:
    return Spec(node.spec.shape, node.spec.dtype)


class _ProgramGraphs(NamedTuple):
    """What is made from the functions of a program, and the indices that it captures.

    They capture indices, captured values of the program, and limits.
    """

    conditions: GraphFunction
    value: GraphFunction
    lagrangian: GraphFunction
    indices: Sequence[Any]


_graphs: KeptGraphs[_ProgramGraphs] = KeptGraphs()


def _made(functions: ProgramFunctions) -> _ProgramGraphs:
    conditions, own = Conditions(functions), functions.captured
    specs = [_spec_of_node(n) for n in functions.objective.inputs[:own]]
    count = functions.constraint_count
    sizes = [functions.size] * 2 + [count] * 2
    specs += [Spec((n,), np.dtype(float)) for n in (*sizes, sum(sizes) - count)]

    def value(*v: Any) -> list[Any]:
        return [functions.value(conditions.parts(v[-1])[0], *v[:own])]

    def lagrangian(*v: Any) -> list[Any]:
        return [conditions.lagrangian(v[:own], v[own:-1], v[-1])]

    graphs, indices = GraphFunction.traced_together(
        [lambda *v: [conditions(*v)], value, lagrangian], specs, "the conditions"
    )
    captured = len(indices) + own + _LIMITS
    residual, fun, envelope = [GraphFunction(g.body, captured) for g in graphs]
    return _ProgramGraphs(residual, fun, envelope, indices)


class ProgramSolution(NamedTuple):
    """A solution, as tensors or plain values, and the outcome if the solver was run."""

    x: Any
    multipliers: Any
    bound_multipliers: Any
    fun: Any
    success: Any
    status: Any
    nit: Any
    outcome: ProgramOutcome | None


def solved(
    traced: Traced, limits: Sequence[Any], starts: Sequence[Any], settings: Any
) -> ProgramSolution:
    """The solution of a program, with derivatives if something may be differentiated.

    Parameters
    ----------
    traced : Traced
    limits : sequence
        Of the unknowns, then of the constraints.
    starts : sequence
        Unknowns, multipliers, and multipliers of bounds where the solver begins.
    settings : SolverSettings
    """
    functions = traced.functions
    operands = [*traced.consts, *limits, *starts]
    differentiated = is_recording() and any([isinstance(x, Handle) for x in operands])
    if not differentiated and not becomes_node(operands):
        outcome = solve_program(functions, settings, [value_of(x) for x in operands])
        more = outcome.success, outcome.status, outcome.nit
        own = outcome.x, outcome.multipliers, outcome.bound_multipliers
        return ProgramSolution(*own, outcome.fun, *more, outcome)
    rule, indices = NonlinearProgram.of(functions, settings)
    z, success, _, status, nit = solver_call(rule, [*indices, *operands])
    graphs = _graphs.get(functions, lambda: _made(functions))
    captured = [*indices, *traced.consts, *limits]
    fun = minimal_value_of(graphs.value, graphs.lagrangian, captured, z, success, rule.reason())
    conditions = Conditions(functions)
    return ProgramSolution(*conditions.parts(z), fun, success, status, nit, rule.outcome)
