"""Blocks of threads on the processor: each thread is a coroutine of LLVM, which barriers suspend.

A thread runs until it waits or passes a value to another one; then other threads of its warp run,
in random order. A warp runs on, maybe far ahead of others, until its threads are at a barrier of
the block. So a kernel that lacks a barrier gives another result in each run. What would stop a
graphics card is an error: threads of a group at different places, and a barrier of the block that
only some of its threads reach.

    block_object    the object file of kernels
    run_blocks      one launch of a kernel

The functions of kernel "k", in LLVM IR: `k_thread`, the coroutine; `k_begin`, which makes those of
a block; `warp.step`, which runs a warp up to a barrier of the block or to its end.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..llvm.ir.execution_engine import Code, coroutine_object, heading
from ..llvm.ir.ir_builder import ModuleBuilder
from .block_threads import ARGUMENTS, BLOCK_BARRIER, SHUFFLE, WARP, WARP_BARRIER

_OPENING = re.compile(r"define void @([-\w.]+)\((.*)\) #1 \{")
_SHUFFLED = re.compile(rf"  (%\S+) = call (i\d+) @{SHUFFLE}\d+\(i\d+ (\S+), i64 (\S+), i64 (\S+)\)")
_BARRIER = re.compile(rf"  call void @({BLOCK_BARRIER}|{WARP_BARRIER})\(")
_END = "ret void"
_DONE, _FAULT = 0, 1 << 40  # states of warps; others are the numbers of barriers of the block
_NEVER = 0xA5  # of each byte of memory that nobody has written to

# Suspended threads have the number of the place in `sites`; that of a barrier of the block is
# negative, and 0 is the end.
_PROLOGUE = """
  %coro.id = call token @llvm.coro.id(i32 0, ptr null, ptr null, ptr null)
  %coro.size = call i64 @llvm.coro.size.i64()
  %coro.memory = call ptr @malloc(i64 %coro.size)
  %coro.frame = call ptr @llvm.coro.begin(token %coro.id, ptr %coro.memory)
  %coro.site = getelementptr i64, ptr %sites, i64 %tid
  store i64 1, ptr %coro.site
"""
_EPILOGUE = """coro.final:
  store i64 0, ptr %coro.site
  %coro.last = call i8 @llvm.coro.suspend(token none, i1 true)
  switch i8 %coro.last, label %coro.suspended [i8 1, label %coro.cleanup]
coro.cleanup:
  %coro.free = call ptr @llvm.coro.free(token %coro.id, ptr %coro.frame)
  call void @free(ptr %coro.free)
  br label %coro.suspended
