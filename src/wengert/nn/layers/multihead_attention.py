"""MultiheadAttention: attention with several heads, and projections.

Names and shapes of parameters and the meaning of masks are PyTorch's.  Heads are an additional axis
in the layout of the projections; products are written with `einsum`, so nothing is transposed.
Masks are handled in functional/attention.py.
"""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np

from wengert._engine.core.handle import dtype_of, shape_of
from wengert._engine.core.symbolic.dim import spelled
from wengert.errors import ArgumentError, ShapeError, at, user_line
from wengert.numpy import zeros
from wengert.random import Stream

from .. import functional as F
from .. import init
from ..functional.attention import (
    Mask,
    attention_weights,
    causal_mask,
    combine_masks,
    make_mask,
    split_mask,
)
from ..module import Module
from ..parameter import Parameter
from .linear_dropout_embedding import Linear

__all__ = ["MultiheadAttention"]


class MultiheadAttention(Module):
    """Attention with several heads, each with a projection of queries, keys and values.

    Parameters
    ----------
    embed_dim : int
        Length of the last axis of queries and results.
    num_heads : int
        Must divide embed_dim; a head has width embed_dim / num_heads.
    dropout : float, default 0
        Probability of dropping a weight, in training.
    bias : bool, default True
    add_bias_kv : bool, default False
        Whether to append a learned key and value to all sequences.
    add_zero_attn : bool, default False
        Whether to append a key and value of zeros.
    kdim, vdim : int, optional
        Lengths of the last axes of keys and values; default embed_dim.
    batch_first : bool, default False
        Whether sequences are (batch, steps, ...) instead of (steps, batch, ...).
    rng : int or numpy.random.Generator, optional
        Source of the initial values and of dropout.
    dtype : dtype, default float64

    Attributes
    ----------
    in_proj_weight : Parameter, shape (3 * embed_dim, embed_dim)
        For queries, keys and values; replaced by q_proj_weight, k_proj_weight and v_proj_weight if
        kdim or vdim differ from embed_dim.
    in_proj_bias : Parameter, shape (3 * embed_dim,), or None
    out_proj : Linear

    References
    ----------
    .. [1] A. Vaswani et al., "Attention is all you need", NeurIPS 2017, arXiv:1706.03762.

    Examples
    --------
    >>> import numpy as np
    >>> from wengert import nn
    >>> layer = nn.MultiheadAttention(8, 2, batch_first=True, rng=0)
    >>> x = np.ones((3, 5, 8))
    >>> output, weights = layer(x, x, x)
    >>> output.shape, weights.shape
    ((3, 5, 8), (3, 5, 5))
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        rng: Any = None,
        dtype: Any = float,
    ) -> None:
        if num_heads < 1 or embed_dim < 1 or embed_dim % num_heads:
            raise ArgumentError(
                f"MultiheadAttention({embed_dim}, {num_heads}): embed_dim must be a multiple of "
                f"num_heads{at(user_line())}."
            )
        rng = np.random.default_rng(rng)
        self.embed_dim, self.num_heads, self.dropout = embed_dim, num_heads, dropout
        self.kdim, self.vdim = kdim or embed_dim, vdim or embed_dim
        self.batch_first, self.add_zero_attn = batch_first, add_zero_attn
        e = embed_dim
        if self.kdim == self.vdim == e:
            self.in_proj_weight = Parameter(init.xavier_uniform((3 * e, e), rng, dtype))
        else:
            widths = {"q": e, "k": self.kdim, "v": self.vdim}
            for name, width in widths.items():
                start = Parameter(init.xavier_uniform((e, width), rng, dtype))
                setattr(self, f"{name}_proj_weight", start)
        self.in_proj_bias = Parameter(np.zeros(3 * e, dtype)) if bias else None
        self.out_proj = Linear(e, e, bias, rng, dtype)
        if bias:
            self.out_proj.bias = Parameter(np.zeros(e, dtype))
        if add_bias_kv:
            for name in ("bias_k", "bias_v"):
                start = Parameter(init.normal((1, 1, e), sqrt(1.0 / e), rng, dtype))
                setattr(self, name, start)
        self.rng = Stream(int(rng.integers(2**63))) if dropout else None

    def forward(
        self,
        query: Any,
        key: Any,
        value: Any,
        key_padding_mask: Any = None,
        need_weights: bool = True,
        attn_mask: Any = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Any, Any]:
        """Attend to the sources.

        Parameters
        ----------
        query : array or Tensor, shape (targets, batch, embed_dim)
            Or (batch, targets, embed_dim) with `batch_first`, or (targets, embed_dim).
        key, value : array or Tensor, shapes (sources, batch, kdim) and (sources, batch, vdim)
        key_padding_mask : array of bool or float, shape (batch, sources), optional
            True for sources that are ignored; floats are added to the scores.
        need_weights : bool, default True
            Whether to return also the weights.
        attn_mask : array of bool or float, optional
            Shape (targets, sources) or (batch * heads, targets, sources). True where a target does
            *not* attend to a source, as in PyTorch (the opposite of
            `scaled_dot_product_attention`); floats are added to the scores.
        average_attn_weights : bool, default True
            Whether the weights are averaged over heads.
        is_causal : bool, default False
            Whether target i attends to sources 0 to i only; needs no `attn_mask`.

        Returns
        -------
        output, in the layout of the query
        weights, shape (batch, targets, sources) or (batch, heads, targets, sources), or None

        Raises
        ------
        ShapeError, DtypeError
            Shapes do not match, or a mask has an integer dtype.
        """
        given = [query, key, value]
        single = len(shape_of(query)) == 2
        same = key is query and value is query
        self._check(*map(shape_of, given))
        axis = 0 if self.batch_first else 1
        if single:
            query = np.expand_dims(query, axis)
            key, value = (query, query) if same else (np.expand_dims(x, axis) for x in given[1:])
        elif not self.batch_first:
            axis = 1
        q, k, v = self._projected(query, key, value, same)
        k, v, more = self._extended(k, v)
        subscripts = ("blhd", "bshd") if self.batch_first else ("lbhd", "sbhd")
        width = self.embed_dim // self.num_heads
        scores = np.einsum(f"{subscripts[0]},{subscripts[1]}->bhls", q * (1.0 / sqrt(width)), k)
        mask = self._mask(key_padding_mask, attn_mask, is_causal, shape_of(scores), more, single)
        weights = attention_weights(scores, mask)
        if self.dropout:
            weights = F.dropout(weights, self.dropout, self.training, self.rng)
        out = np.einsum(f"bhls,{subscripts[1]}->{subscripts[0]}", weights, v)
        out = self.out_proj(np.reshape(out, (*shape_of(out)[:2], self.embed_dim)))
        if single:
            out = np.squeeze(out, axis)
        if not need_weights:
            return out, None
        weights = np.mean(weights, axis=1) if average_attn_weights else weights
        return out, np.squeeze(weights, 0) if single else weights

    def _check(self, *shapes: tuple[Any, ...]) -> None:
        q, k, v = shapes
        steps = 1 if self.batch_first and len(q) == 3 else 0
        wanted = (self.embed_dim, self.kdim, self.vdim)
        fits = len(q) in (2, 3) and len(q) == len(k) == len(v)
        fits = fits and tuple(s[-1] for s in shapes) == wanted and k[:-1] == v[:-1]
        if not fits or (len(q) == 3 and q[1 - steps] != k[1 - steps]):
            order = "(batch, steps, width)" if self.batch_first else "(steps, batch, width)"
            raise ShapeError(
                f"{self!r}: query, key and value must have shape {order} or (steps, width), of "
                f"widths {wanted}, with equal steps of key and value; got {spelled(q)}, "
                f"{spelled(k)} and {spelled(v)}{at(user_line())}."
            )

    def _projected(self, query: Any, key: Any, value: Any, same: bool) -> list[Any]:
        """Projected queries, keys and values by head; one product for self-attention."""
        e, bias = self.embed_dim, self.in_proj_bias
        if same and hasattr(self, "in_proj_weight"):
            both = self._by_head(F.linear(query, self.in_proj_weight, bias), 3)
            return [both[..., i, :, :] for i in range(3)]
        if hasattr(self, "in_proj_weight"):
            weights = [self.in_proj_weight[i * e : (i + 1) * e] for i in range(3)]
        else:
            weights = [getattr(self, f"{name}_proj_weight") for name in "qkv"]
        biases = [None if bias is None else bias[i * e : (i + 1) * e] for i in range(3)]
        pairs = zip((query, key, value), weights, biases, strict=True)
        return [self._by_head(F.linear(x, w, b), 1)[..., 0, :, :] for x, w, b in pairs]

    def _by_head(self, x: Any, parts: int) -> Any:
        heads = (parts, self.num_heads, self.embed_dim // self.num_heads)
        return np.reshape(x, (*shape_of(x)[:-1], *heads))

    def _extended(self, k: Any, v: Any) -> tuple[Any, Any, int]:
        """Keys and values with the learned and zero ones appended, and the number of these."""
        axis, more = (1 if self.batch_first else 0), 0
        shape = list(shape_of(k))
        shape[axis] = 1
        if hasattr(self, "bias_k"):
            learned = [
                np.broadcast_to(self._by_head(x, 1)[..., 0, :, :], tuple(shape))
                for x in (getattr(self, name) for name in ("bias_k", "bias_v"))
            ]
            k, v = (np.concatenate(pair, axis=axis) for pair in zip((k, v), learned, strict=True))
            more += 1
        if self.add_zero_attn:
            zero = zeros(tuple(shape), dtype_of(k))
            k, v = (np.concatenate((x, zero), axis=axis) for x in (k, v))
            more += 1
        return k, v, more

    def _mask(
        self, padding: Any, mask: Any, is_causal: bool, shape: Any, more: int, single: bool
    ) -> Mask:
        """All masks combined; keys that were appended are never masked."""
        batch, heads, rows, columns = shape
        columns = columns - more
        allowed = causal_mask(rows, columns) if is_causal else None
        added = None
        wanted = (columns,) if single else (batch, columns)
        for name, given, shapes in (
            ("key_padding_mask", padding, (wanted,)),
            ("attn_mask", mask, ((rows, columns), (batch * heads, rows, columns))),
        ):
            if given is None:
                continue
            if shape_of(given) not in shapes:
                raise ShapeError(
                    f"MultiheadAttention: {name} must have shape "
                    f"{' or '.join(map(spelled, shapes))}, got {spelled(shape_of(given))}"
                    f"{at(user_line())}."
                )
            here, plus = split_mask(given, "MultiheadAttention")
            if plus is None:
                here = np.logical_not(here)
            there = [None if x is None else self._spread(x, name, shape) for x in (here, plus)]
            allowed = combine_masks(allowed, there[0])
            if there[1] is not None:
                added = there[1] if added is None else added + there[1]
        if more:
            allowed, added = (_wider(x, more) for x in (allowed, added))
        return make_mask(allowed, added)

    def _spread(self, x: Any, name: str, shape: Any) -> Any:
        """A mask with the axes of the scores: batch, heads, targets, sources."""
        batch, heads = shape[:2]
        if name == "key_padding_mask":
            return np.reshape(x, (-1, 1, 1, shape_of(x)[-1]))
        own = shape_of(x)
        return x if len(own) == 2 else np.reshape(x, (batch, heads, *own[1:]))

    def extra_repr(self) -> str:
        """Sizes."""
        text = f"{self.embed_dim}, {self.num_heads}"
        if (self.kdim, self.vdim) != (self.embed_dim, self.embed_dim):
            text += f", kdim={self.kdim}, vdim={self.vdim}"
        return text + (", batch_first=True" if self.batch_first else "")


def _wider(x: Any, more: int) -> Any:
    """A mask extended by sources that are not masked."""
    if x is None:
        return None
    edge = np.ones if dtype_of(x).kind == "b" else np.zeros
    return np.concatenate((x, edge((*shape_of(x)[:-1], more), dtype_of(x))), axis=-1)
