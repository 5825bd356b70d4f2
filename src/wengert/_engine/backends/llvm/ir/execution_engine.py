"""LLVM IR compiled to machine code in memory, for this processor or another one.

    machine     the target machine of this computer, made once
    object_of   text -> the bytes of an object file (which are cached on disk)
    coroutine_object    the same, with coroutines
    Code        object files loaded into memory: addresses of their functions

LLVM is loaded at the first use, not when wengert is imported.

    Processor       triple, instructions and vector registers of another processor
    compiling_for   code that is generated inside of this context is for that processor
    foreign         the processor of the innermost context; None for this computer's
    is_for_device   whether that is a device; otherwise `is_exported`

`features`, `has`, `vector_bytes` and `loop_bytes` are those of this processor.  Code for another
one is written to files, and never loaded into this process: so external functions have no
addresses, and loops do not ask Python for interrupts.

    float16_text   the module with the functions that LLVM calls instead of instructions
    SUPPLIED       the names of these functions

A processor with F16C converts between float16 and float32 only, one without it not at all.  LLVM
then calls functions of the compiler's run-time library, which the process may not have loaded, and
an unresolved symbol aborts the process.  So they are defined here, and compiled by the same LLVM
for the same processor, so that the calling conventions agree.

    check_memory    MemoryError if a number of bytes in several mappings cannot be had

LLVM ends the process where it gets no memory: for the sections of an object file, which are
mappings of their own with different protections, and for what it allocates while it compiles.  A
process has a limit of mappings (vm.max_map_count on Linux, 65,530; a compiled program in memory has
three) and may have one of its address space (ulimit -v).  So as much is mapped before, and given
back.
"""

from __future__ import annotations

import functools
import mmap
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import llvmlite.binding as llvm

from wengert._engine.core.thread_state import interrupt_safe_lock
from wengert.errors import BackendError, at, user_line

from . import llvm_types
from .object_symbols import has_wrong_register, is_elf, symbols_of


@dataclass(frozen=True)
class Processor:
    """A processor that code is generated for.

    Attributes
    ----------
    name : str
    triple, cpu, instructions : str
        In LLVM's notation; `instructions` are its features beyond those of `cpu`.
    vector_bytes : int
        The size of the vectors of kernels.
    loop_bytes : int
        The size of the vectors of fused loops; 0 if they compute one element at a time.
    abi : str
        The name of the calling convention, for targets that have several.
    widens : bool
        Whether fused loops with few instructions compute several registers at a time.
    has_libraries : bool
        Whether code for it can call functions of SciPy and other libraries.
    is_device : bool
        Whether each element of a fused loop is computed by a thread of its own.
    """

    name: str
    triple: str
    cpu: str
    instructions: str
    vector_bytes: int
    loop_bytes: int
    abi: str = ""
    has_libraries: bool = True
    widens: bool = True
    is_device: bool = False

    @property
    def key(self) -> str:
        """What generated code depends on, in the form of a list of features."""
        return f"{self.instructions},+{self.name}:{self.vector_bytes}:{self.loop_bytes}"


_FOREIGN: ContextVar[Processor | None] = ContextVar("processor", default=None)


def foreign() -> Processor | None:
    """The processor that code is generated for; None for this computer's, in this process."""
    return _FOREIGN.get()


def is_exported() -> bool:
    """Whether code is generated for files, in which it may be printed as C."""
    processor = _FOREIGN.get()
    return processor is not None and not processor.is_device


def is_for_device() -> bool:
    """Whether code is generated for a device, such as a graphics card."""
    processor = _FOREIGN.get()
    return processor is not None and processor.is_device


@contextmanager
def compiling_for(processor: Processor) -> Iterator[None]:
    """Generate code for another processor."""
    token = _FOREIGN.set(processor)
    try:
        yield
    finally:
        _FOREIGN.reset(token)


