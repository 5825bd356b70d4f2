"""Sequence models against PyTorch: values, gradients of inputs and parameters.

sequences_of_torch.json was written by torch 2.13.  It has for each case the loss, then for each
input and each parameter, sorted by name, the sum of its gradient times `wave`.  Weights, inputs and
the weights of results in the loss are `wave`s, too, and are not stored.
"""

import json
from math import prod
from pathlib import Path

import numpy as np
import pytest

import wengert as wg
from wengert import nn
from wengert.nn import functional as F

STORED = json.loads(Path(__file__).with_name("sequences_of_torch.json").read_text())
PADDED = np.array([[False, False, True], [False, False, False]])
LENGTHS = np.array([4, 2, 3])
INFINITE = np.where(PADDED, -np.inf, 0.0)


def wave(shape, k=0):
    return 0.6 * np.sin(1.3 * np.arange(prod(shape)) + 0.7 * k + 0.2).reshape(shape)


def flat(output, state):
    return (output, *state) if isinstance(state, tuple) else (output, state)


def attended(layer, q, k, v):
    return layer(q, k, v, key_padding_mask=INFINITE, attn_mask=wave((4, 3), 5))


def of_itself(layer, x):
    return layer(
        x, x, x, key_padding_mask=PADDED, attn_mask=~np.tri(3, dtype=bool),
        average_attn_weights=False,
    )  # fmt: skip


def transformed(layer, a, b):
    mask = nn.generate_square_subsequent_mask(4)
    masks = {"src_key_padding_mask": PADDED, "memory_key_padding_mask": PADDED}
    return (layer(a, b, tgt_mask=mask, **masks),)


def cell(layer, x, *h):
    out = layer(x, h if len(h) == 2 else h[0])
    return out if isinstance(out, tuple) else (out,)


def recurrent(layer, x, *h):
    lengths = LENGTHS if h else None
    state = None if not h else h if len(h) == 2 else h[0]
    return flat(*layer(x, state, lengths=lengths))


CASES = {
    "rnn": (lambda: nn.RNN(2, 3, nonlinearity="relu"), [(5, 3, 2)], recurrent),
    "gru": (lambda: nn.GRU(2, 3, 2, bidirectional=True), [(5, 3, 2), (4, 3, 3)], recurrent),
    "lstm": (
        lambda: nn.LSTM(2, 3, 2, bidirectional=True),
        [(5, 3, 2), (4, 3, 3), (4, 3, 3)],
        recurrent,
    ),
    "projected lstm": (
        lambda: nn.LSTM(2, 4, proj_size=3, batch_first=True), [(3, 5, 2)], recurrent,
    ),
    "rnn cell": (lambda: nn.RNNCell(2, 3), [(4, 2), (4, 3)], cell),
    "gru cell": (lambda: nn.GRUCell(2, 3), [(4, 2), (4, 3)], cell),
    "lstm cell": (lambda: nn.LSTMCell(2, 3), [(4, 2), (4, 3), (4, 3)], cell),
    "attention": (
        lambda: nn.MultiheadAttention(4, 2, kdim=3, vdim=5, add_bias_kv=True, add_zero_attn=True),
        [(4, 2, 4), (3, 2, 3), (3, 2, 5)],
        attended,
    ),
    "self-attention": (
        lambda: nn.MultiheadAttention(4, 2, batch_first=True), [(2, 3, 4)], of_itself,
    ),
    "encoder layer": (
        lambda: nn.TransformerEncoderLayer(4, 2, 6, 0.0), [(3, 2, 4)], lambda t, x: (t(x),),
    ),
    "transformer": (
        lambda: nn.Transformer(4, 2, 1, 1, 6, 0.0, "gelu", batch_first=True, norm_first=True),
        [(2, 3, 4), (2, 4, 4)],
        transformed,
    ),
}  # fmt: skip


class Called(nn.Module):
    """A layer with the call of its case."""

    def __init__(self, layer, call):
        self.layer, self.call = layer, call

    def forward(self, *args):
        return self.call(self.layer, *args)


def digest(f, *args):
    """The numbers stored for torch: the loss, and each gradient times a wave."""
    loss, bars = f(*args)
    return [float(loss), *[float(np.sum(b * wave(b.shape, 70))) for b in bars]]


@pytest.mark.sample(1)
@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("name", CASES)
def test_as_torch(name, compiled):
    make, shapes, call = CASES[name]
    model = Called(make(), call)
    shapes_of = {name: p.shape for name, p in model.named_parameters()}
    names = sorted(shapes_of)
    state = [wave(shapes_of[n], k) for k, n in enumerate(names)]
    inputs = [wave(s, 20 + k) for k, s in enumerate(shapes)]

    def loss(inputs, values):
        outs = nn.functional_call(model, dict(zip(names, values, strict=True)), *inputs)
        return sum(np.sum(o * wave(o.shape, k + 40)) for k, o in enumerate(outs))

    f = wg.value_and_grad(loss, argnums=(0, 1))
    f = wg.jit(f) if compiled else f

    def run(inputs, values):
        value, (first, second) = f(inputs, values)
        return value, [*first, *second]

    found = digest(run, inputs, state)
    np.testing.assert_allclose(found, STORED[name], rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("reduction", ["none", "mean"])
def test_ctc_as_torch(reduction, compiled):
    targets = np.array([[1, 1, 3], [2, 3, 0], [3, 2, 1]])

    def loss(x):
        steps, labels = [6, 5, 2], [3, 2, 3]  # the last is impossible: three labels in two steps
        found = F.ctc_loss(F.log_softmax(x, -1), targets, steps, labels, 0, reduction, True)
        return np.sum(found * wave(found.shape, 40))

    f = wg.value_and_grad(loss)
    f = wg.jit(f) if compiled else f
    value, bar = f(3 * wave((6, 3, 4)))
    found = [float(value), float(np.sum(bar * wave(bar.shape, 70)))]
    np.testing.assert_allclose(found, STORED[f"ctc {reduction}"], rtol=1e-9)
