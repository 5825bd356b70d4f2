"""The hot paths: what every user waits for, each as a function of no arguments.

A path is made once and called many times, so it leaves nothing behind.  Beside its name stands
the yardstick that its time is divided by:

    python    objects, tuples, dictionaries and calls in plain Python, and small NumPy arrays
    program   parts of the standard library that are written in Python: much code, rarely executed
              twice
    array     NumPy's tanh of 10,000 numbers
    steps     NumPy's cumulative sum: each step waits for the one before, as in a loop

Yardsticks and paths do the same kind of work, so that their ratio belongs to the code, and as
little as possible to the machine.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

import wengert as wg
import wengert.numpy as wnp
from wengert import nn, optim, random
from wengert._engine.core import pytree

Path = Callable[[], Any]


@dataclass(frozen=True)
class Hot:
    """A path: how it is made, and what it is measured with."""

    make: Callable[[], Path]
    yardstick: str = "python"


def recorded(shape: tuple[int, ...] = (3,)) -> Any:
    """A tensor whose operations are recorded."""
    return wg.tensor(np.full(shape, 0.3), requires_grad=True)


def chain(x: Any) -> Any:
    """Twenty operations and a sum."""
    for _ in wg.unroll(range(5)):
        x = np.sin(x) * 0.5
        x = x + 0.3
        x = x * x
    return x.sum()


def long_chain(x: Any) -> Any:
    """A function of about a hundred lines."""
    y = x
    for _ in wg.unroll(range(25)):
        y = np.tanh(y * 0.9) + x * 1.0
    return y.sum()


def rosenbrock(x: Any) -> Any:
    """The usual one."""
    return (100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2).sum()


def decay(x: Any) -> Any:
    """A thousand steps of a loop."""
    return wg.scan(lambda c, _: (c + 0.001 * np.sin(c) * x, None), x, None, length=1000)[0]


# ---- eager -------------------------------------------------------------------------------------


def add() -> Path:
    """Two recorded tensors."""
    x = recorded()
    return lambda: x + x


def sine() -> Path:
    """NumPy's function of a recorded tensor."""
    x = recorded()
    return lambda: np.sin(x)


def matmul() -> Path:
    """Two recorded matrices."""
    x = recorded((3, 3))
    return lambda: x @ x


def plain_where() -> Path:
    """A function of wengert.numpy on plain arrays, where nothing is recorded."""
    x, y = np.ones(3), np.zeros(3)
    return lambda: wnp.where(x, x, y)


def get_item() -> Path:
    """A row of a recorded matrix."""
    x = recorded((3, 3))
    return lambda: x[1]


def set_item() -> Path:
    """Assignment to an element of what was recorded."""
    x = recorded((3, 3))

    def run() -> Any:
        y = x * 1.0
        y[1, 2] = 5.0
        return y

    return run


def backward() -> Path:
    """Twenty operations forward, and `backward`."""
    x = recorded()

    def run() -> None:
        x.grad = None
        chain(x).backward()

    return run


def transformed(transform: Callable[[Any], Any], f: Any = chain, size: int = 3) -> Path:
    """A transformation of a function, called eagerly on an array."""
    g, x = transform(f), np.linspace(0.1, 0.9, size)
    return lambda: g(x)


def jvp() -> Path:
    """Forward mode."""
    x = np.full(3, 0.3)
    return lambda: wg.jvp(chain, (x,), (x,))


def of_containers() -> Path:
    """Value and gradient with respect to a dictionary of arrays."""
    parameters = {"w": np.full((3, 3), 0.3), "b": np.zeros(3), "layers": [np.ones(3), np.ones(3)]}
    x = np.ones(3)

    def loss(p: Any) -> Any:
        a, b = p["layers"]
        return (np.tanh(p["w"] @ x + p["b"]) * a - b).sum()

    g = wg.value_and_grad(loss)
    return lambda: g(parameters)


def containers() -> Path:
    """Leaves and structure of a dictionary, and back."""
    given = {"w": np.ones(3), "b": np.ones(3), "layers": [(np.ones(3), np.ones(3))] * 5}

    def run() -> Any:
        leaves, structure = pytree.flatten(given)
        return pytree.unflatten(structure, leaves)

    return run


def linear() -> Path:
    """The call of a small layer."""
    layer, x = nn.Linear(4, 4), np.ones((2, 4), np.float32)
    return lambda: layer(x)


