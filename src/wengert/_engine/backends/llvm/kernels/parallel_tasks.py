"""Sharing: a part of a step, as the team of threads calls it.

Who shares a range (`Call.in_parts`) writes what its parts are given, addresses and sizes, one
behind the other into a frame, and the team gives each part the address of that frame.

    called_by_team    the function that takes a part's arguments out of a frame, and calls it
    word              a place in a frame
"""

from __future__ import annotations

from collections.abc import Sequence

from wengert._engine.backends.llvm.ir.ir_builder import Function, ModuleBuilder, Name, Section


def word(s: Section, frame: Name, k: int) -> Name:
    """The address of a word of a frame."""
    return s.value(f"getelementptr i64, ptr {frame}, i64 {k}")


def called_by_team(module: ModuleBuilder, title: str, kinds: Sequence[str]) -> None:
    """A part as the team of threads calls it: what it is given stands behind its status."""
    arguments = [("ptr", "frame"), ("i64", "start"), ("i64", "stop"), ("i64", "part")]
    function = Function(module, f"{title}.team", arguments, "void", "nounwind")
    s = function.body
    given = [
        kind + " " + s.value(f"load {kind}, ptr {word(s, '%frame', k)}")
        for k, kind in enumerate(kinds, 1)
    ]
    listed = ", ".join([*given, "i64 %start", "i64 %stop"])
    status = s.value(f"call i64 @{title}({listed})")
    with s.when(s.value(f"icmp ne i64 {status}, 0")) as t:
        t.write(f"store i64 {status}, ptr %frame")
    s.write("ret void")
    module.add(function)
