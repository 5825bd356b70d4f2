"""Lengths: named sizes as whole numbers of 64 bits, while a native function runs.

A length is a sum of products of sizes, quotients among them (core/dims.py); written as
instructions, each product and sum is watched for overflow.  What does not fit into 64 bits, or
divides by what is not positive, is no length that arrays can have: control goes where the caller
says, as from any other check.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ....core.dims import Quotient, names_in
from ..assembly import Module, Name, Section

Check = Callable[[Name], None]  # goes on if an i1 holds, else leaves


class Lengths:
    """Writes the values of lengths.

    Parameters
    ----------
    module : Module
    section : Section
    check : callable
        Writes a branch that is left by what is not so.

    Attributes
    ----------
    bound : dict from str to Name
        The sizes known so far.
    """

    def __init__(self, module: Module, section: Section, check: Check) -> None:
        self._module, self._section, self._check = module, section, check
        self.bound: dict[str, Name] = {}
        self._known: dict[Any, Name] = {}

    def is_known(self, length: Any) -> bool:
        """Whether all the sizes in a length are known."""
        return names_in([length]) <= self.bound.keys()

    def number(self, length: Any) -> Name:
        """The value of a length, an i64."""
        if isinstance(length, int):
            return str(length)
        if length not in self._known:
            self._known[length] = self._sum(length)
        return self._known[length]

    def product(self, lengths: Any) -> Name:
        """The product of several lengths."""
        total: Name = "1"
        for length in lengths:
            total = self._watched("mul", total, self.number(length))
        return total

    def total(self, a: Name, b: Name) -> Name:
        """The sum of two whole numbers."""
        return self._watched("add", a, b)

    def solve(self, length: Any, number: Name) -> bool:
        """Bind the one size that a length ``c*n + d`` has, c and d numbers, if it is such a one.

        The length of an array is given; that it is one for a whole n of at least 1 is checked.
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

    def _sum(self, length: Any) -> Name:
        total: Name = "0"
        for product, factor in length._terms.items():
            term: Name = str(factor)
            for atom, power in product:
                one = self._quotient(atom) if isinstance(atom, Quotient) else self.bound[atom]
                for _ in range(power):
                    term = self._watched("mul", term, one)
            total = self._watched("add", total, term)
        return total

    def _watched(self, operation: str, a: Name, b: Name) -> Name:
        nothing = "0" if operation == "add" else "1"
        if nothing in (a, b):
            return b if a == nothing else a
        if not a.startswith("%") and not b.startswith("%"):
            exact = int(a) + int(b) if operation == "add" else int(a) * int(b)
            if -(2**63) <= exact < 2**63:
                return str(exact)
        pair = "{ i64, i1 }"
        name = f"llvm.s{operation}.with.overflow.i64"
        watched = self._module.declare(name, pair, ["i64", "i64"])
        both = self._section.value(f"call {pair} {watched}(i64 {a}, i64 {b})")
        over = self._section.value(f"extractvalue {pair} {both}, 1")
        self._check(self._section.value(f"xor i1 {over}, true"))
        return self._section.value(f"extractvalue {pair} {both}, 0")

    def _quotient(self, quotient: Quotient) -> Name:
        """The whole part, towards minus infinity, of a quotient with a positive divisor."""
        section = self._section
        above, below = self.number(quotient.above), self.number(quotient.below)
        self._check(section.value(f"icmp sgt i64 {below}, 0"))
        whole = section.value(f"sdiv i64 {above}, {below}")
        rest = section.value(f"srem i64 {above}, {below}")
        less = section.value(f"icmp slt i64 {rest}, 0")
        return section.value(f"add i64 {whole}, {section.value(f'sext i1 {less} to i64')}")
