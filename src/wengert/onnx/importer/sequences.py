"""Operators on sequences: attention, rotary embeddings; RNN, GRU and LSTM, each a `scan`.

Attention has operands (batch, heads, steps, width), or (batch, steps, heads * width) with the
number of heads as attributes; each head of keys and values serves the same number of heads of
queries.  Query i is at position `offset` + i among the keys, where `offset` is the number of keys
before the queries: those of `past_key`, or nonpad_kv_seqlen minus the number of queries.  A query
without any allowed key gives zeros.

The first axis of weights is the direction; the gates are concatenated along the second: z, r, h for
GRU, i, o, f, c for LSTM.  The formulas are those of the ONNX specification.  Only sequences of full
length and the default activations are supported.
"""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt
from typing import Any

import numpy as np

from wengert._engine.control_flow import scan
from wengert._engine.core.op import lookup
from wengert._engine.ops.casts import astype
from wengert.nn.functional.attention import attention_weights, combine_masks, make_mask, split_mask
from wengert.numpy import arange, full, take

from .elementwise import weak
from .registry import NodeView, imports


def _by_head(x: Any, heads: int) -> Any:
    """(batch, steps, heads * width) as (batch, heads, steps, width)."""
    batch, steps, width = x.shape
    return np.swapaxes(np.reshape(x, (batch, steps, heads, width // heads)), 1, 2)


def _positions_apart(queries: Any, keys: Any, offset: Any) -> Any:
    """The position of each query minus that of each key."""
    rows = np.reshape(arange(queries), (-1, 1)) + offset
    return rows - np.reshape(arange(keys), (1, -1))


def _allowed(n: NodeView, apart: Any) -> Any:
    """Which keys the attributes allow for each query; None for all."""
    allowed = np.greater_equal(apart, 0) if n.get("is_causal", 0) else None
    left, right = n.get("left_window_size", -1), n.get("right_window_size", -1)
    if left >= 0:
        allowed = combine_masks(allowed, np.less_equal(apart, left))
    if right >= 0:
        allowed = combine_masks(allowed, np.greater_equal(apart, -right))
    return allowed


def _padded(mask: Any, keys: Any) -> Any:
    """A mask extended to all keys: those after its end are masked."""
    have = mask.shape[-1]
    if not (isinstance(have, int) and isinstance(keys, int) and 1 < have < keys):
        return mask
    widths = [(0, 0)] * (len(mask.shape) - 1) + [(0, keys - have)]
    fill = False if mask.dtype.kind == "b" else -np.inf
    return np.pad(mask, widths, constant_values=fill)


def _mask(n: NodeView, given: Any, queries: Any, keys: Any, past: Any, used: Any) -> Any:
    """The mask of the scores, from the mask operand, attributes and numbers of keys in use."""
    allowed, added = split_mask(None if given is None else _padded(given, keys), "Attention")
    offset = past
    if used is not None:
        used = np.reshape(used, (-1, 1, 1, 1))
        offset = used - queries if past is None else past
    apart = _positions_apart(queries, keys, 0 if offset is None else offset)
    allowed = combine_masks(_allowed(n, apart), allowed)
    if used is not None:
        allowed = combine_masks(np.less(np.reshape(arange(keys), (1, 1, 1, -1)), used), allowed)
    return make_mask(allowed, added)


@imports("Attention", grows=True)
def _attention(
    n: NodeView, q: Any, k: Any, v: Any, mask: Any = None, past_key: Any = None,
    past_value: Any = None, used: Any = None,
) -> Any:  # fmt: skip
    flat, dtype = len(q.shape) == 3, q.dtype
    if flat:
        heads = n.get("kv_num_heads")
        q, k, v = _by_head(q, n.get("q_num_heads")), _by_head(k, heads), _by_head(v, heads)
    past = None if past_key is None else past_key.shape[2]
    if past_key is not None:
        k, v = np.concatenate([past_key, k], axis=2), np.concatenate([past_value, v], axis=2)
    present = k, v
    if q.shape[1] != k.shape[1]:
        k, v = (np.repeat(x, q.shape[1] // k.shape[1], axis=1) for x in (k, v))
    scale = n.get("scale")
    root = sqrt(1.0 / sqrt(q.shape[3]) if scale is None else weak(scale))
    scores = np.matmul(q * root, np.swapaxes(k * root, 2, 3))
    seen = [scores]  # the modes of the fourth result
    cap = n.get("softcap", 0.0)
    if cap:
        scores = np.tanh(scores / weak(cap)) * weak(cap)
    seen.append(scores)
    found = _mask(n, mask, q.shape[2], k.shape[2], past, used)
    biased = scores if found.added is None else scores + found.added
    seen.append(biased if found.allowed is None else np.where(found.allowed, biased, -np.inf))
    code = n.get("softmax_precision")
    scores = scores if code is None else astype(scores, n.dtype(code))
    weights = astype(attention_weights(scores, found), dtype)
    seen.append(weights)
    out = np.matmul(weights, v)
    if flat:
        out = np.swapaxes(out, 1, 2)
        out = np.reshape(out, (out.shape[0], out.shape[1], -1))
    return out, *present, astype(seen[n.get("qk_matmul_output_mode", 0)], dtype)


@imports("RotaryEmbedding")
def _rotary(n: NodeView, x: Any, cos: Any, sin: Any, positions: Any = None) -> Any:
    flat = len(x.shape) == 3
    y = _by_head(x, n.get("num_heads")) if flat else x
    width = n.get("rotary_embedding_dim", 0) or y.shape[3]
    if positions is not None:
        cos, sin = take(cos, positions, axis=0), take(sin, positions, axis=0)
    cos, sin = np.expand_dims(cos, 1), np.expand_dims(sin, 1)  # the same for all heads
    turned = y[..., :width]
    interleaved = bool(n.get("interleaved", 0))
    half = width // 2
    pair = (
        (turned[..., 0::2], turned[..., 1::2])
        if interleaved
        else (turned[..., :half], turned[..., half:])
    )
    real, imaginary = pair[0] * cos - pair[1] * sin, pair[0] * sin + pair[1] * cos
    if interleaved:
        turned = np.reshape(np.stack([real, imaginary], axis=-1), turned.shape)
    else:
        turned = np.concatenate([real, imaginary], axis=-1)
    out = np.concatenate([turned, y[..., width:]], axis=-1) if width != y.shape[3] else turned
    return np.reshape(np.swapaxes(out, 1, 2), x.shape) if flat else out


_DEFAULTS = {"RNN": ["Tanh"], "GRU": ["Sigmoid", "Tanh"], "LSTM": ["Sigmoid", "Tanh", "Tanh"]}
Step = Callable[[Any, Any], tuple[tuple[Any, ...], Any]]


def _sigmoid(x: Any) -> Any:
    return lookup("sigmoid")(x)


def _gates(x: Any, count: int) -> list[Any]:
    size = x.shape[-1] // count
    return [x[..., k * size : (k + 1) * size] for k in range(count)]


def _rnn(n: NodeView, r: Any, wb: Any, rb: Any, _: Any) -> Step:
    def step(carry: Any, x: Any) -> Any:
        (h,) = carry
        h = np.tanh(x + h @ r.T + rb)
        return (h,), h

    return step


def _gru(n: NodeView, r: Any, wb: Any, rb: Any, _: Any) -> Step:
    after = n.get("linear_before_reset", 0)
    size = r.shape[0] // 3
    gates, rest = r[: 2 * size], r[2 * size :]
    gates_bias, rest_bias = rb[: 2 * size], rb[2 * size :]

    def step(carry: Any, x: Any) -> Any:
        (h,) = carry
        z, reset = _gates(_sigmoid(x[..., : 2 * size] + h @ gates.T + gates_bias), 2)
        own = x[..., 2 * size :]
        if after:
            new = np.tanh(own + reset * (h @ rest.T + rest_bias))
        else:
            new = np.tanh(own + (reset * h) @ rest.T + rest_bias)
        h = (1 - z) * new + z * h
        return (h,), h

    return step


def _lstm(n: NodeView, r: Any, wb: Any, rb: Any, peep: Any) -> Step:
    to_i, to_o, to_f = (0.0, 0.0, 0.0) if peep is None else _gates(peep, 3)

    def step(carry: Any, x: Any) -> Any:
        h, c = carry
        i, o, f, new = _gates(x + h @ r.T + rb, 4)
        if peep is not None:
            i, f = i + to_i * c, f + to_f * c
        c = _sigmoid(f) * c + _sigmoid(i) * np.tanh(new)
        o = o if peep is None else o + to_o * c
        h = _sigmoid(o) * np.tanh(c)
        return (h, c), h

    return step


_STEPS = {"RNN": _rnn, "GRU": _gru, "LSTM": _lstm}


def _check(n: NodeView, lengths: Any, directions: int, steps: Any) -> None:
    wanted = _DEFAULTS[n.kind] * directions
    given = [a.decode() if isinstance(a, bytes) else a for a in n.get("activations") or wanted]
    if given != wanted:
        raise n.unsupported(f"with activations={given} is not supported")
    if lengths is not None and any(m != steps for m in n.integers(lengths, "lengths of sequences")):
        raise n.unsupported("with sequences of different lengths is not supported")
    if n.get("clip") is not None or n.get("input_forget", 0):
        raise n.unsupported("with clip or input_forget is not supported")


@imports("RNN", "GRU", "LSTM", static=(4,))
def _recurrent(
    n: NodeView,
    x: Any,
    w: Any,
    r: Any,
    bias: Any = None,
    lengths: Any = None,
    h: Any = None,
    c: Any = None,
    peep: Any = None,
) -> Any:
    directions = w.shape[0]
    by_batch = n.get("layout", 0)
    _check(n, lengths, directions, x.shape[1 if by_batch else 0])
    x = np.swapaxes(x, 0, 1) if by_batch else x
    start = [np.swapaxes(s, 0, 1) if by_batch and s is not None else s for s in (h, c)]
    count = 2 if n.kind == "LSTM" else 1
    size = r.shape[-1]
    zero = full((x.shape[1], size), np.zeros((), x.dtype)[()], x.dtype)
    ys, ends = [], []
    for d in range(directions):
        backward = d == 1 or n.get("direction", "forward") == "reverse"
        both = np.zeros(2 * w.shape[1], x.dtype) if bias is None else bias[d]
        wb, rb = _gates(both, 2)
        step = _STEPS[n.kind](n, r[d], wb, rb, None if peep is None else peep[d])
        carry = tuple(zero if s is None else s[d] for s in start[:count])
        end, y = scan(step, carry, x @ w[d].T + wb, reverse=backward)
        ys.append(y)
        ends.append(end)
    y = np.stack(ys, 1)
    last = [np.stack([e[k] for e in ends]) for k in range(count)]
    if by_batch:
        y, last = np.transpose(y, (2, 0, 1, 3)), [np.swapaxes(s, 0, 1) for s in last]
    return (y, *last)
