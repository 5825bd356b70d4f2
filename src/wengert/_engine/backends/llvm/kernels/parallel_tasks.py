"""Parallel tasks: parts of a kernel, called by the thread pool.

`KernelCall.in_parts` stores the arguments of its parts, addresses and sizes, in a frame, and the
thread pool passes the address of that frame to each part.

    write_task    writes the function that loads the arguments of a part from a frame, and calls it
    word          the address of a word of a frame
"""

from __future__ import annotations

from collections.abc import Sequence

from ..ir.ir_builder import Function, ModuleBuilder, Name, Section


def word(s: Section, frame: Name, k: int) -> Name:
    """The address of a word of a frame."""
    return s.value(f"getelementptr i64, ptr {frame}, i64 {k}")


def write_task(module: ModuleBuilder, title: str, kinds: Sequence[str]) -> None:
    """Write the function that the thread pool calls for a part.

    The frame contains the status, and then the arguments of the part.
    """
    arguments = [("ptr", "frame"), ("i64", "start"), ("i64", "stop"), ("i64", "part")]
    function = Function(module, f"{title}.team", arguments, "void", "nounwind")
    s = function.body
    loaded = [
        kind + " " + s.value(f"load {kind}, ptr {word(s, '%frame', k)}")
        for k, kind in enumerate(kinds, 1)
    ]
    listed = ", ".join([*loaded, "i64 %start", "i64 %stop"])
    status = s.value(f"call i64 @{title}({listed})")
    with s.when(s.value(f"icmp ne i64 {status}, 0")) as t:
        t.write(f"store i64 {status}, ptr %frame")
    s.write("ret void")
    module.add(function)
