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

from . import by_numba, peers

TITLE = "GARCH(1,1): log-likelihood"
TEXT = (
    "n = 10,000, four parameters; value, value and gradient, Hessian. *JAX, forward* is `vmap` "
    "of `jvp` over four directions; its Hessian is `jax.hessian` (forward over reverse), *JAX, "
    "forward* there is forward over forward. *CasADi* is `mapaccum`, *CasADi, compiled* its C, "
    "*PyTensor* its `scan`. *C* carries the sensitivities of h, one pass, no memory; so does "
    "*numba*, by hand."
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
    start = float(np.mean(y * y))
    value["numba"] = lambda: peers.numba_call(by_numba.garch, y, start, THETA)
    yield Case("value", peers.valued(f, THETA) | value, within=1e-10)
    gradient = peers.by_hand("garch", "garch_gradient", (*given, bar), lambda v: (v, bar))
    found = peers.differentiated(f, THETA, slow=("torch",))
    found |= libraries.casadi(lambda: casadi(y, hessian=False), THETA)
    found["PyTensor"] = lambda: pytensor(y)
    found["numba"] = lambda: peers.numba_call(by_numba.garch_gradient, y, start, THETA)
    yield Case("gradient", found | gradient, within=1e-10)
    second = (*given, bar, matrix)
    hessian = peers.by_hand("garch", "garch_hessian", second, lambda _: matrix)
    found = hessians(f) | hessian
    found |= libraries.casadi(lambda: casadi(y, hessian=True), THETA)
    yield Case("Hessian", found, within=1e-10)


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


def casadi(y: Any, hessian: bool) -> Any:
    """The recurrence accumulated, and what it gives differentiated in reverse; or its Hessian."""
    import casadi as c

    h, e2, p = c.SX.sym("h"), c.SX.sym("e2"), c.SX.sym("p", 4)
    step = c.Function("step", [h, e2, p], [p[1] + p[2] * e2 + p[3] * h])
    q, n, start = c.MX.sym("q", 4), y.size, float(np.mean(y * y))
    squares = (c.DM(y).T - q[0]) ** 2
    after = step.mapaccum("all", n)(start, squares, c.repmat(q, 1, n))
    before = c.horzcat(start, after[:, :-1])
    value = -0.5 * c.sum2(c.log(before) + squares / before)
    found = [c.hessian(value, q)[0]] if hessian else [value, c.gradient(value, q)]
    return c.Function("f", [q], found)


def pytensor(y: Any) -> Call:
    """Its scan of the recurrence, and the gradient through it."""

    def build(pt: Any, theta: Any) -> Any:
        import pytensor

        def step(e2: Any, h: Any, theta: Any) -> Any:
            return theta[1] + theta[2] * e2 + theta[3] * h

        e2 = (pt.constant(y) - theta[0]) ** 2
        start = pt.constant(float(np.mean(y * y)))
        after, _ = pytensor.scan(step, sequences=[e2], outputs_info=[start], non_sequences=[theta])
        h = pt.concatenate([start[None], after[:-1]])
        value = -0.5 * (pt.log(h) + e2 / h).sum()
        return [value, pt.grad(value, theta)]

    return libraries.pytensor_call(build, THETA)
