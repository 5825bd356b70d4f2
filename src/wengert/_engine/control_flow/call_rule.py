"""Rules of custom calls: the derivative of a call, and the same for a batch.

CustomRule       the interface of a rule
BatchedRule      a rule for a batch, used by `vmap` (control_flow/batching.py)
with_batch_axis  a value repeated for the batch
spared           a cotangent without NaN if the cotangents of the results are zero
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.autodiff.batch_graph import Pair, map_over_batch
from wengert._engine.core.handle import Handle, is_traced, shape_of, value_of, wrap
from wengert._engine.core.node import constant
from wengert._engine.core.op import lookup
from wengert._engine.core.symbolic.dim import Dim

if TYPE_CHECKING:
    from wengert._engine.core.types import Operand

Flags = tuple[bool, ...]


class CustomRule:
    """The derivative of a call; equal to another rule of the same content.

    Attributes
    ----------
    name : str
        The function's name in messages.
    has_vjp, has_jvp : bool
        The modes it defines; the missing one is the transpose of the other.
    """

    name: str = "a custom function"

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

    def guarded_bars(
        self,
        operands: Sequence[Any],
        outs: Sequence[Any],
        ts: Sequence[Any],
        saved: tuple[Operand, ...] | None = None,
    ) -> Sequence[Any]:
        """The same with strong zeros: products with zero cotangents are zero."""
        return [spared(bar, ts) for bar in self.bars(operands, outs, ts, saved)]

    def dots(
        self, operands: Sequence[Any], outs: Sequence[Any], dots: Sequence[Any]
    ) -> Sequence[Any]:
        """A tangent for each result, None where it is zero, as in `dots` for the operands."""
        raise NotImplementedError

    def check(self, specs: Sequence[Any], outs: Sequence[Any]) -> None:
        """Refuse operands and results of these specs if the rule does not support them."""

    def for_batch(self, flags: tuple[bool, ...]) -> CustomRule:
        """The rule for a batch; `flags`: which operands have a batch axis; all results have one."""
        return BatchedRule(self, flags)

    def missing(self) -> str:
        """The advice if it defines neither mode, for an error message."""
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

    def __eq__(self, other: object) -> bool:
        return type(other) is BatchedRule and (self.rule, self.flags) == (other.rule, other.flags)

    def __hash__(self) -> int:
        return hash((self.rule, self.flags))

    @property
    def size_names(self) -> frozenset[str]:
        """The symbolic sizes in the rule for one element."""
        return getattr(self.rule, "size_names", frozenset())

    def at_sizes(self, sizes: dict[Any, Any]) -> CustomRule:
        """The same with numbers for symbolic sizes."""
        inner = getattr(self.rule, "at_sizes", None)
        return self if inner is None else BatchedRule(inner(sizes), self.flags)

    def missing(self) -> str:
        """As for one element."""
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
        self, of_row: Callable[..., Any], operands: Any, outs: Any, ts: Sequence[Any]
    ) -> list[Any]:
        size = shape_of(outs[0])[0]
        found = self._mapped(of_row, [(operands, self.flags), (outs, None), (ts, None)], size)
        bars: list[Any] = []
        for pair, has_rows in zip(found, self.flags, strict=True):
            bar = None if pair is None else with_batch_axis(pair, size)
            bars.append(bar if bar is None or has_rows else lookup("sum")(bar, axis=0))
        return bars

    def dots(self, operands: Sequence[Any], outs: Sequence[Any], dots: Sequence[Any]) -> list[Any]:
        """The tangents for each element."""
        size = shape_of(outs[0])[0]

        def of_row(operands: list[Any], outs: list[Any], dots: list[Any]) -> Sequence[Any]:
            return self.rule.dots(operands, outs, dots)

        groups = [(operands, self.flags), (outs, None), (dots, self.flags)]
        found = self._mapped(of_row, groups, size)
        return [None if pair is None else with_batch_axis(pair, size) for pair in found]

    def _mapped(
        self,
        fun: Callable[..., Any],
        groups: Sequence[tuple[Sequence[Any], Flags | None]],
        size: Any,
    ) -> list[Any]:
        """The value of each result of a function of one element, and whether it is batched."""
        columns, places = [], []
        for g, (xs, flags) in enumerate(groups):
            for k, x in enumerate(xs):
                if x is not None and (flags is None or flags[k]):
                    columns.append(x)
                    places.append((g, k))
        live: list[bool] = []

        def row(*handles: Any) -> list[Any]:
            inner = [list(xs) for xs, _ in groups]
            for (g, k), handle in zip(places, handles, strict=True):
                inner[g][k] = handle
            found = fun(*inner)
            live[:] = [x is not None for x in found]
            return [x for x in found if x is not None]

        pairs = iter(map_over_batch(row, columns, size, self.name))
        return [next(pairs) if is_live else None for is_live in live]


def with_batch_axis(pair: Pair, size: Any) -> Any:
    """The value of a pair, repeated for the batch if it has no batch axis."""
    x, has_rows = pair
    if has_rows:
        return x
    if isinstance(size, Dim) and not isinstance(x, Handle):
        x = wrap(constant(x))
    return lookup("broadcast_to")(x, shape=(size, *shape_of(x)))


def spared(bar: Any, ts: Sequence[Any]) -> Any:
    """A cotangent, with 0 for NaN if all cotangents of the results are zero."""
    if bar is None:
        return None
    live = [t for t in ts if t is not None]
    if not any(map(is_traced, (bar, *live))):
        if any(np.any(value_of(t)) for t in live) or not np.isnan(value_of(bar)).any():
            return bar
        return np.zeros_like(value_of(bar))
    nothing: Any = np.True_
    for t in live:
        is_zero = lookup("logical_not")(lookup("any")(lookup("not_equal")(t, 0)))
        nothing = lookup("logical_and")(nothing, is_zero)
    return lookup("where")(lookup("logical_and")(nothing, lookup("isnan")(bar)), 0.0, bar)
