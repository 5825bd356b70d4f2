"""Long short-term memories: a training step of a character model, and the objective of GradBench.

step       embedding, one layer of long short-term memory, a linear layer, cross-entropy, gradient
           descent; PyTorch has the layer as one operation.
objective  ADBench's lstm, which GradBench took over: weights are diagonal, numbers few, and the
           steps many, so it measures what a step costs.  C is by hand (benchmarks/c/character.c).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from native import libraries
from native.case import Call, Case, generator

from . import peers

TITLE = "Long short-term memories"
TEXT = (
    "*Training step*: float32, 64 characters embedded in 64 numbers, 128 hidden, batch 32, T = 32; "
    "the parameters of one step are those of the next. *torch* is its `nn.LSTM`, one fused "
    "operation with its own backward pass; *JAX* and wengert scan, the products with the inputs "
    "before the loop; no C by hand, as matrix products are most of it. *GradBench*: l = 2, "
    "c = 1024, b = 14, float64, a text of random characters (the real one's values do not matter "
    "for time); *C* keeps gates and states."
)
TARGET = "not slower than the best"
RATE = 1.0
CHARACTERS, EMBEDDED, HIDDEN = 64, 64, 128


def cases(quick: bool) -> Iterator[Case]:
    """The training step, then GradBench's."""
    batch, length = (4, 8) if quick else (32, 32)
    # A sum may nearly cancel, so rounding shows in it more than in float32's usual 1e-3.
    yield Case(f"training step, T = {length}", steps(batch, length), "float32", within=5e-3)
    n = 64 if quick else 1024
    main, extra, state, text = gradbench(2, n)
    f = objective(state, text)
    given = (2, n, 14, main, extra, state, text)
    alone = peers.by_hand("character", "character", given, lambda v: v)
    found = {
        "wengert": lambda: Call(libraries.jit(f(peers.wengert())), (main, extra)),
        "JAX": lambda: libraries.jax_call(f(peers.jax()), main, extra),
    }
    yield Case(f"GradBench value, c = {n}", found | alone, within=1e-10)
    bars = np.zeros_like(main), np.zeros_like(extra)
    work = np.zeros((n - 1) * 7 * 2 * 14 + n + n * 14)
    both = peers.by_hand(
        "character", "character_gradient", (*given, work, *bars), lambda v: (v, bars)
    )
    found = {
        "wengert": lambda: libraries.wengert(f(peers.wengert()), main, extra, argnums=(0, 1)),
        "JAX": lambda: libraries.jax_gradient(f(peers.jax()), main, extra, argnums=(0, 1)),
        "torch": lambda: torch_objective(f, main, extra),
        "autograd": lambda: autograd_objective(f, main, extra),
    }
    yield Case(f"GradBench gradient, c = {n}", found | both, within=1e-10)


# ---- GradBench -----------------------------------------------------------------------------------


def gradbench(layers: int, n: int) -> tuple[Any, ...]:
    """Parameters and state uniform between 0 and 1; characters as 14 bits."""
    random = generator(40)
    codes = random.integers(32, 127, size=n)
    text = ((codes[:, None] >> np.arange(14)[::-1]) & 1).astype(np.float64)
    main, extra = random.random((layers, 8, 14)), random.random((3, 14))
    return main, extra, random.random((layers, 2, 14)), text


def objective(state: Any, text: Any) -> Any:
    """The mean over bits and steps of next * (log(2 + sum exp y) - y)."""
    layers = len(state)

    def f(loops: peers.Loops) -> Any:
        xp, first, characters = loops.xp, loops.array(state), loops.array(text)

        def sigma(z: Any) -> Any:
            return 1.0 / (1.0 + xp.exp(-z))

        def run(main: Any, extra: Any) -> Any:
            def step(carry: Any, pair: Any) -> Any:
                now, after = pair
                x, new = now * extra[0], []
                for k in range(layers):
                    w, (h, c) = main[k], carry[k]
                    forget, add = sigma(x * w[0] + w[4]), sigma(h * w[1] + w[5])
                    out, change = sigma(x * w[2] + w[6]), xp.tanh(h * w[3] + w[7])
                    c = c * forget + add * change
                    x = out * xp.tanh(c)
                    new.append((x, c))
                y = x * extra[1] + extra[2]
                return tuple(new), (after * (xp.log(xp.exp(y).sum() + 2.0) - y)).sum()

            carry = tuple((first[k, 0], first[k, 1]) for k in range(layers))
            return losses(loops, step, carry, characters).mean() / text.shape[1]

        return run

    return f


def losses(loops: peers.Loops, step: Any, carry: Any, characters: Any) -> Any:
    """Of each step; a library whose loops are Python's is handed pairs."""
    now, after = characters[:-1], characters[1:]
    if loops.grad is None:
        now, after = list(zip(now, after, strict=True)), None
        return loops.scan(step, carry, now)[1]
    return loops.scan(step, carry, (now, after))[1]


def torch_objective(f: Any, main: Any, extra: Any) -> Call:
    """PyTorch's, with Python's loop."""
    return libraries.torch_gradient(f(peers.torch()), main, extra, by=(0, 1))


def autograd_objective(f: Any, main: Any, extra: Any) -> Call:
    """HIPS autograd's, with Python's loop."""
    run = f(peers.autograd())
    call = libraries.autograd_gradient(lambda both: run(*both), (main, extra))
    return call


# ---- a training step -----------------------------------------------------------------------------


