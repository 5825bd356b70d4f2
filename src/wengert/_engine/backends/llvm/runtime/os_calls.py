"""Locks, and pages of memory from the operating system, as LLVM IR.

    acquire, release       a spin lock that yields to other threads after a while
    pause                  waits for a few nanoseconds
    take_pages, give_pages allocate and return pages of memory: huge ones for large blocks
    load, store, field     words of a record: 8 bytes each, by index

A spin lock is one word on every system, needs no initialization, and is held for some ten
instructions.  Constants of the system (`MAP_ANONYMOUS`) come from Python's modules.

Most of the cost of new memory is its page faults: filling 8 MB took 2.0 ms with pages of 4 KiB,
1.2 ms with MAP_POPULATE, 0.8 ms with huge pages, and 0.28 ms with recycled memory.  So blocks below
2 MiB are mapped with MAP_POPULATE, and larger ones are aligned to huge pages and request them.
"""

from __future__ import annotations

import mmap
import os
import platform

from ..ir import llvm_types
from ..ir.ir_builder import Function, ModuleBuilder, Name, Section
from ..tuning import thresholds

HUGE_PAGE = 2 << 20
SLACK = 4096  # extra bytes for the header and the offset of the start


def field(section: Section, base: Name, index: int | Name) -> Name:
    """The address of a word of a record."""
    if index == 0:
        return base
    return section.value(f"getelementptr i64, ptr {base}, i64 {index}")


def load(section: Section, base: Name, index: int | Name, kind: str = "i64") -> Name:
    """Load a word of a record."""
    return section.value(f"load {kind}, ptr {field(section, base, index)}")


def store(section: Section, value: Name, base: Name, index: int | Name, kind: str = "i64") -> None:
    """Store a word of a record."""
    section.write(f"store {kind} {value}, ptr {field(section, base, index)}")


def emit_locks(module: ModuleBuilder) -> None:
    """Emit `acquire`, `release`, `pause` and `give_way` (which yields to other threads)."""
    module.parts["give_way"] = _give_way(module)
    module.parts["pause"] = _pause(module)
    module.include(llvm_types.functions(__file__, spin_count=thresholds.spin_count))


def _give_way(module: ModuleBuilder) -> str:
    if os.name == "nt":
        module.declare("SwitchToThread", "i32", [])
        call = "%ignored = call i32 @SwitchToThread()"
    else:
        module.declare("sched_yield", "i32", [])
        call = "%ignored = call i32 @sched_yield()"
    return f"define internal void @give_way() {{\nentry:\n  {call}\n  ret void\n}}"


def _pause(module: ModuleBuilder) -> str:
    call = ""
    if platform.machine().lower() in ("x86_64", "amd64"):
        module.declare("llvm.x86.sse2.pause", "void", [])
        call = "  call void @llvm.x86.sse2.pause()\n"
    elif platform.machine().lower() in ("aarch64", "arm64"):
        # YIELD takes no time on these processors; a barrier takes about as long as x86's pause.
        module.declare("llvm.aarch64.isb", "void", ["i32"])
        call = "  call void @llvm.aarch64.isb(i32 15)\n"
    return f"define internal void @pause() alwaysinline {{\nentry:\n{call}  ret void\n}}"


def emit_page_functions(module: ModuleBuilder, maps: bool = hasattr(mmap, "MAP_ANONYMOUS")) -> None:
    """Emit `take_pages(size, ptr mapped)` and `give_pages(base, length)`.

    The memory begins at a page boundary, or at a huge page if it is that large; SLACK more bytes
    than requested may be used.  The address and the length for `give_pages` are stored in `mapped`.
    Without `maps` the memory comes from malloc.
    """
    arguments = [("i64", "size"), ("ptr", "mapped")]
    take = Function(module, "take_pages", arguments, "ptr")
    give = Function(module, "give_pages", [("ptr", "base"), ("i64", "length")])
    if maps:
        _map(module, take)
        unmap = module.declare("munmap", "i32", ["ptr", "i64"])
        give.body.value(f"call i32 {unmap}(ptr %base, i64 %length)")
    else:  # Windows, whose heap returns large blocks to the system
        _allocate(module, take)
        release = module.declare("free", "void", ["ptr"])
        give.body.write(f"call void {release}(ptr %base)")
    give.body.write("ret void")
    module.add(take)
    module.add(give)


def _map(module: ModuleBuilder, function: Function) -> None:
    call = module.declare("mmap", "ptr", ["ptr", "i64", "i32", "i32", "i32", "i64"])
    s = function.body
    plain = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    at_once = plain | getattr(mmap, "MAP_POPULATE", 0)
    access = mmap.PROT_READ | mmap.PROT_WRITE
    huge = s.value(f"icmp uge i64 %size, {HUGE_PAGE}")
    more = s.value(f"select i1 {huge}, i64 {HUGE_PAGE}, i64 0")
    used = s.value(f"add i64 %size, {SLACK}")
    length = s.value(f"add i64 {used}, {more}")
    flags = s.value(f"select i1 {huge}, i32 {plain}, i32 {at_once}")
    pages = f"ptr null, i64 {length}, i32 {access}, i32 {flags}, i32 -1, i64 0"
    base = s.value(f"call ptr {call}({pages})")
    succeeded = s.value(f"icmp ne ptr {base}, inttoptr (i64 -1 to ptr)")
    start = function.slot("ptr")
    s.write(f"store ptr {s.value(f'select i1 {succeeded}, ptr {base}, ptr null')}, ptr {start}")
    with s.when(succeeded) as got:
        store(got, base, "%mapped", 0, "ptr")
        store(got, length, "%mapped", 1)
        with got.when(huge) as large:
            number = large.value(f"ptrtoint ptr {base} to i64")
            raised = large.value(f"add i64 {number}, {HUGE_PAGE - 1}")
            aligned = large.value(f"and i64 {raised}, -{HUGE_PAGE}")
            start_aligned = large.value(f"inttoptr i64 {aligned} to ptr")
            large.write(f"store ptr {start_aligned}, ptr {start}")
            if hasattr(mmap, "MADV_HUGEPAGE"):
                advise = module.declare("madvise", "i32", ["ptr", "i64", "i32"])
                large.value(
                    f"call i32 {advise}(ptr {start_aligned}, i64 %size, i32 {mmap.MADV_HUGEPAGE})"
                )
    s.write(f"ret ptr {s.value(f'load ptr, ptr {start}')}")


def _allocate(module: ModuleBuilder, function: Function) -> None:
    call = module.declare("malloc", "ptr", ["i64"])
    s = function.body
    length = s.value(f"add i64 %size, {SLACK + 64}")
    base = s.value(f"call ptr {call}(i64 {length})")
    store(s, base, "%mapped", 0, "ptr")
    store(s, length, "%mapped", 1)
    number = s.value(f"ptrtoint ptr {base} to i64")
    aligned = s.value(f"and i64 {s.value(f'add i64 {number}, 63')}, -64")
    failed = s.value(f"icmp eq ptr {base}, null")
    start = s.value(f"inttoptr i64 {aligned} to ptr")
    s.write(f"ret ptr {s.value(f'select i1 {failed}, ptr null, ptr {start}')}")
