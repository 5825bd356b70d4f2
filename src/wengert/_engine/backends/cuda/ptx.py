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

from wengert._engine.backends.llvm.ir.execution_engine import Processor
from wengert.errors import BackendError, at, user_line

from ..llvm.export.object_code import assembly_code
from ..llvm.ir.ir_builder import ModuleBuilder
from .block_threads import ARGUMENTS, BLOCK_BARRIER, SHUFFLE, WARP_BARRIER
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
# What kernels of threads that work together call; sync is by the mask of a warp's threads.
_SUPPLIED = {
    "llvm.nvvm.barrier0": "declare void @llvm.nvvm.barrier0()",
    "llvm.nvvm.bar.warp.sync": "declare void @llvm.nvvm.bar.warp.sync(i32)",
    "llvm.nvvm.shfl.sync.idx.i32": "declare i32 @llvm.nvvm.shfl.sync.idx.i32(i32, i32, i32, i32)",
    BLOCK_BARRIER: f"""define internal void @{BLOCK_BARRIER}() alwaysinline convergent {{
  call void @llvm.nvvm.barrier0()
  ret void
}}""",
    WARP_BARRIER: f"""define internal void @{WARP_BARRIER}(i64 %mask) alwaysinline convergent {{
  %m = trunc i64 %mask to i32
  call void @llvm.nvvm.bar.warp.sync(i32 %m)
  ret void
}}""",
    f"{SHUFFLE}32": f"""define internal i32 @{SHUFFLE}32(i32 %x, i64 %source, i64 %mask) """
    """alwaysinline convergent {
  %m = trunc i64 %mask to i32
  %k = trunc i64 %source to i32
  %y = call i32 @llvm.nvvm.shfl.sync.idx.i32(i32 %m, i32 %x, i32 %k, i32 31)
  ret i32 %y
}""",
    f"{SHUFFLE}64": f"""define internal i64 @{SHUFFLE}64(i64 %x, i64 %source, i64 %mask) """
    f"""alwaysinline convergent {{
  %low = trunc i64 %x to i32
  %above = lshr i64 %x, 32
  %high = trunc i64 %above to i32
  %a = call i32 @{SHUFFLE}32(i32 %low, i64 %source, i64 %mask)
  %b = call i32 @{SHUFFLE}32(i32 %high, i64 %source, i64 %mask)
  %c = zext i32 %a to i64
  %d = zext i32 %b to i64
  %e = shl i64 %d, 32
  %y = or i64 %c, %e
  ret i64 %y
}}""",
    "shared": "@shared = external addrspace(3) global [0 x i8], align 16",
}
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
        if kernel.is_by_blocks:
            module.include(_SUPPLIED)
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
    ).replace(") #1 {", ") alwaysinline convergent {", 1)


def _started(module: ModuleBuilder, kernel: DeviceKernel) -> str:
    """The function that the device starts."""
    match = _DEFINITION.match(kernel.text[kernel.name])
    assert match is not None, kernel.name
    own = len(ARGUMENTS) if kernel.is_by_blocks else 2
    arguments, more = match[2].split(", ")[:-own], match[2].split(", ")[-own:]
    given = ", ".join([*arguments, *more])
    lines = []
    if kernel.is_by_blocks:
        lines.append("  %shared = addrspacecast ptr addrspace(3) @shared to ptr")
    for name, register in _REGISTERS.items():
        callee = module.declare(f"llvm.nvvm.read.ptx.sreg.{register}", "i32", [])
        lines.append(f"  %{name}.32 = call i32 {callee}()")
        lines.append(f"  %{name} = zext i32 %{name}.32 to i64")
    lines += [
        "  %block.first = mul i64 %ctaid, %ntid",
        "  %first = add i64 %block.first, %tid",
        "  %stride = mul i64 %nctaid, %ntid",
        f"  call void @{kernel.name}_thread({given})",
        "  ret void",
    ]
    opening = f"define ptx_kernel void @{kernel.name}({', '.join(arguments)}) convergent {{"
    return "\n".join([opening, "entry:", *lines, "}"])
