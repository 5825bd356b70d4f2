"""One training step of a perceptron 784-256-256-10: loss, gradients, and the step of descent.

Nearly all of it are matrix products in float32.  The hand-written ones update the parameters in
place, as does PyTorch; JAX has its parameters donated, and handed on from step
to step; wengert's step returns new parameters, and is called as a training loop calls it.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from . import compiled, libraries
from .case import Call, Cannot, Case, generator

TITLE = "Training step of a perceptron 784-256-256-10"
TEXT = (
    "Cross-entropy, its gradients and a step of gradient descent, float32. *NumPy* and *C* are "
    "written by hand and update in place, with OpenBLAS's products (SciPy's for *C*)."
)
TARGET = "not slower than the best, NumPy by hand included"
SIZES = (784, 256, 256, 10)
RATE = 0.1


def data(batch: int) -> tuple[list[Any], Any, Any]:
    """Parameters (w1, b1, w2, b2, w3, b3), inputs and labels."""
    random = generator(7, batch)
    parameters: list[Any] = []
    for m, n in pairwise(SIZES):
        parameters.append((random.normal(size=(m, n)) * (2.0 / m) ** 0.5).astype(np.float32))
        parameters.append((random.normal(size=n) * 0.1).astype(np.float32))
    x = random.uniform(size=(batch, SIZES[0])).astype(np.float32)
    return parameters, x, random.integers(0, SIZES[-1], size=batch)


def cases(quick: bool) -> Iterator[Case]:
    """Two sizes of batch."""
    for batch in (64, 256):
        yield Case(f"batch {batch}", contestants(*data(batch)), "float32")


def loss(xp: Any, log_softmax: Any) -> Any:
    """Cross-entropy of the perceptron over a namespace."""

    def f(parameters: Any, x: Any, labels: Any) -> Any:
        w1, b1, w2, b2, w3, b3 = parameters
        h = xp.maximum(x @ w1 + b1, 0.0)
        h = xp.maximum(h @ w2 + b2, 0.0)
        z = log_softmax(h @ w3 + b3)
        return -z[xp.arange(len(labels)), labels].mean()

    return f


def wengert_loss() -> Any:
    """The same for wengert: NumPy's names, and its own log_softmax."""
    import wengert as wg

    return loss(np, lambda z: wg.numpy.log_softmax(z, axis=1))


def by_hand(parameters: list[Any], x: Any, labels: Any) -> Any:
    """One step in NumPy, in place."""
    w1, b1, w2, b2, w3, b3 = parameters
    rows = np.arange(len(labels))
    h1 = x @ w1
    h1 += b1
    np.maximum(h1, 0, out=h1)
    h2 = h1 @ w2
    h2 += b2
    np.maximum(h2, 0, out=h2)
    z = h2 @ w3
    z += b3
    z -= z.max(1, keepdims=True)
    right = z[rows, labels].copy()
    np.exp(z, out=z)
    total = z.sum(1, keepdims=True)
    value = np.mean(np.log(total[:, 0]) - right)
    z /= total
    z[rows, labels] -= 1
    z /= np.float32(len(labels))
    d2 = z @ w3.T
    d2 *= h2 > 0
    d1 = d2 @ w2.T
    d1 *= h1 > 0
    for w, b, h, d in ((w3, b3, h2, z), (w2, b2, h1, d2), (w1, b1, x, d1)):
        g = h.T @ d
        g *= np.float32(RATE)
        w -= g
        b -= np.float32(RATE) * d.sum(0)
    return value


