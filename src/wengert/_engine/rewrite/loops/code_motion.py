"""Code motion: what loops compute, before or after them.

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

Sinking accumulations: a sum of products in a loop becomes one product after the loop.

    total = total + a.T @ b       in each step, where a and b are rows of arrays,

is the product of the arrays, also contracted over the steps: one large matrix product, which is
twice as fast as many small ones, and does not read and write the total in each step.  Derivatives
with respect to the weights of a recurrent layer are such totals.

Each factor must be a row that the loop reads, or an output that it stacks.  One that is neither is
stacked for this purpose if it takes no more memory than the arrays that the loop reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from string import ascii_letters
from typing import Any, NamedTuple

from wengert._engine.control_flow.closure_conversion import same_in_each_step
from wengert._engine.core.graph import AnyGraph
from wengert._engine.core.graph_classes import Body
from wengert._engine.core.graph_copies import rebuilt
from wengert._engine.core.node import Node
from wengert._engine.core.op import lookup
from wengert._engine.core.op_facts import LOOP
from wengert._engine.core.spec import Spec
from wengert._engine.core.symbolic.dim import is_open
from wengert._engine.core.tracing import infer, part_of, placeholder
from wengert._engine.rewrite.driver import Applied

from .loop_dce import Need, used
from .loop_view import LoopView, Rewiring, like

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


_MIN_WORK = 4096  # multiplications per step; fewer are as fast in the loop
NAME = "sum moved after the loop"


class CarriedSum(NamedTuple):
    """A carried sum of products.

    number : the position of the carried value.
    product : the product that is added.
    factors, subscripts : the factors of the product, without transposes, and their subscripts.
    views : transposes of the product, innermost first.
    """

    number: int
    product: Node
    factors: tuple[Node, ...]
    subscripts: tuple[str, ...]
    views: tuple[Node, ...]


def with_sunk_sums(graph: AnyGraph) -> tuple[AnyGraph, list[Applied]]:
    """A graph with sums of products moved after loops, and the rewrites."""
    if not any(n.op.name == "scan" for n in graph.nodes):
        return graph, []
    needs = used(graph)
    rewiring, applied = Rewiring(), []
    for node in graph.nodes:
        parts = None
        if node.op.name == "scan" and node in needs:
            parts = _without_sums(node, tuple(rewiring.replaced(node.inputs)), needs[node])
        if parts is None:
            rewiring.follow(node)
            continue
        rewiring.replace(node, parts)
        applied.append(Applied(NAME, node, next(iter(parts.values()))))
    return (rewiring.graph(graph), applied) if applied else (graph, [])


def _without_sums(node: Node, operands: tuple[Node, ...], need: Need) -> dict[int, Node] | None:
    """The results of a loop without its sums; None if it has none."""
    original = LoopView(node)
    if original.count or not isinstance(original.length, int) or is_open(original.length):
        return None
    sums = [x for k in sorted(need.results) if k < original.carried and (x := _sum(original, k))]
    extra = _to_be_stacked(original, sums)
    sums = [x for x in sums if all(_is_stacked(original, a) or a in extra for a in x.factors)]
    if not sums:
        return None
    body, removed = original.body, {x.number for x in sums}
    extra = list(dict.fromkeys(a for x in sums for a in x.factors if a in extra))
    kept = [k for k in range(original.carried) if k not in removed]
    ys = [*body.outputs[original.carried :], *extra]
    loop = LoopView(like(node, operands, node.params))
    inputs = [x for k, x in enumerate(body.inputs) if k - original.fixed not in removed]
    new_loop = loop.with_body(
        Body(*[body.outputs[k] for k in kept], *ys, inputs=inputs, name=body.name),
        None,
        loop.consts,
        [loop.carry[k] for k in kept],
        loop.rows,
    )
    parts = {k: _part(new_loop, k, loop.carried, kept) for k in need.results if k not in removed}
    stacks = dict(zip(body.inputs[original.fixed + original.carried :], loop.rows, strict=True))
    for x in sums:
        factors = []
        for a in x.factors:
            if a not in stacks:
                stacks[a] = part_of(new_loop, len(kept) + ys.index(a))
            factors.append(stacks[a])
        parts[x.number] = _total(x, factors, loop.carry[x.number], node)
    return parts


def _part(node: Node, k: int, carried: int, kept: Sequence[int]) -> Node:
    return part_of(node, kept.index(k) if k < carried else k - carried + len(kept))


def _sum(loop: LoopView, k: int) -> CarriedSum | None:
    """Carried value k as a sum of products; None if it is not such a sum."""
    body = loop.body
    total, out = body.inputs[loop.fixed + k], body.outputs[k]
    if out.op.name != "add" or list(out.inputs).count(total) != 1:
        return None
    (added,) = (a for a in out.inputs if a is not total)
    views = []
    while added.op.name == "transpose":
        views.append(added)
        (added,) = added.inputs
    intermediate = [total, out, *views, added]
    if (
        added.op.name not in _PRODUCTS
        or len(added.inputs) != 2
        or not _used_once(body, intermediate)
    ):
        return None
    if added.spec.dtype != total.spec.dtype or out.spec != total.spec:
        return None
    if _work(added) < _MIN_WORK:
        return None
    bases = [_base(a, w) for a, w in zip(added.inputs, _subscripts(added)[:-1], strict=True)]
    factors, subscripts = zip(*bases, strict=True)
    return CarriedSum(k, added, factors, subscripts, tuple(views[::-1]))


def _base(x: Node, subscripts: str) -> tuple[Node, str]:
    """The array that a factor is a transpose of, and its subscripts."""
    while x.op.name == "transpose":
        axes = x.params.get("axes")
        n = len(subscripts)
        order = range(n)[::-1] if axes is None else [k % n for k in axes]
        subscripts = "".join(c for _, c in sorted(zip(order, subscripts, strict=True)))
        (x,) = x.inputs
    return x, subscripts


def _used_once(body: Body, nodes: Sequence[Node]) -> bool:
    """Whether each of these nodes has one use in a body, where outputs are uses."""
    uses = dict.fromkeys(nodes, 0)
    for x in (*(a for n in body.nodes for a in n.inputs), *body.outputs):
        if x in uses:
            uses[x] += 1
    return all(n == 1 for n in uses.values())


def _work(product: Node) -> int:
    """The number of multiplications of a product; 0 if its sizes are symbolic."""
    *subscripts, _ = _subscripts(product)
    lengths: dict[str, Any] = {}
    for labels, a in zip(subscripts, product.inputs, strict=True):
        for label, n in zip(labels, a.spec.shape, strict=True):
            lengths[label] = n if lengths.get(label, 1) == 1 else lengths[label]
    return prod(lengths.values()) if all(isinstance(n, int) for n in lengths.values()) else 0


def _subscripts(product: Node) -> tuple[str, ...]:
    ranks = [len(a.spec.shape) for a in product.inputs]
    subscripts: tuple[str, ...] = lookup(product.op.name).subscripts(*ranks, **product.params)
    return subscripts


def _is_stacked(loop: LoopView, x: Node) -> bool:
    """Whether there is an array with the values of a node in all steps."""
    rows = loop.body.inputs[loop.fixed + loop.carried :]
    return x in rows or x in loop.body.outputs[loop.carried :]


def _to_be_stacked(loop: LoopView, sums: Sequence[CarriedSum]) -> list[Node]:
    """Factors to stack as well, within the memory of the arrays that the loop reads."""
    inputs = loop.body.inputs
    memory = sum(_bytes(x) for x in inputs[loop.fixed + loop.carried :])
    varying, stacked = _varying(loop), list[Node]()
    for x in sums:
        missing = [a for a in x.factors if not _is_stacked(loop, a) and a not in stacked]
        if len(missing) == 1 and missing[0] in varying and _bytes(missing[0]) <= memory:
            memory -= _bytes(missing[0])
            stacked.append(missing[0])
    return stacked


def _varying(loop: LoopView) -> set[Node]:
    """The nodes of a body that vary between steps."""
    varying = set(loop.body.inputs[loop.fixed :])
    for n in loop.body.nodes:
        if n not in varying and not varying.isdisjoint(n.inputs):
            varying.add(n)
    return varying.difference(loop.body.inputs)


def _bytes(x: Node) -> int:
    shape = x.spec.shape
    known = all(isinstance(n, int) for n in shape)
    return prod(shape) * x.spec.dtype.itemsize if known else 0


def _total(x: CarriedSum, factors: Sequence[Node], start: Node, near: Node) -> Node:
    """The product of whole arrays, added to the initial value of the total."""
    subscripts, result = x.subscripts, _subscripts(x.product)[-1]
    step = next(c for c in ascii_letters if c not in "".join((*subscripts, result)))
    name = "strong_einsum" if x.product.op.name == "strong_einsum" else "einsum"
    params = {"subscripts": (*[step + w for w in subscripts], result)}
    total = _node_from(name, tuple(factors), params, x.product, near)
    for view in x.views:
        total = _node_from("transpose", (total,), dict(view.params), view, near)
    if start.op.name == "full" and start.params["value"] == 0:
        return total
    return _node_from("add", (start, total), {}, x.product, near)


def _node_from(
    name: str, args: tuple[Node, ...], params: dict[str, Any], origin: Node, near: Node
) -> Node:
    """A new node with the source location of `origin`, or of `near` if that has none."""
    op = lookup(name)
    spec, _ = infer(op, tuple([a.spec for a in args]), params)
    info = (near if origin.info is None else origin).provenance(spec)
    return type(near)(op, args, params, None, info)
