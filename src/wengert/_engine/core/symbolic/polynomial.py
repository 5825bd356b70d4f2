"""Polynomials: sums of products of atoms with integer coefficients, as plain dicts.

A product is a sorted tuple of (atom, power); a polynomial maps products to their coefficients,
none of them zero.  Atoms are ordered by their text.  Sizes (symbolic/dim.py) are such polynomials.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Product = tuple[tuple[Any, int], ...]  # atoms with their powers, in order
Terms = Mapping[Product, int]


def total(*many: Terms) -> dict[Product, int]:
    """The sum of polynomials."""
    out: dict[Product, int] = {}
    for terms in many:
        for product, factor in terms.items():
            out[product] = out.get(product, 0) + factor
    return {p: c for p, c in out.items() if c}


def multiplied(a: Terms, b: Terms) -> dict[Product, int]:
    """The product of two polynomials."""
    return total(*({_times(p, q): c * d} for p, c in a.items() for q, d in b.items()))


def divided(a: Terms, b: Terms) -> dict[Product, int] | None:
    """The exact quotient of two polynomials, or None if there is none with integer coefficients.

    Long division by leading terms, in an order in which the leading term of a product is the
    product of the leading terms.
    """
    atoms = sorted({str(atom) for terms in (a, b) for p in terms for atom, _ in p})

    def leading(terms: Terms) -> tuple[Product, int]:
        def rank(item: tuple[Product, int]) -> tuple[int, ...]:
            powers = {str(atom): k for atom, k in item[0]}
            return tuple(powers.get(name, 0) for name in atoms)

        return max(terms.items(), key=rank)

    lead, factor = leading(b)
    quotient: dict[Product, int] = {}
    remainder = dict(a)
    while remainder:
        product, c = leading(remainder)
        step = _cancelled(product, lead)
        if step is None or c % factor:
            return None
        term = {step: c // factor}
        quotient = total(quotient, term)
        remainder = total(remainder, {p: -c for p, c in multiplied(term, b).items()})
    return quotient


def _times(p: Product, q: Product) -> Product:
    powers = dict(p)
    for atom, power in q:
        powers[atom] = powers.get(atom, 0) + power
    return tuple(sorted(powers.items(), key=lambda item: str(item[0])))


def _cancelled(product: Product, by: Product) -> Product | None:
    powers = dict(product)
    for atom, power in by:
        powers[atom] = powers.get(atom, 0) - power
        if powers[atom] < 0:
            return None
    return tuple((atom, k) for atom, k in powers.items() if k)
