"""Builders of C functions that run programs without Python, and the callbacks of Ipopt.

    CallbackBuilder   builds a callback of a program
    FrameBuilder      the same with the frame of the program on the stack, for the forms of
                      c_pointers.py and vector_callbacks.py: the builders derived from it write
                      where each input and output is, checks, and the result
    intermediate      the address of the last callback of Ipopt

The forms of Ipopt, in the declarations of ipyopt (`bool` is one byte, and true means success):

    ipopt f        bool(int n, double *x, double *out, void *data)       also the gradient of f
    ipopt g        bool(int n, double *x, int m, double *out, void *data)
    ipopt jac_g    bool(int n, double *x, int m, int nele, double *out, void *data)
    ipopt h        bool(int n, double *x, double factor, int m, double *lambda, int nele,
                        double *out, void *data)
    intermediate   after each iteration: whether Ipopt continues

The inputs of a program are x (for h: x, factor, lambda), then others, whose addresses are in the
memory at `data`; the caller writes and reads it as an array of 8-byte integers:

    STOP           address of an integer that, unless it is zero, makes all callbacks return false
    CALLS, NANOSECONDS, FAILURES   counts, and the time in the programs
    ELEMENT        of the last failure: which element of the result is not finite, or -1
    STATUS         of the last failure: 0, or the status of the program (codegen/host_callbacks.py)
    FIRST_INPUT    the addresses of further inputs, from here on

A callback returns false if the program fails or its result is not finite, so that Ipopt tries a
shorter step.
"""

from __future__ import annotations

import ctypes
import functools
import os
from collections.abc import Sequence
from typing import Any

from ..ir import execution_engine
from ..ir.execution_engine import Code
from ..ir.ir_builder import ModuleBuilder, Name
from ..ir.llvm_types import in_memory
from .entry_builder import FunctionBuilder
from .ports import CallInterface, Port

STOP, CALLS, NANOSECONDS, FAILURES, ELEMENT, STATUS, FIRST_INPUT = range(7)
RAISED = 2  # the status of a program in which a host callback raised
_INPUTS = [("i32", "n"), ("ptr", "x")]
FORMS = {
    "ipoptf": [*_INPUTS, ("ptr", "out"), ("ptr", "data")],
    "ipoptg": [*_INPUTS, ("i32", "m"), ("ptr", "out"), ("ptr", "data")],
    "ipoptjac_g": [*_INPUTS, ("i32", "m"), ("i32", "nele"), ("ptr", "out"), ("ptr", "data")],
    "ipopth": [
        *_INPUTS,
        ("double", "factor"),
        ("i32", "m"),
        ("ptr", "lambda"),
        ("i32", "nele"),
        ("ptr", "out"),
        ("ptr", "data"),
    ],
}
_INTERMEDIATE = [
    ("i32", "mode"),
    ("i32", "iteration"),
    *[("double", f"measure{k}") for k in range(8)],
    ("i32", "trials"),
    ("ptr", "own_data"),
    ("ptr", "quantities"),
    ("ptr", "data"),
]
# The number of the clock of clock_gettime: on Linux 1 is CLOCK_MONOTONIC, and 3 the time of the
# processor in this thread, for measurements on busy machines.
clock_number = 1


def given_inputs(form: str) -> int:
    """How many inputs of the program Ipopt passes."""
    return 3 if form == "ipopth" else 1


class CallbackBuilder(FunctionBuilder):
    """Builds the parts of a callback that are not about the frame of the program."""

    def refuse_if_stopped(self) -> None:
        """Return false if some callback has failed for good."""
        flag = self.load("ptr", "%data", 8 * STOP)
        self.check(self.same(self.load("i64", flag), "0", "i64"))
        self.branch_on_checks()

    def time(self) -> Name:
        """The time in nanoseconds; 0 without a POSIX clock."""
        address = _address_of_clock()
        if not address:
            return "0"
        cell = self.function.slot("[2 x i64]", 8)
        self.write(f"call i32 inttoptr (i64 {address} to ptr)(i32 {clock_number}, ptr {cell})")
        seconds = self.value(f"mul i64 {self.load('i64', cell)}, 1000000000")
        return self.value(f"add i64 {seconds}, {self.load('i64', cell, 8)}")

    def add(self, word: int, amount: Name) -> None:
        """Add to a count."""
        before = self.load("i64", "%data", 8 * word)
        self.store("i64", self.value(f"add i64 {before}, {amount}"), "%data", 8 * word)

    def return_whether_finite(self, status: Name, size: int) -> None:
        """Return whether the run has succeeded and all elements of the result are finite."""
        failed, bad = self.fresh("failed"), self.fresh("bad")
        self.unless(self.same(status, "0", "i64"), failed)
        found = self.function.slot("i64")
        self.write(f"store i64 -1, ptr {found}")
        with self.section.loop("0", str(size)) as (body, k):
            at = body.value(f"getelementptr double, ptr %out, i64 {k}")
            value = body.value(f"load double, ptr {at}")
            rest = body.value(f"fsub double {value}, {value}")
            finite = body.value(f"fcmp oeq double {rest}, 0.0")
            before = body.value(f"load i64, ptr {found}")
            body.write(
                f"store i64 {body.value(f'select i1 {finite}, i64 {before}, i64 {k}')}, ptr {found}"
            )
        element = self.load("i64", found)
        self.unless(self.same(element, "-1", "i64"), bad)
        self.write("ret i32 1")
        self.label(failed)
        self.store("i64", "-1", "%data", 8 * ELEMENT)
        raised = self.value(f"zext i1 {self.same(status, str(RAISED), 'i64')} to i64")
        flag = self.load("ptr", "%data", 8 * STOP)
        stopped = self.value(f"or i64 {self.load('i64', flag)}, {raised}")
        self.store("i64", stopped, flag)
        self.go(end := self.fresh("end"))
        self.label(bad)
        self.store("i64", element, "%data", 8 * ELEMENT)
        self.go(end)
        self.label(end)
        self.store("i64", status, "%data", 8 * STATUS)
        self.add(FAILURES, "1")
        self.write("ret i32 0")


