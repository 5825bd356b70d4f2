"""Random numbers in loops by rows: simulations of a batch are one kernel, with the host's bits."""

import numpy as np
import pytest
from tests.backends.cuda.test_loop_kernels import programs
from wengert.backends import emulated_device

import wengert as wg
from wengert import random
from wengert._engine.core import pytree

N = 37
KEYS = np.array([[k + 1, 7 * k] for k in range(N)], np.uint64)
KEY = np.array([3, 5], np.uint64)
X = np.linspace(-1.0, 1.0, 3 * N).reshape(N, 3)


def noise(key, shape):
    """Numbers with mean 0 and variance 1."""
    return (random.uniform(key, shape) - 0.5) * np.sqrt(12.0)


def path(key, x):
    """Euler and Maruyama's method, with a key for each step."""

    def step(i, s):
        return s - 0.1 * s + 0.3 * random.normal(random.fold_in(key, i), (3,)) * np.sin(s)

    return wg.fori_loop(0, 9, step, x)


def walk(key, x):
    """Keys that are carried."""

    def step(s, t):
        key, x = s
        key, own = random.split(key)
        return (key, x + t * random.uniform(own, (3,), dtype=np.float32)), x[0]

    return wg.scan(step, (key, x), np.linspace(0.0, 1.0, 7))


def together(key, x):
    """Numbers of all rows from one key."""

    def step(i, s):
        own = noise(random.fold_in(key, i), x.shape)
        return s * 0.9 + own + random.uniform(random.fold_in(key, -i))

    return wg.fori_loop(0, 5, step, x)


def until(key, x):
    def step(s):
        key, x, n = s
        key, own = random.split(key)
        return key, x + random.exponential(own, (3,)), n + 1

    return wg.while_loop(lambda s: s[1][0] < 4.0, step, (key, x, 0))


def bits(key, x):
    def step(i, s):
        return s ^ random.bits(random.fold_in(key, i), (5,)) ^ np.arange(5, dtype=np.uint64)

    return wg.fori_loop(0, 4, step, np.zeros(5, np.uint64))


PROGRAMS = {
    "a key for each row and step": (wg.vmap(path), KEYS, X),
    "its gradient": (wg.vmap(wg.grad(lambda k, x: np.sum(path(k, x)), argnums=1)), KEYS, X),
    "carried keys": (wg.vmap(walk), KEYS, X),
    "one key": (together, KEY, X),
    "one key for each step of all rows": (wg.vmap(path, in_axes=(None, 0)), KEY, X),
    "until a condition": (wg.vmap(until), KEYS, X),
    "bits": (wg.vmap(bits), KEYS, X),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_simulations(name):
    f, *args = PROGRAMS[name]
    loops, kernels = programs(f, *args)
    assert loops == kernels > 0
    wanted = pytree.flatten(wg.jit(f, backend="interpret")(*args))[0]
    for threads in (1, 5):
        with emulated_device(threads=threads):
            got = pytree.flatten(wg.device_get(wg.jit(f, backend="cuda")(*args)))[0]
        for a, b in zip(got, wanted, strict=True):
            a, b = np.asarray(a), np.asarray(b)
            assert a.dtype == b.dtype
            if b.dtype.kind in "iu":
                assert np.array_equal(a, b)
            else:
                assert np.allclose(a, b, rtol=1e-12 if b.dtype == float else 1e-6, atol=1e-13)
