"""Builders of the LLVM functions that entry points consist of.

A function is one straight path from the checks to the result, with branches that leave it: failed
checks branch to the block ``miss``.  So every value dominates all later code, and no phi
instructions are needed.

    FunctionBuilder    builds a function
    EntryBuilder       the same with a table of addresses (ports.py), for entry points
                       and the routines they share

Symbolic sizes as 64-bit integers while a native function runs.

A length is a polynomial of sizes, with quotients (core/symbolic/dim.py); each of its products and
sums is checked for overflow.  A length beyond 64 bits, or with a divisor that is not positive, is
not the length of any array, and is handled as a failed check.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from wengert._engine.core.symbolic.dim import Quotient, names_in
from wengert._engine.core.types import Size

from ..ir.ir_builder import Function, ModuleBuilder, Name, Section

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


class SizeArguments:
    """Computes the values of lengths.

    Parameters
    ----------
    check : callable
        Records a condition that must hold.
    branch_on_checks : callable
        Branches to the failure block if a recorded condition does not hold.

    Attributes
    ----------
    bound : dict from str to Name
        The sizes known so far.
    """

    def __init__(
        self,
        module: ModuleBuilder,
        section: Section,
        check: Callable[[Name], None],
        branch_on_checks: Callable[[], None],
    ) -> None:
        self._module, self._section = module, section
        self._check, self._branch_on_checks = check, branch_on_checks
        self.bound: dict[str, Name] = {}
        self._known: dict[Any, Name] = {}

    def is_known(self, length: Size) -> bool:
        """Whether all sizes in a length are known."""
        return names_in([length]) <= self.bound.keys()

    def number(self, length: Any) -> Name:
        """The value of a length, an i64."""
        if isinstance(length, int):
            return str(length)
        if length not in self._known:
            self._known[length] = self._sum(length)
        return self._known[length]

    def roughly(self, length: Size) -> Name:
        """The value of a length in an estimate: overflow is not checked."""
        if isinstance(length, int):
            return str(length)
        return self._known.get(length) or self._sum(length, checked=False)

    def solve(self, length: Any, number: Name) -> bool:
        """Bind the only size in a length ``c*n + d``, with integers c and d; False if not one.

        `number` is the length of an array; that it gives an integer n of at least 1 is checked.
        """
        names = names_in([length])
        if len(names) != 1:
            return False
        (name,) = names
        terms = dict(length._terms)
        constant, factor = terms.pop((), 0), terms.pop(((name, 1),), 0)
        if terms or not factor:
            return False
        section = self._section
        found = number
        if constant:
            found = section.value(f"sub i64 {number}, {constant}")
        if factor != 1:
            rest = section.value(f"srem i64 {found}, {factor}")
            self._check(section.value(f"icmp eq i64 {rest}, 0"))
            found = section.value(f"sdiv i64 {found}, {factor}")
        self._check(section.value(f"icmp sge i64 {found}, 1"))
        self.bound[name] = found
        return True

    # ---- sums of products ----------------------------------------------------------------------

    def _sum(self, length: Any, checked: bool = True) -> Name:
        total: Name = "0"
        for product, factor in length._terms.items():
            term: Name = str(factor)
            for atom, power in product:
                if isinstance(atom, Quotient):
                    one = self._quotient(atom, checked)
                else:
                    one = self.bound[atom]
                for _ in range(power):
                    term = self._computed("mul", term, one, checked)
            total = self._computed("add", total, term, checked)
        return total

    def _computed(self, operation: str, a: Name, b: Name, checked: bool) -> Name:
        neutral = "0" if operation == "add" else "1"
        if neutral in (a, b):
            return b if a == neutral else a
        if not checked:
            return self._section.value(f"{operation} i64 {a}, {b}")
        pair = "{ i64, i1 }"
        name = f"llvm.s{operation}.with.overflow.i64"
        function = self._module.declare(name, pair, ["i64", "i64"])
        result = self._section.value(f"call {pair} {function}(i64 {a}, i64 {b})")
        overflowed = self._section.value(f"extractvalue {pair} {result}, 1")
        self._check(self._section.value(f"xor i1 {overflowed}, true"))
        return self._section.value(f"extractvalue {pair} {result}, 0")

    def _quotient(self, quotient: Quotient, checked: bool) -> Name:
        """The quotient, rounded towards minus infinity; the divisor must be positive."""
        section = self._section
        read = self.number if checked else self.roughly
        above, below = read(quotient.above), read(quotient.below)
        positive = section.value(f"icmp sgt i64 {below}, 0")
        if checked:
            self._check(positive)
            self._branch_on_checks()
        else:
            below = section.value(f"select i1 {positive}, i64 {below}, i64 1")
        whole = section.value(f"sdiv i64 {above}, {below}")
        rest = section.value(f"srem i64 {above}, {below}")
        less = section.value(f"icmp slt i64 {rest}, 0")
        return section.value(f"add i64 {whole}, {section.value(f'sext i1 {less} to i64')}")
