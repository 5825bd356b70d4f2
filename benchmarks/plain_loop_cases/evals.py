"""Evals of GradBench with Python's loops, beside those with `scan`, `while_loop` and `map`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy.special import logsumexp, multigammaln

import wengert as wg
from gradbench.descent import backward, forward, least
from gradbench.evals import gmm, llsq, lstm, ode, particle
from native.case import Call, Case, generator

TITLE = "GradBench's evals with Python's loops"
TEXT = (
    "*wengert* compiles a program whose loops are Python's `for` and `while`, *functional* the "
    "same with `wg.scan`, `wg.while_loop` and `wg.map`, as the evals of GradBench are written here."
)
TARGET = "at most 1.2 times the time of the functional program"
PEERS = ["functional"]


def lstm_loss(main: Any, extra: Any, state: Any, text: Any) -> Any:
    """The loss of a character model, character by character."""
    layers, bits = len(main) // 2, text.shape[1]
    main = main.reshape(layers, 2, 4, bits)
    states = [(state[2 * k], state[2 * k + 1]) for k in range(layers)]
    total = 0.0
    for i in range(len(text) - 1):
        x = text[i] * extra[0]
        for k in range(layers):
            states[k] = lstm.layer(main[k], states[k], x)
            x = states[k][0]
        y = x * extra[1] + extra[2]
        total += np.sum(text[i + 1] * (np.log(np.sum(np.exp(y)) + 2.0) - y))
    return total / (len(text) - 1) / bits


def llsq_objective(n: int) -> Callable[[Any], Any]:
    """Horner's rule for a polynomial at n points."""

    def y(x: Any) -> Any:
        t = -1.0 + np.arange(n) * 2.0 / (n - 1)
        p = np.zeros(n)
        for coefficient in x[::-1]:
            p = p * t + coefficient
        return 0.5 * np.sum((np.sign(t) - p) ** 2)

    return y


def ode_solution(x: Any, steps: int) -> Any:
    """Steps of the classical Runge-Kutta method."""
    h = ode.END / steps

    def rate(y: Any) -> Any:
        return x * np.concatenate([np.ones(1), y[:-1]])

    y = np.zeros_like(x)
    for _ in range(steps):
        a = rate(y)
        b = rate(y + h / 2 * a)
        c = rate(y + h / 2 * b)
        d = rate(y + h * c)
        y = y + h / 6 * (a + 2 * b + 2 * c + d)
    return y


def gmm_posterior(d: int, k: int, n: int, m: int, gamma: float) -> Any:
    """The log posterior of a mixture of Gaussians, component by component."""
    columns, rows = np.triu_indices(d, 1)
    nu = d + m + 1
    fixed = k * (nu * d * np.log(gamma / np.sqrt(2.0)) - multigammaln(0.5 * nu, d))
    fixed -= 0.5 * n * d * np.log(2.0 * np.pi)

    def f(alpha: Any, mu: Any, q: Any, below: Any, x: Any) -> Any:
        beta, prior = np.zeros((k, n)), 0.0
        for j in range(k):
            factor = np.zeros((d, d))
            factor[range(d), range(d)] = np.exp(q[j])
            factor[rows, columns] = below[j]
            whitened = (x - mu[j]) @ factor.T
            beta[j] = alpha[j] + np.sum(q[j]) - 0.5 * np.sum(whitened**2, axis=1)
            prior += m * np.sum(q[j]) - 0.5 * gamma**2 * np.sum(factor**2)
        return fixed + np.sum(logsumexp(beta, axis=0)) - n * logsumexp(alpha) + prior

    return f


def flight(gradient: Any) -> Any:
    """The square of where a particle crosses the axis, step by step."""

    def crossed(w: Any) -> Any:
        def potential(x: Any, y: Any) -> Any:
            across, up = x - particle.CHARGE, y - (particle.CHARGE - w)
            square = across * across
            return 1.0 / np.sqrt(square + up * up) + 1.0 / np.sqrt(square + y * y)

        x, y, u, v = 0.0, 8.0, 0.75, 0.0
        while y + particle.STEP * v > 0.0:
            by_x, by_y = gradient(potential)(x, y)
            x, y = x + particle.STEP * u, y + particle.STEP * v
            u, v = u - particle.STEP * by_x, v - particle.STEP * by_y
        return (x - y / v * u) ** 2

    return crossed


def pair(plain: Any, functional: Any, *arguments: Any) -> dict[str, Callable[[], Call]]:
    """Both programs, compiled."""
    return {
        "wengert": lambda: Call(wg.jit(plain), arguments),
        "functional": lambda: Call(wg.jit(functional), arguments),
    }


def lstm_case(length: int, bits: int, layers: int) -> Case:
    """The value and gradient of the character model."""
    random = generator(1)
    main, extra = random.normal(size=(2 * layers, 4 * bits)), random.normal(size=(3, bits))
    state, text = random.normal(size=(2 * layers, bits)), random.integers(0, 2, (length, bits))
    programs = (wg.value_and_grad(f, argnums=(0, 1)) for f in (lstm_loss, lstm.objective))
    return Case(
        f"lstm, {length} characters", pair(*programs, main, extra, state, text.astype(float))
    )


def cases(quick: bool) -> Iterator[Case]:
    """One case for each eval that has a loop."""
    yield lstm_case(20 if quick else 1024, 14, 2)
    n, degree = (50, 8) if quick else (16392, 128)
    programs = (wg.value_and_grad(f(n)) for f in (llsq_objective, llsq.objective))
    yield Case(f"llsq, {n} points", pair(*programs, generator(2).normal(size=degree) / degree))
    n, steps = (10, 5) if quick else (1000, 100)
    programs = (
        wg.value_and_grad(lambda x, f=f: f(x, steps)[-1]) for f in (ode_solution, ode.solve)
    )
    yield Case(f"ode, {steps} steps", pair(*programs, generator(3).random(n)))
    d, k, n = (3, 4, 20) if quick else (10, 25, 1000)
    random = generator(4)
    given = (
        random.normal(size=k), random.normal(size=(k, d)), 0.1 * random.normal(size=(k, d)),
        0.1 * random.normal(size=(k, d * (d - 1) // 2)), random.normal(size=(n, d)),
    )  # fmt: skip
    programs = (
        wg.value_and_grad(f(d, k, n, 0, 1.0), argnums=(0, 1, 2, 3))
        for f in (gmm_posterior, gmm.log_posterior)
    )
    yield Case(f"gmm, {n} points", pair(*programs, *given))
    modes = {
        "rr": (backward, particle.by_grad), "ff": (forward, particle.by_jvp),
        "fr": (forward, particle.by_grad), "rf": (backward, particle.by_jvp),
    }  # fmt: skip
    for name in ["ff"] if quick else modes:
        outer, inner = modes[name]
        flights = (flight(inner), particle.flight(inner))
        programs = (lambda w, f=f, outer=outer: least(outer(f), w) for f in flights)
        yield Case(f"particle, {name}", pair(*programs, 0.1))
