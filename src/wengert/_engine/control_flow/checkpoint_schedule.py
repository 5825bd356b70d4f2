"""Schedule: which states of a loop to keep where there is room for a few, so that least is redone.

Going backwards through a loop needs what its steps computed, last step first.  There is room for so
many states, the first one among them, and for what the backward pass needs of one block of steps; a
block is gone through once more, and then backwards.  With room for s states a loop of up to
binomial(s + r, s) blocks can be reversed so that no block is taken more than r times before its
last time; and no other way takes fewer in all.

    split       how far to go before the next state is kept
    advances    how many are taken in all, beside their last time
    left        the states that a forward loop of known length leaves for the backward pass
    spread      those of one whose length nobody knows before it has ended
    reversal    the order of it, action by action
    again       how many steps are taken again, exactly

A. Griewank, *Achieving logarithmic growth of temporal and spatial complexity in reverse automatic
differentiation* (1992); A. Griewank and A. Walther, *Algorithm 799: revolve* (2000).  Where the
length is not known, states are kept at equal distances, and every second one is let go when there
is no more room: P. Stumm and A. Walther, *New algorithms for optimal online checkpointing* (2010),
start like that too.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple


def reach(room: int, times: int) -> int:
    """How many steps can be reversed with room for so many states, none taken more often."""
    if room < 0 or times < 0:
        return 0
    found = 1
    for k in range(1, min(room, times) + 1):
        found = found * (room + times + 1 - k) // k
    return found


def repetitions(length: int, room: int) -> int:
    """How often a step has to be taken at most."""
    times = 0
    while reach(room, times) < length:
        times += 1
    return times


def split(length: int, room: int) -> int:
    """After how many of the steps to keep the next state, with room for two at least."""
    times = repetitions(length, room)
    return min(reach(room, times - 1), length - reach(room - 1, times - 1))


def advances(length: int, room: int) -> int:
    """How many steps are taken to reverse a loop, beside the reversals, with room for states."""
    if length < 2:
        return 0
    times = repetitions(length, room)
    return times * length - reach(room + 1, times - 1)


def blocks_of(length: int, block: int) -> int:
    """How many blocks a stretch has, the last of which may be shorter."""
    return -(-length // block)


def left(length: int, slots: int, block: int) -> list[int]:
    """The numbers of the steps before which a loop of known length keeps its state."""
    found = [0]
    while (blocks := blocks_of(length - found[-1], block)) > 1 and len(found) < slots:
        found.append(found[-1] + block * split(blocks, slots - len(found) + 1))
    return found


def spread(length: int, slots: int, block: int) -> list[int]:
    """The same, where it was not known how long the loop would be."""
    while blocks_of(length, block) > slots:
        block *= 2
    return list(range(0, max(length, 1), block))


class Action(NamedTuple):
    """From the state in a slot: some steps, then either a state is kept or a block reversed.

    slot : of the state that is begun with.
    begin : the number of its step.
    steps : how many are taken.
    backwards : how many are then taken once more and reversed; 0 if the state is kept.
    """

    slot: int
    begin: int
    steps: int
    backwards: int


def reversal(length: int, slots: int, block: int, kept: Sequence[int] = (0,)) -> Iterator[Action]:
    """All actions that reverse a loop; slot k holds the state before step number kept[k]."""
    stack = [*zip(kept, (*kept[1:], length), strict=True)] if length else []
    while stack:
        begin, end = stack[-1]
        slot, room = len(stack) - 1, slots - len(stack) + 1
        blocks = blocks_of(end - begin, block)
        if blocks == 1 or room == 1:
            middle = begin + block * (blocks - 1)
            yield Action(slot, begin, middle - begin, end - middle)
            stack.pop()
            if blocks > 1:
                stack.append((begin, middle))
        else:
            middle = begin + block * split(blocks, room)
            yield Action(slot, begin, middle - begin, 0)
            stack[-1:] = (begin, middle), (middle, end)


def again(length: int, slots: int, block: int, kept: Sequence[int] = (0,)) -> int:
    """How many steps are taken again to reverse a loop that has left these states."""
    if not length:
        return 0
    total = length
    for k, (begin, end) in enumerate(zip(kept, (*kept[1:], length), strict=True)):
        total += block * advances(blocks_of(end - begin, block), slots - k)
    return total
