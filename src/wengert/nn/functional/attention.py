"""Scaled dot-product attention, with masks.

    scaled_dot_product_attention         softmax(q k.T / sqrt(width)) v
    split_mask, causal_mask, make_mask   masks: which sources each target attends to
    attention_weights                    the softmax of scores that are not masked

Masked sources have weight 0 and no gradient.  A target whose sources are all masked gets zeros,
with zero gradients; the softmax of a row of -inf would be NaN.
"""

from __future__ import annotations

from math import sqrt
from typing import Any, NamedTuple

import numpy as np

from wengert._engine.core.handle import dtype_of, is_traced, shape_of, value_of
from wengert._engine.core.symbolic.dim import Dim, spelled
from wengert._engine.core.tracing import size_value
from wengert.errors import DtypeError, ShapeError, at, user_line
from wengert.numpy import arange

from .activations import softmax
from .linear_dropout_embedding import dropout

__all__ = ["scaled_dot_product_attention"]


class Mask(NamedTuple):
    """An attention mask.

    allowed : booleans that broadcast to the scores, or None if nothing is masked
    added : array added to the scores, or None
    anyone : for each target, whether any source is allowed; None if that holds for all targets
    """

    allowed: Any
    added: Any
    anyone: Any


def split_mask(mask: Any, what: str) -> tuple[Any, Any]:
    """A mask given by the user, as a pair (allowed, added); either may be None.

    Raises
    ------
    DtypeError
        The mask is neither boolean nor floating-point.
    """
    if mask is None:
        return None, None
    if not is_traced(mask) and not hasattr(mask, "node"):
        mask = np.asarray(mask)
    kind = dtype_of(mask).kind
    if kind == "b":
        return mask, None
    if kind != "f":
        raise DtypeError(
            f"{what}: expected a boolean mask, or floating-point numbers to be added to the "
            f"scores, got {dtype_of(mask)}{at(user_line())}."
        )
    values = value_of(mask)
    blocked = np.isneginf(values)
    if isinstance(blocked, np.ndarray) and not blocked.any():
        return None, mask
    return ~blocked, np.where(blocked, 0.0, mask)


def causal_mask(rows: Any, columns: Any) -> Any:
    """The causal mask, booleans of shape (rows, columns): target i attends to sources 0 to i."""
    return np.reshape(arange(columns), (1, -1)) <= np.reshape(arange(rows), (-1, 1))


def combine_masks(one: Any, other: Any) -> Any:
    """The conjunction of two boolean masks, either of which may be None."""
    if one is None or other is None:
        return other if one is None else one
    return np.logical_and(one, other)


def make_mask(allowed: Any, added: Any = None) -> Mask:
    """A `Mask` of booleans, and an array to be added to the scores."""
    if allowed is None:
        return Mask(None, added, None)
    allowed = value_of(allowed)
    anyone = np.any(allowed, axis=-1, keepdims=True)
    if isinstance(anyone, np.ndarray | np.bool_) and np.all(anyone):
        anyone = None
    return Mask(allowed, added, anyone)


def attention_weights(scores: Any, mask: Mask) -> Any:
    """The softmax of the allowed scores along the last axis; 0 for the others."""
    if mask.added is not None:
        scores = scores + mask.added
    if mask.allowed is None:
        return softmax(scores, -1)
    if mask.anyone is None:
        return softmax(np.where(mask.allowed, scores, -np.inf), -1)
    nothing = np.where(mask.anyone, -np.inf, 0.0).astype(dtype_of(scores))
    weights = softmax(np.where(mask.allowed, scores, nothing), -1)
    return np.where(mask.anyone, weights, 0.0)


def _scale(width: Any) -> Any:
    return 1.0 / np.sqrt(size_value(width)) if isinstance(width, Dim) else 1.0 / sqrt(max(width, 1))


def scaled_dot_product_attention(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: Any = None,
    enable_gqa: bool = False,
    rng: Any = None,
) -> Any:
    """softmax(query key.T / sqrt(width)) value.

    Parameters
    ----------
    query : array or Tensor, shape (..., targets, width)
    key : array or Tensor, shape (..., sources, width)
    value : array or Tensor, shape (..., sources, length)
    attn_mask : array of bool or float, optional
        Broadcasts to (..., targets, sources). Booleans: True where a target attends to a source.
        Floats are added to the scores, and differentiated; -inf masks a source.
    dropout_p : float, default 0
        Probability of dropping a weight. There is no evaluation mode: pass 0 in evaluation.
    is_causal : bool, default False
        Whether target i attends to sources 0 to i only; combined with `attn_mask`.
    scale : float, optional
        Default 1 / sqrt(width).
    enable_gqa : bool, default False
        Grouped-query attention: `query` has several heads, on axis -3, for each head of `key` and
        `value`.
    rng : int, numpy.random.Generator or wengert.random.Stream, optional
        For dropout; must be a `Stream` while tracing.

    Returns
    -------
    array or Tensor, shape (..., targets, length)

    Raises
    ------
    ShapeError
        Widths or numbers of sources differ.
    DtypeError
        The mask has an integer dtype.

    Notes
    -----
    A target whose sources are all masked gets zeros, with zero gradients. All scores are stored:
    targets times sources numbers for each element of the batch.

    References
    ----------
    .. [1] A. Vaswani et al., "Attention is all you need", NeurIPS 2017, arXiv:1706.03762.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert.nn.functional import scaled_dot_product_attention
    >>> x = np.eye(3)
    >>> scaled_dot_product_attention(x, x, x, is_causal=True, scale=0.0).round(2)
    array([[1.  , 0.  , 0.  ],
           [0.5 , 0.5 , 0.  ],
           [0.33, 0.33, 0.33]])
    """
    what = "scaled_dot_product_attention"
    q, k, v = shape_of(query), shape_of(key), shape_of(value)
    if min(len(q), len(k), len(v)) < 2 or q[-1] != k[-1] or k[-2] != v[-2]:
        raise ShapeError(
            f"{what}: expected a query (..., targets, width), a key (..., sources, width) and a "
            f"value (..., sources, length), got shapes {spelled(q)}, {spelled(k)} and "
            f"{spelled(v)}{at(user_line())}."
        )
    if enable_gqa and q[-3] != k[-3]:
        if q[-3] % k[-3] or k[-3] != v[-3]:
            raise ShapeError(
                f"{what}: {q[-3]} heads of queries for {k[-3]} of keys and {v[-3]} of values. Keys "
                f"and values must have equally many, a divisor of the first{at(user_line())}."
            )
        key, value = (np.repeat(x, q[-3] // k[-3], axis=-3) for x in (key, value))
    allowed, added = split_mask(attn_mask, what)
    if is_causal:
        allowed = combine_masks(causal_mask(q[-2], k[-2]), allowed)
    scores = np.matmul(
        query * (_scale(q[-1]) if scale is None else scale), np.swapaxes(key, -1, -2)
    )
    weights = attention_weights(scores, make_mask(allowed, added))
    if dropout_p:
        weights = dropout(weights, dropout_p, True, rng)
    return np.matmul(weights, value)
