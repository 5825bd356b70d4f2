"""A training step of a small GPT: forward, cross-entropy, gradient, AdamW.

Compared are the losses of the first steps, so that forward, gradient and step are checked.  PyTorch
has its fused attention and its fused AdamW, eager and compiled; JAX is written by hand.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import sqrt
from typing import Any

import numpy as np

from native import libraries
from native.case import Call, Case, generator

TITLE = "Small GPT"
TEXT = (
    "Two layers of 128 numbers and 4 heads, norms first, gelu; T = 64, batch 8, 64 characters, "
    "float32. *wengert* is `nn.TransformerEncoder` and `optim.AdamW` in one `wg.jit`; *torch* and "
    "*torch.compile* have `scaled_dot_product_attention` and the fused AdamW."
)
PEERS = ("JAX", "torch", "torch.compile")
TARGET = "not slower than the best"
CHARACTERS, WIDTH, HEADS, LAYERS, RATE, DECAY = 64, 128, 4, 2, 1e-3, 0.01


def cases(quick: bool) -> Iterator[Case]:
    """One size."""
    batch, length = (2, 8) if quick else (8, 64)
    text = generator(61).integers(0, CHARACTERS, size=(batch, length + 1))
    now, after = text[:, :-1].copy(), text[:, 1:].copy()
    found = {
        "wengert": lambda: wengert(now, after),
        "JAX": lambda: jax(now, after),
        "torch": lambda: torch(now, after, False),
        "torch.compile": lambda: torch(now, after, True),
    }
    yield Case(f"training step, T = {length}, batch {batch}", found, "float32", within=5e-3)


def stepping(run: Any, arguments: tuple[Any, ...], ready: Any = None) -> Call:
    """A step that is timed; its numbers are the losses of it and of three more."""

    def numbers(loss: Any) -> Any:
        return [float(loss), *[float(run(*arguments)) for _ in range(3)]]

    return Call(run, arguments, ready, numbers)


def wengert(now: Any, after: Any) -> Call:
    """Modules and the optimiser in one compiled function."""
    import wengert as wg
    from wengert import nn, optim

    model = Model(now.shape[1])
    optimizer = optim.AdamW(model.parameters(), lr=RATE, weight_decay=DECAY)

    @wg.jit
    def step(now: Any, after: Any) -> Any:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(now), after)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return stepping(step, (now, after))


def Model(length: int) -> Any:
    """The model, of wengert."""
    from wengert import nn

    rng, f32 = generator(62), "float32"

    class GPT(nn.Module):
        def __init__(self) -> None:
            self.embedding = nn.Embedding(CHARACTERS, WIDTH, rng=rng, dtype=f32)
            self.positions = nn.LearnedPositions(length, WIDTH, True, rng, f32)
            self.layers = [
                nn.TransformerEncoderLayer(
                    WIDTH, HEADS, 4 * WIDTH, 0.0, "gelu", batch_first=True, norm_first=True,
                    rng=rng, dtype=f32,
                )
                for _ in range(LAYERS)
            ]  # fmt: skip
            self.norm = nn.LayerNorm(WIDTH, dtype=f32)
            self.head = nn.Linear(WIDTH, CHARACTERS, rng=rng, dtype=f32)

        def forward(self, text: Any) -> Any:
            x = self.positions(self.embedding(text))
            for layer in self.layers:
                x = layer(x, is_causal=True)
            return self.head(self.norm(x))

    return GPT()


def forward(xp: Any, p: Any, text: Any, attend: Any, norm: Any, gelu: Any) -> Any:
    """The same of arrays by name, for a library that is no NumPy."""
    x = p["embedding.weight"][text] + p["positions.weight"]
    shape = (*x.shape[:2], HEADS, WIDTH // HEADS)

    def linear(x: Any, name: str) -> Any:
        return x @ p[f"{name}weight"].T + p[f"{name}bias"]

    for k in range(LAYERS):
        at = f"layers.{k}."
        y = linear(norm(x, at + "norm1."), at + "self_attn.in_proj_")
        q, k_, v = (y[..., i * WIDTH : (i + 1) * WIDTH].reshape(shape) for i in range(3))
        x = x + linear(attend(q, k_, v).reshape(x.shape), at + "self_attn.out_proj.")
        y = gelu(linear(norm(x, at + "norm2."), at + "linear1."))
        x = x + linear(y, at + "linear2.")
    return linear(norm(x, "norm."), "head.")


def jax(now: Any, after: Any) -> Call:
    """By hand, with AdamW as a map over all parameters."""
    j = libraries.jax()
    xp = j.numpy
    start = j.tree.map(xp.asarray, Model(now.shape[1]).state_dict())

    def loss(p: Any, now: Any, after: Any) -> Any:
        def norm(x: Any, name: str) -> Any:
            away = x - x.mean(-1, keepdims=True)
            x = away * j.lax.rsqrt((away * away).mean(-1, keepdims=True) + 1e-5)
            return x * p[f"{name}weight"] + p[f"{name}bias"]

        def attend(q: Any, k: Any, v: Any) -> Any:
            scores = xp.einsum("blhd,bshd->bhls", q, k) / sqrt(WIDTH // HEADS)
            seen = xp.tril(xp.ones(scores.shape[-2:], bool))
            weights = j.nn.softmax(xp.where(seen, scores, -xp.inf), axis=-1)
            return xp.einsum("bhls,bshd->blhd", weights, v)

        z = forward(xp, p, now, attend, norm, lambda x: j.nn.gelu(x, approximate=False))
        z = j.nn.log_softmax(z)
        return -xp.take_along_axis(z, after[..., None], axis=-1).mean()

    def step(state: Any, now: Any, after: Any) -> Any:
        p, m, v, t = state
        value, g = j.value_and_grad(loss)(p, now, after)
        t = t + 1.0
        m = j.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, g)
        v = j.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, v, g)

        def moved(p: Any, m: Any, v: Any) -> Any:
            size = xp.sqrt(v / (1 - 0.999**t)) + 1e-8
            return p * (1 - RATE * DECAY) - RATE * (m / (1 - 0.9**t)) / size

        return value, (j.tree.map(moved, p, m, v), m, v, t)

    compiled = j.jit(step, donate_argnums=0)
    zeros = [j.tree.map(xp.zeros_like, start) for _ in range(2)]
    kept = [(start, *zeros, xp.float32(0.0))]

    def run(now: Any, after: Any) -> Any:
        value, kept[0] = compiled(kept[0], now, after)
        return value

    return stepping(run, (xp.asarray(now), xp.asarray(after)), j.block_until_ready)


def torch(now: Any, after: Any, compiled: bool) -> Call:
    """PyTorch's own attention, norms and optimiser."""
    t = libraries.torch()
    F = t.nn.functional
    state = Model(now.shape[1]).state_dict()
    p = {name: t.nn.Parameter(t.from_numpy(np.array(x))) for name, x in state.items()}
    optimizer = t.optim.AdamW(p.values(), lr=RATE, weight_decay=DECAY, fused=True)

    def norm(x: Any, name: str) -> Any:
        return F.layer_norm(x, (WIDTH,), p[f"{name}weight"], p[f"{name}bias"])

    def attend(q: Any, k: Any, v: Any) -> Any:
        q, k, v = (x.transpose(1, 2) for x in (q, k, v))
        return F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2)

    def loss(now: Any, after: Any) -> Any:
        z = forward(t, p, now, attend, norm, F.gelu)
        return F.cross_entropy(z.reshape(-1, CHARACTERS), after.reshape(-1))

    call = t.compile(loss, dynamic=False) if compiled else loss

    def run(now: Any, after: Any) -> Any:
        optimizer.zero_grad()
        value = call(now, after)
        value.backward()
        optimizer.step()
        return value.detach()

    return stepping(run, (t.from_numpy(now), t.from_numpy(after)))
