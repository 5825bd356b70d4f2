"""Hoisting: transposes and factorizations of loop-invariant matrices, before the loop.

Hoisting transposes: loop-invariant matrices are transposed before the loop, if products need it.

    h @ weight.T       in each step

reads columns of `weight`, which are not contiguous, so the matrix product rearranges it in every
step.  This pass makes the transpose an operand of the loop.

Hoisting factorizations: a loop-invariant matrix is factorized once.

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
from wengert._engine.core.graph import AnyGraph
from wengert._engine.core.graph_classes import Body
from wengert._engine.core.graph_copies import rebuilt
from wengert._engine.core.node import Node
from wengert._engine.core.op import lookup
from wengert._engine.core.op_facts import LOOP
from wengert._engine.core.spec import Spec
from wengert._engine.core.tracing import infer, part_of, placeholder
from wengert._engine.rewrite.driver import Applied

from .loop_dce import used
from .loop_view import LoopView, Rewiring

_PRODUCTS = ("einsum", "strong_einsum", "matmul", "dot")
_LEAST_PRODUCT_ROWS = (
    4  # rows of the other factor; with fewer, a product reads the matrix only once
)
_MIN_ELEMENTS = 1024  # of the matrix; for a smaller one it is not worthwhile
TRANSPOSED = "transpose hoisted"


def with_hoisted_transposes(graph: AnyGraph) -> tuple[AnyGraph, list[Applied]]:
    """The graph with transposes hoisted out of loops, and the rewrites."""
    if not any(n.op.control_flow == LOOP for n in graph.nodes):
        return graph, []
    needs = used(graph)  # omits loops whose results are used as a tuple
    rewiring, applied = Rewiring(), []
    for node in graph.nodes:
        rewiring.follow(node)
        loop = rewiring.replacements.get(node, node)
        if (
            node not in needs
            or node.op.control_flow != LOOP
            or (rewritten := _with_transposes(loop)) is None
        ):
            continue
        rewiring.replace(node, {k: part_of(rewritten, k) for k in range(len(loop.spec))})
        applied.append(Applied(TRANSPOSED, node, rewritten))
    return (rewiring.graph(graph), applied) if applied else (graph, [])


def _with_transposes(node: Node) -> Node | None:
    """The loop with some operands transposed; None if no layout changes."""
    loop = LoopView(node)
    positions = [k for k in range(loop.fixed) if _is_read_across(loop, k)]
    if not positions:
        return None
    inputs, consts, replacements = list(loop.body.inputs), list(loop.consts), {}
    for k in positions:
        old = inputs[k]
        spec = Spec(old.spec.shape[::-1], old.spec.dtype)
        inputs[k] = placeholder(spec, old.name, type(old) is Node)
        replacements[old] = _transpose(inputs[k], old)
        consts[k] = _transpose(consts[k], node)
    nodes = rebuilt(loop.body.nodes, replacements)
    outputs = [nodes.get(n, n) for n in loop.body.outputs]
    body = Body(*outputs, inputs=inputs, name=loop.body.name)
    return loop.with_body(body, loop.condition, consts, loop.carry, loop.rows)


def _transpose(x: Node, near: Node) -> Node:
    spec = Spec(x.spec.shape[::-1], x.spec.dtype)
    return type(x)(lookup("transpose"), (x,), {"axes": None}, None, near.provenance(spec))


def _is_read_across(loop: LoopView, k: int) -> bool:
    """Whether a const is a matrix whose columns are read by all its products."""
    matrix = loop.body.inputs[k]
    shape = matrix.spec.shape
    if len(shape) != 2 or not all(isinstance(n, int) for n in shape):
        return False
    if shape[0] * shape[1] < _MIN_ELEMENTS or loop.condition is not None:
        return False
    views = {matrix: False}  # whether the matrix is used transposed
    has_product = False
    for n in loop.body.nodes:
        operands = [a for a in n.inputs if a in views]
        if not operands:
            continue
        if n.op.name == "transpose" and n.params.get("axes") in (None, (1, 0)):
            views[n] = not views[operands[0]]
        elif len(operands) == 1 and n.op.name in _PRODUCTS and len(n.inputs) == 2:
            if not _is_across(n, operands[0], views[operands[0]]):
                return False
            has_product = True
        else:
            return False
    return has_product and views.keys().isdisjoint(loop.body.outputs)


def _is_across(product: Node, view: Node, is_transposed: bool) -> bool:
    """Whether adjacent elements in a row of the result belong to different rows of the matrix."""
    ranks = [len(a.spec.shape) for a in product.inputs]
    *subscripts, result = lookup(product.op.name).subscripts(*ranks, **product.params)
    position = product.inputs.index(view)
    own, other = subscripts[position], subscripts[1 - position]
    own = own[::-1] if is_transposed else own  # as in memory
    if len(set(own)) != 2 or not result or result[-1] != own[0] or own[1] not in other:
        return False
    if own[1] in result or own[0] in other:
        return False
    rows: Any = 1
    for label, n in zip(result, product.spec.shape, strict=True):
        rows = rows * n if label in other else rows
    return isinstance(rows, int) and rows >= _LEAST_PRODUCT_ROWS


FACTORED = "factorization hoisted"
_LEAST_SYSTEM_ROWS = 16  # smaller systems are solved in registers, faster than a call of LAPACK
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
        and rows >= _LEAST_SYSTEM_ROWS
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
