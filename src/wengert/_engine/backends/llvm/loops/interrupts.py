"""Interrupts: long loops check for KeyboardInterrupt.

A check (codegen/python_signals.py) needs the GIL, for which a loop that runs without it may have to
wait: so it is made ten times a second, according to a clock that is read after a number of steps.

    InterruptChecks    the checks of one loop
"""

from __future__ import annotations

import os

from ..codegen.python_signals import CLOCK, external, handle_signals
from ..ir.ir_builder import Function, ModuleBuilder, Section
from ..ir.processors import foreign
from ..tuning import thresholds

# A calling convention that preserves all registers, so carried values stay in them.
_CALLING_CONVENTION = "preserve_allcc"
_MONOTONIC = 1  # of clock_gettime on Linux; elsewhere another clock, which is good enough


class InterruptChecks:
    """Emits the checks of one loop.

    Parameters
    ----------
    section : Section
        Before the loop.
    is_light : bool
        Whether a step takes only a few instructions.
    """

    def __init__(self, module: ModuleBuilder, section: Section, is_light: bool) -> None:
        self._module, self._every = (
            module,
            thresholds.interrupt_light_steps if is_light else thresholds.interrupt_heavy_steps,
        )
        self._last = section.function.slot("i64")
        self._status = section.function.slot("i64")
        section.write(f"store i64 0, ptr {self._last}")

    def check(self, section: Section, step: str) -> str:
        """Check for an interrupt every so many steps; the status is nonzero if there is one."""
        if foreign() is not None:  # such code runs without Python
            return "0"
        section.write(f"store i64 0, ptr {self._status}")
        rest = section.value(f"and i64 {step}, {self._every - 1}")
        now = section.value(f"icmp eq i64 {rest}, {self._every - 1}")
        with section.when(now) as inner:
            found = inner.value(
                f"call {_CALLING_CONVENTION} i64 {_check_function(self._module)}(ptr {self._last})"
            )
            inner.write(f"store i64 {found}, ptr {self._status}")
        return section.value(f"load i64, ptr {self._status}")


def _check_function(module: ModuleBuilder) -> str:
    """The function that checks, given the time of the last check; returns ``@name``."""
    if "listen" not in module:
        function = Function(
            module, "listen", [("ptr", "last")], f"{_CALLING_CONVENTION} i64", "noinline nounwind"
        )
        body = function.body
        clock = _clock(module)
        if clock is not None:
            _return_if_early(body, clock)
        body.write(f"ret i64 {handle_signals(body)}")
        module.add(function)
    return "@listen"


def _return_if_early(body: Section, clock: str) -> None:
    """Return unless enough time has passed since the last check."""
    time = body.function.slot("[2 x i64]", 8)
    body.write(f"call i32 {clock}(i32 {_MONOTONIC}, ptr {time})")
    seconds = body.value(f"load i64, ptr {time}")
    rest = body.value(f"load i64, ptr {body.value(f'getelementptr i64, ptr {time}, i64 1')}")
    now = body.value(f"add i64 {body.value(f'mul i64 {seconds}, 1000000000')}, {rest}")
    last = body.value("load i64, ptr %last")
    is_first = body.value(f"icmp eq i64 {last}, 0")
    since = body.value(f"sub i64 {now}, {last}")
    is_early = body.value(f"icmp slt i64 {since}, {thresholds.interrupt_poll_nanoseconds}")
    stays = body.value(f"and i1 {is_early}, {body.value(f'xor i1 {is_first}, true')}")
    kept = body.value(f"select i1 {stays}, i64 {last}, i64 {now}")
    body.write(f"store i64 {kept}, ptr %last")
    n = body.function.number()
    leaves = body.value(f"or i1 {is_early}, {is_first}")
    body.write(f"br i1 {leaves}, label %early{n}, label %check{n}")
    body.label(f"early{n}")
    body.write("ret i64 0")
    body.label(f"check{n}")


def _clock(module: ModuleBuilder) -> str | None:
    """The POSIX clock; None if there is none: then only steps are counted."""
    if os.name != "posix":
        return None
    return external(module, CLOCK, "i32", ["i32", "ptr"])