coro.suspended:
  call void @llvm.coro.end(ptr %coro.frame, i1 false, token none)
  ret ptr %coro.frame
}"""
_DECLARATIONS = """declare token @llvm.coro.id(i32, ptr, ptr, ptr)
declare i64 @llvm.coro.size.i64()
declare ptr @llvm.coro.begin(token, ptr)
declare i8 @llvm.coro.suspend(token, i1)
declare ptr @llvm.coro.free(token, ptr)
declare void @llvm.coro.end(ptr, i1, token)
declare void @llvm.coro.resume(ptr)
declare void @llvm.coro.destroy(ptr)
declare ptr @malloc(i64)
declare void @free(ptr)
"""
# Runs the threads of a warp, beginning with thread %start, in rounds: in each, every thread that
# does not wait for the block, in steps of an odd number. Ends when none is left; the result is that
# of the first thread, or a fault if those of a group differ.
_STEP = f"""define i64 @warp.step(ptr %frames, ptr %sites, i64 %start, i64 %lanes, i64 %seed) {{
entry:
  %random = alloca i64
  store i64 %seed, ptr %random
  %smaller = icmp slt i64 %lanes, {WARP}
  %part = select i1 %smaller, i64 %lanes, i64 {WARP}
  %last = sub i64 %part, 1
  %keep = xor i64 %last, -1
  br label %round
round:
  %old = load i64, ptr %random
  %product = mul i64 %old, 6364136223846793005
  %new = add i64 %product, 1442695040888963407
  store i64 %new, ptr %random
  %high = lshr i64 %new, 33
  %odd = or i64 %high, 1
  %offset = lshr i64 %new, 40
  br label %each
each:
  %k = phi i64 [0, %round], [%next, %on]
  %ran = phi i1 [false, %round], [%more, %on]
  %turned = mul i64 %k, %odd
  %moved = add i64 %turned, %offset
  %lane = and i64 %moved, {WARP - 1}
  %thread = add i64 %start, %lane
  %place = getelementptr i64, ptr %sites, i64 %thread
  %site = load i64, ptr %place
  %runs = icmp sgt i64 %site, 0
  br i1 %runs, label %resume, label %on
resume:
  %where = getelementptr ptr, ptr %frames, i64 %thread
  %frame = load ptr, ptr %where
  call void @llvm.coro.resume(ptr %frame)
  br label %on
on:
  %more = select i1 %runs, i1 true, i1 %ran
  %next = add i64 %k, 1
  %is.last = icmp eq i64 %next, {WARP}
  br i1 %is.last, label %check, label %each
check:
  %j = phi i64 [0, %on], [%j.next, %same]
  %own.thread = add i64 %start, %j
  %first.lane = and i64 %j, %keep
  %first.thread = add i64 %start, %first.lane
  %own.place = getelementptr i64, ptr %sites, i64 %own.thread
  %first.place = getelementptr i64, ptr %sites, i64 %first.thread
  %own.site = load i64, ptr %own.place
  %first.site = load i64, ptr %first.place
  %is.same = icmp eq i64 %own.site, %first.site
  br i1 %is.same, label %same, label %fault
same:
  %j.next = add i64 %j, 1
  %checked = icmp eq i64 %j.next, {WARP}
  br i1 %checked, label %goes.on, label %check
goes.on:
  br i1 %more, label %round, label %leave
leave:
  %result.place = getelementptr i64, ptr %sites, i64 %start
  %result = load i64, ptr %result.place
  ret i64 %result
fault:
  ret i64 {_FAULT}
}}
define void @warp.resume(ptr %sites, i64 %count) {{
entry:
  br label %each
each:
  %k = phi i64 [0, %entry], [%next, %each]
  %place = getelementptr i64, ptr %sites, i64 %k
  store i64 1, ptr %place
  %next = add i64 %k, 1
  %more = icmp slt i64 %next, %count
  br i1 %more, label %each, label %leave
leave:
  ret void
}}
define void @block.end(ptr %frames, i64 %count) {{
entry:
  br label %each
each:
  %k = phi i64 [0, %entry], [%next, %each]
  %place = getelementptr ptr, ptr %frames, i64 %k
  %frame = load ptr, ptr %place
  call void @llvm.coro.destroy(ptr %frame)
  %next = add i64 %k, 1
  %more = icmp slt i64 %next, %count
  br i1 %more, label %each, label %leave
leave:
  ret void
}}"""


def _suspended(n: int, site: int) -> list[str]:
    """The code that suspends a thread at a place."""
    return [
        f"  store i64 {site}, ptr %coro.site",
        f"  %coro.s{n} = call i8 @llvm.coro.suspend(token none, i1 false)",
        f"  switch i8 %coro.s{n}, label %coro.suspended "
        f"[i8 0, label %coro.on{n} i8 1, label %coro.cleanup]",
        f"coro.on{n}:",
    ]


def _thread(name: str, text: str) -> str:
    """The coroutine of a thread, from the function of the kernel."""
    opening, *lines = text.split("\n")
    match = _OPENING.match(opening)
    assert match is not None and lines[0] == "entry:", opening
    slots = [x for x in lines if " = alloca " in x]
    done = [
        f"define internal ptr @{name}_thread({match[2]}, ptr %slots, ptr %sites) "
        "presplitcoroutine {",
        *("entry:", *slots, _PROLOGUE, *_suspended(0, 1)),
    ]
    n = 0
    for line in lines[1:-1]:
        if line in slots:
            continue
        shuffle = _SHUFFLED.match(line)
        barrier = _BARRIER.match(line)
        if shuffle is not None:
            result, kind, value, source, mask = shuffle.groups()
            done += _passed(n + 1, result, kind, value, source)
            assert mask
            n += 2
        elif barrier is not None:
            n += 1
            done += _suspended(n, -n if barrier[1] == BLOCK_BARRIER else n + 1)
        elif line.strip() == _END:
            done.append("  br label %coro.final")
        else:
            done.append(line)
    return "\n".join([*done, _EPILOGUE])


def _passed(n: int, result: str, kind: str, value: str, source: str) -> list[str]:
    """The code by which a thread passes a number and takes that of another."""
    return [
        f"  %coro.to{n} = getelementptr i64, ptr %slots, i64 %tid",
        f"  store {kind} {value}, ptr %coro.to{n}",
        *_suspended(n, n + 1),
        f"  %coro.warp{n} = and i64 %tid, {-WARP}",
        f"  %coro.from{n} = add i64 %coro.warp{n}, {source}",
        f"  %coro.place{n} = getelementptr i64, ptr %slots, i64 %coro.from{n}",
        f"  {result} = load {kind}, ptr %coro.place{n}",
        *_suspended(n + 1, n + 2),
    ]


def _begin(name: str, text: str) -> str:
    """The function that makes the threads of a block, each at its beginning."""
    match = _OPENING.match(text)
    assert match is not None
    arguments = match[2].split(", ")
    own = arguments[: -len(ARGUMENTS)]
    more = "ptr %shared, i64 %ntid, i64 %ctaid, i64 %nctaid, ptr %slots, ptr %sites, ptr %frames"
    return f"""define void @{name}_begin({", ".join([*own, more])}) {{
entry:
  br label %each
each:
  %tid = phi i64 [0, %entry], [%next, %each]
  %frame = call ptr @{name}_thread({match[2]}, ptr %slots, ptr %sites)
  %place = getelementptr ptr, ptr %frames, i64 %tid
  store ptr %frame, ptr %place
  %next = add i64 %tid, 1
  %more = icmp slt i64 %next, %ntid
  br i1 %more, label %each, label %leave
leave:
  ret void
}}"""


def block_object(kernels: Sequence[tuple[str, dict[str, str]]]) -> bytes:
    """The object file of kernels, given by name with their definitions."""
    module = ModuleBuilder()
    module.parts["coroutines"] = _DECLARATIONS
    module.parts["warp.step"] = _STEP
    supplied = {BLOCK_BARRIER, WARP_BARRIER, f"{SHUFFLE}32", f"{SHUFFLE}64"}
    for name, text in kernels:
        module.include({k: v for k, v in text.items() if k != name and k not in supplied})
        module.parts[f"{name}_thread"] = _thread(name, text[name])
        module.parts[f"{name}_begin"] = _begin(name, text[name])
    return coroutine_object(module.text(heading()))


def run_blocks(
    code: Code,
    name: str,
    given: Sequence[Any],
    shape: tuple[int, int, int],
    lanes: int,
    order: np.random.Generator,
) -> None:
    """Run a kernel.

    Parameters
    ----------
    given : sequence
        Its arguments, as C values.
    shape : (int, int, int)
        The numbers of blocks and of threads in each, and the bytes of shared memory.
    lanes : int
        The number of threads that work together.
    order : numpy.random.Generator
        Decides which threads run first.

    Raises
    ------
    RuntimeError
        Threads that have to wait for each other wait at different places.
    """
    blocks, threads, size = shape
    shared = np.full(size + 64, _NEVER, np.uint8)
    slots, sites = np.zeros(threads, np.int64), np.zeros(threads, np.int64)
    frames = np.zeros(threads, np.uintp)
    pointers = [a.ctypes.data for a in (shared, slots, sites, frames)]
    kinds = [type(x) for x in given]
    whole, pointer = ctypes.c_int64, ctypes.c_void_p
    more = [pointer, whole, whole, whole, pointer, pointer, pointer]
    begin = ctypes.CFUNCTYPE(None, *kinds, *more)(code.address(f"{name}_begin"))
    step = ctypes.CFUNCTYPE(whole, pointer, pointer, whole, whole, whole)(code.address("warp.step"))
    resume = ctypes.CFUNCTYPE(None, pointer, whole)(code.address("warp.resume"))
    end = ctypes.CFUNCTYPE(None, pointer, whole)(code.address("block.end"))
    for block in order.permutation(blocks):
        shared[:] = _NEVER
        slots[:] = -1
        at = (pointers[0], threads, int(block), blocks, pointers[1], pointers[2], pointers[3])
        begin(*given, *at)
        try:
            while True:
                found = []
                for warp in order.permutation(threads // WARP):
                    seed = int(order.integers(1 << 62))
                    found.append(step(pointers[3], pointers[2], int(warp) * WARP, lanes, seed))
                if all(x == _DONE for x in found):
                    break
                if len(set(found)) > 1 or found[0] == _FAULT or lanes != threads:
                    raise RuntimeError(
                        f"threads of kernel {name} wait at different places: {sorted(set(found))}"
                    )
                resume(pointers[2], threads)
            assert not sites.any(), f"threads of kernel {name} have not ended"
        finally:
            end(pointers[3], threads)
