"""Conversions of half precision, for processors that have no instructions for them.

    text        the functions that LLVM calls where an instruction is missing, as a module
    SUPPLIED    their names

A processor with f16c converts between float16 and float32 only, one without it not at all.  LLVM
then calls functions of a compiler's run-time library, which the process may not have loaded; an
unresolved symbol ends the process.  They are defined here, and compiled by the same LLVM for the
same processor, so that the calling conventions agree.
"""

from __future__ import annotations

import functools

from . import llvm_files

SUPPLIED = frozenset({"__truncsfhf2", "__truncdfhf2", "__extendhfsf2", "__extendhfdf2"})


@functools.cache
def text(heading: str) -> str:
    """The module of the functions that are supplied.

    They are written of integers and of float32 alone, so that none of them needs another.
    """
    return f"{heading}\n{llvm_files.read(__file__)}"
