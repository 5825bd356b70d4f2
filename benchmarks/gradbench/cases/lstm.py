"""lstm: GradBench's layers and lengths, and shorter ones, with a text of random characters.

Its text is Wikipedia's; of its first 1024 characters the largest has 14 bits, so ours have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from gradbench import byhand, peers
from gradbench.evals import lstm
from gradbench.task import Task, number

TITLE = "lstm: a character model"
TEXT = (
    "The loss of a model of l layers on a text of c characters of 14 bits, and its gradient with "
    "respect to all parameters. *C* keeps gates and states for the backward pass; *JAX* scans, "
    "*torch* loops in Python."
)
DERIVATIVES = ("jacobian",)
BITS = 14
SIZES = (
    (1, 16), (2, 128), (2, 1024), (4, 1024), (6, 1024), (2, 4096), (2, 8192), (4, 4096), (6, 4096),
    (4, 8192), (6, 8192),
)  # fmt: skip


def inputs(quick: bool) -> Iterator[tuple[str, Any]]:
    """Layers and lengths, in the order of the work."""
    for layers, length in SIZES[:2] if quick else SIZES:
        random = np.random.default_rng([2026, layers, length])
        codes = random.integers(32, 127, size=length)
        yield (
            f"l = {layers}, c = {length}",
            {
                "main_params": random.random((2 * layers, 4 * BITS)).tolist(),
                "extra_params": random.random((3, BITS)).tolist(),
                "state": random.random((2 * layers, BITS)).tolist(),
                "sequence": ((codes[:, None] >> np.arange(BITS)[::-1]) & 1).astype(float).tolist(),
            },
        )


def contestants(function: str, given: dict[str, Any]) -> dict[str, Callable[[], Task]]:
    """C, JAX and PyTorch."""
    main, extra, _, text = arrays = lstm.arrays(given)
    layers, (n, bits) = len(main) // 2, text.shape
    if function == "objective":
        c = byhand.both("lstm", "objective", (layers, n, bits), arrays, [()],
                        lambda out: number(out[0]))  # fmt: skip
        return c | {
            "JAX": peers.jax(jax_objective, *arrays, answer=number),
            "torch": peers.torch(torch_objective, *arrays, answer=number),
        }
    kept = (n - 1) * (7 * layers + 1) * bits + n
    c = byhand.both(
        "lstm", "jacobian", (layers, n, bits), arrays, [main.size + extra.size, kept],
        lambda out: out[0].tolist(),
    )  # fmt: skip
    return c | {
        "JAX": peers.jax(lambda j: j.grad(jax_objective(j), (0, 1)), *arrays, answer=joined),
        "torch": peers.torch(torch_jacobian, *arrays, answer=joined),
    }


def joined(result: Any) -> list[float]:
    """Both gradients in one list."""
    return lstm.answer_jacobian([np.asarray(a) for a in result])


def program(xp: Any, scan: Any) -> Any:
    """The objective over another library's functions."""

    def sigmoid(x: Any) -> Any:
        return 1.0 / (1.0 + xp.exp(-x))

    def run(main: Any, extra: Any, state: Any, text: Any) -> Any:
        layers, bits = len(main) // 2, text.shape[1]
        main = main.reshape(layers, 2, 4, bits)

        def step(states: Any, pair: Any) -> Any:
            now, after = pair
            x, new = now * extra[0], []
            for (w, b), (h, c) in zip(main, states, strict=True):
                c = c * sigmoid(x * w[0] + b[0])
                c = c + sigmoid(h * w[1] + b[1]) * xp.tanh(h * w[3] + b[3])
                x = sigmoid(x * w[2] + b[2]) * xp.tanh(c)
                new.append((x, c))
            y = x * extra[1] + extra[2]
            return tuple(new), (after * (xp.log(xp.exp(y).sum() + 2.0) - y)).sum()

        first = tuple((state[2 * k], state[2 * k + 1]) for k in range(layers))
        return scan(step, first, (text[:-1], text[1:])).mean() / bits

    return run


def jax_objective(j: Any) -> Any:
    """With ``lax.scan``."""
    return program(j.numpy, lambda step, first, rows: j.lax.scan(step, first, rows)[1])


def torch_objective(t: Any) -> Any:
    """With Python's loop."""

    def scan(step: Any, states: Any, rows: Any) -> Any:
        losses = []
        for pair in zip(*rows, strict=True):
            states, loss = step(states, pair)
            losses.append(loss)
        return t.stack(losses)

    return program(t, scan)


def torch_jacobian(t: Any) -> Any:
    """Forward, then backward."""
    f = torch_objective(t)

    def run(main: Any, extra: Any, state: Any, text: Any) -> Any:
        by = main.detach().requires_grad_(), extra.detach().requires_grad_()
        return t.autograd.grad(f(*by, state, text), by)

    return run
