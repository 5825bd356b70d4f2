"""Kalman's filter: the log-likelihood of a state-space model with 4 states, and its gradient.

A body moves in the plane with damped velocity, and its position is observed with noise: F has the
damping, Q and R are scaled by their logarithms; the gradient is by (log q, log r, damping).  With
one observation a step there is nothing to factorise; with two, S is solved with and its
determinant taken, by the library's own functions.  C has the adjoint of a step by hand, by all
elements of F, Q and R (benchmarks/c/kalman.c), which the chain rule takes to the three parameters.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from native import libraries
from native.case import Case, generator

from . import peers

TITLE = "Kalman's filter: log-likelihood"
TEXT = (
    "4 states, 2000 steps; 1 or 2 observations in each (2: solve and slogdet of the library), by "
    "three parameters of F, Q and R. *JAX, forward* is `vmap` of `jvp` over three directions. "
    "*CasADi* is `mapaccum` and its reverse mode, *CasADi, compiled* its C. *C* keeps mean and "
    "covariance of each step (320 kB) and computes the rest again."
)
PEERS = ("JAX",)
TARGET = "gradient within 3 times of C (column C at least 0.33), 10 times faster than JAX"
STEP = 0.1
THETA = np.array([np.log(0.1), np.log(0.2), 0.05])
F0 = np.eye(4) + STEP * np.eye(4, k=2)
F1 = -STEP * np.diag([0.0, 0.0, 1.0, 1.0])
Q0 = np.kron([[STEP**3 / 3, STEP**2 / 2], [STEP**2 / 2, STEP]], np.eye(2))
H = np.array([[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]])
LOG_2PI = float(np.log(2.0 * np.pi))


def observed(n: int, m: int) -> Any:
    """Positions with noise, of one path."""
    random = generator(20, m)
    q, r, damping = np.exp(THETA[0]), np.exp(THETA[1]), THETA[2]
    root, x, rows = np.linalg.cholesky(q * Q0), np.zeros(4), []
    for _ in range(n):
        x = (F0 + damping * F1) @ x + root @ random.normal(size=4)
        rows.append(H[:m] @ x + np.sqrt(r) * random.normal(size=m))
    return np.array(rows)


def cases(quick: bool) -> Iterator[Case]:
    """One and two observations."""
    n = 100 if quick else 2000
    for m in (1, 2):
        y = observed(n, m)
        slow = ("torch", "autograd") if m == 1 else ("torch",)
        value, gradient = by_hand(y, m)
        text = f"{m} observation{'s' if m > 1 else ''}"
        yield Case(f"value, {text}", peers.valued(likelihood(y), THETA) | value, within=1e-10)
        found = peers.differentiated(likelihood(y), THETA, slow=slow)
        found |= libraries.casadi(lambda y=y: casadi(y), THETA)
        yield Case(f"gradient, {text}", found | gradient, within=1e-10)


def likelihood(y: Any) -> Any:
    """The function."""
    m = y.shape[1]

    def f(loops: peers.Loops) -> Any:
        xp = loops.xp
        f0, f1, q0, h, ys, eye = map(loops.array, (F0, F1, Q0, H[:m].copy(), y, np.eye(4)))
        r0, start = loops.array(np.eye(m)), loops.array(np.zeros(4))

        def run(theta: Any) -> Any:
            q, r = xp.exp(theta[0]) * q0, xp.exp(theta[1]) * r0
            move = f0 + theta[2] * f1

            def step(carry: Any, y: Any) -> Any:
                mean, p = carry
                mean = move @ mean
                p = move @ p @ move.T + q
                v = y - h @ mean
                g = p @ h.T
                s = h @ g + r
                if m == 1:
                    w, gain, logdet = v / s[0, 0], g / s[0, 0], xp.log(s[0, 0])
                else:
                    w, gain = xp.linalg.solve(s, v), xp.linalg.solve(s, g.T).T
                    logdet = xp.linalg.slogdet(s)[1]
                term = -0.5 * ((v * w).sum() + logdet + m * LOG_2PI)
                return (mean + g @ w, p - gain @ g.T), term

            _, terms = loops.scan(step, (start, eye), ys)
            return terms.sum()

        return run

    return f


def by_hand(y: Any, m: int) -> Any:
    """C, for the value and for the gradient."""
    n, h = len(y), H[:m].copy()
    f = F0 + THETA[2] * F1
    q, r = np.exp(THETA[0]) * Q0, np.exp(THETA[1]) * np.eye(m)
    kept, f_bar, q_bar, r_bar = np.zeros((n, 20)), *np.zeros((2, 4, 4)), np.zeros((m, m))

    def gradient(value: float) -> Any:
        return value, np.array([(q_bar * q).sum(), (r_bar * r).sum(), (f_bar * F1).sum()])

    given = (n, f, q, r, h, y)
    return (
        peers.by_hand("kalman", f"kalman{m}", given, lambda value: value),
        peers.by_hand(
            "kalman", f"kalman{m}_gradient", (*given, kept, f_bar, q_bar, r_bar), gradient
        ),
    )


def casadi(y: Any) -> Any:
    """A step as a function, accumulated, differentiated in reverse."""
    import casadi as c

    n, m = y.shape
    mean, p, theta, seen = (c.SX.sym(*s) for s in (("m", 4), ("p", 4, 4), ("t", 3), ("y", m)))
    h, move = c.DM(H[:m].copy()), c.DM(F0) + theta[2] * c.DM(F1)
    after = move @ mean
    spread = move @ p @ move.T + c.exp(theta[0]) * c.DM(Q0)
    v, g = seen - h @ after, spread @ h.T
    s = h @ g + c.exp(theta[1]) * c.DM.eye(m)
    inverse = c.inv(s)
    term = -0.5 * (c.dot(v, inverse @ v) + c.log(c.det(s)) + m * LOG_2PI)
    out = [after + g @ inverse @ v, spread - g @ inverse @ g.T, term]
    step = c.Function("step", [mean, p, theta, seen], out).mapaccum("all", n, 2)
    q = c.MX.sym("q", 3)
    terms = step(c.DM.zeros(4), c.DM.eye(4), c.repmat(q, 1, n), c.DM(y.T.copy()))[2]
    value = c.sum2(terms)
    return c.Function("f", [q], [value, c.gradient(value, q)])
