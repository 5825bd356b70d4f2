"""The bytes of workspace that a run of an exported function needs at most.

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

from wengert._engine.core.symbolic.dim import Length, names_in

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
        if length is None or not names_in([length]) <= known:
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
