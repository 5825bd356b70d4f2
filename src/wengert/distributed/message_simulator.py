"""A simulator of messages between processes, which finds programs that would wait forever.

Each process has a list of steps.  A `Send` ends when its receiver takes the message (MPI may keep a
message until then: rendezvous), a `Receive` when its sender sends it.  A send that is `begun` does
not wait; it ends when the message is taken, and all of them have to end after the last step.
Messages from one process to another are taken in the order in which they were sent, as those of
equal tags are.

    Send, Receive    the steps of a process
    unfinished       the steps that wait forever; empty if the programs end
    steps_of         the steps of a process that computes its part of a graph
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Sequence
from typing import NamedTuple

from .placement import Placement


class Send(NamedTuple):
    """Send a message to the process `peer`; if it is `begun` only, continue at once."""

    peer: int
    name: Hashable = None
    begun: bool = False


class Receive(NamedTuple):
    """Take the next message from the process `peer`, which has to be that of that name."""

    peer: int
    name: Hashable = None


Step = Send | Receive


def unfinished(programs: Sequence[Sequence[Step]]) -> dict[int, Step]:
    """Run the steps of all processes.

    Parameters
    ----------
    programs : sequence of sequence of Send or Receive
        The steps of each process, in order.

    Returns
    -------
    dict
        The step that each process waits at forever, by rank; a message that was begun and is never
        taken counts for its sender. Empty if all programs end.

    Raises
    ------
    ValueError
        A process takes a message of another name than it expects.
    """
    next_steps = [0] * len(programs)
    underway: dict[tuple[int, int], deque[Send]] = {}
    waiting: dict[int, Step] = {}
    progress = True
    while progress:
        progress = False
        for rank, program in enumerate(programs):
            while next_steps[rank] < len(program):
                step = program[next_steps[rank]]
                if isinstance(step, Send):
                    messages = underway.setdefault((rank, step.peer), deque())
                    if waiting.get(rank) is not step:
                        messages.append(step)
                        waiting[rank] = step
                        progress = True
                    if not step.begun and any(m is step for m in messages):
                        break
                else:
                    messages = underway.setdefault((step.peer, rank), deque())
                    if not messages:
                        waiting[rank] = step
                        break
                    taken = messages.popleft()
                    if taken.name != step.name:
                        raise ValueError(
                            f"process {rank} expects the message {step.name!r} from process "
                            f"{step.peer}, which sends {taken.name!r}. Send and receive the "
                            "messages of two processes in the same order."
                        )
                waiting.pop(rank, None)
                next_steps[rank] += 1
                progress = True
    stopped = {
        r: p[k] for r, (p, k) in enumerate(zip(programs, next_steps, strict=True)) if k < len(p)
    }
    for (rank, _), messages in underway.items():
        if messages:
            stopped.setdefault(rank, messages[0])
    return stopped


def steps_of(placement: Placement, rank: int, backward: bool = False) -> list[Step]:
    """The messages of a process that computes its part of a graph, or of its backward pass."""
    steps: list[Step] = []
    for m in placement.messages_of(rank):
        sends = (m.source == rank) is not backward
        peer = m.dest if m.source == rank else m.source
        steps.append(Send(peer, m) if sends else Receive(peer, m))
    return steps[::-1] if backward else steps
