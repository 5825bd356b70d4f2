"""Assigned variables: those around a function that it assigns, global and nonlocal ones.

A traced block carries them like its own variables, and a compiled function assigns them after its
run; so they are noted before the function is called.

note_outer_assignments    note the variables of a function
"""

from __future__ import annotations

import dis
import functools
from types import CodeType, FunctionType

from .state import Speculation


def note_outer_assignments(f: FunctionType) -> None:
    """Note the variables around a function that it assigns, or refuse it."""
    names, shared = _assigned_outside(f.__code__)
    if shared and type(f.__globals__) is not dict:
        Speculation.refuse(f"it calls {f.__qualname__}, which assigns a global variable")
    for name in shared:
        Speculation.note_change(f.__globals__, name)
    if names:
        cells = dict(zip(f.__code__.co_freevars, f.__closure__ or (), strict=True))
        for name in names:
            Speculation.note_change(cells[name], name)


@functools.lru_cache(maxsize=4096)
def _assigned_outside(code: CodeType) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The free variables and the global ones that code assigns."""
    free, shared = set(), set()
    waiting = [code]
    while waiting:
        one = waiting.pop()
        for instruction in dis.get_instructions(one):
            if instruction.opname in ("STORE_GLOBAL", "DELETE_GLOBAL"):
                shared.add(instruction.argval)
            elif instruction.opname in ("STORE_DEREF", "DELETE_DEREF") and _is_outside(
                instruction.argval, code, one
            ):
                free.add(instruction.argval)
        waiting += [c for c in one.co_consts if isinstance(c, CodeType)]
    return tuple(free), tuple(shared)


def _is_outside(name: str, code: CodeType, inner: CodeType) -> bool:
    """Whether a variable that `inner`, a part of `code`, assigns belongs to a function around."""
    return name in code.co_freevars and name in inner.co_freevars
