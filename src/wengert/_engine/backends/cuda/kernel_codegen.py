"""Kernels: the loop groups of a schedule as functions that many threads run.

The loops are those of native code (backends/llvm/codegen), with one element at a time. A thread
starts at an element of its own and goes on in steps of the number of threads, so that neighboring
threads read neighboring elements:

    for (t = first; t < elements * parts; t += stride)   element t % elements, part t / elements

A reduction is divided into parts, each over a range of the reduced axis; their results are stored
one behind the other, and combined by another kernel or a library (program.py). So the order of
additions does not depend on when threads run: same input, same bits.

    DeviceNest    a loop group as such a function
    DeviceKernel        its text, and what its caller passes
    kernel_of     the kernel of a fused loop
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from ..llvm.codegen.loop_nests import LoopNest
from ..llvm.ir.affine import Index, Length, offset_of, size_of
from ..llvm.ir.ir_builder import ModuleBuilder, Section
from ..llvm.ir.llvm_types import I64, in_memory, part_of
from ..llvm.ir.memory_access import store
from ..llvm.ir.scalar_language import Language
from ..llvm.ir.simd_value import Lane
from ..llvm.lowering.loop_ir import Expr, Reduce, Stored
from ..llvm.schedule.fusion import FusedLoops
from ..llvm.schedule.iteration_space import Axis


class UnsupportedKernel(Exception):
    """A function that a device lacks is called; the argument has its name."""


class DeviceNest(LoopNest):
    """One loop group as a function of the first element of a thread and the number of threads."""

    signature = (("ptr", "table"), ("i64", "first"), ("i64", "stride"), ("i64", "parts"))
    _part: Lane | None = None
    _ends: tuple[str, str] | None = None  # of the outermost reduced axis, in this part

    def _found_partial(self) -> set[Expr]:
        """No reductions whose parts are passed by the caller: `_put` computes their places."""
        return set()

    def _open(self, section: Section, axes: list[Axis], kept: int, outermost: bool) -> None:
        """Emit the loop of a thread over elements and parts."""
        assert outermost, "loop groups are not fused"
        lengths = [self._name(self._number(axis.length)) for axis in axes[:kept]]
        elements = "1"
        for length in lengths:
            elements = self._head.times(elements, length)
        reduced = axes[kept:]
        total = self._head.times(elements, "%parts") if reduced else elements
        with section.loop("%first", total, "%stride") as (inner, t):
            start = inner.inside()
            place = t
            if reduced:
                place = start.value(f"urem i64 {t}, {elements}") if lengths else "0"
                part = start.value(f"udiv i64 {t}, {elements}") if lengths else t
                self._part = Lane(self.language, start, part, I64, 1)
                self._ends = self._range_of_part(start, reduced[0], part)
            for k in range(kept - 1, -1, -1):
                i = place
                if k:
                    i = start.value(f"urem i64 {place}, {lengths[k]}")
                    place = start.value(f"udiv i64 {place}, {lengths[k]}")
                self._count(axes[k], inner, i)
            self._combine(inner.inside(), reduced, bool(reduced))
        self._leave(inner)

    def _range_of_part(self, section: Section, axis: Axis, part: str) -> tuple[str, str]:
        """The range of an axis that a part reduces."""
        length = self._name(self._number(axis.length))
        above = section.minus(section.plus(length, "%parts"), "1")
        size = section.value(f"udiv i64 {above}, %parts")
        start = section.value(f"mul i64 {part}, {size}")
        return start, section.smaller(section.value(f"add i64 {start}, {size}"), length)

    def _range(self, axis: Axis, section: Section, outermost: bool) -> tuple[str, str]:
        if outermost:
            assert self._ends is not None
            return self._ends
        return super()._range(axis, section, False)

    def _put(self, section: Section, root: Expr, value: Any, index: Index) -> None:
        if self._part is None or not isinstance(root.rule, Reduce):
            super()._put(section, root, value, index)
            return
        if any(type(n) is int and n == 0 for n in root.shape):
            return
        offset, _ = self._split(offset_of(index, self._strides(root)))
        offset = self._part * self._number(size_of(root.shape)) + offset
        address = self._address(section, self._entry(root), offset, root.dtype)
        store(self.language, section, address, value, 1, None)


@dataclass(frozen=True)
class DeviceKernel:
    """A kernel.

    Attributes
    ----------
    name : str
        The name of the function. Its arguments are those of `entries`, the address of the status
        if it may fail, the number of parts, and (where a device does not have them) the first
        element and the number of threads.
    text : dict of str to str
        Its definitions, in LLVM IR.
    entries : tuple
        Expressions, whose addresses (or, of numbers, values) it takes, and names of sizes.
    elements : Length
        The number of elements that are computed independently.
    reduced : Length
        The length of the outermost reduced axis; 0 if nothing is reduced.
    may_fail : bool
        Whether it sets the status.
    """

    name: str
    text: dict[str, str]
    entries: tuple[Any, ...]
    elements: Length
    reduced: Length
    may_fail: bool


def kernel_of(
    fused: FusedLoops, stored: set[Expr], name: str, addressed: Collection[Expr] = ()
) -> DeviceKernel:
    """The kernel of a fused loop; the numbers `addressed` are on the device.

    Raises
    ------
    UnsupportedKernel
        It calls a function that is not part of it.
    """
    module = ModuleBuilder()
    language = Language(module)
    nest = DeviceNest(language, fused, stored, 0)
    function = f"{name}_elements"
    text = nest.function.text().replace("@nest(", f"@{function}(", 1)
    module.parts[function] = text
    for part, definition in module.parts.items():
        if definition.startswith("declare") and not part.startswith("llvm."):
            raise UnsupportedKernel(part)
    axes = nest.space.axes
    elements: Length = 1
    for axis in axes:
        elements = elements * axis.length if not axis.is_reduced else elements
    reduced = next((axis.length for axis in axes if axis.is_reduced), 0)
    module.parts[name] = _entry(name, function, nest, addressed)
    return DeviceKernel(
        name, dict(module.parts), tuple(nest.table), elements, reduced, nest.may_fail
    )


def is_number(expr: Any, addressed: Collection[Expr]) -> bool:
    """Whether an entry is passed by value: a number that is an input, and on the host."""
    if not isinstance(expr, Expr) or expr in addressed:
        return False
    return not expr.shape and isinstance(expr.rule, Stored)


def _entry(name: str, function: str, nest: DeviceNest, addressed: Collection[Expr]) -> str:
    """The function that a device starts: it makes the table of its arguments."""
    arguments: list[str] = []
    lines = [f"  %table = alloca [{len(nest.table) + 1} x i64]", "  store i64 0, ptr %table"]
    for k, entry in enumerate(nest.table):
        lines.append(f"  %place{k} = getelementptr i64, ptr %table, i64 {k + 1}")
        if isinstance(entry, str):
            arguments.append(f"i64 %x{k}")
            lines.append(f"  store i64 %x{k}, ptr %place{k}")
        elif is_number(entry, addressed):
            kind = in_memory(part_of(entry.dtype)).replace("half", "i16")
            kinds = [kind] * (2 if entry.dtype.kind == "c" else 1)
            whole = kinds[0] if len(kinds) == 1 else f"[2 x {kinds[0]}]"
            lines.insert(0, f"  %number{k} = alloca {whole}, align 16")
            for j, kind in enumerate(kinds):
                arguments.append(f"{kind} %x{k}.{j}")
                lines.append(f"  %part{k}.{j} = getelementptr {kind}, ptr %number{k}, i64 {j}")
                lines.append(f"  store {kind} %x{k}.{j}, ptr %part{k}.{j}")
            lines.append(f"  store ptr %number{k}, ptr %place{k}")
        else:
            arguments.append(f"ptr %x{k}")
            lines.append(f"  store ptr %x{k}, ptr %place{k}")
    if nest.may_fail:
        arguments.append("ptr %status")
    arguments += ["i64 %parts", "i64 %first", "i64 %stride"]
    lines.append(f"  call void @{function}(ptr %table, i64 %first, i64 %stride, i64 %parts)")
    if nest.may_fail:
        lines += [
            "  %now = load i64, ptr %table",
            "  %failed = icmp ne i64 %now, 0",
            "  br i1 %failed, label %mark, label %leave",
            "mark:",
            "  store i64 %now, ptr %status",
            "  br label %leave",
            "leave:",
        ]
    opening = f"define void @{name}({', '.join(arguments)}) #1 {{"
    return "\n".join([opening, "entry:", *lines, "  ret void", "}"])
