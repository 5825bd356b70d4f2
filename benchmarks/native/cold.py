"""The first call in a fresh process: tracing, derivative, compilation and one run.

    cold     nothing compiled before; the library keeps nothing
    keeping  nothing compiled before; the library writes what it compiles to disk
    second   another process, which finds what the one before has kept

Counted is the time from the plain function to the first result; the import of the library, the
start of its backend and its arrays are not.  (What wengert imports only when it compiles is
counted.)
Each run is a process of its own (fresh.py), `native.py --once cold PROGRAM LIBRARY`; contestants
take turns.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np

from _harness import spread
from eager import chain, start

from . import calls, fresh, libraries, perceptron
from .case import Call, generator
from .environment import environment
from .measure import deviation, middle

TITLE = "Compiling: the first call in a fresh process"
TEXT = (
    "From the plain function to the first result, import not counted. *cold*: nothing is kept; "
    "*keeping*: what is compiled is written to disk; *second*: another process that finds it. "
    "PyTensor and torch.compile always keep, and are measured once (PyTensor needs more than a "
    "minute for the LSTM, so it is left out there); *CasADi* makes no native code, *CasADi, "
    "compiled* has gcc; *numba* compiles a derivative written by hand."
)
PEERS = ("JAX",)  # what the target compares with
TARGET = "cold: at most half of JAX's; second: at most 50 ms"
CHOICE = ("wengert", "JAX")  # these have a cache on disk that can be turned off
ALWAYS = ("torch.compile", "PyTensor")  # these keep it


def lstm(xp: Any) -> Any:
    """Twenty steps of a long short-term memory, unrolled."""

    def sigmoid(z: Any) -> Any:
        return 1.0 / (1.0 + xp.exp(-z))

    def f(w: Any, u: Any, b: Any, xs: Any, h: Any) -> Any:
        n = 32
        c = h
        for t in range(20):
            z = xs[t] @ w + h @ u + b
            keep, add, out = (sigmoid(z[:, i * n : (i + 1) * n]) for i in range(3))
            c = keep * c + add * xp.tanh(z[:, 3 * n :])
            h = out * xp.tanh(c)
        return (h * h).sum()

    return f


def lstm_data() -> tuple[Any, ...]:
    """Weights, inputs and the first state."""
    random = generator(10)
    w, u = random.normal(size=(16, 128)) / 4.0, random.normal(size=(32, 128)) / 6.0
    return w, u, np.zeros(128), random.normal(size=(20, 8, 16)), np.zeros((8, 32))


def of_one(f: Callable[[Any], Any], x: Any, **more: Any) -> dict[str, Callable[[], Call]]:
    """The libraries that differentiate a function ``f(xp)(x)``."""
    return {
        "wengert": lambda: libraries.wengert(f(np), x, value=False),
        "JAX": lambda: libraries.jax_gradient(f(libraries.jax().numpy), x, value=False),
        "torch.compile": lambda: libraries.torch_gradient(
            f(libraries.torch()), x, value=False, compile=True
        ),
        "PyTensor": lambda: libraries.pytensor_gradient(
            lambda pt, x: f(pt)(x), x, mode="CVM", value=False
        ),
        **more,
    }


def rosenbrock() -> dict[str, Callable[[], Call]]:
    """The gradient of Rosenbrock's function of 1,000 numbers."""
    x = np.linspace(-1.2, 1.1, 1000)

    def numba() -> Call:
        from numba import njit

        return Call(njit(calls.hand_loop), (x,))

    casadi = libraries.casadi(lambda: calls.casadi_gradient(x.size), x)
    return of_one(lambda xp: calls.rosenbrock, x, numba=numba, **casadi)


def long_chain(rounds: int = 1) -> dict[str, Callable[[], Call]]:
    """The gradient of the chain of 1,000 operations of eager.py, so many times over."""
    x = start(100)

    def f(xp: Any) -> Any:
        def run(x: Any) -> Any:
            for _ in range(rounds):
                x = chain(x, xp.sin)
            return x.sum()

        return run

    def casadi() -> Any:
        import casadi

        s = casadi.MX.sym("x", x.size)
        value = casadi.sum1(chain(s, casadi.sin))
        return casadi.Function("g", [s], [casadi.gradient(value, s)])

    if rounds > 1:
        return {"wengert": lambda: libraries.wengert(f(np), x, value=False)}
    found = of_one(f, x, **libraries.casadi(casadi, x))
    del found["torch.compile"]  # minutes
    return found


