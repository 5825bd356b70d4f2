"""Linearity of elements: whether an expression is a linear function of some of its operands.

The rule of an expression is called with terms in place of numbers, which know only the arithmetic
that keeps a sum over rows the sum of the rows' results: sums, differences, products with numbers.

    is_linear    whether an expression is linear in the chosen ones, and zero where they are
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from ..llvm.lowering.loop_ir import Expr, Map, Reduce, SelectExpr, View
from ..llvm.lowering.loop_ir import ScalarConstant as Number


class _NotLinear(Exception):
    """The rule computes something that is not linear."""


class _Term:
    """An element: linear in the chosen expressions, or a number that does not depend on them."""

    def __init__(self, is_linear: bool, dtype: Any = None) -> None:
        self.is_linear, self.dtype = is_linear, dtype

    def _sum(self, other: Any) -> _Term:
        if isinstance(other, _Term) and other.is_linear == self.is_linear:
            return self
        raise _NotLinear

    def _product(self, other: Any) -> _Term:
        factor = other if isinstance(other, _Term) else _Term(False)
        if self.is_linear and factor.is_linear:
            raise _NotLinear
        return _Term(self.is_linear or factor.is_linear, self.dtype)

    def _quotient(self, other: Any) -> _Term:
        if isinstance(other, _Term) and other.is_linear:
            raise _NotLinear
        return self

    def __neg__(self) -> _Term:
        return self

    __add__ = __radd__ = __sub__ = __rsub__ = _sum
    __mul__ = __rmul__ = _product
    __truediv__ = _quotient


class _Terms:
    """The scalar language of terms; what it lacks is not linear."""

    reader = None

    def cast(self, x: Any, dtype: Any) -> _Term:
        """A conversion between floating-point dtypes."""
        is_linear = isinstance(x, _Term) and x.is_linear
        if is_linear and dtype.kind not in "fc":
            raise _NotLinear
        return _Term(is_linear, dtype)

    def constant(self, number: Any, dtype: Any) -> _Term:
        """A number."""
        return _Term(False, dtype)

    def computed(self, name: str, dtype: Any, *terms: Any) -> _Term:
        """A function of NumPy, by its name: the arithmetic of complex numbers."""
        function = _ARITHMETIC.get(name)
        if function is None:
            raise _NotLinear
        made: _Term = getattr(terms[0], function)(*terms[1:])
        return made

    def __getattr__(self, name: str) -> Any:
        raise _NotLinear


_ARITHMETIC = {
    "add": "_sum",
    "subtract": "_sum",
    "multiply": "_product",
    "divide": "_quotient",
    "negative": "__neg__",
}


def is_linear(root: Expr, chosen: Collection[Expr]) -> bool:
    """Whether an expression is linear in the chosen ones, and zero where they are.

    Other expressions in memory are numbers.
    """
    first = root.operands[0] if isinstance(root.rule, Reduce) else root
    if isinstance(root.rule, Reduce) and root.rule.monoid != "sum":
        return False
    try:
        return _term(first, first is root, chosen, {}).is_linear
    except _NotLinear:
        return False


def _term(x: Expr, is_top: bool, chosen: Collection[Expr], known: dict[Expr, _Term]) -> _Term:
    if not is_top and (x.is_root or x in chosen):
        return _Term(x in chosen, x.dtype)
    found = known.get(x)
    if found is None:
        found = known[x] = _computed(x, [_term(y, False, chosen, known) for y in x.operands])
    return found


def _computed(x: Expr, terms: list[_Term]) -> _Term:
    if not any(t.is_linear for t in terms):
        return _Term(False, x.dtype)
    if isinstance(x.rule, View):
        return terms[0]
    if isinstance(x.rule, SelectExpr):
        pairs = zip(x.operands, terms, strict=True)
        if all(t.is_linear or _is_zero(y) for y, t in pairs):
            return _Term(True, x.dtype)
        raise _NotLinear
    if isinstance(x.rule, Map):
        made = x.rule.combine(_Terms(), *terms)
        return made if isinstance(made, _Term) else _Term(False, x.dtype)
    raise _NotLinear


def _is_zero(x: Expr) -> bool:
    while isinstance(x.rule, View):
        (x,) = x.operands
    return isinstance(x.rule, Number) and not x.rule.number
