"""Builders of the LLVM functions that entry points consist of.

A function is one straight path from the checks to the result, with branches that leave it: failed
checks branch to the block ``miss``.  So every value dominates all later code, and no phi
instructions are needed.

    FunctionBuilder    builds a function
    EntryBuilder       the same with a table of addresses (abi/address_table.py), for entry points
                       and the routines they share
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..ir.ir_builder import Function, ModuleBuilder, Name
from .size_arguments import SizeArguments

_ATTRIBUTES = "nounwind #1"


class FunctionBuilder:
    """Builds a function.

    Parameters
    ----------
    result : str
        The LLVM type of the result.
    attributes : str
        LLVM function attributes.
    """

    def __init__(
        self,
        module: ModuleBuilder,
        name: str,
        arguments: Sequence[tuple[str, str]],
        result: str,
        attributes: str = _ATTRIBUTES,
    ) -> None:
        self.module = module
        self.function = Function(module, name, arguments, result, attributes, linkage="")
        self.section = self.function.body
        self.write, self.value = self.section.write, self.section.value
        self._conditions: list[Name] = []
        self.lengths = SizeArguments(module, self.section, self.check, self.branch_on_checks)

    # ---- memory --------------------------------------------------------------------------------

    def at(self, base: Name, offset: int) -> Name:
        """An address with an offset in bytes."""
        return self.value(f"getelementptr i8, ptr {base}, i64 {offset}") if offset else base

    def load(self, kind: str, base: Name, offset: int = 0) -> Name:
        """Load a value at an offset in bytes."""
        return self.value(f"load {kind}, ptr {self.at(base, offset)}")

    def store(self, kind: str, value: Name, base: Name, offset: int = 0) -> None:
        """Store a value at an offset in bytes."""
        self.write(f"store {kind} {value}, ptr {self.at(base, offset)}")

    # ---- control -------------------------------------------------------------------------------

    def fresh(self, what: str) -> str:
        """A label that is not used yet."""
        return f"{what}{self.function.number()}"

    def label(self, name: str) -> None:
        """Begin a block; the previous one has ended with a branch."""
        self.section.label(name)

    def go(self, label: str) -> None:
        """End the block with a branch."""
        self.branch_on_checks()
        self.write(f"br label %{label}")

    def branch(self, condition: Name, yes: str, no: str) -> None:
        """End the block with a conditional branch."""
        self.branch_on_checks()
        self.write(f"br i1 {condition}, label %{yes}, label %{no}")

    def check(self, condition: Name) -> None:
        """Record a condition that must hold; `branch_on_checks` branches to ``miss`` otherwise.

        Checks are combined: they nearly always hold, and each branch adds to the compile time.
        """
        self._conditions.append(condition)

    def branch_on_checks(self) -> None:
        """Branch to ``miss`` unless all recorded conditions hold; later code may depend on them."""
        if self._conditions:
            all_hold, *others = self._conditions
            self._conditions = []
            for condition in others:
                all_hold = self.value(f"and i1 {all_hold}, {condition}")
            self.unless(all_hold, "miss")

    def unless(self, condition: Name, label: str) -> None:
        """Branch to a label if a condition is false."""
        following = self.fresh("next")
        self.branch(condition, following, label)
        self.label(following)

    def same(self, a: Name, b: Name, kind: str = "ptr") -> Name:
        """Whether two values are equal, an i1."""
        return self.value(f"icmp eq {kind} {a}, {b}")


class EntryBuilder(FunctionBuilder):
    """Builds a function that has a table of addresses.

    Parameters
    ----------
    words : mapping from str to int
        The index of each word in the table.
    attributes : str
        LLVM function attributes.
    """

    def __init__(
        self,
        module: ModuleBuilder,
        name: str,
        arguments: Sequence[tuple[str, str]],
        result: str,
        words: Mapping[str, int],
        attributes: str = _ATTRIBUTES,
    ) -> None:
        super().__init__(module, name, arguments, result, attributes)
        self._words = words
        self.table: Name = "%table"

    def word(self, name: str) -> Name:
        """Load an address from the table."""
        return self.load("ptr", self.table, 8 * self._words[name])

    def call(self, name: str, result: str, *arguments: str) -> Name:
        """Call a function whose address is in the table; arguments are "type value"."""
        target = self.word(name)
        call = f"call {result} {target}({', '.join(arguments)})"
        if result == "void":
            self.write(call)
            return ""
        return self.value(call)

    def made(self, name: str, failed: str, *arguments: str) -> Name:
        """Call a function of the table that returns a new object; branch to `failed` if null."""
        new = self.call(name, "ptr", *arguments)
        self.unless(self.value(f"icmp ne ptr {new}, null"), failed)
        return new

    def forward(self, name: str) -> None:
        """Call a Python callable of the table with the arguments, and return its result."""
        target = self.word(name)
        made = self.call(
            "PyObject_Vectorcall", "ptr", f"ptr {target}", "ptr %args", "i64 %nargs", "ptr %names"
        )
        self.write(f"ret ptr {made}")
