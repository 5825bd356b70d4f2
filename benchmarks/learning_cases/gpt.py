"""A small GPT: two layers, norms first, gelu; forward and cross-entropy.

wengert is written with its modules; PyTorch has its fused attention and norms, JAX is by hand.
"""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np

from native.case import generator

TITLE = "GPT of 2 layers of 128, T = 64, batch 8"
CHARACTERS, WIDTH, HEADS, LAYERS, LENGTH = 64, 128, 4, 2, 64
_LAYER = {
    "self_attn.in_proj_weight": (3 * WIDTH, WIDTH),
    "self_attn.in_proj_bias": (3 * WIDTH,),
    "self_attn.out_proj.weight": (WIDTH, WIDTH),
    "self_attn.out_proj.bias": (WIDTH,),
    "linear1.weight": (4 * WIDTH, WIDTH),
    "linear1.bias": (4 * WIDTH,),
    "linear2.weight": (WIDTH, 4 * WIDTH),
    "linear2.bias": (WIDTH,),
    "norm1.weight": (WIDTH,),
    "norm1.bias": (WIDTH,),
    "norm2.weight": (WIDTH,),
    "norm2.bias": (WIDTH,),
}
SHAPES: dict[str, tuple[int, ...]] = {
    "embedding.weight": (CHARACTERS, WIDTH),
    "positions.weight": (LENGTH, WIDTH),
    **{f"layers.{k}.{name}": shape for k in range(LAYERS) for name, shape in _LAYER.items()},
    "norm.weight": (WIDTH,),
    "norm.bias": (WIDTH,),
    "head.weight": (CHARACTERS, WIDTH),
    "head.bias": (CHARACTERS,),
}


def data(quick: bool) -> tuple[Any, ...]:
    """Characters, and those that follow them."""
    text = generator(61).integers(0, CHARACTERS, size=(2 if quick else 8, LENGTH + 1))
    return text[:, :-1].copy(), text[:, 1:].copy()


def wengert() -> Any:
    """Modules."""
    from wengert import nn

    rng, f32 = generator(62), "float32"

    class GPT(nn.Module):
        def __init__(self) -> None:
            self.embedding = nn.Embedding(CHARACTERS, WIDTH, rng=rng, dtype=f32)
            self.positions = nn.LearnedPositions(LENGTH, WIDTH, True, rng, f32)
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

    return GPT(), lambda model, now, after: nn.functional.cross_entropy(model(now), after)


def forward(xp: Any, p: Any, text: Any, attend: Any, norm: Any, gelu: Any) -> Any:
    """The same with arrays by name, for libraries other than NumPy."""
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


def jax(j: Any) -> Any:
    """All by hand."""
    xp = j.numpy

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

    return loss


def torch(t: Any, state: Any) -> Any:
    """PyTorch's own attention and norms."""
    F = t.nn.functional
    p = {name: t.nn.Parameter(t.from_numpy(np.array(x))) for name, x in state.items()}

    def norm(x: Any, name: str) -> Any:
        return F.layer_norm(x, (WIDTH,), p[f"{name}weight"], p[f"{name}bias"])

    def attend(q: Any, k: Any, v: Any) -> Any:
        q, k, v = (x.transpose(1, 2) for x in (q, k, v))
        return F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2)

    def loss(now: Any, after: Any) -> Any:
        z = forward(t, p, now, attend, norm, F.gelu)
        return F.cross_entropy(z.reshape(-1, CHARACTERS), after.reshape(-1))

    return list(p.values()), loss
