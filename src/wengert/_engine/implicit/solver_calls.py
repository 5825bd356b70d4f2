"""The call of a solver as one node, with the rule of its derivative.

The solver runs on values: no derivative is taken through its steps.  In a graph it is traced, and
is the body of the node; eagerly it is run, and the node is recorded with its results.

    SolverRule   the interface of a rule
    solver_call  the results of a solver for some operands
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.control_flow.call_rule import CustomRule
from wengert._engine.control_flow.closure_conversion import closed
from wengert._engine.control_flow.custom import custom_call
from wengert._engine.control_flow.eager_loops import becomes_node, strong
from wengert._engine.core.dispatch import apply
from wengert._engine.core.handle import Handle, describe, value_of
from wengert._engine.core.node import keep
from wengert._engine.core.op import lookup
from wengert._engine.core.recording import is_recording, no_grad
from wengert._engine.ops.messages import apart, with_messages

if TYPE_CHECKING:
    from wengert._engine.core.types import Array


class SolverRule(CustomRule):
    """A solver, and the derivative of its solution in both modes."""

    has_vjp = has_jvp = True

    @property
    def sends(self) -> bool:
        """Whether the equation exchanges messages with other processes."""
        return False

    def solution(self, operands: Sequence[Any]) -> Sequence[Any]:
        """The leaves of the solution; runs the solver."""
        raise NotImplementedError

    def values(self, operands: Sequence[Any]) -> tuple[Any, ...]:
        """The solution for plain operands."""
        with no_grad():
            return tuple([_plain(x) for x in self.solution(operands)])


def solver_call(rule: SolverRule, operands: Sequence[Any]) -> list[Any]:
    """The solution of a solver, as a node with the derivative of its rule.

    Parameters
    ----------
    rule : SolverRule
    operands : sequence
        Tensors and arrays; the derivative of the rule is with respect to all of them.
    """
    if rule.sends:  # its derivative exchanges messages itself
        return list(apart(functools.partial(_called, rule), *operands))
    return _called(rule, *operands)


def _called(rule: SolverRule, *operands: Any) -> list[Any]:
    if becomes_node(operands):
        return _in_graph(rule, operands)
    values = rule.values([value_of(x) for x in operands])
    if not (is_recording() and any([isinstance(x, Handle) for x in operands])):
        return list(values)
    kept = [keep(x) if type(x) is np.ndarray else x for x in operands]
    params = {"body": None, "rule": rule, "captured": 0}
    return list(apply(custom_call, kept, params, lambda *_, **__: values))


def _in_graph(rule: SolverRule, operands: Sequence[Any]) -> list[Any]:
    def of_operands(*handles: Any) -> list[Any]:
        solution = functools.partial(rule.solution, handles)
        return list(map(strong, with_messages(solution, handles) if rule.sends else solution()))

    closure = closed(of_operands, [describe(x) for x in operands], rule.name, hoist=False)
    closure.body.name = rule.name
    # What only the solver reads does not change the solution.
    captured = [
        lookup("stop_gradient")(x) if isinstance(x, Handle) else x for x in closure.captured
    ]
    arguments = [*captured, *operands]
    return list(custom_call(*arguments, body=closure.body, rule=rule, captured=len(captured)))


def _plain(x: Any) -> Array:
    value = value_of(x) if isinstance(x, Handle) else x
    return np.asarray(value)[()] if isinstance(value, bool | int | float | complex) else value
