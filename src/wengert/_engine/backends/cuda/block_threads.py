"""Threads of a block that work together: groups of lanes, barriers, exchanges of values.

A group is a number of neighboring threads, its lanes: a power of two up to 32, within a warp, or
all threads of a block. The number is an argument of the kernel, so one kernel serves rows of all
lengths. Values are combined as a tree: within a warp by shuffles, among warps by shared memory. The
order depends on the number of lanes only, and all lanes receive the same bits.

Kernels call three functions, which a device supplies (ptx.py, emulated_blocks.py):

    BLOCK_BARRIER    wait for all threads of the block
    WARP_BARRIER     wait for the threads of a mask, of one warp
    SHUFFLE          the number that another thread of the mask has passed; 32 or 64 bits

    ARGUMENTS        what a device passes to a thread, after the kernel's arguments
    LaneGroup        the group of a thread, and what it does together
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

from ..llvm.codegen.reductions import MutableValue
from ..llvm.ir.ir_builder import ModuleBuilder, Name, Section
from ..llvm.ir.llvm_types import in_register
from ..llvm.ir.scalar_language import Language
from ..llvm.ir.simd_value import Lane

BLOCK_BARRIER, WARP_BARRIER, SHUFFLE = "block.barrier", "warp.barrier", "shuffle"
WARP = 32
# The address of shared memory, the thread's number and the number of threads in its block, and the
# same of blocks.
ARGUMENTS = (("ptr", "shared"), *[("i64", n) for n in ("tid", "ntid", "ctaid", "nctaid")])
_SLOT = 8  # bytes of a value in shared memory


class Mergeable(Protocol):
    """The state of a reduction that is merged with those of other lanes."""

    @property
    def states(self) -> list[MutableValue]:
        """The slots of its state."""

    def flush(self, section: Section) -> None:
        """Add the sum of a block to the total."""

    def merge(self, section: Section, others: Sequence[Any]) -> None:
        """Merge with the state of another."""


class LaneGroup:
    """The group of a thread; the kernel has the arguments ``lanes`` and `ARGUMENTS`.

    Parameters
    ----------
    head : Section
        Where its numbers are computed, once for each thread.

    Attributes
    ----------
    lane : str
        The number of the thread in its group.
    number : str
        That of the group.
    count : str
        The number of groups.
    exchanged_bytes : int
        The shared memory, at the address `exchange`, that combinations need.
    """

    def __init__(self, module: ModuleBuilder, language: Language, head: Section) -> None:
        self._module, self._language = module, language
        last = head.value("sub i64 %lanes, 1")
        before = head.value("mul i64 %ctaid, %ntid")
        position = head.value(f"add i64 {before}, %tid")
        whole = head.value("mul i64 %nctaid, %ntid")
        self.lane = head.value(f"and i64 %tid, {last}")
        self.number = head.value(f"udiv i64 {position}, %lanes")
        self.inside = head.value("udiv i64 %tid, %lanes")
        self.count = head.value(f"udiv i64 {whole}, %lanes")
        self.is_first = head.value(f"icmp eq i64 {self.lane}, 0")
        self._last = last
        self._is_shared = head.value("icmp sgt i64 %lanes, 1")
        self._is_wide = head.value(f"icmp sgt i64 %lanes, {WARP}")
        self._is_warp = head.value(f"xor i1 {self._is_wide}, true")
        within = head.value(f"and i64 %tid, {WARP - 1}")
        start = head.value(f"sub i64 {within}, {self.lane}")
        # Where the group begins in its warp; a group of several warps begins with each warp.
        self._start = head.value(f"select i1 {self._is_wide}, i64 0, i64 {start}")
        bits = head.value("shl i64 1, %lanes")
        some = head.value(f"shl i64 {head.value(f'sub i64 {bits}, 1')}, {self._start}")
        is_whole = head.value(f"icmp sge i64 %lanes, {WARP}")
        self._mask = head.value(f"select i1 {is_whole}, i64 {(1 << WARP) - 1}, i64 {some}")
        self._is_leader = head.value(f"icmp eq i64 {within}, 0")
        self._warp = head.value(f"udiv i64 %tid, {WARP}")
        self._warps = head.value(f"udiv i64 %ntid, {WARP}")
        self.exchange = ""  # the address, set by the owner
        self.exchanged_bytes = 0
        self._rounds = 0

    def barrier(self, section: Section) -> None:
        """Wait for all lanes of the group; what they have stored can be read."""
        with section.when(self._is_wide) as wide:
            wide.write(f"call void {self._module.declare(BLOCK_BARRIER, 'void', [])}()")
        is_part = section.value(f"and i1 {self._is_warp}, {self._is_shared}")
        with section.when(is_part) as warp:
            callee = self._module.declare(WARP_BARRIER, "void", ["i64"])
            warp.write(f"call void {callee}(i64 {self._mask})")

    def combine(self, section: Section, accumulators: Sequence[Mergeable]) -> None:
        """Merge the states of all lanes; afterwards each lane has the same result."""
        for one in accumulators:
            one.flush(section)
        if not accumulators:
            return
        with section.when(self._is_shared) as s:
            with self._halving(s, s.value(f"udiv i64 {s.smaller('%lanes', str(WARP))}, 2")) as loop:
                self._merge_with(loop[0], accumulators, self._other(*loop))
            with s.when(self._is_warp) as warp:
                for one in accumulators:
                    for slot in one.states:
                        slot.put(warp, self._shuffled(warp, slot, self._start))
            with s.when(self._is_wide) as wide:
                self._combine_warps(wide, accumulators)

    @staticmethod
    @contextmanager
    def _halving(section: Section, first: Name) -> Iterator[tuple[Section, Name]]:
        """A loop over steps, each half of the one before, down to 1."""
        n = section.function.number()
        slot = section.function.slot("i64")
        section.write(f"store i64 {first}, ptr {slot}")
        section.block(f"head{n}")
        step = section.value(f"load i64, ptr {slot}")
        more = section.value(f"icmp sgt i64 {step}, 0")
        section.write(f"br i1 {more}, label %body{n}, label %done{n}")
        section.label(f"body{n}")
        body = section.inside()
        yield body, step
        body.write(f"store i64 {body.value(f'udiv i64 {step}, 2')}, ptr {slot}")
        body.write(f"br label %head{n}")
        section.label(f"done{n}")

    def _other(self, section: Section, step: Name) -> Name:
        """The number in its warp of the thread that is `step` lanes ahead, of the same group."""
        ahead = section.value(f"add i64 {self.lane}, {step}")
        turned = section.value(f"and i64 {ahead}, {self._last}")
        within = section.value(f"and i64 {turned}, {WARP - 1}")
        return section.value(f"add i64 {self._start}, {within}")

    def _merge_with(
        self, section: Section, accumulators: Sequence[Mergeable], source: Name
    ) -> None:
        for one in accumulators:
            others = [self._shuffled(section, slot, source) for slot in one.states]
            one.merge(section, others)

    def _combine_warps(self, section: Section, accumulators: Sequence[Mergeable]) -> None:
        """Merge the states of warps, which their first threads pass by shared memory.

        Two areas are used in turn, so that one barrier is enough: who writes to an area has waited
        since others have read from it.
        """
        area = self._rounds % 2
        self._rounds += 1
        slots = [slot for one in accumulators for slot in one.states]
        places = [self._place(k, area) for k in range(len(slots))]
        self.exchanged_bytes = max(self.exchanged_bytes, 2 * WARP * _SLOT * len(slots))
        with section.when(self._is_leader) as leader:
            for slot, place in zip(slots, places, strict=True):
                address = self._address(leader, place, self._warp)
                name = leader.value(f"load {slot.kind}, ptr {slot.name}")
                leader.write(f"store {slot.kind} {name}, ptr {address}")
        section.write(f"call void {self._module.declare(BLOCK_BARRIER, 'void', [])}()")
        for slot, place in zip(slots, places, strict=True):
            address = self._address(section, place, "0")
            name = section.value(f"load {slot.kind}, ptr {address}")
            section.write(f"store {slot.kind} {name}, ptr {slot.name}")
        with section.loop("1", self._warps) as (each, warp):
            ahead = iter(places)
            for one in accumulators:
                others = []
                for slot in one.states:
                    address = self._address(each, next(ahead), warp)
                    load = f"load {slot.kind}, ptr {address}"
                    others.append(self._language.lane(each, load, slot.dtype, 1))
                one.merge(each, others)

    @staticmethod
    def _place(slot: int, area: int) -> int:
        return (2 * slot + area) * WARP * _SLOT

    def _address(self, section: Section, place: int, warp: Name) -> Name:
        offset = section.plus(str(place), section.times(warp, str(_SLOT)))
        return section.value(f"getelementptr i8, ptr {self.exchange}, i64 {offset}")

    def _shuffled(self, section: Section, slot: MutableValue, source: Name) -> Lane:
        """The value of a slot of another thread of the group."""
        kind = in_register(slot.dtype)
        value = section.value(f"load {kind}, ptr {slot.name}")
        size = 64 if slot.dtype.itemsize == 8 else 32
        own = f"i{1 if slot.dtype.kind == 'b' else 8 * slot.dtype.itemsize}"
        if slot.dtype.kind == "f":
            value = section.value(f"bitcast {kind} {value} to {own}")
        if own != f"i{size}":
            value = section.value(f"zext {own} {value} to i{size}")
        given = [f"i{size} {value}", f"i64 {source}", f"i64 {self._mask}"]
        callee = self._module.declare(f"{SHUFFLE}{size}", f"i{size}", [f"i{size}", "i64", "i64"])
        value = section.value(f"call i{size} {callee}({', '.join(given)})")
        if own != f"i{size}":
            value = section.value(f"trunc i{size} {value} to {own}")
        if slot.dtype.kind == "f":
            value = section.value(f"bitcast {own} {value} to {kind}")
        return Lane(self._language, section, value, slot.dtype, 1)
