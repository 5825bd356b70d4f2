"""The collective operations, with their transposes.

Each is a linear map between the arrays of all processes (kinds/collective.py).  The functions of
this file are run on plain arrays; they send and receive through mpi4py.

    operation              transposed operation
    allreduce              allreduce
    reduce, to a root      bcast, from the root
    scatter                gather
    allgather              reduce_scatter
    alltoall               alltoall
    exchange (sendrecv)    exchange, in the opposite direction
    replicated             allreduce
    varying                varying
    barrier                barrier
    allreduce_max, _min, _prod    nonlinear
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from wengert import numpy as wnp
from wengert._engine.autodiff.messages import are_added
from wengert._engine.core.dispatch import Example
from wengert._engine.core.message_order import NO_MESSAGES
from wengert._engine.core.node import Node
from wengert._engine.core.op import RuleContext, register
from wengert._engine.core.spec import Spec
from wengert._engine.kinds.collective import Collective, Transposed
from wengert.errors import CommunicationError, at, user_line

from .communicators import Communicator, world
from .mpi_library import mpi
from .reported_operations import operation


def _sent(x: Any) -> np.ndarray[Any, Any]:
    return np.ascontiguousarray(x)


# ---- reductions --------------------------------------------------------------------------------


def _reduced(x: Any, comm: Communicator, name: str, operation: Any) -> Any:
    sent = _sent(x)
    comm.check(name, sent.shape, sent.dtype)
    received = np.empty_like(sent)
    comm.collective.Allreduce(sent, received, operation)
    return received.reshape(np.shape(x))[()]


@operation(replicates=True)
def allreduce(x: Any, *, comm: Communicator) -> Any:
    """The sum over all processes, in all processes."""
    return _reduced(x, comm, "allreduce(sum)", mpi().SUM)


@allreduce.transposed
def _allreduce_transposed(spec: Spec, *, comm: Communicator) -> Transposed:
    return allreduce, {"comm": comm}


@operation()
def reduce(x: Any, *, comm: Communicator, root: int) -> Any:
    """The sum over all processes in the root, zeros in the others."""
    sent = _sent(x)
    comm.check("reduce(sum)", sent.shape, sent.dtype, root)
    received = np.zeros_like(sent)
    comm.collective.Reduce(sent, received if comm.rank == root else None, mpi().SUM, root)
    return received.reshape(np.shape(x))[()]


@reduce.transposed
def _reduce_transposed(spec: Spec, *, comm: Communicator, root: int) -> Transposed:
    return bcast, {"comm": comm, "root": root}


@operation(replicates=True)
def bcast(x: Any, *, comm: Communicator, root: int) -> Any:
    """The array of the root, in all processes."""
    received = np.array(x, order="C")
    comm.check("bcast", received.shape, received.dtype, root)
    comm.collective.Bcast(received, root)
    return received.reshape(np.shape(x))[()]


@bcast.transposed
def _bcast_transposed(spec: Spec, *, comm: Communicator, root: int) -> Transposed:
    return reduce, {"comm": comm, "root": root}


class Replicated(Collective):
    """The operand, which is the same in all processes; its cotangents are added.

    If the operand was computed from results of messages, they are added by the transposed messages.
    """

    def vjp(self, node: Node, t: Any, out: Any, inputs: Any, ctx: RuleContext) -> list[Any]:
        """The sum of the cotangents; the cotangent of this process if it is added elsewhere."""
        if not are_added(node.args[0], "replicated"):
            return super().vjp(node, t, out, inputs, ctx)
        return [t.get(0), NO_MESSAGES if t.get(1) is None else t.get(1)]


def _unchanged_operand(x: Any, *, comm: Communicator) -> Any:
    return x


replicated = register(
    Replicated(_unchanged_operand, name="replicated", replicates=True, of_equal=True)
)


@replicated.transposed
def _replicated_transposed(spec: Spec, *, comm: Communicator) -> Transposed:
    return allreduce, {"comm": comm}


@operation()
def varying(x: Any, *, comm: Communicator) -> Any:
    """The operand, as a value of this process; nothing is sent.

    It may have been computed from replicated values, but not by all processes.
    """
    return x


@varying.transposed
def _varying_transposed(spec: Spec, *, comm: Communicator) -> Transposed:
    return varying, {"comm": comm}


@operation(replicates=True, of_equal=True)
def same(x: Any, *, comm: Communicator) -> Any:
    """The operand, if it is the same in all processes."""
    sent = _sent(x)
    comm.check("a value that should be the same in all processes", sent.tobytes())
    return x


def _unchanged(t: Any, token: Any, x: Any, y: Any, *, comm: Communicator) -> Any:
    return t, token


same.nonlinear(_unchanged, _unchanged)


def _extreme(name: str, reduction: str) -> Collective:
    """The maximum or minimum; processes with equal values share the derivative."""

    def run(x: Any, *, comm: Communicator) -> Any:
        return _reduced(x, comm, f"allreduce({name})", getattr(mpi(), reduction))

    def shares(t: Any, token: Any, x: Any, y: Any, comm: Communicator, tangent: bool) -> Any:
        attained = wnp.equal(x, y).astype(x.dtype) if hasattr(x, "dtype") else wnp.equal(x, y) * 1.0
        sent = wnp.stack([attained * t if tangent else t, attained])
        total, token = allreduce(sent, token, comm=comm)
        share = total[0] / total[1]
        return (share if tangent else attained * share), token

    run.__doc__ = f"The {name} over all processes, in all processes."
    op = operation(name=f"allreduce_{name}", replicates=True)(run)
    op.nonlinear(
        lambda t, token, x, y, *, comm: shares(t, token, x, y, comm, True),
        lambda t, token, x, y, *, comm: shares(t, token, x, y, comm, False),
    )
    return op


allreduce_max = _extreme("max", "MAX")
allreduce_min = _extreme("min", "MIN")


@operation(replicates=True)
def allreduce_prod(x: Any, *, comm: Communicator) -> Any:
    """The product over all processes, in all processes."""
    return _reduced(x, comm, "allreduce(prod)", mpi().PROD)


def _others(x: Any, token: Any, comm: Communicator) -> Any:
    """The product of the operands of the other processes; nothing is divided."""
    every, token = allgather(x, token, comm=comm)
    factors = [every[k] for k in range(comm.size) if k != comm.rank]
    product: Any = wnp.ones_like(x)
    for factor in factors:
        product = product * factor
    return product, token


def _product_tangent(t: Any, token: Any, x: Any, y: Any, *, comm: Communicator) -> Any:
    others, token = _others(x, token, comm)
    return allreduce(t * others, token, comm=comm)


def _product_cotangent(t: Any, token: Any, x: Any, y: Any, *, comm: Communicator) -> Any:
    others, token = _others(x, token, comm)
    total, token = allreduce(t, token, comm=comm)
    return total * wnp.conj(others), token


allreduce_prod.nonlinear(_product_tangent, _product_cotangent)


def _logical(name: str, reduction: str) -> Collective:
    def run(x: Any, *, comm: Communicator) -> Any:
        return _reduced(x, comm, f"allreduce({name})", getattr(mpi(), reduction))

    run.__doc__ = f"Whether the operand is true in {name} process{'es' * (name == 'all')}."
    op = operation(name=f"allreduce_{name}", replicates=True)(run)
    op.discrete = True
    return op


allreduce_any = _logical("any", "LOR")
allreduce_all = _logical("all", "LAND")


# ---- parts of arrays ---------------------------------------------------------------------------


@operation(replicates=True, stacks=True)
def allgather(x: Any, *, comm: Communicator) -> Any:
    """The arrays of all processes, stacked, in all processes."""
    sent = _sent(x)
    comm.check("allgather", sent.shape, sent.dtype)
    received = np.empty((comm.size, *np.shape(x)), sent.dtype)
    comm.collective.Allgather(sent, received)
    return received


@allgather.result
def _allgather_result(spec: Spec, *, comm: Communicator) -> Spec:
    return Spec((comm.size, *spec.shape), spec.dtype)


@allgather.transposed
def _allgather_transposed(spec: Spec, *, comm: Communicator) -> Transposed:
    return reduce_scatter, {"comm": comm}


@operation(splits=True)
def reduce_scatter(x: Any, *, comm: Communicator) -> Any:
    """Row k of the sum over all processes, in process k."""
    sent = _sent(x)
    comm.check("reduce_scatter(sum)", sent.shape, sent.dtype)
    received = np.empty(sent.shape[1:], sent.dtype)
    comm.collective.Reduce_scatter_block(sent, received, mpi().SUM)
    return received[()]


@reduce_scatter.result
def _reduce_scatter_result(spec: Spec, *, comm: Communicator) -> Spec:
    return Spec(spec.shape[1:], spec.dtype)


@reduce_scatter.transposed
def _reduce_scatter_transposed(spec: Spec, *, comm: Communicator) -> Transposed:
    return allgather, {"comm": comm}


@operation(stacks=True)
def gather(x: Any, *, comm: Communicator, root: int) -> Any:
    """The arrays of all processes, stacked, in the root; no rows in the others."""
    sent = _sent(x)
    comm.check("gather", np.shape(x), sent.dtype, root)
    received = np.empty((comm.size if comm.rank == root else 0, *np.shape(x)), sent.dtype)
    comm.collective.Gather(sent, received if comm.rank == root else None, root)
    return received


@gather.result
def _gather_result(spec: Spec, *, comm: Communicator, root: int) -> Spec:
    return Spec((comm.size if comm.rank == root else 0, *spec.shape), spec.dtype)


@gather.transposed
def _gather_transposed(spec: Spec, *, comm: Communicator, root: int) -> Transposed:
    return scatter, {"comm": comm, "root": root}


@operation(splits=True)
def scatter(x: Any, *, comm: Communicator, root: int) -> Any:
    """Row k of the array of the root, in process k; the arrays of the others have no rows."""
    sent = _sent(x)
    comm.check("scatter", sent.shape[1:], sent.dtype, root)
    received = np.empty(sent.shape[1:], sent.dtype)
    comm.collective.Scatter(sent if comm.rank == root else None, received, root)
    return received[()]


@scatter.result
def _scatter_result(spec: Spec, *, comm: Communicator, root: int) -> Spec:
    return Spec(spec.shape[1:], spec.dtype)


@scatter.transposed
def _scatter_transposed(spec: Spec, *, comm: Communicator, root: int) -> Transposed:
    return gather, {"comm": comm, "root": root}


@operation(splits=True, stacks=True)
def alltoall(x: Any, *, comm: Communicator) -> Any:
    """Row k of each process, in process k."""
    sent = _sent(x)
    comm.check("alltoall", sent.shape, sent.dtype)
    received = np.empty_like(sent)
    comm.collective.Alltoall(sent, received)
    return received


@alltoall.transposed
def _alltoall_transposed(spec: Spec, *, comm: Communicator) -> Transposed:
    return alltoall, {"comm": comm}


# ---- messages between two processes ------------------------------------------------------------


@operation(name="exchange", pairwise=True)
def exchange(
    x: Any,
    *,
    comm: Communicator,
    dest: int | None,
    source: int | None,
    tag: int,
    shape: tuple[int, ...],
    dtype: Any,
) -> Any:
    """Send the operand to a process, and receive an array from another; zeros without a source."""
    comm.refuse_lost()
    sent = _sent(x)
    received = np.zeros(shape, dtype)
    if dest is not None and source is not None:
        status = mpi().Status()
        comm.mpi.Sendrecv(sent, dest, tag, received, source, tag, status)
        check_count(status, received, comm, source)
    elif dest is not None:
        comm.mpi.Send(sent, dest, tag)
    elif source is not None:
        status = mpi().Status()
        comm.mpi.Recv(received, source, tag, status)
        check_count(status, received, comm, source)
    return received[()]


def check_count(
    status: Any, received: np.ndarray[Any, Any], comm: Communicator, source: int
) -> None:
    """Raise CommunicationError if a message had another size than the array."""
    count = status.Get_count(mpi().BYTE)
    if count != received.nbytes:
        raise CommunicationError(
            f"process {comm.rank} expected {received.nbytes} bytes ({received.dtype}"
            f"{list(received.shape)}) from process {source}, and received {count}. Receive an "
            f"array of the shape and dtype that is sent{at(user_line())}."
        )


@exchange.result
def _exchange_result(spec: Spec, *, shape: Any, dtype: Any, **params: Any) -> Spec:
    return Spec(shape, dtype)


@exchange.transposed
def _exchange_transposed(spec: Spec, *, dest: Any, source: Any, **params: Any) -> Transposed:
    reverse = {**params, "dest": source, "source": dest, "shape": spec.shape, "dtype": spec.dtype}
    return exchange, reverse


@operation()
def barrier(x: Any, *, comm: Communicator) -> Any:
    """The operand, once all processes have reached this operation."""
    comm.check("barrier")
    comm.collective.Barrier()
    return x


@barrier.transposed
def _barrier_transposed(spec: Spec, *, comm: Communicator) -> Transposed:
    return barrier, {"comm": comm}


# ---- examples for the laws, with one process ---------------------------------------------------


def _examples(op: Collective, operand: tuple[int, ...], **params: Any) -> None:
    @op.examples
    def make(rng: np.random.Generator) -> Iterator[Example]:
        yield (rng.normal(size=operand), NO_MESSAGES), {"comm": world(), **params}


for _op in (
    allreduce, allreduce_max, allreduce_min, allreduce_prod, replicated, varying, barrier, same,
):  # fmt: skip
    _examples(_op, (2, 3))
for _op in (allgather, reduce_scatter, alltoall):
    _examples(_op, (1, 3))
for _op in (reduce, bcast, gather, scatter):
    _examples(_op, (1, 3), root=0)
_examples(exchange, (2,), dest=0, source=0, tag=0, shape=(2,), dtype=np.dtype(np.float64))
