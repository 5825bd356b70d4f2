"""A builder of routines on arrays with strides, for code that needs no library.

    strided           makes a function with strides, which routines call

RoutineBuilder    builds one function: arguments of Fortran, elements, loops, calls of others
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from typing import Any, NamedTuple

from ..ir.ir_builder import Function, ModuleBuilder, Name, Section

ZERO = "0.0"


class RoutineBuilder:
    """Builds a function; `s` is the section that is being written."""

    def __init__(
        self,
        module: ModuleBuilder,
        name: str,
        arguments: list[tuple[str, str]],
        kind: str,
        result: str,
    ) -> None:
        self.module, self.kind = module, kind
        self.function = Function(module, name, arguments, result, "nounwind")
        self.s: Section = self.function.body

    def close(self, last: str) -> None:
        """Finish the function."""
        self.s.write(last)
        self.module.add(self.function)

    # ---- arguments of Fortran ------------------------------------------------------------------

    def integer(self, name: str) -> Name:
        """An integer argument."""
        return self.s.value(f"sext i32 {self.s.value(f'load i32, ptr %{name}')} to i64")

    def number(self, name: str) -> Name:
        """A floating-point argument."""
        return self.s.value(f"load {self.kind}, ptr %{name}")

    def flag(self, name: str, letter: str) -> Name:
        """Whether an argument is a letter, an i1."""
        found = self.s.value(f"load i8, ptr %{name}")
        upper = self.s.value(f"and i8 {found}, 95")
        return self.s.value(f"icmp eq i8 {upper}, {ord(letter)}")

    def choice(self, condition: Name, x: Name, y: Name, kind: str = "i64") -> Name:
        """x if a condition holds, else y."""
        return self.s.value(f"select i1 {condition}, {kind} {x}, {kind} {y}")

    def info(self, value: Name = "0") -> None:
        """Set the status of LAPACK."""
        narrow = value if value == "0" else self.s.value(f"trunc i64 {value} to i32")
        self.s.write(f"store i32 {narrow}, ptr %info")

    # ---- elements and loops --------------------------------------------------------------------

    def at(self, base: Name, *pairs: tuple[Name, Name]) -> Name:
        """The address of an element, from indices and strides."""
        offset: Name = "0"
        for index, stride in pairs:
            offset = self.s.plus(offset, self.s.times(index, stride))
        return self.s.value(f"getelementptr {self.kind}, ptr {base}, i64 {offset}")

    def load(self, place: Name) -> Name:
        """An element."""
        return self.s.value(f"load {self.kind}, ptr {place}")

    def store(self, value: Name, place: Name) -> None:
        """Set an element."""
        self.s.write(f"store {self.kind} {value}, ptr {place}")

    def compute(self, operation: str, x: Name, y: Name) -> Name:
        """The sum (fadd) ... of numbers."""
        return self.s.value(f"{operation} {self.kind} {x}, {y}")

    def total(self, start: Name, stop: Name, term: Callable[[Name], Name]) -> Name:
        """The sum of terms over a range."""
        cell = self.function.slot(self.kind)
        self.store(ZERO, cell)
        with self.loop(start, stop) as k:
            value = term(k)
            self.store(self.compute("fadd", self.load(cell), value), cell)
        return self.load(cell)

    @contextmanager
    def loop(self, start: Name, stop: Name) -> Any:
        """Count from start up to stop."""
        outer = self.s
        with outer.loop(start, stop) as (inner, k):
            self.s = inner
            yield k
        self.s = outer

    @contextmanager
    def when(self, condition: Name) -> Any:
        """Code that runs if a condition holds."""
        outer = self.s
        with outer.when(condition) as inner:
            self.s = inner
            yield
        self.s = outer

    def call(self, function: Strided, *arguments: Name) -> Name:
        """Call a function with strides, which is added to the module if necessary."""
        typed = [(self.kind if t == "number" else t, n) for t, n in function.arguments]
        name = f"wengert_{function.name}_{self.kind}"
        if name not in self.module:
            routine = RoutineBuilder(self.module, name, typed, self.kind, function.result)
            function.write(routine)
            if function.result == "void":
                routine.close("ret void")
        given = ", ".join(f"{t} {a}" for (t, _), a in zip(typed, arguments, strict=True))
        text = f"call {function.result} @{name}({given})"
        if function.result == "void":
            self.s.write(text)
            return ""
        return self.s.value(text)


class Strided(NamedTuple):
    """A function with strides.

    name, result : its name, and the type of its result.
    arguments : types and names; the type "number" is that of the elements.
    write : writes its body.
    """

    name: str
    result: str
    arguments: tuple[tuple[str, str], ...]
    write: Callable[[RoutineBuilder], None]


def strided(result: str, arguments: str) -> Callable[[Callable[[RoutineBuilder], None]], Strided]:
    """Make a function with strides of one that writes its body (a decorator)."""
    pairs = [a.split() for a in arguments.split(",")]
    listed = tuple((kind, name) for kind, name in pairs)
    return lambda write: Strided(write.__name__, result, listed, write)
