"""``and``, ``or``, ``not`` and chained comparisons of values that may be traced.

As in Python, the result of ``and`` and ``or`` is one of the operands, and the second operand is
evaluated only if it is needed.

    and_, or_, not_, chain
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from wengert._engine.core.handle import is_traced
from wengert._engine.core.op import lookup

from .branches import if_expression
from .filled_lists import tested
from .values import as_bool

Thunk = Callable[[], Any]


def and_(first: object, second: Thunk) -> Any:
    """``first and second``."""
    if not is_traced(tested(first)):
        return first and second()
    return if_expression(first, second, lambda: first)


def or_(first: object, second: Thunk) -> Any:
    """``first or second``."""
    if not is_traced(tested(first)):
        return first or second()
    return if_expression(first, lambda: first, second)


def not_(x: object) -> Any:
    """``not x``."""
    x = tested(x)
    return lookup("logical_not")(as_bool(x)) if is_traced(x) else not x


_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
    "is": operator.is_,
    "is not": operator.is_not,
    "in": lambda a, b: a in b,
    "not in": lambda a, b: a not in b,
}


def chain(first: object, *links: tuple[str, Thunk]) -> Any:
    """``first < second < third``; each operand is evaluated at most once."""
    (symbol, thunk), *rest = links
    second = thunk()
    result = _COMPARISONS[symbol](first, second)
    return and_(result, lambda: chain(second, *rest)) if rest else result
