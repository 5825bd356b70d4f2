"""Functions that exchange messages between processes.

The arguments are checked and brought to the form of the operations of operations.py.  Messages
between two processes are in point_to_point.py.

    allreduce, reduce, scan                 reductions over processes
    bcast, scatter, gather, allgather       parts of arrays
    alltoall, reduce_scatter
    barrier                                 wait for all processes
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert import numpy as wnp
from wengert._engine.core import pytree
from wengert._engine.core.handle import describe, shape_of
from wengert.errors import DtypeError, at, user_line

from . import operations
from .arguments import check_containers, check_rows, message, operation_of, rank_of
from .communicators import Communicator, communicator_of

_BY_NAME = {
    "sum": operations.allreduce,
    "max": operations.allreduce_max,
    "min": operations.allreduce_min,
    "prod": operations.allreduce_prod,
    "any": operations.allreduce_any,
    "all": operations.allreduce_all,
}


def allreduce(x: Any, op: Any = "sum", comm: Any = None) -> Any:
    """Combine the arrays of all processes; every process gets the result.

    Parameters
    ----------
    x : array_like, Tensor, or nested containers of them
        Of the same shape and dtype in all processes.
    op : {"sum", "mean", "max", "min", "prod", "any", "all"}, or an mpi4py operation
        "any" and "all" take booleans and give one boolean for each element.
    comm : Communicator or mpi4py communicator, optional
        By default all processes.

    Returns
    -------
    array, Tensor, or containers of them
        Of the shape of `x`.

    Raises
    ------
    CommunicationError
        The processes call different operations, or with other shapes or dtypes.
    DtypeError
        MPI has no messages of this dtype (float16), or the operation is not defined for it.

    Notes
    -----
    *Derivative.* The transpose of a sum over the processes is the same sum of the cotangents. At a
    maximum that several processes attain, they share the derivative. A scalar that was computed
    from such results only is the same in all processes, and `grad` counts it once.

    *Cost.* One message to all processes: its latency, and about twice the size of `x` of data.

    *Order.* The result is the same in all processes; in which order MPI adds floating-point
    numbers may depend on their number. ``np.sum(allgather(x), axis=0)`` adds them by rank.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert import distributed
    >>> distributed.allreduce(np.arange(3.0))
    array([0., 1., 2.])
    >>> wg.grad(lambda x: distributed.allreduce(x @ x))(np.arange(3.0))
    array([0., 2., 4.])
    """
    name, comm = operation_of(op), communicator_of(comm)
    check_containers(x, comm, f"allreduce({name})")
    return pytree.tree_map(lambda leaf: _allreduce(leaf, name, comm), x)


def _allreduce(x: Any, name: str, comm: Communicator) -> Any:
    x = message(x, "allreduce")
    kind = describe(x).dtype.kind
    if name == "mean":
        return operations.allreduce.ordered(x, comm=comm) / comm.size
    if name in ("any", "all"):
        if kind != "b":
            raise DtypeError(
                f"allreduce: op={name!r} needs booleans, and x is {describe(x)}. Compare it first"
                f"{at(user_line())}."
            )
    elif kind == "b":
        if name in ("max", "min"):
            name = "any" if name == "max" else "all"
        else:
            x = wnp.asarray(x).astype(np.int64)
    elif kind == "c" and name in ("max", "min"):
        raise DtypeError(f"allreduce: complex numbers have no {name}imum{at(user_line())}.")
    return _BY_NAME[name].ordered(x, comm=comm)


def reduce(x: Any, op: Any = "sum", root: int = 0, comm: Any = None) -> Any:
    """Combine the arrays of all processes; the root gets the result, the others zeros.

    Parameters
    ----------
    x, op, comm
        As for `allreduce`.
    root : int, default 0
        The rank of the process that gets the result.

    Returns
    -------
    array or Tensor
        Of the shape of `x`; zeros in processes other than the root.

    Notes
    -----
    The transpose of a sum is `bcast` of the cotangent of the root.

    Examples
    --------
    >>> from wengert import distributed
    >>> float(distributed.reduce(2.0))
    2.0
    """
    name, comm = operation_of(op), communicator_of(comm)
    root = rank_of(root, comm, "root")
    if name == "sum" and describe(x).dtype.kind != "b":
        return operations.reduce.ordered(message(x, "reduce"), comm=comm, root=root)
    total = allreduce(x, op, comm)
    return total if comm.rank == root else wnp.zeros_like(total) * total


def scan(x: Any, op: Any = "sum", comm: Any = None) -> Any:
    """Combine the arrays of the processes up to this one, in the order of their ranks.

    Parameters
    ----------
    x, op, comm
        As for `allreduce`.

    Returns
    -------
    array or Tensor
        Of the shape of `x`.

    Notes
    -----
    Computed from `allgather`: the data sent is `comm.size` times `x`.

    Examples
    --------
    >>> from wengert import distributed
    >>> float(distributed.scan(2.0))
    2.0
    """
    name, comm = operation_of(op), communicator_of(comm)
    reductions = {
        "sum": wnp.sum, "mean": wnp.mean, "max": wnp.max, "min": wnp.min, "prod": wnp.prod,
        "any": wnp.any, "all": wnp.all,
    }  # fmt: skip
    return reductions[name](allgather(x, comm)[: comm.rank + 1], axis=0)


def bcast(x: Any, root: int = 0, comm: Any = None) -> Any:
    """The array of the root, in all processes.

    Parameters
    ----------
    x : array_like, Tensor, or nested containers of them
        Processes other than the root pass arrays of the same shape and dtype.
    root : int, default 0
    comm : Communicator or mpi4py communicator, optional

    Notes
    -----
    The transpose is `reduce`: the root gets the sum of the cotangents of all processes.

    Examples
    --------
    >>> from wengert import distributed
    >>> float(distributed.bcast(2.0))
    2.0
    """
    comm = communicator_of(comm)
    root = rank_of(root, comm, "root")
    check_containers(x, comm, "bcast")
    return pytree.tree_map(
        lambda leaf: operations.bcast.ordered(message(leaf, "bcast"), comm=comm, root=root), x
    )


def scatter(x: Any, root: int = 0, comm: Any = None) -> Any:
    """Row k of the array of the root, in process k.

    Parameters
    ----------
    x : array_like or Tensor
        In the root, an array with a row for each process; in the others an array of the shape and
        dtype of a row, whose values are not used.
    root : int, default 0
    comm : Communicator or mpi4py communicator, optional

    Returns
    -------
    array or Tensor
        One row.

    Raises
    ------
    ShapeError
        The array of the root does not have a row for each process.

    Notes
    -----
    The transpose is `gather`.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert import distributed
    >>> distributed.scatter(np.ones((1, 2)))
    array([1., 1.])
    """
    comm = communicator_of(comm)
    root = rank_of(root, comm, "root")
    x = message(x, "scatter")
    if comm.rank == root:
        check_rows(x, comm, "scatter")
    else:
        x = wnp.reshape(x, (1, *shape_of(x)))[:0]
    return operations.scatter.ordered(x, comm=comm, root=root)


def gather(x: Any, root: int = 0, comm: Any = None) -> Any:
    """The arrays of all processes, stacked, in the root.

    Parameters
    ----------
    x : array_like or Tensor
        Of the same shape and dtype in all processes.
    root : int, default 0
    comm : Communicator or mpi4py communicator, optional

    Returns
    -------
    array or Tensor
        In the root of shape ``(comm.size, *x.shape)``; in the others of shape ``(0, *x.shape)``.

    Notes
    -----
    The transpose is `scatter`.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert import distributed
    >>> distributed.gather(np.ones(2))
    array([[1., 1.]])
    """
    comm = communicator_of(comm)
    root = rank_of(root, comm, "root")
    return operations.gather.ordered(message(x, "gather"), comm=comm, root=root)


def allgather(x: Any, comm: Any = None) -> Any:
    """The arrays of all processes, stacked, in all processes.

    Parameters
    ----------
    x : array_like or Tensor
        Of the same shape and dtype in all processes.
    comm : Communicator or mpi4py communicator, optional

    Returns
    -------
    array or Tensor
        Of shape ``(comm.size, *x.shape)``.

    Notes
    -----
    The transpose is `reduce_scatter`.

    Examples
    --------
    >>> from wengert import distributed
    >>> distributed.allgather(2.0)
    array([2.])
    """
    return operations.allgather.ordered(message(x, "allgather"), comm=communicator_of(comm))


def alltoall(x: Any, comm: Any = None) -> Any:
    """Send row k to process k; row k of the result comes from process k.

    Parameters
    ----------
    x : array_like or Tensor
        Of shape ``(comm.size, ...)``.
    comm : Communicator or mpi4py communicator, optional

    Returns
    -------
    array or Tensor
        Of the shape of `x`.

    Raises
    ------
    ShapeError
        `x` does not have a row for each process.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert import distributed
    >>> distributed.alltoall(np.ones((1, 2)))
    array([[1., 1.]])
    """
    comm = communicator_of(comm)
    x = message(x, "alltoall")
    check_rows(x, comm, "alltoall")
    return operations.alltoall.ordered(x, comm=comm)


def reduce_scatter(x: Any, op: Any = "sum", comm: Any = None) -> Any:
    """Combine the arrays of all processes; process k gets row k of the result.

    Parameters
    ----------
    x : array_like or Tensor
        Of shape ``(comm.size, ...)``.
    op, comm
        As for `allreduce`.

    Returns
    -------
    array or Tensor
        One row.

    Notes
    -----
    The transpose of a sum is `allgather`.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert import distributed
    >>> distributed.reduce_scatter(np.ones((1, 2)))
    array([1., 1.])
    """
    name, comm = operation_of(op), communicator_of(comm)
    x = message(x, "reduce_scatter")
    check_rows(x, comm, "reduce_scatter")
    if name == "sum" and describe(x).dtype.kind != "b":
        return operations.reduce_scatter.ordered(x, comm=comm)
    if name == "mean":
        return operations.reduce_scatter.ordered(x, comm=comm) / comm.size
    rows = operations.alltoall.ordered(x, comm=comm)
    reductions = {
        "sum": wnp.sum, "max": wnp.max, "min": wnp.min, "prod": wnp.prod, "any": wnp.any,
        "all": wnp.all,
    }  # fmt: skip
    return reductions[name](rows, axis=0)


def barrier(comm: Any = None) -> None:
    """Wait until all processes have called it.

    Parameters
    ----------
    comm : Communicator or mpi4py communicator, optional
    """
    operations.barrier.ordered(np.zeros(0), comm=communicator_of(comm))
