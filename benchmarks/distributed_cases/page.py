"""The pages docs/benchmarks-distributed.md and docs/distributed-cost.md, from saved results.

benchmarks    what was measured
costs         what it means for many processes: a model with the measured constants
fitted        latency and bandwidth of measured messages
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from _harness import machine_line, table

from . import cost_model
from .simulation import Network

TARGET = 1.8  # two processes over one, on a sum over data
COUNTS = (1, 10, 100, 1000, 10_000)
# A network as clusters have it; not measured.
CLUSTER = Network(2e-6, 10e9)


def _time(seconds: float) -> str:
    for unit, scale in (("s", 1.0), ("ms", 1e3), ("us", 1e6)):
        if seconds * scale >= 1.0 or unit == "us":
            return f"{seconds * scale:.3g} {unit}"
    raise AssertionError


def _size(count: float) -> str:
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= scale:
            return f"{count / scale:.3g} {unit}"
    return f"{count:.0f} bytes"


def _both(times: Mapping[str, float]) -> str:
    return f"{_time(times['least'])} ({_time(times['median'])})"


def speedup(results: Mapping[str, Any]) -> float:
    """Of two processes over one, by the least times."""
    found = results["sum_over_data"]
    return float(found["one process"]["least"] / found["two processes"]["least"])


def fitted(results: Mapping[str, Any]) -> Network:
    """The latency of the smallest message, and the bandwidth of the largest."""
    points = results["ping_pong"]
    small, large = points[0], points[-1]
    latency = small["least"]
    return Network(latency, large["bytes"] / max(large["least"] - latency, 1e-9))


def _of_load(results: Mapping[str, Any]) -> str:
    """Whether other programs ran."""
    load, cores = results["load"], results["machine"]["cores"]
    if load < 0.3 * cores:
        return f"The load average before was {load:.1f}: nothing else ran."
    return (
        f"**The load average before was {load:.1f} on {cores} cores: other programs ran. Times of "
        "messages include waiting for a process that does not run; ratios of two processes to one "
        "mean nothing. Measure again on an idle machine.**"
    )


def benchmarks(results: Mapping[str, Any]) -> str:
    """The page of what was measured."""
    network = fitted(results)
    data, stencil = results["sum_over_data"], results["stencil"]
    calls = results["calls"]
    rows = [
        [what, *[_both(calls[f"{what}, {way}"]) for way in ("compiled", "mpi4py", "eager")]]
        for what in ("sendrecv", "allreduce")
    ]
    verdict = "met" if speedup(results) >= TARGET else "missed"
    parts = [
        "# Benchmarks: two processes",
        "Written by `python benchmarks/distributed.py --render` from "
        "`benchmarks/results/distributed.json`. Read the ratios: times are one machine's.",
        machine_line(results["machine"]) + f" {results['library']}.",
        "Two processes on one machine, one thread each; messages pass through shared memory. A "
        "time is that of the slower process from a barrier on: the least, and in brackets the "
        "median. " + _of_load(results),
        "## A sum over data",
        f"Value and gradient of a logistic regression, {data['rows']:,} rows of "
        f"{data['features']} features: one process with all rows, two with half of them each and "
        f"an `allreduce`. Target: {TARGET} times as fast ({verdict}).",
        table(
            ["", "time", "times as fast"],
            [
                ["one process", _both(data["one process"]), 1.0],
                ["two processes", _both(data["two processes"]), f"{speedup(results):.2f}"],
            ],
        ),
        "## Calls",
        "A message of four numbers in a loop: in a compiled function, by mpi4py, and eagerly (with "
        "the comparison of what the processes are about to do).",
        table(["", "compiled", "mpi4py", "eager"], rows),
        "## Messages",
        f"Half of the time of a message and its answer, by mpi4py. A latency of "
        f"{_time(network.latency)} and {_size(network.bandwidth)} a second fit the smallest and "
        "the largest.",
        table(
            ["", "time", "bandwidth"],
            [
                [_size(p["bytes"]), _both(p), f"{_size(p['bytes'] / p['least'])}/s"]
                for p in results["ping_pong"]
            ],
        ),
        "## Sums over both processes",
        table(
            ["allreduce", "compiled", "mpi4py"],
            [
                [_size(p["bytes"]), _both(p["compiled"]), _both(p["mpi4py"])]
                for p in results["allreduce"]
            ],
        ),
        "## Overlap",
        "A message in both directions and other work in one compiled function. *One after the "
        "other* is the same function with work that needs the message. In shared memory the "
        "processor itself copies messages, so only the time in which it would wait can be used; "
        "a network card copies by itself.",
        table(
            ["", "message", "work", "one after the other", "overlapped"],
            [
                [_size(p["bytes"]), *[_both(p[name]) for name in _OVERLAP]]
                for p in results["overlap"]
            ],
        ),
        "If process 1 begins 20 ms later, process 0 takes:",
        table(["", "time"], [[name, _both(results["late"][name])] for name in _OVERLAP[1:]]),
        "A time step of the heat equation (`map_overlap` stores the inside before the edges, which "
        f"costs a copy), {stencil['cells']:,} cells in each process:",
        table(
            ["", "time"],
            [[n, _both(stencil[n])] for n in ("no messages", "halo_exchange", "map_overlap")],
        ),
    ]
    return "\n\n".join(parts) + "\n"


_OVERLAP = ("message", "work", "one after the other", "overlapped")


def _row(name: str, times: Sequence[float], ideal: float | None = None) -> list[object]:
    """Times, with the efficiency in percent if an ideal is given (of one process)."""
    if ideal is None:
        return [name, *map(_time, times)]
    shown = [
        f"{_time(t)} ({100 * ideal / p / t:.0f} %)" for p, t in zip(COUNTS, times, strict=True)
    ]
    return [name, *shown]


def costs(results: Mapping[str, Any]) -> str:
    """The page of the model."""
    here = fitted(results)
    cell = results["stencil"]["no messages"]["least"] / results["stencil"]["cells"]
    networks = {"shared memory, measured": here, "cluster, assumed": CLUSTER}
    head = ["processes", *[f"{p:,}" for p in COUNTS]]
    parts = [
        "# What many processes cost",
        "Written by `python benchmarks/distributed.py --render`. **Measured** are, on one machine "
        "with two processes, the constants in the next section "
        "([benchmarks-distributed.md](benchmarks-distributed.md)). **Modelled** is everything "
        "else: the formulas of `benchmarks/distributed_cases/cost_model.py` with these constants, "
        "up to 10,000 processes. Nothing was run on more than four processes. The formulas are "
        "compared with a simulation, event by event, of up to 256 processes "
        "(`tests/distributed/test_cost_model.py`); neither knows of congestion, of slow "
        "processes, or of the topology of a network.",
        "## Constants",
        table(
            ["", "latency", "bandwidth"],
            [[n, _time(w.latency), f"{_size(w.bandwidth)}/s"] for n, w in networks.items()],
        ),
        f"A cell of a stencil takes {cell * 1e9:.3g} ns (measured: the heat equation, one thread). "
        "The cluster is an assumption, of the order of InfiniBand. A message of n bytes takes "
        "`latency + n / bandwidth`.",
        "## Sums over processes",
        "`allreduce`, for P processes and n bytes:",
        table(
            ["algorithm", "time"],
            [
                ["tree (recursive doubling)", "log2 P (latency + n / bandwidth)"],
                ["recursive halving and doubling", "2 log2 P latency + 2 (P-1)/P n / bandwidth"],
                ["ring", "2 (P-1) (latency + n / P / bandwidth)"],
            ],
        ),
        "MPI chooses among them by size. Modelled times of the best:",
    ]
    for name, network in networks.items():
        rows = [
            _row(_size(n), [cost_model.allreduce(network, p, n) for p in COUNTS])
            for n in (8.0, 1e6, 1e8, 1e9)
        ]
        parts += [f"*{name}*", table(head, rows)]
    parts += [
        "A small sum grows with the logarithm of P: a hundred dot products in each time step cost "
        "100 log2 P latencies, and combining them in one message costs log2 P. A large sum hardly "
        "grows: at most twice its data pass each process.",
        *_of_data_parallel(head),
        *_of_halos(head, cell),
        *_of_pipelines(),
        "## Checks of the processes",
        "Before each eager operation, and once in each compiled run, the processes compare what "
        "they are about to do by an `allreduce` of 16 bytes: "
        f"{_time(cost_model.allreduce(CLUSTER, 10_000, 16))} on 10,000 processes of the assumed "
        "cluster. In a compiled time loop this is once for all steps.",
    ]
    return "\n\n".join(parts) + "\n"


def _of_data_parallel(head: Sequence[str]) -> list[str]:
    size, compute = 4e8, 0.2
    network = CLUSTER

    def times(bucket: float, overlap: bool) -> list[float]:
        return [
            cost_model.data_parallel_step(network, p, compute, size, bucket, overlap)
            for p in COUNTS
        ]

    rows = [
        _row("25 MiB, after the backward pass (today)", times(25 * 2**20, False)),
        _row("1 MB", times(1e6, False)),
        _row("25 MiB, overlapped", times(25 * 2**20, True)),
        _row("1 MB, overlapped", times(1e6, True)),
    ]
    best = [_size(cost_model.best_bucket(network, p, compute, size)) for p in COUNTS[1:]]
    return [
        "## Data parallelism",
        f"A training step that computes for {_time(compute)} in each process, with "
        f"{_size(size)} of gradients (50 million parameters), on the assumed cluster. Gradients "
        "are added in buckets: `data_parallel` adds them after the backward pass, in messages of "
        "at most 25 MiB. Adding a bucket while the next is computed is modelled, and not "
        "implemented.",
        table(head, rows),
        "Small buckets hide more behind the backward pass and pay more latencies. The best sizes, "
        f"if overlapped, for 10 to 10,000 processes: {', '.join(best)}.",
    ]


def _of_halos(head: Sequence[str], cell: float) -> list[str]:
    parts = [
        "## Domain decomposition",
        "A time step on a square domain with three fields, whose blocks exchange borders of width "
        "one. With overlap a step takes `max(inside, messages) + edges`, without it `inside + "
        "messages + edges`. In brackets: the efficiency, the time of one process over P times "
        "that of P.",
    ]
    for cells in (1e6, 1e8):
        ideal = cells * 3 * cell
        rows = []
        for overlap in (False, True):
            times = [
                cost_model.halo_step(CLUSTER, p, cells, 3 * cell, overlap=overlap) for p in COUNTS
            ]
            name = "overlapped" if overlap else "one after the other"
            rows.append(_row(name, times, ideal))
        parts += [f"*{cells:,.0f} cells, assumed cluster*", table(head, rows)]
    parts += [
        "Messages can be hidden as long as the inside of a block takes longer than a latency: with "
        f"{_time(CLUSTER.latency)} and {3 * cell * 1e9:.3g} ns a cell, blocks of "
        f"{CLUSTER.latency / (3 * cell):,.0f} cells and more. Whether they travel meanwhile "
        "depends on the MPI library: large messages need its attention unless it has a thread or a "
        "network card for them. The adjoint of a time loop sends each message once more, in the "
        "opposite direction; with `memory=` each recomputed step sends its messages again.",
    ]
    return parts


def _of_pipelines() -> list[str]:
    head = ["stages", "1 microbatch", "4", "16", "64", "256"]
    rows = [
        [s, *[f"{100 * cost_model.bubble(s, m):.0f} %" for m in (1, 4, 16, 64, 256)]]
        for s in (2, 4, 8, 16, 64)
    ]
    step = cost_model.pipeline_step(CLUSTER, 8, 32, 1.0, 1e6)
    return [
        "## Pipelines",
        "S stages wait for `(S - 1) / (M + S - 1)` of the time (the bubble) if a batch is divided "
        "into M microbatches, whether all go forward first or each goes back as soon as it can:",
        table(head, rows),
        "A batch that takes one second on one process takes "
        f"{_time(step)} on 8 stages with 32 microbatches that send 1 MB each (modelled, assumed "
        "cluster). More microbatches are smaller ones, and more messages.",
    ]
