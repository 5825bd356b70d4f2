"""C functions that fill the frame of a program on the stack, and run its kernel.

    FrameBuilder    what the forms of c_pointers.py and vector_callbacks.py have in common

The builders derived from it write the body: where each input and output is, checks, and the result.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..ir.ir_builder import ModuleBuilder, Name
from ..ir.llvm_types import in_memory
from .ipopt_callbacks import CallbackBuilder
from .ports import CallInterface, Port


class FrameBuilder(CallbackBuilder):
    """Builds a C function that runs a program.

    Parameters
    ----------
    kernel : int
        The address of the program's function.
    arguments : sequence of (str, str)
        LLVM types and names of the arguments.
    result : str
        The LLVM type of the result.
    """

    def __init__(
        self,
        module: ModuleBuilder,
        program: CallInterface,
        kernel: int,
        arguments: Sequence[tuple[str, str]],
        result: str,
    ) -> None:
        super().__init__(module, "pointer", arguments, result)
        self._program, self._kernel, self._result = program, kernel, result
        self._frame = self.function.slot(f"[{max(program.slots, 1)} x i64]", 8)
        for slot, array in program.constants:
            self._put(slot, str(array.ctypes.data), "i64")

    def _put(self, slot: int, value: Name, kind: str) -> None:
        self.store(kind, value, self._frame, 8 * slot)

    def _cell(self, port: Port, value: Name) -> Name:
        """A stack slot with a value in the dtype of a port."""
        cell = self.function.slot("[16 x i8]", 16)
        self.store(in_memory(port.spec.dtype), value, cell)
        return cell

    def check_address(self, place: Name, alignment: int = 8) -> None:
        """Check that an address is not null, and aligned."""
        number = self.value(f"ptrtoint ptr {place} to i64")
        self.check(self.value(f"icmp ne i64 {number}, 0"))
        if alignment > 1:
            rest = self.value(f"and i64 {number}, {alignment - 1}")
            self.check(self.same(rest, "0", "i64"))

    def _run(self) -> Name:
        kernel = f"inttoptr (i64 {self._kernel} to ptr)"
        self.branch_on_checks()
        return self.value(f"call i64 {kernel}(ptr {self._frame})")

    def _contiguous(self, port: Port) -> None:
        """Set the strides of C-contiguous data if the port takes strides."""
        if port.strided:
            step: Any = port.spec.dtype.itemsize
            for axis in range(port.spec.ndim - 1, -1, -1):
                self._put(port.slot + 1 + axis, self.lengths.number(step), "i64")
                step = step * port.spec.shape[axis]

    def _check_requirements(self) -> None:
        """Check the conditions on the sizes, which are known, and put them into the frame."""
        program = self._program
        for requirement in program.requirements:
            relation = "eq" if requirement.equal else "sge"
            value = self.lengths.number(requirement.length)
            self.check(self.value(f"icmp {relation} i64 {value}, 0"))
        for size, slot in zip(program.sizes, program.size_slots, strict=True):
            self._put(slot, self.lengths.bound[size], "i64")

    def _return_on_miss(self, value: str) -> None:
        """The block for failed checks, the last one."""
        self.label("miss")
        self.write(f"ret {value}")
        self.module.add(self.function)
