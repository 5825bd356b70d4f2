"""Global and nonlocal variables that a function assigns.

A traced block carries them like its own variables, and a compiled function assigns them after it
has run; so their values are recorded before the function is called.

note_outer_assignments    record the values of the variables that a function assigns
"""

from __future__ import annotations

from types import FunctionType

from wengert._engine.core.bytecode_names import reads_of

from .state import Speculation


def note_outer_assignments(fun: FunctionType) -> None:
    """Record the values of the global and nonlocal variables that a function assigns.

    Raises
    ------
    NotTraceable
        It assigns a global variable, and its globals are not those of a module.
    """
    assigned = reads_of(fun.__code__)
    if assigned.written_globals and type(fun.__globals__) is not dict:
        Speculation.refuse(f"it calls {fun.__qualname__}, which assigns a global variable")
    for name in sorted(assigned.written_globals):
        Speculation.note_change(fun.__globals__, name)
    if assigned.written_cells:
        cells = dict(zip(fun.__code__.co_freevars, fun.__closure__ or (), strict=True))
        for name in sorted(assigned.written_cells):
            Speculation.note_change(cells[name], name)
