"""Quotients by differences of eigenvalues or singular values, which may be equal.

    quotients    x / d, and what it tends to where d is zero

The rules of eigh and svd divide cotangents x by differences d.  A function that does not depend on
how equal eigenvectors are chosen (the logarithm of a matrix, a projector) has x = 0 where d = 0,
and x / d tends to a number there: by l'Hospital's rule the quotient of the derivatives of x and d,
when the eigenvalues move apart and the eigenvectors stay.  How x depends on the eigenvalues is
known when the pass is recorded; so a pass that was not is repeated, recorded
(autodiff/reverse.py), when it meets such a quotient.  The next term of Taylor's series is there for
the next derivative:

    x / d = x' / d' - d x'' / (2 d'**2) + ...

A function that does depend on the choice has no derivative there, and is refused; so are third
derivatives, for which a further term were needed.  In a graph, where values cannot be looked at,
the quotient is NaN.
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
from .forward_mode import ForwardMode

if TYPE_CHECKING:
    from wengert._engine.core.types import Array


def quotients(
    triples: Sequence[tuple[Any, Any, Any]],
    out: Any,
    place: int,
    speeds: Array,
    scale: Array,
    size: Array,
) -> list[Any]:
    """x / d for each (x, d, d'), and what it tends to where d is nearly zero.

    Parameters
    ----------
    triples : sequence of (x, d, slope)
        Numerators, divisors, and the slopes of the divisors when the values move.
    out : tuple
        The outputs of the operation, of which number `place` are the values.
    speeds : array
        How the values move: each at another speed.
    scale : array
        The size of the values, for each matrix.
    size : array
        What is little for a numerator, for each matrix, is little beside this.

    Raises
    ------
    DerivativeError
        A quotient tends to infinity.
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
    if not isinstance(out[place], Handle) or out[place].node.op.name != "part":
        pairs = zip(triples, near, strict=True)
        return [x / where(mask, np.array(nan, dtype_of(d)), d) for (x, d, _), mask in pairs]
    node = out[place].node.args[0]
    firsts = _slopes([x for x, _, _ in triples], node, place, len(out), speeds)
    seconds = _slopes(firsts, node, place, len(out), speeds)
    found = []
    for triple, mask, first, second in zip(triples, near, firsts, seconds, strict=True):
        found.append(_settled(*triple, mask, first, second, scale, size))
    return found


def _slopes(xs: Sequence[Any], node: Node, place: int, outputs: int, speeds: Array) -> list[Any]:
    """The derivatives of numbers by the values, when these move and the vectors stay."""
    moving = [wrap(constant(speeds)) if i == place else None for i in range(outputs)]
    found = ForwardMode.pushforward([x.node for x in xs], {node: tuple(moving)})
    zeros = [wrap(constant(np.zeros(x.shape, x.dtype))) for x in xs]
    return [zero if dot is None else dot for dot, zero in zip(found, zeros, strict=True)]


def _settled(
    x: Array,
    d: Array,
    slope: Array,
    near: Array,
    first: Array,
    second: Array,
    scale: Array,
    size: Array,
) -> Any:
    """x / d, by Taylor's series where d is nearly zero and x is too."""
    known = np.isfinite(value_of(second))
    second = where(known, second, 0.0)
    rise = value_of(d) - d  # zero, and infinite in the derivative that is not known
    unknown = rise ** np.where(known, 1.5, 0.5).astype(scale.dtype)
    first = first / slope
    limit = first - (d / (2.0 * slope * slope)) * second + unknown * (first + second)
    values, gaps = value_of(x), value_of(d)
    size = np.maximum(size[..., None, None], np.abs(value_of(first)))
    eps = float(np.finfo(scale.dtype).eps)
    free = near & (np.abs(values - gaps * value_of(limit)) <= np.sqrt(eps) * size)
    stuck = near & ~free & (np.abs(gaps) <= 16.0 * eps * scale)
    if np.any(stuck):
        raise _refusal(bool(np.all(np.isfinite(values[np.broadcast_to(stuck, values.shape)]))))
    return where(free, limit, x / where(free, np.array(1.0, gaps.dtype), d))


def _refusal(finite: bool) -> DerivativeError:
    if not finite:
        return DerivativeError(
            "A third derivative of eigenvectors or singular vectors whose values are equal was "
            "needed: only the first two are known there. Use a function of the matrix (expm, logm, "
            f"sqrtm, polar), which has them all{at(user_line())}."
        )
    return DerivativeError(
        "The derivative of eigenvectors or singular vectors whose values are equal was needed, "
        "by a function that depends on how they are chosen: there is none. Use a function of "
        f"the values, or one that all choices agree on{at(user_line())}."
    )