def contestants(parameters: list[Any], x: Any, labels: Any) -> dict[str, Any]:
    """All of them, by name; compared are the loss and what the step added to the parameters."""
    batch = len(labels)

    def added(new: Any) -> list[Any]:
        return [np.asarray(a, dtype=np.float64) - b for a, b in zip(new, parameters, strict=True)]

    def fresh() -> list[Any]:
        return [p.copy() for p in parameters]

    def stepper(value_and_grad: Any) -> Any:
        def step(parameters: Any, x: Any, labels: Any) -> Any:
            value, bars = value_and_grad(parameters, x, labels)
            return value, [p - RATE * g for p, g in zip(parameters, bars, strict=True)]

        return step

    def handed_on(step: Any, state: Any) -> Call:
        """A training loop's call: the parameters of one step are those of the next."""
        kept = [state]

        def run(x: Any, labels: Any) -> Any:
            value, kept[0] = step(kept[0], x, labels)
            return value, kept[0]

        return Call(run, (x, labels), numbers=lambda out: (out[0], added(out[1])))

    def wengert() -> Call:
        import wengert as wg

        return handed_on(libraries.jit(stepper(wg.value_and_grad(wengert_loss()))), fresh())

    def hand() -> Call:
        own = fresh()
        return Call(by_hand, (own, x, labels), numbers=lambda value: (value, added(own)))

    def c() -> Call:
        own = fresh()
        work = [np.empty((batch, n), np.float32) for n in (256, 256, 10, 256, 256)]
        function = compiled.library("perceptron", "float32").step
        function.restype = type(compiled.real(0.0, "float32"))
        arguments = (
            compiled.blas("sgemm"), batch, *SIZES, compiled.real(RATE, "float32"),
            *map(compiled.address, (x, labels, *own, *work)),
        )  # fmt: skip
        return Call(function, arguments, numbers=lambda value: (value, added(own)))

    def jax() -> Call:
        j = libraries.jax()
        f = loss(j.numpy, lambda z: j.nn.log_softmax(z, axis=1))
        step = j.jit(stepper(j.value_and_grad(f)), donate_argnums=0)
        call = handed_on(step, [j.numpy.array(p) for p in parameters])
        at = (j.numpy.asarray(x), j.numpy.asarray(labels))
        return Call(call.function, at, j.block_until_ready, call.numbers)

    def torch(compile: bool) -> Call:
        t = libraries.torch()
        own = [t.from_numpy(p).requires_grad_() for p in fresh()]
        f = torch_loss(t)
        forward = t.compile(f, dynamic=False) if compile else f
        optimizer = t.optim.SGD(own, lr=RATE)

        def step(x: Any, labels: Any) -> Any:
            optimizer.zero_grad()
            value = forward(own, x, labels)
            value.backward()
            optimizer.step()
            return value

        at = (t.from_numpy(x), t.from_numpy(labels))
        new = lambda: [p.detach().numpy() for p in own]  # noqa: E731
        return Call(step, at, numbers=lambda value: (value, added(new())))

    def pytensor() -> Call:
        return pytensor_step(fresh(), x, labels, added)

    def casadi() -> Call:
        raise Cannot("CasADi computes in float64 alone")

    return {
        "wengert": wengert,
        "C": c,
        "NumPy": hand,
        "JAX": jax,
        "torch": lambda: torch(False),
        "torch.compile": lambda: torch(True),
        "PyTensor": pytensor,
        "CasADi": casadi,
    }


def torch_loss(t: Any) -> Any:
    """The loss in PyTorch's own functions."""

    def f(parameters: Any, x: Any, labels: Any) -> Any:
        w1, b1, w2, b2, w3, b3 = parameters
        h = t.relu(t.addmm(b1, x, w1))
        h = t.relu(t.addmm(b2, h, w2))
        return t.nn.functional.cross_entropy(t.addmm(b3, h, w3), labels)

    return f


def pytensor_step(own: list[Any], x: Any, labels: Any, added: Any) -> Call:
    """PyTensor: parameters are shared variables, updated by the function."""
    import pytensor
    import pytensor.tensor as pt

    shared = [pytensor.shared(p) for p in own]
    inputs, targets = pt.matrix(dtype="float32"), pt.lvector()
    w1, b1, w2, b2, w3, b3 = shared
    h = pt.maximum(inputs @ w1 + b1, np.float32(0))
    h = pt.maximum(h @ w2 + b2, np.float32(0))
    z = pt.special.log_softmax(h @ w3 + b3, axis=1)
    value = -z[pt.arange(targets.shape[0]), targets].mean(dtype="float32")
    bars = pt.grad(value, shared)
    updates = [(p, p - np.float32(RATE) * g) for p, g in zip(shared, bars, strict=True)]
    step = pytensor.function(
        [inputs, targets], value, updates=updates, mode="NUMBA", trust_input=True
    )
    return Call(step, (x, labels), numbers=lambda v: (v, added([p.get_value() for p in shared])))
