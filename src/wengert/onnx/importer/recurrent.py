"""RNN, GRU and LSTM, each a `scan` over time for one or two directions.

The first axis of weights is the direction; the gates are concatenated along the second: z, r, h for
GRU, i, o, f, c for LSTM.  The formulas are those of the ONNX specification.  Only sequences of full
length and the default activations are supported.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from wengert._engine.control_flow import scan
from wengert._engine.core.op import lookup
from wengert.numpy import full

from .node_view import NodeView
from .registry import imports

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
