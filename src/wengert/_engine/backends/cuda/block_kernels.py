"""Kernels in which threads of a block compute rows together, and how they are launched.

    BlockKernel      such a kernel
    kernel_for       the kernel of a fused loop; block_kernel_of one of these
    finish_kernel    the kernel that merges the states of parts of rows
    BlockLaunch      how many lanes compute a row, in how many parts, and where its memory is

The number of lanes follows from the length of a row and the number of rows: a thread for each row
of a few elements, part of a warp or a warp for those up to four blocks, else a block. Few long rows
have parts, which a second kernel merges.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from wengert._engine.core.symbolic.dim import names_in

from ..llvm.codegen.reductions import accumulator
from ..llvm.ir.index_analysis import Length, is_one, size_of
from ..llvm.ir.ir_builder import Function, ModuleBuilder
from ..llvm.ir.llvm_types import Dtype, in_memory, part_of
from ..llvm.ir.memory_access import load, store
from ..llvm.ir.scalar_language import Language
from ..llvm.lowering.loop_ir import Expr, Reduce
from ..llvm.schedule.fusion import FusedLoops
from .block_codegen import ALIGNMENT, BlockNest, has_neighbors
from .block_threads import ARGUMENTS, BLOCK_BARRIER, SHUFFLE, WARP, WARP_BARRIER, LaneGroup
from .checked_values import CheckedValues
from .device import Device, Launch
from .kernel_codegen import DeviceKernel, UnsupportedKernel, kernel_of, table_of
from .loaded_kernels import launch_of

_SUPPLIED = (BLOCK_BARRIER, WARP_BARRIER, f"{SHUFFLE}32", f"{SHUFFLE}64")
_LAUNCHED = [("i64", n) for n in ("parts", "lanes", "row_bytes", "local_bytes")]
_LANE_TERMS = 4  # the least elements of a row for each lane of a part of a warp
_MOST_SCRATCH = 1 << 28  # bytes for rows that do not fit in shared memory
_COLUMN_TERMS = 16  # rows that a group of lanes adds to the columns, at least
_LONG_ROW = 16  # elements for each thread of a block, beyond which a few rows are divided
_PART_TERMS = 64  # and for each lane, of a part of a row


@dataclass(frozen=True)
class BlockKernel(DeviceKernel):
    """A kernel whose threads compute rows together.

    Its arguments are those of `entries`, the status if it may fail, the arrays of the states of
    parts, the memory of rows, and the numbers of a `BlockLaunch`.

    Attributes
    ----------
    length : Length
        The number of elements in a row, or of those that are reduced.
    local_rows : tuple of Length
        The bytes of each intermediate result in a row.
    exchanged_bytes : int
        The shared memory for exchanges among warps.
    states : tuple of (Expr, tuple of dtype)
        The reductions that may have parts, with the dtypes of their states.
    most_lanes : int
        1 if lanes would read elements far from each other, or cannot wait; else 0.
    columns : tuple of Length
        The lengths of sums over rows: the states are theirs, one for each group of lanes.
    """

    length: Length = 1
    local_rows: tuple[Length, ...] = ()
    exchanged_bytes: int = 0
    states: tuple[tuple[Expr, tuple[Dtype, ...]], ...] = field(default=())
    most_lanes: int = 0
    columns: tuple[Length, ...] = ()


def kernel_for(
    fused: FusedLoops,
    stored: set[Expr],
    name: str,
    addressed: Collection[Expr] = (),
    checked: CheckedValues | None = None,
) -> DeviceKernel:
    """The kernel of a fused loop, in which threads compute rows together or elements apart."""
    (group, *others) = fused.groups
    if others or any(not is_one(group.space[k]) for k in group.reduced or ()):
        return block_kernel_of(fused, stored, name, addressed, checked)
    return kernel_of(fused, stored, name, addressed, checked)


def block_kernel_of(
    fused: FusedLoops,
    stored: set[Expr],
    name: str,
    addressed: Collection[Expr] = (),
    checked: CheckedValues | None = None,
) -> BlockKernel:
    """The kernel of a fused loop, of which a loop group reduces or several are fused.

    The numbers `addressed` are on the device.

    Raises
    ------
    UnsupportedKernel
        It calls a function that is not part of it.
    """
    module = ModuleBuilder()
    nest = BlockNest(Language(module), fused, stored, checked)
    check_supplied(module)
    states = []
    for root, one in (*nest.parts_of, *[(c.root, c.state) for c in nest.columns]):
        states.append((root, tuple([slot.dtype for slot in one.states])))
    arguments, lines = table_of(nest, addressed)
    arguments += [f"ptr %state{k}" for k in range(sum(len(kinds) for _, kinds in states))]
    arguments += [f"{kind} %{n}" for kind, n in [("ptr", "scratch"), *_LAUNCHED, *ARGUMENTS]]
    opening, body = nest.function.text().split("entry:\n", 1)
    assert opening.startswith("define"), opening
    ending = ["  br label %leave", "leave:"]
    if nest.may_fail:
        ending += [
            "  %now = load i64, ptr %table",
            "  %failed = icmp ne i64 %now, 0",
            "  br i1 %failed, label %mark, label %end",
            "mark:",
            "  store i64 %now, ptr %status",
            "  br label %end",
            "end:",
        ]
    module.parts[name] = "\n".join(
        [
            f"define void @{name}({', '.join(arguments)}) #1 {{",
            *("entry:", *lines, body.removesuffix("\n}")),
            *(*ending, "  ret void", "}"),
        ]
    )
    reduced = [axis.length for axis in nest.space.axes if axis.is_reduced]
    length: Length = size_of(reduced)
    if not nest.is_alone:
        length = max((size_of(g.space[fused.rows :]) for g in fused.groups), key=_order)
    return BlockKernel(
        *(name, dict(module.parts), tuple(nest.table), nest.rows, nest.may_fail, True),
        length,
        tuple(nest.local_rows.values()),
        nest.lanes.exchanged_bytes,
        tuple(states),
        int(nest.must_leave or not has_neighbors(nest)),
        tuple(column.count for column in nest.columns),
    )


def _order(length: Length) -> tuple[bool, int]:
    """Unknown lengths are the largest."""
    return (False, length) if type(length) is int else (True, 0)


def check_supplied(module: ModuleBuilder) -> None:
    """Raise an error if a module calls a function that no device has."""
    for part, definition in module.parts.items():
        is_known = part.startswith("llvm.") or part in _SUPPLIED
        if definition.startswith("declare") and not is_known:
            raise UnsupportedKernel(part)


# ---- parts of rows -------------------------------------------------------------------------------


def finish_kernel(monoid: str, of: Dtype, result: Dtype) -> BlockKernel:
    """The kernel that merges the states of the parts of rows.

    Its arguments are the arrays of states, that of results, the numbers of parts and rows, memory
    that it does not use, and the numbers of a `BlockLaunch`.
    """
    name = f"finish_{monoid}_{of.str[1:]}_{result.str[1:]}"
    module = ModuleBuilder()
    language = Language(module)
    count = len(_state_dtypes(monoid, of))
    arguments = [("ptr", f"state{k}") for k in range(count)]
    arguments += [("ptr", "out"), ("i64", "count"), ("i64", "rows"), ("ptr", "scratch")]
    function = Function(module, name, [*arguments, *_LAUNCHED, *ARGUMENTS], "void", "#1", "")
    head = language.home = function.body.inside()
    lanes = LaneGroup(module, language, head)
    lanes.exchange = head.value("getelementptr i8, ptr %shared, i64 %local_bytes")
    with function.body.loop(lanes.number, "%rows", lanes.count) as (row, k):
        one = accumulator(language, row, monoid, of, 1, True)
        with row.loop(lanes.lane, "%count", "%lanes") as (each, part):
            place = each.value(f"add i64 {each.value(f'mul i64 {part}, %rows')}, {k}")
            others = []
            for j, slot in enumerate(one.states):
                kind = in_memory(slot.dtype)
                address = each.value(f"getelementptr {kind}, ptr %state{j}, i64 {place}")
                others.append(load(language, each, address, slot.dtype, 1, None))
            one.merge(each, others)
        tail = row.inside()
        lanes.combine(tail, [one])
        with row.when(lanes.is_first) as first:
            value = language.cast(one.result(first, False), result)
            kind = in_memory(part_of(result))
            whole = f"[2 x {kind}]" if result.kind == "c" else kind
            address = first.value(f"getelementptr {whole}, ptr %out, i64 {k}")
            store(language, first, address, value, 1, None)
        lanes.barrier(row)
    function.body.write("ret void")
    module.add(function)
    check_supplied(module)
    return BlockKernel(name, dict(module.parts), (), 0, False, True, 0, (), lanes.exchanged_bytes)


def _state_dtypes(monoid: str, of: Dtype) -> tuple[Dtype, ...]:
    """The dtypes of the states of a reduction."""
    language = Language(ModuleBuilder())
    body = Function(language.module, "states", ()).body
    language.home = body
    return tuple([s.dtype for s in accumulator(language, body, monoid, of, 1, True).states])


# ---- launches ------------------------------------------------------------------------------------


class BlockLaunch(NamedTuple):
    """How the rows of a kernel are divided among threads.

    lanes : the threads that compute a row together.
    parts : the parts of a row, each computed by a group of lanes.
    row_bytes : the memory of a row for intermediate results.
    local_bytes : the shared memory of a block for this; 0 if it is in `scratch`.
    threads : all threads.
    shared_bytes : the shared memory of a block.
    """

    lanes: int
    parts: int
    row_bytes: int
    local_bytes: int
    threads: int
    shared_bytes: int

    def numbers(self) -> list[Any]:
        """The numbers that kernels take."""
        given = (self.parts, self.lanes, self.row_bytes, self.local_bytes)
        return [np.int64(n) for n in given]

    def groups(self, device: Device) -> int:
        """The number of groups of lanes that run."""
        blocks = min(-(-self.threads // device.block), device.blocks)
        return blocks * device.block // self.lanes

    def scratch_bytes(self, device: Device) -> int:
        """The memory of all groups for intermediate results that are not in shared memory."""
        return 0 if self.local_bytes else self.groups(device) * self.row_bytes


def lanes_for(rows: int, length: int, device: Device) -> int:
    """The number of threads for a row."""
    block = device.block
    if length > 4 * block or (length >= block and rows * block <= device.blocks * block):
        return block
    lanes = 1
    while lanes < WARP and lanes * _LANE_TERMS < length:
        lanes *= 2
    return lanes


def block_launch(
    kernel: BlockKernel, rows: int, length: int, row_sizes: Sequence[int], device: Device
) -> BlockLaunch:
    """How a kernel is launched for a number of rows and their length.

    Parameters
    ----------
    row_sizes : sequence of int
        The bytes of each intermediate result in a row.
    """
    row_bytes = sum(-(-n // ALIGNMENT) * ALIGNMENT for n in row_sizes)
    lanes = kernel.most_lanes or lanes_for(rows, length, device)
    available = device.shared_bytes - kernel.exchanged_bytes
    is_crowded = row_bytes * (device.block // lanes) > available
    if (is_crowded or kernel.columns) and lanes > 1:
        lanes = device.block
    local_bytes = row_bytes * (device.block // lanes)
    if local_bytes > max(available, device.most_shared_bytes - kernel.exchanged_bytes):
        local_bytes = 0
    parts = 1
    if kernel.states and not kernel.columns:
        groups = device.blocks * device.block // lanes
        parts = max(min(groups // max(rows, 1), length // (lanes * _PART_TERMS)), 1)
    groups = rows * parts
    if kernel.columns:
        groups = max(-(-groups // _COLUMN_TERMS), 1)  # one even without rows, for their sums
    if row_bytes and not local_bytes:
        groups = min(groups, max(_MOST_SCRATCH // row_bytes, 1))
    shared = local_bytes + (kernel.exchanged_bytes if lanes > WARP else 0)
    return BlockLaunch(lanes, parts, row_bytes, local_bytes, groups * lanes, shared)


def loops_of_few_rows(
    kernels: Sequence[Any],
    sizes: Mapping[str, int],
    number: Callable[[Length], int],
    device: Device,
) -> frozenset[int]:
    """The numbers of kernels whose rows are so few and long that they leave a device idle.

    A block computes each row; loops that are not fused divide rows into parts.
    """
    found = []
    for k, kernel in enumerate(kernels):
        lengths = kernel.elements, kernel.length
        if names_in(lengths) <= sizes.keys():
            rows, length = map(number, lengths)
            if 4 * rows < device.blocks and length > _LONG_ROW * device.block:
                found.append(k)
    return frozenset(found)


def launch_block_kernel(
    kernel: BlockKernel,
    launch: Launch,
    arguments: Sequence[Any],
    outputs: Mapping[Expr, Any],
    number: Callable[[Length], int],
    device: Device,
) -> None:
    """Start a kernel, and those that merge parts.

    Parameters
    ----------
    outputs : mapping
        The arrays of reductions.
    number : callable
        Returns the number of a length.
    """
    rows, length = number(kernel.elements), number(kernel.length)
    if kernel.may_fail and any(getattr(x, "size", 1) == 0 for x in arguments):
        length = 1  # one lane, which leaves when a position is out of range
    plan = block_launch(kernel, rows, length, [number(n) for n in kernel.local_rows], device)
    if not plan.threads:
        return
    nothing = device.empty((1,), np.dtype(np.uint8))
    size = plan.scratch_bytes(device)
    scratch = device.empty((size,), np.dtype(np.uint8)) if size else nothing
    states: list[Any] = []
    kept: list[tuple[Expr, list[Any], int]] = []
    # A state for each part of each row, or for each group and column.
    counts = list(map(number, kernel.columns)) or [rows] * len(kernel.states)
    parts = plan.groups(device) if kernel.columns else plan.parts
    for (root, dtypes), count in zip(kernel.states, counts, strict=True):
        own = [nothing] * len(dtypes)
        if parts > 1 or kernel.columns:
            own = [device.empty((parts, count), dtype) for dtype in dtypes]
        states += own
        kept.append((root, own, count))
    launch([*arguments, *states, scratch, *plan.numbers()], plan.threads, plan.shared_bytes)
    if parts == 1 and not kernel.columns:
        return
    for root, own, count in kept:
        assert isinstance(root.rule, Reduce)
        merge = _finishing(device, root.rule.monoid, root.operands[0].dtype, root.dtype)
        whole = finish_launch(count, parts, len(own), device)
        given = [*own, outputs[root], np.int64(parts), np.int64(count), nothing]
        merge([*given, *whole.numbers()], whole.threads, whole.shared_bytes)


def _finishing(device: Device, monoid: str, of: Dtype, result: Dtype) -> Launch:
    """The loaded kernel that merges the parts of a reduction."""
    name = f"finish {monoid} {of.str} {result.str}"
    return launch_of(device, name, lambda: finish_kernel(monoid, of, result))


def finish_launch(rows: int, parts: int, states: int, device: Device) -> BlockLaunch:
    """How the states of parts are merged."""
    lanes = lanes_for(rows, parts, device)
    shared = 2 * WARP * 8 * states if lanes > WARP else 0
    return BlockLaunch(lanes, 1, 0, 0, rows * lanes, shared)


__all__ = ["BlockKernel", "BlockLaunch", "finish_kernel", "launch_block_kernel", "block_kernel_of"]
