"""GARCH(1,1): the log-likelihood of 10,000 returns, its gradient and its Hessian.

The variance of a return follows h' = omega + alpha e^2 + beta h with e = y - mu; the parameters
are (mu, omega, alpha, beta).  Only the recurrence is in the loop: logarithms and quotients are
taken of whole arrays, as NumPy's users write it.  C has forward sensitivities by hand, of first
and second order, in one pass (benchmarks/c/garch.c).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from native import libraries
from native.case import Call, Case, generator

from . import peers

TITLE = "GARCH(1,1): log-likelihood"
TEXT = (
    "n = 10,000, four parameters; value, value and gradient, Hessian. *JAX, forward* pushes four "
    "directions; its Hessian is `jax.hessian` (forward over reverse), *JAX, forward* there is "
    "forward over forward. *C* carries the sensitivities of h, one pass, no memory."
)
PEERS = ("JAX",)
TARGET = "within 2 times of C (column C at least 0.5)"
THETA = np.array([0.02, 0.05, 0.1, 0.85])


def returns(n: int) -> Any:
    """A path of the model itself."""
    mu, omega, alpha, beta = THETA
    z, h, y = generator(30).normal(size=n), omega / (1.0 - alpha - beta), np.empty(n)
    for t in range(n):
        e = np.sqrt(h) * z[t]
        y[t] = mu + e
        h = omega + alpha * e * e + beta * h
    return y


def likelihood(y: Any) -> Any:
    """The function, without the constant."""
    start = float(np.mean(y * y))

    def f(loops: peers.Loops) -> Any:
        xp, returns = loops.xp, loops.array(y)

        def run(theta: Any) -> Any:
            e2 = (returns - theta[0]) ** 2

            def step(h: Any, e2: Any) -> Any:
                return theta[1] + theta[2] * e2 + theta[3] * h, h

            _, h = loops.scan(step, loops.array(np.array(start)), e2)
            return -0.5 * (xp.log(h) + e2 / h).sum()

        return run

    return f


def cases(quick: bool) -> Iterator[Case]:
    """Value, gradient, Hessian."""
    n = 500 if quick else 10_000
    y, bar, matrix = returns(n), np.zeros(4), np.zeros((4, 4))
    f, given = likelihood(y), (n, y, float(np.mean(y * y)), THETA)
    value = peers.by_hand("garch", "garch", given, lambda value: value)
    yield Case("value", peers.valued(f, THETA) | value, within=1e-10)
    gradient = peers.by_hand("garch", "garch_gradient", (*given, bar), lambda v: (v, bar))
    found = peers.differentiated(f, THETA, slow=("torch",))
    yield Case("gradient", found | gradient, within=1e-10)
    second = (*given, bar, matrix)
    hessian = peers.by_hand("garch", "garch_hessian", second, lambda _: matrix)
    yield Case("Hessian", hessians(f) | hessian, within=1e-10)


def hessians(f: Any) -> dict[str, Callable[[], Call]]:
    """Of the libraries that have one."""

    def wengert() -> Call:
        import wengert as wg

        return Call(libraries.jit(wg.hessian(f(peers.wengert()))), (THETA,))

    def reverse() -> Call:
        return libraries.jax_call(libraries.jax().hessian(f(peers.jax())), THETA)

    def forward() -> Call:
        j = libraries.jax()
        return libraries.jax_call(j.jacfwd(j.jacfwd(f(peers.jax()))), THETA)

    return {"wengert": wengert, "JAX, reverse": reverse, "JAX, forward": forward}
