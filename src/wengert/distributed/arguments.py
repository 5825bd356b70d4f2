"""Arguments of functions that exchange messages, checked.

message         an array as it is sent
operation_of    the name of a reduction
rank_of         the rank of a process
rank_or_none    the rank of a process, or None
tag_of          the tag of a message
grid_of         a communicator with a grid
check_rows      an array with a row for each process
check_containers    containers of arrays with the same structure in all processes
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.core import pytree
from wengert._engine.core.handle import Handle, describe, shape_of
from wengert._engine.core.message_order import current
from wengert._engine.core.spec import Spec
from wengert.errors import ArgumentError, DtypeError, ShapeError, at, user_line

from .communicators import CartesianCommunicator, Communicator
from .mpi_library import mpi

if TYPE_CHECKING:
    from wengert._engine.core.types import Array

REDUCTIONS = "sum", "mean", "max", "min", "prod", "any", "all"
_OF_MPI4PY = {
    "SUM": "sum", "MAX": "max", "MIN": "min", "PROD": "prod", "LOR": "any", "LAND": "all"
}  # fmt: skip
_DTYPES = frozenset("i1 i2 i4 i8 u1 u2 u4 u8 f4 f8 c8 c16".split())


def message(x: Any, what: str) -> Any:
    """An operand as it is sent."""
    given = x
    if not isinstance(x, Handle):
        x = np.asarray(x)
        x = x if x.dtype.isnative else x.astype(x.dtype.newbyteorder("="))
    spec = describe(x)
    if not isinstance(spec, Spec) or spec.dtype.kind not in "biufc":
        kind = "an array" if isinstance(given, np.ndarray) else f"a {type(given).__name__}"
        raise DtypeError(
            f"{what}: x is {kind} of {spec}, and MPI sends booleans and numbers. Give an array of "
            "them; the arrays of a container are sent one by one (wengert.tree.map), and other "
            f"objects by mpi4py's functions with small letters, which pickle{at(user_line())}."
        )
    if spec.dtype.kind != "b" and spec.dtype.str[1:] not in _DTYPES:
        raise DtypeError(
            f"{what}: {spec} cannot be sent by MPI. Convert it, x.astype(np.float64) or "
            f"x.astype(np.float32){at(user_line())}."
        )
    return x


def operation_of(op: Any) -> str:
    """The name of a reduction, given by name or as an operation of mpi4py."""
    if isinstance(op, mpi().Op):
        known = (ours for theirs, ours in _OF_MPI4PY.items() if op == getattr(mpi(), theirs))
        op = next(known, op)
    if not isinstance(op, str) or op not in REDUCTIONS:
        raise ArgumentError(
            f"op={op!r} is not one of {', '.join(map(repr, REDUCTIONS))}, or the same of mpi4py "
            f"({', '.join(f'MPI.{name}' for name in _OF_MPI4PY)}). Other reductions are computed "
            f"from allgather(x){at(user_line())}."
        )
    return op


def rank_of(rank: Any, comm: Communicator, name: str) -> int:
    """The rank of a process; `name` is that of the argument."""
    try:
        number = -1 if isinstance(rank, bool) else operator.index(rank)
    except TypeError:
        number = -1
    if not 0 <= number < comm.size:
        hint = ""
        if isinstance(rank, Handle):
            hint = ". A rank is a number that is known when the function is traced"
        elif isinstance(rank, int) and name == "source" and rank == mpi().ANY_SOURCE:
            hint = (
                ". Give the rank of the sender instead of MPI.ANY_SOURCE: the cotangent is sent "
                "back to it"
            )
        raise ArgumentError(
            f"{name}={rank!r} is not a process of {comm.name}, which are 0 to {comm.size - 1}{hint}"
            f"{at(user_line())}."
        )
    return number


def rank_or_none(rank: Any, comm: Communicator, name: str) -> int | None:
    """The rank of a process; None for None and MPI.PROC_NULL."""
    if rank is None or (type(rank) is int and rank == mpi().PROC_NULL):
        return None
    return rank_of(rank, comm, name)


def tag_of(tag: Any) -> int:
    """The tag of a message."""
    if not isinstance(tag, int | np.integer) or isinstance(tag, bool) or not 0 <= tag < 32768:
        raise ArgumentError(f"tag={tag!r} is not an integer from 0 to 32767{at(user_line())}.")
    return int(tag)


def grid_of(comm: Any, what: str) -> CartesianCommunicator:
    """A communicator with a grid."""
    if not isinstance(comm, CartesianCommunicator):
        raise ArgumentError(
            f"{what} needs processes on a grid, and comm is a {type(comm).__name__}. Make one, "
            f"wengert.distributed.world().cartesian(){at(user_line())}."
        )
    return comm


def check_rows(x: Array, comm: Communicator, what: str) -> None:
    """Raise ShapeError if an array does not have a row for each process."""
    shape = shape_of(x)
    if not shape or shape[0] != comm.size:
        raise ShapeError(
            f"{what}: x has shape {tuple(shape)}, and needs a row for each of the {comm.size} "
            f"processes: shape ({comm.size}, ...){at(user_line())}."
        )


def check_containers(x: Any, comm: Communicator, what: str) -> None:
    """Raise CommunicationError if x is a container, and not the same one in all processes.

    Its arrays are sent one by one, so processes whose containers differ would go on with messages
    that do not match. A traced program is compared as a whole.
    """
    leaves, structure = pytree.flatten(x)
    token = current()
    if structure.num_nodes == 1 or (token is not None and token.node.is_traced):
        return
    specs = ", ".join(str(describe(message(leaf, what))) for leaf in leaves)
    comm.check(what, str(structure), f"with {specs}")
