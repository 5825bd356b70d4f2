"""Functions of containers as graphs of leaves, whose captured values are operands.

A function that exchanges messages with other processes takes the token that orders them, too
(core/message_order.py), so its messages are in order with those around it, in every derivative.

GraphFunction    a function as a graph
Leaves           a container of arrays as leaves
with_constants   a body with constants for some of its inputs
is_constant      whether a captured value is a constant
cotangents_of    the pullback of a function of leaves
raveled          leaves as one vector
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from wengert._engine.autodiff.jvp_vjp import jvp, transposed
from wengert._engine.control_flow.closure_conversion import closed, together
from wengert._engine.control_flow.message_carry import with_token
from wengert._engine.core import pytree
from wengert._engine.core.graph_classes import Body
from wengert._engine.core.graph_copies import inline_graph, rebuilt
from wengert._engine.core.handle import Handle, describe, wrap
from wengert._engine.core.message_order import NO_MESSAGES, advance, current, is_used
from wengert._engine.core.node import ConstantLeaf, Node, constant
from wengert._engine.core.op import lookup
from wengert._engine.core.spec import Spec
from wengert._engine.ops.casts import astype
from wengert.errors import DtypeError, ShapeError, StructureError, at, user_line

_TOKEN = Spec((), NO_MESSAGES.dtype)


class Leaves(NamedTuple):
    """A container of arrays: its leaves, their specs, and its structure."""

    values: list[Any]
    specs: tuple[Spec, ...]
    structure: Any

    @classmethod
    def of(cls, container: Any, what: str) -> Leaves:
        """The leaves, integers converted to float64.

        Raises
        ------
        StructureError
            It has no leaves, or one is not an array of numbers.
        """
        values, structure = pytree.flatten(container)
        if not values:
            raise StructureError(f"{what} contains nothing{at(user_line())}.")
        values = [_inexact(x, what) for x in values]
        specs = tuple([Spec(s.shape, s.dtype) for s in map(describe, values)])
        return cls(values, specs, structure)

    def container(self, leaves: Sequence[Any]) -> Any:
        """Other leaves in the same containers."""
        return pytree.unflatten(self.structure, list(leaves))

    def like(self, container: Any, what: str) -> list[Any]:
        """The leaves of another container, which must have the same structure and specs.

        Raises
        ------
        StructureError, ShapeError, DtypeError
            The structure, a shape or a dtype differs.
        """
        leaves, structure = pytree.flatten(container)
        if structure != self.structure:
            raise StructureError(
                f"{what} is nested as {structure}, and must be nested as {self.structure}"
                f"{at(user_line())}."
            )
        return [_fitted(x, s, what) for x, s in zip(leaves, self.specs, strict=True)]


def _inexact(x: Any, what: str) -> Any:
    spec = describe(x)
    if not isinstance(spec, Spec) or spec.dtype.kind not in "biufc":
        raise StructureError(
            f"{what} contains a {type(x).__name__}. It must contain arrays and numbers only"
            f"{at(user_line())}."
        )
    if spec.dtype.kind in "fc" and not spec.weak:
        return x
    return astype(x, np.result_type(spec.dtype, np.float64))


def _fitted(x: Any, spec: Spec, what: str) -> Any:
    found = describe(x)
    if not isinstance(found, Spec) or found.dtype.kind not in "biufc":
        raise StructureError(
            f"{what} contains a {type(x).__name__}. It must contain arrays and numbers only"
            f"{at(user_line())}."
        )
    if found.shape != spec.shape:
        raise ShapeError(
            f"{what} has shape {found.shape}, and must have shape {spec.shape}{at(user_line())}."
        )
    if found.dtype == spec.dtype and not found.weak:
        return x
    if np.result_type(found.dtype, spec.dtype) != spec.dtype:
        raise DtypeError(
            f"{what} has dtype {found.dtype}, and must have dtype {spec.dtype}. Convert one of "
            f"them, x.astype(dtype){at(user_line())}."
        )
    return astype(x, spec.dtype)


class GraphFunction:
    """A function of leaves as a graph; what it captures are its first operands.

    Parameters
    ----------
    body : Body
        Takes the captured values, then the leaves.
    captured : int
    sends : bool, default False
        Whether it exchanges messages; then the body also takes a token first, and returns the next
        one last.
    """

    def __init__(self, body: Body, captured: int, sends: bool = False) -> None:
        self.body, self.captured, self.sends = body, captured, sends

    @classmethod
    def traced(
        cls, fun: Callable[..., Sequence[Any]], specs: Sequence[Spec], what: str
    ) -> tuple[GraphFunction, list[Any]]:
        """A function of leaves as a graph, and the values that it captures."""
        if is_used():
            return cls._traced_in_order(fun, specs, what)
        closure = closed(lambda *xs: list(fun(*xs)), specs, what, hoist=False)
        closure.body.name = what
        return cls(closure.body, len(closure.captured)), closure.captured

    @classmethod
    def traced_alone(
        cls, fun: Callable[..., Sequence[Any]], specs: Sequence[Spec], what: str
    ) -> GraphFunction:
        """A function of its arguments alone; arrays that it makes are constants of the graph.

        `traced` makes operands of large constants, such as the unit vectors of a Jacobian.
        """
        found, values = cls.traced(fun, specs, what)
        if not values:
            return found
        return cls(with_constants(found.body, values, found.sends), 0, found.sends)

    @classmethod
    def _traced_in_order(
        cls, fun: Callable[..., Sequence[Any]], specs: Sequence[Spec], what: str
    ) -> tuple[GraphFunction, list[Any]]:
        """`traced`, for a function that may exchange messages."""

        def of_token(token: Any, *xs: Any) -> list[Any]:
            ys, last = with_token(token, fun, *xs)
            return [*ys, last]

        closure = closed(of_token, [_TOKEN, *specs], what, hoist=False)
        captured = len(closure.captured)
        inputs, outputs = list(closure.body.inputs), list(closure.body.outputs)
        token = inputs.pop(captured)
        sends = outputs[-1] is not token
        if sends:
            inputs.insert(0, token)
        else:
            outputs.pop()
        return cls(Body(*outputs, inputs=inputs, name=what), captured, sends), closure.captured

    @classmethod
    def traced_together(
        cls, funs: Sequence[Callable[..., Sequence[Any]]], specs: Sequence[Spec], what: str
    ) -> tuple[list[GraphFunction], list[Any]]:
        """Functions of the same leaves as graphs, and the values that they capture together."""
        closures = [
            closed(lambda *xs, fun=fun: list(fun(*xs)), specs, what, hoist=False) for fun in funs
        ]
        bodies, captured = together(closures)
        return [cls(body, len(captured)) for body in bodies], captured

    @property
    def inputs(self) -> tuple[list[Node], list[Node]]:
        """The inputs of the body for captured values, and for leaves."""
        inputs = list(self.body.inputs[self.sends :])
        return inputs[: self.captured], inputs[self.captured :]

    @property
    def outputs(self) -> list[Node]:
        """The results of the body."""
        return list(self.body.outputs[:-1] if self.sends else self.body.outputs)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GraphFunction) and (self.captured, self.body) == (
            other.captured,
            other.body,
        )

    def __hash__(self) -> int:
        return hash(self.body)

    def at_sizes(self, sizes: Any) -> GraphFunction:
        """The same function with numbers for symbolic sizes."""
        return GraphFunction(self.body.at_sizes(sizes), self.captured, self.sends)

    def __call__(self, consts: Sequence[Any], xs: Sequence[Any]) -> list[Any]:
        """The values for captured values and leaves."""
        if self.sends:
            token = current()
            first = NO_MESSAGES if token is None else wrap(token.node)
            *ys, last = inline_graph(self.body, [first, *consts, *xs])
            if isinstance(last, Handle):
                advance(last)
            return [_handle(y) for y in ys]
        return [_handle(y) for y in inline_graph(self.body, [*consts, *xs])]

    def tangent(self, consts: Sequence[Any], xs: Sequence[Any], dots: Sequence[Any]) -> list[Any]:
        """The tangent for tangents of the leaves."""
        return list(jvp(lambda *v: tuple(self(consts, v)), tuple(map(_handle, xs)), tuple(dots))[1])

    def cotangents(self, consts: Sequence[Any], xs: Sequence[Any], ts: Sequence[Any]) -> list[Any]:
        """The cotangents of the leaves for those of the results."""
        return cotangents_of(lambda *v: self(consts, v), xs, ts)

    def tangent_of_captured(
        self, consts: Sequence[Any], xs: Sequence[Any], dots: Sequence[Any]
    ) -> list[Any] | None:
        """The tangent for tangents of the captured values; None if all are None."""
        active = [k for k, d in enumerate(dots) if d is not None and _is_inexact(consts[k])]
        if not active:
            return None
        of_active = self._of_captured(consts, xs, active)
        primals = tuple([_handle(consts[k]) for k in active])
        return list(jvp(of_active, primals, tuple([dots[k] for k in active]))[1])

    def cotangents_of_captured(
        self,
        consts: Sequence[Any],
        xs: Sequence[Any],
        ts: Sequence[Any],
        only: Sequence[int] | None = None,
    ) -> list[Any]:
        """The cotangents of the captured values for those of the results; None for integers.

        With `only`, those of some captured values; None for the others.
        """
        positions = range(len(consts)) if only is None else only
        active = [k for k in positions if _is_inexact(consts[k])]
        if not active:
            return [None] * len(consts)
        of_active = self._of_captured(consts, xs, active)
        pulled = transposed(of_active, *[_handle(consts[k]) for k in active])[1](tuple(ts))
        by_position = dict(zip(active, pulled, strict=True))
        return [by_position.get(k) for k in range(len(consts))]

    def _of_captured(
        self, consts: Sequence[Any], xs: Sequence[Any], active: Sequence[int]
    ) -> Callable[..., tuple[Any, ...]]:
        def of_active(*values: Any) -> tuple[Any, ...]:
            full = list(consts)
            for k, x in zip(active, values, strict=True):
                full[k] = x
            return tuple(self(full, xs))

        return of_active


def with_constants(body: Body, values: Sequence[Any], first: int = 0) -> Body:
    """A body with constants for some of its inputs.

    Parameters
    ----------
    body : Body
    values : sequence of arrays, or of tensors that are constants
    first : int
        The first of these inputs.
    """
    inputs = list(body.inputs)
    known = inputs[first : first + len(values)]
    constants = {n: constant(_array(x)) for n, x in zip(known, values, strict=True)}
    copies = rebuilt([n for n in body.nodes if n not in constants], constants)
    outputs = [copies.get(n, n) for n in body.outputs]
    remaining = [n for n in inputs if n not in constants]
    return Body(*outputs, inputs=remaining, name=body.name)


def is_constant(x: Any) -> bool:
    """Whether a captured value is an array or a number, or a tensor that is one."""
    return not isinstance(x, Handle) or isinstance(x.node, ConstantLeaf)


def cotangents_of(
    fun: Callable[..., Sequence[Any]], xs: Sequence[Any], ts: Sequence[Any]
) -> list[Any]:
    """The cotangents of leaves for those of the results of a function of them."""
    return list(transposed(lambda *v: tuple(fun(*v)), *map(_handle, xs))[1](tuple(ts)))


def _array(x: Any) -> Any:
    """A captured value that is a constant; a large one is a node (`Watched`)."""
    if not isinstance(x, Handle):
        return x
    assert isinstance(x.node, ConstantLeaf)
    return np.array(x.node.value)


def _is_inexact(x: Any) -> bool:
    return bool(describe(x).dtype.kind in "fc")


def _handle(x: Any) -> Any:
    return x if isinstance(x, Handle) else wrap(constant(np.asarray(x)))


def raveled(leaves: Sequence[Any]) -> Any:
    """The leaves as one vector."""
    flat = [lookup("reshape")(x, shape=(-1,)) for x in leaves]
    return flat[0] if len(flat) == 1 else lookup("concatenate")(*flat, axis=0)
