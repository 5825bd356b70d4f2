"""Masked loads and stores of vectors.

    load, store        neighboring elements
    gather, scatter    elements at the addresses of a vector

The alignment is an argument in LLVM 20 and 21, and an attribute of the pointer since LLVM 22, which
still reads the argument.  LLVM 20 takes the other form for a different function of the same name,
and ends the process; so the form that all versions accept is written, here and nowhere else.
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
    """Neighboring elements of LLVM's type `element`; `others` are those that are not read."""
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
    """Write the neighboring elements that the mask names."""
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
    """Elements at addresses; `others` are those that are not read."""
    kind, flags, places = (of_width(x, width) for x in (element, "i1", "ptr"))
    callee = module.declare(
        f"llvm.masked.gather{suffix(element, width)}.v{width}p0", kind, [places, "i32", flags, kind]
    )
    return section.value(
        f"call {kind} {callee}({places} {addresses}, i32 {align}, {flags} {mask}, {kind} {others})"
    )


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
    """Write elements to addresses, in the order of the lanes."""
    kind, flags, places = (of_width(x, width) for x in (element, "i1", "ptr"))
    callee = module.declare(
        f"llvm.masked.scatter{suffix(element, width)}.v{width}p0",
        "void",
        [kind, places, "i32", flags],
    )
    section.write(
        f"call void {callee}({kind} {value}, {places} {addresses}, i32 {align}, {flags} {mask})"
    )
