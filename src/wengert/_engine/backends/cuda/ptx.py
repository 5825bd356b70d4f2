"""PTX: kernels as the assembly of NVIDIA's virtual machine.

A kernel is started with the number of its first element and of all threads, which here are computed
from the special registers of a thread (PTX ISA, section "Special Registers").

    NVPTX            the processor, as code generation sees it
    ptx_of           the PTX of some kernels
    ARCHITECTURES    those that it is written for
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from wengert.errors import BackendError, at, user_line

from ..llvm.export.object_code import assembly_code
from ..llvm.ir.ir_builder import ModuleBuilder
from ..llvm.ir.processors import Processor
from .kernel_codegen import DeviceKernel

# NVIDIA's virtual machine. The width of vectors matters to kernels of native code only: kernels of
# a device compute one element at a time.
NVPTX = Processor(
    *("nvptx64", "nvptx64-nvidia-cuda", "sm_70", "+ptx64", 16, 0),
    has_libraries=False,
    is_device=True,
)
# Versions of the instruction set, by compute capability; later cards take the code of earlier ones.
ARCHITECTURES = {70: "+ptx64", 75: "+ptx64", 80: "+ptx70", 90: "+ptx78"}
_DEFINITION = re.compile(r"define void @([-\w.]+)\((.*)\) #1 \{")
_INTERNAL = re.compile(r"(define internal void @\S+\(.*\)) nounwind #1 \{")
_REGISTERS = {"tid": "tid.x", "ntid": "ntid.x", "ctaid": "ctaid.x", "nctaid": "nctaid.x"}


def ptx_of(kernels: Sequence[DeviceKernel], capability: int = 70) -> str:
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
        for part in kernel.text:
            if part.startswith(f"{kernel.name}_elements"):
                module.parts[part] = _INTERNAL.sub(r"\1 nounwind alwaysinline {", kernel.text[part])
        module.parts[f"{kernel.name}_thread"] = _internal(kernel)
        module.parts[kernel.name] = _started(module, kernel)
    processor = replace(NVPTX, cpu=f"sm_{architecture}", instructions=ARCHITECTURES[architecture])
    return assembly_code(module.parts, processor)


def _internal(kernel: DeviceKernel) -> str:
    """The function of one thread, which is inlined."""
    text = kernel.text[kernel.name]
    return text.replace(
        f"define void @{kernel.name}(", f"define internal void @{kernel.name}_thread("
    ).replace(") #1 {", ") alwaysinline {", 1)


def _started(module: ModuleBuilder, kernel: DeviceKernel) -> str:
    """The function that the device starts."""
    match = _DEFINITION.match(kernel.text[kernel.name])
    assert match is not None, kernel.name
    arguments = match[2].split(", ")[:-2]
    given = ", ".join([*arguments, "i64 %first", "i64 %stride"])
    lines = []
    for name, register in _REGISTERS.items():
        callee = module.declare(f"llvm.nvvm.read.ptx.sreg.{register}", "i32", [])
        lines.append(f"  %{name}.32 = call i32 {callee}()")
        lines.append(f"  %{name} = zext i32 %{name}.32 to i64")
    lines += [
        "  %before = mul i64 %ctaid, %ntid",
        "  %first = add i64 %before, %tid",
        "  %stride = mul i64 %nctaid, %ntid",
        f"  call void @{kernel.name}_thread({given})",
        "  ret void",
    ]
    opening = f"define ptx_kernel void @{kernel.name}({', '.join(arguments)}) {{"
    return "\n".join([opening, "entry:", *lines, "}"])
