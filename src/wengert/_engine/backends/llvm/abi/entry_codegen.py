"""The entry point of a program, in the same module as its function ``kernel``.

    ptr @entry(ptr self, ptr args, i64 nargs, ptr names)

It checks the arguments, binds the symbolic sizes, allocates the result arrays, fills the frame,
runs the kernel and makes the result objects.  Failed checks branch to ``miss`` (nothing has been
allocated yet); later failures branch to ``drop``, which releases objects
(arguments_and_results.py), then to ``ended``, which calls the Python callable for the status of the
run.

The GIL is released for runs that are long enough (acquiring it again can take long if other
threads want it).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from wengert._engine.core.symbolic.dim import names_in

from ..ir.ir_builder import ModuleBuilder, Name
from ..tuning import thresholds
from . import arguments_and_results
from .arguments_and_results import Results, bytes_of
from .cpython_layout import DATA, ITEMS
from .entry_builder import EntryBuilder
from .ports import CallInterface, TableLayout, sends_messages

# The parameters of METH_FASTCALL | METH_KEYWORDS.
_FASTCALL = [("ptr", "self"), ("ptr", "args"), ("i64", "nargs"), ("ptr", "names")]
# An entry point runs straight through: optimizing it triples the compile time and gains nothing.
_ATTRIBUTES = "nounwind noinline optnone #1"


def entry_text(
    module: ModuleBuilder,
    program: CallInterface,
    *,
    single: bool = False,
    nesting: Any = None,
    accept_python_numbers: bool = False,
    python_results: bool = False,
    nonzero: Iterable[Any] = (),
    name: str = "entry",
) -> None:
    """Add the entry point of a program to the module that contains its function ``kernel``.

    Parameters
    ----------
    module : ModuleBuilder
        The entry point is added as an external function.
    program : CallInterface
        May also have `work_bytes`, a Length: an estimate of the bytes that the run moves beside
        inputs and outputs, used to decide whether to release the GIL.
    single : bool
        Return the only output itself instead of a tuple.
    nesting : tuple, optional
        Nested tuples of result indices, if the results are returned in nested tuples.
    accept_python_numbers : bool
        Accept Python numbers for 0-d inputs that were strongly typed in tracing, as
        `argument_conversion.fitted` may; else they take the slow path, as type promotion differs.
    python_results : bool
        Return weakly typed results as Python numbers; else, as graphs do, as NumPy scalars (but
        integers as Python ints).
    nonzero : iterable of Length
        Differences of symbolic sizes that tracing assumed to be nonzero (``if n == 3`` was False).
    name : str
        Of the function.
    """
    builder = _EntryPoint(module, program, tuple(nonzero), name)
    builder.build(single, nesting, accept_python_numbers, python_results)


class _EntryPoint:
    """Builds the entry point of one program."""

    def __init__(
        self, module: ModuleBuilder, program: CallInterface, nonzero: tuple[Any, ...], name: str
    ) -> None:
        self.module, self.program, self.nonzero = module, program, nonzero
        words = TableLayout(program).words
        self.builder = EntryBuilder(module, name, _FASTCALL, "ptr", words, _ATTRIBUTES)
        first = self.builder.load("ptr", "%self", ITEMS)
        self.builder.table = self.builder.load("ptr", first, DATA)
        self.on_heap = program.slots > thresholds.frame_stack_slots
        self.donated: dict[int, Name] = {}  # results written into the memory of an argument

    def build(
        self, single: bool, nesting: Any, accept_python_numbers: bool, python_results: bool
    ) -> None:
        """Write the function."""
        builder, program = self.builder, self.program
        ports = (*program.inputs, *program.outputs)
        supported = all(arguments_and_results.is_servable(port.spec.dtype) for port in ports)
        filled = self._guards(accept_python_numbers) if supported else None
        if filled is None:
            builder.forward("miss")
            self._close()
            return
        results = Results(builder, program.outputs, python_results, self.donated)
        results.measure()
        builder.branch_on_checks()  # objects are created from here on
        is_long = self._is_long()
        action = builder.function.slot("i64")
        builder.store("i64", "0", action)
        frame = self._frame()
        for slot, address in results.arrays():
            builder.store("ptr", address, frame, 8 * slot)
        self._fill(frame, filled)
        status = self._run(frame, is_long)
        # A special function of SciPy may have raised, if errors are set to raise.
        if getattr(program, "calls_special_functions", False):
            error = builder.call("PyErr_Occurred", "ptr")
            builder.unless(builder.value(f"icmp eq ptr {error}, null"), "drop")
        builder.store("i64", status, action)
        builder.unless(builder.same(status, "0", "i64"), "drop")
        result = results.finish(single, nesting)
        self._free(frame)
        builder.write(f"ret ptr {result}")
        results.drop("ended")
        self._ended(frame, action)
        self._close()

    # ---- arguments -----------------------------------------------------------------------------

    def _guards(self, accept_python_numbers: bool) -> arguments_and_results.Filled | None:
        """Check all arguments; the frame slots, or None if a size cannot be determined."""
        builder, program = self.builder, self.program
        lengths: list[Any] = []
        filled: arguments_and_results.Filled = []
        count = len(program.inputs)
        builder.check(builder.same("%nargs", str(count), "i64"))
        builder.check(builder.same("%names", "null"))
        builder.check(builder.same(builder.load("i64", builder.word("gate")), "0", "i64"))
        builder.branch_on_checks()
        arguments = [builder.load("ptr", "%args", 8 * k) for k in range(count)]
        donated = getattr(program, "overwritten", {})
        self.donated = {k: arguments[i] for k, i in donated.items()}
        types = arguments_and_results.kinds(builder, program.inputs, arguments)
        inputs = list(zip(program.inputs, arguments, types, strict=True))
        arrays = [(port, argument) for port, argument, _ in inputs if port.spec.shape]
        for port, array in arrays:
            arguments_and_results.header(builder, port, array)
        builder.branch_on_checks()
        for port, array in arrays:
            slots, found = arguments_and_results.read(builder, port, array)
            filled += slots
            lengths += found
        for port, argument, kind in inputs:
            if not port.spec.shape:
                address = arguments_and_results.number(
                    builder, port, argument, kind, accept_python_numbers
                )
                filled.append((port.slot, "ptr", address))
        outputs = [n for port in program.outputs for n in port.spec.shape]
        requirements = [(need.length, need.equal) for need in program.requirements]
        used = names_in([*outputs, *(length for length, _ in requirements), *self.nonzero])
        if not arguments_and_results.lengths(builder, lengths, {*program.sizes, *used}):
            self._always_miss()
            return None
        for length, equal in requirements:
            value = builder.lengths.number(length)
            relation = "eq" if equal else "sge"
            builder.check(builder.value(f"icmp {relation} i64 {value}, 0"))
        for length in self.nonzero:
            value = builder.lengths.number(length)
            builder.check(builder.value(f"icmp ne i64 {value}, 0"))
        for size, slot in zip(program.sizes, program.size_slots, strict=True):
            filled.append((slot, "i64", builder.lengths.bound[size]))
        return filled

    def _always_miss(self) -> None:
        """Branch to ``miss`` unconditionally: the entry point can never be used."""
        self.builder.go("miss")
        self.builder.label(self.builder.fresh("never"))

    # ---- the frame -----------------------------------------------------------------------------

    def _frame(self) -> Name:
        builder, slots = self.builder, self.program.slots
        if not self.on_heap:
            return builder.function.slot(f"[{max(slots, 1)} x i64]", 8)
        frame = builder.call("PyMem_RawMalloc", "ptr", f"i64 {8 * slots}")
        builder.unless(builder.value(f"icmp ne ptr {frame}, null"), "no_memory")
        return frame

    def _free(self, frame: Name) -> None:
        if self.on_heap:
            self.builder.call("PyMem_RawFree", "void", f"ptr {frame}")

    def _fill(self, frame: Name, filled: Iterable[tuple[int, str, Name]]) -> None:
        builder = self.builder
        for slot, kind, value in filled:
            builder.store(kind, value, frame, 8 * slot)
        for slot, _ in self.program.constants:
            builder.store("ptr", builder.word(f"constant.{slot}"), frame, 8 * slot)

    # ---- the run -------------------------------------------------------------------------------

    def _is_long(self) -> Name:
        """Whether to release the GIL, an i1."""
        lengths = self.builder.lengths
        if sends_messages(self.program):  # it waits for other processes
            return "true"
        total = getattr(self.program, "work_bytes", 0)
        if not lengths.is_known(total):
            total = 0
        for port in (*self.program.inputs, *self.program.outputs):
            total = total + bytes_of(port)
        number = lengths.roughly(total)
        if not number.startswith("%"):
            return "true" if int(number) >= thresholds.gil_release_bytes else "false"
        return self.builder.value(f"icmp sge i64 {number}, {thresholds.gil_release_bytes}")

    def _run(self, frame: Name, is_long: Name) -> Name:
        builder = self.builder
        if is_long == "false":
            return builder.value(f"call i64 @kernel(ptr {frame})")
        state = builder.function.slot("ptr")
        release, run, take, after = map(builder.fresh, ("release", "run", "take", "after"))
        builder.branch(is_long, release, run)
        builder.label(release)
        builder.store("ptr", builder.call("PyEval_SaveThread", "ptr"), state)
        builder.go(run)
        builder.label(run)
        status = builder.value(f"call i64 @kernel(ptr {frame})")
        builder.branch(is_long, take, after)
        builder.label(take)
        builder.call("PyEval_RestoreThread", "void", f"ptr {builder.load('ptr', state)}")
        builder.go(after)
        builder.label(after)
        return status

    # ---- failures ------------------------------------------------------------------------------

    def _ended(self, frame: Name, action: Name) -> None:
        """Return from a failed run; all objects have been released."""
        builder = self.builder
        builder.label("ended")
        self._free(frame)
        found = builder.load("i64", action)
        cases = "i64 0, label %raised i64 2, label %callback"
        builder.write(f"switch i64 {found}, label %failed [ {cases} ]")
        builder.label("raised")
        builder.write("ret ptr null")
        builder.label("callback")
        raising = builder.word("callback_error")
        builder.unless(builder.value(f"icmp ne ptr {raising}, null"), "failed")
        made = builder.call("PyObject_CallObject", "ptr", f"ptr {raising}", "ptr null")
        builder.write(f"ret ptr {made}")
        builder.label("failed")
        builder.forward("failed")
        if self.on_heap:
            builder.label("no_memory")
            builder.write(f"ret ptr {builder.call('PyErr_NoMemory', 'ptr')}")

    def _close(self) -> None:
        builder = self.builder
        builder.label("miss")
        builder.forward("miss")
        self.module.add(builder.function)
