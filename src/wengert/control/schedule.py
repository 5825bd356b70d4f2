"""Schedule: which states of a loop to keep where there is room for a few, so that least is redone.

Going backwards through l steps needs the state before each of them.  With room for s states, the
first one among them, a loop of up to binomial(s + r, s) steps can be reversed so that no step is
taken more than r times beside its reversal; and no other way takes fewer steps in all.

    split       how far to go before the next state is kept
    advances    how many steps are taken in all, beside those backwards
    reversal    the order of it, action by action

A. Griewank, *Achieving logarithmic growth of temporal and spatial complexity in reverse automatic
differentiation* (1992); A. Griewank and A. Walther, *Algorithm 799: revolve* (2000).
"""

from __future__ import annotations

from collections.abc import Iterator
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


class Action(NamedTuple):
    """From the state in a slot: so many steps into the next slot, or one step backwards.

    slot : of the state that is begun with.
    begin : its number.
    steps : how many are taken.
    backwards : whether the step that follows is then reversed, and no state is kept.
    """

    slot: int
    begin: int
    steps: int
    backwards: bool


def reversal(length: int, slots: int) -> Iterator[Action]:
    """All actions that reverse a loop; slot 0 holds the first state."""
    stack = [(0, length)] if length else []
    while stack:
        begin, end = stack[-1]
        slot, room = len(stack) - 1, slots - len(stack) + 1
        if end - begin == 1:
            yield Action(slot, begin, 0, True)
            stack.pop()
        elif room == 1:
            yield Action(slot, begin, end - begin - 1, True)
            stack[-1] = begin, end - 1
        else:
            steps = split(end - begin, room)
            yield Action(slot, begin, steps, False)
            stack[-1] = begin, begin + steps
            stack.append((begin + steps, end))
