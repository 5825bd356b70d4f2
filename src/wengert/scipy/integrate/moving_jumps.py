"""Jumps of integrands whose positions depend on parameters, and what they add to the derivative.

Where ``f`` jumps at a position p that depends on a parameter, the derivative of its integral has
the further term ``(f(p-) - f(p+)) dp`` (Leibniz's rule for both parts).  Comparisons jump,
which the graph of the integrand shows: those of numbers that depend on the variable and on the
parameter.  If their difference is linear in the variable, as in ``x < c`` or ``(x - c) / s >= 0``,
its root is the position, and the values on both sides are those of the graph with either result of
the comparison.  Others are refused, since their positions are not known.

    MovingJumps   those of an integrand
    Comparison    a node that can jump
    comparisons   the nodes of a graph that can jump
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from wengert._engine.autodiff.jvp_vjp import jvp, transposed
from wengert._engine.core.graph import BaseGraph
from wengert._engine.core.graph_classes import Body, bodies_of
from wengert._engine.core.graph_copies import inline_graph
from wengert._engine.core.graph_nodes import ancestors
from wengert._engine.core.handle import Handle, wrap
from wengert._engine.core.node import Node, constant
from wengert._engine.core.op import lookup
from wengert._engine.core.op_facts import BRANCH, LOOP
from wengert._engine.core.spec import Spec
from wengert._engine.implicit.functions import GraphFunction
from wengert.errors import NotDifferentiableError, at, user_line

from .integral_operation import Routine

_MAX_JUMPS = 32  # elements of a comparison
_RELATIVE_DISTANCE = 1e-12  # relative distance of positions that are one
Inputs = frozenset[int]
_NOTHING: Inputs = frozenset()


class Comparison(NamedTuple):
    """A node that can jump.

    inputs : the inputs of the graph that its operands depend on.
    inside : whether it is in the body of a branch or loop.
    """

    node: Node
    inputs: Inputs
    inside: bool


def comparisons(
    graph: BaseGraph, given: Sequence[Inputs], inside: bool = False
) -> Iterator[Comparison]:
    """The nodes of a graph that can jump; `given` is what its inputs depend on."""
    depends: dict[Node, Inputs] = dict(zip(graph.inputs, given, strict=True))
    for node in graph.nodes:
        if node in depends or not node.args:
            continue
        of_operands = [depends.get(a, _NOTHING) for a in node.inputs]
        inputs = _NOTHING.union(*of_operands)
        op: Any = node.op
        if inputs and op.jump is not None:
            yield Comparison(node, inputs, inside)
        counts = op.control_flow == LOOP and "condition" not in node.params
        if op.control_flow == BRANCH or counts:  # others run until they have converged
            for body in bodies_of(node):
                operands = of_operands[len(of_operands) - len(body.inputs) :]
                yield from comparisons(body, operands, True)
        moves = not isinstance(node.spec, Spec) or node.spec.dtype.kind in "fc"
        depends[node] = inputs if moves and not op.discrete else _NOTHING


class MovingJumps:
    """The jumps of an integrand whose positions depend on captured values.

    Parameters
    ----------
    name : str
        For messages.
    integrand : GraphFunction
        Takes captured values and one variable.
    routine : Routine
    """

    def __init__(self, name: str, integrand: GraphFunction, routine: Routine) -> None:
        self.name, self._integrand, self._routine = name, integrand, routine
        self._differences: dict[Node, Body] = {}
        body, self._captured = integrand.body, integrand.captured
        given = [
            frozenset({k}) if type(n) is Node and n.spec.dtype.kind in "fc" else _NOTHING
            for k, n in enumerate(body.inputs)
        ]
        given[self._captured] = frozenset({self._captured})
        self._moving = [
            c for c in comparisons(body, given) if self._captured in c.inputs and len(c.inputs) > 1
        ]

    @functools.cached_property
    def _known(self) -> list[Comparison]:
        """Those whose positions are known."""
        return [c for c in self._moving if self._is_known(c)]

    def refuse(self, wanted: Sequence[bool]) -> None:
        """Raise if a position that is not known depends on a wanted captured value.

        Raises
        ------
        NotDifferentiableError
        """
        for c in self._moving:
            if c not in self._known and any([wanted[k] for k in c.inputs if k < self._captured]):
                where = f" at {c.node.where}" if c.node.where else ""
                raise NotDifferentiableError(
                    f"{self.name}: the function may jump where `{c.node.op.name}`{where} changes, "
                    "at a position that depends on the parameter and is not known, so the "
                    "derivative would lack the contribution of the jump. Divide the integral at "
                    "the position, which is then a limit, or compare the variable itself with it "
                    "(`x < position`). If the function is continuous there, use np.maximum or "
                    "np.minimum, or compare with wengert.stop_gradient(parameter)"
                    f"{at(user_line())}."
                )

    def _is_known(self, c: Comparison) -> bool:
        """Whether the position is the root of a linear function of the variable."""
        weight = getattr(self._routine, "weight", None) or ""
        op: Any = c.node.op
        if c.inside or op.jump.above is None or weight.startswith("alg"):
            return False
        spec, variable = c.node.spec, self._integrand.body.inputs[-1].spec
        is_small = isinstance(spec.size, int) and spec.size <= _MAX_JUMPS
        return is_small and variable.shape == () and self._is_linear(c.node)

    def _is_linear(self, node: Node) -> bool:
        body = self._difference(node)
        return body.inputs[-1] not in ancestors(body.outputs[1:])

    def _difference(self, node: Node) -> Body:
        """The difference of the operands of a comparison, and its derivative, as a graph."""
        if node not in self._differences:
            inputs = self._integrand.body.inputs
            operands = Body(*node.inputs, inputs=inputs, name=self.name)

            def both(*xs: Any) -> list[Any]:
                def difference(x: Any) -> Any:
                    values = inline_graph(operands, [*xs[:-1], x])
                    found = values[0] - values[1] if len(values) > 1 else values[0]
                    return lookup("broadcast_to")(_handle(found), shape=tuple(node.spec.shape))

                value, slope = jvp(difference, xs[-1:], (np.float64(1.0),))
                return [value, _handle(slope)]

            specs = [n.spec for n in inputs]
            traced = GraphFunction.traced_alone(both, specs, self.name)
            self._differences[node] = traced.body
        return self._differences[node]

    def differences(self, consts: Sequence[Any]) -> list[tuple[Any, Any]]:
        """The differences of known comparisons and their derivatives, where the variable is 0."""
        found = []
        for c in self._known:
            value, slope = inline_graph(self._difference(c.node), [*consts, np.float64(0.0)])
            found.append((_handle(value), _handle(slope)))
        return found

    # ---- the terms ------------------------------------------------------------------------------

    def dot(self, consts: Sequence[Any], ends: Sequence[Any], dots: Sequence[Any]) -> list[Any]:
        """The terms of the tangent, for tangents of captured values (None for zero)."""
        active = [k for k in self._parameters() if dots[k] is not None]
        unknown = [c for c in self._unknown() if not c.inputs.isdisjoint(active)]
        terms = [np.float64(np.nan) for _ in unknown[:1]]  # `refuse` raises, where it is called
        if not active or not self._known:
            return terms
        of_active = self._positions_of(consts, active)
        primals = tuple([_handle(consts[k]) for k in active])
        positions, changes = jvp(of_active, primals, tuple([dots[k] for k in active]))
        flat = [lookup("reshape")(d, shape=(-1,)) for d in changes]
        for k, element, jump in self._jumps(consts, ends, positions):
            terms.append(jump * flat[k][element])
        return terms

    def bars(
        self, consts: Sequence[Any], ends: Sequence[Any], product: Callable[[Any], Any]
    ) -> dict[int, Any]:
        """The terms of the cotangents of captured values; `product` is that with the cotangent."""
        active = self._parameters()
        bars = {k: consts[k] * np.nan for c in self._unknown() for k in c.inputs & set(active)}
        if not self._known:
            return bars
        of_active = self._positions_of(consts, active)
        primals = [_handle(consts[k]) for k in active]
        positions, pull = transposed(of_active, *primals)
        found: list[list[Any]] = [[None] * c.node.spec.size for c in self._known]
        for k, element, jump in self._jumps(consts, ends, positions):
            found[k][element] = product(jump)
        seeds = [
            lookup("reshape")(lookup("stack")(*parts, axis=0), shape=tuple(c.node.spec.shape))
            for parts, c in zip(found, self._known, strict=True)
        ]
        for k, bar in zip(active, pull(tuple(seeds)), strict=True):
            bars[k] = bars[k] + bar if k in bars else bar
        return bars

    def _unknown(self) -> list[Comparison]:
        return [c for c in self._moving if c not in self._known]

    def _parameters(self) -> list[int]:
        """The captured values that positions depend on."""
        return sorted({k for c in self._moving for k in c.inputs if k < self._captured})

    def _positions_of(
        self, consts: Sequence[Any], active: Sequence[int]
    ) -> Callable[..., tuple[Any, ...]]:
        """The positions as a function of some captured values."""

        def positions(*values: Any) -> tuple[Any, ...]:
            full = list(consts)
            for k, x in zip(active, values, strict=True):
                full[k] = x
            return tuple([-value / slope for value, slope in self.differences(full)])

        return positions

    def _jumps(
        self, consts: Sequence[Any], ends: Sequence[Any], positions: Sequence[Any]
    ) -> Iterator[tuple[int, int, Any]]:
        """For each jump its comparison, its element, and the left value minus the right one."""
        choose, both = lookup("where"), lookup("logical_and")
        a, b = ends[0], ends[1]
        low, high = np.minimum(a, b), np.maximum(a, b)
        inside_of = choose(lookup("isfinite")(low), low, 0.0)
        inside_of = choose(both(np.isinf(low), np.isfinite(high)), high, inside_of)
        sides = _Sides(self, consts, positions)
        for k, c in enumerate(self._known):
            flat = lookup("reshape")(positions[k], shape=(-1,))
            for element in range(c.node.spec.size):
                p = flat[element]
                within = both(p > low, p < high)
                x = choose(within, p, inside_of)
                left, right = [sides.value(x, k, element, is_left) for is_left in (True, False)]
                jump = self._routine.weighted(x, left - right, ends)
                jump = choose(a <= b, jump, -jump)
                yield k, element, choose(within, jump, np.zeros_like(jump))

    @property
    def known(self) -> list[Comparison]:
        """The comparisons whose positions are known."""
        return self._known

    @property
    def integrand(self) -> GraphFunction:
        """The function that is integrated."""
        return self._integrand


class _Sides:
    """The values of an integrand on either side of a jump.

    Comparisons that jump at the same position change one after another, so that the sum of their
    jumps is the difference of the values where all have and none has changed.
    """

    def __init__(self, jumps: MovingJumps, consts: Sequence[Any], positions: Sequence[Any]) -> None:
        self._integrand, self._consts, self._positions = jumps.integrand, consts, positions
        self._nodes = {c.node: k for k, c in enumerate(jumps.known)}
        choose = lookup("where")
        self._left: list[Any] = []
        self._right: list[Any] = []
        self._numbers: list[Any] = []
        first = 0
        for c, (_, slope) in zip(jumps.known, jumps.differences(consts), strict=True):
            spec = c.node.spec
            below, above = [spec.dtype.type(v) for v in c.node.op.jump]
            rises = slope > 0
            self._left.append(choose(rises, below, above))
            self._right.append(choose(rises, above, below))
            self._numbers.append(np.arange(first, first + spec.size).reshape(spec.shape))
            first += spec.size

    def value(self, x: Any, k: int, element: int, is_left: bool) -> Any:
        """The function at `x`, the position of an element of comparison k, on one side."""
        own = int(self._numbers[k].flat[element])
        choose = lookup("where")

        def instead(node: Node, args: Sequence[Any], params: Any) -> Any:
            j = self._nodes.get(node)
            if j is None:
                return None
            op: Any = node.op
            numbers, left, right = self._numbers[j], self._left[j], self._right[j]
            same = np.abs(self._positions[j] - x) <= _RELATIVE_DISTANCE * np.abs(x)
            other = choose(numbers > own, left, right)
            state = choose(same, other, op(*args, **params))
            return choose(numbers == own, left if is_left else right, state)

        (value,) = inline_graph(self._integrand.body, [*self._consts, x], instead)
        return _handle(value)


def _handle(x: Any) -> Any:
    return x if isinstance(x, Handle) else wrap(constant(np.asarray(x)))
