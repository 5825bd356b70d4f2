"""``and``, ``or``, ``not`` and chained comparisons of values that may be traced.

As in Python, the result of ``and`` and ``or`` is one of the operands, and the second operand is
evaluated only if it is needed.

    and_, or_, not_, chain, contained
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from wengert._engine.core.handle import Handle, is_traced, value_of
from wengert._engine.core.op import lookup
from wengert._engine.core.symbolic.dim import Comparisons
from wengert.errors import at, user_place

from .branches import if_expression
from .filled_lists import tested
from .values import as_bool, number_of

Comparisons.of_users.add(__file__)  # `x.shape in ((2, 2), (3, 3))` is compared here

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


def contained(x: Any, container: Any) -> Any:
    """``x in container``, for traced numbers in a range, a sequence or an array."""
    if isinstance(container, Handle):
        if is_traced(x) or is_traced(container):
            return lookup("any")(container == x, axis=None)
        return x in value_of(container)
    if type(container) is range and is_traced(x):
        first, last, step = container[:1] or [0], container[-1:] or [-1], container.step
        ends = (first[0], last[0]) if step > 0 else (last[0], first[0])
        inside = lookup("logical_and")(x >= ends[0], x <= ends[1])
        return lookup("logical_and")(inside, (x - first[0]) % step == 0)
    values = container if isinstance(container, list | tuple | set | frozenset | dict) else ()
    if not any(is_traced(v) for v in (x, *values)):
        return x in container or number_of(x) in container
    found: Any = np.False_
    for value in values:
        if value is x:
            return True
        same = value == x
        if not isinstance(same, bool | np.bool_ | Handle) or (
            isinstance(same, Handle) and same.node.spec.shape
        ):
            raise ValueError(
                "The truth of an array with more than one element is ambiguous. Use a.any() or "
                f"a.all(){at(user_place())}."
            )
        if not isinstance(same, Handle):
            if same:
                return True
            continue
        found = lookup("logical_or")(found, same)
    return found


_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
    "is": operator.is_,
    "is not": operator.is_not,
    "in": lambda a, b: contained(a, b),
    "not in": lambda a, b: not_(contained(a, b)),
}


def chain(first: object, *links: tuple[str, Thunk]) -> Any:
    """``first < second < third``; each operand is evaluated at most once."""
    (symbol, thunk), *rest = links
    second = thunk()
    result = _COMPARISONS[symbol](first, second)
    return and_(result, lambda: chain(second, *rest)) if rest else result
