"""Assume: properties of values stated by the user.

`assume` is an identity node with facts, which rewrite rules use (value_properties.py): `x * 0.0` is
zero if x is finite, `A.T` is A if A is symmetric.
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


def _operation() -> LinearMap:
    """The operation; defined in a function because users call another `assume`, below."""

    def assume(x: Array, *, facts: tuple[str, ...]) -> Any:
        """The operand, which is assumed to have the given properties."""
        return x

    operation: LinearMap = linear(assume, oracle=lambda x, *, facts: x)
    return operation


_assume = _operation()
_assume.spec(lambda x, *, facts: x)
elementwise_batching(_assume)


@_assume.transpose
def _assume_back(t: Array, x: Array, *, facts: tuple[str, ...]) -> Any:
    return t


@_assume.examples
def _(rng: np.random.Generator) -> Any:
    yield (rng.normal(size=(2, 3)),), {"facts": ("finite", "number")}


def assume(x: Operand, **facts: bool) -> Any:
    """State properties of a value that simplification may use.

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
        The value itself; while a graph is built, a node with the facts.

    Raises
    ------
    ArgumentError
        An unknown fact; or a concrete value does not have the property.

    Notes
    -----
    Concrete values are checked. In a graph there is no check, and no cost: inputs that contradict
    the facts silently give wrong results. Use `wengert.debug.guard` to check at each run.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.rewrite import assume, simplify
    >>> f = lambda a: assume(a, symmetric=True).T @ np.ones(2)
    >>> graph = simplify(wg.trace(f)(np.eye(2)))
    >>> [n.op.name for n in graph if n.op.name == "transpose"]
    []
    """
    assumed = checked([name for name, holds in facts.items() if holds])
    checked(facts)
    if isinstance(x, Handle):
        if x.node.value is not None:
            _check(x.node.value, assumed)
        return _assume(x, facts=tuple(sorted(assumed)))
    _check(x, assumed)
    return x


def _check(value: Any, facts: frozenset[str]) -> None:
    known = facts_of_value(value, max_elements=None)
    for fact in sorted(facts, key=FACTS.index):
        if fact not in known:
            raise ArgumentError(
                f"the value is assumed to be {fact}, but it is not. Omit the fact, or correct the "
                f"value{at(user_line())}."
            )
