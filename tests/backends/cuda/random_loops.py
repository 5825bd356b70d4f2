"""Random loops over a batch: steps of random arithmetic, with loops and branches inside.

Loops    a program, drawn from a seed, and its arguments
"""

import numpy as np

import wengert as wg

ROWS = 33
KINDS = (
    "plain", "inner", "branch", "position", "several", "inner while", "inner counted", "two inside",
)  # fmt: skip


class Loops:
    """A function of a state and a parameter of each row, a series, and a shared parameter."""

    def __init__(self, seed):
        rng = self._rng = np.random.default_rng(seed)
        self.size = int(rng.integers(1, 4))
        self.steps = int(rng.integers(1, 6))
        self.kind = ("fori", "scan", "while", "while", "counted")[int(rng.integers(5))]
        self.insides = [KINDS[int(rng.integers(len(KINDS)))] for _ in range(2)]
        self.numbers = rng.normal(size=24)
        self.batched = bool(rng.integers(2))  # whether the series differs between rows
        x = rng.normal(size=(ROWS, self.size))
        p = rng.uniform(0.2, 1.5, ROWS)
        series = rng.normal(size=(ROWS, self.steps) if self.batched else self.steps)
        self.args = x, p, series, rng.uniform(0.5, 1.5, 2)

    def _arithmetic(self, s, p, r, t, k):
        c = self.numbers[3 * k :]
        y = np.tanh(c[0] * s + p * r[0]) + 0.1 * c[1] * np.sum(s * s) / (1.0 + np.sum(s * s))
        return y + np.sin(r[1] * s[::-1] + 0.1 * t) * c[2]

    def _inside(self, s, p, r, t, which):
        kind = self.insides[which]
        if kind == "inner":
            return wg.fori_loop(
                0, 3, lambda j, u: 0.5 * self._arithmetic(u, p, r, t + j, which) + 0.3 * u, s
            )
        if kind == "inner while":
            return wg.while_loop(
                lambda u: np.sum(u * u) > 0.3 + 0.1 * p, lambda u: 0.6 * u * np.cos(r[0] * u), s
            )
        if kind == "inner counted":  # a number of steps of each row
            n = (np.floor(p * 2.5)).astype(int)
            return wg.fori_loop(
                0, n, lambda j, u: 0.4 * np.sin(u * r[1] + j) + 0.5 * s * np.cos(u), s
            )
        if kind == "two inside":
            ends = lambda w: np.sum(w * w) > 0.2 + 0.1 * p  # noqa: E731
            inner = lambda u: wg.while_loop(ends, lambda w: 0.5 * np.tanh(w * r[0]), u)  # noqa: E731
            return wg.fori_loop(0, 2, lambda j, u: inner(u + s), s)
        if kind == "branch":
            return wg.cond(
                s[0] > 0.1 * p,
                lambda u: self._arithmetic(u, p, r, t, which),
                lambda u: np.cos(u * r[1]) + p,
                s,
            )
        if kind == "position":
            k = (np.floor(np.abs(s[0]) * 7.0)).astype(int) % self.size
            s = s * 1.0
            s[k] = s[k] * r[0] + np.sin(t + p)
            return s
        if kind == "several":
            return wg.switch(
                int(self.numbers[0] * 3),
                [lambda u: u * r[0], np.sin, lambda u: np.exp(-u * u) * p],
                s,
            )
        return self._arithmetic(s, p, r, t, which)

    def _step(self, s, p, r, t):
        for which in range(2):
            s = 0.7 * self._inside(s, p, r, t, which) + 0.2 * s
        return s

    def row(self, x, p, series, r):
        """The value of one row."""
        if self.kind == "fori":
            return wg.fori_loop(0, self.steps, lambda i, s: self._step(s, p, r, i * 0.5), x), 0.0
        if self.kind == "counted":
            n = (np.floor(p * 3.0)).astype(int)
            return wg.fori_loop(0, n, lambda i, s: self._step(s, p, r, i * 0.5), x), 0.0
        if self.kind == "scan":

            def step(s, t):
                s = self._step(s, p, r, t)
                return s, np.sum(s) * t

            return wg.scan(step, x, series, reverse=bool(self.steps % 2))
        return wg.while_loop(
            lambda u: u[1] < 1.0 + p * 2.0,
            lambda u: (self._step(u[0], p, r, u[1]), u[1] + 0.4 + 0.1 * np.tanh(u[0][0])),
            (x, 0.0),
        )

    def values(self, x, p, series, r):
        """The values of all rows."""
        axes = (0, 0, 0 if self.batched else None, None)
        return wg.vmap(self.row, in_axes=axes)(x, p, series, r)

    def gradients(self, x, p, series, r):
        """The gradients of each row with respect to what is its own, and to the shared numbers."""

        def total(*args):
            one, other = self.row(*args)
            return np.sum(np.sin(one)) + np.sum(other * other)

        axes = (0, 0, 0 if self.batched else None, None)
        return wg.vmap(wg.grad(total, argnums=(0, 1, 2, 3)), in_axes=axes)(x, p, series, r)

    def gradient(self, x, p, series, r):
        """The gradient of a sum with respect to all arguments."""

        def total(*args):
            one, other = self.values(*args)
            return np.sum(np.sin(one)) + np.sum(other * other)

        return wg.grad(total, argnums=(0, 1, 2, 3))(x, p, series, r)
