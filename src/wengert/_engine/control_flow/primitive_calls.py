"""Primitive calls: a call of a primitive in a graph, whose rule is looked up when needed.

A primitive is a function of arrays with registered rules (wengert.extend.primitive).  Rules that
are registered after the call was recorded are used too.

    PrimitiveFunction    a primitive with its static parameters, as a function with a rule
    PrimitiveCall        one call of it
    is_primitive         whether an operation is a primitive
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.core import pytree
from wengert._engine.core.static_params import frozen, sizes_of, substituted
from wengert.errors import (
    NotDifferentiableError,
    RuleError,
    WengertError,
    at,
    rule_failed,
    user_line,
)

from .custom_calls import BoundRule

if TYPE_CHECKING:
    from wengert._engine.core.types import Array
    from wengert._engine.kinds.opaque import Opaque

_OPERAND = np.zeros(())  # marks an operand


class PrimitiveFunction:
    """A primitive with its static parameters, as a function with a rule."""

    kind = "primitive"

    def __init__(self, op: Any, params: dict[str, Any]) -> None:
        self.op, self.params, self.name = op, params, op.name
        self._key = op, frozen(params)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PrimitiveFunction) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def has_vjp(self) -> bool:
        """Whether a reverse rule has been registered."""
        return self.op.vjp_rule is not None

    @property
    def has_jvp(self) -> bool:
        """Whether a forward rule has been registered."""
        return self.op.jvp_rule is not None

    def fun(self, *args: Any) -> Any:
        """The value."""
        return self.op.function(*args, **self.params)

    def full(self, nondiff: Sequence[Any], differentiable: Sequence[Any]) -> list[Any]:
        """All operands."""
        return list(differentiable)


class PrimitiveCall(BoundRule):
    """The rule of one call of a primitive."""

    @classmethod
    def of(
        cls,
        op: Opaque,
        params: dict[str, Any],
        slots: list[int],
        static: list[Any],
        count: int | None,
    ) -> PrimitiveCall:
        """Rebuild the rule of a saved call of a primitive."""
        leaves = [_OPERAND if k in slots else x for k, x in enumerate(static)]
        call = cls(PrimitiveFunction(op, params), (), leaves, pytree.flatten((0,) * len(leaves))[1])
        call.out = pytree.flatten(0 if count is None else (0,) * count)[1], (True,) * (count or 1)
        return call

    @property
    def count(self) -> int | None:
        """The number of results, None for a single one that is not a tuple."""
        assert self.out is not None
        structure, live = self.out
        return None if structure.is_leaf() else len(live)

    def missing(self) -> str:
        """How to register the missing rule."""
        return (
            "It was registered without one: register a rule (wengert.extend.vjp), or apply "
            "wengert.stop_gradient if it is meant to be a constant"
        )

    @property
    def size_names(self) -> frozenset[str]:
        """The symbolic sizes among its parameters."""
        return sizes_of(self.function.params)

    def at_sizes(self, sizes: dict[Any, Any]) -> BoundRule:
        """The same with numbers for symbolic sizes."""
        if self.size_names.isdisjoint(sizes):
            return self
        function = PrimitiveFunction(self.function.op, substituted(self.function.params, sizes))
        other = object.__new__(PrimitiveCall)
        other.__dict__.update(self.__dict__, function=function, _key=(function, *self._key[1:]))
        return other

    def bars(
        self, operands: Sequence[Any], outs: Sequence[Any], ts: Sequence[Any], saved: Any = None
    ) -> list[Any]:
        """Apply the registered rule."""
        op, args = self.function.op, self.args(operands)
        self._refuse_integers(outs)
        t, out = self.results(ts), self.results(outs)
        cotangents = self._explained("reverse", op.vjp_rule, t, out, args)
        if not isinstance(cotangents, list | tuple):
            cotangents = (cotangents,)
        if len(cotangents) != len(args):
            raise RuleError(
                f"The rule of {op.name} returned {len(cotangents)} cotangents for {len(args)} "
                f"operands. Return a tuple with one for each, None if it is zero{at(user_line())}."
            )
        return [cotangents[k] for k in self.slots]

    def dots(self, operands: Sequence[Any], outs: Sequence[Any], dots: Sequence[Any]) -> list[Any]:
        """Apply the registered rule."""
        args: list[Any] = [None] * len(self.static)
        for k, dot in zip(self.slots, dots, strict=True):
            args[k] = dot
        self._refuse_integers(outs)
        out, rule = self.results(outs), self.function.op.jvp_rule
        tangents = self._explained("forward", rule, args, out, self.args(operands))
        return list(tangents) if isinstance(tangents, tuple) else [tangents]

    def _refuse_integers(self, outs: Sequence[Any]) -> None:
        if len(outs) == 1 and outs[0].dtype.kind not in "fc":
            raise NotDifferentiableError(
                f"{self.name} returned {outs[0].dtype}, and integers have no derivative. "
                "Compute in floating point, or register it with discrete=True if its derivative is "
                f"known to be zero{at(user_line())}."
            )

    def _explained(
        self,
        mode: str,
        rule: Any,
        first: Array | list[Array | None],
        out: Array,
        args: Sequence[Any],
    ) -> Any:
        try:
            return rule(first, out, *args, **self.function.params)
        except WengertError:
            raise
        except Exception as error:
            what = f"The {mode} rule of {self.name}"
            raise rule_failed(what, error, user_line() or None) from error


def is_primitive(op: Opaque) -> bool:
    """Whether an operation is a primitive, whose rules are registered separately."""
    return getattr(op, "is_primitive", False)
