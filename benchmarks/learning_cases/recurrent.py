"""A model of characters: embedding, one layer of long short-term memory, a linear layer.

What JAX computes is that of sequence_cases/lstm.py, where the gradient alone is measured.
"""

from __future__ import annotations

from typing import Any

from native.case import generator
from sequence_cases.lstm import CHARACTERS, EMBEDDED, HIDDEN, Outputs, jax_loss

TITLE = "LSTM of 128, T = 100, batch 32"
SHAPES = {
    "0.weight": (CHARACTERS, EMBEDDED),
    "1.layer.weight_ih_l0": (4 * HIDDEN, EMBEDDED),
    "1.layer.weight_hh_l0": (4 * HIDDEN, HIDDEN),
    "1.layer.bias_ih_l0": (4 * HIDDEN,),
    "1.layer.bias_hh_l0": (4 * HIDDEN,),
    "2.weight": (CHARACTERS, HIDDEN),
    "2.bias": (CHARACTERS,),
}


def data(quick: bool) -> tuple[Any, ...]:
    """Characters, and those that follow them."""
    batch, length = (4, 8) if quick else (32, 100)
    text = generator(51).integers(0, CHARACTERS, size=(length + 1, batch))
    return text[:-1].copy(), text[1:].copy()


def wengert() -> Any:
    """The layer is one scan."""
    from wengert import nn

    model = nn.Sequential(
        nn.Embedding(CHARACTERS, EMBEDDED, rng=0, dtype="float32"),
        Outputs(nn.LSTM(EMBEDDED, HIDDEN, rng=0, dtype="float32")),
        nn.Linear(HIDDEN, CHARACTERS, rng=0, dtype="float32"),
    )
    return model, lambda model, now, after: nn.functional.cross_entropy(model(now), after)


def torch(t: Any, state: Any) -> Any:
    """The layer is one fused operation."""
    embedding = t.nn.Embedding(CHARACTERS, EMBEDDED)
    layer, head = t.nn.LSTM(EMBEDDED, HIDDEN), t.nn.Linear(HIDDEN, CHARACTERS)
    parameters = [*embedding.parameters(), *layer.parameters(), *head.parameters()]
    with t.no_grad():
        for p, a in zip(parameters, state.values(), strict=True):
            p.copy_(t.from_numpy(a))

    def loss(now: Any, after: Any) -> Any:
        z = head(layer(embedding(now))[0])
        return t.nn.functional.cross_entropy(z.reshape(-1, CHARACTERS), after.reshape(-1))

    return parameters, loss


def jax(j: Any) -> Any:
    """A scan, and the products with the inputs before it."""
    return jax_loss(j)