def mlp() -> dict[str, Callable[[], Call]]:
    """Loss and gradients of the perceptron, batch 64."""
    parameters, x, labels = perceptron.data(64)

    def jax() -> Call:
        j = libraries.jax()
        f = perceptron.loss(j.numpy, lambda z: j.nn.log_softmax(z, axis=1))
        return libraries.jax_gradient(f, parameters, x, labels)

    def torch() -> Call:
        t = libraries.torch()
        f = perceptron.torch_loss(t)
        at = (t.from_numpy(x), t.from_numpy(labels))
        by = tuple(range(len(parameters)))
        return libraries.torch_gradient(lambda *p: f(p, *at), *parameters, by=by, compile=True)

    return {
        "wengert": lambda: libraries.wengert(perceptron.wengert_loss(), parameters, x, labels),
        "JAX": jax,
        "torch.compile": torch,
    }


def recurrent() -> dict[str, Callable[[], Call]]:
    """Value and gradients of the unrolled recurrence."""
    data = lstm_data()

    return {
        "wengert": lambda: libraries.wengert(lstm(np), *data, argnums=(0, 1, 2)),
        "JAX": lambda: libraries.jax_gradient(
            lstm(libraries.jax().numpy), *data, argnums=(0, 1, 2)
        ),
        "torch.compile": lambda: libraries.torch_gradient(
            lstm(libraries.torch()), *data, by=(0, 1, 2), compile=True
        ),
    }


PROGRAMS: dict[str, tuple[str, Callable[[], dict[str, Callable[[], Call]]]]] = {
    "rosenbrock": ("Rosenbrock, n = 1,000", rosenbrock),
    "chain": ("chain of 1,000 operations", long_chain),
    "mlp": ("perceptron, batch 64", mlp),
    "lstm": ("LSTM of 20 steps, unrolled", recurrent),
    "chain-10": ("chain of 10,000 operations", lambda: long_chain(10)),
    "chain-100": ("chain of 100,000 operations", lambda: long_chain(100)),
}


def once(program: str, library: str) -> dict[str, Any]:
    """In the fresh process: time the first call, and a second one."""
    return fresh.timed(PROGRAMS[program][1]()[library], library)


def process(program: str, library: str, threads: int, folder: str, keep: bool) -> dict[str, Any]:
    """Run ``once`` in a fresh process."""
    variables = environment(threads, fresh=folder, keep=keep)
    return fresh.process("native.py", ["cold", program, library], variables)


def measure(quick: bool, threads: int) -> list[dict[str, Any]]:
    """All programs, libraries and states of the disk."""
    results = []
    programs = list(PROGRAMS)[:4] if quick or not libraries.has_jit() else list(PROGRAMS)
    for program in programs:
        text, make = PROGRAMS[program]
        names = [n for n in make() if not (quick and n == "torch.compile")]
        samples: dict[tuple[str, str], list[Any]] = {}
        for repetition in range(1 if quick else 3):
            for name in names:
                if repetition and name in ALWAYS:
                    continue  # slow, and far from the others: once will do
                with tempfile.TemporaryDirectory() as empty, tempfile.TemporaryDirectory() as kept:
                    states = [("cold", empty, False)]
                    if name in CHOICE:
                        states += [("keeping", kept, True), ("second", kept, True)]
                    elif name in ALWAYS:
                        states = [("cold", kept, True), ("second", kept, True)]
                    for state, folder, keep in states:
                        got = process(program, name, threads, folder, keep)
                        samples.setdefault((state, name), []).append(got)
        results += summary(text, names, samples)
    return results


def summary(text: str, names: list[str], samples: dict[Any, list[Any]]) -> list[dict[str, Any]]:
    """One case for each state of the disk."""
    good = [s for group in samples.values() for s in group if "numbers" in s]
    right = middle([[np.array(a) for a in s["numbers"]] for s in good]) if good else []
    cases = []
    for state in ("cold", "keeping", "second"):
        contestants: dict[str, Any] = {}
        for name in names:
            for s in samples.get((state, name), []):
                if "numbers" not in s:
                    contestants[name] = s
                    break
                off = deviation([np.array(a) for a in s["numbers"]], right)
                if off > (1e-3 if "perceptron" in text else 1e-6):
                    contestants[name] = {"wrong": off}
                    break
            else:
                group = samples.get((state, name), [])
                first = [s["first"] for s in group]
                if first:
                    contestants[name] = spread(first * 2 if len(first) == 1 else first)
                    contestants[name]["processor"] = median(s["processor"] for s in group)
        cases.append({"case": f"{text}: {state}", "contestants": contestants})
    return cases
