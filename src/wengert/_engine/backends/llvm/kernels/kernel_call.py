"""KernelCall, through which kernels emit their code; and the registry of kernels.

    ArrayPointer  the address, shape, strides and dtype of an operand or a result
    KernelCalls   the kernel calls of one program: `calls.write(...)` emits one
    KernelCall    the arguments of a kernel: arrays, lengths, scratch memory, external functions
    kernel        the decorator that registers one
    is_served     whether a node has a kernel

Each call is a separate function, `i64 @step3(ptr ..., i64 ...)`, which returns a status.  Identical
calls (of the same operation, parameters, shapes and dtypes) share a function, so a program that
unrolls a loop a thousand times compiles it once.  If a kernel fails, the function branches to its
single exit, where scratch memory is freed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, NamedTuple

from wengert._engine.core.node_properties import frozen, sizes_of
from wengert._engine.core.symbolic.dim import LOCAL, Dim, Length, Quotient, names_in

from ..ir.ir_builder import Function, Name, Section, word, write_task
from ..ir.llvm_types import Dtype, is_supported
from ..ir.scalar_language import Language
from ..runtime import library_symbols, runtime_library
from ..tuning import thresholds
from .index import KERNEL_MODULES, Kernel

UNROLLED = 4  # rows of small matrices up to which loops over their elements are unrolled


class ArrayPointer(NamedTuple):
    """The memory of an operand or a result.

    pointer : the address of its first element.
    shape, strides : numbers or symbolic sizes; strides count elements.
    dtype : of NumPy; its memory layout is that of `in_memory`.
    """

    pointer: Name
    shape: tuple[Length, ...]
    strides: tuple[Length, ...]
    dtype: Dtype


def contiguous(pointer: Name, shape: Sequence[Length], dtype: Dtype) -> ArrayPointer:
    """A C-contiguous array."""
    strides: list[Length] = []
    step: Length = 1
    for n in reversed(shape):
        strides.append(step)
        step = step * n
    return ArrayPointer(pointer, tuple(shape), tuple(reversed(strides)), dtype)


class KernelCalls:
    """The kernel calls of one program.

    Parameters
    ----------
    language : Language
        The scalar language of the module to which the functions are added.
    threads : int, optional
        The number of threads for a call; by default the global setting.

    Attributes
    ----------
    symbols : dict of str to int
        Addresses of the external functions that they call; `library_symbols.address_of` finds
        them by their names in another process.
    unrolled : list of str
        Functions whose code grows with the number of their operands.
    """

    def __init__(self, language: Language, threads: int | None = None) -> None:
        self.language, self.threads = language, threads
        self.symbols: dict[str, int] = {}
        self.unrolled: list[str] = []
        self._written: dict[Any, tuple[str, bool]] = {}

    def write(
        self,
        section: Section,
        name: str,
        params: Mapping[str, Any],
        operands: Sequence[ArrayPointer],
        results: Sequence[ArrayPointer],
        number: Callable[[Any], Name],
        **options: Any,
    ) -> Name:
        """Write the call of a kernel.

        Parameters
        ----------
        section : Section
            Where the call is emitted.
        name : str
            The name of the operation.
        params : mapping
            The parameters of the node.
        operands, results : sequence of ArrayPointer
            Results are C-contiguous and share no memory with the operands or each other.
        number : callable
            Returns the i64 of a symbolic size, `Dim({((name, 1),): 1})`, known in `section`.
        **options
            Passed to the kernel in addition to the node's parameters (`KernelCall.options`).

        Returns
        -------
        status : Name
            An i64 that is not 0 if the kernel failed; the constant "0" if it cannot fail.
        """
        arrays = (*operands, *results)
        key = (
            name,
            frozen(dict(params)),
            frozen(options),
            len(operands),
            tuple((a.shape, a.strides, a.dtype.str) for a in arrays),
        )
        named = set(names_in(n for a in arrays for n in a.shape + a.strides))
        named.update(n for n in sizes_of(dict(params)) if n.startswith(LOCAL))
        named.update(sizes_of(options))
        sizes = sorted(named)
        written = self._written.get(key)
        if written is None:
            written = self._write_function(name, params, options, len(operands), arrays, sizes)
            self._written[key] = written
        function, fails = written
        arguments = [f"ptr {a.pointer}" for a in arrays]
        arguments += [f"i64 {number(Dim({((n, 1),): 1}))}" for n in sizes]
        status = section.value(f"call i64 @{function}({', '.join(arguments)})")
        return status if fails else "0"

    def _write_function(
        self,
        name: str,
        params: Mapping[str, Any],
        options: Mapping[str, Any],
        count: int,
        arrays: Sequence[ArrayPointer],
        sizes: Sequence[str],
    ) -> tuple[str, bool]:
        """Write the function of a kernel; its name, and whether it can fail."""
        module = self.language.module
        title = f"step{len(self._written)}.{name}"
        arguments = [("ptr", f"x{i}") for i in range(len(arrays))]
        arguments += [("i64", f"n{i}") for i in range(len(sizes))]
        function = Function(module, title, arguments, "i64", "nounwind")
        local_arrays = [a._replace(pointer=f"%x{i}") for i, a in enumerate(arrays)]
        named = {n: f"%n{i}" for i, n in enumerate(sizes)}
        call = KernelCall(
            self, function, dict(params), local_arrays[:count], local_arrays[count:], named, options
        )
        entry = _kernel_of(name)
        assert entry is not None, name
        entry.write(call)
        call.close()
        if entry.unrolled:
            self.unrolled.append(title)
        return title, call.fails


class KernelCall:
    """The arguments of a kernel, and helpers to emit its code; created by `KernelCalls`.

    Attributes
    ----------
    section : Section
        The function's scalar code; loops may be opened in it.
    operands, results : tuple of ArrayPointer
    params : dict
        The parameters of the node.
    options : mapping
        Set by the schedule: ``alpha`` and ``beta`` of products, ``unused`` results.
    module, language
        Of the section.
    fails : bool
        Whether the kernel can fail.
    thread : (first, stride) or None
        Of a device: a thread computes every `stride`-th matrix of a batch from `first` on.
    batches : list of Length
        Of a device: the number of matrices of each loop over a batch.
    unrolled_rows : int
        The number of rows of matrices up to which loops over their elements are unrolled.
    """

    thread: tuple[Name, Name] | None = None
    unrolled_rows = UNROLLED

    def __init__(
        self,
        calls: KernelCalls,
        function: Function,
        params: dict[str, Any],
        operands: Sequence[ArrayPointer],
        results: Sequence[ArrayPointer],
        named: Mapping[str, Name],
        options: Mapping[str, Any],
    ) -> None:
        self.language, self.module = calls.language, calls.language.module
        self.params, self.options = params, options
        self.operands, self.results = tuple(operands), tuple(results)
        self.function = function
        self.fails = False
        self.batches: list[Length] = []
        self._calls, self._symbols = calls, calls.symbols
        self._named = named
        self._numbers: dict[Any, Name] = {}
        self._opening = function.body.inside()
        self._status = function.slot("i64")
        self._opening.write(f"store i64 0, ptr {self._status}")
        self._scratch_slots: list[Name] = []
        self._limits = function.body.inside()
        self._memory = function.body.inside()
        self._flops: Length = 0
        self._single_thread_flops = thresholds.blas_single_thread_flops
        self.section = function.body.inside()

    def number(self, length: Length | Name) -> Name:
        """The i64 of a length in terms of the sizes that occur in operands and results."""
        if not isinstance(length, Dim):
            return str(length)
        name = self._numbers.get(length)
        if name is None:
            name = self._numbers[length] = self._compute(length)
        return name

    def _compute(self, length: Dim) -> Name:
        """A polynomial in sizes, computed at the beginning of the function."""
        opening = self._opening
        total = ""
        for product, factor in length.terms.items():
            term = str(factor)
            for atom, power in product:
                if isinstance(atom, Quotient):
                    above, below = self.number(atom.above), self.number(atom.below)
                    value = opening.value(f"sdiv i64 {above}, {below}")
                else:
                    value = self._named[atom]
                for _ in range(power):
                    term = value if term == "1" else opening.value(f"mul i64 {term}, {value}")
            total = opening.value(f"add i64 {total}, {term}") if total else term
        return total

    def scratch(self, size: Length | Name) -> Name:
        """Allocate a number of bytes, which are freed at the end of the call.

        For a length they are allocated at the beginning, on the stack if they are few; for a
        computed i64 they are allocated here, which must not be in a loop.
        """
        if isinstance(size, int) and size <= thresholds.kernel_stack_bytes:
            return self.function.slot(f"[{max(size, 1)} x i8]", 64)
        section = self.section if isinstance(size, str) else self._memory
        known = (self.function.name, None if isinstance(size, str) else size)
        self.module.allocations.append(known)
        name, slot = size if isinstance(size, str) else self.number(size), self.function.slot("ptr")
        self._opening.write(f"store ptr null, ptr {slot}")
        self._scratch_slots.append(slot)
        allocate = self._of_runtime("wengert_alloc", "ptr", ["i64"])
        nonzero = section.value(f"or i64 {name}, 1")  # for 0 bytes it may return null
        pointer = section.value(f"call ptr {allocate}(i64 {nonzero})")
        section.write(f"store ptr {pointer}, ptr {slot}")
        self.fail_if(section.value(f"icmp eq ptr {pointer}, null"), 1, section)
        return pointer

    def fail_if(self, condition: Name, status: int = 1, section: Section | None = None) -> None:
        """Return with a status if a condition holds; `section` is by default that of the call."""
        section = section or self.section
        n = self.function.number()
        section.write(f"br i1 {condition}, label %fail{n}, label %go{n}")
        section.label(f"fail{n}")
        section.write(f"store i64 {status}, ptr {self._status}")
        section.write("br label %leave")
        section.label(f"go{n}")
        self.fails = True

    def external(self, name: str, address: int, result: str, arguments: Sequence[str]) -> str:
        """An external function, as ``@name``."""
        self._symbols[name] = address
        return self.module.declare(name, result, arguments, "nounwind")

    def _of_runtime(self, name: str, result: str, arguments: Sequence[str]) -> str:
        return self.external(name, runtime_library.symbols()[name], result, arguments)

    def in_parts(
        self,
        extent: Length,
        grain: int,
        write: Callable[[KernelCall, Name, Name], None],
        section: Section | None = None,
    ) -> None:
        """Divide a range among threads.

        Parameters
        ----------
        extent : Length
            The end of the range, which starts at 0.
        grain : int
            The minimum length of a part.
        write : callable
            ``write(call, start, stop)`` emits a part into another call, which has the same arrays
            and sizes, but not the scratch memory of this one.
        section : Section, optional
            Where the parts are called; by default the section of the call.
        """
        arguments = self._arguments()
        title = f"{self.function.name}.part"
        part = self._part(title, [("i64", "start"), ("i64", "stop")])
        write(part, "%start", "%stop")
        part.close()
        write_task(self.module, title, [kind for kind, _ in arguments])
        s = section or self.section
        frame = self.function.slot(f"[{len(arguments) + 1} x i64]", 8)
        for k, (kind, name) in enumerate([("i64", "0"), *arguments]):
            s.write(f"store {kind} {name}, ptr {word(s, frame, k)}")
        threads = self.threads(s)
        run = self._of_runtime("wengert_parallel", "void", ["ptr", "ptr", *["i64"] * 4])
        span = f"i64 0, i64 {self.number(extent)}, i64 {grain}, i64 {threads}"
        s.write(f"call void {run}(ptr @{title}.team, ptr {frame}, {span})")
        status = s.value(f"load i64, ptr {frame}")
        if part.fails:
            self.fail_if(s.value(f"icmp ne i64 {status}, 0"), 1, s)

    def cold(self, s: Section, write: Callable[[KernelCall], None]) -> None:
        """Emit code that rarely runs as an unoptimized function; `write` as in `in_parts`."""
        title = f"{self.function.name}.cold"
        part = self._part(title, (), "noinline optnone nounwind")
        write(part)
        part.close()
        self.module.cold.append(title)
        listed = ", ".join(f"{kind} {name}" for kind, name in self._arguments())
        status = s.value(f"call i64 @{title}({listed})")
        if part.fails:
            self.fail_if(s.value(f"icmp ne i64 {status}, 0"), 1, s)

    def _arguments(self) -> list[tuple[str, Name]]:
        """The arguments of the function: addresses and sizes."""
        arrays = (*self.operands, *self.results)
        sizes = [("i64", name) for name in self._named.values()]
        return [*(("ptr", a.pointer) for a in arrays), *sizes]

    def _part(
        self, title: str, more: Sequence[tuple[str, str]], attributes: str = "nounwind"
    ) -> KernelCall:
        """The call of a function with the same arguments, and more."""
        shared = [(kind, name[1:]) for kind, name in self._arguments()]
        function = Function(self.module, title, [*shared, *more], "i64", attributes)
        return KernelCall(
            *(self._calls, function, self.params, self.operands, self.results),
            *(self._named, self.options),
        )

    def close(self) -> None:
        """Finish the function, and add it to the module."""
        self.finish()
        self.module.add(self.function)

    def threads(self, s: Section) -> Name:
        """The number of threads that the call may use, an i64."""
        if self._calls.threads:
            return str(self._calls.threads)
        return s.value(f"call i64 {self._of_runtime('wengert_get_threads', 'i64', [])}()")

    def record_flops(self, flops: Length) -> None:
        """Record the approximate floating-point operations of a call of BLAS or LAPACK.

        Their sum decides whether the call uses several threads.
        """
        self._flops = self._flops + flops

    def limit_blas_threads(self) -> None:
        """Decide by the operations how many threads BLAS uses, even if they are few."""
        self._single_thread_flops = 0

    def _emit_limit(self) -> bool:
        """Emit the limit on BLAS threads, unless the work is so small that BLAS uses one."""
        if isinstance(self._flops, int) and self._flops < self._single_thread_flops:
            return False
        get_threads = self._of_runtime("wengert_get_threads", "i64", [])
        threads = self._limits.value(f"call i64 {get_threads}()")
        address = library_symbols.blas_symbols()["wengert_blas_enter"]
        enter = self.external("wengert_blas_enter", address, "void", ["i64", "i64"])
        flops = self.number(self._flops)
        self._limits.write(f"call void {enter}(i64 {flops}, i64 {threads})")
        return True

    def finish(self) -> None:
        """Write the exit of the function."""
        body = self.function.body
        body.block("leave")
        if self._emit_limit():
            address = library_symbols.blas_symbols()["wengert_blas_leave"]
            body.write(f"call void {self.external('wengert_blas_leave', address, 'void', [])}()")
        if self._scratch_slots:
            release = self._of_runtime("wengert_free", "void", ["ptr"])
            for slot in self._scratch_slots:
                pointer = body.value(f"load ptr, ptr {slot}")
                body.write(f"call void {release}(ptr {pointer})")
        status = body.value(f"load i64, ptr {self._status}")
        body.write(f"ret i64 {status}")


# ---- the registry ------------------------------------------------------------------------------


KERNELS: dict[str, Kernel] = {}


def kernel(
    name: str,
    *,
    strided: bool = False,
    serves: Callable[[Any], bool] = lambda node: True,
    skips_unused: bool = False,
    updates: Callable[[Mapping[str, Any]], bool] = lambda params: False,
    unrolled: bool = False,
    in_lanes: bool = False,
) -> Callable[[Callable[[KernelCall], None]], Callable[[KernelCall], None]]:
    """Register a function as the kernel of an operation (a decorator)."""

    def register(write: Callable[[KernelCall], None]) -> Callable[[KernelCall], None]:
        other = KERNELS[name].write.__module__ if name in KERNELS else write.__module__
        assert other == write.__module__, f"{name} has a kernel in {other}"
        KERNELS[name] = Kernel(write, strided, serves, skips_unused, updates, unrolled, in_lanes)
        return write

    return register


def _kernel_of(name: str) -> Kernel | None:
    """The kernel of an operation, if there is one."""
    if name not in KERNELS and name in KERNEL_MODULES:
        import_module(f".{KERNEL_MODULES[name]}", __package__)
    return KERNELS.get(name)


def is_served(node: Any) -> bool:
    """Whether there is a kernel for a node of a graph; without one it is a host callback."""
    entry = _kernel_of(node.op.name)
    if entry is None:
        return False
    specs = [*(a.spec for a in node.inputs)]
    specs += node.spec if isinstance(node.spec, tuple) else [node.spec]
    return all(s is not None and is_supported(s.dtype) for s in specs) and entry.serves(node)
