"""Custom calls: one call of a custom function, and the rule of its node.

The arguments of a function with a rule are pytrees; the operands of a node are leaves.  A call
stores which leaves are operands (tensors and arrays), the values of the others (Python numbers,
None, arguments that are not differentiated), and the structure of the results.

    BoundRule      one call: traced or recorded as a node, with its rule in terms of leaves
    is_recorded    whether a value is differentiable
    is_starting    whether a call is being recorded, so that calls within its rule are not
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.autodiff.messages import origins_of_call
from wengert._engine.autodiff.tape import fresh, older_than
from wengert._engine.core import pytree
from wengert._engine.core.conversion_hook import converted
from wengert._engine.core.dispatch import apply
from wengert._engine.core.handle import Handle, describe, value_of, wrap
from wengert._engine.core.node import Node, keep, next_serial
from wengert._engine.core.node_properties import frozen, sizes_of, substituted
from wengert._engine.core.recording import enable_grad
from wengert._engine.core.spec import Spec
from wengert._engine.core.symbolic.dim import Dim
from wengert._engine.core.tracing import size_value
from wengert._engine.core.uniform_arrays import zeros
from wengert._engine.ops.messages import with_messages
from wengert.errors import MutatedError, RuleError, StructureError, at, user_line

from .call_rule import CustomRule
from .closure_conversion import Closed, closed
from .custom import custom_call
from .eager_loops import numeric, strong
from .loops import mapped

if TYPE_CHECKING:
    from wengert._engine.core.types import Array, Operand

# Functions whose `fwd` is running.  If it calls the function itself, only the values are needed.
_starting: ContextVar[frozenset[Any]] = ContextVar("wengert_starting", default=frozenset())


def is_starting(function: Any) -> bool:
    """Whether `fwd` of a custom function is running because a call of it is recorded."""
    return function in _starting.get()


def is_recorded(x: Any) -> bool:
    """Whether a value is recorded and differentiable."""
    return isinstance(x, Handle) and type(x.node) is Node


class BoundRule(CustomRule):
    """The rule of one call, with the positions of its operands and the values of other leaves."""

    def __init__(
        self, function: Any, nondiff: Sequence[Any], leaves: Sequence[Any], structure: Any
    ) -> None:
        self.function, self.nondiff, self.structure = function, tuple(nondiff), structure
        self.slots = tuple([k for k, x in enumerate(leaves) if _is_operand(x)])
        self.static = tuple([None if k in self.slots else x for k, x in enumerate(leaves)])
        self.name = function.name
        self.out: tuple[Any, tuple[bool, ...]] | None = (
            None  # structure; whether each leaf is not None
        )
        self.origins: Any = None  # of the results (autodiff/messages.py), if it was recorded
        self._key = function, structure, self.slots, frozen(self.static), frozen(self.nondiff)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BoundRule) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def has_vjp(self) -> bool:  # type: ignore[override]
        """Whether `defvjp` was called."""
        return bool(self.function.has_vjp)

    @property
    def has_jvp(self) -> bool:  # type: ignore[override]
        """Whether `defjvp` or `defjvps` was called."""
        return bool(self.function.has_jvp)

    def missing(self) -> str:
        """How to define the missing rule."""
        rule = "defvjp(fwd, bwd)" if self.function.kind == "custom_vjp" else "defjvp(jvp)"
        return f"Define one: {self.name}.{rule}"

    @property
    def size_names(self) -> frozenset[str]:
        """The symbolic sizes in arguments that are not operands."""
        return sizes_of(self.nondiff)

    def at_sizes(self, sizes: Any) -> BoundRule:
        """The same rule with numbers for symbolic sizes."""
        if self.size_names.isdisjoint(sizes):
            return self
        other = object.__new__(BoundRule)
        other.__dict__.update(self.__dict__)
        other.nondiff = substituted(self.nondiff, sizes)
        other._key = (*self._key[:-1], frozen(other.nondiff))
        return other

    def differentiable(self, operands: Sequence[Any], static: Sequence[Any] | None = None) -> Any:
        """The differentiable arguments, with the operands as leaves."""
        leaves = list(self.static if static is None else static)
        for k, x in zip(self.slots, operands, strict=True):
            leaves[k] = x
        return pytree.unflatten(self.structure, leaves)

    def args(self, operands: Sequence[Any]) -> list[Any]:
        """All arguments."""
        return self.function.full(self.nondiff, self.differentiable(operands))  # type: ignore[no-any-return]

    # ---- the node ------------------------------------------------------------------------------

    def record_in_graph(self, leaves: Sequence[Any]) -> Any:
        """The results of a call in a graph, with the function as the body of a node."""
        operands = [leaves[k] for k in self.slots]
        operands = [size_value(x) if isinstance(x, Dim) else x for x in operands]

        def of_operands(*handles: Any) -> Any:
            nodes = [h.node for h in handles]
            call = functools.partial(converted(self.function.fun), *self.args(handles))
            result = with_messages(call, handles)
            self._refuse_written(handles, nodes)
            return mapped(strong, result)

        what = f"{self.function.kind} of {self.name}"
        closure: Closed = closed(of_operands, [describe(x) for x in operands], what, hoist=False)
        closure.body.name = self.name
        self.out = closure.structure, closure.live
        arguments = [*closure.captured, *operands]
        if not closure.body.outputs or not any([isinstance(x, Handle) for x in arguments]):
            return converted(self.function.fun)(*self.args(operands))
        outs = custom_call(*arguments, body=closure.body, rule=self, captured=len(closure.captured))
        return closure.container(outs)

    def record_on_tape(self, leaves: Sequence[Any]) -> Any:
        """The results of a call on recorded tensors, as one node of the tape."""
        operands = [leaves[k] for k in self.slots]
        nodes = [fresh(x.node) if is_recorded(x) else None for x in operands]
        arguments = [
            wrap(x.node if n is None else n) if isinstance(x, Handle) else x
            for x, n in zip(operands, nodes, strict=True)
        ]
        original_nodes = [x.node for x in arguments if isinstance(x, Handle)]
        first_serial = next_serial()
        token = _starting.set(_starting.get() | {self.function})
        try:
            with enable_grad():
                result, saved = self.function.run_forward(self.args(arguments))
        finally:
            _starting.reset(token)
        self._refuse_written([x for x in arguments if isinstance(x, Handle)], original_nodes)
        outs = self._leaves(result)
        residuals = pytree.flatten(saved)[0]
        recorded_nodes = [x.node for x in (*outs, *residuals) if is_recorded(x)]
        if not {n for n in nodes if n is not None}.issuperset(
            older_than(first_serial, recorded_nodes)
        ):
            raise self.function.outside()
        values = tuple([_value(x) for x in outs])
        if not values:
            return result
        self.origins = origins_of_call(outs, nodes)
        operands = [keep(x) if type(x) is np.ndarray else x for x in operands]
        params = {"body": None, "rule": self, "captured": 0}
        results = apply(custom_call, operands, params, lambda *_, **__: values)
        if saved is not None:
            results[0].node.args[0].note(saved=pytree.tree_map(_detached, saved))
        return self.results(results)

    def _leaves(self, result: Array | dict[Any, Any] | tuple[Array, ...]) -> list[Any]:
        """The leaves of the function's result that are not None; stores the structure."""
        leaves, structure = pytree.flatten(result)
        for x in leaves:
            if x is not None and numeric(x) is None:
                raise StructureError(
                    f"{self.function.kind} of {self.name} returned a {type(x).__name__}. Return "
                    f"arrays, numbers and containers of them{at(user_line())}."
                )
        self.out = structure, tuple([x is not None for x in leaves])
        return [x for x in leaves if x is not None]

    def results(self, outs: Sequence[Any]) -> Any:
        """Leaves, in the containers that the function returned."""
        assert self.out is not None
        structure, present = self.out
        leaves = iter(outs)
        return pytree.unflatten(
            structure, [next(leaves) if is_present else None for is_present in present]
        )

    def _refuse_written(self, handles: Sequence[Any], nodes: Sequence[Node]) -> None:
        if any(h.node is not n for h, n in zip(handles, nodes, strict=True)):
            raise MutatedError(
                f"{self.function.kind} of {self.name}: it modified one of its arguments, and its "
                f"rule does not cover that. Copy it first, x.copy(){at(user_line())}."
            )

    def values(self, operands: Sequence[Any]) -> tuple[Any, ...]:
        """The results for plain operands."""
        return tuple(
            [_value(x) for x in self._leaves(converted(self.function.fun)(*self.args(operands)))]
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
        function = self.function
        if saved is None:
            result, saved = function.run_forward(self.args(operands))
            self.check_same_specs(result, outs, "fwd")
        cotangents = function.bwd(*self.nondiff, saved[0], self.results(ts))
        arguments = self.differentiable(operands)
        return self._of_operands(cotangents, arguments, "bwd")

    def dots(self, operands: Sequence[Any], outs: Sequence[Any], dots: Sequence[Any]) -> list[Any]:
        """The results of the rule for the operands and their tangents."""
        operand_tangents = [
            zeros(Spec(s.shape, s.dtype)) if d is None and s.dtype.kind in "fc" else d
            for d, s in zip(dots, map(describe, operands), strict=True)
        ]
        static_tangents = [0.0 if isinstance(x, float | np.inexact) else None for x in self.static]
        tangents = self.differentiable(operand_tangents, static_tangents)
        leaves = self.function.tangents(self, self.differentiable(operands), tangents, outs)
        assert self.out is not None
        return [x for x, is_present in zip(leaves, self.out[1], strict=True) if is_present]

    def of_out(self, x: Any, what: str) -> list[Any]:
        """The leaves of a tangent of the results; `what` is its origin, for messages.

        Raises
        ------
        RuleError
            Its structure is not that of the results.
        """
        assert self.out is not None
        structure = self.out[0]
        if x is None:
            return [None] * structure.num_leaves
        leaves, tangent_structure = pytree.flatten(x)
        if tangent_structure != structure:
            raise RuleError(
                f"{what} of {self.name} returned a tangent nested as "
                f"{_nesting(tangent_structure)}, but {self.name} returns {_nesting(structure)}. A "
                f"tangent is nested as its result{at(user_line())}."
            )
        return leaves

    def check_same_specs(
        self, result: Array | dict[Any, Any] | tuple[Array, ...], outs: Sequence[Any], what: str
    ) -> None:
        """Raise if the first result of a rule has another structure or other specs than `outs`."""
        assert self.out is not None
        leaves, structure = pytree.flatten(result)
        if structure != self.out[0]:
            self._differs(what, _nesting(structure), _nesting(self.out[0]))
        present = [x for x in leaves if x is not None]
        for x, y in zip(present, outs, strict=True):
            a, b = describe(x), describe(y)
            if not isinstance(a, Spec) or (a.shape, a.dtype) != (b.shape, b.dtype):
                self._differs(what, a or type(x).__name__, b)

    def _differs(self, what: str, returned: str, expected: str) -> None:
        raise RuleError(
            f"{what} of {self.name} returned {returned} as its first result, but {self.name} "
            f"returns {expected}. Return the same as {self.name}{at(user_line())}."
        )

    def _of_operands(
        self,
        cotangents: tuple[Any, ...],
        arguments: tuple[Operand | dict[Any, Any], ...],
        what: str,
    ) -> list[Any]:
        """The cotangents of the operands, from the pytrees that a rule returned."""
        if not isinstance(cotangents, tuple | list) or len(cotangents) != len(arguments):
            count = (
                len(cotangents)
                if isinstance(cotangents, tuple | list)
                else type(cotangents).__name__
            )
            described = f"{count} cotangents" if isinstance(count, int) else f"a {count}"
            example = "(g,)" if len(arguments) == 1 else "(g1, g2, ...)"
            raise RuleError(
                f"{what} of {self.name} returned {described} for {len(arguments)} arguments. "
                f"Return a tuple with a cotangent for each, {example}, None where it is zero"
                f"{at(user_line())}."
            )
        leaves: list[Any] = []
        for k, (cotangent, arg) in enumerate(zip(cotangents, arguments, strict=True)):
            structure = pytree.flatten(arg)[1]
            if cotangent is None:
                leaves += [None] * structure.num_leaves
                continue
            cotangent_leaves, cotangent_structure = pytree.flatten(cotangent)
            if cotangent_structure != structure:
                raise RuleError(
                    f"{what} of {self.name} returned {_nesting(cotangent_structure)} as the "
                    f"cotangent of argument {k}, which is {_nesting(structure)}. A cotangent is "
                    f"nested as its argument{at(user_line())}."
                )
            leaves += cotangent_leaves
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
