"""Whether the system gives LLVM the memory that it is going to ask for.

LLVM ends the process where it gets none: for the sections of an object file, which are mappings of
their own with different protections, and for what it allocates while it compiles.  A process has
a limit of mappings (vm.max_map_count on Linux, 65,530; a compiled program in memory has three) and
may have one of its address space (ulimit -v).  So as much is mapped before, and given back.

    check_memory    MemoryError if a number of bytes in several mappings cannot be had
"""

from __future__ import annotations

import mmap

from wengert.errors import at, user_line

_SECTIONS = 4  # of an object file, with different protections
_PAGE = mmap.PAGESIZE
_PER_CHARACTER = 64  # bytes that LLVM allocates for each of a text, at most
_AT_LEAST = 8 << 20


def memory_of_text(text: str) -> int:
    """A bound of the bytes that LLVM needs to compile a text."""
    return _AT_LEAST + _PER_CHARACTER * len(text)


def check_memory(size: int, files: int = 1) -> None:
    """Raise an error unless the system gives so many bytes, in the mappings of some object files.

    Raises
    ------
    MemoryError
        It does not.
    """
    if not hasattr(mmap, "MAP_ANONYMOUS"):  # Windows
        return
    found: list[mmap.mmap] = []
    try:
        for k in range(_SECTIONS * files):  # neighbors of the same protection would be one mapping
            own = mmap.PROT_READ | (mmap.PROT_WRITE if k % 2 else 0)
            length = size if k == 1 else _PAGE
            found.append(mmap.mmap(-1, length, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, own))
    except OSError as error:
        raise MemoryError(
            f"the system has no memory, or no more mappings, for the machine code of a function "
            f"({error.strerror}; {size} bytes). Drop compiled functions that are not needed "
            'any more, raise the limit (ulimit -v, vm.max_map_count), or use backend="interpret"'
            f"{at(user_line())}."
        ) from None
    finally:
        for one in found:
            one.close()
