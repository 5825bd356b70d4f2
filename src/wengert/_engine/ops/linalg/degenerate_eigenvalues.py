"""Quotients by differences of eigenvalues or singular values, which may be equal.

  quotients    x / d, and its limit where d is zero

The rules of eigh and svd divide cotangents x by differences d.  For a function that does not depend
on the basis of an eigenspace (the logarithm of a matrix, a projector), x = 0 where d = 0, and x / d
has a limit there: by l'Hospital's rule, the quotient of the derivatives of x and d as the
eigenvalues separate with fixed eigenvectors.  The dependence of x on the eigenvalues is known only
if the pass is recorded; otherwise the pass is repeated with recording (autodiff/reverse.py) when
such a quotient occurs.  The next term of the Taylor series gives the next derivative:

    x / d = x' / d' - d x'' / (2 d'**2) + ...

A function that depends on the basis has no derivative there, and an error is raised; likewise for
third derivatives, which would need a further term.  In a graph, where values are unknown, the
quotient is NaN.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import nan
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.core.handle import Handle, dtype_of, is_traced, value_of, wrap
from wengert._engine.core.node import Node, constant
from wengert.errors import DerivativeError, at, user_line

from ..elementwise.selection import where
from .linear_solve import ForwardMode

if TYPE_CHECKING:
    from wengert._engine.core.types import Array


def quotients(
    triples: Sequence[tuple[Any, Any, Any]],
    out: Any,
    index: int,
    speeds: Array,
    scale: Array,
    size: Array,
) -> list[Any]:
    """x / d for each (x, d, d'), or its limit where d is nearly zero.

    Parameters
    ----------
    triples : sequence of (x, d, slope)
        Numerators, divisors, and the derivatives of the divisors as the values separate.
    out : tuple
        The outputs of the operation; ``out[index]`` are the eigenvalues or singular values.
    speeds : array
        The rates at which the values separate, all distinct.
    scale : array
        The magnitude of the values, for each matrix.
    size : array
        The reference magnitude of the numerators, for each matrix.

    Raises
    ------
    DerivativeError
        A quotient has no finite limit.
    """
    scale = scale[..., None, None]
    eps = float(np.finfo(scale.dtype).eps)
    if any(is_traced(x) or is_traced(d) for x, d, _ in triples):
        limit = 16.0 * eps * scale
        return [x / where(np.abs(value_of(d)) <= limit, nan, d) for x, d, _ in triples]
    scale = value_of(scale)
    near = [np.abs(value_of(d)) <= np.sqrt(eps) * scale for _, d, _ in triples]
    if not any(mask.any() for mask in near):
        return [x / d for x, d, _ in triples]
    if not isinstance(out[index], Handle) or out[index].node.op.name != "part":
        pairs = zip(triples, near, strict=True)
        return [x / where(mask, np.array(nan, dtype_of(d)), d) for (x, d, _), mask in pairs]
    node = out[index].node.args[0]
    firsts = _slopes([x for x, _, _ in triples], node, index, len(out), speeds)
    seconds = _slopes(firsts, node, index, len(out), speeds)
    results = []
    for triple, mask, first, second in zip(triples, near, firsts, seconds, strict=True):
        results.append(_quotient_or_limit(*triple, mask, first, second, scale, size))
    return results


def _slopes(xs: Sequence[Any], node: Node, index: int, outputs: int, speeds: Array) -> list[Any]:
    """The derivatives of xs as the values separate with fixed vectors."""
    tangents = [wrap(constant(speeds)) if i == index else None for i in range(outputs)]
    derivatives = ForwardMode.pushforward([x.node for x in xs], {node: tuple(tangents)})
    zeros = [wrap(constant(np.zeros(x.shape, x.dtype))) for x in xs]
    return [zero if dot is None else dot for dot, zero in zip(derivatives, zeros, strict=True)]


def _quotient_or_limit(
    x: Array,
    d: Array,
    slope: Array,
    near: Array,
    first: Array,
    second: Array,
    scale: Array,
    size: Array,
) -> Any:
    """x / d; by the Taylor series where both x and d are nearly zero."""
    is_known = np.isfinite(value_of(second))
    second = where(is_known, second, 0.0)
    zero = value_of(d) - d  # zero, with an infinite derivative where it is unknown
    unknown_term = zero ** np.where(is_known, 1.5, 0.5).astype(scale.dtype)
    first = first / slope
    limit = first - (d / (2.0 * slope * slope)) * second + unknown_term * (first + second)
    numerators, divisors = value_of(x), value_of(d)
    size = np.maximum(size[..., None, None], np.abs(value_of(first)))
    eps = float(np.finfo(scale.dtype).eps)
    has_limit = near & (np.abs(numerators - divisors * value_of(limit)) <= np.sqrt(eps) * size)
    has_no_limit = near & ~has_limit & (np.abs(divisors) <= 16.0 * eps * scale)
    if np.any(has_no_limit):
        raise _refusal(
            bool(np.all(np.isfinite(numerators[np.broadcast_to(has_no_limit, numerators.shape)])))
        )
    return where(has_limit, limit, x / where(has_limit, np.array(1.0, divisors.dtype), d))


def _refusal(finite: bool) -> DerivativeError:
    if not finite:
        return DerivativeError(
            "A third derivative of eigenvectors or singular vectors with equal values was "
            "requested, but only the first two are available. Use a function of the matrix (expm, "
            f"logm, sqrtm, polar), which has derivatives of every order{at(user_line())}."
        )
    return DerivativeError(
        "The derivative of eigenvectors or singular vectors with equal values was requested by a "
        "function that depends on their basis; it does not exist. Use a function of the values, or "
        f"one that does not depend on the basis{at(user_line())}."
    )
