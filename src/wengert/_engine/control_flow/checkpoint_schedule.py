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

The memory budget of checkpointing: how many states a loop may store for its backward pass.

budget_of      the number of states, from the user's `memory=`: a number or bytes (``"64 MiB"``)
bytes_of       the memory of some values
offsets_of     the offsets of the parts of a state in a snapshot
size_of_state  the size of a snapshot

The operands of the backward pass of a checkpointed loop (checkpointed_loop.py), by group.

They are those of the loop, the states that it stored, and the cotangents.

OperandGroups    the groups
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from wengert._engine.core.graph_classes import Body
from wengert._engine.core.node import Node
from wengert._engine.core.spec import Spec
from wengert._engine.core.symbolic.dim import Length, valued
from wengert._engine.core.validation import spelled
from wengert.errors import ArgumentError, at, user_line


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


_UNITS = {
    "b": 1,
    "kb": 10**3,
    "mb": 10**6,
    "gb": 10**9,
    "kib": 1 << 10,
    "mib": 1 << 20,
    "gib": 1 << 30,
}
MOST_STATES = 1 << 20  # with blocks of the same number of steps, enough for any loop
_ALIGNMENT = 8  # bytes: the alignment of the parts of a state
_BYTES = r"\s*(\d+(?:\.\d+)?)\s*([kmg]?i?b)\s*"


def budget_of(memory: int | str | None, specs: Sequence[Spec], what: str) -> dict[str, Any]:
    """The number of states and steps per block, as parameters of a loop; empty if not limited.

    Parameters
    ----------
    memory : int or str or None
        A number of states, or bytes: ``"64 MiB"``.
    specs : sequence of Spec
        Of the carry.
    what : str
        The loop, for messages.

    Raises
    ------
    ArgumentError
        `memory` is neither, or too small for one state.
    """
    if memory is None:
        return {}
    if isinstance(memory, str):
        return {"slots": _of_bytes(memory, specs, what), "bytes": True}
    if isinstance(memory, int | float | np.integer | np.floating) and memory == int(memory) >= 1:
        return {"slots": int(memory)}
    raise ArgumentError(
        f"{what}: memory={spelled(memory)} is not a memory limit. Give the number of states to "
        f'keep, at least 1, or bytes, "64 MiB"{at(user_line())}.'
    )


def _of_bytes(memory: str, specs: Sequence[Spec], what: str) -> int:
    match = re.fullmatch(_BYTES, memory, re.IGNORECASE)
    if match is None:
        raise ArgumentError(
            f"{what}: memory={memory!r} is not a number of bytes. Give one like "
            f'"64 MiB", or the number of states to keep{at(user_line())}.'
        )
    size: Any = sum(s.size * s.dtype.itemsize for s in specs)
    if not isinstance(size, int):
        raise ArgumentError(
            f"{what}: memory={memory!r}, but a state takes {size} bytes, which is not known while "
            f"the graph is built. Give the number of states to keep{at(user_line())}."
        )
    total = float(match[1]) * _UNITS[match[2].lower()]
    if total < size:
        raise ArgumentError(
            f"{what}: memory={memory!r} is too small for one state, which takes {size} bytes"
            f"{at(user_line())}."
        )
    return int(total // max(size, 1))


def bytes_of(nodes: Sequence[Node]) -> int:
    """The memory of some values, with an estimate for symbolic lengths."""
    return sum(int(valued(n.spec.size, Typical())) * n.spec.dtype.itemsize for n in nodes)


def offsets_of(specs: Sequence[Spec]) -> list[Length]:
    """The offsets in bytes of the parts of a state in a snapshot, and the end of the last part."""
    offsets: list[Any] = [0]
    for s in specs:
        size: Any = s.size * s.dtype.itemsize
        offsets.append(offsets[-1] + (size + _ALIGNMENT - 1) // _ALIGNMENT * _ALIGNMENT)
    return offsets


def size_of_state(specs: Sequence[Spec]) -> Length:
    """The size of a snapshot in bytes."""
    return offsets_of(specs)[-1]


class Typical(dict[str, int]):
    """An estimate for each symbolic length."""

    def __missing__(self, name: str) -> int:
        return 64


class OperandGroups:
    """The operands of a node by group.

    Attributes
    ----------
    count : sequence
        The number of steps, if it is an operand.
    consts, carry, xs : sequence
        Of the loop.
    snapshots : sequence
        The states that the forward loop stored.
    more : sequence
        Further loop-invariant operands of the backward loop.
    starts : sequence
        The carried cotangents, and the sums.
    rows : sequence
        The cotangents of the ys.
    """

    def __init__(self, args: Sequence[Any], params: Mapping[str, Any]) -> None:
        step: Body = params["step"]
        carried, stacked = params["carried"], params["stacked"]
        lengths = [
            int(params["counted"]),
            len(step.inputs) - carried - stacked,
            carried,
            stacked,
            1,
            params["more"],
            params["pulled"],
        ]
        groups = []
        start = 0
        for n in lengths:
            groups.append(args[start : start + n])
            start += n
        self.count, self.consts, self.carry, self.xs = groups[:4]
        self.snapshots, self.more, self.starts = groups[4:]
        self.rows = args[start:]
