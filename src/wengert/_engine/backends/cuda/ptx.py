"""PTX: kernels as the assembly of NVIDIA's virtual machine.

A kernel is started with the number of its first element and of all threads, which here are computed
from the special registers of a thread (PTX ISA, section "Special Registers").

    ptx_of           the PTX of some kernels
    ARCHITECTURES    those that it is written for
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import llvmlite.binding as llvm

from wengert.errors import BackendError, at, user_line

from ..llvm.ir.execution_engine import COMPILER_LOCK
from ..llvm.ir.ir_builder import ModuleBuilder
from .kernel_codegen import Kernel

TRIPLE = "nvptx64-nvidia-cuda"
# Versions of the instruction set, by compute capability; later cards take the code of earlier ones.
ARCHITECTURES = {70: "+ptx64", 75: "+ptx64", 80: "+ptx70", 90: "+ptx78"}
_PASSES = (
    *("always_inliner", "sroa", "instruction_combine", "simplify_cfg", "sroa"),
    *("dead_code_elimination", "global_dead_code_eliminate"),
)
_DEFINITION = re.compile(r"define void @([-\w.]+)\((.*)\) #1 \{")
_REGISTERS = {"tid": "tid.x", "ntid": "ntid.x", "ctaid": "ctaid.x", "nctaid": "nctaid.x"}


def ptx_of(kernels: Sequence[Kernel], capability: int = 70) -> str:
    """The PTX of some kernels.

    Parameters
    ----------
    capability : int
        The compute capability of the device, ten times its number: 90 for 9.0.

    Raises
    ------
    BackendError
        The device is older than 7.0.
    """
    known = [n for n in ARCHITECTURES if n <= capability]
    if not known:
        raise BackendError(
            f"this graphics card has compute capability {capability / 10}, and kernels need 7.0 "
            f"(Volta) or later. Use backend='llvm'{at(user_line())}."
        )
    architecture = max(known)
    module = ModuleBuilder()
    for kernel in kernels:
        module.include({k: v for k, v in kernel.text.items() if k != kernel.name})
        elements = f"{kernel.name}_elements"
        module.parts[elements] = module.parts[elements].replace(
            ") nounwind #1 {", ") nounwind alwaysinline {", 1
        )
        module.parts[f"{kernel.name}_thread"] = _internal(kernel)
        module.parts[kernel.name] = _started(module, kernel)
    with COMPILER_LOCK:
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
        machine = llvm.Target.from_triple(TRIPLE).create_target_machine(
            cpu=f"sm_{architecture}", features=ARCHITECTURES[architecture], opt=3, reloc="default", codemodel="default"
        )
        heading = f'target triple = "{TRIPLE}"\ntarget datalayout = "{machine.target_data}"\n'
        text = module.text(heading).replace(
            '"min-legal-vector-width"="512" "prefer-vector-width"="512"', ""
        )
        parsed = llvm.parse_assembly(text)
        try:
            builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options())
            passes = llvm.create_new_module_pass_manager()
            for name in _PASSES:
                getattr(passes, f"add_{name}_pass")()
            passes.run(parsed, builder)
            return str(machine.emit_assembly(parsed))
        finally:
            parsed.close()


def _internal(kernel: Kernel) -> str:
    """The function of one thread, which is inlined."""
    text = kernel.text[kernel.name]
    return text.replace(f"define void @{kernel.name}(", f"define internal void @{kernel.name}_thread(").replace(
        ") #1 {", ") alwaysinline {", 1
    )


def _started(module: ModuleBuilder, kernel: Kernel) -> str:
    """The function that the device starts."""
    match = _DEFINITION.match(kernel.text[kernel.name])
    assert match is not None, kernel.name
    arguments = match[2].split(", ")[:-2]
    lines = []
    for name, register in _REGISTERS.items():
        callee = module.declare(f"llvm.nvvm.read.ptx.sreg.{register}", "i32", [])
        lines.append(f"  %{name}.32 = call i32 {callee}()")
        lines.append(f"  %{name} = zext i32 %{name}.32 to i64")
    lines += [
        "  %before = mul i64 %ctaid, %ntid",
        "  %first = add i64 %before, %tid",
        "  %stride = mul i64 %nctaid, %ntid",
        f"  call void @{kernel.name}_thread({', '.join([*arguments, 'i64 %first', 'i64 %stride'])})",
        "  ret void",
    ]
    opening = f"define ptx_kernel void @{kernel.name}({', '.join(arguments)}) {{"
    return "\n".join([opening, "entry:", *lines, "}"])