@functools.cache
def _address_of_clock() -> int:
    if os.name != "posix":
        return 0
    return ctypes.cast(ctypes.CDLL(None).clock_gettime, ctypes.c_void_p).value or 0


@functools.cache
def _intermediate_code() -> Code:
    signals = ctypes.cast(ctypes.pythonapi.PyErr_CheckSignals, ctypes.c_void_p).value
    module = ModuleBuilder()
    builder = CallbackBuilder(module, "intermediate", _INTERMEDIATE, "i32")
    builder.refuse_if_stopped()
    raised = builder.value(f"call i32 inttoptr (i64 {signals} to ptr)()")
    builder.check(builder.same(raised, "0", "i32"))
    builder.branch_on_checks()
    builder.write("ret i32 1")
    builder.label("miss")
    builder.write("ret i32 0")
    module.add(builder.function)
    return Code(execution_engine.object_of(module.text(execution_engine.heading())), {})


def intermediate() -> int:
    """The address of the callback after each iteration.

    It stops if a callback has failed for good, and if a handler of a signal has raised an
    exception, which is then set (the caller holds the GIL).
    """
    return _intermediate_code().address("intermediate")


# ---- any C function that runs a program ----------------------------------------------------------


class FrameBuilder(CallbackBuilder):
    """Builds a C function that runs a program.

    Parameters
    ----------
    kernel : int
        The address of the program's function.
    arguments : sequence of (str, str)
        LLVM types and names of the arguments.
    result : str
        The LLVM type of the result.
    """

    def __init__(
        self,
        module: ModuleBuilder,
        program: CallInterface,
        kernel: int,
        arguments: Sequence[tuple[str, str]],
        result: str,
    ) -> None:
        super().__init__(module, "pointer", arguments, result)
        self._program, self._kernel, self._result = program, kernel, result
        self._frame = self.function.slot(f"[{max(program.slots, 1)} x i64]", 8)
        for slot, array in program.constants:
            self._put(slot, str(array.ctypes.data), "i64")

    def _put(self, slot: int, value: Name, kind: str) -> None:
        self.store(kind, value, self._frame, 8 * slot)

    def _cell(self, port: Port, value: Name) -> Name:
        """A stack slot with a value in the dtype of a port."""
        cell = self.function.slot("[16 x i8]", 16)
        self.store(in_memory(port.spec.dtype), value, cell)
        return cell

    def check_address(self, place: Name, alignment: int = 8) -> None:
        """Check that an address is not null, and aligned."""
        number = self.value(f"ptrtoint ptr {place} to i64")
        self.check(self.value(f"icmp ne i64 {number}, 0"))
        if alignment > 1:
            rest = self.value(f"and i64 {number}, {alignment - 1}")
            self.check(self.same(rest, "0", "i64"))

    def _run(self) -> Name:
        kernel = f"inttoptr (i64 {self._kernel} to ptr)"
        self.branch_on_checks()
        return self.value(f"call i64 {kernel}(ptr {self._frame})")

    def _contiguous(self, port: Port) -> None:
        """Set the strides of C-contiguous data if the port takes strides."""
        if port.strided:
            step: Any = port.spec.dtype.itemsize
            for axis in range(port.spec.ndim - 1, -1, -1):
                self._put(port.slot + 1 + axis, self.lengths.number(step), "i64")
                step = step * port.spec.shape[axis]

    def _check_requirements(self) -> None:
        """Check the conditions on the sizes, which are known, and put them into the frame."""
        program = self._program
        for requirement in program.requirements:
            relation = "eq" if requirement.equal else "sge"
            value = self.lengths.number(requirement.length)
            self.check(self.value(f"icmp {relation} i64 {value}, 0"))
        for size, slot in zip(program.sizes, program.size_slots, strict=True):
            self._put(slot, self.lengths.bound[size], "i64")

    def _return_on_miss(self, value: str) -> None:
        """The block for failed checks, the last one."""
        self.label("miss")
        self.write(f"ret {value}")
        self.module.add(self.function)
