"""Assume: properties of values stated by the user.

A node of the graph, the identity on values and derivatives, which bears facts for the rules that
ask for them (value_properties.py): `x * 0.0` is zero if x is finite, `A.T` is A if A is symmetric.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.core.handle import Handle
from wengert._engine.kinds.batching import elementwise_batching
from wengert._engine.kinds.linear_map import LinearMap, linear
from wengert.errors import ArgumentError, at, user_line

from .value_properties import FACTS, checked, facts_of_value

if TYPE_CHECKING:
    from wengert._engine.core.types import Array, Operand


def _line() -> LinearMap:
    """The operation, whose name is that of what users call (below)."""

    def assume(x: Array, *, facts: tuple[str, ...]) -> Any:
        """The operand, of which the named facts are taken to hold."""
        return x

    made: LinearMap = linear(assume, oracle=lambda x, *, facts: x)
    return made


_assume = _line()
_assume.spec(lambda x, *, facts: x)
elementwise_batching(_assume)


@_assume.transpose
def _assume_back(t: Array, x: Array, *, facts: tuple[str, ...]) -> Any:
    return t


@_assume.examples
def _(rng: np.random.Generator) -> Any:
    yield (rng.normal(size=(2, 3)),), {"facts": ("finite", "number")}


def assume(x: Operand, **facts: bool) -> Any:
    """The same value, of which facts are taken to hold wherever a graph is simplified.

    Parameters
    ----------
    x : array or Tensor
    **facts
        Names with True: finite, number (no NaN), positive, nonnegative (no sign bit: 0.0, but not
        -0.0), nonzero, integer; of matrices in the last two axes symmetric, diagonal, lower, upper
        (triangular), definite (symmetric and positive definite).

    Returns
    -------
    array or Tensor
        The value itself. While a graph is built, a node that bears the facts.

    Raises
    ------
    ArgumentError
        An unknown fact; or the value is known, and it does not hold.

    Notes
    -----
    A known value is checked. In a graph the facts are believed: what is fed that contradicts them
    gives results that are wrong without a word. A guard checks at each run. Cost: none.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.rewrite import assume, simplify
    >>> f = lambda a: assume(a, symmetric=True).T @ np.ones(2)
    >>> graph = simplify(wg.trace(f)(np.eye(2)))
    >>> [n.op.name for n in graph if n.op.name == "transpose"]
    []
    """
    chosen = checked([name for name, holds in facts.items() if holds])
    checked(facts)
    if isinstance(x, Handle):
        if x.node.value is not None:
            _check(x.node.value, chosen)
        return _assume(x, facts=tuple(sorted(chosen)))
    _check(x, chosen)
    return x


def _check(value: Any, facts: frozenset[str]) -> None:
    known = facts_of_value(value, most=None)
    for fact in sorted(facts, key=FACTS.index):
        if fact not in known:
            raise ArgumentError(
                f"the value is assumed to be {fact}, but it is not. Leave out the fact, or look "
                f"where the value comes from{at(user_line())}."
            )
