"""The perceptron 784-256-256-10: two rectifiers, cross-entropy."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from native.case import generator

TITLE = "perceptron 784-256-256-10, batch 64"
SIZES = (784, 256, 256, 10)
SHAPES = {
    name: shape
    for k, (m, n) in enumerate(pairwise(SIZES))
    for name, shape in ((f"{2 * k}.weight", (n, m)), (f"{2 * k}.bias", (n,)))
}


def data(quick: bool) -> tuple[Any, ...]:
    """Pictures and labels."""
    random = generator(82)
    x = random.uniform(size=(64, SIZES[0])).astype(np.float32)
    return x, random.integers(0, SIZES[-1], size=64)


def wengert() -> Any:
    """Three layers."""
    from wengert import nn

    layers: list[Any] = []
    for m, n in pairwise(SIZES):
        layers += [nn.Linear(m, n, rng=0, dtype="float32"), nn.ReLU()]
    model = nn.Sequential(*layers[:-1])
    return model, lambda model, x, labels: nn.functional.cross_entropy(model(x), labels)


def torch(t: Any, state: Any) -> Any:
    """The same."""
    layers: list[Any] = []
    for m, n in pairwise(SIZES):
        layers += [t.nn.Linear(m, n), t.nn.ReLU()]
    model = t.nn.Sequential(*layers[:-1])
    model.load_state_dict({name: t.from_numpy(a) for name, a in state.items()})
    loss = lambda x, labels: t.nn.functional.cross_entropy(model(x), labels)  # noqa: E731
    return list(model.parameters()), loss


def jax(j: Any) -> Any:
    """The same."""
    xp = j.numpy

    def loss(p: Any, x: Any, labels: Any) -> Any:
        for k in (0, 2):
            x = xp.maximum(x @ p[f"{k}.weight"].T + p[f"{k}.bias"], 0.0)
        z = j.nn.log_softmax(x @ p["4.weight"].T + p["4.bias"])
        return -xp.take_along_axis(z, labels[:, None], axis=-1).mean()

    return loss


def by_hand(state: dict[str, Any]) -> Any:
    """Loss and gradients in NumPy."""

    def gradient(x: Any, labels: Any) -> Any:
        inputs, rows = [x], np.arange(len(labels))
        for k in (0, 2, 4):
            x = x @ state[f"{k}.weight"].T
            x += state[f"{k}.bias"]
            if k < 4:
                inputs.append(np.maximum(x, 0, out=x))
        x -= x.max(1, keepdims=True)
        right = x[rows, labels].copy()
        np.exp(x, out=x)
        total = x.sum(1, keepdims=True)
        loss = np.mean(np.log(total[:, 0]) - right)
        x /= total
        x[rows, labels] -= 1
        x /= np.float32(len(labels))
        slopes = {}
        for k in (4, 2, 0):
            h = inputs.pop()
            slopes[f"{k}.weight"], slopes[f"{k}.bias"] = x.T @ h, x.sum(0)
            if k:
                x = x @ state[f"{k}.weight"]
                x *= h > 0
        return loss, slopes

    return gradient
