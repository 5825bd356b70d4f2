"""The allocator of exported code: its state is an argument of all functions that allocate.

In this process, generated functions allocate from a pool of the runtime.  Exported functions
allocate from the workspace that the caller gives, as from a stack, and have no state of their own:
so that several threads may call them, each with its workspace.  The state, three addresses (the
top, the end, the last block), is passed as the last argument to every function that allocates,
directly or through others.

A block begins with a header of 64 bytes: the block before it, and whether it is free.  Freeing the
last block also removes the free blocks below it.

    RUNTIME        the functions of the allocator and of a thread pool of one thread, by name
    with_memory    functions of a module with that argument
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from ..ir.llvm_types import functions

RUNTIME = functions(__file__)
STATE_WORDS = 3
_ALLOCATES = frozenset({"wengert_alloc", "wengert_free", "wengert_parallel"})
_NAME = re.compile(r"@([-\w.$]+)")
_CALLED = re.compile(r"@([-\w.$]+)\(")
_PASSED = re.compile(r"ptr @([-\w.$]+)")


def names_in(text: str) -> set[str]:
    """The global names in a text of LLVM IR."""
    return set(_NAME.findall(text))


def with_memory(parts: Mapping[str, str]) -> tuple[dict[str, str], set[str]]:
    """Functions that pass on the state of the allocator, and the names of these.

    Parameters
    ----------
    parts : mapping from str to str
        The functions of a module, without the runtime's.
    """
    bodies = {n: t for n, t in parts.items() if t.startswith("define")}
    # What is passed to `wengert_parallel` is called with the state.
    passed = {n for t in bodies.values() for n in _PASSED.findall(t) if n in bodies}
    chosen = set(_ALLOCATES | passed)
    users: dict[str, set[str]] = {}
    for name, text in bodies.items():
        for used in names_in(text):
            users.setdefault(used, set()).add(name)
    pending = list(chosen)
    while pending:
        new = users.get(pending.pop(), set()) - chosen
        chosen |= new
        pending += new
    found = {n: _passing(t, chosen) if n in chosen else t for n, t in parts.items()}
    return found, chosen & bodies.keys()


def _passing(text: str, chosen: set[str]) -> str:
    """A function with the argument, which it passes to the chosen ones."""
    pieces, position = [], 0
    for match in _CALLED.finditer(text):
        if match[1] in chosen:
            end = _closing(text, match.end())
            empty = not text[match.end() : end].strip()
            pieces += [text[position:end], "ptr %memory" if empty else ", ptr %memory"]
            position = end
    return "".join([*pieces, text[position:]])


def _closing(text: str, position: int) -> int:
    """The position of the parenthesis that closes the one before a position."""
    depth = 1
    while True:
        character = text[position]
        depth += (character == "(") - (character == ")")
        if not depth:
            return position
        position += 1
