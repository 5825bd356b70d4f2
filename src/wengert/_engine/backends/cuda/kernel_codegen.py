"""Kernels: the loop groups of a schedule as functions that many threads run.

The loops are those of native code (backends/llvm/codegen), with one element at a time. A thread
starts at an element of its own and goes on in steps of the number of threads, so that neighboring
threads read neighboring elements. Loop groups that reduce are in block_codegen.py.

    DeviceNest    a loop group as such a function
    DeviceKernel        its text, and what its caller passes
    kernel_of     the kernel of a fused loop
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from ..llvm.codegen.loop_nests import LoopNest
from ..llvm.ir.index_analysis import Length, size_of
from ..llvm.ir.ir_builder import ModuleBuilder, Section
from ..llvm.ir.llvm_types import in_memory, part_of
from ..llvm.ir.scalar_language import Language
from ..llvm.lowering.loop_ir import Expr, Stored
from ..llvm.schedule.fusion import FusedLoops
from ..llvm.schedule.iteration_space import Axis
from .checked_values import CheckedNest, CheckedValues


class UnsupportedKernel(Exception):
    """A function that a device lacks is called; the argument has its name."""


class DeviceNest(CheckedNest):
    """One loop group as a function of the first element of a thread and the number of threads."""

    signature = (("ptr", "table"), ("i64", "first"), ("i64", "stride"))

    def _found_partial(self) -> set[Expr]:
        return set()

    def _open(self, section: Section, axes: list[Axis], kept: int, outermost: bool) -> None:
        """Emit the loop of a thread over elements."""
        assert outermost and kept == len(axes), "rows are computed by blocks"
        lengths = [self._name(self._number(axis.length)) for axis in axes]
        elements = "1"
        for length in lengths:
            elements = self._head.times(elements, length)
        with section.loop("%first", elements, "%stride") as (inner, place):
            start = inner.inside()
            for k in range(kept - 1, -1, -1):
                i = place
                if k:
                    i = start.value(f"urem i64 {place}, {lengths[k]}")
                    place = start.value(f"udiv i64 {place}, {lengths[k]}")
                self._count(axes[k], inner, i)
            self._combine(inner.inside(), [], False)
        self._leave(inner)


@dataclass(frozen=True)
class DeviceKernel:
    """A kernel.

    Attributes
    ----------
    name : str
        The name of the function. Its arguments are those of `entries`, the address of the status
        if it may fail, and (where a device does not have them) the first element and the number of
        threads.
    text : dict of str to str
        Its definitions, in LLVM IR.
    entries : tuple
        Expressions, whose addresses (or, of numbers, values) it takes, and names of sizes.
    elements : Length
        The number of elements that are computed independently.
    may_fail : bool
        Whether it sets the status.
    is_by_blocks : bool
        Whether threads of a block work together (block_threads.py).
    """

    name: str
    text: dict[str, str]
    entries: tuple[Any, ...]
    elements: Length
    may_fail: bool
    is_by_blocks: bool = False


def kernel_of(
    fused: FusedLoops,
    stored: set[Expr],
    name: str,
    addressed: Collection[Expr] = (),
    checked: CheckedValues | None = None,
) -> DeviceKernel:
    """The kernel of a fused loop; the numbers `addressed` are on the device.

    Raises
    ------
    UnsupportedKernel
        It calls a function that is not part of it.
    """
    module = ModuleBuilder()
    language = Language(module)
    nest = DeviceNest(language, fused, stored, checked)
    function = f"{name}_elements"
    text = nest.function.text().replace("@nest(", f"@{function}(", 1)
    module.parts[function] = text
    for part, definition in module.parts.items():
        if definition.startswith("declare") and not part.startswith("llvm."):
            raise UnsupportedKernel(part)
    axes = nest.space.axes
    elements = size_of([axis.length for axis in axes])
    module.parts[name] = _entry(name, function, nest, addressed)
    return DeviceKernel(name, dict(module.parts), tuple(nest.table), elements, nest.may_fail)


def is_number(expr: Any, addressed: Collection[Expr]) -> bool:
    """Whether an entry is passed by value: a number that is an input, and on the host."""
    if not isinstance(expr, Expr) or expr in addressed:
        return False
    return not expr.shape and isinstance(expr.rule, Stored)


def _entry(name: str, function: str, nest: DeviceNest, addressed: Collection[Expr]) -> str:
    """The function that a device starts: it makes the table of its arguments."""
    arguments, lines = table_of(nest, addressed)
    arguments += ["i64 %first", "i64 %stride"]
    lines.append(f"  call void @{function}(ptr %table, i64 %first, i64 %stride)")
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


def table_of(nest: LoopNest, addressed: Collection[Expr]) -> tuple[list[str], list[str]]:
    """The arguments of a kernel, and the code that makes their table."""
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
    return arguments, lines
