"""KernelCall: the call of a kernel, as its code is emitted; and the registry of kernels.

    ArrayPointer  the address, shape, strides and dtype of an operand or a result
    KernelCalls   the kernel calls of one program: `calls.write(...)` emits one
    KernelCall    the arguments of a kernel: arrays, lengths, scratch memory, external functions
    kernel        the decorator that registers one
    is_served     whether a node has a kernel

Each call is a separate function, `i64 @step3(ptr ..., i64 ...)`, which returns a status.  Calls
that are identical (operation, parameters, shapes and dtypes) share it, so a program that unrolls a
loop a thousand times compiles it once.  If a kernel fails, the function branches to its one exit,
where scratch memory is freed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, NamedTuple

from wengert._engine.core.static_params import frozen, sizes_of
from wengert._engine.core.symbolic.dim import LOCAL, Dim, Length, Quotient, names_in

from ..ir.ir_builder import Function, Name, Section
from ..ir.llvm_types import Dtype, is_supported
from ..ir.scalar_language import Language
from ..runtime import blas_threads, runtime_library
from ..tuning import thresholds
from .index import KERNEL_MODULES
from .parallel_tasks import called_by_team, word


class ArrayPointer(NamedTuple):
    """The memory of an operand or a result.

    pointer : the name of the address of its first element.
    shape, strides : numbers or symbolic sizes; strides count elements.
    dtype : of NumPy; its memory layout is that of `in_memory`.
    """

    pointer: Name
    shape: tuple[Length, ...]
    strides: tuple[Length, ...]
    dtype: Dtype


def contiguous(pointer: Name, shape: Sequence[Length], dtype: Dtype) -> ArrayPointer:
    """An array whose elements lie in order."""
    strides: list[Length] = []
    step: Length = 1
    for n in reversed(shape):
        strides.append(step)
        step = step * n
    return ArrayPointer(pointer, tuple(shape), tuple(reversed(strides)), dtype)


class KernelCalls:
    """The steps of one program.

    Parameters
    ----------
    language : Language
        Of the module to which the functions are added.

    threads : int, optional
        The number of threads for a call; by default the global setting.

    Attributes
    ----------
    symbols : dict of str to int
        Addresses of the external functions that they call; `pointers.address_of` finds them
        again by their names in another process.
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
            Where the step is taken.
        name : str
            Of the operation.
        params : mapping
            Of the node.
        operands, results : sequence of Array
            Results are C-contiguous and share no memory with the operands or each other.
        number : callable
            Returns the i64 of a symbolic size, `Dim({((name, 1),): 1})`, known in `section`.
        **options
            Passed to the kernel beside the node's parameters (`Call.options`).

        Returns
        -------
        status : Name
            An i64 that is not 0 where the step failed; the constant "0" if it cannot.
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
        sizes = sorted(named)
        found = self._written.get(key)
        if found is None:
            found = self._made(name, params, options, len(operands), arrays, sizes)
            self._written[key] = found
        function, fails = found
        given = [f"ptr {a.pointer}" for a in arrays]
        given += [f"i64 {number(Dim({((n, 1),): 1}))}" for n in sizes]
        status = section.value(f"call i64 @{function}({', '.join(given)})")
        return status if fails else "0"

    def _made(
        self,
        name: str,
        params: Mapping[str, Any],
        options: Mapping[str, Any],
        count: int,
        arrays: Sequence[ArrayPointer],
        sizes: Sequence[str],
    ) -> tuple[str, bool]:
        """A new function of the module, and whether it can fail."""
        module = self.language.module
        title = f"step{len(self._written)}.{name}"
        arguments = [("ptr", f"x{i}") for i in range(len(arrays))]
        arguments += [("i64", f"n{i}") for i in range(len(sizes))]
        function = Function(module, title, arguments, "i64", "nounwind")
        inside = [a._replace(pointer=f"%x{i}") for i, a in enumerate(arrays)]
        named = {n: f"%n{i}" for i, n in enumerate(sizes)}
        call = KernelCall(
            self, function, dict(params), inside[:count], inside[count:], named, options
        )
        known = _kernel_of(name)
        assert known is not None, name
        known.write(call)
        call.close()
        if known.unrolled:
            self.unrolled.append(title)
        return title, call.fails