def optimizer() -> Path:
    """A step of Adam over two layers."""
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
    chosen = optim.Adam(model.parameters(), lr=1e-9)
    model(np.ones((2, 4), np.float32)).sum().backward()
    return chosen.step


def keys() -> Path:
    """A key of random numbers divided in two."""
    key = random.key(0)
    return lambda: random.split(key)


# ---- compiled ----------------------------------------------------------------------------------


def compiled(f: Any, x: Any) -> Path:
    """The call of a compiled function."""
    g = wg.jit(f)
    g(x)
    return lambda: g(x)


def of_dictionary() -> Path:
    """A compiled function of a dictionary of arrays."""
    g = wg.jit(wg.value_and_grad(lambda p: (p["w"] * p["b"][0]).sum()))
    given = {"w": np.ones(3), "b": [np.ones(3), np.ones(3)]}
    g(given)
    return lambda: g(given)


def tracing() -> Path:
    """A function of a hundred lines as a graph."""
    return lambda: wg.trace(long_chain)(np.ones(3))


def differentiating() -> Path:
    """The same, with its gradient."""
    return lambda: wg.trace(wg.grad(long_chain))(np.ones(3))


def simplifying() -> Path:
    """The graph of that gradient, simplified."""
    graph = wg.trace(wg.grad(long_chain))(np.ones(3))
    return lambda: graph.simplify()


def compiling() -> Path:
    """A new function, from Python to the first result, nothing kept on disk."""
    x = np.linspace(0.1, 0.9, 3)
    count = iter(range(1, 1_000_000))

    def run() -> Any:
        factor = 1.0 + next(count) * 1e-6  # a constant of its own, so that nothing is found again
        return wg.jit(lambda x: (np.tanh(x * factor) * x + factor).sum())(x)

    return run


def written(x: Any) -> Any:
    """A loop that writes each element of a large array, which is not copied for it."""

    def step(i: Any, a: Any) -> Any:
        a = a.copy()
        a[i] = np.sin(a[i])
        return a

    return wg.fori_loop(0, len(x), step, x * 1.0)


def interpreted() -> Path:
    """A graph of a hundred nodes, run by the interpreter."""
    x = np.ones(3)
    g = wg.jit(long_chain, backend="interpret")
    g(x)
    return lambda: g(x)


def elementwise(x: Any) -> Any:
    """One loop with a transcendental function."""
    return np.tanh(x * 0.7 + 0.3) * x


PATHS: dict[str, Hot] = {
    "eager add": Hot(add),
    "eager sin": Hot(sine),
    "eager matmul": Hot(matmul),
    "eager x[i]": Hot(get_item),
    "eager x[i] = v": Hot(set_item),
    "plain where": Hot(plain_where),
    "backward": Hot(backward, "program"),
    "eager grad": Hot(partial(transformed, wg.grad), "program"),
    "eager value and grad of containers": Hot(of_containers, "program"),
    "eager jvp": Hot(jvp, "program"),
    "eager hessian": Hot(partial(transformed, wg.hessian, rosenbrock), "program"),
    "eager vmap": Hot(partial(transformed, wg.vmap, lambda x: np.sin(x) * x + 1.0), "program"),
    "flatten containers": Hot(containers),
    "nn.Linear": Hot(linear),
    "Adam step": Hot(optimizer, "program"),
    "random.split": Hot(keys),
    "compiled call": Hot(partial(compiled, lambda x: np.sin(x) * x**2, 0.7)),
    "compiled gradient of ten": Hot(
        partial(compiled, wg.grad(rosenbrock), np.linspace(-1.2, 1.1, 10))
    ),
    "compiled call with containers": Hot(of_dictionary),
    "compiled elementwise": Hot(
        partial(compiled, elementwise, np.linspace(-2.0, 2.0, 10_000)), "array"
    ),
    "compiled scan": Hot(partial(compiled, decay, 0.7), "steps"),
    "compiled gradient of a scan": Hot(partial(compiled, wg.grad(decay), 0.7), "steps"),
    "compiled exponential of -1e9": Hot(partial(compiled, np.exp, np.full(10_000, -1e9)), "array"),
    "compiled writes into a large array": Hot(partial(compiled, written, np.ones(10_000)), "steps"),
    "interpreted graph": Hot(interpreted),
    "trace": Hot(tracing, "program"),
    "trace a gradient": Hot(differentiating, "program"),
    "simplify": Hot(simplifying, "program"),
    "compile": Hot(compiling, "program"),
}
