"""SIMD values loaded from memory and stored to it.

Neighboring elements are one vector load; the same element for all lanes is one scalar load and a
broadcast; anything else is a gather.  A mask marks the lanes that exist: those beyond the end of a
row, or outside of a selection, are neither read nor written.

Booleans are bytes in memory; complex numbers are interleaved pairs.
"""

from __future__ import annotations

from typing import Any

from . import simd_value
from .ir_builder import Section
from .llvm_types import BOOL, Dtype, in_memory, of_width, part_of
from .scalar_language import Language
from .simd_value import ComplexLane, Lane


def load(
    language: Language, section: Section, address: str, dtype: Dtype, width: int, mask: Lane | None
) -> Any:
    """Load neighboring elements; masked lanes are zero."""
    if dtype.kind == "c":
        return _load_pair(language, section, address, dtype, width, mask)
    kind = of_width(in_memory(dtype), width)
    if width == 1 or mask is None:
        name = section.value(f"load {kind}, ptr {address}, align {dtype.itemsize}")
    else:
        (mask,) = [language.widened(mask, width)]
        name = simd_value.masked_load(
            *(language.module, section, in_memory(dtype), width),
            *(address, dtype.itemsize, mask.name),
        )
    return _from_memory(language, section, name, dtype, width)


def gather(
    language: Language,
    section: Section,
    addresses: str,
    dtype: Dtype,
    width: int,
    mask: Lane | None,
) -> Any:
    """Load elements from a vector of addresses; masked lanes are zero."""
    if dtype.kind == "c":
        part = part_of(dtype)
        other = section.value(
            f"getelementptr {in_memory(part)}, <{width} x ptr> {addresses}, i64 1"
        )
        real = gather(language, section, addresses, part, width, mask)
        return ComplexLane(
            language, real, gather(language, section, other, part, width, mask), dtype
        )
    lanes = "splat (i1 true)" if mask is None else language.widened(mask, width).name
    name = simd_value.masked_gather(
        language.module, section, in_memory(dtype), width, addresses, dtype.itemsize, lanes
    )
    return _from_memory(language, section, name, dtype, width)


def store(
    language: Language, section: Section, address: str, value: Any, width: int, mask: Lane | None
) -> None:
    """Store neighboring elements."""
    if type(value) is ComplexLane:
        _store_pair(language, section, address, value, width, mask)
        return
    dtype = value.dtype
    name = _to_memory(section, language.widened(value, width), width)
    kind = of_width(in_memory(dtype), width)
    if width == 1 or mask is None:
        section.write(f"store {kind} {name}, ptr {address}, align {dtype.itemsize}")
        return
    if mask.section is None and mask.name == first_lanes(1, width):
        # LLVM 22 emits a scalar store here too, but of the size before the value was narrowed.
        one = section.value(f"extractelement {kind} {name}, i64 0")
        section.write(f"store {in_memory(dtype)} {one}, ptr {address}, align {dtype.itemsize}")
        return
    simd_value.masked_store(
        *(language.module, section, in_memory(dtype), width),
        *(name, address, dtype.itemsize, language.widened(mask, width).name),
    )


def scatter(
    language: Language, section: Section, addresses: str, value: Any, width: int, mask: Lane | None
) -> None:
    """Store elements to a vector of addresses, in the order of the lanes."""
    if type(value) is ComplexLane:
        part = in_memory(value.real.dtype)
        other = section.value(f"getelementptr {part}, <{width} x ptr> {addresses}, i64 1")
        scatter(language, section, addresses, value.real, width, mask)
        scatter(language, section, other, value.imag, width, mask)
        return
    dtype = value.dtype
    name = _to_memory(section, language.widened(value, width), width)
    lanes = "splat (i1 true)" if mask is None else language.widened(mask, width).name
    simd_value.masked_scatter(
        language.module, section, in_memory(dtype), width, name, addresses, dtype.itemsize, lanes
    )


def first_lanes(count: int, width: int) -> str:
    """An LLVM constant: a mask of the first `count` lanes."""
    return f"<{', '.join(f'i1 {str(k < count).lower()}' for k in range(width))}>"


def _from_memory(language: Language, section: Section, name: str, dtype: Dtype, width: int) -> Lane:
    if dtype.kind == "b":
        name = section.value(f"trunc {of_width('i8', width)} {name} to {of_width('i1', width)}")
    return Lane(language, section, name, dtype, width)


def _to_memory(section: Section, value: Lane, width: int) -> str:
    if value.dtype != BOOL:
        return value.name
    return section.value(f"zext {of_width('i1', width)} {value.name} to {of_width('i8', width)}")


# ---- complex numbers -----------------------------------------------------------------------------


def _deinterleaving(width: int, start: int) -> str:
    lanes = ", ".join(f"i32 {2 * k + start}" for k in range(width))
    return f"<{width} x i32> <{lanes}>"


def _interleaving(width: int) -> str:
    lanes = ", ".join(f"i32 {k + part * width}" for k in range(width) for part in (0, 1))
    return f"<{2 * width} x i32> <{lanes}>"


def _of_parts(language: Language, section: Section, mask: Lane | None, width: int) -> Lane | None:
    """The mask of complex numbers as a mask of their interleaved parts."""
    if mask is None:
        return None
    mask = language.widened(mask, width)
    kind = f"<{width} x i1>"
    if mask.section is None:  # "splat (i1 true)", or a list of lanes
        lanes = mask.name.removeprefix("<").removesuffix(">").split(", ")
        doubled = ", ".join(lane for lane in lanes for _ in (0, 1))
        text = f"<{doubled}>" if mask.name.startswith("<") else mask.name
        return Lane(language, None, text, BOOL, 2 * width)
    shuffle = _interleaving(width)
    name = section.value(f"shufflevector {kind} {mask.name}, {kind} {mask.name}, {shuffle}")
    return Lane(language, section, name, BOOL, 2 * width)


def _load_pair(
    language: Language, section: Section, address: str, dtype: Dtype, width: int, mask: Lane | None
) -> ComplexLane:
    part = part_of(dtype)
    if width == 1:
        other = section.value(f"getelementptr {in_memory(part)}, ptr {address}, i64 1")
        real = load(language, section, address, part, 1, None)
        return ComplexLane(language, real, load(language, section, other, part, 1, None), dtype)
    parts = _of_parts(language, section, mask, width)
    wide = load(language, section, address, part, 2 * width, parts)
    kind = of_width(in_memory(part), 2 * width)
    names = [
        section.value(
            f"shufflevector {kind} {wide.name}, {kind} poison, {_deinterleaving(width, k)}"
        )
        for k in (0, 1)
    ]
    real, imag = [Lane(language, section, n, part, width) for n in names]
    return ComplexLane(language, real, imag, dtype)


def _store_pair(
    language: Language,
    section: Section,
    address: str,
    value: ComplexLane,
    width: int,
    mask: Lane | None,
) -> None:
    part = value.real.dtype
    if width == 1:
        other = section.value(f"getelementptr {in_memory(part)}, ptr {address}, i64 1")
        store(language, section, address, value.real, 1, None)
        store(language, section, other, value.imag, 1, None)
        return
    kind = of_width(in_memory(part), width)
    real, imag = [language.widened(x, width).name for x in (value.real, value.imag)]
    name = section.value(f"shufflevector {kind} {real}, {kind} {imag}, {_interleaving(width)}")
    wide = Lane(language, section, name, part, 2 * width)
    store(language, section, address, wide, 2 * width, _of_parts(language, section, mask, width))
