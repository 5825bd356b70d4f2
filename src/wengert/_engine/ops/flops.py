"""Counts of floating-point operations, for `Cost.flops`.

pass_over_operand    one per element of the operand
nothing              zero, for operations that only move elements
cubes                factorizations and solves of matrices
transform            fast Fourier transforms
convolution          two per product
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log2, prod
from typing import TYPE_CHECKING, Any

from wengert._engine.core.op_facts import Flops
from wengert._engine.core.symbolic.dim import names_in

if TYPE_CHECKING:
    from wengert._engine.core.node import Node
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
