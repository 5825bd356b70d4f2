"""Small matrices on a device: each thread computes the matrices of a batch that are its own.

The code of one matrix is that of native code (backends/llvm/kernels, `blocks`), where a SIMD lane
has a matrix; here a thread has one, and there is one lane.  Systems, inverses, determinants,
Cholesky factors and their derivatives, triangular systems, eigenvalues of symmetric matrices, up to
eight rows.  A kernel that finds a pivot of the size of rounding errors sets the status; then the
library of the device computes the matrices, which refuses singular ones.

    MatrixKernel        the kernel of such an operation, and what it is called with
    matrix_kernel_of    the kernel of a call; None for larger matrices and other operations
    run_matrices        its results
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from wengert._engine.core.symbolic.dim import Length, is_open, names_in

from ..llvm.ir.ir_builder import Function, ModuleBuilder, Name, Section
from ..llvm.ir.scalar_language import Language
from ..llvm.kernels import KERNELS, ArrayPointer, KernelCall, KernelCalls, contiguous, is_served
from ..llvm.lowering.loop_ir import Expr, strided_view
from ..llvm.lowering.registry import specs_of
from .device import Device, Launch
from .kernel_codegen import DeviceKernel, UnsupportedKernel

IN_DOUBT = 2  # the status of a matrix for the library


@dataclass(frozen=True)
class MatrixKernel:
    """The kernel of an operation on small matrices.

    Attributes
    ----------
    kernel : DeviceKernel
        Its arguments are the addresses of operands and results, the sizes, and the status.
    results : tuple of Spec
    sizes : tuple of str
        Names of sizes.
    """

    kernel: DeviceKernel
    results: tuple[Any, ...]
    sizes: tuple[str, ...]


class ThreadCall(KernelCall):
    """The code of a kernel of native code as that of a thread."""

    unrolled_rows = 8

    def external(self, name: str, address: int, result: str, arguments: Sequence[str]) -> str:
        """A device has no functions of libraries."""
        raise UnsupportedKernel(name)

    def scratch(self, size: Length | Name) -> Name:
        """A device allocates no memory in kernels."""
        raise UnsupportedKernel("scratch")

    def in_parts(self, *_: Any, **__: Any) -> None:
        """The threads of a device divide batches only."""
        raise UnsupportedKernel("in_parts")

    def cold(self, s: Section, write: Any) -> None:
        """Code that rarely runs is a call on the host."""
        raise UnsupportedKernel("cold")


class _BatchCall(ThreadCall):
    """The code of a kernel of native code for a batch that threads share."""

    thread = ("%first", "%stride")

    def finish(self) -> None:
        """Write the exit of the function."""
        body = self.function.body
        body.block("leave")
        if self.fails:
            status = body.value(f"load i64, ptr {self._status}")
            with body.when(body.value(f"icmp ne i64 {status}, 0")) as failed:
                failed.write(f"store i64 {IN_DOUBT}, ptr %status")
        body.write("ret void")


def matrix_kernel_of(stage: Expr, name: str) -> MatrixKernel | None:
    """The kernel of a call, with operands in the memory of the expressions that it reads.

    Parameters
    ----------
    stage : Expr
        A call of an operation as a whole.
    """
    node = stage.node
    if not is_served(node):
        return None
    entry = KERNELS[node.op.name]
    specs = specs_of(node)
    shapes = [s.shape for s in (*specs, *stage.operands)]
    if not entry.in_lanes or any(is_open(n) for shape in shapes for n in shape):
        return None
    operands = [_operand(x, f"%x{k}") for k, x in enumerate(stage.operands)]
    count = len(operands)
    results = [contiguous(f"%x{count + k}", s.shape, s.dtype) for k, s in enumerate(specs)]
    try:
        kernel, sizes = _written(entry.write, node.params, operands, results, name)
    except UnsupportedKernel:
        return None
    return MatrixKernel(kernel, tuple(specs), sizes)


def _operand(x: Expr, pointer: Name) -> ArrayPointer:
    view = strided_view(x)
    if view is None:
        return contiguous(pointer, x.shape, x.dtype)
    return ArrayPointer(pointer, x.shape, view[2], x.dtype)


def _written(
    write: Any,
    params: Mapping[str, Any],
    operands: Sequence[ArrayPointer],
    results: Sequence[ArrayPointer],
    name: str,
) -> tuple[DeviceKernel, tuple[str, ...]]:
    module = ModuleBuilder()
    arrays = [*operands, *results]
    sizes = tuple(sorted(names_in(n for a in arrays for n in (*a.shape, *a.strides))))
    listed = [("ptr", a.pointer[1:]) for a in arrays]
    listed += [("i64", f"n{k}") for k in range(len(sizes))]
    listed += [("ptr", "status"), ("i64", "first"), ("i64", "stride")]
    function = Function(module, name, listed, "void", "#1", linkage="")
    named = {n: f"%n{k}" for k, n in enumerate(sizes)}
    calls = KernelCalls(Language(module))
    call = _BatchCall(calls, function, dict(params), operands, results, named, {})
    write(call)
    if len(call.batches) != 1:
        raise UnsupportedKernel(name)
    call.close()
    if not call.fails:
        module.parts[name] = module.parts[name].replace("ptr %status, i64 %first", "i64 %first", 1)
    for part, text in module.parts.items():
        if text.startswith("declare") and not part.startswith("llvm."):
            raise UnsupportedKernel(part)
    return DeviceKernel(name, dict(module.parts), (), call.batches[0], call.fails), sizes


# ---- running -------------------------------------------------------------------------------------


class MatrixRun(Protocol):
    """The state of the run of the program that the operation is part of.

    Attributes
    ----------
    device : Device
    sizes : dict
        The value of every named size.
    status : array
        Where a kernel says that it has failed.
    """

    device: Device
    sizes: dict[str, int]

    @property
    def status(self) -> Any:
        """Where a kernel says that it has failed."""

    def length(self, length: Length) -> int:
        """The number of a length."""

    def shape(self, shape: Sequence[Length]) -> tuple[int, ...]:
        """The numbers of a shape."""


def run_matrices(
    running: MatrixRun, made: MatrixKernel, launch: Launch, operands: Sequence[Any]
) -> list[Any]:
    """The results."""
    device = running.device
    given = [device.put(x) for x in operands]
    results = [device.empty(running.shape(s.shape), s.dtype) for s in made.results]
    sizes = [np.int64(running.sizes[n]) for n in made.sizes]
    matrices = running.length(made.kernel.elements)
    if matrices:
        status = [running.status] * made.kernel.may_fail
        launch([*given, *results, *sizes, *status], matrices)
    return results
