"""Networks: loss and gradients of a perceptron, and of a GPT.

    WORKLOADS

In single precision, without TF32: it is off in PyTorch and CuPy, and turned off in JAX.
"""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np

import wengert as wg
from wengert.nn import functional

from .case import Workload, rng, scaled


def _layers(scale: float) -> tuple[Any, ...]:
    n, random = scaled(4096, scale, 8), rng()
    shapes = ((784, 512), (512, 10), (n, 784), (n, 10))
    return tuple([random.normal(size=s).astype(np.float32) * 0.05 for s in shapes])


def perceptron(xp: Any) -> Any:
    """The loss of a network with one hidden layer."""
    return lambda w1, w2, x, y: ((xp.tanh(x @ w1) @ w2 - y) ** 2).mean()


def _torch_perceptron(torch: Any) -> Any:
    both = torch.func.grad_and_value(perceptron(torch), argnums=(0, 1))
    return torch.compile(lambda *xs: both(*xs)[::-1], mode="reduce-overhead")


# ---- GPT -----------------------------------------------------------------------------------------

_HEADS, _CHARACTERS = 8, 64
_EACH = 10  # parameters of a layer


def _parameters(scale: float) -> tuple[Any, ...]:
    small = scale < 1.0
    width, layers, length, batch = (32, 1, 8, 2) if small else (512, 4, 256, 16)
    random = rng()
    text = random.integers(0, _CHARACTERS, (batch, length + 1))
    shapes: list[Any] = [(_CHARACTERS, width), (length, width)]
    for _ in range(layers):
        shapes += [(width, 3 * width), (3 * width,), (width, width), (width,)]
        shapes += [(width, 4 * width), (4 * width,), (4 * width, width), (width,), (width,)]
        shapes += [(width,)]
    shapes += [(width, _CHARACTERS)]
    made = [(0.05 * random.normal(size=s)).astype(np.float32) for s in shapes]
    return text[:, :-1].copy(), text[:, 1:].copy(), *made


def gpt(attend: Any, norm: Any, gelu: Any, entropy: Any) -> Any:
    """Its loss, given what the libraries have of their own."""

    def loss(now: Any, after: Any, *p: Any) -> Any:
        x = p[0][now] + p[1]
        for k in range(2, len(p) - 1, _EACH):
            w_in, b_in, w_out, b_out, w_up, b_up, w_down, b_down, g1, g2 = p[k : k + _EACH]
            width = x.shape[-1]
            shape = (*x.shape[:2], _HEADS, width // _HEADS)
            y = norm(x, g1) @ w_in + b_in
            q, k_, v = (y[..., i * width : (i + 1) * width].reshape(shape) for i in range(3))
            x = x + attend(q, k_, v).reshape(x.shape) @ w_out + b_out
            x = x + gelu(norm(x, g2) @ w_up + b_up) @ w_down + b_down
        return entropy((x @ p[-1]).reshape(-1, _CHARACTERS), after.reshape(-1))

    return loss


def ours(now: Any, after: Any, *p: Any) -> Any:
    """The loss and its gradients."""

    def attend(q: Any, k: Any, v: Any) -> Any:
        q, k, v = (x.transpose(0, 2, 1, 3) for x in (q, k, v))
        run = functional.scaled_dot_product_attention
        return run(q, k, v, is_causal=True).transpose(0, 2, 1, 3)

    norm = lambda x, g: functional.layer_norm(x, x.shape[-1:], 1.0 + g)  # noqa: E731
    loss = gpt(attend, norm, functional.gelu, functional.cross_entropy)
    return wg.value_and_grad(loss, argnums=tuple(range(2, len(p) + 2)))(now, after, *p)


def _torch_gpt(torch: Any) -> Any:
    F = torch.nn.functional

    def attend(q: Any, k: Any, v: Any) -> Any:
        q, k, v = (x.transpose(1, 2) for x in (q, k, v))
        return F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2)

    norm = lambda x, g: F.layer_norm(x, x.shape[-1:], 1.0 + g)  # noqa: E731
    loss = torch.compile(gpt(attend, norm, F.gelu, F.cross_entropy), mode="reduce-overhead")

    def both(now: Any, after: Any, *p: Any) -> Any:
        p = tuple([x.detach().requires_grad_() for x in p])
        value = loss(now, after, *p)
        return value.detach(), torch.autograd.grad(value, p)

    return both


def _jax_gpt(jax: Any) -> Any:
    xp = jax.numpy

    def attend(q: Any, k: Any, v: Any) -> Any:
        scores = xp.einsum("blhd,bshd->bhls", q, k) / sqrt(q.shape[-1])
        seen = xp.tril(xp.ones(scores.shape[-2:], bool))
        weights = jax.nn.softmax(xp.where(seen, scores, -xp.inf), axis=-1)
        return xp.einsum("bhls,bshd->blhd", weights, v)

    def norm(x: Any, g: Any) -> Any:
        away = x - x.mean(-1, keepdims=True)
        return away * jax.lax.rsqrt((away * away).mean(-1, keepdims=True) + 1e-5) * (1.0 + g)

    def entropy(z: Any, after: Any) -> Any:
        return -xp.take_along_axis(jax.nn.log_softmax(z), after[:, None], axis=-1).mean()

    gelu = lambda x: jax.nn.gelu(x, approximate=False)  # noqa: E731
    loss = gpt(attend, norm, gelu, entropy)

    def both(now: Any, after: Any, *p: Any) -> Any:
        return jax.value_and_grad(lambda p: loss(now, after, *p))(p)

    return jax.jit(both)


WORKLOADS = (
    Workload(
        "perceptron, value and gradient",
        lambda *xs: wg.value_and_grad(perceptron(np), argnums=(0, 1))(*xs),
        _torch_perceptron,
        lambda jax: jax.jit(jax.value_and_grad(perceptron(jax.numpy), argnums=(0, 1))),
        _layers,
        tolerance=1e-3,
    ),
    Workload(
        "GPT of 4 layers of 512, value and gradient",
        ours,
        _torch_gpt,
        _jax_gpt,
        _parameters,
        tolerance=1e-2,
    ),
)
