"""Unknowns of equations that exchange messages: parts, or the same in all processes.

Usually each process has a part of the unknowns, and the adjoint of the equation is the transposed
map between the values of all processes together.  If all processes have the same unknowns (a
least-squares problem whose data are divided), these are one variable: their cotangents are added
over the processes, and so are those of the adjoint product.  Which of the two it is follows from
the messages (autodiff/messages.py): of the product, and of the right-hand side.

    communicator_of    the processes that have the same unknowns
    refuse_unclear     the error if it is not known whether they have
    means              arrays, averaged over the processes
    shared             the unknowns as one variable
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wengert._engine.autodiff.messages import LOCAL, origins_of, origins_of_values
from wengert._engine.core.op import lookup
from wengert.errors import NotDifferentiableError, at, user_line

from .functions import GraphFunction

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