# The code generator emits each value once, and hoists loop-invariant code, so a tenth of LLVM's
# standard passes gives equally fast code in a fraction of the time.
_PASSES = (
    *("always_inliner", "sroa", "instruction_combine", "simplify_cfg"),
    *("dead_code_elimination", "global_dead_code_eliminate"),
)
# llvmlite does not allow several threads in LLVM's compiler at the same time.
_LOCK = COMPILER_LOCK = interrupt_safe_lock()
if hasattr(os, "register_at_fork"):
    # A fork waits until no thread is inside LLVM, whose state would be inconsistent in the child.
    os.register_at_fork(
        before=_LOCK.acquire, after_in_parent=_LOCK.release, after_in_child=_LOCK.release
    )


@functools.cache
def machine(quick: bool = False) -> Any:
    """The code generator for this processor; a quick one does not optimize."""
    return _new_machine(0 if quick else 2)


def _new_machine(opt_level: int) -> Any:
    with _LOCK:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        target = llvm.Target.from_default_triple()
        return target.create_target_machine(
            cpu=cpu(),
            features=_own_features(),
            opt=opt_level,
            reloc="pic",
            codemodel="default",
            jit=True,
        )


@functools.cache
def cpu() -> str:
    """LLVM's name of the processor."""
    with _LOCK:
        return str(llvm.get_host_cpu_name())


def features() -> str:
    """The features of the processor, in LLVM's notation."""
    other = foreign()
    return _own_features() if other is None else other.key


@functools.cache
def _own_features() -> str:
    with _LOCK:
        return str(llvm.get_host_cpu_features().flatten())


def has(feature: str) -> bool:
    """Whether the processor has a feature: "avx512f", "fma"."""
    return f"+{feature}" in features().split(",")


def vector_bytes() -> int:
    """The size of a vector register in bytes."""
    other = foreign()
    return _own_vector_bytes() if other is None else other.vector_bytes


def loop_bytes() -> int:
    """The size of the vectors of fused loops; 0 if they compute one element at a time."""
    other = foreign()
    return _own_vector_bytes() if other is None else other.loop_bytes


@functools.cache
def _own_vector_bytes() -> int:
    if has("avx512f") and has("avx512vl") and has("avx512dq") and has("avx512bw"):
        return 64
    return 32 if has("avx2") else 16


# The sections of an object file refer to each other by 32-bit offsets.  LLVM's default memory
# manager allocates them one by one, which in a process with much memory in use can place them too
# far apart and abort the process; llvmlite's memory manager allocates all at once.  But that one
# does not count the table of addresses of external functions, 8 bytes each, which LLVM appends to
# the data.  So each module has a page-aligned integer: the rest of its page and the next page have
# space for this table.
_PADDING = """@padding = internal global i64 0, align 4096
@llvm.used = appending global [1 x ptr] [ptr @padding], section "llvm.metadata"
"""
_MAX_EXTERNALS = 1000  # addresses that fit into this space
_LOADED = 1 << 18  # bytes beside the object file itself, at most


@functools.cache
def heading() -> str:
    """The first lines of a module: target triple, data layout, padding."""
    with _LOCK:
        target = machine()
        return (
            f'target triple = "{target.triple}"\n'
            f'target datalayout = "{target.target_data}"\n{_PADDING}'
        )


def optimized(text: str) -> Any:
    """A module parsed from its text, and optimized.

    Raises
    ------
    RuntimeError
        LLVM rejects the text: a bug in wengert.
    """
    with _LOCK:
        made = machine()
        module = llvm.parse_assembly(text)
        builder = llvm.create_pass_builder(made, llvm.create_pipeline_tuning_options())
        _passes().run(module, builder)
        return module


@functools.cache
def _passes() -> Any:
    """The pass manager, made once: llvmlite does not free its memory."""
    passes = llvm.create_new_module_pass_manager()
    for name in _PASSES:
        getattr(passes, f"add_{name}_pass")()
    return passes


