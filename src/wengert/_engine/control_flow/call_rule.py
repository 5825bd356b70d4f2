"""Rules of custom calls: the derivative of a call, and the same for a batch.

CustomRule          the interface of a rule
BatchedRule         a rule for a batch, used by `vmap` (control_flow/batching.py)
with_batch_axis     a value repeated for the batch
transposing         a block in which a rule of forward mode is transposed
is_transposed       whether a call is in its own rule, which is transposed
without_masked_nan  a cotangent without NaN if the cotangents of the results are zero
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.autodiff.batch_graph import Pair, map_over_batch
from wengert._engine.core.handle import Handle, is_traced, shape_of, value_of, wrap
from wengert._engine.core.node import constant
from wengert._engine.core.op import lookup
from wengert._engine.core.symbolic.dim import Dim

if TYPE_CHECKING:
    from wengert._engine.core.graph_classes import Body
    from wengert._engine.core.types import Operand

Flags = tuple[bool, ...]
_transposed: ContextVar[frozenset[Any]] = ContextVar("wengert_transposed", default=frozenset())


@contextmanager
def transposing(rule: CustomRule) -> Iterator[None]:
    """A block in which a rule of forward mode is transposed."""
    token = _transposed.set(_transposed.get() | {rule.function})
    try:
        yield
    finally:
        _transposed.reset(token)


def is_transposed(function: Any) -> bool:
    """Whether the rule of a custom function is being transposed."""
    return function in _transposed.get()


class CustomRule:
    """The derivative of a call; rules with the same content compare equal.

    Attributes
    ----------
    name : str
        The function's name in messages.
    function : object or None
        The custom function that it belongs to, if any.
    has_vjp, has_jvp : bool
        Which modes it defines; a missing one is derived by transposing the other.
    """

    name: str = "a custom function"
    function: Any = None

    @property
    def __name__(self) -> str:
        """Its name in printed graphs."""
        return f"<rule of {self.name}>"

    has_vjp: bool = False
    has_jvp: bool = False

    def values(self, operands: Sequence[Any]) -> tuple[Any, ...]:
        """The results for plain operands, for a node without a body."""
        raise NotImplementedError

    def bars(
        self, operands: Sequence[Any], outs: Sequence[Any], ts: Sequence[Any], saved: Any = None
    ) -> Sequence[Any]:
        """A cotangent for each operand, None where it is zero; `ts` has None for integers.

        `saved` are the residuals that were stored when the node was recorded, if any.
        """
        raise NotImplementedError

    def needed_bars(
        self,
        operands: Sequence[Any],
        outs: Sequence[Any],
        ts: Sequence[Any],
        needed: Sequence[bool],
        saved: Any = None,
    ) -> Sequence[Any]:
        """The same, for a rule that may omit cotangents of operands that are not needed."""
        return self.bars(operands, outs, ts, saved)

    def guarded_bars(
        self,
        operands: Sequence[Any],
        outs: Sequence[Any],
        ts: Sequence[Any],
        saved: tuple[Operand, ...] | None = None,
    ) -> Sequence[Any]:
        """The same with strong zeros: products with cotangents that are zero are zero."""
        return [
            without_masked_nan(cotangent, ts) for cotangent in self.bars(operands, outs, ts, saved)
        ]

    def dots(
        self, operands: Sequence[Any], outs: Sequence[Any], dots: Sequence[Any]
    ) -> Sequence[Any]:
        """A tangent for each result; None means zero, here and in the operands' `dots`."""
        raise NotImplementedError

    def check(self, specs: Sequence[Any], outs: Sequence[Any]) -> None:
        """Raise if the rule does not support operands and results of these specs."""

    def refuse(self, wanted: Sequence[bool]) -> None:
        """Raise if there is no derivative with respect to one of the wanted operands."""

    def for_batch(self, flags: tuple[bool, ...]) -> CustomRule:
        """The rule for a batch; `flags`: which operands have a batch axis; all results have one."""
        return BatchedRule(self, flags)

    def body_for_batch(self, body: Body, captured: int) -> Body:
        """A body with the same inputs and results that runs for the elements of a batch."""
        return body

    def missing(self) -> str:
        """What to do if it defines neither mode, for an error message."""
        return "Give it a rule"


