"""Binomial checkpointing: which states of a loop to store, and in which order to reverse it.

The backward pass of a loop needs the values of its steps, last step first.  There is memory for a
number of states (`slots`), the first state among them, and for the residuals of one block of steps.
A block is recomputed from a stored state, and then reversed.  With s slots, a loop of up to
binomial(s + r, s) blocks can be reversed so that no block is recomputed more than r times, which is
optimal.

    advance               the number of steps to take from a stored state
    reverses_next         whether a block is reversed after these steps, or the state stored
    distance              the steps between stored states in a loop of unknown length
    advances              the total number of recomputed blocks
    stored_by_count       the states that a forward loop of known length stores
    stored_by_distance    those of a loop whose length is unknown until it has ended
    reversal              the whole schedule, action by action
    recomputed            the number of recomputed steps

The first three are also compiled (backends/llvm/loops/checkpoint_storage.py): they are run with
integers that emit native code, and with a `repeat` that emits a loop.

A. Griewank, *Achieving logarithmic growth of temporal and spatial complexity in reverse automatic
differentiation* (1992); A. Griewank and A. Walther, *Algorithm 799: revolve* (2000).  If the length
is unknown, states are stored at equal distances, and every second one is dropped when the slots are
full; P. Stumm and A. Walther, *New algorithms for optimal online checkpointing* (2010), start like
that too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np


def _repeat(step: Callable[..., Any], state: Sequence[int], going: Callable[..., Any]) -> Any:
    """The state after repeating a step while `going` holds for it."""
    while going(*state):
        state = step(*state)
    return state


def _repetitions(blocks: Any, slots: Any, repeat: Callable[..., Any]) -> tuple[Any, Any, Any]:
    """The maximal number of runs of a block, r, and the blocks reversible with r - 1 and r runs.

    The blocks are binomial(slots + r, slots).  Without blocks, r is 0.
    """

    def step(times: Any, _: Any, reach: Any) -> tuple[Any, Any, Any]:
        return times + 1, reach, reach * (slots + times + 1) // (times + 1)

    return repeat(step, (0, 0, 1), lambda times, before, reach: reach < blocks)  # type: ignore[no-any-return]


def _split(blocks: Any, slots: Any, repeat: Callable[..., Any]) -> Any:
    """The number of blocks before the next stored state, with two slots or more."""
    times, reach, _ = _repetitions(blocks, slots, repeat)
    # binomial(slots + times - 2, slots - 1), from binomial(slots + times - 1, slots)
    with_one_slot_less = reach * slots // np.maximum(slots + times - 1, 1)
    return np.minimum(reach, blocks - with_one_slot_less)


def reverses_next(length: Any, slots: Any, block: Any) -> Any:
    """Whether the last block of an interval is reversed, rather than another state stored.

    Parameters
    ----------
    length : int
        The number of steps from a stored state to the end of the interval, at least 1.
    slots : int
        How many states can be stored from this one on, itself included.
    block : int
        The steps in a block.
    """
    return (length <= block) | (slots == 1)


def advance(length: Any, slots: Any, block: Any, repeat: Callable[..., Any] = _repeat) -> Any:
    """The number of steps to take from the first state of an interval.

    They lead to the last block if `reverses_next`, and else to the next state to store.
    """
    blocks = (length + block - 1) // block
    last = reverses_next(length, slots, block)
    blocks_to_split = np.where(last, 1, blocks)
    return np.where(last, blocks - 1, _split(blocks_to_split, slots, repeat)) * block


def distance(length: Any, slots: Any, block: Any, repeat: Callable[..., Any] = _repeat) -> Any:
    """The steps between stored states, where the length was unknown."""
    (steps,) = repeat(lambda d: (2 * d,), (block,), lambda d: d * slots < length)
    return steps


def advances(blocks: int, slots: int) -> int:
    """The number of blocks recomputed to reverse a loop, not counting the reversed runs."""
    if blocks < 2:
        return 0
    times, reach, _ = _repetitions(blocks, slots, _repeat)
    # binomial(slots + times, slots + 1), from binomial(slots + times - 1, slots)
    return times * blocks - reach * (slots + times) // (slots + 1)  # type: ignore[no-any-return]


def blocks_of(length: int, block: int) -> int:
    """The number of blocks in an interval, the last of which may be shorter."""
    return -(-length // block)


def stored_by_count(length: int, slots: int, block: int) -> list[int]:
    """The numbers of the steps before which a loop of known length stores its state."""
    stored = [0]
    while not reverses_next(
        remaining := length - stored[-1], free_slots := slots + 1 - len(stored), block
    ):
        stored.append(stored[-1] + int(advance(remaining, free_slots, block)))
    return stored


def stored_by_distance(length: int, slots: int, block: int) -> list[int]:
    """The same for a loop whose length was unknown."""
    return list(range(0, max(length, 1), distance(length, slots, block)))


class Action(NamedTuple):
    """From the state in a slot: some steps, then either a state is stored or a block reversed.

    slot : of the first state.
    begin : the number of its step.
    steps : the number of steps to take.
    backwards : the steps recomputed with residuals and reversed; 0 if the state is stored.
    """

    slot: int
    begin: int
    steps: int
    backwards: int


def reversal(length: int, slots: int, block: int, stored: Sequence[int] = (0,)) -> Iterator[Action]:
    """All actions that reverse a loop; slot k holds the state before step number stored[k]."""
    stack = [*zip(stored, (*stored[1:], length), strict=True)] if length else []
    while stack:
        begin, end = stack[-1]
        slot = len(stack) - 1
        steps = int(advance(end - begin, slots - slot, block))
        middle = begin + steps
        if not reverses_next(end - begin, slots - slot, block):
            yield Action(slot, begin, steps, 0)
            stack[-1:] = (begin, middle), (middle, end)
            continue
        yield Action(slot, begin, steps, end - middle)
        stack.pop()
        if steps:
            stack.append((begin, middle))


def recomputed(length: int, slots: int, block: int, stored: Sequence[int] = (0,)) -> int:
    """The number of steps repeated to reverse a loop that has stored these states."""
    if not length:
        return 0
    total = length
    for k, (begin, end) in enumerate(zip(stored, (*stored[1:], length), strict=True)):
        total += block * advances(blocks_of(end - begin, block), slots - k)
    return total