class KernelCall:
    """The arguments of a kernel, and helpers to emit its code; made by `KernelCalls`.

    Attributes
    ----------
    section : Section
        The function's scalar code; loops may be opened in it.
    operands, results : tuple of Array
    params : dict
        The parameters of the node.
    options : mapping
        Set by the schedule: ``alpha`` and ``beta`` of products, ``unused`` results.
    module, language
        To which the section belongs.
    fails : bool
        Whether the kernel can fail.
    """

    def __init__(
        self,
        steps: KernelCalls,
        function: Function,
        params: dict[str, Any],
        operands: Sequence[ArrayPointer],
        results: Sequence[ArrayPointer],
        named: Mapping[str, Name],
        options: Mapping[str, Any],
    ) -> None:
        self.language, self.module = steps.language, steps.language.module
        self.params, self.options = params, options
        self.operands, self.results = tuple(operands), tuple(results)
        self.function = function
        self.fails = False
        self._steps, self._symbols = steps, steps.symbols
        self._named = named
        self._numbers: dict[Any, Name] = {}
        self._opening = function.body.inside()
        self._status = function.slot("i64")
        self._opening.write(f"store i64 0, ptr {self._status}")
        self._held: list[Name] = []
        self._limits = function.body.inside()
        self._memory = function.body.inside()
        self._flops: Length = 0
        self.section = function.body.inside()

    def number(self, length: Length) -> Name:
        """The i64 of any length made of the sizes that occur in operands and results."""
        if not isinstance(length, Dim):
            return str(length)
        found = self._numbers.get(length)
        if found is None:
            found = self._numbers[length] = self._computed(length)
        return found

    def _computed(self, length: Dim) -> Name:
        """A polynomial of sizes, computed before anything else."""
        opening = self._opening
        total = ""
        for product, factor in length.terms.items():
            term = str(factor)
            for atom, power in product:
                if isinstance(atom, Quotient):
                    above, below = self.number(atom.above), self.number(atom.below)
                    one = opening.value(f"sdiv i64 {above}, {below}")
                else:
                    one = self._named[atom]
                for _ in range(power):
                    term = one if term == "1" else opening.value(f"mul i64 {term}, {one}")
            total = opening.value(f"add i64 {total}, {term}") if total else term
        return total

    def scratch(self, size: Length | Name) -> Name:
        """A number of bytes of memory until the end of the call.

        For a length it is allocated at the beginning, on the stack if it is small; for an i64 that
        was computed it is allocated here, which must not be in a loop.
        """
        if isinstance(size, int) and size <= thresholds.kernel_stack_bytes:
            return self.function.slot(f"[{max(size, 1)} x i8]", 64)
        section = self.section if isinstance(size, str) else self._memory
        name = size if isinstance(size, str) else self.number(size)
        slot = self.function.slot("ptr")
        self._opening.write(f"store ptr null, ptr {slot}")
        self._held.append(slot)
        allocate = self._of_runtime("wengert_alloc", "ptr", ["i64"])
        some = section.value(f"or i64 {name}, 1")  # none would be null
        pointer = section.value(f"call ptr {allocate}(i64 {some})")
        section.write(f"store ptr {pointer}, ptr {slot}")
        self.fail_if(section.value(f"icmp eq ptr {pointer}, null"), 1, section)
        return pointer

    def fail_if(self, condition: Name, status: int = 1, section: Section | None = None) -> None:
        """Return with a status if a condition holds; `section` if it is not the call's own."""
        section = section or self.section
        n = self.function.number()
        section.write(f"br i1 {condition}, label %fail{n}, label %go{n}")
        section.label(f"fail{n}")
        section.write(f"store i64 {status}, ptr {self._status}")
        section.write("br label %leave")
        section.label(f"go{n}")
        self.fails = True

    def external(self, name: str, address: int, result: str, arguments: Sequence[str]) -> str:
        """A function from outside, as ``@name``."""
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
        """Work along a range that may be split: parts of it run on several threads.

        Parameters
        ----------
        extent : Length
            The end of the range, which starts at 0.
        grain : int
            The minimum work for a thread.
        write : callable
            ``write(call, start, stop)`` writes the work of a part: into another call of the same
            arrays and sizes, but without scratch memory of this one.
        section : Section, optional
            Where in the function the parts are called; by default in its own.
        """
        kinds = self._given()
        title = f"{self.function.name}.part"
        part = self._part(title, [("i64", "start"), ("i64", "stop")])
        write(part, "%start", "%stop")
        part.close()
        called_by_team(self.module, title, [kind for kind, _ in kinds])
        s = section or self.section
        frame = self.function.slot(f"[{len(kinds) + 1} x i64]", 8)
        for k, (kind, name) in enumerate([("i64", "0"), *kinds]):
            s.write(f"store {kind} {name}, ptr {word(s, frame, k)}")
        threads = self.threads(s)
        run = self._of_runtime("wengert_parallel", "void", ["ptr", "ptr", *["i64"] * 4])
        span = f"i64 0, i64 {self.number(extent)}, i64 {grain}, i64 {threads}"
        s.write(f"call void {run}(ptr @{title}.team, ptr {frame}, {span})")
        status = s.value(f"load i64, ptr {frame}")
        if part.fails:
            self.fail_if(s.value(f"icmp ne i64 {status}, 0"), 1, s)

    def cold(self, s: Section, write: Callable[[KernelCall], None]) -> None:
        """Code that rarely runs, as a function without optimization; `write` as in `in_parts`."""
        title = f"{self.function.name}.cold"
        part = self._part(title, (), "noinline optnone nounwind")
        write(part)
        part.close()
        self.module.cold.append(title)
        listed = ", ".join(f"{kind} {name}" for kind, name in self._given())
        status = s.value(f"call i64 @{title}({listed})")
        if part.fails:
            self.fail_if(s.value(f"icmp ne i64 {status}, 0"), 1, s)

    def _given(self) -> list[tuple[str, Name]]:
        """The arguments of the function: addresses and sizes."""
        arrays = (*self.operands, *self.results)
        sizes = [("i64", name) for name in self._named.values()]
        return [*(("ptr", a.pointer) for a in arrays), *sizes]

    def _part(
        self, title: str, more: Sequence[tuple[str, str]], attributes: str = "nounwind"
    ) -> KernelCall:
        """A function with the same arguments, and more."""
        listed = [(kind, name[1:]) for kind, name in self._given()]
        function = Function(self.module, title, [*listed, *more], "i64", attributes)
        return KernelCall(
            *(self._steps, function, self.params, self.operands, self.results),
            *(self._named, self.options),
        )

    def close(self) -> None:
        """Finish it, and enter it into the module."""
        self.finish()
        self.module.add(self.function)

    def threads(self, s: Section) -> Name:
        """The number of threads that a call may use."""
        if self._steps.threads:
            return str(self._steps.threads)
        return s.value(f"call i64 {self._of_runtime('wengert_get_threads', 'i64', [])}()")

    def works(self, flops: Length) -> None:
        """Record the approximate operations of a call of BLAS or LAPACK.

        The maximum of them decides whether the call uses several threads.
        """
        self._flops = self._flops + flops

    def _limited(self) -> bool:
        """Emit the limit on BLAS threads; not needed if BLAS uses one thread anyway."""
        if isinstance(self._flops, int) and self._flops < thresholds.blas_single_thread_flops:
            return False
        asked = self._of_runtime("wengert_get_threads", "i64", [])
        threads = self._limits.value(f"call i64 {asked}()")
        address = blas_threads.symbols()["wengert_blas_enter"]
        enter = self.external("wengert_blas_enter", address, "void", ["i64", "i64"])
        flops = self.number(self._flops)
        self._limits.write(f"call void {enter}(i64 {flops}, i64 {threads})")
        return True

    def finish(self) -> None:
        """Write the exit."""
        body = self.function.body
        body.block("leave")
        if self._limited():
            address = blas_threads.symbols()["wengert_blas_leave"]
            body.write(f"call void {self.external('wengert_blas_leave', address, 'void', [])}()")
        if self._held:
            release = self._of_runtime("wengert_free", "void", ["ptr"])
            for slot in self._held:
                held = body.value(f"load ptr, ptr {slot}")
                body.write(f"call void {release}(ptr {held})")
        status = body.value(f"load i64, ptr {self._status}")
        body.write(f"ret i64 {status}")


