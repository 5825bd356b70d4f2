"""The engine's operators on functions of one argument, by the names of `autograd.core`.

make_vjp, make_jvp               of a function of one argument, at a point
vspace, VSpace                   vspace.py
primitive                        deprecated.py
defvjp, defjvp ...               extend.py, and the tables of their rules
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import differential_operators
from .deprecated import primitive
from .extend import (
    Box,
    VSpace,
    def_linear,
    defjvp,
    defjvp_argnum,
    defjvp_argnums,
    defvjp,
    defvjp_argnum,
    defvjp_argnums,
    primitive_jvps,
    primitive_vjps,
    vspace,
)
from .tracer import getval, isbox

__all__ = [
    "Box",
    "VSpace",
    "def_linear",
    "defjvp",
    "defjvp_argnum",
    "defjvp_argnums",
    "defvjp",
    "defvjp_argnum",
    "defvjp_argnums",
    "getval",
    "isbox",
    "make_jvp",
    "make_vjp",
    "primitive",
    "primitive_jvps",
    "primitive_vjps",
    "vspace",
]


def make_vjp(fun: Callable[[Any], Any], x: Any) -> tuple[Callable[[Any], Any], Any]:
    """The pullback of `fun` at `x`, and the value; that of `autograd` takes ``(fun, argnum)``."""
    found: tuple[Callable[[Any], Any], Any] = differential_operators.make_vjp(fun)(x)
    return found


def make_jvp(fun: Callable[[Any], Any], x: Any) -> Callable[[Any], tuple[Any, Any]]:
    """The function v -> (value, J v) of `fun` at `x`."""
    found: Callable[[Any], tuple[Any, Any]] = differential_operators.make_jvp(fun)(x)
    return found
