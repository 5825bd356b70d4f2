"""Masked loads and stores of vectors.

    load, store        neighboring elements
    gather, scatter    elements at the addresses of a vector

The alignment is an argument in LLVM 20 and 21, and an attribute of the pointer since LLVM 22, which
still accepts the argument.  LLVM 20 takes the attribute form for another overload and aborts the
process, so only the form that all versions accept is emitted, and only in this module.

With AVX-512, LLVM 22 makes a masked load an operand of the instruction that uses it if that one has
the same mask (llvm/llvm-project#161074).  If it makes two instructions of these again, the load has
no mask, and reads beyond the end of an array; if the instruction permutes lanes, the result is
wrong (#178888); and a selection by the mask reads the memory later, maybe after a store (#216730).
So what is loaded is not known to the instructions that use it: it passes `llvm.arithmetic.fence`,
which is not an instruction.
"""

from __future__ import annotations

from . import execution_engine
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
    loaded = section.value(
        f"call {kind} {callee}(ptr {address}, i32 {align}, {flags} {mask}, {kind} {others})"
    )
    return _fenced(module, section, element, width, loaded)


def _fenced(
    module: ModuleBuilder, section: Section, element: str, width: int, loaded: Name
) -> Name:
    """The same vector, of which LLVM does not know where it is from."""
    if execution_engine.vector_bytes() < 64:  # there are no flags as masks
        return loaded
    kind, count = of_width(element, width), width
    if is_floating := element in ("float", "double"):
        other = kind
    else:
        count = width * int(element.removeprefix("i").replace("half", "16")) // 32
        element, other = "float", of_width("float", count)
        if not count:  # less than 32 bits
            return loaded
        loaded = section.value(f"bitcast {kind} {loaded} to {other}")
    fence = module.declare(f"llvm.arithmetic.fence{suffix(element, count)}", other, [other])
    loaded = section.value(f"call {other} {fence}({other} {loaded})")
    return loaded if is_floating else section.value(f"bitcast {other} {loaded} to {kind}")


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
