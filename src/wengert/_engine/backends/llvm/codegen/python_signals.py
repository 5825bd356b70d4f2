"""Signals: native code lets Python handle them, as Ctrl-C, whose handler raises KeyboardInterrupt.

A signal sets a flag that Python checks between its instructions, but native code does not.  It
calls CPython's `PyErr_CheckSignals`; a Python exception that a handler raises there ends the run.

    handle_signals    handle signals that have come
    external          declare an external function
    LISTENED          the external functions that this needs; `address_of` returns their addresses
"""

from __future__ import annotations

import ctypes

from ..ir.ir_builder import ModuleBuilder, Section

RAISED = 2  # the status of a run in which Python code raised
CLOCK = "clock_gettime"
_LOCK, _SIGNALS, _UNLOCK = "PyGILState_Ensure", "PyErr_CheckSignals", "PyGILState_Release"
LISTENED = frozenset({CLOCK, _LOCK, _SIGNALS, _UNLOCK})


def handle_signals(section: Section) -> str:
    """Let Python handle signals; the status is nonzero if that raised an exception."""
    module = section.function.module
    lock = section.value(f"call i32 {external(module, _LOCK, 'i32', [])}()")
    raised = section.value(f"call i32 {external(module, _SIGNALS, 'i32', [])}()")
    release = external(module, _UNLOCK, "void", ["i32"])
    section.write(f"call void {release}(i32 {lock})")
    has = section.value(f"icmp ne i32 {raised}, 0")
    return str(section.value(f"select i1 {has}, i64 {RAISED}, i64 0"))


def external(module: ModuleBuilder, name: str, result: str, arguments: list[str]) -> str:
    """Declare an external function; returns ``@name``."""
    module.symbols[name] = address_of(name)
    return module.declare(name, result, arguments, "nounwind")


def address_of(name: str) -> int:
    """The address of an external function."""
    library: ctypes.CDLL = ctypes.CDLL(None) if name == CLOCK else ctypes.pythonapi
    address = ctypes.cast(getattr(library, name), ctypes.c_void_p).value
    assert address is not None
    return address
