"""Matrix products, contractions and determinants.

Gemm is alpha A B + beta C, with optionally transposed matrices; MatMul and Einsum are defined as in
NumPy.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .elementwise import weak
from .node_view import NodeView
from .registry import imports


@imports("MatMul")
def _matmul(n: NodeView, x: Any, y: Any) -> Any:
    return np.matmul(x, y)


@imports("Gemm")
def _gemm(n: NodeView, a: Any, b: Any, c: Any = None) -> Any:
    alpha, beta = weak(n.get("alpha", 1.0)), weak(n.get("beta", 1.0))
    a = np.transpose(a) if n.get("transA", 0) else a
    b = np.transpose(b) if n.get("transB", 0) else b
    out = np.matmul(a, b)
    out = out if alpha == 1.0 else alpha * out
    if c is None or beta == 0.0:
        return out
    return out + (c if beta == 1.0 else beta * c)


@imports("Einsum")
def _einsum(n: NodeView, *xs: Any) -> Any:
    return np.einsum(n.get("equation"), *xs)


@imports("Det")
def _det(n: NodeView, x: Any) -> Any:
    return np.linalg.det(x)
