"""What two processes measure: messages, reductions, overlap, and a sum over data.

measured    all of it, in process 0; None in the others
serial      the sum over data in one process, beside which the others sleep
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from time import perf_counter, sleep
from typing import Any

import numpy as np

Run = Callable[[], Any]


class Pair:
    """Two processes that measure together."""

    def __init__(self, quick: bool) -> None:
        from mpi4py import MPI

        from wengert import distributed

        self.comm, self.mpi = distributed.world(), MPI.COMM_WORLD
        self.rank, self.other = self.mpi.Get_rank(), 1 - self.mpi.Get_rank()
        self.repetitions = 5 if quick else 31

    def seconds(self, run: Run) -> dict[str, float]:
        """Of the slower process: the least time, and the median."""
        run()
        times = []
        for _ in range(self.repetitions):
            self.mpi.Barrier()
            begin = perf_counter()
            run()
            times.append(perf_counter() - begin)
        slower = np.max(np.array(self.mpi.allgather(times)), axis=0)
        return {"least": float(slower.min()), "median": float(median(slower))}

    def alternating(self, runs: dict[str, Run]) -> dict[str, dict[str, float]]:
        """The same of several functions that take turns."""
        times: dict[str, list[float]] = {name: [] for name in runs}
        for run in runs.values():
            run()
        for _ in range(self.repetitions):
            for name, run in runs.items():
                self.mpi.Barrier()
                begin = perf_counter()
                run()
                times[name].append(perf_counter() - begin)
        found = {}
        for name, own in times.items():
            slower = np.max(np.array(self.mpi.allgather(own)), axis=0)
            found[name] = {"least": float(slower.min()), "median": float(median(slower))}
        return found


def measured(quick: bool) -> dict[str, Any] | None:
    """All measurements; in process 0."""
    pair = Pair(quick)
    found = {
        "ping_pong": ping_pong(pair, quick),
        "calls": calls(pair),
        "allreduce": allreduce(pair, quick),
        "overlap": overlap(pair, quick),
        "late": late_partner(pair),
        "stencil": stencil(pair, quick),
        "sum_over_data": sum_over_data(pair, quick),
    }
    return found if pair.rank == 0 else None


def ping_pong(pair: Pair, quick: bool) -> list[dict[str, float]]:
    """Half the time of a message and its answer, by mpi4py, for several sizes."""
    found = []
    for size in (8, 1024, 65536, 2**20, 2**23):
        array = np.zeros(size, np.uint8)
        count = max(1, min(200, 2**24 // size) // (10 if quick else 1))

        def run(array: Any = array, count: int = count) -> None:
            for _ in range(count):
                if pair.rank == 0:
                    pair.mpi.Send(array, 1)
                    pair.mpi.Recv(array, 1)
                else:
                    pair.mpi.Recv(array, 0)
                    pair.mpi.Send(array, 0)

        times = pair.seconds(run)
        found.append({"bytes": size, **{k: t / (2 * count) for k, t in times.items()}})
    return found


def calls(pair: Pair) -> dict[str, dict[str, float]]:
    """The time of a message of four numbers in a loop of 1,000, in several ways."""
    import wengert as wg
    from wengert import distributed

    x, received = np.ones(4), np.ones(4)
    other, count = pair.other, 1000

    @wg.jit
    def exchange(x: Any) -> Any:
        return wg.fori_loop(0, count, lambda _, y: distributed.sendrecv(y, other, other), x)

    @wg.jit
    def reduction(x: Any) -> Any:
        return wg.fori_loop(0, count, lambda _, y: distributed.allreduce(y, "mean"), x)

    def by_mpi4py() -> None:
        for _ in range(count):
            pair.mpi.Sendrecv(x, other, 0, received, other, 0)

    def reduction_by_mpi4py() -> None:
        for _ in range(count):
            pair.mpi.Allreduce(x, received)

    def eagerly() -> None:
        for _ in range(count // 10):
            distributed.sendrecv(x, other, other)

    def reduction_eagerly() -> None:
        for _ in range(count // 10):
            distributed.allreduce(x)

    runs = {
        "sendrecv, compiled": lambda: exchange(x),
        "sendrecv, mpi4py": by_mpi4py,
        "sendrecv, eager": eagerly,
        "allreduce, compiled": lambda: reduction(x),
        "allreduce, mpi4py": reduction_by_mpi4py,
        "allreduce, eager": reduction_eagerly,
    }
    times = pair.alternating(runs)
    counts = {name: count // 10 if "eager" in name else count for name in runs}
    return {n: {k: t / counts[n] for k, t in ts.items()} for n, ts in times.items()}


def allreduce(pair: Pair, quick: bool) -> list[dict[str, Any]]:
    """Sums over both processes, for several sizes."""
    import wengert as wg
    from wengert import distributed

    found = []
    for size in (8, 4096, 2**17, 2**20, 2**23):
        x = np.ones(size // 8)
        received = np.empty_like(x)
        count = max(1, min(100, 2**22 // size) // (5 if quick else 1))

        @wg.jit
        def ours(x: Any, count: int = count) -> Any:
            return wg.fori_loop(0, count, lambda _, y: distributed.allreduce(y, "mean"), x)

        def theirs(x: Any = x, received: Any = received, count: int = count) -> None:
            for _ in range(count):
                pair.mpi.Allreduce(x, received)

        times = pair.alternating({"compiled": lambda f=ours, x=x: f(x), "mpi4py": theirs})
        scaled = {n: {k: t / count for k, t in ts.items()} for n, ts in times.items()}
        found.append({"bytes": size, **scaled})
    return found


def overlap(pair: Pair, quick: bool) -> list[dict[str, Any]]:
    """A large message and other work: apart, one after the other, and at the same time."""
    import wengert as wg
    from wengert import distributed
    from wengert import numpy as wnp

    found = []
    other = pair.other
    for size in (2**13, 2**20, 2**23):
        message = np.ones(size // 8)
        data = np.linspace(0.0, 1.0, 60_000 if quick else 400_000)

        def work(x: Any) -> Any:
            for _ in range(4):
                x = wnp.sin(x) + 0.5 * x
            return wnp.sum(x)

        @wg.jit
        def alone(m: Any) -> Any:
            return distributed.sendrecv(m, other, other)

        @wg.jit
        def overlapped(m: Any, x: Any) -> Any:
            y = distributed.sendrecv(m, other, other)
            return wnp.sum(y) + work(x)

        @wg.jit
        def one_after_the_other(m: Any, x: Any) -> Any:
            y = distributed.sendrecv(m, other, other)
            total = wnp.sum(y)
            return total + work(x + 0.0 * total)

        only_work = wg.jit(work)
        runs: dict[str, Run] = {
            "message": lambda f=alone, m=message: f(m),
            "work": lambda f=only_work, x=data: f(x),
            "one after the other": lambda f=one_after_the_other, m=message, x=data: f(m, x),
            "overlapped": lambda f=overlapped, m=message, x=data: f(m, x),
        }
        found.append({"bytes": size, **pair.alternating(runs)})
    return found


def late_partner(pair: Pair) -> dict[str, Any]:
    """Process 1 begins 20 ms later; process 0 computes for about as long. Times of process 0."""
    import wengert as wg
    from wengert import distributed
    from wengert import numpy as wnp

    # Without the comparison at the beginning of a run, for which all processes wait.
    comm = pair.comm
    comm.checked = False
    other, message = pair.other, np.ones(100)
    data = np.linspace(0.0, 1.0, 100_000)

    def work(x: Any) -> Any:
        return wnp.sum(wg.fori_loop(0, 600, lambda _, x: wnp.sin(x) + 0.5 * x, x))

    @wg.jit
    def overlapped(m: Any, x: Any) -> Any:
        y = distributed.sendrecv(m, other, other)
        return wnp.sum(y) + work(x)

    @wg.jit
    def one_after_the_other(m: Any, x: Any) -> Any:
        total = wnp.sum(distributed.sendrecv(m, other, other))
        return total + work(x + 0.0 * total)

    only_work = wg.jit(work)
    found: dict[str, list[float]] = {}
    runs: dict[str, Run] = {
        "work": lambda: only_work(data),
        "one after the other": lambda: one_after_the_other(message, data),
        "overlapped": lambda: overlapped(message, data),
    }
    for name, run in runs.items():
        run()
        for _ in range(max(pair.repetitions // 3, 3)):
            pair.mpi.Barrier()
            if pair.rank == 1:
                sleep(0.02)
            begin = perf_counter()
            run()
            found.setdefault(name, []).append(perf_counter() - begin)
    comm.checked = True
    return {n: {"least": min(ts), "median": float(median(ts))} for n, ts in found.items()}


def stencil(pair: Pair, quick: bool) -> dict[str, Any]:
    """A time step of the heat equation on one process, and on two with and without overlap."""
    import wengert as wg
    from wengert import distributed

    grid = pair.comm.cartesian((2, 1), True)
    side, steps = (128, 10) if quick else (512, 40)

    def heat(u: Any) -> Any:
        inside = u[1:-1, 1:-1]
        others = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2]
        return inside + 0.1 * (others - 4.0 * inside)

    def alone(u: Any) -> Any:
        return wg.fori_loop(0, steps, lambda _, u: np.pad(heat(u), 1), u)

    def apart(u: Any) -> Any:
        def step(_: Any, u: Any) -> Any:
            return np.pad(distributed.map_overlap(heat, u, grid, corners=False), 1)

        return wg.fori_loop(0, steps, step, u)

    def plain(u: Any) -> Any:
        def step(_: Any, u: Any) -> Any:
            return np.pad(heat(distributed.halo_exchange(u, grid, corners=False)), 1)

        return wg.fori_loop(0, steps, step, u)

    u = np.random.default_rng(0).normal(size=(side + 2, side + 2))
    no_messages, halo, overlapped = wg.jit(alone), wg.jit(plain), wg.jit(apart)
    runs: dict[str, Run] = {
        "no messages": lambda: no_messages(u),
        "halo_exchange": lambda: halo(u),
        "map_overlap": lambda: overlapped(u),
    }
    times = pair.alternating(runs)
    scaled = {n: {k: t / steps for k, t in ts.items()} for n, ts in times.items()}
    return {"cells": side * side, **scaled}


def sum_over_data(pair: Pair, quick: bool) -> dict[str, Any]:
    """Value and gradient of a logistic regression: one process with all data, two with half each.

    While one computes alone, the other sleeps.
    """
    import wengert as wg
    from wengert import distributed

    rows, features = (20_000, 20) if quick else (200_000, 20)
    rng = np.random.default_rng(0)
    x = rng.normal(size=(rows, features))
    y = np.where(rng.random(rows) < 0.5, -1.0, 1.0)
    w = 0.1 * rng.normal(size=features)

    def loss(w: Any, x: Any, y: Any) -> Any:
        return np.sum(np.logaddexp(0.0, -y * (x @ w)))

    half = slice(pair.rank * rows // 2, (pair.rank + 1) * rows // 2)
    own_x, own_y = x[half].copy(), y[half].copy()
    alone = wg.jit(wg.value_and_grad(loss))

    def of_part(w: Any, x: Any, y: Any) -> Any:
        return distributed.allreduce(loss(distributed.replicated(w), x, y))

    together = wg.jit(wg.value_and_grad(of_part))
    value, gradient = alone(w, x, y)
    value_2, gradient_2 = together(w, own_x, own_y)
    np.testing.assert_allclose(value_2, value, rtol=1e-12)
    np.testing.assert_allclose(gradient_2, gradient, rtol=1e-9, atol=1e-9)

    one, two = [], []
    for _ in range(pair.repetitions):
        pair.mpi.Barrier()
        if pair.rank == 0:
            begin = perf_counter()
            alone(w, x, y)
            one.append(perf_counter() - begin)
            pair.mpi.send(None, 1, 77)
        else:
            while not pair.mpi.Iprobe(0, 77):
                sleep(1e-3)
            pair.mpi.recv(source=0, tag=77)
        pair.mpi.Barrier()
        begin = perf_counter()
        together(w, own_x, own_y)
        two.append(perf_counter() - begin)
    slower = np.max(np.array(pair.mpi.allgather(two)), axis=0)
    if pair.rank:
        return {}
    return {
        "rows": rows,
        "features": features,
        "one process": {"least": min(one), "median": float(median(one))},
        "two processes": {"least": float(slower.min()), "median": float(median(slower))},
    }
