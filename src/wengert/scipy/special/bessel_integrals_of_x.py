"""Integrals of Bessel functions of order 0 from 0 to x: DLMF 10.22(i), 10.43(i).

itj0y0    the integrals of J_0 and Y_0
iti0k0    the integrals of I_0 and K_0
"""

from __future__ import annotations

from typing import Any

from wengert._engine.core.op import lookup
from wengert._engine.core.op_facts import Differentiation
from wengert._engine.kinds.elementwise import POSITIVE

from .oracle_expression import OracleExpression
from .register import PREFIX, function

__all__ = ["itj0y0", "iti0k0"]


def _integral(name: str, result: int, integrand: str, mpmath_name: str) -> Any:
    witness = OracleExpression("x", f"quad(lambda u: {mpmath_name}(0, u), [0, x / 8, x / 2, x])")
    doc = f"The integral of {integrand} from 0 to x."
    entry = function(name, "x", result=result, domain=[POSITIVE], oracle=witness, doc=doc)
    entry.differentiation = Differentiation(singular=True)
    entry.partials(lambda t, out, x: t * lookup(PREFIX + integrand)(x))
    return entry


_j0 = _integral("itj0y0", 0, "j0", "besselj")
_y0 = _integral("itj0y0", 1, "y0", "bessely")
_i0 = _integral("iti0k0", 0, "i0", "besseli")
_k0 = _integral("iti0k0", 1, "k0", "besselk")


def itj0y0(x: Any) -> tuple[Any, Any]:
    """The integrals of J_0 and Y_0 from 0 to x."""
    return _j0(x), _y0(x)


def iti0k0(x: Any) -> tuple[Any, Any]:
    """The integrals of I_0 and K_0 from 0 to x."""
    return _i0(x), _k0(x)
