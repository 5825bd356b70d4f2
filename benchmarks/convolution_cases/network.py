"""A training step: two convolutions, each with a rectifier and a pooling, and a linear layer.

Value, gradient and one step of gradient descent, for 64 pictures of 28 x 28.  Every library begins
with the same weights and returns the new ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from native import libraries
from native.case import Call, Case, generator

from . import channels_last

TITLE = "A training step of a network"
TEXT = (
    "float32, 64 pictures of 28 x 28: convolution (3 x 3), rectifier, largest of 2 x 2, twice; a "
    "linear layer, cross entropy, one step of gradient descent. All return new weights. JAX has "
    "channels last and pools by a reshape, which is its fastest way on processors."
)
PEERS = ("torch", "torch.compile", "JAX")
TARGET = "not slower than the best of the others"
RATE = 0.01


def cases(quick: bool) -> Iterator[Case]:
    """Networks of two sizes."""
    for first, second in ((8, 16), (16, 32)):
        random = generator(73)
        x = random.normal(size=(64, 1, 28, 28)).astype("float32")
        labels = random.integers(0, 10, 64)
        shapes = [
            (first, 1, 3, 3), (first,), (second, first, 3, 3), (second,), (10, 49 * second), (10,),
        ]  # fmt: skip
        weights = [
            (random.normal(size=s) / np.sqrt(np.prod(s[1:]))).astype("float32") for s in shapes
        ]
        name = f"{first} and {second} channels"
        yield Case(name, contestants(weights, x, labels), "float32")


def contestants(weights: list[Any], x: Any, labels: Any) -> dict[str, Callable[[], Call]]:
    """Each library's step."""

    def wengert() -> Call:
        import wengert as wg
        import wengert.nn.functional as F

        def loss(p: Any, x: Any, labels: Any) -> Any:
            h = F.max_pool2d(F.relu(F.conv2d(x, p[0], p[1], padding=1)), 2)
            h = F.max_pool2d(F.relu(F.conv2d(h, p[2], p[3], padding=1)), 2)
            return F.cross_entropy(F.linear(h.reshape(64, -1), p[4], p[5]), labels)

        def step(p: Any, x: Any, labels: Any) -> Any:
            value, slopes = wg.value_and_grad(loss)(p, x, labels)
            return value, [w - np.float32(RATE) * g for w, g in zip(p, slopes, strict=True)]

        return Call(libraries.jit(step), (weights, x, labels), numbers=flat)

    def torch(compiled: bool = False) -> Call:
        lib = libraries.torch()
        nn = lib.nn.functional
        leaves = [lib.from_numpy(w.copy()).requires_grad_() for w in weights]

        def loss(x: Any, labels: Any) -> Any:
            w1, b1, w2, b2, w3, b3 = leaves
            h = nn.max_pool2d(nn.relu(nn.conv2d(x, w1, b1, padding=1)), 2)
            h = nn.max_pool2d(nn.relu(nn.conv2d(h, w2, b2, padding=1)), 2)
            return nn.cross_entropy(nn.linear(h.reshape(64, -1), w3, b3), labels)

        forward = lib.compile(loss, dynamic=False) if compiled else loss

        def step(x: Any, labels: Any) -> Any:
            value = forward(x, labels)
            slopes = lib.autograd.grad(value, leaves)
            with lib.no_grad():
                return value, [w - RATE * g for w, g in zip(leaves, slopes, strict=True)]

        return Call(step, (lib.from_numpy(x), lib.from_numpy(labels)), numbers=flat)

    def jax() -> Call:
        j = libraries.jax()
        layer = channels_last.layer(j)

        def loss(p: Any, x: Any, labels: Any) -> Any:
            h = layer(layer(x, p[0], p[1]), p[2], p[3]).reshape(64, -1)
            chances = j.nn.log_softmax(h @ p[4].T + p[5])
            return -j.numpy.take_along_axis(chances, labels[:, None], 1).mean()

        def step(p: Any, x: Any, labels: Any) -> Any:
            value, slopes = j.value_and_grad(loss)(p, x, labels)
            return value, [w - np.float32(RATE) * g for w, g in zip(p, slopes, strict=True)]

        w1, b1, w2, b2, w3, b3 = weights
        channels = len(b2)
        own = [
            channels_last.kernel_last(w1), b1, channels_last.kernel_last(w2), b2,
            channels_last.linear_last(w3, channels), b3,
        ]  # fmt: skip

        def numbers(result: Any) -> list[Any]:
            value, w1, b1, w2, b2, w3, b3 = flat(result)
            back = channels_last.kernel_first
            linear = channels_last.linear_first(w3, channels)
            return [value, back(w1), b1, back(w2), b2, linear, b3]

        call = libraries.jax_call(step, own, channels_last.last(x), labels)
        return Call(call.function, call.arguments, call.ready, numbers)

    return {
        "wengert": wengert,
        "torch": torch,
        "torch.compile": lambda: torch(compiled=True),
        "JAX": jax,
    }


def flat(result: Any) -> list[Any]:
    """The loss and the weights as arrays."""
    value, weights = result
    found = [value, *weights]
    return [x.detach().numpy() if hasattr(x, "detach") else np.asarray(x) for x in found]