# ---- the registry ------------------------------------------------------------------------------


class Kernel(NamedTuple):
    """A kernel of the registry.

    write : ``write(call)`` emits the kernel.
    strided : whether operands may have any strides; if not, they must be C-contiguous.
    serves : ``serves(node)``: whether the kernel supports this node.
    spares : whether it is passed the option "unused": the results that need not be computed.
    updates : ``updates(params)``: whether the result is the first operand with some elements
        replaced, and may be in its memory.
    unrolled : whether its code grows with the number of operands, and not with their sizes.
    """

    write: Callable[[KernelCall], None]
    strided: bool
    serves: Callable[[Any], bool]
    spares: bool
    updates: Callable[[Mapping[str, Any]], bool]
    unrolled: bool


KERNELS: dict[str, Kernel] = {}


def kernel(
    name: str,
    *,
    strided: bool = False,
    serves: Callable[[Any], bool] = lambda node: True,
    spares: bool = False,
    updates: Callable[[Mapping[str, Any]], bool] = lambda params: False,
    unrolled: bool = False,
) -> Callable[[Callable[[KernelCall], None]], Callable[[KernelCall], None]]:
    """Enter the function below it as the kernel of an operation (a decorator)."""

    def enter(write: Callable[[KernelCall], None]) -> Callable[[KernelCall], None]:
        other = KERNELS[name].write.__module__ if name in KERNELS else write.__module__
        assert other == write.__module__, f"{name} has a kernel in {other}"
        KERNELS[name] = Kernel(write, strided, serves, spares, updates, unrolled)
        return write

    return enter


def _kernel_of(name: str) -> Kernel | None:
    """The kernel of an operation, if there is one."""
    if name not in KERNELS and name in KERNEL_MODULES:
        import_module(f".{KERNEL_MODULES[name]}", __package__)
    return KERNELS.get(name)


def is_served(node: Any) -> bool:
    """Whether there is a kernel for a node of a graph; without one it is a host callback."""
    found = _kernel_of(node.op.name)
    if found is None:
        return False
    specs = [*(a.spec for a in node.inputs)]
    specs += node.spec if isinstance(node.spec, tuple) else [node.spec]
    return all(s is not None and is_supported(s.dtype) for s in specs) and found.serves(node)
