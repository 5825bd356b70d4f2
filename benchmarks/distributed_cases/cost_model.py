"""Times of programs on many processes, in terms of latency, bandwidth and computing time.

The formulas are those of Thakur, Rabenseifner and Gropp (2005) for reductions, and of Huang et al.
(2019) for pipelines.  tests/distributed/test_cost_model.py compares them with the simulation.

    ring_allreduce, tree_allreduce, allreduce    a sum over all processes
    halo_step                                    a time step with borders
    data_parallel_step                           a training step
    pipeline_step                                microbatches through stages
"""

from __future__ import annotations

from math import ceil, log2, sqrt

from .simulation import Network

BYTES = 8  # of a number


def ring_allreduce(network: Network, count: int, size: float) -> float:
    """2 (P - 1) messages of a P-th of the array: little data, many latencies."""
    return 2 * (count - 1) * network.message(size / count)


def tree_allreduce(network: Network, count: int, size: float) -> float:
    """log2 P messages of the whole array (recursive doubling): few latencies, much data."""
    return ceil(log2(count)) * network.message(size) if count > 1 else 0.0


def halving_allreduce(network: Network, count: int, size: float) -> float:
    """Recursive halving and doubling: 2 log2 P latencies, and twice the array as data."""
    latencies = 2 * ceil(log2(count)) * network.latency if count > 1 else 0.0
    return latencies + 2 * (count - 1) / count * size / network.bandwidth


def allreduce(network: Network, count: int, size: float) -> float:
    """That of the best algorithm."""
    ways = ring_allreduce, tree_allreduce, halving_allreduce
    return min(way(network, count, size) for way in ways)


def halo_step(
    network: Network,
    count: int,
    cells: float,
    seconds_per_cell: float,
    fields: int = 3,
    overlap: bool = True,
) -> float:
    """A time step of a square domain in blocks: four borders of width one, sent at once.

    With overlap the cells that need no borders are computed while the messages travel.
    """
    side = sqrt(cells / count)
    inside = max(side - 2, 0.0) ** 2 * seconds_per_cell
    edges = cells / count * seconds_per_cell - inside
    if count == 1:
        return inside + edges
    messages = network.latency + 4 * side * fields * BYTES / network.bandwidth
    return (max(inside, messages) if overlap else inside + messages) + edges


def data_parallel_step(
    network: Network,
    count: int,
    compute: float,
    size: float,
    bucket: float = 25 * 2**20,
    overlap: bool = False,
) -> float:
    """A training step whose gradients, `size` bytes, are added in buckets.

    Two thirds of the computing time are the backward pass.  With overlap (which the library does
    not have today) a bucket is added while the next is computed.
    """
    if count == 1:
        return compute
    buckets = max(ceil(size / bucket), 1)
    one = allreduce(network, count, size / buckets)
    if not overlap:
        return compute + buckets * one
    share = 2 / 3 * compute / buckets
    return compute / 3 + share + max((buckets - 1) * share, (buckets - 1) * one) + one


def best_bucket(network: Network, count: int, compute: float, size: float) -> float:
    """The size of buckets, a power of two, with the least time if they overlap."""
    sizes = [2.0**k for k in range(12, 34)]
    return min(
        sizes, key=lambda b: data_parallel_step(network, count, compute, size, b, overlap=True)
    )


def pipeline_step(
    network: Network, stages: int, microbatches: int, compute: float, size: float
) -> float:
    """All microbatches forward, then all back, through stages of equal work.

    `compute` is the time of the whole batch on one process, `size` the bytes that a microbatch
    sends from one stage to the next.
    """
    part = compute / (stages * microbatches)
    between = 2 * (stages - 1) * network.message(size)
    return (microbatches + stages - 1) * part + between


def bubble(stages: int, microbatches: int) -> float:
    """The part of the time in which a stage waits."""
    return (stages - 1) / (microbatches + stages - 1)
