"""Orders in which the stages of a pipeline process the microbatches of a batch.

A stage runs the forward and the backward pass of each microbatch.  With ``"gpipe"`` all forward
passes come first.  With ``"1f1b"`` (one forward, one backward) a stage begins the backward pass of
a microbatch as early as possible, so that stage s of S stages stores the values of at most S - s
microbatches.  Both add the gradients in the order of the microbatches.

    SCHEDULES     the names
    passes        the passes of one stage, in order
    messages      its messages, for the simulator
    stored        the greatest number of microbatches whose values a stage stores
"""

from __future__ import annotations

from .message_simulator import Receive, Send, Step

SCHEDULES = "1f1b", "gpipe"
FORWARD, BACKWARD = "forward", "backward"
Pass = tuple[str, int]  # FORWARD or BACKWARD, and the number of the microbatch


def passes(schedule: str, stage: int, stages: int, microbatches: int) -> list[Pass]:
    """The passes of one stage, in order.

    Parameters
    ----------
    schedule : {"1f1b", "gpipe"}
    stage, stages : int
        The number of the stage, and of all stages.
    microbatches : int
    """
    ahead = microbatches if schedule == "gpipe" else min(stages - 1 - stage, microbatches)
    order = [(FORWARD, k) for k in range(ahead)]
    for k in range(microbatches):
        if ahead + k < microbatches:
            order.append((FORWARD, ahead + k))
        order.append((BACKWARD, k))
    return order


def messages(schedule: str, stage: int, stages: int, microbatches: int) -> list[Step]:
    """The messages of one stage; those that are sent are begun, and waited for at the end."""
    steps: list[Step] = []
    for direction, k in passes(schedule, stage, stages, microbatches):
        before, after = (stage - 1, stage + 1) if direction == FORWARD else (stage + 1, stage - 1)
        if 0 <= before < stages:
            steps.append(Receive(before, (direction, k)))
        if 0 <= after < stages:
            steps.append(Send(after, (direction, k), begun=True))
    return steps


def stored(schedule: str, stage: int, stages: int, microbatches: int) -> int:
    """The greatest number of microbatches whose values a stage stores at the same time."""
    count = most = 0
    for direction, _ in passes(schedule, stage, stages, microbatches):
        count += 1 if direction == FORWARD else -1
        most = max(most, count)
    return most
