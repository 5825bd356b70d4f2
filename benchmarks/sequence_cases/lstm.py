"""A model of characters: embedding, one layer of long short-term memory, a linear layer.

wengert runs its own `nn.LSTM`, PyTorch its fused one, JAX a scan with the products with the inputs
before it.  All begin with wengert's weights, whose names are PyTorch's.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from native import libraries
from native.case import Call, Case, generator

TITLE = "Long short-term memory"
TEXT = (
    "Forward, cross-entropy of the next character, gradient with respect to all parameters; "
    "float32, 64 characters embedded in 64 numbers, 128 hidden, batch 32. *wengert* is `nn.LSTM` "
    "in `wg.jit`, *torch* `torch.nn.LSTM`, one fused operation, *JAX* `lax.scan`."
)
PEERS = ("JAX", "torch")
TARGET = "not slower than the best"
CHARACTERS, EMBEDDED, HIDDEN = 64, 64, 128


def cases(quick: bool) -> Iterator[Case]:
    """One length, or two."""
    for batch, length in [(4, 8)] if quick else [(32, 32), (32, 100)]:
        name = f"value and gradient, T = {length}"
        yield Case(name, contestants(batch, length), "float32", within=5e-3)


def contestants(batch: int, length: int) -> dict[str, Any]:
    """Each returns the loss, and gradients in the order of the names of parameters."""
    text = generator(51).integers(0, CHARACTERS, size=(length + 1, batch))
    now, after = text[:-1].copy(), text[1:].copy()

    def numbers(result: Any) -> Any:
        loss, bars = result
        flat = [np.asarray(g, np.float64).ravel() for g in bars]
        signs = [generator(52).choice([-1.0, 1.0], size=(16, g.size)) for g in flat]
        return [float(loss), *[s @ g for s, g in zip(signs, flat, strict=True)]]

    def wengert() -> Call:
        import wengert as wg
        from wengert import nn

        model = Model()
        state = model.state_dict()

        def loss(state: Any, now: Any, after: Any) -> Any:
            return nn.functional.cross_entropy(nn.functional_call(model, state, now), after)

        step = wg.jit(wg.value_and_grad(loss))
        return Call(step, (state, now, after), numbers=lambda r: numbers((r[0], values(r[1]))))

    def jax() -> Call:
        j = libraries.jax()
        f = j.jit(j.value_and_grad(jax_loss(j)))
        state = j.tree.map(j.numpy.asarray, Model().state_dict())
        given = state, j.numpy.asarray(now), j.numpy.asarray(after)
        return Call(f, given, j.block_until_ready, lambda r: numbers((r[0], values(r[1]))))

    def torch() -> Call:
        return torch_call(now, after, numbers)

    return {"wengert": wengert, "JAX": jax, "torch": torch}


def values(bars: Any) -> list[Any]:
    """Gradients in the order of names."""
    return [bars[name] for name in sorted(bars)]


def Model() -> Any:
    """The model, of wengert."""
    from wengert import nn

    rng = generator(53)
    return nn.Sequential(
        nn.Embedding(CHARACTERS, EMBEDDED, rng=rng, dtype="float32"),
        Outputs(nn.LSTM(EMBEDDED, HIDDEN, rng=rng, dtype="float32")),
        nn.Linear(HIDDEN, CHARACTERS, rng=rng, dtype="float32"),
    )


def Outputs(layer: Any) -> Any:
    """A layer without its last state."""
    from wengert import nn

    class First(nn.Module):
        def __init__(self) -> None:
            self.layer = layer

        def forward(self, x: Any) -> Any:
            return self.layer(x)[0]

    return First()


def jax_loss(j: Any) -> Any:
    """The same in JAX."""
    n, xp = HIDDEN, j.numpy

    def loss(p: Any, now: Any, after: Any) -> Any:
        embedding, w, u, b, c, head, bias = (p[name] for name in names(p))

        def step(carry: Any, z: Any) -> Any:
            h, cell = carry
            z = z + h @ u.T
            sigma = j.nn.sigmoid
            cell = sigma(z[:, n : 2 * n]) * cell + sigma(z[:, :n]) * xp.tanh(z[:, 2 * n : 3 * n])
            h = sigma(z[:, 3 * n :]) * xp.tanh(cell)
            return (h, cell), h

        zeros = xp.zeros((now.shape[1], n), xp.float32)
        _, hidden = j.lax.scan(step, (zeros, zeros), embedding[now] @ w.T + (b + c))
        z = j.nn.log_softmax(hidden @ head.T + bias)
        return -xp.take_along_axis(z, after[..., None], axis=-1).mean()

    return loss


def names(state: Any) -> list[str]:
    """Names of parameters in the order of embedding, layer (W, U, b, c), linear layer."""
    ends = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
    middle = [next(n for n in state if n.endswith(end)) for end in ends]
    rest = sorted(n for n in state if n not in middle)
    embedding = next(n for n in rest if n.startswith(rest[0].rpartition(".")[0]))
    head = [n for n in rest if n != embedding]
    return [embedding, *middle, *sorted(head, reverse=True)]


def torch_call(now: Any, after: Any, numbers: Any) -> Call:
    """PyTorch's own layers."""
    t = libraries.torch()
    state = Model().state_dict()
    order = names(state)
    embedding = t.nn.Embedding(CHARACTERS, EMBEDDED)
    layer, head = t.nn.LSTM(EMBEDDED, HIDDEN), t.nn.Linear(HIDDEN, CHARACTERS)
    parameters = [
        embedding.weight, layer.weight_ih_l0, layer.weight_hh_l0, layer.bias_ih_l0,
        layer.bias_hh_l0, head.weight, head.bias,
    ]  # fmt: skip
    with t.no_grad():
        for p, name in zip(parameters, order, strict=True):
            p.copy_(t.from_numpy(state[name]))
    at, labels = t.from_numpy(now), t.from_numpy(after).reshape(-1)

    def run() -> Any:
        z = head(layer(embedding(at))[0]).reshape(-1, CHARACTERS)
        loss = t.nn.functional.cross_entropy(z, labels)
        return loss.detach(), t.autograd.grad(loss, parameters)

    def read(result: Any) -> Any:
        found = dict(zip(order, result[1], strict=True))
        return numbers((result[0], values(found)))

    return Call(run, (), numbers=read)
