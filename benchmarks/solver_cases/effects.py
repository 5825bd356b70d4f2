"""The Laplace approximation of a chain of random effects: value, and value with gradient.

Counts y of a Poisson distribution with intensity exp(m + u); u is an autoregressive process with
precision s and coefficient r.  The Hessian with respect to u is tridiagonal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from native import libraries
from native.case import Call, Case, generator

from . import by_numba, fresh

TITLE = "Laplace approximation: a chain of random effects"
TEXT = (
    "Poisson counts whose logarithmic intensity is an autoregressive process, marginal likelihood "
    "of its three parameters. *wengert* is `optim.laplace`, which is given the joint density "
    "alone: it finds the pattern, and factorizes with SuperLU. *JAX*: Newton's method and "
    "`custom_root` with `tridiagonal_solve`, the determinant by a `scan`. *numba*: everything by "
    "hand for tridiagonal matrices, with Takahashi's recurrence."
)
PEERS = ("JAX",)
TARGET = "gradient at most 3 times the value"
TOLERANCE = 1e-9


def cases(quick: bool) -> Iterator[Case]:
    """Of two sizes."""
    for n in (200,) if quick else (10_000, 100_000):
        random = generator(98)
        u = np.zeros(n)
        for i in range(1, n):
            u[i] = 0.8 * u[i - 1] + 0.4 * random.normal()
        counts = random.poisson(np.exp(1.5 + u)).astype(float)
        theta = np.array([1.4, np.log(6.0), 0.75])
        for gradient in (False, True):
            name = "value and gradient" if gradient else "value"
            yield Case(f"{name}, {n} effects", contestants(counts, theta, gradient), within=1e-6)


def joint(xp: Any, y: Any, u: Any, theta: Any) -> Any:
    """The negative logarithm of the joint density, without constants."""
    m, s, r = theta[0], xp.exp(theta[1]), theta[2]
    eta = m + u
    process = (1.0 - r * r) * u[0] ** 2 + ((u[1:] - r * u[:-1]) ** 2).sum()
    determinant = theta[1] * y.shape[0] + xp.log(1.0 - r * r)
    return (xp.exp(eta) - y * eta).sum() + s * process / 2 - determinant / 2


def contestants(y: Any, theta: Any, gradient: bool) -> dict[str, Callable[[], Call]]:
    """All of them."""

    def wengert() -> Call:
        import wengert as wg

        given = {"u": np.zeros(y.size), "theta": theta}
        marginal = wg.optim.laplace(
            lambda p: joint(np, y, p["u"], p["theta"]), random="u", params=given
        )

        def value(theta: Any) -> Any:
            return marginal({"theta": theta})

        if gradient:
            return fresh.each_call(libraries.wengert(value, theta))
        return fresh.each_call(Call(libraries.jit(value), (theta,)))

    def jax() -> Call:
        j = libraries.jax()
        value = by_jax(j, y)
        if gradient:
            return fresh.each_call(libraries.jax_gradient(value, theta))
        return fresh.each_call(libraries.jax_call(value, theta))

    return {
        "wengert": wengert,
        "JAX": jax,
        "numba": lambda: fresh.each_call(Call(by_hand(y, gradient), (theta,))),
    }


def by_jax(j: Any, y: Any) -> Callable[[Any], Any]:
    """The value in JAX."""
    xp, n = j.numpy, y.size
    counts = xp.asarray(y)
    ends = xp.zeros(n).at[0].set(1.0).at[-1].set(1.0)

    def value(theta: Any) -> Any:
        s, r = xp.exp(theta[1]), theta[2]

        def bands(u: Any, theta: Any) -> Any:
            s, r = xp.exp(theta[1]), theta[2]
            return s * (1.0 + r * r - r * r * ends) + xp.exp(theta[0] + u), -s * r

        def solve(diagonal: Any, off: Any, b: Any) -> Any:
            low, high = xp.full(n, off).at[0].set(0.0), xp.full(n, off).at[-1].set(0.0)
            return j.lax.linalg.tridiagonal_solve(low, diagonal, high, b[:, None])[:, 0]

        def newton(f: Any, u: Any) -> Any:
            def step(state: Any) -> Any:
                u = state[0] - solve(*bands(state[0], j.lax.stop_gradient(theta)), state[1])
                return u, f(u)

            return j.lax.while_loop(lambda s: abs(s[1]).max() > TOLERANCE, step, (u, f(u)))[0]

        def tangent(g: Any, b: Any) -> Any:
            diagonal = g(xp.ones(n)) - xp.concatenate([xp.full(1, off), xp.full(n - 2, 2 * off),
                                                       xp.full(1, off)])  # fmt: skip
            return solve(diagonal, off, b)

        off = -s * r
        gradient = j.grad(lambda u: joint(xp, counts, u, theta))
        u = j.lax.custom_root(gradient, xp.zeros(n), newton, tangent)
        diagonal, off = bands(u, theta)

        def pivot(last: Any, d: Any) -> Any:
            p = d - off * off / last
            return p, p

        _, pivots = j.lax.scan(pivot, xp.inf, diagonal)
        determinant = xp.log(pivots).sum()
        return joint(xp, counts, u, theta) + determinant / 2 - n * xp.log(2.0 * xp.pi) / 2

    return value


def by_hand(y: Any, gradient: bool) -> Callable[[Any], Any]:
    """Value, and gradient, for tridiagonal matrices."""
    from numba import njit

    factorized, solved, inverse = map(
        njit, (by_numba.factorized, by_numba.solved, by_numba.inverse)
    )
    n = y.size
    ends = np.zeros(n)
    ends[[0, -1]] = 1.0

    def run(theta: Any) -> Any:
        m, s, r = theta[0], np.exp(theta[1]), theta[2]
        prior, off = s * (1.0 + r * r - r * r * ends), np.full(n - 1, -s * r)
        u = np.zeros(n)
        while True:
            intensity = np.exp(m + u)
            applied = prior * u
            applied[1:] += off * u[:-1]
            applied[:-1] += off * u[1:]
            slope = intensity - y + applied
            factors = factorized(prior + intensity, off)
            if np.abs(slope).max() <= TOLERANCE:
                break
            u -= solved(*factors, slope)
        value = joint(np, y, u, theta) + np.log(factors[0]).sum() / 2 - n * np.log(2 * np.pi) / 2
        if not gradient:
            return value
        diagonal, beside = inverse(*factors)
        by_u = diagonal * intensity / 2
        adjoint = solved(*factors, by_u)
        by_r = 2.0 * s * r * (1.0 - ends) * u  # derivative of the prior's product with u
        by_r[1:] -= s * u[:-1]
        by_r[:-1] -= s * u[1:]
        by_m = intensity.sum() - y.sum() + by_u.sum() - adjoint @ intensity
        by_s = (u @ applied - n) / 2 + (prior @ diagonal) / 2 + off @ beside - adjoint @ applied
        traces = s * r * ((1.0 - ends) @ diagonal) - s * beside.sum()
        by_r_in_all = u @ by_r / 2 + r / (1.0 - r * r) + traces - adjoint @ by_r
        return value, np.array([by_m, by_s, by_r_in_all])

    return run
