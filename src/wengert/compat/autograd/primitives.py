"""Primitives: opaque functions with user-defined derivatives.

    primitive                             the decorator
    rules_of                              the rules of a primitive
    primitive_vjps, primitive_jvps        those of all primitives, by primitive
    notrace_primitive, register_notrace   no derivative

extend.py defines rules.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Iterator, MutableMapping
from typing import Any

from wengert._engine.core import pytree
from wengert._engine.core.handle import value_of

from ...errors import RegistryError, at, user_line
from .traced_call import PrimitiveRules, call_primitive

__all__ = [
    "Function",
    "RuleTable",
    "notrace_primitive",
    "primitive",
    "primitive_jvps",
    "primitive_vjps",
    "register_notrace",
    "rules_of",
]

Function = Callable[..., Any]
_PRIMITIVES: weakref.WeakSet[Function] = weakref.WeakSet()


class RuleTable(MutableMapping[Function, Function]):
    """The rules of one mode of all primitives, by primitive: `primitive_vjps` or `primitive_jvps`.

    NumPy's and SciPy's functions are not primitives here and have no entries.
    """

    def __init__(self, mode: str) -> None:
        self._mode = mode

    def __getitem__(self, fun: Function) -> Function:
        rules = getattr(fun, "rules", None)
        found = getattr(rules, self._mode) if isinstance(rules, PrimitiveRules) else None
        if found is None:
            raise KeyError(fun)
        return found  # type: ignore[no-any-return]

    def __setitem__(self, fun: Function, rule: Function) -> None:
        setattr(rules_of(fun), self._mode, rule)

    def __delitem__(self, fun: Function) -> None:
        self[fun]
        setattr(rules_of(fun), self._mode, None)

    def __iter__(self) -> Iterator[Function]:
        return iter([fun for fun in _PRIMITIVES if getattr(rules_of(fun), self._mode) is not None])

    def __len__(self) -> int:
        return len(list(iter(self)))


primitive_vjps = RuleTable("vjp")
primitive_jvps = RuleTable("jvp")


def primitive(f_raw: Function) -> Function:
    """Make a function an opaque operation with user-defined derivatives (a decorator).

    Examples
    --------
    >>> import wengert.compat.autograd.numpy as np
    >>> from wengert.compat.autograd import grad
    >>> from wengert.compat.autograd.extend import defvjp, primitive
    >>> @primitive
    ... def cube(x):
    ...     return x**3
    >>> defvjp(cube, lambda ans, x: lambda g: g * 3 * x**2)
    >>> float(grad(cube)(2.0)), float(grad(grad(cube))(2.0))
    (12.0, 12.0)
    """
    rules = PrimitiveRules(getattr(f_raw, "__name__", "a function"))

    @functools.wraps(f_raw, updated=())
    def f_wrapped(*args: Any, **kwargs: Any) -> Any:
        return call_primitive(f_raw, rules, args, kwargs)

    f_wrapped.fun = f_raw  # type: ignore[attr-defined]
    f_wrapped.rules = rules  # type: ignore[attr-defined]
    _PRIMITIVES.add(f_wrapped)
    return f_wrapped


def rules_of(fun: Any) -> PrimitiveRules:
    """The rules of a primitive.

    Raises
    ------
    RegistryError
        `fun` is not a primitive.
    """
    rules = getattr(fun, "rules", None)
    if not isinstance(rules, PrimitiveRules):
        raise RegistryError(
            f"{getattr(fun, '__name__', fun)!r} is not a primitive, so it cannot have rules. "
            f"Decorate it with @primitive first{at(user_line())}."
        )
    return rules


# ---- no derivative -------------------------------------------------------------------------------


def notrace_primitive(f_raw: Function) -> Function:
    """Make a function an opaque operation whose result is a constant (a decorator)."""

    @functools.wraps(f_raw, updated=())
    def f_wrapped(*args: Any, **kwargs: Any) -> Any:
        return f_raw(*pytree.tree_map(value_of, args), **pytree.tree_map(value_of, kwargs))

    return f_wrapped


def register_notrace(trace_type: Any, primitive_fun: Function) -> None:
    """Define the derivative of a primitive as zero, in both modes."""
    rules = rules_of(primitive_fun)
    rules.vjp = lambda argnums, ans, args, kwargs: lambda g: (None,) * len(argnums)
    rules.jvp = lambda argnums, gs, ans, args, kwargs: None
