"""Processes that compute and exchange messages, simulated event by event.

A program is a list of actions for each process:

    ("work", seconds)
    ("send", process, bytes)    does not wait; a process sends one message after the other
    ("receive", process)        waits for the next message from that process

A message arrives after the time to send it and the latency.  `simulated` returns the time at which
the last process ends, and raises `Deadlock` if processes wait for messages that are never sent.
Nothing here uses MPI, so schedules for many processes are checked on one.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass

Action = tuple[object, ...]


class Deadlock(RuntimeError):
    """Processes wait for messages that are never sent."""


@dataclass(frozen=True)
class Network:
    """latency : seconds; bandwidth : bytes per second."""

    latency: float
    bandwidth: float

    def message(self, size: float) -> float:
        """The time of a message of a number of bytes."""
        return self.latency + size / self.bandwidth


def simulated(programs: Sequence[Sequence[Action]], network: Network) -> float:
    """The time at which the last process has done all its actions."""
    now = [0.0] * len(programs)
    link_free = [0.0] * len(programs)
    next_action = [0] * len(programs)
    arrived: dict[tuple[int, int], deque[float]] = defaultdict(deque)
    moved = True
    while moved:
        moved = False
        for rank, program in enumerate(programs):
            while next_action[rank] < len(program):
                kind, *rest = program[next_action[rank]]
                if kind == "work":
                    now[rank] += rest[0]
                elif kind == "send":
                    to, size = rest
                    link_free[rank] = max(link_free[rank], now[rank]) + size / network.bandwidth
                    arrived[rank, to].append(link_free[rank] + network.latency)
                else:
                    waiting = arrived[rest[0], rank]
                    if not waiting:
                        break
                    now[rank] = max(now[rank], waiting.popleft())
                next_action[rank] += 1
                moved = True
    stuck = [r for r, program in enumerate(programs) if next_action[r] < len(program)]
    if stuck:
        raise Deadlock(f"processes {stuck} wait for messages that are never sent")
    return max(now)


def ring_allreduce(count: int, size: float) -> list[list[Action]]:
    """Each process passes a part of the array on to the next, twice around."""
    part = size / count
    steps = 2 * (count - 1)
    return [
        [
            action
            for _ in range(steps)
            for action in (("send", (r + 1) % count, part), ("receive", (r - 1) % count))
        ]
        for r in range(count)
    ]


def tree_allreduce(count: int, size: float) -> list[list[Action]]:
    """Pairs at distances 1, 2, 4 ... exchange the whole array (recursive doubling)."""
    programs: list[list[Action]] = [[] for _ in range(count)]
    distance = 1
    while distance < count:
        for r in range(count):
            programs[r] += [("send", r ^ distance, size), ("receive", r ^ distance)]
        distance *= 2
    return programs


def halo_steps(
    count: int, steps: int, size: float, inside: float, edges: float, overlap: bool
) -> list[list[Action]]:
    """Time steps on a ring of processes, each of which sends its borders to both neighbors."""
    programs: list[list[Action]] = []
    for r in range(count):
        before, after = (r - 1) % count, (r + 1) % count
        sent: list[Action] = [("send", before, size), ("send", after, size)]
        received: list[Action] = [("receive", before), ("receive", after)]
        work: list[Action] = [("work", inside)]
        one = [*sent, *work, *received] if overlap else [*sent, *received, *work]
        programs.append([*one, ("work", edges)] * steps)
    return programs


def backward_with_buckets(
    count: int, buckets: int, work: float, size: float, overlap: bool
) -> list[list[Action]]:
    """A backward pass whose gradients are added in buckets, on a separate engine if `overlap`.

    The engine of process r is process ``count + r``: it gets a bucket, and reduces it by a ring.
    """
    share = work / buckets
    if not overlap:
        rings = ring_allreduce(count, size / buckets)
        return [[("work", work), *(rings[r] * buckets)] for r in range(count)]
    compute: list[list[Action]] = []
    engine: list[list[Action]] = []
    rings = ring_allreduce(count, size / buckets)
    for r in range(count):
        one: list[Action] = [("work", share), ("send", count + r, 0.0)]
        compute.append([*(one * buckets), *[("receive", count + r)] * buckets])
        own = [(a[0], count + int(str(a[1])), *a[2:]) for a in rings[r]]
        engine.append([("receive", r), *own, ("send", r, 0.0)] * buckets)
    return [*compute, *engine]


def pipeline(stages: int, microbatches: int, forward: float, size: float) -> list[list[Action]]:
    """All microbatches forward through the stages, then all back; a backward part takes twice."""
    programs: list[list[Action]] = []
    for s in range(stages):
        own: list[Action] = []
        for _ in range(microbatches):
            own += [("receive", s - 1)] * (s > 0) + [("work", forward)]
            own += [("send", s + 1, size)] * (s < stages - 1)
        for _ in range(microbatches):
            own += [("receive", s + 1)] * (s < stages - 1) + [("work", 2 * forward)]
            own += [("send", s - 1, size)] * (s > 0)
        programs.append(own)
    return programs
