"""The memory budget of checkpointing: how many states a loop may store for its backward pass.

budget_of      the number of states, from the user's `memory=`: a number or bytes (``"64 MiB"``)
bytes_of       the memory of some values
offsets_of     the offsets of the parts of a state in a snapshot
size_of_state  the size of a snapshot
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert._engine.core.node import Node
from wengert._engine.core.spec import Spec
from wengert._engine.core.symbolic.dim import Length, valued
from wengert._engine.core.validation import spelled
from wengert.errors import ArgumentError, at, user_line

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
