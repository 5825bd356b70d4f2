"""Arguments of functions that exchange messages, checked.

message         an array as it is sent
operation_of    the name of a reduction
rank_of         the rank of a process
tag_of          the tag of a message
grid_of         a communicator with a grid
check_rows      an array with a row for each process
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.core.handle import Handle, describe, shape_of
from wengert._engine.core.spec import Spec
from wengert.errors import ArgumentError, DtypeError, ShapeError, at, user_line

from .communicators import CartesianCommunicator, Communicator

if TYPE_CHECKING:
    from wengert._engine.core.types import Array

REDUCTIONS = "sum", "mean", "max", "min", "prod", "any", "all"
_OF_MPI4PY = {
    "MPI_SUM": "sum", "MPI_MAX": "max", "MPI_MIN": "min", "MPI_PROD": "prod", "MPI_LOR": "any",
    "MPI_LAND": "all",
}  # fmt: skip
_DTYPES = frozenset("? i1 i2 i4 i8 u1 u2 u4 u8 f4 f8 c8 c16".split())


def message(x: Any, what: str) -> Any:
    """An operand as it is sent."""
    if not isinstance(x, Handle):
        x = np.asarray(x)
    spec = describe(x)
    code = spec.dtype.kind if spec.dtype.kind == "b" else spec.dtype.str[1:]
    if not isinstance(spec, Spec) or ("?" if code == "b" else code) not in _DTYPES:
        raise DtypeError(
            f"{what}: {spec} cannot be sent by MPI. Convert it, x.astype(np.float64) or "
            f"x.astype(np.float32){at(user_line())}."
        )
    return x


def operation_of(op: Any) -> str:
    """The name of a reduction, given by name or as an operation of mpi4py."""
    name = op if isinstance(op, str) else _OF_MPI4PY.get(getattr(op, "name", ""), "")
    if name not in REDUCTIONS:
        raise ArgumentError(
            f"op={op!r} is not one of {', '.join(map(repr, REDUCTIONS))}{at(user_line())}."
        )
    return name


def rank_of(rank: Any, comm: Communicator, name: str) -> int:
    """The rank of a process; `name` is that of the argument."""
    try:
        number = operator.index(rank)
    except TypeError:
        number = -1
    if not 0 <= number < comm.size:
        raise ArgumentError(
            f"{name}={rank!r} is not a process of {comm.name}, which are 0 to {comm.size - 1}"
            f"{at(user_line())}."
        )
    return number


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
