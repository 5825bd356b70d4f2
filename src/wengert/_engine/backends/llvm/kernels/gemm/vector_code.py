"""Functions that compute with vectors, as LLVM IR: addresses, loads and stores of their elements.

    VectorCode    a module whose functions compute with vectors of one dtype

It is the base of the modules of products whose functions do not depend on sizes: blocked products
(packing.py, blocked_gemm.py) and streamed ones (streamed_gemm.py).
"""

from __future__ import annotations

from ...ir import execution_engine, masked_memory
from ...ir.ir_builder import Function, ModuleBuilder, Name, Section
from ...ir.llvm_types import Dtype, in_memory, of_width, suffix
from ..loop_helpers import offset


class VectorCode:
    """A module whose functions compute with vectors of one dtype.

    Attributes
    ----------
    kind, vector : str
        LLVM's types of an element and of a vector.
    width : int
        The number of elements of a vector.
    """

    def __init__(self, module: ModuleBuilder, dtype: Dtype) -> None:
        self.module, self.dtype, self.kind = module, dtype, in_memory(dtype)
        self.width = execution_engine.vector_bytes() // dtype.itemsize
        self.vector = of_width(self.kind, self.width)

    def function(
        self, name: str, arguments: str, result: str = "void", linkage: str = "internal "
    ) -> Function:
        """A function; arguments are written "i64 m, ptr a"."""
        pairs = [x.split() for x in arguments.split(", ")]
        listed = [(kind.replace("number", self.kind), x) for kind, x in pairs]
        return Function(self.module, name, listed, result, "noinline nounwind #1", linkage)

    def close(self, function: Function) -> None:
        """Finish a function, and add it to the module."""
        function.body.write("ret void")
        self.module.add(function)

    def at(self, s: Section, pointer: Name, *terms: tuple[Name, Name]) -> Name:
        """The address of an element, for pairs of an index and a stride."""
        total = "0"
        for index, stride in terms:
            total = s.plus(total, s.times(index, stride))
        return offset(s, pointer, total, self.dtype)

    def place(self, s: Section, row: Name, v: int) -> Name:
        """The address of a vector of a row."""
        return offset(s, row, str(v * self.width), self.dtype)

    def store(self, s: Section, value: Name, row: Name, v: int) -> None:
        """Store a vector of a row."""
        place = self.place(s, row, v)
        s.write(f"store {self.vector} {value}, ptr {place}, align {self.dtype.itemsize}")

    def masks(self, s: Section, columns: Name, count: int) -> list[Name]:
        """For each of some vectors of a row, which elements are before a column."""
        counts = of_width("i32", self.width)
        narrow = s.value(f"trunc i64 {columns} to i32")
        first = s.value(f"insertelement {counts} poison, i32 {narrow}, i64 0")
        zeros = f"{counts} zeroinitializer"
        limit = s.value(f"shufflevector {counts} {first}, {counts} poison, {zeros}")
        masks = []
        for v in range(count):
            lanes = ", ".join(f"i32 {v * self.width + k}" for k in range(self.width))
            masks.append(s.value(f"icmp slt {counts} <{lanes}>, {limit}"))
        return masks

    def masked_load(self, s: Section, row: Name, v: int, mask: Name) -> Name:
        """Load the elements of a vector of a row that a mask selects; others are 0."""
        place, align = self.place(s, row, v), self.dtype.itemsize
        return masked_memory.load(self.module, s, self.kind, self.width, place, align, mask)

    def masked_store(self, s: Section, value: Name, row: Name, v: int, mask: Name) -> None:
        """Store the elements of a vector of a row that a mask selects."""
        place, align = self.place(s, row, v), self.dtype.itemsize
        masked_memory.store(self.module, s, self.kind, self.width, value, place, align, mask)

    def load(self, s: Section, row: Name, v: int) -> Name:
        """Load a vector of a row."""
        place = self.place(s, row, v)
        return s.value(f"load {self.vector}, ptr {place}, align {self.dtype.itemsize}")

    def broadcast(self, s: Section, element: Name) -> Name:
        """A vector of one element."""
        vector, zeros = self.vector, of_width("i32", self.width)
        first = s.value(f"insertelement {vector} poison, {self.kind} {element}, i64 0")
        return s.value(f"shufflevector {vector} {first}, {vector} poison, {zeros} zeroinitializer")

    def fma(self, s: Section, x: Name, y: Name, z: Name) -> Name:
        """x * y + z, rounded once."""
        name = f"llvm.fma{suffix(self.kind, self.width)}"
        callee = self.module.declare(name, self.vector, [self.vector] * 3)
        return s.value(
            f"call {self.vector} {callee}({', '.join(f'{self.vector} {w}' for w in (x, y, z))})"
        )
