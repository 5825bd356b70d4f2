"""The part of a Hessian that belongs to coupled nodes, by passes.

The part of node n is the Jacobian, with respect to y at y = x, of

    R(y)  =  J(x)^T  vjp_n(w(x); operands of n at y)

with its cotangent w and the Jacobian J of its operands at x: only the operands of coupled nodes
depend on y.  So the pattern and the colors are those of these nodes alone, however many entries
others have (element_hessians.py).

    divided           which nodes of a function are coupled, found once for shapes and dtypes
    Division          these, for a plan
    coupled_part      R, as a function of y and the arguments
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from wengert._engine.autodiff.arguments import DifferentiatedCall, zeros_like
from wengert._engine.autodiff.pullback import Result
from wengert._engine.autodiff.reverse import gathered, pullback
from wengert._engine.autodiff.tape import tape_between
from wengert._engine.core import pytree
from wengert._engine.core.handle import Handle
from wengert._engine.core.node import Node

from .element_hessians import Curvature, second_order, weights_of

TERM = 3  # elementwise operations for a term of a product
PASS = 10  # elementwise operations of a pass for each node of the function
Caller = Callable[[Any, Any], DifferentiatedCall]


class Division(NamedTuple):
    """How the entries of a Hessian are computed.

    products : the number of products of diagonals that are added to entries.
    nodes : the number of nodes of which these are.
    coupled : operation and source line of each coupled node.
    """

    products: int
    nodes: int
    coupled: list[str]


def result_of(call: DifferentiatedCall) -> Result:
    """The value of a function whose first result is its value, the others its gradient."""
    outs, _ = pytree.flatten(call())
    return Result(outs[:1], call.nodes, call.variables)


def divided(call: DifferentiatedCall, passes: int) -> Division | None:
    """How a Hessian is divided; None if all of it is computed by passes, which is faster.

    Parameters
    ----------
    passes : int
        The number of passes for all of it.
    """
    result = result_of(call)
    found = second_order(result)
    if found is None or (found.coupled and not found.products):
        return None
    if found.terms * TERM > passes * len(result.tape.nodes) * PASS:
        return None
    return Division(len(found.products), found.nodes, [_named(n) for n in found.coupled])


def _named(node: Node) -> str:
    return f"{node.op.name} at {node.where}" if node.where else str(node.op.name)


def coupled_part(make: Caller) -> Callable[..., Any]:
    """The function R of a list of leaves y and the arguments of the function.

    Parameters
    ----------
    make : callable
        A call of the function, for ``args`` and ``kwargs``.
    """

    def part(y: Sequence[Any], /, *args: Any, **kwargs: Any) -> list[Any]:
        call = make(args, kwargs)
        result = result_of(call)
        found: Curvature | None = second_order(result)
        assert found is not None
        targets = [leaf.node for leaf in y]
        twin = _twins(result, _value_at(make(args, kwargs), y), targets)
        weights, masked = weights_of(result, found.coupled)
        pairs: list[tuple[Node, Any]] = []
        for node, weight in zip(found.coupled, weights, strict=True):
            if weight is None:
                continue
            at_x = {twin[a]: a for a in node.args_as_nodes() if a in twin}
            tape = tape_between([twin[node]], at_x, ends=True)
            seed, is_masked = {twin[node]: weight}, node in masked
            bars = pullback(seed, list(at_x), tape=tape, masked=is_masked)
            pairs += zip(at_x.values(), bars, strict=True)
        bars = result.pull(gathered(pairs))
        zeros = [zeros_like(n) for n in call.nodes]
        return [z if b is None else b for b, z in zip(bars, zeros, strict=True)]

    return part


def _value_at(call: DifferentiatedCall, y: Sequence[Any]) -> Node:
    """The node of the value, with other leaves in place of the variables."""
    leaf_of = dict(zip(call.nodes, y, strict=True))

    def leaf(x: Any) -> Any:
        return leaf_of.get(x.node, x) if isinstance(x, Handle) else x

    args, kwargs = pytree.tree_map(leaf, (tuple(call.args), call.kwargs))
    outs, _ = pytree.flatten(call.fun(*args, **kwargs))
    node: Node = outs[0].node
    return node


def _twins(result: Result, value: Node, targets: Sequence[Node]) -> dict[Node, Node]:
    """The nodes of a run with other leaves, by those of the first run."""
    twin: dict[Node, Node] = dict(zip(result.targets, targets, strict=True))
    inside = set(result.tape.nodes)
    open_pairs: list[tuple[Any, Any]] = [(result.out_nodes[0], value)]
    while open_pairs:
        node, other = open_pairs.pop()
        if node in twin:
            continue
        assert node.op is other.op
        twin[node] = other
        pairs = zip(node.args, other.args, strict=True)
        open_pairs += [(a, b) for a, b in pairs if isinstance(a, Node) and a in inside]
    return twin
