"""Rule index: the rules that can apply to a node, by its operation and those of its operands.

Most nodes match no rule, which one look-up shows.  The key of a node is its operation, and for each
operand a descriptor:

    an operation              a node of that operation
    "number", "number 1.0"    a constant; with its value if a pattern contains it
    "full", "full 1.0"        the same for an array filled with one number (ops/creation.py)

The applicable rules, in their order, are determined once for each key.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from wengert._engine.core.op import Op

from .pattern import NumberPattern, OperationPattern, Wildcard, together
from .rule import AnyRule, Descriptor, NodeRule, Rule

Candidate = tuple[Any, Any]  # a rule, and for a pattern the variant that can match (or None)


class RuleIndex:
    """The rules of one pass.

    Parameters
    ----------
    rules : iterable of rules
        In the order in which they are tried.

    Attributes
    ----------
    numbers : set of str
        The keys of the numbers that patterns contain.
    """

    def __init__(self, rules: Iterable[AnyRule]) -> None:
        self.rules = tuple(rules)
        self.numbers: set[str] = set()
        self._by_root: dict[Op, list[Candidate]] = {}
        self._any: list[tuple[int, NodeRule]] = []
        self._found: dict[Any, tuple[Candidate, ...]] = {}
        together(self._enter_all)

    def _enter_all(self) -> None:
        for i, rule in enumerate(self.rules):
            if isinstance(rule, NodeRule):
                self._any.append((i, rule))
                continue
            for tree in rule.orders:
                self._by_root.setdefault(tree.op, []).append((i, tree))
            self._add_numbers(rule.orders[0])  # the other variants have the same numbers

    def _add_numbers(self, tree: Any) -> None:
        if type(tree) is NumberPattern:
            self.numbers.add(tree.key)
        elif type(tree) is OperationPattern:
            for part in tree.args:
                self._add_numbers(part)

    def candidates(
        self, op: Op, operands: tuple[Descriptor, ...], same: bool
    ) -> tuple[Candidate, ...]:
        """The rules that can apply to a node with this key.

        Parameters
        ----------
        op : Op
        operands : tuple
            A descriptor for each operand.
        same : bool
            Whether both operands are the same node.
        """
        key = (op, operands, same)
        candidates = self._found.get(key)
        if candidates is None:
            candidates = self._found[key] = self._search(*key)
        return candidates

    def _search(self, op: Op, operands: tuple[Any, ...], same: bool) -> tuple[Candidate, ...]:
        applicable: list[tuple[int, Any]] = [
            (i, tree)
            for i, tree in self._by_root.get(op, ())
            if len(tree.args) == len(operands)
            and all(map(_may_be, tree.args, operands))
            and (same or not _is_twice(tree.args))
        ]
        applicable += [(i, None) for i, rule in self._any if rule.may(op, operands)]
        applicable.sort(key=lambda pair: pair[0])
        return tuple((self.rules[i], tree) for i, tree in applicable)


def _is_twice(args: tuple[Any, ...]) -> bool:
    return len(args) == 2 and type(args[0]) is Wildcard and args[0] == args[1]


def _may_be(tree: Any, operand: Descriptor) -> bool:
    if type(tree) is Wildcard:
        return True
    if type(tree) is NumberPattern:
        return isinstance(operand, str) and operand.endswith(f" {tree.key}")
    return operand is tree.op


__all__ = ["Candidate", "RuleIndex", "Rule"]
