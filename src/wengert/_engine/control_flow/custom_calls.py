"""Custom calls: one call of a custom function, and the rule of its node.

The arguments of a function with a rule are containers; a node has leaves.  A call stores which
leaves are operands (tensors and arrays), the others (Python numbers, None, arguments that are not
differentiated), and the structure of the results.

    BoundRule      a call: its tracing or recording, and its rule in terms of leaves
    is_recorded    whether a value is differentiable
    is_starting    whether a call is being recorded, so that one inside it is not
"""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.autodiff.cotangent_space import zeros
from wengert._engine.autodiff.tape import fresh, older_than
from wengert._engine.core import pytree
from wengert._engine.core.conversion_hook import converted
from wengert._engine.core.dispatch import apply
from wengert._engine.core.handle import Handle, describe, value_of, wrap
from wengert._engine.core.node import Node, keep, next_serial
from wengert._engine.core.recording import enable_grad
from wengert._engine.core.spec import Spec
from wengert._engine.core.static_params import frozen, sizes_of, substituted
from wengert._engine.core.symbolic.dim import Dim
from wengert._engine.core.tracing import size_value
from wengert.errors import MutatedError, RuleError, StructureError, at, user_line

from .call_rule import CustomRule
from .closure_conversion import Closed, closed
from .custom import custom_call
from .eager_loops import numeric, strong
from .loops import mapped

if TYPE_CHECKING:
    from wengert._engine.core.types import Array, Operand

# Functions whose `fwd` is running: when it calls the function, only the values are needed.
_starting: ContextVar[frozenset[Any]] = ContextVar("wengert_starting", default=frozenset())


def is_starting(made: Any) -> bool:
    """Whether the rule of a custom function is running because a call of it is recorded."""
    return made in _starting.get()


def is_recorded(x: Any) -> bool:
    """Whether a value is recorded and differentiable."""
    return isinstance(x, Handle) and type(x.node) is Node


