"""Dim: a symbolic size, a polynomial over named integers.

`n`, `2*n + 1`, `n*m`, `n//2`: sums of products of names, each name a size of at least one.
Comparisons that have the same result for all sizes are decided; others are errors:

    n + n == 2 * n          True: the same polynomial
    n == m, n == 3          False: not the same polynomial (although they may be equal in a run)
    n >= 1, n + 2 > n       True, as sizes are at least one
    n > 3                   TracedBranchError

Relations between lengths (broadcasting, requirements, solving) are in symbolic/constraints.py.
"""

from __future__ import annotations

import itertools
import operator
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from typing import Any, ClassVar, SupportsIndex, Union

from wengert._engine.core.thread_state import lock
from wengert.errors import FOLDER, TracedBranchError, at, user_line

from . import polynomial
from .polynomial import Product

Length = Union[int, "Dim"]


@dataclass(frozen=True)
class Quotient:
    """The integer part of a quotient of sizes that does not divide evenly for all sizes."""

    above: Length
    below: Length

    def __str__(self) -> str:
        return f"({_enclosed(self.above)}//{_enclosed(self.below)})"


Atom = str | Quotient


class Comparisons:
    """Comparisons in user code that returned False, of sizes that may be equal in a run.

    Code that tests `x.shape[0] == 3` takes one branch for all sizes, which is right only if the
    sizes differ. Tracing for many sizes collects these comparisons (`watched`).
    """

    open: tuple[list[Any], ...] = ()  # of all threads: at worst a list gets too many comparisons
    _lock = lock()
    of_users: ClassVar[set[str]] = set()  # files of this package that compare for user code

    @classmethod
    def note(cls, a: Dim, b: Any, file: str = "") -> None:
        """Record a comparison, unless it is in code of this package, which is for all sizes."""
        if not file.startswith(FOLDER) or file in cls.of_users:
            for collected in cls.open:
                collected.append(a - b)

    @classmethod
    @contextmanager
    def watched(cls) -> Iterator[list[Any]]:
        """A block that collects the differences; its results are valid if none of them is zero."""
        collected: list[Any] = []
        with cls._lock:
            cls.open = (*cls.open, collected)
        try:
            yield collected
        finally:
            with cls._lock:
                cls.open = tuple([x for x in cls.open if x is not collected])


