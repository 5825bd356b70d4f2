"""Programs of several processes: collective operations with derivatives, on MPI.

communicators     groups of processes
functions         reductions over processes, and parts of arrays
point_to_point    messages between two processes
data_parallel     losses of batches that are divided among the processes
operations        the operations, with their transposes
arguments         checks of arguments
mpi_library       mpi4py, which is imported at the first use of a communicator
"""

from wengert._engine.core.lazy_import import public_dir
from wengert._engine.core.message_order import start_using

from .communicators import CartesianCommunicator, Communicator, world
from .data_parallel import data_parallel
from .functions import (
    allgather,
    allreduce,
    alltoall,
    barrier,
    bcast,
    gather,
    reduce,
    reduce_scatter,
    replicated,
    scan,
    scatter,
)
from .point_to_point import halo_exchange, recv, send, sendrecv, shift

start_using()

__all__ = [
    "CartesianCommunicator",
    "Communicator",
    "allgather",
    "allreduce",
    "alltoall",
    "barrier",
    "bcast",
    "data_parallel",
    "gather",
    "halo_exchange",
    "recv",
    "reduce",
    "reduce_scatter",
    "replicated",
    "scan",
    "scatter",
    "send",
    "sendrecv",
    "shift",
    "world",
]

__dir__ = public_dir(__name__)
