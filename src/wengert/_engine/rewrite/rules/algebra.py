"""Algebraic identities that save work.

Many algebraic identities do not hold for floating-point numbers, and are restricted or omitted:

    x + 0.0     is 0.0 for x = -0.0; but x - 0.0 and x + -0.0 are x
    x * 0.0     is NaN for x = inf, and -0.0 for x = -1: rewritten only if x is known to be finite
    x - x       is NaN for x = inf: rewritten only if x is known to be finite
    x / c       is x * (1 / c) only if c is a power of two
    (x + a) + b, x * a / a, -(x - y)    round differently, or lose the sign of a zero: omitted

A rule marked `exact` gives the same bits for all operands.  Complex products of infinities differ,
so rules apply to real numbers unless `kinds` contains "c".
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from wengert._engine.core.node import Node

from ..rule import Match, NodeBuilder, Rule, rule

_X = np.array([-2.0, -0.0, 0.5, 3.0])
_Y = np.array([1.5, -0.5, 0.0, -3.0])
_P = np.array([0.5, 1.0, 2.0, 7.0])
_C = np.array([True, False, True, False])
ALL = "fciu"


def _finite(match: Match) -> bool:
    return match.has("x", "finite")


def _no_negative_zero(match: Match) -> bool:
    return match.has("x", "nonnegative") or match.has("x", "nonzero") or _is_integer(match)


def _is_integer(match: Match) -> bool:
    return match.spec("x").dtype.kind in "iu"


NEUTRAL = (
    Rule("x * 1", lambda x: x * 1, lambda x: x, exact=True, kinds="fiu", example=(_X,)),
    Rule("x / 1", lambda x: x / 1, lambda x: x, exact=True, example=(_X,)),
    Rule("x - 0", lambda x: x - 0, lambda x: x, exact=True, kinds="fiu", example=(_X,)),
    Rule("x + -0", lambda x: x + -0.0, lambda x: x, exact=True, kinds="f", example=(_X,)),
    Rule(
        "x + 0",
        lambda x: x + 0,
        lambda x: x,
        reason="except for x = -0.0, which gives 0.0",
        condition=_no_negative_zero,
        exact=True,
        kinds="fiu",
        example=(np.arange(3),),
    ),
    Rule(
        "x * 0",
        lambda x: x * 0,
        lambda x: 0,
        reason="a finite number times zero is zero, up to its sign",
        condition=lambda m: m.has("x", "finite"),
        kinds="fiu",
        example=(np.arange(3),),
    ),
    Rule("x ** 1", lambda x: x**1, lambda x: x, exact=True, example=(_X,)),
    Rule(
        "x ** 0", lambda x: x**0, lambda x: 1.0, reason="also nan ** 0", exact=True, example=(_X,)
    ),
    Rule(
        "x ** -1",
        lambda x: x**-1.0,
        lambda x: 1.0 / x,
        reason="a quotient is rounded correctly",
        example=(_P,),
    ),
    Rule("x ** 2", lambda x: x**2, lambda x: np.square(x), reason="one rounding", example=(_X,)),
    Rule("x * x", lambda x: x * x, lambda x: np.square(x), exact=True, kinds="fiu", example=(_X,)),
    Rule(
        "x ** 0.5",
        lambda x: x**0.5,
        lambda x: np.sqrt(x),
        reason="they differ at -0.0 and -inf only",
        condition=lambda m: m.has("x", "nonnegative"),
        example=(lambda x: abs(x) ** 0.5, _X),
    ),
)

SIGNS = (
    Rule(
        "x * -1",
        lambda x: x * -1,
        lambda x: -x,
        reason="booleans have no sign",
        condition=lambda m: m.spec("x").dtype.kind != "b",
        exact=True,
        kinds="fi",
        example=(_X,),
    ),
    Rule(
        "--x",
        lambda x: np.negative(np.negative(x)),
        lambda x: x,
        exact=True,
        kinds=ALL,
        example=(_X,),
    ),
    Rule(
        "x - -y", lambda x, y: x - (-y), lambda x, y: x + y, exact=True, kinds=ALL, example=(_X, _Y)
    ),
    Rule(
        "x + -y", lambda x, y: x + (-y), lambda x, y: x - y, exact=True, kinds=ALL, example=(_X, _Y)
    ),
    Rule(
        "-x * y",
        lambda x, y: -x * y,
        lambda x, y: -(x * y),
        reason="signs that are moved outwards cancel",
        exact=True,
        kinds="fi",
        example=(_X, _Y),
    ),
    Rule(
        "-x / y",
        lambda x, y: -x / y,
        lambda x, y: -(x / y),
        reason="signs that are moved outwards cancel",
        exact=True,
        example=(_X, _P),
    ),
    Rule(
        "x / -y",
        lambda x, y: x / -y,
        lambda x, y: -(x / y),
        reason="signs that are moved outwards cancel",
        exact=True,
        example=(_X, _P),
    ),
    Rule("abs(-x)", lambda x: abs(-x), lambda x: abs(x), exact=True, kinds="fi", example=(_X,)),
    Rule(
        "square(-x)",
        lambda x: np.square(-x),
        lambda x: np.square(x),
        exact=True,
        kinds="fi",
        example=(_X,),
    ),
    Rule(
        "abs(abs(x))",
        lambda x: abs(abs(x)),
        lambda x: abs(x),
        exact=True,
        kinds="fciu",
        example=(_X,),
    ),
    Rule(
        "square(abs(x))",
        lambda x: np.square(abs(x)),
        lambda x: np.square(x),
        exact=True,
        example=(_X,),
    ),
    Rule(
        "abs(x), x >= 0",
        lambda x: abs(x),
        lambda x: x,
        condition=lambda m: m.has("x", "nonnegative"),
        exact=True,
        kinds="fiu",
        example=(np.arange(3, dtype=np.uint8),),
    ),
    Rule(
        "conj(conj(x))",
        lambda x: np.conj(np.conj(x)),
        lambda x: x,
        exact=True,
        kinds=ALL,
        dtypes={"x": complex},
        example=(_X + 1j,),
    ),
    Rule(
        "conj(x), x real",
        lambda x: np.conjugate(x),
        lambda x: x,
        exact=True,
        kinds="fiu",
        dtypes={"x": complex},
        example=(_X,),
    ),
    Rule("+x", lambda x: np.positive(x), lambda x: x, exact=True, kinds=ALL, example=(_X,)),
    Rule(
        "x - x",
        lambda x: x - x,
        lambda x: 0.0,
        reason="inf - inf is NaN, so only for finite numbers",
        condition=_finite,
        exact=True,
        kinds="fiu",
        example=(np.arange(3),),
    ),
    Rule(
        "exp(log(x))",
        lambda x: np.exp(np.log(x)),
        lambda x: x,
        reason="avoids two roundings; the logarithm of a negative number is NaN",
        condition=lambda m: m.has("x", "nonnegative"),
        example=(lambda x: np.exp(np.log(abs(x))), _X),
    ),
    Rule(
        "square(sqrt(x))",
        lambda x: np.square(np.sqrt(x)),
        lambda x: x,
        reason="avoids two roundings; the square root of a negative number is NaN",
        condition=lambda m: m.has("x", "nonnegative"),
        example=(lambda x: np.square(np.sqrt(abs(x))), _X),
    ),
)

SELECTIONS = (
    Rule(
        "max(x, x)", lambda x: np.maximum(x, x), lambda x: x, exact=True, kinds="fiu", example=(_X,)
    ),
    Rule(
        "min(x, x)", lambda x: np.minimum(x, x), lambda x: x, exact=True, kinds="fiu", example=(_X,)
    ),
    Rule(
        "x > y",
        lambda x, y: np.greater(x, y),
        lambda x, y: np.less(y, x),
        reason="one canonical form, so that equal comparisons are merged",
        exact=True,
        kinds="fiub",
        example=(_X, _Y),
    ),
    Rule(
        "x >= y",
        lambda x, y: np.greater_equal(x, y),
        lambda x, y: np.less_equal(y, x),
        reason="one canonical form, so that equal comparisons are merged",
        exact=True,
        kinds="fiub",
        example=(_X, _Y),
    ),
    Rule(
        "c & False",
        lambda c: np.bitwise_and(c, False),
        lambda c: False,
        exact=True,
        kinds="b",
        dtypes={"c": bool},
        example=(_C,),
    ),
    Rule(
        "where(c, x, x)",
        lambda c, x: np.where(c, x, x),
        lambda c, x: x,
        exact=True,
        kinds="fciub",
        dtypes={"c": bool},
        example=(_C, _X),
    ),
    Rule(
        "where(not c, x, y)",
        lambda c, x, y: np.where(np.logical_not(c), x, y),
        lambda c, x, y: np.where(c, y, x),
        exact=True,
        kinds="fciub",
        dtypes={"c": bool},
        example=(_C, _X, _Y),
    ),
    Rule(
        "where(c, where(c, x, y), z)",
        lambda c, x, y, z: np.where(c, np.where(c, x, y), z),
        lambda c, x, y, z: np.where(c, x, z),
        exact=True,
        kinds="fciub",
        dtypes={"c": bool},
        example=(_C, _X, _Y, _P),
    ),
    Rule(
        "where(c, x, where(c, y, z))",
        lambda c, x, y, z: np.where(c, x, np.where(c, y, z)),
        lambda c, x, y, z: np.where(c, x, z),
        exact=True,
        kinds="fciub",
        dtypes={"c": bool},
        example=(_C, _X, _Y, _P),
    ),
    Rule(
        "where(True, x, y)",
        lambda x, y: np.where(True, x, y),
        lambda x, y: x,
        exact=True,
        kinds="fciub",
        example=(_X, _Y),
    ),
    Rule(
        "where(False, x, y)",
        lambda x, y: np.where(False, x, y),
        lambda x, y: y,
        exact=True,
        kinds="fciub",
        example=(_X, _Y),
    ),
)


@rule(
    "x / 2**k",
    "divide",
    "number",
    reason="the reciprocal of a power of two is exact, and multiplying is faster than dividing",
    exact=True,
    example=(lambda x: x / 4.0, _X),
)
def by_power_of_two(node: Node, new: NodeBuilder) -> Node | None:
    """The product with an exact reciprocal."""
    x, y = node.args
    value, spec = new.context.number(y), new.context.spec(y)
    if new.context.spec(x).dtype.kind != "f" or not isinstance(value, int | float | np.number):
        return None
    if isinstance(value, bool) or spec.dtype.kind not in "fiu" or not np.isfinite(value):
        return None
    mantissa, _ = math.frexp(float(value))
    float_dtypes = [d for d in (new.context.spec(node).dtype, spec.dtype) if d.kind == "f"]
    reciprocal = 1.0 / float(value) if value else math.inf
    if (
        abs(mantissa) != 0.5
        or abs(value) == 1
        or not all(_is_normal(d, value) for d in float_dtypes)
    ):
        return None
    if not all(_is_normal(d, reciprocal) for d in float_dtypes) or (
        not spec.weak and spec.shape != ()
    ):
        return None
    if spec.weak:
        return new("multiply", x, reciprocal)
    return new("multiply", x, spec.dtype.type(reciprocal)) if spec.dtype.kind == "f" else None


def _is_normal(dtype: np.dtype[Any], value: Any) -> bool:
    """Whether the magnitude of a float is in the range of normal numbers of a dtype."""
    info = np.finfo(dtype)
    return bool(float(info.smallest_normal) <= abs(float(value)) <= float(info.max))


@rule(
    "group integers",
    ("add", "multiply"),
    "number",
    reason="integers wrap around, so their sums and products may be grouped in any way",
    exact=True,
    example=(lambda x: x + 3 + 4, np.arange(3)),
)
def grouped(node: Node, new: NodeBuilder) -> Node | None:
    """x + (a + b) in place of (x + a) + b, where a and b are constants."""
    context = new.context
    dtype = context.spec(node).dtype
    if dtype.kind not in "iu":
        return None
    for inner, outer in (node.args, node.args[::-1]):
        if inner.op is not node.op or context.number(outer) is None:
            continue
        for x, first in (inner.args, inner.args[::-1]):
            specs = [context.spec(a) for a in (x, first, outer)]
            if context.number(first) is None or not all(s.weak or s.dtype == dtype for s in specs):
                continue
            compute = np.add if node.op.name == "add" else np.multiply
            with np.errstate(all="ignore"):
                both = compute(*[np.asarray(context.number(a), dtype) for a in (first, outer)])[()]
            return new(node.op, x, both)
    return None


RULES = (*NEUTRAL, *SIGNS, *SELECTIONS, by_power_of_two, grouped)
