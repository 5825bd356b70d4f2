"""float16 conversions, for processors without instructions for them.

    text        the module with the functions that LLVM calls instead of instructions
    SUPPLIED    the names of these functions

A processor with F16C converts between float16 and float32 only, one without it not at all.  LLVM
then calls functions of the compiler's run-time library, which the process may not have loaded, and
an unresolved symbol aborts the process.  So they are defined here, and compiled by the same LLVM
for the same processor, so that the calling conventions agree.
"""

from __future__ import annotations

import functools

from . import llvm_files

SUPPLIED = frozenset({"__truncsfhf2", "__truncdfhf2", "__extendhfsf2", "__extendhfdf2"})


@functools.cache
def text(heading: str) -> str:
    """The module of these functions.

    They use integers and float32 only, so none of them calls another one.
    """
    return f"{heading}\n{llvm_files.read(__file__)}"
