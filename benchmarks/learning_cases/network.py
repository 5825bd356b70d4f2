"""Two convolutions, each with a rectifier and a pooling, and a linear layer: 28 x 28 to 10."""

from __future__ import annotations

from typing import Any

import numpy as np

from convolution_cases import channels_last
from native.case import generator

TITLE = "two convolutions, 16 and 32 channels, batch 64"
FIRST, SECOND, CLASSES = 16, 32, 10
SHAPES = {
    "0.weight": (FIRST, 1, 3, 3),
    "0.bias": (FIRST,),
    "3.weight": (SECOND, FIRST, 3, 3),
    "3.bias": (SECOND,),
    "7.weight": (CLASSES, 49 * SECOND),
    "7.bias": (CLASSES,),
}


def data(quick: bool) -> tuple[Any, ...]:
    """Pictures and labels."""
    random = generator(83)
    x = random.standard_normal((64, 1, 28, 28)).astype(np.float32)
    return x, random.integers(0, CLASSES, size=64)


def layers(nn: Any, **more: Any) -> Any:
    """The names are those of both libraries."""
    return nn.Sequential(
        nn.Conv2d(1, FIRST, 3, padding=1, **more),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(FIRST, SECOND, 3, padding=1, **more),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(49 * SECOND, CLASSES, **more),
    )


def wengert() -> Any:
    """Modules."""
    from wengert import nn

    model = layers(nn, rng=0, dtype="float32")
    return model, lambda model, x, labels: nn.functional.cross_entropy(model(x), labels)


def torch(t: Any, state: Any) -> Any:
    """Modules."""
    model = layers(t.nn)
    model.load_state_dict({name: t.from_numpy(a) for name, a in state.items()})
    loss = lambda x, labels: t.nn.functional.cross_entropy(model(x), labels)  # noqa: E731
    return list(model.parameters()), loss


def jax(j: Any) -> Any:
    """Channels last, and pooling by a reshape: its fastest way on processors."""
    layer = channels_last.layer(j)

    def loss(p: Any, x: Any, labels: Any) -> Any:
        h = layer(x, p["0.weight"], p["0.bias"])
        h = layer(h, p["3.weight"], p["3.bias"]).reshape(len(x), -1)
        z = j.nn.log_softmax(h @ p["7.weight"].T + p["7.bias"])
        return -j.numpy.take_along_axis(z, labels[:, None], 1).mean()

    return loss


def jax_arrays(state: Any, inputs: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
    """Parameters and inputs with channels last."""
    x, labels = inputs
    kernels = {k: channels_last.kernel_last(state[k]) for k in ("0.weight", "3.weight")}
    linear = {"7.weight": channels_last.linear_last(state["7.weight"], SECOND)}
    return state | kernels | linear, (channels_last.last(x), labels)
