"""Functions with custom derivatives.

    primitive                                  an opaque function (primitives.py)
    defvjp, defvjp_argnum, defvjp_argnums      its rules in reverse mode
    defjvp, defjvp_argnum, defjvp_argnums      its rules in forward mode
    def_linear                                 linear in each argument
    notrace_primitive, register_notrace        no derivative
    vspace, VSpace, Box                        vspace.py, tracer.py
    primitive_vjps, primitive_jvps             the rules, by primitive

Rules of one mode suffice: wengert derives the other.  Rules written with NumPy functions can be
differentiated again.  For complex numbers they follow autograd's convention, g times f'(z).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ...errors import at, user_line
from .errors import NoRuleError
from .primitives import (
    Function,
    notrace_primitive,
    primitive,
    primitive_jvps,
    primitive_vjps,
    register_notrace,
    rules_of,
)
from .tracer import Box
from .vspace import VSpace, vspace

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
    "notrace_primitive",
    "primitive",
    "primitive_jvps",
    "primitive_vjps",
    "register_notrace",
    "vspace",
]

# ---- reverse mode --------------------------------------------------------------------------------


def defvjp_argnums(fun: Function, vjpmaker: Function) -> None:
    """Define the rule for several arguments: ``vjpmaker(argnums, ans, args, kwargs)(g)``.

    It returns one cotangent for each of `argnums`.
    """
    rules_of(fun).vjp = vjpmaker


def defvjp_argnum(fun: Function, vjpmaker: Function) -> None:
    """Define the rule for one argument: ``vjpmaker(argnum, ans, args, kwargs)(g)``."""

    def for_several(argnums: Sequence[int], *given: Any) -> Function:
        pulls = [vjpmaker(argnum, *given) for argnum in argnums]
        return lambda g: tuple([pull(g) for pull in pulls])

    defvjp_argnums(fun, for_several)


def defvjp(
    fun: Function, *vjpmakers: Function | None, argnums: Iterable[int] | None = None
) -> None:
    """Define the rules: for each argument ``vjpmaker(ans, *args, **kwargs)(g)``.

    Parameters
    ----------
    fun : a primitive
    *vjpmakers : callable or None
        None if the derivative is zero.
    argnums : sequence of int, optional
        The arguments of the rules; by default the first ones.
    """
    makers = dict(
        zip(range(len(vjpmakers)) if argnums is None else argnums, vjpmakers, strict=False)
    )

    def for_one(argnum: int, ans: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Function:
        if argnum not in makers:
            raise NoRuleError(
                f"VJP of {rules_of(fun).name} with respect to argument {argnum} is not defined. "
                "Pass a rule for it to defvjp, or None if the derivative is zero"
                f"{at(user_line())}."
            )
        maker = makers[argnum]
        return _nothing if maker is None else maker(ans, *args, **kwargs)

    defvjp_argnum(fun, for_one)


def _nothing(g: Any) -> None:
    """The cotangent of an argument without derivative."""


# ---- forward mode --------------------------------------------------------------------------------


def defjvp_argnums(fun: Function, jvpmaker: Function) -> None:
    """Define the forward rule: ``jvpmaker(argnums, gs, ans, args, kwargs)``, the full tangent."""
    rules_of(fun).jvp = jvpmaker


def defjvp_argnum(fun: Function, jvpmaker: Function) -> None:
    """Define the forward rule of one argument: ``jvpmaker(argnum, g, ans, args, kwargs)``."""

    def for_several(argnums: Sequence[int], gs: Sequence[Any], *given: Any) -> Any:
        total = None
        for argnum, g in zip(argnums, gs, strict=True):
            term = jvpmaker(argnum, g, *given)
            if term is not None:
                total = term if total is None else vspace(term).add(total, term)
        return total

    defjvp_argnums(fun, for_several)


def defjvp(fun: Function, *jvpfuns: Any, argnums: Iterable[int] | None = None) -> None:
    """Define the forward rules: for each argument ``jvpfun(g, ans, *args, **kwargs)``.

    Parameters
    ----------
    fun : a primitive
    *jvpfuns : callable, "same" or None
        "same" if `fun` is linear in that argument: the rule is `fun` itself.
    argnums : sequence of int, optional
        The arguments of the rules; by default the first ones.
    """
    rules = dict(zip(range(len(jvpfuns)) if argnums is None else argnums, jvpfuns, strict=False))

    def for_one(argnum: int, g: Any, ans: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        if argnum not in rules:
            raise NoRuleError(
                f"JVP of {rules_of(fun).name} by argument {argnum} is not defined. Give defjvp a "
                f"rule for it, or None if its derivative is zero{at(user_line())}."
            )
        rule = rules[argnum]
        if rule == "same":
            return fun(*args[:argnum], g, *args[argnum + 1 :], **kwargs)
        return None if rule is None else rule(g, ans, *args, **kwargs)

    defjvp_argnum(fun, for_one)
    rules_of(fun).is_linear = "same" in rules.values()


def def_linear(fun: Function) -> None:
    """Declare a primitive linear in each of its arguments.

    Its tangent is the function itself. Its transpose is computed column by column; for arguments
    with many elements define a rule with `defvjp`.
    """
    defjvp_argnum(
        fun,
        lambda argnum, g, ans, args, kwargs: fun(*args[:argnum], g, *args[argnum + 1 :], **kwargs),
    )
    rules_of(fun).is_linear = True
