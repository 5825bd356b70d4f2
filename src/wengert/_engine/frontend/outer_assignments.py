"""Global and nonlocal variables that a function assigns.

A traced block carries them like its own variables, and a compiled function assigns them after it
has run; so their values are recorded before the function is called.

note_outer_assignments    record the values of the variables that a function assigns
"""

from __future__ import annotations

import dis
import functools
from types import CodeType, FunctionType

from .code_facts import nested_code
from .state import Speculation


def note_outer_assignments(fun: FunctionType) -> None:
    """Record the values of the global and nonlocal variables that a function assigns.

    Raises
    ------
    NotTraceable
        It assigns a global variable, and its globals are not those of a module.
    """
    nonlocal_names, global_names = _assigned_outside(fun.__code__)
    if global_names and type(fun.__globals__) is not dict:
        Speculation.refuse(f"it calls {fun.__qualname__}, which assigns a global variable")
    for name in global_names:
        Speculation.note_change(fun.__globals__, name)
    if nonlocal_names:
        cells = dict(zip(fun.__code__.co_freevars, fun.__closure__ or (), strict=True))
        for name in nonlocal_names:
            Speculation.note_change(cells[name], name)


@functools.lru_cache(maxsize=4096)
def _assigned_outside(code: CodeType) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The nonlocal and the global variables that code assigns."""
    nonlocal_names, global_names = set(), set()
    for inner in nested_code(code):
        for instruction in dis.get_instructions(inner):
            if instruction.opname in ("STORE_GLOBAL", "DELETE_GLOBAL"):
                global_names.add(instruction.argval)
            elif instruction.opname in ("STORE_DEREF", "DELETE_DEREF") and _is_outside(
                instruction.argval, code, inner
            ):
                nonlocal_names.add(instruction.argval)

    return tuple(nonlocal_names), tuple(global_names)


def _is_outside(name: str, code: CodeType, inner: CodeType) -> bool:
    """Whether a variable that is assigned in `inner`, a part of `code`, is free in `code` too."""
    return name in code.co_freevars and name in inner.co_freevars
