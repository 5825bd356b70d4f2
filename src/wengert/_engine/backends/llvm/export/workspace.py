"""Workspace of exported code: its allocator, and how many bytes a run needs at most.

In this process, generated functions allocate from a pool of the runtime.  Exported functions
allocate from the workspace that the caller gives, as from a stack, and have no state of their own:
so that several threads may call them, each with its workspace.  The state, three addresses (the
top, the end, the last block), is passed as the last argument to every function that allocates,
directly or through others.

A block begins with a header of 64 bytes: the block before it, and whether it is free.  Freeing the
last block also removes the free blocks below it.

    RUNTIME        the functions of the allocator and of a thread pool of one thread, by name
    with_memory    functions of a module with that argument

Code generators record each allocation (`ModuleBuilder.allocations`).  A function does not call
itself, and frees what it has allocated at its end; so at most one block of each allocation exists
at a time, and of the kernels, which call no other kernels, those of one.

    Bound       terms whose sum is the bound: polynomials of sizes, and the larger of some
    bound_of    the bound of a program
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from wengert._engine.core.symbolic.dim import Length
from wengert._engine.core.symbolic.dim import names_in as sizes_in

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


# ---- its bound -----------------------------------------------------------------------------------


_HEADER, _LINE = 64, 64  # bytes of a block's header, and of a cache line
_KERNEL = re.compile(r"step\d+")


@dataclass(frozen=True)
class Bound:
    """A bound of the workspace.

    Attributes
    ----------
    lengths : tuple of Length
        Bytes that are allocated at the same time.
    is_known : bool
        False if the run allocates more, whose bytes depend on values.
    """

    lengths: tuple[Length, ...]
    is_known: bool

    @property
    def is_zero(self) -> bool:
        """Whether nothing is allocated."""
        return not self.lengths and self.is_known


def bound_of(
    allocations: Sequence[tuple[str, Length | None]],
    sizes: Sequence[str],
    extra: int | None,
    given: int = 0,
) -> Bound:
    """The bound for a program.

    Parameters
    ----------
    allocations : sequence of (str, Length or None)
        As in `ModuleBuilder.allocations`.
    sizes : sequence of str
        The sizes that callers give.
    extra : int or None
        Bytes that functions of kernels allocate; None if unknown.
    given : int
        Bytes for what is unknown.
    """
    known = set(sizes)
    found: list[Length] = []
    is_known = extra is not None
    kernels: dict[str, list[Length]] = {}
    for function, length in allocations:
        if length is None or not sizes_in([length]) <= known:
            is_known = False
            continue
        size = length + (_HEADER + _LINE)
        match = _KERNEL.match(function)
        if match is None:
            found.append(size)
        else:
            kernels.setdefault(match[0], []).append(size)
    found += _largest(kernels)
    if extra:
        found.append(extra + _HEADER + _LINE)
    if not is_known:
        found.append(given)
    if found:
        found.append(2 * _LINE)
    return Bound(tuple(found), is_known or given > 0)


def _largest(kernels: Mapping[str, Sequence[Length]]) -> list[Length]:
    """The bytes of the kernel that allocates most; of all, if that depends on sizes."""
    totals = [sum(lengths) for lengths in kernels.values()]
    numbers = [n for n in totals if isinstance(n, int)]
    others = [n for n in totals if not isinstance(n, int)]
    return [*others, *([max(numbers)] if numbers else [])]
