"""A training step of a model, in each library: loss, gradient, AdamW; parameters are updated.

A model is a module of this folder with

    TITLE              what it is
    data(quick)        inputs of the loss
    SHAPES             of the parameters, by PyTorch's names
    wengert()          a model of wengert.nn, and its loss, a function of model and inputs
    torch(t, state)    parameters, and the loss as a function of inputs
    jax(j)             the loss as a function of a dict of parameters and of inputs
    jax_arrays         (if it has one) both as JAX's experts lay them out
    by_hand(state)     a step in NumPy, if there is one

All begin with the same weights, made here with NumPy, so that in a process of one library no other
is imported.  What is compared are the losses of the first steps: forward, gradient and update.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from native import libraries
from native.case import Call, generator

MODELS = ("perceptron", "network", "recurrent", "gpt")
LIBRARIES = ("wengert", "torch", "torch.compile", "JAX", "NumPy")
RATE, DECAY, BETAS, EPS = 1e-3, 0.01, (0.9, 0.999), 1e-8
COMPARED = 6  # losses of so many steps
WITHIN = 5e-3  # of each other: they are sums in float32


def model(name: str) -> Any:
    """The module of a model."""
    return importlib.import_module(f"learning_cases.{name}")


def contestants(name: str, quick: bool) -> dict[str, Callable[[], Call]]:
    """Each library's step of one model."""
    found = {
        "wengert": lambda: wengert(model(name), quick),
        "torch": lambda: torch(model(name), quick, False),
        "torch.compile": lambda: torch(model(name), quick, True),
        "JAX": lambda: jax(model(name), quick),
    }
    if hasattr(model(name), "by_hand"):
        found["NumPy"] = lambda: hand(model(name), quick)
    return found


def weights(shapes: dict[str, tuple[int, ...]]) -> dict[str, Any]:
    """Matrices are random, norms begin with one, biases with zero."""
    random, state = generator(81), {}
    for name, shape in shapes.items():
        if len(shape) > 1:
            scale = np.prod(shape[1:]) ** -0.5
            state[name] = (scale * random.standard_normal(shape)).astype(np.float32)
        else:
            fill = np.ones if name.endswith("weight") else np.zeros
            state[name] = fill(shape, np.float32)
    return state


def stepping(run: Any, inputs: tuple[Any, ...], ready: Any = None) -> Call:
    """A step that is timed; its numbers are the losses of it and of the following ones."""

    def numbers(loss: Any) -> Any:
        return [float(loss), *[float(run(*inputs)) for _ in range(COMPARED - 1)]]

    return Call(run, inputs, ready, numbers)


def wengert(of: Any, quick: bool) -> Call:
    """Modules and the optimizer in one compiled function."""
    import wengert as wg
    from wengert import optim

    model, loss_of = of.wengert()
    model.load_state_dict(weights(of.SHAPES))
    optimizer = optim.AdamW(model.parameters(), lr=RATE, weight_decay=DECAY)

    @wg.jit
    def step(*inputs: Any) -> Any:
        optimizer.zero_grad()
        loss = loss_of(model, *inputs)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return stepping(step, of.data(quick))


def torch(of: Any, quick: bool, compiled: bool) -> Call:
    """PyTorch's own layers and fused optimizer; compiled is the loss, and so its gradient."""
    t = libraries.torch()
    parameters, loss_of = of.torch(t, weights(of.SHAPES))
    optimizer = t.optim.AdamW(parameters, lr=RATE, weight_decay=DECAY, fused=True)
    forward = t.compile(loss_of, dynamic=False) if compiled else loss_of

    def step(*inputs: Any) -> Any:
        optimizer.zero_grad()
        loss = forward(*inputs)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return stepping(step, tuple(t.from_numpy(a) for a in of.data(quick)))


def jax(of: Any, quick: bool) -> Call:
    """AdamW as a map over all parameters, in one compiled function that is given its memory."""
    j = libraries.jax()
    xp, loss_of, (b1, b2) = j.numpy, of.jax(j), BETAS

    def step(state: Any, *inputs: Any) -> Any:
        p, m, v, t = state
        loss, g = j.value_and_grad(loss_of)(p, *inputs)
        t = t + 1.0
        m = j.tree.map(lambda m, g: b1 * m + (1 - b1) * g, m, g)
        v = j.tree.map(lambda v, g: b2 * v + (1 - b2) * g * g, v, g)

        def moved(p: Any, m: Any, v: Any) -> Any:
            size = xp.sqrt(v / (1 - b2**t)) + EPS
            return p * (1 - RATE * DECAY) - RATE * (m / (1 - b1**t)) / size

        return loss, (j.tree.map(moved, p, m, v), m, v, t)

    compiled = j.jit(step, donate_argnums=0)
    state, inputs = weights(of.SHAPES), of.data(quick)
    if hasattr(of, "jax_arrays"):
        state, inputs = of.jax_arrays(state, inputs)
    start = j.tree.map(xp.asarray, state)
    kept = [(start, *(j.tree.map(xp.zeros_like, start) for _ in range(2)), xp.float32(0.0))]

    def run(*inputs: Any) -> Any:
        loss, kept[0] = compiled(kept[0], *inputs)
        return loss

    # One program computes the loss and the new parameters, which are ready together.
    return stepping(run, tuple(map(xp.asarray, inputs)), libraries.Ready())


def hand(of: Any, quick: bool) -> Call:
    """NumPy, in place; the model says how its gradient is taken."""
    state = weights(of.SHAPES)
    gradient = of.by_hand(state)
    means, squares, work = ({name: np.zeros_like(p) for name, p in state.items()} for _ in range(3))
    (b1, b2), count = BETAS, [0]

    def step(*inputs: Any) -> Any:
        loss, slopes = gradient(*inputs)
        count[0] += 1
        rate = RATE / (1 - b1 ** count[0])
        scale = (1 - b2 ** count[0]) ** -0.5
        for name, g in slopes.items():
            p, m, v, w = state[name], means[name], squares[name], work[name]
            m *= b1
            np.multiply(g, 1 - b1, out=w)
            m += w
            v *= b2
            np.multiply(g, g, out=w)
            w *= 1 - b2
            v += w
            np.sqrt(v, out=w)
            w *= scale
            w += EPS
            np.divide(m, w, out=w)
            w *= rate
            p *= 1 - RATE * DECAY
            p -= w
        return loss

    return stepping(step, of.data(quick))
