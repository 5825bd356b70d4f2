"""How long a training step takes, when it has been taken before."""

from __future__ import annotations

from collections.abc import Iterator

from native.case import Case

from . import training

TITLE = "A training step"
TEXT = (
    "Forward, cross-entropy, gradient, AdamW, float32. *wengert* is modules and `optim.AdamW` in "
    "one `wg.jit`; *torch* and *torch.compile* have the fused AdamW, the fused LSTM and "
    "`scaled_dot_product_attention`; *JAX* is one `jax.jit` that is given its memory; *NumPy* is "
    "by hand, in place."
)
PEERS = ("torch", "torch.compile", "JAX")
TARGET = "not slower than the best of the others"


def cases(quick: bool) -> Iterator[Case]:
    """All models."""
    for name in training.MODELS:
        found = training.contestants(name, quick)
        yield Case(training.model(name).TITLE, found, "float32", within=training.WITHIN)
