"""Vector constants that LLVM takes for variables, where it miscompiles masks with constant lanes.

LLVM 22 splits a vector that is larger than a register.  A masked load of such a vector, of which
one half is masked by constants, reads that half without a mask, or ends the process: where masks
are vectors of integers, as they are with AVX2, and not flags as with AVX-512.  So without AVX-512
the constants of a mask that is combined of constants and other values are loaded from a variable.

    hidden     the lane of a vector constant, loaded from a variable
    both_of    the conjunction of two masks
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import execution_engine
from .ir_builder import Section
from .llvm_types import in_memory, in_register, of_width
from .simd_value import Lane

if TYPE_CHECKING:
    from .scalar_language import Language


def hidden(language: Language, section: Section, lane: Lane) -> Lane:
    """A vector constant of different numbers, loaded in a section; any other lane unchanged."""
    if not _is_listed(lane) or execution_engine.vector_bytes() >= 64:
        return lane
    known = section.function.hidden.get(lane.name)
    if known is not None:
        return Lane(language, section, known, lane.dtype, lane.width)
    stored, used = in_memory(lane.dtype), in_register(lane.dtype)
    values = [x.split()[1] for x in lane.name.strip("<>").split(",")]
    if lane.dtype.kind == "b":
        values = [str(int(x == "true")) for x in values]
    kind = f"[{lane.width} x {stored}]"
    listed = ", ".join(f"{stored} {x}" for x in values)
    name = f"hidden.{stored}.{'.'.join(values)}"
    place = language.module.variable(name, kind, f"[{listed}]")
    whole = of_width(stored, lane.width)
    found = section.value(f"load {whole}, ptr {place}, align 64")
    if stored != used:
        found = section.value(f"trunc {whole} {found} to {of_width(used, lane.width)}")
    section.function.hidden[lane.name] = found
    return Lane(language, section, found, lane.dtype, lane.width)


def both_of(language: Language, section: Section, one: Lane, two: Lane) -> Lane:
    """The conjunction of two masks; what is loaded for it is loaded in a section."""
    if _is_listed(one) != _is_listed(two):
        one, two = hidden(language, section, one), hidden(language, section, two)
    found: Lane = language.binary("logical_and", one, two)
    return found


def _is_listed(lane: Lane) -> bool:
    return lane.name.startswith("<")
