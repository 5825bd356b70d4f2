"""Messages between two processes.

sendrecv, send, recv    a message, by the ranks of its sender and receiver
shift                   messages along an axis of a grid
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert._engine.core.handle import describe
from wengert.errors import ShapeError, at, user_line

from . import operations
from .arguments import grid_of, message, rank_or_none, tag_of
from .communicators import CartesianCommunicator, communicator_of


def sendrecv(
    x: Any,
    dest: int | None,
    source: int | None,
    like: Any = None,
    tag: int = 0,
    comm: Any = None,
) -> Any:
    """Send an array to one process, and receive one from another.

    Parameters
    ----------
    x : array_like or Tensor
        What is sent.
    dest, source : int or None
        The ranks of the receiver and the sender. With None (or MPI.PROC_NULL) nothing is sent;
        nothing is received, and the result is zeros.
    like : array_like or Tensor, optional
        An array of the shape and dtype of what is received; by default `x`.
    tag : int, default 0
        The message is received by the process that asks for the same tag.
    comm : Communicator or mpi4py communicator, optional

    Returns
    -------
    array or Tensor
        What was received.

    Raises
    ------
    CommunicationError
        What arrives has another size than `like`. Its dtype is not compared.

    Notes
    -----
    The cotangent is sent in the opposite direction.

    Examples
    --------
    >>> from wengert import distributed
    >>> float(distributed.sendrecv(2.0, dest=0, source=0))
    2.0
    """
    comm = communicator_of(comm)
    x = message(x, "sendrecv")
    spec = describe(x if like is None else message(like, "sendrecv"))
    dest, source = rank_or_none(dest, comm, "dest"), rank_or_none(source, comm, "source")
    if dest == source == comm.rank and spec != describe(x):  # not all MPI libraries detect it
        raise ShapeError(
            f"sendrecv: process {comm.rank} sends {describe(x)} to itself, and expects {spec}. "
            f"Receive an array of the shape and dtype that is sent{at(user_line())}."
        )
    return operations.exchange.ordered(
        x,
        comm=comm,
        dest=dest,
        source=source,
        tag=tag_of(tag),
        shape=spec.shape,
        dtype=spec.dtype,
    )


def send(x: Any, dest: int | None, tag: int = 0, comm: Any = None) -> None:
    """Send an array to another process, which calls `recv`.

    Parameters
    ----------
    x : array_like or Tensor
    dest : int or None
        The rank of the receiver; None for nobody.
    tag : int, default 0
    comm : Communicator or mpi4py communicator, optional

    Notes
    -----
    In a backward pass the cotangent is received. MPI may wait until the receiver calls `recv`.
    """
    comm = communicator_of(comm)
    operations.exchange.ordered(
        message(x, "send"),
        comm=comm,
        dest=rank_or_none(dest, comm, "dest"),
        source=None,
        tag=tag_of(tag),
        shape=(0,),
        dtype=describe(x).dtype,
    )


def recv(like: Any, source: int | None, tag: int = 0, comm: Any = None) -> Any:
    """Receive an array that another process sends.

    Parameters
    ----------
    like : array_like or Tensor
        An array of the shape and dtype of what is received; its values are not used.
    source : int or None
        The rank of the sender; with None the result is zeros.
    tag : int, default 0
    comm : Communicator or mpi4py communicator, optional

    Returns
    -------
    array or Tensor

    Raises
    ------
    CommunicationError
        What arrives has another size than `like`.

    Notes
    -----
    In a backward pass the cotangent is sent.
    """
    comm = communicator_of(comm)
    spec = describe(message(like, "recv"))
    return operations.exchange.ordered(
        np.empty(0, spec.dtype),
        comm=comm,
        dest=None,
        source=rank_or_none(source, comm, "source"),
        tag=tag_of(tag),
        shape=spec.shape,
        dtype=spec.dtype,
    )


def shift(x: Any, offset: int = 1, axis: int = 0, comm: CartesianCommunicator | None = None) -> Any:
    """Send an array to the process at `offset` on a grid, and receive one from that at ``-offset``.

    Parameters
    ----------
    x : array_like or Tensor
        Of the same shape and dtype in all processes.
    offset : int, default 1
    axis : int, default 0
        The axis of the grid.
    comm : CartesianCommunicator, optional
        By default all processes in a periodic row.

    Returns
    -------
    array or Tensor
        What was received; zeros where the grid ends.

    Examples
    --------
    >>> from wengert import distributed
    >>> comm = distributed.world().cartesian(periodic=True)
    >>> float(distributed.shift(2.0, comm=comm))
    2.0
    """
    if comm is None:
        every = communicator_of(None)
        return sendrecv(x, (every.rank + offset) % every.size, (every.rank - offset) % every.size)
    before, after = grid_of(comm, "shift").neighbors(axis, offset)
    return sendrecv(x, after, before, comm=comm)
