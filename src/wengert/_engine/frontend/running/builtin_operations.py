"""Operators and built-in functions of values that may be traced.

``and``, ``or``, ``not`` and chained comparisons of values that may be traced.

As in Python, the result of ``and`` and ``or`` is one of the operands, and the second operand is
evaluated only if it is needed.

    and_, or_, not_, chain, contained

Built-in functions that loop over a traced array, or over a list that a loop has filled.

They are written as Python loops, and rewritten as user functions are; short loops are unrolled.

sum_, any_, all_, filter_, min_, max_   the functions
looped                         one of them, rewritten
register_rewriter              set the function that rewrites them

Sorting: ``sorted``, ``list.sort``, ``min`` and ``max`` with keys, of traced numbers.

sorted_      ``sorted``: the elements in the order of traced keys
sort_list    ``list.sort``
extreme_by   ``min`` or ``max`` with a key

What is known about a loop before it is traced.

LoopFacts     facts from static analysis, which the rewritten code passes
stopped       whether a flag is set that ends the loop
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterable, Sequence
from types import FunctionType
from typing import Any, NamedTuple

import numpy as np

from wengert._engine.core.conversion_hook import converted
from wengert._engine.core.handle import Handle, is_traced, value_of, wrap
from wengert._engine.core.loop_rows import RowBlock, rows_of
from wengert._engine.core.node import constant
from wengert._engine.core.op import lookup
from wengert._engine.core.spec import Spec
from wengert._engine.core.symbolic.dim import Comparisons
from wengert._engine.frontend.state import UNBOUND, NotTraceable, SharedVariables, Speculation
from wengert.errors import TraceError, at, user_place

from .branches import if_expression
from .filled_lists import tested
from .iterables import is_unknown_length
from .values import PartitionedValue, as_bool, cast, joined_spec, number_of, spec_of

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


class _Rewriter:
    """The function that rewrites functions; it is defined in a module that imports this package."""

    rewritten: Callable[[FunctionType], FunctionType | None]


def register_rewriter(rewritten: Callable[[FunctionType], FunctionType | None]) -> None:
    """Set the function that rewrites functions."""
    _Rewriter.rewritten = staticmethod(rewritten)


@functools.cache
def looped(function: FunctionType) -> Callable[..., Any]:
    """One of these functions, rewritten."""
    return _Rewriter.rewritten(function) or function


def sum_(values: Iterable[Any], total: Any) -> Any:
    """``sum(values, total)``."""
    for value in values:
        total = total + value
    return total


def any_(values: Iterable[Any]) -> bool:
    """``any(values)``."""
    for value in values:  # noqa: SIM110
        if value:
            return True
    return False


def all_(values: Iterable[Any]) -> bool:
    """``all(values)``."""
    for value in values:  # noqa: SIM110
        if not value:
            return False
    return True


def filter_(condition: Callable[[Any], Any], values: Iterable[Any]) -> list[Any]:
    """``filter(condition, values)``, as a list."""
    chosen = []
    for value in values:
        if condition(value):
            chosen.append(value)
    return chosen


def min_(values: Sequence[Any]) -> Any:
    """``min(values)``."""
    best = values[0]
    for value in values[1:]:
        if value < best:
            best = value
    return best


def max_(values: Sequence[Any]) -> Any:
    """``max(values)``."""
    best = values[0]
    for value in values[1:]:
        if value > best:
            best = value
    return best


Key = Callable[[Any], Any]


def sorted_(values: Iterable[Any], *, key: Key | None = None, reverse: bool = False) -> list[Any]:
    """The elements of an iterable in order, whose keys may be traced numbers."""
    if is_unknown_length(values) and key is None:
        in_order: Any = np.sort(values)  # type: ignore[call-overload]
        return in_order[::-1] if reverse else in_order  # type: ignore[no-any-return]
    elements, keys = _keyed(values, key)
    if not any(is_traced(x) for key in keys for x in _numbers(key)):
        order = sorted(range(len(keys)), key=keys.__getitem__, reverse=reverse)
        found = [elements[k] for k in order]
    else:
        found = _in_order(elements, keys, bool(reverse))
    Speculation.note_new(found)
    return found


def sort_list(values: list[Any], *, key: Key | None = None, reverse: bool = False) -> None:
    """Sort a list in place."""
    Speculation.note_change(values)
    values[:] = sorted_(values, key=key, reverse=reverse)


def _keyed(values: Iterable[Any], key: Key | None) -> tuple[list[Any], list[Any]]:
    elements = list(values)
    if key is None:
        return elements, elements
    function = converted(key)
    return elements, [function(v) for v in elements]


def _numbers(key: Any) -> Sequence[Any]:
    """The numbers of a key, in the order in which they are compared."""
    return key if isinstance(key, tuple) else (key,)


def _in_order(elements: list[Any], keys: list[Any], reverse: bool) -> list[Any]:
    parts = [PartitionedValue.of(v) for v in elements]
    try:
        rows = [_numbers(k) for k in keys]
        if any(spec_of(x) is None or np.shape(x) for row in rows for x in row):
            raise NotTraceable("a key is not a number, or a tuple of numbers")
        if len(set(map(len, rows))) > 1:
            raise NotTraceable("the keys are tuples of different lengths")
        for other in parts[1:]:
            parts[0].check_like(other, "an element")
        specs = list(parts[0].specs)
        for other in parts[1:]:
            pairs = zip(specs, other.specs, strict=True)
            specs = [joined_spec(a, b, "an element") for a, b in pairs]
    except NotTraceable as error:
        raise TraceError(
            f"sorting by values that are not known while a graph is built: {error}. Sort numbers, "
            f"or arrays and tuples of one structure, or use np.sort and np.argsort"
            f"{at(user_place())}."
        ) from None
    # Elements with equal keys stay in their order, in reverse order too.
    order: Any = None
    for column in list(zip(*(rows[::-1] if reverse else rows), strict=True))[::-1]:
        numbers: Any = np.stack(column)
        if order is None:
            order = np.argsort(numbers, kind="stable")
        else:
            order = order[np.argsort(numbers[order], kind="stable")]
    if reverse:
        order = (len(keys) - 1 - order)[::-1]
    columns = []
    for spec, *leaves in zip(specs, *[p.numeric_leaves for p in parts], strict=True):
        made: Any = np.stack([cast(x, Spec(spec.shape, spec.dtype)) for x in leaves])
        made = made if isinstance(made, Handle) else wrap(constant(made))
        columns.append(list(rows_of(RowBlock(len(leaves), made[order], spec.weak))))
    return [parts[0].rebuild([c[k] for c in columns]) for k in range(len(elements))]


def extreme_by(name: str, values: Iterable[Any], key: Key) -> Any:
    """``min`` or ``max`` of values with a key."""
    elements, keys = _keyed(values, key)
    if not any(map(is_traced, keys)):
        position = (min if name == "min" else max)(range(len(keys)), key=keys.__getitem__)
        return elements[position]
    best, best_key = elements[0], keys[0]
    for other, other_key in zip(elements[1:], keys[1:], strict=True):
        better = other_key < best_key if name == "min" else other_key > best_key
        best, best_key = if_expression(
            better,
            functools.partial(_pair, other, other_key),
            functools.partial(_pair, best, best_key),
        )
    return best


def _pair(x: Any, y: Any) -> Any:
    return x, y


class LoopFacts(NamedTuple):
    """Facts about a loop from static analysis.

    Attributes
    ----------
    assigned : tuple of str
        The variables that the body assigns.
    carried : tuple of str
        Those that an iteration may read before it assigns them.
    live : tuple of str
        Those that may be read after the loop.
    updated : tuple of str
        Those that are only assigned by augmented assignments, as ``x += y``.
    stored : tuple of str
        The variables with elements that the body assigns.
    stops : tuple of str
        The flags that end the loop (rewriting/exits.py).
    size : int
        The number of statements in the body.
    refusal : str or None
        Why the loop cannot be traced.
    filled : tuple of str
        The lists, created before the loop, to which it appends (rewriting/list_appends.py).
    """

    assigned: tuple[str, ...]
    carried: tuple[str, ...]
    live: tuple[str, ...]
    updated: tuple[str, ...]
    stored: tuple[str, ...]
    stops: tuple[str, ...]
    size: int
    refusal: str | None
    filled: tuple[str, ...] = ()


def _identity(x: object) -> object:
    return x


def stopped(facts: LoopFacts, variables: SharedVariables) -> Any:
    """Whether a flag that ends the loop is set; may be traced."""
    is_stopped: Any = False
    for name in facts.stops:
        value = _value_of(variables, name)
        if value is not UNBOUND and value is not False:
            is_stopped = or_(is_stopped, functools.partial(_identity, value))
    return is_stopped


def _value_of(variables: SharedVariables, name: str) -> Any:
    return SharedVariables.read(variables).get(name, UNBOUND)
