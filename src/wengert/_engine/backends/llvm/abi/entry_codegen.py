"""The entry point of a program, in the same module as its function ``kernel``.

    ptr @entry(ptr self, ptr args, i64 nargs, ptr names)

It checks the arguments, binds the symbolic sizes, allocates the result arrays, fills the frame,
runs the kernel and makes the result objects.  A failed check goes to ``miss`` (nothing has been
allocated yet); later failures go to ``drop``, which releases objects (abi/result_objects.py), then
to ``ended``, which calls the Python callable for the status of the run.

The GIL is released around runs that are long enough (acquiring it again can take long if other
threads want it).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from wengert._engine.core.symbolic.dim import names_in

from ..ir.ir_builder import ModuleBuilder, Name
from ..tuning import thresholds
from . import argument_guards
from .address_table import TableLayout
from .cpython_layout import DATA, ITEMS
from .entry_builder import EntryBuilder
from .ports import CallInterface
from .result_objects import Results, bytes_of

# As METH_FASTCALL | METH_KEYWORDS has them.
_FASTCALL = [("ptr", "self"), ("ptr", "args"), ("i64", "nargs"), ("ptr", "names")]
# An entry goes through once: optimising it takes three times as long and gains nothing.
_ATTRIBUTES = "nounwind noinline optnone #1"


def entry_text(
    module: ModuleBuilder,
    program: CallInterface,
    *,
    single: bool = False,
    nesting: Any = None,
    lenient: bool = False,
    numbers: bool = False,
    different: Iterable[Any] = (),
    name: str = "entry",
) -> None:
    """Add the entry of a program to the module that has its function ``kernel``.

    Parameters
    ----------
    module : ModuleBuilder
        The entry is added as an external function.
    program : CallInterface
        May also have `long`, a Length: bytes that the run moves beside inputs and outputs, or
        arithmetic counted in such bytes; it tells whether the lock is worth letting go.
    single : bool
        Return the only output itself, and not a tuple.
    nesting : tuple, optional
        Of the results, where they are returned as tuples in tuples: their numbers.
    lenient : bool
        A Python number may stand for a value without axes that was none when the graph was built,
        as `argument_conversion.fitted` allows; else it takes the slow path, as promotion differs.
    numbers : bool
        Results that are weak are Python numbers; else, as graphs return them, NumPy's (but for
        integers).
    different : iterable of Length
        Lengths that must not be zero: what was found to differ while the graph was built (a
        function asked whether n == 3) has to differ now.
    name : str
        Of the function.
    """
    _Entry(module, program, tuple(different), name).write(single, nesting, lenient, numbers)


class _Entry:
    """The text of one entry while it is written."""

    def __init__(
        self, module: ModuleBuilder, program: CallInterface, different: tuple[Any, ...], name: str
    ) -> None:
        self.module, self.program, self.different = module, program, different
        words = TableLayout(program).words
        self.writer = EntryBuilder(module, name, _FASTCALL, "ptr", words, _ATTRIBUTES)
        first = self.writer.load("ptr", "%self", ITEMS)
        self.writer.table = self.writer.load("ptr", first, DATA)
        self.on_heap = program.slots > thresholds.frame_stack_slots
        self.given: dict[int, Name] = {}  # results that are arguments

    def write(self, single: bool, nesting: Any, lenient: bool, numbers: bool) -> None:
        """All of it."""
        writer, program = self.writer, self.program
        ports = (*program.inputs, *program.outputs)
        served = all(argument_guards.is_servable(port.spec.dtype) for port in ports)
        filled = self._guards(lenient) if served else None
        if filled is None:
            writer.forward("miss")
            self._close()
            return
        results = Results(writer, program.outputs, numbers, self.given)
        results.measure()
        writer.settle()  # from here on objects are made
        is_long = self._is_long()
        action = writer.function.slot("i64")
        writer.store("i64", "0", action)
        frame = self._frame()
        for slot, address in results.arrays():
            writer.store("ptr", address, frame, 8 * slot)
        self._fill(frame, filled)
        status = self._run(frame, is_long)
        if getattr(
            program, "calls_special_functions", False
        ):  # SciPy raises, where it was asked to
            error = writer.call("PyErr_Occurred", "ptr")
            writer.unless(writer.value(f"icmp eq ptr {error}, null"), "drop")
        writer.store("i64", status, action)
        writer.unless(writer.same(status, "0", "i64"), "drop")
        answer = results.finish(single, nesting)
        self._free(frame)
        writer.write(f"ret ptr {answer}")
        results.drop("ended")
        self._ended(frame, action)
        self._close()

    # ---- arguments -----------------------------------------------------------------------------

    def _guards(self, lenient: bool) -> argument_guards.Filled | None:
        """Check all arguments; the values of the slots, or None if a size cannot be determined."""
        writer, program = self.writer, self.program
        lengths: list[Any] = []
        filled: argument_guards.Filled = []
        count = len(program.inputs)
        writer.check(writer.same("%nargs", str(count), "i64"))
        writer.check(writer.same("%names", "null"))
        writer.check(writer.same(writer.load("i64", writer.word("gate")), "0", "i64"))
        writer.settle()
        arguments = [writer.load("ptr", "%args", 8 * k) for k in range(count)]
        taken = getattr(program, "overwritten", {})
        self.given = {k: arguments[i] for k, i in taken.items()}
        types = argument_guards.kinds(writer, program.inputs, arguments)
        given = list(zip(program.inputs, arguments, types, strict=True))
        arrays = [(port, argument) for port, argument, _ in given if port.spec.shape]
        for port, array in arrays:
            argument_guards.header(writer, port, array)
        writer.settle()
        for port, array in arrays:
            more, found = argument_guards.read(writer, port, array)
            filled += more
            lengths += found
        for port, argument, kind in given:
            if not port.spec.shape:
                place = argument_guards.number(writer, port, argument, kind, lenient)
                filled.append((port.slot, "ptr", place))
        outputs = [n for port in program.outputs for n in port.spec.shape]
        needs = program.requirements
        used = names_in([*outputs, *(need.length for need in needs), *self.different])
        if not argument_guards.lengths(writer, lengths, {*program.sizes, *used}):
            self._leave()
            return None
        for need in needs:
            value = writer.lengths.number(need.length)
            relation = "eq" if need.equal else "sge"
            writer.check(writer.value(f"icmp {relation} i64 {value}, 0"))
        for length in self.different:
            value = writer.lengths.number(length)
            writer.check(writer.value(f"icmp ne i64 {value}, 0"))
        for size, slot in zip(program.sizes, program.size_slots, strict=True):
            filled.append((slot, "i64", writer.lengths.bound[size]))
        return filled

    def _leave(self) -> None:
        """Branch to ``miss`` unconditionally: the entry point can never be used."""
        self.writer.go("miss")
        self.writer.label(self.writer.fresh("never"))

    # ---- the frame -----------------------------------------------------------------------------

    def _frame(self) -> Name:
        writer, slots = self.writer, self.program.slots
        if not self.on_heap:
            return writer.function.slot(f"[{max(slots, 1)} x i64]", 8)
        frame = writer.call("PyMem_RawMalloc", "ptr", f"i64 {8 * slots}")
        writer.unless(writer.value(f"icmp ne ptr {frame}, null"), "no_memory")
        return frame

    def _free(self, frame: Name) -> None:
        if self.on_heap:
            self.writer.call("PyMem_RawFree", "void", f"ptr {frame}")

    def _fill(self, frame: Name, filled: Iterable[tuple[int, str, Name]]) -> None:
        writer = self.writer
        for slot, kind, value in filled:
            writer.store(kind, value, frame, 8 * slot)
        for slot, _ in self.program.constants:
            writer.store("ptr", writer.word(f"constant.{slot}"), frame, 8 * slot)

    # ---- the run -------------------------------------------------------------------------------

    def _is_long(self) -> Name:
        """Whether to let the lock go, an i1."""
        lengths = self.writer.lengths
        total = getattr(self.program, "long", 0)
        if not lengths.is_known(total):
            total = 0
        for port in (*self.program.inputs, *self.program.outputs):
            total = total + bytes_of(port)
        number = lengths.roughly(total)
        if not number.startswith("%"):
            return "true" if int(number) >= thresholds.gil_release_bytes else "false"
        return self.writer.value(f"icmp sge i64 {number}, {thresholds.gil_release_bytes}")

    def _run(self, frame: Name, is_long: Name) -> Name:
        writer = self.writer
        if is_long == "false":
            return writer.value(f"call i64 @kernel(ptr {frame})")
        state = writer.function.slot("ptr")
        release, run, take, after = map(writer.fresh, ("release", "run", "take", "after"))
        writer.branch(is_long, release, run)
        writer.label(release)
        writer.store("ptr", writer.call("PyEval_SaveThread", "ptr"), state)
        writer.go(run)
        writer.label(run)
        status = writer.value(f"call i64 @kernel(ptr {frame})")
        writer.branch(is_long, take, after)
        writer.label(take)
        writer.call("PyEval_RestoreThread", "void", f"ptr {writer.load('ptr', state)}")
        writer.go(after)
        writer.label(after)
        return status

    # ---- the ends ------------------------------------------------------------------------------

    def _ended(self, frame: Name, action: Name) -> None:
        """Return from a failed run; all objects have been released."""
        writer = self.writer
        writer.label("ended")
        self._free(frame)
        found = writer.load("i64", action)
        cases = "i64 0, label %raised i64 2, label %callback"
        writer.write(f"switch i64 {found}, label %failed [ {cases} ]")
        writer.label("raised")
        writer.write("ret ptr null")
        writer.label("callback")
        raising = writer.word("callback_error")
        writer.unless(writer.value(f"icmp ne ptr {raising}, null"), "failed")
        made = writer.call("PyObject_CallObject", "ptr", f"ptr {raising}", "ptr null")
        writer.write(f"ret ptr {made}")
        writer.label("failed")
        writer.forward("failed")
        if self.on_heap:
            writer.label("no_memory")
            writer.write(f"ret ptr {writer.call('PyErr_NoMemory', 'ptr')}")

    def _close(self) -> None:
        writer = self.writer
        writer.label("miss")
        writer.forward("miss")
        self.module.add(writer.function)
