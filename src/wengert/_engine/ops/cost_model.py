"""Costs: what one line of a list costs, by its operation and the specs of its operands.

The counts are estimates of the usual kind: one floating-point operation for each element of an
elementwise line, two for each product of a contraction, the textbook terms of highest order for
factorizations of matrices.  What moves or looks up elements counts none.  What cannot be known (an
operation of a user) is None, and a report says so.

    flops_of        floating-point operations of a line; flops_of_body of a step of a loop
    steps_of        how many steps a loop takes
    bytes_of        the memory that a value takes
    shares_memory   whether the value of a line takes none of its own

Where sizes have names a count is an expression in them; that of a factorization is then not known.
A loop of known length counts all its steps, and a choice the dearest of its branches.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log2, prod
from typing import Any

from wengert._engine.core.node import Leaf, Node
from wengert._engine.core.subgraph import Body, bodies_of
from wengert._engine.core.symbolic.dim import is_open, names_in

# Multiples of n**3 for a square matrix of n rows: Golub and Van Loan, "Matrix Computations",
# 4th ed., tables of chapters 3, 4, 5, 7 and 8.
CUBES = {
    "solve": 2 / 3,
    "inv": 2.0,
    "det": 2 / 3,
    "slogdet": 2 / 3,
    "cholesky": 1 / 3,
    "qr": 4 / 3,
    "eigh": 9.0,
    "eig": 25.0,
    "svd": 21.0,
    "pinv": 21.0,
    "matrix_rank": 4 / 3,
    "expm": 20.0,
}
STILL = frozenset({"view", "indexing", "creation"})
# Opaque to the engine, but one pass over their elements.
PASSES = frozenset({"cumprod", "running", "recurrence", "modf", "frexp", "cumsum"})
CONVOLUTIONS = ("convolution", "convolution_input", "convolution_weight")
TRANSFORMS = {"fft": 5.0, "rfft": 2.5, "irfft": 2.5}  # of n log2(n): Cooley and Tukey's count


def flops_of(node: Node, operands: Sequence[Any], spec: Any) -> Any:
    """How many floating-point operations a line takes.

    Parameters
    ----------
    node : Node
    operands : sequence of Spec
        Specs of the operands, with names or with numbers for sizes.
    spec : Spec, or tuple of Spec
        Of the result.

    Returns
    -------
    number, Dim or None
        None if it cannot be known.
    """
    op = node.op
    if node.params and bodies_of(node):
        return _of_all_steps(node)
    if op.name in TRANSFORMS:
        return _transform(node, spec)
    if isinstance(op, Leaf) or op.effects.side_effect or op.kind in STILL or op.name == "slide":
        return 0
    if op.name in PASSES or op.kind == "reduction":
        return operands[0].size
    if op.name in CONVOLUTIONS:
        return _convolution(node, operands, spec)
    if op.name in CUBES:
        return _matrix(CUBES[op.name], operands)
    if op.name == "solve_triangular":
        return _matrix(0.0, operands)
    if op.name == "convolve":
        return 2 * operands[0].size * operands[1].size
    if op.kind == "elementwise":
        return spec.size
    return _contraction(node, operands) if op.kind == "contraction" else None


def flops_of_body(body: Body) -> Any:
    """Those of the lines of a body together, as far as they are known."""
    total: Any = 0
    for node in body.nodes:
        found = flops_of(node, [a.spec for a in node.inputs], node.spec)
        total += round(found) if isinstance(found, float) else found or 0
    return total


def steps_of(node: Node) -> Any:
    """How many steps a loop takes: a number, an expression in sizes; None if values decide."""
    length = node.params.get("length")
    is_while = node.op.name == "while" or node.params.get("loop") == "while"
    return None if is_while or is_open(length) else length


def _of_all_steps(node: Node) -> Any:
    bodies = bodies_of(node)
    if "branches" in node.params:
        costs = [flops_of_body(b) for b in bodies]
        known = all(isinstance(c, int) for c in costs)
        return max(costs) if known else sum(costs)
    steps = steps_of(node)
    return None if steps is None or node.op.name == "replay" else steps * flops_of_body(bodies[0])


def _contraction(node: Node, operands: Sequence[Any]) -> Any:
    op: Any = node.op
    *words, _ = op.letters(*[s.ndim for s in operands], **node.params)
    lengths: dict[str, Any] = {}
    for word, s in zip(words, operands, strict=True):
        for letter, n in zip(word, s.shape, strict=True):
            if lengths.get(letter, 1) == 1:  # an axis of length one meets a longer one
                lengths[letter] = n
    # More than two operands are taken in pairs, in an order found later: an upper bound.
    return max(1, 2 * (len(words) - 1)) * prod(lengths.values())


def _transform(node: Node, spec: Any) -> float | None:
    """For lines of n numbers; None where n has a name."""
    n, lines = node.params["n"], spec.shape
    if names_in((n, *lines)) or not spec.size:
        return None
    count = spec.size // lines[node.params["axis"]]
    return TRANSFORMS[node.op.name] * count * n * log2(n)


def _convolution(node: Node, operands: Sequence[Any], spec: Any) -> Any:
    """Two for each element of y and of the kernels that it is made with."""
    w, y = {
        "convolution": (operands[1], spec),
        "convolution_input": (operands[1], operands[0]),
        "convolution_weight": (spec, operands[1]),
    }[node.op.name]
    return 2 * y.size * prod(w.shape[1:])


def _matrix(cubes: float, operands: Sequence[Any]) -> float | None:
    """For a stack of matrices; two right-hand-side passes for each column of a second operand."""
    if names_in([n for s in operands for n in s.shape]):
        return None
    *stack, m, n = operands[0].shape
    total = cubes * max(m, n) * min(m, n) ** 2
    if len(operands) > 1 and operands[1].shape:
        second = operands[1].shape
        columns = second[-1] if len(second) > 1 else 1
        total += 2.0 * n * n * columns
    return float(prod(stack) * total)


def bytes_of(spec: Any) -> Any:
    """The memory that a value takes; of several outputs that of all."""
    if type(spec) is tuple:
        return sum(map(bytes_of, spec))
    return 0 if spec is None else spec.size * spec.dtype.itemsize


def shares_memory(node: Node) -> bool:
    """Whether the value of a line takes no memory of its own: a view, a part, an identity.

    An estimate: a reshape copies where the memory does not lie in order.
    """
    return node.op.aliasing.view or node.op.name == "full"  # one number, however often it is read
