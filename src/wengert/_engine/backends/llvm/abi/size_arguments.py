"""Symbolic sizes as 64-bit integers while a native function runs.

A length is a polynomial of sizes, with quotients (core/symbolic/dim.py); each of its products and
sums is checked for overflow.  A length beyond 64 bits, or with a divisor that is not positive, is
not the length of any array, and is handled as a failed check.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from wengert._engine.core.symbolic.dim import Quotient, names_in
from wengert._engine.core.types import Size

from ..ir.ir_builder import ModuleBuilder, Name, Section


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
