"""Object files: symbols, machine code, and a check of registers for a bug of LLVM 22.

    symbols_of            both sets, with the names used in LLVM IR
    is_whole              whether bytes are a complete object file that defines some names
    code_of               the machine code of an ELF file
    has_wrong_register    whether an object file contains such an instruction

Only the tables of symbols and sections of a 64-bit little-endian ELF, Mach-O or COFF file are read.

On processors with AVX-512 LLVM replaces VPMOVB2M, VPMOVD2M and VPMOVQ2M, followed by KMOV, by
VPMOVMSKB, VMOVMSKPS and VMOVMSKPD, also if the operand is one of the registers 16 to 31, which
these instructions do not have (llvm/llvm-project#191304).  The code then reads another register: a
wrong value.  The encoding has a bit of the number of the register where these instructions have a
constant bit, so that the bytes are recognized.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from struct import error, iter_unpack, unpack_from

_ELF_SYMBOLS = 2  # type of the symbol table section
_ELF_NO_BITS = 8  # type of sections that have no data in the file
_ELF_EXECUTABLE = 4  # flag of sections with machine code
_MACH_SYMBOLS = 2  # the load command of the symbol table
_MACH_EXTERNAL, _MACH_TYPE, _MACH_DEBUG = 0x01, 0x0E, 0xE0
_COFF_EXTERNAL = 2
_COFF_MACHINES = (0x8664, 0xAA64)
# Names that a linker defines, or that need no address.
_LINKER_DEFINED = frozenset({"_GLOBAL_OFFSET_TABLE_", "__dso_handle", "_fltused", ""})


def is_elf(image: bytes) -> bool:
    """Whether it is a 64-bit ELF file."""
    return image.startswith(b"\x7fELF\x02\x01")


def symbols_of(image: bytes) -> tuple[set[str], set[str]]:
    """The names that an object file exports, and those that it imports.

    Raises
    ------
    ValueError
        Not an object file of a known format.
    """
    if is_elf(image):
        found = _elf(image)
    elif image.startswith(b"\xcf\xfa\xed\xfe"):
        found = _mach(image)
    elif len(image) > 20 and unpack_from("<H", image)[0] in _COFF_MACHINES:
        found = _coff(image)
    else:
        raise ValueError(
            f"not an ELF, Mach-O or COFF object file: its first bytes are {image[:4]!r}"
        )
    defined: set[str] = set()
    needed: set[str] = set()
    for name, is_defined in found:
        (defined if is_defined else needed).add(name)
    return defined, needed - defined - _LINKER_DEFINED


def is_whole(image: bytes, names: Iterable[str] = ()) -> bool:
    """Whether it is a complete object file that defines functions with these names."""
    try:
        defined, _ = symbols_of(image)
        if is_elf(image):
            for kind, _, at, size in _sections(image):
                if kind != _ELF_NO_BITS and at + size > len(image):
                    return False
    except (ValueError, error):  # error: the file is truncated
        return False
    return defined.issuperset(names)


def code_of(image: bytes) -> bytes:
    """The machine code of an ELF file, without its constants; a file of another format whole."""
    if not is_elf(image):
        return image
    executable = [(at, n) for _, flags, at, n in _sections(image) if flags & _ELF_EXECUTABLE]
    return b"".join([image[at : at + n] for at, n in executable])


def _text(image: bytes, at: int) -> str:
    return image[at : image.index(b"\0", at)].decode()


def _sections(image: bytes) -> Iterator[tuple[int, int, int, int]]:
    """The type, flags, offset and size of each section."""
    (start,) = unpack_from("<Q", image, 0x28)
    size, count = unpack_from("<HH", image, 0x3A)
    for k in range(count):
        yield unpack_from("<4xIQ8xQQ", image, start + k * size)


def _elf(image: bytes) -> Iterator[tuple[str, bool]]:
    (start,) = unpack_from("<Q", image, 0x28)
    (step,) = unpack_from("<H", image, 0x3A)
    for k, (kind, _, at, length) in enumerate(_sections(image)):
        if kind != _ELF_SYMBOLS:
            continue
        (link,) = unpack_from("<I", image, start + k * step + 0x28)
        (texts,) = unpack_from("<Q", image, start + link * step + 0x18)
        for name, info, _, section in iter_unpack("<IBBH16x", image[at : at + length]):
            if info >> 4:  # not local
                yield _text(image, texts + name), section != 0


def _mach(image: bytes) -> Iterator[tuple[str, bool]]:
    (commands,) = unpack_from("<I", image, 16)
    at = 32
    for _ in range(commands):
        kind, size = unpack_from("<II", image, at)
        if kind == _MACH_SYMBOLS:
            first, count, texts = unpack_from("<III", image, at + 8)
            listed = image[first : first + 16 * count]
            for name, flags, _, _, _ in iter_unpack("<IBBHQ", listed):
                if flags & _MACH_EXTERNAL and not flags & _MACH_DEBUG:
                    yield _text(image, texts + name).removeprefix("_"), bool(flags & _MACH_TYPE)
        at += size


def _coff(image: bytes) -> Iterator[tuple[str, bool]]:
    first, count = unpack_from("<II", image, 8)
    texts = first + 18 * count
    k = 0
    while k < count:
        name, _, section, _, kind, more = unpack_from("<8sIhHBB", image, first + 18 * k)
        if kind == _COFF_EXTERNAL:
            zeros, offset = unpack_from("<II", name)
            text = name.rstrip(b"\0").decode() if zeros else _text(image, texts + offset)
            yield text, section != 0
        k += 1 + more


# The prefix of three bytes (Intel's manual, volume 2, section 2.3.5) with the bit X inverted, which
# only memory operands use; the operation codes of MOVMSKPS and MOVMSKPD, and of PMOVMSKB; two
# registers.
_WRONG = re.compile(
    rb"\xc4[\x01\x21\x81\xa1][\x78\x79\x7c\x7d\xf8\xf9\xfc\xfd][\x50\xd7][\xc0-\xff]", re.DOTALL
)


def has_wrong_register(image: bytes) -> bool:
    """Whether an object file for x86-64 contains such an instruction.

    A constant in an instruction rarely looks like one.
    """
    return _WRONG.search(code_of(image)) is not None
