"""Hoisting factorizations: a loop-invariant matrix is factorized once.

    x = solve(a, b)       in each step, with a loop-invariant `a`,

factorizes `a` in each step, which costs n / 3 times as much as the triangular solves.  It becomes

    factors, pivots = lu_packed(a)             before the loop
    x = solve_packed(factors, pivots, b)       in each step

The backward pass of such a loop solves with the transpose of the same matrix, and uses the same
factors.  A singular matrix still raises at the first solve.
"""

from __future__ import annotations

from typing import Any

from wengert._engine.control_flow.closure_conversion import same_in_each_step
from wengert._engine.core.copy_graph import rebuilt
from wengert._engine.core.node import Node
from wengert._engine.core.op import lookup
from wengert._engine.core.subgraph import Body
from wengert._engine.core.tracing import infer, part_of

NAME = "factorization hoisted"
_MIN_ROWS = 16  # smaller systems are solved in registers, faster than a call of LAPACK
_DTYPES = "fdFD"


def factored(body: Body, count: int, runs: bool) -> Body | None:
    """The body with solves that use factors, for loop-invariant matrices.

    Parameters
    ----------
    body : Body
    count : int
        The number of loop-invariant inputs.
    runs : bool
        Whether there is at least one step.

    Returns
    -------
    Body or None
        None if there is no such matrix.
    """
    if not any(n.op.name == "solve" for n in body.nodes):
        return None
    fixed = same_in_each_step(body, count, runs)
    solves = [
        n for n in body.nodes if n not in fixed and _is_worthwhile(n) and n.inputs[0] in fixed
    ]
    if not solves:
        return None
    factors: dict[Node, Node] = {}

    def change(node: Node, args: tuple[Any, ...]) -> Node | None:
        return _solve_by_factors(node, args, factors) if node in solves else None

    nodes = rebuilt(body.nodes, {}, change)
    outputs = [nodes.get(n, n) for n in body.outputs]
    return Body(*outputs, inputs=body.inputs, name=body.name)


def _is_worthwhile(node: Node) -> bool:
    """Whether a node is a solve that is faster with a separate factorization."""
    if node.op.name != "solve":
        return False
    a, b = (x.spec for x in node.inputs)
    rows = a.shape[-1]
    return (
        ((b.ndim == 1 and a.ndim == 2) or b.ndim >= 2)
        and type(rows) is int
        and rows >= _MIN_ROWS
        and a.dtype == b.dtype
        and a.dtype.char in _DTYPES
    )


def _solve_by_factors(node: Node, args: tuple[Node, ...], factors: dict[Node, Node]) -> Node:
    """The node as a solve with factors, which are created at its first use."""
    (a, trans), b = _without_transpose(args[0]), args[1]
    if a not in factors:
        factors[a] = _node("lu_packed", (a,), {}, a, node)
    packed, pivots = (part_of(factors[a], k) for k in (0, 1))
    if b.spec.ndim > 1:
        return _node("solve_packed", (packed, pivots, b), {"trans": trans}, node, node)
    column = _node("reshape", (b,), {"shape": (*b.spec.shape, 1)}, b, node)
    x = _node("solve_packed", (packed, pivots, column), {"trans": trans}, node, node)
    return _node("reshape", (x,), {"shape": node.spec.shape}, node, node)


def _without_transpose(a: Node) -> tuple[Node, int]:
    """The matrix that an operand is made from, and how: 0 itself, 1 transposed, 2 adjoint."""
    inner = _untransposed(a)
    if inner is not None and inner.op.name == "conjugate":
        return inner.inputs[0], 2
    if inner is not None:
        return inner, 1
    if a.op.name == "conjugate" and (inner := _untransposed(a.inputs[0])) is not None:
        return inner, 2
    return a, 0


def _untransposed(a: Node) -> Node | None:
    """The operand whose last two axes a node swaps; None for other nodes."""
    if a.op.name != "transpose":
        return None
    order, axes = range(a.spec.ndim), a.params.get("axes")
    if tuple(order[::-1] if axes is None else axes) != (*order[:-2], *order[:-3:-1]):
        return None
    return a.inputs[0]


def _node(
    name: str, args: tuple[Node, ...], params: dict[str, Any], like: Node, near: Node
) -> Node:
    """A new node, differentiable if `like` is, with the source location of `near`."""
    op = lookup(name)
    spec, _ = infer(op, tuple([a.spec for a in args]), params)
    return type(like)(op, args, params, None, near.provenance(spec))