def data(batch: int, length: int) -> tuple[Any, Any, Any]:
    """Parameters, characters (length, batch), and those that follow."""
    random = generator(41)
    scale = HIDDEN**-0.5
    shapes = [
        (CHARACTERS, EMBEDDED), (EMBEDDED, 4 * HIDDEN), (HIDDEN, 4 * HIDDEN), (4 * HIDDEN,),
        (HIDDEN, CHARACTERS), (CHARACTERS,),
    ]  # fmt: skip
    parameters = [random.uniform(-scale, scale, s).astype(np.float32) for s in shapes]
    text = random.integers(0, CHARACTERS, size=(length + 1, batch))
    return parameters, text[:-1], text[1:]


def loss(loops: peers.Loops, log_softmax: Any) -> Any:
    """Cross-entropy of the next character; gates in PyTorch's order: in, forget, change, out."""
    xp, n = loops.xp, HIDDEN

    def sigma(z: Any) -> Any:
        return 1.0 / (1.0 + xp.exp(-z))

    def f(parameters: Any, text: Any, after: Any) -> Any:
        embedding, w, u, b, out, bias = parameters

        def step(carry: Any, z: Any) -> Any:
            h, c = carry
            z = z + h @ u
            add, keep = sigma(z[:, :n]), sigma(z[:, n : 2 * n])
            c = keep * c + add * xp.tanh(z[:, 2 * n : 3 * n])
            h = sigma(z[:, 3 * n :]) * xp.tanh(c)
            return (h, c), h

        zeros = loops.array(np.zeros((text.shape[1], n), np.float32))
        _, hidden = loops.scan(step, (zeros, zeros), embedding[text] @ w + b)
        z = log_softmax((hidden @ out + bias).reshape(-1, CHARACTERS))
        return -z[xp.arange(text.size), after.reshape(-1)].mean()

    return f


def steps(batch: int, length: int) -> dict[str, Any]:
    """Contestants; compared are the loss and what the first step added to the parameters.

    An element of what was added is rounded with the parameter, which is a hundred times larger, so
    sums over all elements with random signs are compared.
    """
    parameters, text, after = data(batch, length)
    signs = [generator(42).choice([-1.0, 1.0], size=(16, p.size)) for p in parameters]

    def added(new: Any) -> list[Any]:
        pairs = zip(new, parameters, signs, strict=True)
        return [s @ (np.asarray(a, np.float64) - b).ravel() for a, b, s in pairs]

    def stepper(value_and_grad: Any) -> Any:
        def step(parameters: Any, text: Any, after: Any) -> Any:
            value, bars = value_and_grad(parameters, text, after)
            return value, [p - RATE * g for p, g in zip(parameters, bars, strict=True)]

        return step

    def handed_on(step: Any, state: Any) -> Any:
        kept = [state]

        def run(*given: Any) -> Any:
            value, kept[0] = step(kept[0], *given)
            return value, kept[0]

        return run

    def numbers(out: Any) -> Any:
        return out[0], added(out[1])

    def wengert() -> Call:
        import wengert as wg

        f = loss(peers.wengert(), lambda z: wg.numpy.log_softmax(z, axis=1))
        step = libraries.jit(stepper(wg.value_and_grad(f)))
        run = handed_on(step, [p.copy() for p in parameters])
        return Call(run, (text, after), numbers=numbers)

    def jax() -> Call:
        j = libraries.jax()
        f = loss(peers.jax(), lambda z: j.nn.log_softmax(z, axis=1))
        step = j.jit(stepper(j.value_and_grad(f)), donate_argnums=0)
        run = handed_on(step, [j.numpy.array(p) for p in parameters])
        return Call(
            run, (j.numpy.asarray(text), j.numpy.asarray(after)), j.block_until_ready, numbers
        )

    return {
        "wengert": wengert,
        "JAX": jax,
        "torch": lambda: torch_step(parameters, text, after, added),
    }


def torch_step(parameters: Any, text: Any, after: Any, added: Any) -> Call:
    """PyTorch's own layers; its LSTM has transposed weights and a second bias, which stays zero."""
    t = libraries.torch()
    embedding, w, u, b, out, bias = (t.from_numpy(p.copy()) for p in parameters)
    layer = t.nn.LSTM(EMBEDDED, HIDDEN)
    with t.no_grad():
        for name, value in (("weight_ih_l0", w.T), ("weight_hh_l0", u.T), ("bias_ih_l0", b)):
            getattr(layer, name).copy_(value)
        layer.bias_hh_l0.zero_()
    layer.bias_hh_l0.requires_grad_(False)
    own = [embedding, out, bias]
    learnt = [layer.weight_ih_l0, layer.weight_hh_l0, layer.bias_ih_l0]
    for p in own:
        p.requires_grad_()
    optimizer = t.optim.SGD([*own, *learnt], lr=RATE)
    at, labels = t.from_numpy(text), t.from_numpy(after).reshape(-1)

    def run() -> Any:
        optimizer.zero_grad()
        hidden, _ = layer(t.nn.functional.embedding(at, embedding))
        z = (hidden @ out + bias).reshape(-1, CHARACTERS)
        value = t.nn.functional.cross_entropy(z, labels)
        value.backward()
        optimizer.step()
        return value

    def numbers(value: Any) -> Any:
        w, u, b = (p.detach().numpy().T for p in learnt)
        embedding, out, bias = (p.detach().numpy() for p in own)
        return value, added([embedding, w, u, b, out, bias])

    return Call(run, (), numbers=numbers)