def object_of(text: str, quick: bool = False) -> bytes:
    """The object file of a module.

    Parameters
    ----------
    quick : bool
        For cold code: compiles in an eighth of the time, and runs about half as fast.

    Raises
    ------
    BackendError
        LLVM generates wrong instructions (object_symbols.py).
    """
    check_memory(memory_of_text(text))
    with _LOCK:
        module = llvm.parse_assembly(text) if quick else optimized(text)
        try:
            return _image_of(module, quick)
        finally:
            module.close()  # under the lock: another thread may fork


def _image_of(module: Any, quick: bool) -> bytes:
    image = bytes(machine(quick).emit_object(module))
    if has("avx512f") and has_wrong_register(image):
        # Without level 2 instructions are chosen differently.
        image = bytes(machine(quick=True).emit_object(module))
        if has_wrong_register(image):
            raise BackendError(
                "LLVM generated an instruction that cannot address its register. Use "
                f'backend="interpret" for this function{at(user_line())}.'
            )
    return image


@functools.lru_cache(maxsize=256)
def coroutine_object(text: str) -> bytes:
    """The object file of a module with coroutines (``llvm.coro``), optimized little; cached."""
    check_memory(memory_of_text(text))
    with _LOCK:
        module = optimized(text)
        try:
            options = llvm.create_pipeline_tuning_options(speed_level=0)
            builder = llvm.create_pass_builder(machine(), options)
            builder.getModulePassManager().run(module, builder)  # splits coroutines
            return _image_of(module, quick=True)
        finally:
            module.close()


def assembly_of(text: str) -> str:
    """The assembly code of a module."""
    with _LOCK:
        return str(machine().emit_assembly(optimized(text)))


@functools.cache
def _half_conversions() -> bytes:
    """The object file of the float16 conversions."""
    return object_of(float16_text(heading()), quick=True)


def _not_supplied(names: Sequence[str]) -> str:
    return (
        f"the code that LLVM generates for this processor ({cpu()}) calls {', '.join(names)}, "
        f'which neither the process nor wengert defines. Use backend="interpret" for this '
        f"function{at(user_line())}."
    )


class Code:
    """Object files loaded into memory.

    Parameters
    ----------
    image : bytes, or sequence of bytes
        Object files made by `object_of`, which may call each other's functions.
    symbols : mapping from str to int
        Addresses of external functions; those of the C library need not be given.

    Raises
    ------
    BackendError
        They call a function that is not defined.
    MemoryError
        The system has no memory for them, or no more mappings.
    """

    def __init__(self, image: bytes | Sequence[bytes], symbols: Mapping[str, int]) -> None:
        with _LOCK:
            for name, address in symbols.items():
                llvm.add_symbol(name, address)
            empty = llvm.parse_assembly(heading())
            images = [image] if isinstance(image, bytes) else list(image)
            names = [symbols_of(one) for one in images]
            needed = set[str]().union(*(n for _, n in names)).difference(*(d for d, _ in names))
            if needed & SUPPLIED:
                images.append(_half_conversions())
                needed -= SUPPLIED
            # All sections in one piece if the addresses of all externals fit in the padding
            fits = all(is_elf(one) for one in images) and all(
                len(n) < _MAX_EXTERNALS for _, n in names
            )
            self._engine = llvm.create_mcjit_compiler(
                empty, _new_machine(0), use_lmm=True if fits else None
            )
            missing = sorted(n for n in needed if llvm.address_of_symbol(n) is None)
            if missing:
                raise BackendError(_not_supplied(missing))
            check_memory(sum(map(len, images)) + _LOADED, len(images))
            for one in images:
                self._engine.add_object_file(llvm.ObjectFileRef.from_data(one))
            self._engine.finalize_object()

    def address(self, name: str) -> int:
        """The address of a function."""
        with _LOCK:
            return int(self._engine.get_function_address(name))


SUPPLIED = frozenset({"__truncsfhf2", "__truncdfhf2", "__extendhfsf2", "__extendhfdf2"})


@functools.cache
def float16_text(heading: str) -> str:
    """The module of these functions.

    They use integers and float32 only, so none of them calls another one.
    """
    return f"{heading}\n{llvm_types.read(__file__)}"


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