class BoundRule(CustomRule):
    """The rule of one call, with the leaves that are operands and the values of the others."""

    def __init__(
        self, made: Any, nondiff: Sequence[Any], leaves: Sequence[Any], structure: Any
    ) -> None:
        self.made, self.nondiff, self.structure = made, tuple(nondiff), structure
        self.slots = tuple([k for k, x in enumerate(leaves) if _is_operand(x)])
        self.static = tuple([None if k in self.slots else x for k, x in enumerate(leaves)])
        self.name = made.name
        self.out: tuple[Any, tuple[bool, ...]] | None = None  # structure, which leaves are live
        self._key = made, structure, self.slots, frozen(self.static), frozen(self.nondiff)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BoundRule) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def has_vjp(self) -> bool:  # type: ignore[override]
        """Whether `defvjp` was called."""
        return bool(self.made.has_vjp)

    @property
    def has_jvp(self) -> bool:  # type: ignore[override]
        """Whether `defjvp` or `defjvps` was called."""
        return bool(self.made.has_jvp)

    def missing(self) -> str:
        """How to define the missing rule."""
        rule = "defvjp(fwd, bwd)" if self.made.kind == "custom_vjp" else "defjvp(jvp)"
        return f"Define one: {self.name}.{rule}"

    @property
    def size_names(self) -> frozenset[str]:
        """The symbolic sizes in arguments that are not operands."""
        return sizes_of(self.nondiff)

    def at_sizes(self, sizes: Any) -> BoundRule:
        """The same with numbers for symbolic sizes."""
        if self.size_names.isdisjoint(sizes):
            return self
        other = object.__new__(BoundRule)
        other.__dict__.update(self.__dict__)
        other.nondiff = substituted(self.nondiff, sizes)
        other._key = (*self._key[:-1], frozen(other.nondiff))
        return other

    def moving(self, operands: Sequence[Any], static: Sequence[Any] | None = None) -> Any:
        """The differentiable arguments, with the operands as leaves."""
        leaves = list(self.static if static is None else static)
        for k, x in zip(self.slots, operands, strict=True):
            leaves[k] = x
        return pytree.unflatten(self.structure, leaves)

    def args(self, operands: Sequence[Any]) -> list[Any]:
        """All arguments."""
        return self.made.full(self.nondiff, self.moving(operands))  # type: ignore[no-any-return]

    # ---- the node ------------------------------------------------------------------------------

    def written(self, leaves: Sequence[Any]) -> Any:
        """The results of a call in a graph, with the function as the body of a node."""
        operands = [leaves[k] for k in self.slots]
        operands = [size_value(x) if isinstance(x, Dim) else x for x in operands]

        def of_operands(*handles: Any) -> Any:
            nodes = [h.node for h in handles]
            found = converted(self.made.fun)(*self.args(handles))
            self._refuse_written(handles, nodes)
            return mapped(strong, found)

        what = f"{self.made.kind} of {self.name}"
        inside: Closed = closed(of_operands, [describe(x) for x in operands], what, hoist=False)
        inside.body.name = self.name
        self.out = inside.structure, inside.live
        given = [*inside.captured, *operands]
        if not inside.body.outputs or not any([isinstance(x, Handle) for x in given]):
            return converted(self.made.fun)(*self.args(operands))
        outs = custom_call(*given, body=inside.body, rule=self, captured=len(inside.captured))
        return inside.container(outs)

    def recorded(self, leaves: Sequence[Any]) -> Any:
        """The results of a call on recorded tensors, as one node of the tape."""
        operands = [leaves[k] for k in self.slots]
        nodes = [fresh(x.node) if is_recorded(x) else None for x in operands]
        given = [
            wrap(x.node if n is None else n) if isinstance(x, Handle) else x
            for x, n in zip(operands, nodes, strict=True)
        ]
        before = [x.node for x in given if isinstance(x, Handle)]
        mark = next_serial()
        inside = _starting.set(_starting.get() | {self.made})
        try:
            with enable_grad():
                found, saved = self.made.started(self, self.args(given))
        finally:
            _starting.reset(inside)
        self._refuse_written([x for x in given if isinstance(x, Handle)], before)
        outs = self._leaves(found)
        residuals = pytree.flatten(saved)[0]
        live = [x.node for x in (*outs, *residuals) if is_recorded(x)]
        if not {n for n in nodes if n is not None}.issuperset(older_than(mark, live)):
            raise self.made.outside()
        values = tuple([_value(x) for x in outs])
        if not values:
            return found
        operands = [keep(x) if type(x) is np.ndarray else x for x in operands]
        params = {"body": None, "rule": self, "captured": 0}
        results = apply(custom_call, operands, params, lambda *_, **__: values)
        if saved is not None:
            results[0].node.args[0].note(saved=pytree.tree_map(_detached, saved))
        return self.results(results)

    def _leaves(self, found: Array | dict[Any, Any] | tuple[Array, ...]) -> list[Any]:
        """The leaves of the function's result that are values."""
        leaves, structure = pytree.flatten(found)
        for x in leaves:
            if x is not None and numeric(x) is None:
                raise StructureError(
                    f"{self.made.kind} of {self.name} returned a {type(x).__name__}. Return "
                    f"arrays, numbers and containers of them{at(user_line())}."
                )
        self.out = structure, tuple([x is not None for x in leaves])
        return [x for x in leaves if x is not None]

    def results(self, outs: Sequence[Any]) -> Any:
        """Leaves in the containers that the function returned."""
        assert self.out is not None
        structure, live = self.out
        rest = iter(outs)
        return pytree.unflatten(structure, [next(rest) if is_live else None for is_live in live])

    def _refuse_written(self, handles: Sequence[Any], nodes: Sequence[Node]) -> None:
        if any(h.node is not n for h, n in zip(handles, nodes, strict=True)):
            raise MutatedError(
                f"{self.made.kind} of {self.name}: it modified one of its arguments, which its "
                f"rule does not cover. Copy it first, x.copy(){at(user_line())}."
            )

    def values(self, operands: Sequence[Any]) -> tuple[Any, ...]:
        """The results for plain operands."""
        return tuple(
            [_value(x) for x in self._leaves(converted(self.made.fun)(*self.args(operands)))]
        )

    # ---- the rule ------------------------------------------------------------------------------

    def bars(
        self,
        operands: Sequence[Any],
        outs: Sequence[Any],
        ts: Sequence[Any],
        saved: tuple[Any, ...] | None = None,
    ) -> list[Any]:
        """The results of `bwd` for the residuals of `fwd`."""
        made = self.made
        if saved is None:
            found, saved = made.started(self, self.args(operands))
            self.check_same_specs(found, outs, "fwd")
        bars = made.bwd(*self.nondiff, saved[0], self.results(ts))
        moving = self.moving(operands)
        return self._of_operands(bars, moving, "bwd")

    def dots(self, operands: Sequence[Any], outs: Sequence[Any], dots: Sequence[Any]) -> list[Any]:
        """The results of the rule for the operands and their tangents."""
        full = [
            zeros(Spec(s.shape, s.dtype)) if d is None and s.dtype.kind in "fc" else d
            for d, s in zip(dots, map(describe, operands), strict=True)
        ]
        static = [0.0 if isinstance(x, float | np.inexact) else None for x in self.static]
        tangents = self.moving(full, static)
        found = self.made.tangents(self, self.moving(operands), tangents, outs, dots)
        assert self.out is not None
        return [x for x, is_live in zip(found, self.out[1], strict=True) if is_live]

    def of_out(self, x: Any, what: str) -> list[Any]:
        """The leaves of a tangent of the results.

        Raises
        ------
        RuleError
            Its structure is not that of the results.
        """
        assert self.out is not None
        structure = self.out[0]
        if x is None:
            return [None] * structure.num_leaves
        leaves, found = pytree.flatten(x)
        if found != structure:
            raise RuleError(
                f"{what} of {self.name} returned a tangent nested as {_nesting(found)}, but "
                f"{self.name} returns {_nesting(structure)}. A tangent is nested as its result"
                f"{at(user_line())}."
            )
        return leaves

    def check_same_specs(
        self, found: Array | dict[Any, Any] | tuple[Array, ...], outs: Sequence[Any], what: str
    ) -> None:
        """Raise if the first result of a rule has another structure or other specs than `outs`."""
        assert self.out is not None
        leaves, structure = pytree.flatten(found)
        if structure != self.out[0]:
            self._differs(what, _nesting(structure), _nesting(self.out[0]))
        live = [x for x in leaves if x is not None]
        for x, y in zip(live, outs, strict=True):
            a, b = describe(x), describe(y)
            if not isinstance(a, Spec) or (a.shape, a.dtype) != (b.shape, b.dtype):
                self._differs(what, a or type(x).__name__, b)

    def _differs(self, what: str, given: str, right: str) -> None:
        raise RuleError(
            f"{what} of {self.name} returned {given} as its first result, but {self.name} returns "
            f"{right}. Return the same as {self.name}{at(user_line())}."
        )

    def _of_operands(
        self, found: tuple[Any, ...], moving: tuple[Operand | dict[Any, Any], ...], what: str
    ) -> list[Any]:
        """The leaves of cotangents of operands."""
        if not isinstance(found, tuple | list) or len(found) != len(moving):
            count = len(found) if isinstance(found, tuple | list) else type(found).__name__
            given = f"{count} cotangents" if isinstance(count, int) else f"a {count}"
            example = "(g,)" if len(moving) == 1 else "(g1, g2, ...)"
            raise RuleError(
                f"{what} of {self.name} returned {given} for {len(moving)} arguments. Return a "
                f"tuple with a cotangent for each, {example}, None where it is zero"
                f"{at(user_line())}."
            )
        leaves: list[Any] = []
        for k, (bar, arg) in enumerate(zip(found, moving, strict=True)):
            structure = pytree.flatten(arg)[1]
            if bar is None:
                leaves += [None] * structure.num_leaves
                continue
            own, nested = pytree.flatten(bar)
            if nested != structure:
                raise RuleError(
                    f"{what} of {self.name} returned {_nesting(nested)} as the cotangent of "
                    f"argument {k}, which is {_nesting(structure)}. A cotangent is nested as its "
                    f"argument{at(user_line())}."
                )
            leaves += own
        return [leaves[k] for k in self.slots]


def _nesting(structure: Any) -> str:
    if structure.is_leaf():
        return "one array"
    return str(pytree.unflatten(structure, [pytree.LEAF] * structure.num_leaves))


def _is_operand(x: Operand | str | None) -> bool:
    return isinstance(x, Handle | np.ndarray | Dim)


def _value(x: Operand) -> Any:
    value = value_of(x) if isinstance(x, Handle) else x
    return np.asarray(value)[()] if isinstance(value, bool | int | float | complex) else value


def _detached(x: Operand | None) -> Any:
    return value_of(x) if isinstance(x, Handle) else x