class BatchedRule(CustomRule):
    """A rule applied to each element of a batch.

    Parameters
    ----------
    rule : CustomRule
        For one element of the batch.
    flags : tuple of bool
        Which operands have a batch axis. All results have one.
    """

    def __init__(self, rule: CustomRule, flags: Flags) -> None:
        self.rule, self.flags = rule, flags
        self.name = f"vmap of {rule.name}"
        self.has_vjp, self.has_jvp = rule.has_vjp, rule.has_jvp
        self.refuse = rule.refuse  # type: ignore[method-assign]

    def __eq__(self, other: object) -> bool:
        return type(other) is BatchedRule and (self.rule, self.flags) == (other.rule, other.flags)

    def __hash__(self) -> int:
        return hash((self.rule, self.flags))

    @property
    def size_names(self) -> frozenset[str]:
        """The symbolic sizes in the rule for one element."""
        return getattr(self.rule, "size_names", frozenset())

    def at_sizes(self, sizes: dict[Any, Any]) -> CustomRule:
        """The same rule with numbers for symbolic sizes."""
        inner = getattr(self.rule, "at_sizes", None)
        return self if inner is None else BatchedRule(inner(sizes), self.flags)

    def missing(self) -> str:
        """What to do if the rule for one element defines neither mode."""
        return self.rule.missing()

    def bars(
        self, operands: Sequence[Any], outs: Sequence[Any], ts: Sequence[Any], saved: Any = None
    ) -> list[Any]:
        """The cotangents for each element; those of unbatched operands are summed."""
        return self._pulled(self.rule.bars, operands, outs, ts)

    def guarded_bars(
        self, operands: Sequence[Any], outs: Sequence[Any], ts: Sequence[Any], saved: Any = None
    ) -> list[Any]:
        """The same with strong zeros for each element."""
        return self._pulled(self.rule.guarded_bars, operands, outs, ts)

    def _pulled(
        self, rule: Callable[..., Any], operands: Any, outs: Any, ts: Sequence[Any]
    ) -> list[Any]:
        size = shape_of(outs[0])[0]
        pairs = self._mapped(rule, [(operands, self.flags), (outs, None), (ts, None)], size)
        cotangents: list[Any] = []
        for pair, is_batched in zip(pairs, self.flags, strict=True):
            cotangent = None if pair is None else with_batch_axis(pair, size)
            cotangents.append(
                cotangent if cotangent is None or is_batched else lookup("sum")(cotangent, axis=0)
            )
        return cotangents

    def dots(self, operands: Sequence[Any], outs: Sequence[Any], dots: Sequence[Any]) -> list[Any]:
        """The tangents for each element."""
        size = shape_of(outs[0])[0]

        def for_element(operands: list[Any], outs: list[Any], dots: list[Any]) -> Sequence[Any]:
            return self.rule.dots(operands, outs, dots)

        groups = [(operands, self.flags), (outs, None), (dots, self.flags)]
        pairs = self._mapped(for_element, groups, size)
        return [None if pair is None else with_batch_axis(pair, size) for pair in pairs]

    def _mapped(
        self,
        fun: Callable[..., Any],
        groups: Sequence[tuple[Sequence[Any], Flags | None]],
        size: Any,
    ) -> list[Any]:
        """For each result of a function of one element: (value, is batched), or None."""
        batched, positions = [], []
        for g, (xs, flags) in enumerate(groups):
            for k, x in enumerate(xs):
                if x is not None and (flags is None or flags[k]):
                    batched.append(x)
                    positions.append((g, k))
        present: list[bool] = []

        def row(*handles: Any) -> list[Any]:
            inner = [list(xs) for xs, _ in groups]
            for (g, k), handle in zip(positions, handles, strict=True):
                inner[g][k] = handle
            results = fun(*inner)
            present[:] = [x is not None for x in results]
            return [x for x in results if x is not None]

        pairs = iter(map_over_batch(row, batched, size, self.name))
        return [next(pairs) if is_present else None for is_present in present]


def with_batch_axis(pair: Pair, size: Any) -> Any:
    """The value of a pair, repeated for the batch if it has no batch axis."""
    x, is_batched = pair
    if is_batched:
        return x
    if isinstance(size, Dim) and not isinstance(x, Handle):
        x = wrap(constant(x))
    return lookup("broadcast_to")(x, shape=(size, *shape_of(x)))


def without_masked_nan(cotangent: Any, ts: Sequence[Any]) -> Any:
    """A cotangent, with 0 for NaN if all cotangents of the results are zero."""
    if cotangent is None:
        return None
    nonzero_candidates = [t for t in ts if t is not None]
    if not any(map(is_traced, (cotangent, *nonzero_candidates))):
        if (
            any(np.any(value_of(t)) for t in nonzero_candidates)
            or not np.isnan(value_of(cotangent)).any()
        ):
            return cotangent
        return np.zeros_like(value_of(cotangent))
    all_zero: Any = np.True_
    for t in nonzero_candidates:
        is_zero = lookup("logical_not")(lookup("any")(lookup("not_equal")(t, 0)))
        all_zero = lookup("logical_and")(all_zero, is_zero)
    return lookup("where")(
        lookup("logical_and")(all_zero, lookup("isnan")(cotangent)), 0.0, cotangent
    )
