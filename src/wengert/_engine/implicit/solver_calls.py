"""The call of a solver as one node, with the rule of its derivative.

The solver runs on values: no derivative is taken through its steps.  In a graph it is traced, and
is the body of the node; eagerly it is run, and the node is recorded with its results.

    SolverRule   the interface of a rule
    solver_call  the results of a solver for some operands

Unknowns of equations that exchange messages: parts, or the same in all processes.

Usually each process has a part of the unknowns, and the adjoint of the equation is the transposed
map between the values of all processes together.  If all processes have the same unknowns (a
least-squares problem whose data are divided), these are one variable: their cotangents are added
over the processes, and so are those of the adjoint product.  Which of the two it is follows from
the messages (autodiff/messages.py): of the product, and of the right-hand side.

    communicator_of    the processes that have the same unknowns
    refuse_unclear     the error if it is not known whether they have
    means              arrays, averaged over the processes
    shared             the unknowns as one variable

The check that the solution of a solver satisfies the equation from which derivatives are taken.

tolerance   the relative tolerance that was requested
verified    the solution, or an error if the residual is not small
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.autodiff.messages import LOCAL, origins_of, origins_of_values
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
from wengert.errors import ArgumentError, NotDifferentiableError, at, user_line

from .functions import GraphFunction, raveled

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


UNCLEAR = "unclear"
_UNKNOWN = "unknown"  # the origin of the unknowns themselves


def communicator_of(product: GraphFunction, consts: Sequence[Any], given: Sequence[Any]) -> Any:
    """The communicator whose processes have the same unknowns; None if each has a part.

    Parameters
    ----------
    product : GraphFunction
        A product with the matrix, or a residual.
    consts : sequence
        The values that it captures.
    given : sequence
        The right-hand side, or the initial guess.

    Returns
    -------
    Communicator or None or UNCLEAR
        UNCLEAR if the product is the same in all processes and what is given is not known to be,
        or the other way round.
    """
    if not product.sends:
        return None
    captured, leaves = product.inputs
    known = dict(zip(captured, origins_of_values(consts), strict=True))
    known |= dict.fromkeys(leaves, frozenset([_UNKNOWN]))
    found = frozenset[Any]().union(*origins_of(product.outputs, known)) - {_UNKNOWN}
    right = frozenset[Any]().union(*origins_of_values(given))
    same = [bool(x) and LOCAL not in x for x in (found, right)]
    if not any(same):
        return None
    every = found | right
    return next(iter(every)) if all(same) and len(every) == 1 else UNCLEAR


def refuse_unclear(comm: Any) -> None:
    """Raise if it is not known whether processes have the same unknowns.

    Raises
    ------
    NotDifferentiableError
        The derivative would be another one.
    """
    if comm is UNCLEAR:
        raise NotDifferentiableError(
            "the gradient of a solution whose equation exchanges messages: the equation or its "
            "right-hand side (the initial guess of a root) is the same in all processes, and the "
            "other one is not known to be, so it is not known whether each process has a part of "
            "the unknowns. If all have the same, pass the right-hand side (the guess) and arrays "
            "that the function captures through distributed.replicated(); if each has a part, pass "
            f"the argument of the function through distributed.varying(){at(user_line())}."
        )


def means(ts: Sequence[Any], comm: Any) -> list[Any]:
    """Arrays, averaged over the processes."""
    add: Any = lookup("mpi.allreduce")
    return [add.ordered(t, comm=comm) / comm.size for t in ts]


def shared(xs: Sequence[Any], comm: Any) -> list[Any]:
    """The unknowns as one variable, whose cotangents are added over the processes."""
    replicated: Any = lookup("mpi.replicated")
    return [replicated.ordered(x, comm=comm) for x in xs]


_TOLERANCE = 1e-6  # by default
_TOLERANCE_SINGLE = 1e-3  # by default, in single precision


def tolerance(check: Any, what: str) -> float | None:
    """The relative tolerance; None if the residual is not checked, 0 for the default.

    Raises
    ------
    ArgumentError
        It is neither a bool nor a positive number.
    """
    if check is False or check is None:
        return None
    if check is True:
        return 0.0
    if not isinstance(check, int | float) or not 0.0 < check < 1.0:
        raise ArgumentError(
            f"{what}: check={check!r} is not a relative tolerance between 0 and 1. Use check=True "
            f"for the default{at(user_line())}."
        )
    return float(check)


def verified(
    residual: GraphFunction,
    consts: Sequence[Any],
    guess: Sequence[Any],
    ys: Sequence[Any],
    relative: float,
    what: str,
    results: Sequence[Any],
) -> list[Any]:
    """The results, if the residual at the solution is small.

    It is compared with the residual at the guess, and with the size of the terms of the equation:
    that of the product of the Jacobian and the solution, which for ``a @ y - b`` is ``a @ y``.

    Raises
    ------
    ConvergenceError
        The residual is not small, or NaN; in a compiled function, when it runs.
    """
    fixed, start, solution = [
        [lookup("stop_gradient")(x) for x in values] for values in (consts, guess, ys)
    ]
    size = _largest(residual(fixed, solution))
    terms = _largest(residual.tangent(fixed, solution, solution))
    scale = _largest(residual(fixed, start)) + terms
    default = _TOLERANCE_SINGLE if scale.dtype == np.float32 else _TOLERANCE
    relative = relative or default
    limit = relative * scale + float(np.finfo(scale.dtype).tiny)
    return [lookup("refuse_residual")(y, size, limit, what=what) for y in results]


def _largest(values: Sequence[Any]) -> Any:
    return np.max(np.abs(raveled(values)))
