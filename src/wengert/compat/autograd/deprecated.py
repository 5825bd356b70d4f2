"""Definitions of rules by methods of a primitive, from autograd before version 1.2.

    primitive    a primitive with the methods `defvjp`, `defvjp_is_zero` and `defgrad`

They warn as in autograd.  `extend.primitive` has no such methods.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from typing import Any

from . import primitives
from .extend import defvjp
from .primitives import Function
from .vspace import vspace

__all__ = ["primitive"]


def primitive(f_raw: Function) -> Function:
    """Make a function an opaque operation with user-defined derivatives (a decorator).

    As `extend.primitive`, with autograd's old methods to define rules.

    Examples
    --------
    >>> import wengert.compat.autograd.numpy as np
    >>> from wengert.compat.autograd import grad, primitive
    >>> from wengert.compat.autograd.extend import defvjp
    >>> @primitive
    ... def cube(x):
    ...     return x**3
    >>> defvjp(cube, lambda ans, x: lambda g: g * 3 * x**2)
    >>> float(grad(cube)(2.0))
    12.0
    """
    wrapped: Any = primitives.primitive(f_raw)
    rules: dict[int, Function | None] = {}

    def define(name: str, argnums: Iterable[int], rule: Function | None) -> None:
        warnings.warn(
            f"The method {name} of a primitive is deprecated in autograd. Use "
            "wengert.compat.autograd.extend.defvjp.",
            stacklevel=3,
        )
        rules.update(dict.fromkeys(argnums, rule))
        defvjp(wrapped, *rules.values(), argnums=tuple(rules))

    def by_value(vjp: Callable[..., Any], argnum: int = 0) -> None:
        def maker(ans: Any, *args: Any, **kwargs: Any) -> Function:
            space = vspace(args[argnum])
            return lambda g: vjp(g, ans, space, vspace(g), *args, **kwargs)

        define("defvjp", [argnum], maker)

    wrapped.defvjp = by_value
    wrapped.defvjp_is_zero = lambda argnums=(0,): define("defvjp_is_zero", argnums, None)
    wrapped.defgrad = lambda maker, argnum=0: define("defgrad", [argnum], maker)
    return wrapped  # type: ignore[no-any-return]
