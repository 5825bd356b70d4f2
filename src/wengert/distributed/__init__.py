"""Programs of several processes: collective operations on MPI, and sums over data.

communicators     groups of processes
functions         reductions over processes, and parts of arrays
marks             arrays that are the same in all processes, or are not
point_to_point    messages between two processes
halos             borders of arrays that are divided among processes on a grid
halo_parts        which parts of the arrays are sent
data_parallel     losses of batches that are divided among the processes
buckets           many arrays in few messages
agreement         Python objects that all processes agree on; functions and arrays as bytes for
                  other processes
placed            functions whose parts are computed by different processes
placement         which process computes which node, and what is sent
pipeline          the layers of a model on several processes
stages            which process has which layers; the messages between stages; the order in which a
                  stage processes microbatches
stage_programs    the compiled programs of one stage
message_simulator   programs of messages that would wait forever
operations        the operations, with their transposes
reported_operations   their messages, logged, and their errors
arguments         checks of arguments
mpi_library       mpi4py, which is imported at the first use of a communicator

sums                  sums over the partitions of data
sum_operation         the operation, with its derivatives
partition_programs    the function of one partition, compiled in a worker
tree_sums             additions in a fixed order
local_pools           partitions computed serially, by executors, by joblib
dask_sums             partitions computed by Dask, which is imported there only
"""

from wengert._engine.core.lazy_import import public_dir

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
    scan,
    scatter,
)
from .halos import (
    HaloExchange,
    halo_exchange,
    halo_exchange_finish,
    halo_exchange_start,
    map_overlap,
)
from .marks import replicated, varying
from .pipeline import Pipeline, pipeline
from .placed import placed, placement
from .placement import Message, Placement
from .point_to_point import recv, send, sendrecv, shift
from .sums import SumOver, sum_over

__all__ = [
    "CartesianCommunicator",
    "Communicator",
    "HaloExchange",
    "Message",
    "Pipeline",
    "Placement",
    "SumOver",
    "allgather",
    "allreduce",
    "alltoall",
    "barrier",
    "bcast",
    "data_parallel",
    "gather",
    "halo_exchange",
    "halo_exchange_finish",
    "halo_exchange_start",
    "map_overlap",
    "pipeline",
    "placed",
    "placement",
    "recv",
    "reduce",
    "reduce_scatter",
    "replicated",
    "scan",
    "scatter",
    "send",
    "sendrecv",
    "shift",
    "sum_over",
    "varying",
    "world",
]

__dir__ = public_dir(__name__)
