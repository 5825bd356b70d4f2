"""Data parallelism: each process computes its part of a batch.

data_parallel    a loss of a batch, computed by all processes together
part_of          the part of this process of an array
as_one_variable  parameters whose gradients are added over the processes
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from wengert._engine.autodiff.arguments import derived
from wengert._engine.autodiff.messages import sources_of
from wengert._engine.core import pytree
from wengert._engine.core.handle import Handle, shape_of
from wengert.errors import ArgumentError, ShapeError, at, user_line

from . import operations
from .buckets import BUCKET_BYTES, bucket_bytes_of, in_buckets
from .communicators import Communicator, communicator_of
from .functions import allreduce


def data_parallel(
    f: Callable[..., Any],
    comm: Any = None,
    axis: int = 0,
    reduction: str = "mean",
    bucket_bytes: int = BUCKET_BYTES,
) -> Callable[..., Any]:
    """Return a loss function that all processes compute together.

    Each process computes the loss of its part of the batch.  The result, the loss of the whole
    batch, and its gradients with respect to the parameters are the same in all processes.

    Parameters
    ----------
    f : callable
        ``f(params, *batch)`` returns one number: the mean (or the sum) over the examples of the
        batch. It exchanges no messages itself.
    comm : Communicator or mpi4py communicator, optional
        By default all processes.
    axis : int, default 0
        The axis of the arrays of the batch that has the examples.
    reduction : {"mean", "sum"}
        Whether `f` returns the mean or the sum over the examples.
    bucket_bytes : int, default 25 MiB
        Gradients are added in messages of at most this size, or of one array if it is larger.

    Returns
    -------
    callable
        Takes the same arguments: parameters and a whole batch, the same in all processes. Arrays
        of the batch need not have an entry for each process: some parts are longer by one than
        others, or empty.

    Raises
    ------
    ShapeError
        Arrays of the batch have different lengths, or none.
    ArgumentError
        `reduction` is not known, or `bucket_bytes` is not a positive integer.

    Notes
    -----
    *Messages.* One `allreduce` of the loss, and in the backward pass one for each
    `bucket_bytes` of parameters.

    *Equality.* All processes add the gradients in the same order and get the same bits, so
    parameters that are updated by the same operations stay equal.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert import distributed
    >>> loss = lambda w, x, y: np.mean((x @ w - y) ** 2)
    >>> parallel = distributed.data_parallel(loss)
    >>> x, y = np.ones((6, 2)), np.arange(6.0)
    >>> wg.grad(parallel)(np.zeros(2), x, y)
    array([-5., -5.])
    """
    if reduction not in ("mean", "sum"):
        raise ArgumentError(
            f"data_parallel: reduction={reduction!r} is not 'mean' or 'sum'{at(user_line())}."
        )
    limit = bucket_bytes_of(bucket_bytes, "data_parallel")
    return derived(f, _data_parallel, f, comm, axis, reduction, limit, name="data_parallel")


def _data_parallel(
    f: Callable[..., Any],
    comm: Any,
    axis: int,
    reduction: str,
    bucket_bytes: int,
    /,
    params: Any,
    *batch: Any,
    **kwargs: Any,
) -> Any:
    comm = communicator_of(comm)
    total = _length(batch, axis)
    own = pytree.tree_map(lambda x: part_of(x, comm, axis), batch)
    count = _length(own, axis)
    params = as_one_variable(params, comm, bucket_bytes)
    value: Any = np.float64(0.0)
    if count:
        value = f(params, *own, **kwargs)
        if reduction == "mean" and count != total:
            value = value * (count / total)
    return allreduce(value, "sum", comm)


def part_of(x: Any, comm: Communicator, axis: int = 0) -> Any:
    """The part of this process of an array; parts differ in length by at most one."""
    n = shape_of(x)[axis]
    start, stop = comm.rank * n // comm.size, (comm.rank + 1) * n // comm.size
    before = axis % len(shape_of(x))
    return x[(*[slice(None)] * before, slice(start, stop))]


def _length(batch: Any, axis: int) -> int:
    lengths = []
    for leaf in pytree.flatten(batch)[0]:
        shape = shape_of(leaf)
        if not -len(shape) <= axis < len(shape):
            raise ShapeError(
                f"data_parallel: an array of the batch has shape {tuple(shape)}, and no axis "
                f"{axis} with the examples. Bind other arguments, functools.partial"
                f"{at(user_line())}."
            )
        lengths.append(shape[axis])
    if not lengths or any(n != lengths[0] for n in lengths):
        raise ShapeError(
            f"data_parallel: the arrays of the batch have {lengths} examples. Give arrays of equal "
            f"length{at(user_line())}."
        )
    return int(lengths[0])


def as_one_variable(params: Any, comm: Communicator, bucket_bytes: int = BUCKET_BYTES) -> Any:
    """Parameters as variables that all processes share; small ones in one message.

    Those whose cotangents are added by other messages (`replicated`) are apart.
    """
    leaves, structure = pytree.flatten(params)
    following = [isinstance(x, Handle) and "messages" in sources_of(x.node) for x in leaves]
    for are_following in (False, True):
        chosen = [k for k, follows in enumerate(following) if follows is are_following]
        shared = in_buckets(
            [leaves[k] for k in chosen],
            lambda x: operations.replicated.ordered(x, comm=comm),
            bucket_bytes,
        )
        for k, x in zip(chosen, shared, strict=True):
            leaves[k] = x
    return pytree.unflatten(structure, leaves)
