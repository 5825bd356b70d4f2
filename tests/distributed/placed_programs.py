"""Random programs whose nodes are placed on random processes."""

from __future__ import annotations

import contextlib

import numpy as np

import wengert as wg

COUNT = 24


def arguments_of(seed):
    rng = np.random.default_rng((11, seed))
    return 0.5 * rng.normal(size=(3, 3)), rng.normal(size=3), np.float64(rng.normal())


def random_program(seed, size):
    """A function of a matrix, a vector and a number, with operations in random scopes."""
    rng = np.random.default_rng(seed)
    lines = [
        (
            int(rng.integers(9)),
            tuple(int(k) for k in rng.integers(0, 3 + line, size=2)),
            int(rng.integers(size)) if rng.random() < 0.7 else None,
        )
        for line in range(COUNT)
    ]
    chosen = [int(k) for k in rng.integers(3, 3 + COUNT, size=2)]

    def program(a, b, c):
        values = [a, b, c]
        for kind, (i, j), device in lines:
            with contextlib.nullcontext() if device is None else wg.scope(device=device):
                values.append(_applied(kind, values[i], values[j]))
        return (*[np.sum(values[k]) for k in chosen], np.tanh(values[-1]))

    return program


def _applied(kind, x, y):
    if kind == 0:
        return np.sin(x) + np.cos(y)
    if kind == 1:
        return np.tanh(x * y)
    if kind == 2:
        return np.mean(x) * y
    if kind == 3:
        return np.exp(-0.1 * x * x) - y
    if kind == 4:
        return np.where(x > 0.1, y, 0.5 * x) if np.ndim(x) == np.ndim(y) else x + y
    if kind == 5:
        return np.tanh(x @ y) if np.ndim(x) == np.ndim(y) == 2 else x - y
    if kind == 6:
        return np.sum(np.sort(np.ravel(x))[:1]) * np.tanh(y)
    if kind == 7:
        return 0.3 * x if np.ndim(x) == 0 else np.maximum(x, np.flip(x, 0))
    return wg.fori_loop(0, 3, lambda k, z: np.sin(z) + 0.1 * k, x) * np.sign(np.sum(y))
