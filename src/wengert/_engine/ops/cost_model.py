"""Cost model: the cost of a node, from its operation and the specs of its operands.

    flops_of             floating-point operations of a node
    flops_of_body        floating-point operations of one loop step
    steps_of             the number of steps of a loop
    bytes_of             the memory of a value
    shares_memory        whether the value of a node allocates no memory
    pass_over_operand    one per element of the operand
    nothing              zero, for operations that only move elements
    cubes                factorizations and solves of matrices
    transform            fast Fourier transforms
    convolution          two per product

The counts are the usual estimates: one floating-point operation per element of an elementwise node,
two per product of a contraction, the textbook leading terms for matrix factorizations, zero for
moving elements.  Unknown counts (of operations that users define) are None, reported as unknown.

With symbolic sizes a count is an expression in them; that of a factorization is then unknown.  A
loop of known length counts all its steps, and a conditional its most expensive branch.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log2, prod
from typing import TYPE_CHECKING, Any

from wengert._engine.core.graph_classes import Body, bodies_of
from wengert._engine.core.node import LeafOp, Node
from wengert._engine.core.op_facts import REPLAY, Flops
from wengert._engine.core.symbolic.dim import is_open, names_in

if TYPE_CHECKING:
    from wengert._engine.core.spec import Spec
    from wengert._engine.core.types import Array


def pass_over_operand(node: Any, operands: Sequence[Any], spec: Any) -> Any:
    """One per element of the operand."""
    return operands[0].size


def nothing(node: Any, operands: Sequence[Any], spec: Any) -> Any:
    """Zero: elements are only moved."""
    return 0


def cubes(factor: float) -> Flops:
    """`factor` n**3 for an n by n matrix, plus 2 n**2 for each right-hand side.

    The factors are from Golub and Van Loan, "Matrix Computations", 4th ed., tables of
    chapters 3, 4, 5, 7 and 8.
    """

    def count(node: Node, operands: Sequence[Any], spec: Spec) -> float | None:
        if names_in([n for s in operands for n in s.shape]):
            return None
        *stack, m, n = operands[0].shape
        total = factor * max(m, n) * min(m, n) ** 2
        if len(operands) > 1 and operands[1].shape:
            second = operands[1].shape
            columns = second[-1] if len(second) > 1 else 1
            total += 2.0 * n * n * columns
        return float(prod(stack) * total)

    return count


def transform(factor: float) -> Flops:
    """`factor` n log2(n) for each sequence of length n: the count of Cooley and Tukey."""

    def count(node: Node, operands: Sequence[Any], spec: Spec) -> float | None:
        n, shape = node.params["n"], spec.shape
        if names_in((n, *shape)) or not spec.size:
            return None
        return float(factor * (spec.size // shape[node.params["axis"]]) * n * log2(n))

    return count


def _products(w: Any, y: Array) -> Any:
    return 2 * y.size * prod(w.shape[1:])


def convolution(node: Any, operands: Sequence[Any], spec: Any) -> Any:
    """Two for each element of the result and each element of the kernel applied to it."""
    return _products(operands[1], spec)


def convolution_input(node: Any, operands: Sequence[Any], spec: Any) -> Any:
    """As `convolution`, for the cotangent of the input."""
    return _products(operands[1], operands[0])


def convolution_weight(node: Any, operands: Sequence[Any], spec: Any) -> Any:
    """As `convolution`, for the cotangent of the kernel."""
    return _products(spec, operands[1])


def full_convolution(node: Node, operands: Sequence[Any], spec: Spec) -> Any:
    """Two per pair of elements."""
    return 2 * operands[0].size * operands[1].size


_ZERO_FLOP_KINDS = frozenset({"view", "indexing", "creation"})


def flops_of(node: Node, operands: Sequence[Any], spec: Any) -> Any:
    """The number of floating-point operations of a node.

    Parameters
    ----------
    node : Node
    operands : sequence of Spec
        Specs of the operands, with symbolic or concrete sizes.
    spec : Spec, or tuple of Spec
        Spec of the result.

    Returns
    -------
    number, Dim or None
        None if unknown.
    """
    op = node.op
    if node.params and bodies_of(node):
        return _of_all_steps(node)
    if isinstance(op, LeafOp) or op.effects.side_effect:
        return 0
    if op.cost is not None and op.cost.flops is not None:
        return op.cost.flops(node, operands, spec)
    if op.kind in _ZERO_FLOP_KINDS:
        return 0
    if op.kind == "reduction":
        return pass_over_operand(node, operands, spec)
    if op.kind == "elementwise":
        return spec.size
    return _contraction(node, operands) if op.kind == "contraction" else None


def flops_of_body(body: Body) -> Any:
    """The sum over the nodes of a body; unknown counts are omitted."""
    total: Any = 0
    for node in body.nodes:
        flops_of_node = flops_of(node, [a.spec for a in node.inputs], node.spec)
        if flops_of_node is not None:
            total += round(flops_of_node) if isinstance(flops_of_node, float) else flops_of_node
    return total


def steps_of(node: Node) -> Any:
    """The number of steps of a loop: an integer or an expression in sizes; None if not static."""
    length = node.params.get("length")
    is_while = node.op.name == "while" or node.params.get("loop") == "while"
    return None if is_while or is_open(length) else length


def _of_all_steps(node: Node) -> Any:
    bodies = bodies_of(node)
    if "branches" in node.params:
        costs = [flops_of_body(b) for b in bodies]
        if any(map(is_open, costs)):
            return None  # sizes that vary between the steps of a loop
        known = all(isinstance(c, int) for c in costs)
        return max(costs) if known else sum(costs)
    steps = steps_of(node)
    return (
        None
        if steps is None or node.op.control_flow == REPLAY
        else steps * flops_of_body(bodies[0])
    )


def _contraction(node: Node, operands: Sequence[Any]) -> Any:
    op: Any = node.op
    *operand_labels, _ = op.subscripts(*[s.ndim for s in operands], **node.params)
    lengths: dict[str, Any] = {}
    for labels, s in zip(operand_labels, operands, strict=True):
        for label, n in zip(labels, s.shape, strict=True):
            if lengths.get(label, 1) == 1:  # an axis of length one is broadcast
                lengths[label] = n
    # More than two operands are multiplied in pairs, in an order chosen later: an upper bound.
    return max(1, 2 * (len(operand_labels) - 1)) * prod(lengths.values())


def bytes_of(spec: Any) -> Any:
    """The memory of a value, or of all outputs together."""
    if type(spec) is tuple:
        return sum(map(bytes_of, spec))
    return 0 if spec is None else spec.size * spec.dtype.itemsize


def shares_memory(node: Node) -> bool:
    """Whether the value of a node allocates no memory: a view or an array of one value.

    An estimate: a reshape may have to copy.
    """
    aliasing = node.op.aliasing
    return bool(aliasing.view or aliasing.uniform)
