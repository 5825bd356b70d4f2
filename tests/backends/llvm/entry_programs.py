"""Programs written by hand, for the tests of entries: what a frame is and a function `kernel`."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import numpy as np

from wengert._engine.backends.llvm.abi import entry_text, make_entry
from wengert._engine.backends.llvm.abi.ports import Port
from wengert._engine.backends.llvm.ir import execution_engine
from wengert._engine.backends.llvm.ir.ir_builder import Function, ModuleBuilder
from wengert._engine.backends.llvm.ir.llvm_types import in_memory
from wengert._engine.core.spec import Spec
from wengert._engine.core.symbolic.constraints import dim


@dataclass
class Program:
    """What an entry has to know of a program."""

    inputs: tuple
    outputs: tuple
    sizes: tuple = ()
    size_slots: tuple = ()
    slots: int = 0
    constants: tuple = ()
    requirements: tuple = ()
    work_bytes: object = 0
    body: object = field(default=None, repr=False)


def lengths(text):
    """The lengths of a shape that is written as text: "n,2*n+1,3"."""
    parts = [part for part in (text or "").split(",") if part]
    return tuple(int(part) if part.isdigit() else dim(part) for part in parts)


def spec(text):
    """A spec from "float64[n,3]"; weak from "float64*"."""
    name, shape, weak = re.fullmatch(r"(\w+)(?:\[(.*)\])?(\*?)", text).groups()
    return Spec(lengths(shape), np.dtype(name), bool(weak))


def program(inputs, outputs, body, *, strided=(), slots=None, constants=(), **more):
    """Lay out a frame as docs/design/0009-native.md says."""
    slot, ins, outs = 0, [], []
    names = set()
    for k, text in enumerate(inputs):
        s = spec(text)
        ins.append(Port(s, slot, k in strided))
        slot += 1 + (s.ndim if k in strided else 0)
        names |= {name for n in s.shape if not isinstance(n, int) for name in n.names}
    sizes = tuple(sorted(names))
    size_slots = tuple(range(slot, slot + len(sizes)))
    slot += len(sizes)
    for text in outputs:
        outs.append(Port(spec(text), slot))
        slot += 1
    held = []
    for array in constants:
        held.append((slot, array))
        slot += 1
    return Program(
        tuple(ins), tuple(outs), sizes, size_slots, slots or slot, tuple(held), body=body, **more
    )


class Frame:
    """What a body of a hand-written kernel uses."""

    def __init__(self, section):
        self.section = section

    def slot(self, k, kind="ptr"):
        place = self.section.value(f"getelementptr i64, ptr %frame, i64 {k}")
        return self.section.value(f"load {kind}, ptr {place}")

    def read(self, port, index="0"):
        kind = in_memory(port.spec.dtype)
        place = self.section.value(f"getelementptr {kind}, ptr {self.slot(port.slot)}, i64 {index}")
        return self.section.value(f"load {kind}, ptr {place}")

    def write(self, port, value, index="0"):
        kind = in_memory(port.spec.dtype)
        place = self.section.value(f"getelementptr {kind}, ptr {self.slot(port.slot)}, i64 {index}")
        self.section.write(f"store {kind} {value}, ptr {place}")


def text_of(made, **style):
    module = ModuleBuilder()
    function = Function(module, "kernel", [("ptr", "frame")], "i64", linkage="")
    status = made.body(made, Frame(function.body))
    function.body.write(f"ret i64 {status or 0}")
    module.add(function)
    entry_text(module, made, **style)
    return module.text(execution_engine.heading())


def code_of(made, **style):
    return execution_engine.Code(execution_engine.object_of(text_of(made, **style)), {})


def never(*args):
    raise AssertionError(f"not to be called with {args}")


def entry_of(made, miss=never, failed=never, callback_error=None, handler=None, **style):
    return make_entry(made, code_of(made, **style), miss, failed, callback_error, handler=handler)


# ---- bodies ----------------------------------------------------------------------------------


def copied(made, frame, source, target):
    """Write an input, or its first element, to an output of one axis or none."""
    size = source.spec.dtype.itemsize
    kind = f"[{size} x i8]"
    if not target.spec.shape:
        value = frame.section.value(f"load {kind}, ptr {frame.slot(source.slot)}, align 1")
        frame.section.write(f"store {kind} {value}, ptr {frame.slot(target.slot)}, align 1")
        return
    (length,) = source.spec.shape
    count = str(length)
    if not isinstance(length, int):
        count = frame.slot(made.size_slots[made.sizes.index(str(length))], "i64")
    step = frame.slot(source.slot + 1, "i64") if source.strided else str(size)
    with frame.section.loop("0", count) as (body, i):
        offset = body.value(f"mul i64 {i}, {step}")
        place = body.value(f"getelementptr i8, ptr {Frame(body).slot(source.slot)}, i64 {offset}")
        value = body.value(f"load {kind}, ptr {place}, align 1")
        goal = body.value(f"getelementptr {kind}, ptr {Frame(body).slot(target.slot)}, i64 {i}")
        body.write(f"store {kind} {value}, ptr {goal}, align 1")


def copy_inputs(made, frame):
    """Each output is the input of the same place."""
    for source, target in zip(made.inputs, made.outputs, strict=False):
        copied(made, frame, source, target)


def nothing(made, frame):
    """Leave the outputs as they are."""
