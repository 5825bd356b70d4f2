"""Masked loads and stores of vectors.

    load, store        neighboring elements
    gather, scatter    elements at the addresses of a vector

The alignment is an argument in LLVM 20 and 21, and an attribute of the pointer since LLVM 22, which
still accepts the argument.  LLVM 20 takes the attribute form for another overload and aborts the
process, so only the form that all versions accept is emitted, and only in this module.
"""

from __future__ import annotations

from .ir_builder import ModuleBuilder, Name, Section
from .llvm_types import of_width, suffix


def load(
    module: ModuleBuilder,
    section: Section,
    element: str,
    width: int,
    address: Name,
    align: int,
    mask: Name,
    others: str = "zeroinitializer",
) -> Name:
    """Load neighboring elements of LLVM type `element`; masked lanes get `others`."""
    kind, flags = of_width(element, width), of_width("i1", width)
    callee = module.declare(
        f"llvm.masked.load{suffix(element, width)}.p0", kind, ["ptr", "i32", flags, kind]
    )
    return section.value(
        f"call {kind} {callee}(ptr {address}, i32 {align}, {flags} {mask}, {kind} {others})"
    )


def store(
    module: ModuleBuilder,
    section: Section,
    element: str,
    width: int,
    value: Name,
    address: Name,
    align: int,
    mask: Name,
) -> None:
    """Store the neighboring elements selected by the mask."""
    kind, flags = of_width(element, width), of_width("i1", width)
    callee = module.declare(
        f"llvm.masked.store{suffix(element, width)}.p0", "void", [kind, "ptr", "i32", flags]
    )
    section.write(f"call void {callee}({kind} {value}, ptr {address}, i32 {align}, {flags} {mask})")


def gather(
    module: ModuleBuilder,
    section: Section,
    element: str,
    width: int,
    addresses: Name,
    align: int,
    mask: Name = "splat (i1 true)",
    others: str = "zeroinitializer",
) -> Name:
    """Load elements from a vector of addresses; masked lanes get `others`."""
    kind, flags, pointers = (of_width(x, width) for x in (element, "i1", "ptr"))
    callee = module.declare(
        f"llvm.masked.gather{suffix(element, width)}.v{width}p0",
        kind,
        [pointers, "i32", flags, kind],
    )
    given = f"{pointers} {addresses}, i32 {align}, {flags} {mask}, {kind} {others}"
    return section.value(f"call {kind} {callee}({given})")


def scatter(
    module: ModuleBuilder,
    section: Section,
    element: str,
    width: int,
    value: Name,
    addresses: Name,
    align: int,
    mask: Name = "splat (i1 true)",
) -> None:
    """Store elements to a vector of addresses, in the order of the lanes."""
    kind, flags, pointers = (of_width(x, width) for x in (element, "i1", "ptr"))
    callee = module.declare(
        f"llvm.masked.scatter{suffix(element, width)}.v{width}p0",
        "void",
        [kind, pointers, "i32", flags],
    )
    section.write(
        f"call void {callee}({kind} {value}, {pointers} {addresses}, i32 {align}, {flags} {mask})"
    )