class Dim:
    """A polynomial over named sizes with integer coefficients; immutable.

    Made by `dim("n")`, and by arithmetic; a constant result is an int.
    """

    __slots__ = ("_hash", "_terms")

    def __init__(self, terms: Mapping[Product, int]) -> None:
        # In a canonical order, so that equal sizes have the same text.
        self._terms = dict(terms if len(terms) < 2 else sorted(terms.items(), key=_order))
        self._hash = hash(frozenset(self._terms.items()))

    @property
    def terms(self) -> Mapping[Product, int]:
        """The coefficient of each product of names and quotients."""
        return dict(self._terms)

    @property
    def names(self) -> frozenset[str]:
        """The names that occur in it."""
        names: set[str] = set()
        for product in self._terms:
            for atom, _ in product:
                if isinstance(atom, str):
                    names.add(atom)
                else:
                    names |= names_in((atom.above, atom.below))
        return frozenset(names)

    def __call__(self, sizes: Mapping[str, int]) -> int:
        """Its value for given sizes."""
        total = 0
        for product, factor in self._terms.items():
            for atom, power in product:
                factor *= _value(atom, sizes) ** power
            total += factor
        return total

    def replace(self, sizes: Mapping[str, Length]) -> Length:
        """The expression with other sizes substituted."""
        total: Length = 0
        for product, factor in self._terms.items():
            term: Length = factor
            for atom, power in product:
                if isinstance(atom, str):
                    one: Length = sizes.get(atom, Dim({((atom, 1),): 1}))
                else:
                    above, below = replaced(atom.above, sizes), replaced(atom.below, sizes)
                    one = above // below
                for _ in range(power):
                    term = term * one
            total = total + term
        return total

    # ---- arithmetic ----------------------------------------------------------------------------

    def __add__(self, other: Any) -> Any:
        terms = _terms_of(other)
        if terms is None:
            return _as_value(self, operator.add, other)
        return _normal(polynomial.total(self._terms, terms))

    __radd__ = __add__

    def __neg__(self) -> Any:
        return Dim({p: -c for p, c in self._terms.items()})

    def __sub__(self, other: Any) -> Any:
        if _terms_of(other) is None:
            return _as_value(self, operator.sub, other)
        return self + (-other)

    def __rsub__(self, other: Any) -> Any:
        if _terms_of(other) is None:
            return _as_value(self, lambda a, b: b - a, other)
        return (-self) + other

    def __mul__(self, other: Any) -> Any:
        terms = _terms_of(other)
        if terms is None:
            return _as_value(self, operator.mul, other)
        return _normal(polynomial.multiplied(self._terms, terms))

    __rmul__ = __mul__

    def __pow__(self, n: Any) -> Any:
        if type(n) is int and n >= 0:
            return reduce(operator.mul, [self] * n, 1)
        return _as_value(self, operator.pow, n)

    def __rpow__(self, other: Any) -> Any:
        return _as_value(self, lambda a, b: b**a, other)

    def __floordiv__(self, other: Any) -> Any:
        is_size = _terms_of(other) is not None
        return _quotient(self, other) if is_size else _as_value(self, operator.floordiv, other)

    def __rfloordiv__(self, other: Any) -> Any:
        is_size = _terms_of(other) is not None
        return _quotient(other, self) if is_size else _as_value(self, lambda a, b: b // a, other)

    def __mod__(self, other: Any) -> Any:
        if _terms_of(other) is None:
            return _as_value(self, operator.mod, other)
        return self - other * (self // other)

    def __rmod__(self, other: Any) -> Any:
        return other - self * (other // self)

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __truediv__(self, other: Any) -> Any:
        return _as_value(self, operator.truediv, other)

    def __rtruediv__(self, other: Any) -> Any:
        return _as_value(self, lambda a, b: b / a, other)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        make: Any = _Values.make
        values = [make(x) if isinstance(x, Dim) else x for x in inputs]
        return getattr(ufunc, method)(*values, **kwargs)

    # ---- comparisons ---------------------------------------------------------------------------

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Dim) and self._terms == other._terms:
            return True
        if Comparisons.open and isinstance(other, int | Dim):
            Comparisons.note(self, other, sys._getframe(1).f_code.co_filename)
        return False

    def __hash__(self) -> int:
        return self._hash

    def __bool__(self) -> bool:
        return self != 0 if bounds(self)[0] is None else self._decide(operator.gt, 0, ">")

    def __lt__(self, other: Any) -> bool:
        return self._decide(operator.lt, other, "<")

    def __le__(self, other: Any) -> bool:
        return self._decide(operator.le, other, "<=")

    def __gt__(self, other: Any) -> bool:
        return self._decide(operator.gt, other, ">")

    def __ge__(self, other: Any) -> bool:
        return self._decide(operator.ge, other, ">=")

    def _decide(self, compare: Callable[[Any, Any], bool], other: Any, sign: str) -> bool:
        if _terms_of(other) is None:
            return _as_value(self, compare, other)  # type: ignore[no-any-return]
        low, high = bounds(self - other)
        at_low = None if low is None else compare(low, 0)
        at_high = None if high is None else compare(high, 0)
        if low is not None and high is not None and at_low == at_high:
            return bool(at_low)
        if low is not None and sign in (">", ">=") and at_low:
            return True
        if low is not None and sign in ("<", "<=") and not at_low:
            return False
        if high is not None and sign in ("<", "<=") and at_high:
            return True
        if high is not None and sign in (">", ">=") and not at_high:
            return False
        raise TracedBranchError(
            f"whether {self} {sign} {other} depends on the sizes, which are not known while a "
            "graph is built. Declare the input with a number for that size, or use np.where"
            f"{at(user_line())}."
        )

    # ---- rejected conversions ------------------------------------------------------------------

    def __index__(self) -> int:
        raise TracedBranchError(
            f"the size {self} was needed as a number, but is not known while a graph is built. "
            "Create arrays with wengert.numpy (zeros, ones, eye, arange, full take such sizes), "
            "or with like=x; if the program depends on it, declare the input with a number for it"
            f"{at(user_line())}."
        )

    __int__ = __float__ = __index__

    def __str__(self) -> str:
        text = ""
        for product, factor in self._terms.items():
            sign = "-" if factor < 0 else "+"
            text += f" {sign} " if text else ("-" if factor < 0 else "")
            text += _spelled(product, abs(factor))
        return text

    def __repr__(self) -> str:
        return f"Dim({str(self)!r})"

    def __reduce__(self) -> Any:
        return Dim, (dict(self._terms),)

    def __deepcopy__(self, memo: Any) -> Dim:
        return self


def _order(term: tuple[Product, int]) -> Any:
    """The sort key of a term: highest powers first, and positive terms before negative ones."""
    product, factor = term
    return -sum(k for _, k in product), factor < 0, str(product)


# ---- as values ----------------------------------------------------------------------------------


class _Values:
    """The function that makes a tensor from a size; set once by a higher layer."""

    make: Callable[[Dim], Any] | None = None


def register_value(make: Callable[[Dim], Any]) -> Callable[[Dim], Any]:
    """Register the function that makes a handle from a size (a decorator)."""
    _Values.make = make
    return make


def _as_value(size: Dim, compute: Callable[[Any, Any], Any], other: Any) -> Any:
    if _Values.make is None or not isinstance(other, int | float | complex | SupportsIndex):
        return NotImplemented
    return compute(_Values.make(size), other)


# ---- polynomials -------------------------------------------------------------------------------


def _terms_of(x: Any) -> Mapping[Product, int] | None:
    if isinstance(x, Dim):
        return x._terms
    if isinstance(x, int) and not isinstance(x, bool):
        return {(): x}
    if type(x).__module__ == "numpy" and isinstance(x, SupportsIndex) and not hasattr(x, "node"):
        try:
            return {(): operator.index(x)}
        except TypeError:
            return None
    return None


def _normal(terms: Mapping[Product, int]) -> Any:
    if not terms:
        return 0
    if len(terms) == 1 and () in terms:
        return terms[()]
    return Dim(terms)


def _quotient(above: Any, below: Any) -> Any:
    if below == 0:
        raise ZeroDivisionError("division of a size by zero")
    exact = divided(above, below)
    if exact is not None:
        return exact
    if not isinstance(below, Dim) and isinstance(above, Dim):
        # Terms that divide evenly are separated: (2n + 1)//2 is n + 1//2.
        divisible = {p: c for p, c in above._terms.items() if c % below == 0}
        if divisible and len(divisible) < len(above._terms):
            others = {p: c for p, c in above._terms.items() if p not in divisible}
            whole = _normal({p: c // below for p, c in divisible.items()})
            return whole + _normal(others) // below
    return Dim({((Quotient(above, below), 1),): 1})


def divided(above: Any, below: Any) -> Any:
    """The exact quotient of two sizes, or None if there is none for all sizes."""
    terms = polynomial.divided(_terms(above), _terms(below))
    return None if terms is None else _normal(terms)


def _terms(length: Any) -> Mapping[Product, int]:
    if isinstance(length, Dim):
        return length._terms
    return {(): int(length)} if length else {}


def _value(atom: Atom, sizes: Mapping[str, int]) -> int:
    if isinstance(atom, str):
        return sizes[atom]
    return int(valued(atom.above, sizes) // valued(atom.below, sizes))


def _enclosed(length: Length) -> str:
    """A length as part of a quotient."""
    text = str(length)
    return text if text.isidentifier() or text.isdigit() else f"({text})"


def _spelled(product: Product, factor: int) -> str:
    parts = [str(factor)] if factor != 1 or not product else []
    parts += [str(atom) if power == 1 else f"{atom}**{power}" for atom, power in product]
    return "*".join(parts)


OPEN = "steps."  # the prefix of names of lengths that are known only after a loop has ended
LOCAL = "trip."  # the prefix of names of lengths that are known inside one step of a loop
_loops = itertools.count(1)


def open_length() -> Dim:
    """A new length that is known only after a loop has ended."""
    return Dim({((f"{OPEN}{next(_loops)}", 1),): 1})


def is_open(length: Any) -> bool:
    """Whether a length is known only after a loop has ended, or inside one of its steps."""
    return isinstance(length, Dim) and any(n.startswith((OPEN, LOCAL)) for n in length.names)


def bounds(x: Any) -> tuple[int | None, int | None]:
    """The minimum and maximum for sizes of at least one; None if there is no bound.

    With every name written as 1 + k, k >= 0, a polynomial without negative coefficients has its
    minimum where all k are 0; one without positive coefficients has its maximum there.
    """
    if not isinstance(x, Dim):
        return x, x
    if not all(_is_natural(atom) for product in x._terms for atom, _ in product):
        return None, None
    shifted = x.replace({name: Dim({((name, 1),): 1}) + 1 for name in x.names})
    terms = _terms_of(shifted)
    assert terms is not None
    coefficients = [c for p, c in terms.items() if p]
    constant = terms.get((), 0)
    low = constant if all(c > 0 for c in coefficients) else None
    high = constant if all(c < 0 for c in coefficients) else None
    return low, high


def _is_natural(atom: Atom) -> bool:
    """Whether an atom is at least zero for all sizes."""
    if isinstance(atom, str):
        return True
    above, below = bounds(atom.above)[0], bounds(atom.below)[0]
    return above is not None and above >= 0 and below is not None and below >= 1


# ---- shapes ------------------------------------------------------------------------------------


def is_symbolic(shape: Iterable[Any]) -> bool:
    """Whether a shape has a length that is not a number."""
    return any(type(n) is Dim for n in shape)


def names_in(lengths: Iterable[Any]) -> frozenset[str]:
    """The names that occur in some lengths."""
    return frozenset().union(*(n.names for n in lengths if isinstance(n, Dim)))


def valued(length: Any, sizes: Mapping[str, int]) -> Any:
    """A length as a number, once the sizes are known."""
    return length(sizes) if isinstance(length, Dim) else length


def replaced(length: Any, sizes: Mapping[str, Any]) -> Any:
    """A length as an expression of other sizes."""
    return length.replace(sizes) if isinstance(length, Dim) else length


def spelled(shape: Iterable[Any]) -> str:
    """A shape as text: (n, 3)."""
    parts = [str(n) for n in shape]
    return f"({parts[0]},)" if len(parts) == 1 else f"({', '.join(parts)})"
