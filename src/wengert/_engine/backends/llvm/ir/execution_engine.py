"""LLVM text compiled to machine code, which stays in memory as long as it is needed.

    machine     the target machine of this computer, made once
    object_of   text -> the bytes of an object file (which are cached on disk)
    Code        object files in memory: addresses of their functions

LLVM is loaded at the first use, and not when wengert is imported.
"""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import llvmlite.binding as llvm

from wengert.errors import BackendError, at, user_line

from . import half_precision
from .object_symbols import is_elf, symbols_of

# Values are emitted once and outside of loops already, so a tenth of LLVM's standard passes gives
# code that is as fast, in a fraction of the time.
_PASSES = (
    *("always_inliner", "sroa", "instruction_combine", "simplify_cfg"),
    *("dead_code_elimination", "global_dead_code_eliminate"),
)
# LLVM's compiler is not for several threads at once, as llvmlite uses it.
_LOCK = threading.RLock()
if hasattr(os, "register_at_fork"):
    # A fork waits until no thread is inside LLVM, whose state would be inconsistent in the child.
    os.register_at_fork(
        before=_LOCK.acquire, after_in_parent=_LOCK.release, after_in_child=_LOCK.release
    )


@functools.cache
def machine(quick: bool = False) -> Any:
    """The code generator for the processor of this computer; a quick one takes no pains."""
    return _new_machine(0 if quick else 2)


def _new_machine(effort: int) -> Any:
    with _LOCK:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        target = llvm.Target.from_default_triple()
        return target.create_target_machine(
            cpu=cpu(), features=features(), opt=effort, reloc="pic", codemodel="default", jit=True
        )


@functools.cache
def cpu() -> str:
    """The processor, as LLVM names it."""
    with _LOCK:
        return str(llvm.get_host_cpu_name())


@functools.cache
def features() -> str:
    """The features of the processor, as LLVM lists them."""
    with _LOCK:
        return str(llvm.get_host_cpu_features().flatten())


def has(feature: str) -> bool:
    """Whether the processor can do something: "avx512f", "fma"."""
    return f"+{feature}" in features().split(",")


@functools.cache
def vector_bytes() -> int:
    """How many bytes one vector register holds."""
    if has("avx512f") and has("avx512vl") and has("avx512dq") and has("avx512bw"):
        return 64
    return 32 if has("avx2") else 16


# Sections of one object file refer to each other by distances of 32 bits.  LLVM's own manager of
# memory asks for them one by one, and in a process with much in its memory gets them too far apart,
# which ends the process; llvmlite's other one asks for all at once.  But it does not see the
# addresses of functions outside, 8 bytes for each, that LLVM puts behind the data.  So every module
# has a number that has to begin a page: what is left of that page and of the next is for them.
_ROOM = """@room = internal global i64 0, align 4096
@llvm.used = appending global [1 x ptr] [ptr @room], section "llvm.metadata"
"""
_PLACES = 1000  # in this room


@functools.cache
def heading() -> str:
    """The lines that a module begins with."""
    with _LOCK:
        made = machine()
        return f'target triple = "{made.triple}"\ntarget datalayout = "{made.target_data}"\n{_ROOM}'


def optimised(text: str) -> Any:
    """A module from its text, improved by LLVM's passes.

    Raises
    ------
    RuntimeError
        LLVM does not understand the text: a fault of wengert's own.
    """
    with _LOCK:
        made = machine()
        module = llvm.parse_assembly(text)
        builder = llvm.create_pass_builder(made, llvm.create_pipeline_tuning_options())
        _passes().run(module, builder)
        return module


@functools.cache
def _passes() -> Any:
    """The passes, made once: llvmlite does not free the memory of a pass manager."""
    passes = llvm.create_new_module_pass_manager()
    for name in _PASSES:
        getattr(passes, f"add_{name}_pass")()
    return passes


def object_of(text: str, quick: bool = False) -> bytes:
    """The object file of a module.

    Parameters
    ----------
    quick : bool
        For cold code: compiled in an eighth of the time, and about half as fast.
    """
    with _LOCK:
        module = llvm.parse_assembly(text) if quick else optimised(text)
        try:
            return bytes(machine(quick).emit_object(module))
        finally:
            module.close()  # here, under the lock, as another thread may fork


def assembly_of(text: str) -> str:
    """The machine's assembly of a module."""
    with _LOCK:
        return str(machine().emit_assembly(optimised(text)))


@functools.cache
def _halves() -> bytes:
    """The object file of the conversions of half precision."""
    return object_of(half_precision.text(heading()), quick=True)


def _not_supplied(names: Sequence[str]) -> str:
    return (
        f"LLVM's code for this processor ({cpu()}) calls {', '.join(names)}, which neither the "
        f'process nor wengert supplies, so it cannot run. Use backend="interpret" for this '
        f"function{at(user_line())}."
    )


class Code:
    """Object files in memory.

    Parameters
    ----------
    image : bytes, or sequence of bytes
        As `object_of` made them; of several each may call the functions of the others.
    symbols : mapping from str to int
        Addresses of what they need from outside; what the C library has needs none.

    Raises
    ------
    BackendError
        They call a function that nobody supplies.
    """

    def __init__(self, image: bytes | Sequence[bytes], symbols: Mapping[str, int]) -> None:
        with _LOCK:
            for name, address in symbols.items():
                llvm.add_symbol(name, address)
            empty = llvm.parse_assembly(heading())
            images = [image] if isinstance(image, bytes) else list(image)
            names = [symbols_of(one) for one in images]
            needed = set[str]().union(*(n for _, n in names)).difference(*(d for d, _ in names))
            if needed & half_precision.SUPPLIED:
                images.append(_halves())
                needed -= half_precision.SUPPLIED
            # In one piece, if the addresses of all callees fit; None: as usual
            fits = all(is_elf(one) for one in images) and all(len(n) < _PLACES for _, n in names)
            self._engine = llvm.create_mcjit_compiler(
                empty, _new_machine(0), use_lmm=True if fits else None
            )
            missing = sorted(n for n in needed if llvm.address_of_symbol(n) is None)
            if missing:
                raise BackendError(_not_supplied(missing))
            for one in images:
                self._engine.add_object_file(llvm.ObjectFileRef.from_data(one))
            self._engine.finalize_object()

    def address(self, name: str) -> int:
        """Where a function begins."""
        with _LOCK:
            return int(self._engine.get_function_address(name))
