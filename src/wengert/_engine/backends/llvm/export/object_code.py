"""LLVM IR as an object file or assembly for a processor.

module_text      the module of some functions
object_code      its object file
assembly_code    the assembly of definitions, for processors without object files

Functions of the C library that code for targets without one needs (object_code.ll).

WebAssembly has no instruction for a * b + c with one rounding, which the vector functions use.
Between numbers that are not subnormal, `fma` here is exact: the product and the sums are computed
with their errors, and the sum of the errors is rounded to odd (Boldo and Melquiond, 2008).
Results below 2.2e-308 are rounded twice.

    c_library    fma, fmaf, memcpy, memset, and the product of 128-bit integers
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import llvmlite.binding as llvm

from wengert.errors import BackendError

from ..ir.execution_engine import COMPILER_LOCK, Processor
from ..ir.ir_builder import ModuleBuilder
from ..ir.llvm_types import functions
from ..ir.object_symbols import has_wrong_register
from .entry_points import entry_parts
from .exported import Exported
from .workspace import RUNTIME, with_memory

_PASSES = (
    *("always_inliner", "sroa", "instruction_combine", "simplify_cfg"),
    *("dead_code_elimination", "global_dead_code_eliminate"),
)


def merged(functions: Sequence[Exported]) -> dict[str, str]:
    """The parts of a module with some functions, and the functions that C calls."""
    parts: dict[str, str] = {}
    symbols: dict[str, str] = {}
    for made in functions:
        for name, text in made.parts.items():
            assert parts.get(name, text) == text, name
            parts[name] = text
        symbols.update(made.linked)
    for name, symbol in symbols.items():
        parts = {k: t.replace(f"@{name}(", f"@{symbol}(") for k, t in parts.items()}
        parts[symbol] = parts.pop(name)
    runtime = {n: t for n, t in RUNTIME.items() if n in parts}
    own, allocating = with_memory({n: t for n, t in parts.items() if n not in runtime})
    for made in functions:
        own.update(entry_parts(made, made.kernel in allocating))
    return {**runtime, **own}


def module_text(functions: Sequence[Exported], processor: Processor) -> str:
    """The module of some functions, in LLVM IR.

    Raises
    ------
    BackendError
        LLVM does not know the target.
    """
    module = ModuleBuilder()
    module.include(merged(functions))
    if "wasm" in processor.triple:
        module.include(c_library())
    return module.text(_heading(processor))


def _heading(processor: Processor) -> str:
    with COMPILER_LOCK:
        data = _machine(processor).target_data
    return f'target triple = "{processor.triple}"\ntarget datalayout = "{data}"\n'


def assembly_code(parts: Mapping[str, str], processor: Processor) -> str:
    """The assembly of definitions, by name."""
    module = ModuleBuilder()
    module.include(parts)
    text = module.text(_heading(processor))
    with COMPILER_LOCK:
        machine = _machine(processor)
        parsed = llvm.parse_assembly(text)
        try:
            # Numbers passed by value are read through addresses that are in a table: two rounds.
            for _ in range(2):
                _optimize(parsed, machine)
            return str(machine.emit_assembly(parsed))
        finally:
            parsed.close()


def _optimize(module: Any, machine: Any) -> None:
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options())
    passes = llvm.create_new_module_pass_manager()
    for name in _PASSES:
        getattr(passes, f"add_{name}_pass")()
    passes.run(module, builder)


def object_code(text: str, processor: Processor) -> bytes:
    """The object file of a module.

    Raises
    ------
    BackendError
        LLVM generates wrong instructions (ir/object_symbols.py).
    """
    with COMPILER_LOCK:
        machine = _machine(processor)
        module = llvm.parse_assembly(text)
        try:
            _optimize(module, machine)
            image = bytes(machine.emit_object(module))
        finally:
            module.close()
    if "x86_64" in processor.triple and processor.vector_bytes == 64 and has_wrong_register(image):
        raise BackendError(
            "LLVM generated an instruction that cannot address its register. Export for the target "
            "'x86-64-v3'."
        )
    return image


def _machine(processor: Processor) -> Any:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    try:
        target = llvm.Target.from_triple(processor.triple)
    except RuntimeError as error:
        raise BackendError(
            f"LLVM cannot generate code for {processor.triple!r} ({error}). Use another target."
        ) from error
    return target.create_target_machine(
        cpu=processor.cpu,
        features=processor.instructions,
        opt=2,
        reloc="default" if "wasm" in processor.triple else "pic",
        codemodel="default",
        abiname=processor.abi,
    )


def c_library() -> dict[str, str]:
    """The functions, by name."""
    return functions(__file__)
