"""Listening: a long loop asks Python now and then whether somebody wants to interrupt it.

Ctrl-C sets a flag, which Python looks at between its own instructions, and native code does not.
So a loop calls CPython's `PyErr_CheckSignals`; an exception that this sets ends the run.
"""

from __future__ import annotations

import ctypes

from .assembly import Function, Module, Section
from .islands import RAISED

_STEPS = 65536  # so many steps, and somebody may want to interrupt


def listen(module: Module, section: Section, step: str) -> str:
    """Ask after every so many steps; a status, which is not zero if there is an exception."""
    status = section.function.slot("i64")
    section.write(f"store i64 0, ptr {status}")
    rest = section.value(f"and i64 {step}, {_STEPS - 1}")
    now = section.value(f"icmp eq i64 {rest}, {_STEPS - 1}")
    with section.when(now) as inner:
        found = inner.value(f"call i64 {_asking(module)}()")
        inner.write(f"store i64 {found}, ptr {status}")
    return section.value(f"load i64, ptr {status}")


def _asking(module: Module) -> str:
    """The function that asks, as ``@name``; with or without the lock of the interpreter."""
    if "listen" not in module:
        function = Function(module, "listen", [], "i64", "noinline nounwind")
        body = function.body
        lock = body.value(f"call i32 {_python(module, 'PyGILState_Ensure', 'i32', [])}()")
        raised = body.value(f"call i32 {_python(module, 'PyErr_CheckSignals', 'i32', [])}()")
        release = _python(module, "PyGILState_Release", "void", ["i32"])
        body.write(f"call void {release}(i32 {lock})")
        has = body.value(f"icmp ne i32 {raised}, 0")
        body.write(f"ret i64 {body.value(f'select i1 {has}, i64 {RAISED}, i64 0')}")
        module.add(function)
    return "@listen"


def _python(module: Module, name: str, result: str, arguments: list[str]) -> str:
    address = ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value
    assert address is not None
    module.symbols[name] = address
    return module.declare(name, result, arguments, "nounwind")
