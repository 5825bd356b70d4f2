"""Loops of a batch as one kernel, and loops whose rows depend on each other, which are not."""

import numpy as np
import pytest
from wengert.backends import emulated_device

import wengert as wg
from wengert._engine.backends.cuda import EmulatedDevice
from wengert._engine.backends.cuda.program import DeviceProgram
from wengert._engine.core import pytree

RNG = np.random.default_rng(0)
N = 40
X, SQUARE = RNG.normal(size=(N, 3)), RNG.normal(size=(N, N)) * 0.1
SERIES, COEFFICIENTS = RNG.normal(size=(N, 25)), np.abs(RNG.normal(size=(N, 3)))


def lorenz(x, r=28.0):
    def step(i, s):
        slope = np.stack([10.0 * (s[1] - s[0]), s[0] * (r - s[2]) - s[1], s[0] * s[1] - s[2]])
        return s + 0.01 * (1.0 + 0.001 * i) * slope

    return wg.fori_loop(0, 51, step, x)


def garch(y, a):
    def step(h, r):
        h = a[0] + a[1] * r * r + a[2] * h
        return h, np.log(h) + r * r / h

    return np.sum(wg.scan(step, 0.1, y)[1])


def looked_up(x, table):
    def step(s, i):
        return s * 0.5 + table[i % 4] * np.sum(s), s[0]

    return wg.scan(step, x, np.arange(20))


def programs(f, *args):
    """The numbers of loops of a compiled function, and of those that are kernels."""
    graph = wg.trace(f)(*args).simplify()
    loops = [n for n in graph.nodes if n.op.name == "scan"]
    return len(loops), len(DeviceProgram(graph, EmulatedDevice())._loops)


def agrees(f, *args, threads=5):
    """Whether the results on a device are those of eager execution."""
    with emulated_device(threads=threads):
        got = wg.device_get(wg.jit(f, backend="cuda")(*args))
    pairs = zip(pytree.flatten(got)[0], pytree.flatten(f(*args))[0], strict=True)
    return all(
        np.shape(a) == np.shape(b) and np.allclose(a, b, rtol=1e-12, atol=1e-14) for a, b in pairs
    )


KERNELS = {
    "trajectories": (wg.vmap(lorenz), X),
    "single precision": (wg.vmap(lorenz), X.astype(np.float32).astype(np.float64)),
    "gradients": (wg.vmap(wg.grad(lambda x: np.sum(lorenz(x)))), X),
    "likelihoods": (wg.vmap(wg.value_and_grad(garch, argnums=(0, 1))), SERIES, COEFFICIENTS),
    "a table of all rows": (wg.vmap(looked_up, in_axes=(0, None)), X, X[:4, :1]),
    "backwards": (
        lambda x: wg.scan(lambda s, r: (s * 0.9 + r, s), np.zeros(N), x.T, reverse=True),
        SERIES,
    ),
}


@pytest.mark.parametrize("name", KERNELS)
def test_loops_of_a_batch_are_kernels(name):
    f, *args = KERNELS[name]
    loops, kernels = programs(f, *args)
    assert loops == kernels > 0
    assert agrees(f, *args)


APART = {
    "neighbors": lambda x: wg.fori_loop(0, 9, lambda i, s: np.roll(s, 1, axis=0) * 0.9, x),
    "sum over rows": lambda x: wg.fori_loop(0, 9, lambda i, s: s - 0.1 * np.mean(s, axis=0), x),
    "transposed": lambda x: wg.fori_loop(0, 9, lambda i, s: np.sin(s.T) + s, x[:, :1] * np.ones(N)),
    "gathered": lambda x: wg.fori_loop(0, 9, lambda i, s: s[::-1] * 0.5 + s, x),
    "computed rows": lambda x: wg.fori_loop(
        0, 9, lambda i, s: s[np.argsort(x[:, 0])] * 0.5 + 0.1 * s, x
    ),
    "one element": lambda x: wg.fori_loop(0, 9, lambda i, s: s * 0.5 + s[3], x),
    "sorted": lambda x: wg.fori_loop(0, 9, lambda i, s: np.sort(s, axis=0) * 0.5 + s, x),
    "largest": lambda x: wg.fori_loop(0, 9, lambda i, s: s / (1.0 + np.max(np.abs(s))), x),
    "shared": lambda x: wg.scan(
        lambda s, r: (s + np.sum(r) * x, s[0]), x, np.ones((5, N)) * x[:5, :1]
    ),
}


@pytest.mark.parametrize("name", APART)
def test_loops_with_rows_that_depend_on_each_other(name):
    assert agrees(APART[name], X)
    assert agrees(APART[name], X, threads=64)


def test_products_with_a_matrix_of_the_batch():
    def called(x, a):
        return wg.fori_loop(0, 6, lambda i, s: np.tanh(a @ s), x)

    def summed(x, a):
        def step(i, s):
            return np.tanh(np.sum(a * s[:, 0], axis=1))[:, None] + s

        return wg.fori_loop(0, 6, step, x)

    assert agrees(called, X, SQUARE)
    assert agrees(summed, X, SQUARE)


def test_gradients_with_respect_to_shared_parameters():
    f = wg.grad(lambda r, x: np.sum(wg.vmap(lorenz, in_axes=(0, None))(x, r)), argnums=(0, 1))
    assert agrees(f, 28.0, X)


@pytest.mark.parametrize("count", [0, 1, 2, 7])
def test_any_number_of_steps(count):
    f = lambda x, n: wg.fori_loop(0, n, lambda i, s: s * 1.5 + i, x)  # noqa: E731
    assert agrees(f, X, count)


def test_one_kernel_for_all_sizes():
    graph = wg.trace(wg.vmap(lorenz))(wg.spec(("n", 3))).simplify()
    assert len(DeviceProgram(graph, EmulatedDevice())._loops) == 1
    run = wg.computation(graph, backend="cuda")
    for n in (1, 33, 40):
        with emulated_device():
            assert np.allclose(wg.device_get(run(X[:n])), wg.vmap(lorenz)(X[:n]), rtol=1e-13)


def test_an_index_out_of_range_in_a_step():
    f = wg.jit(wg.vmap(lambda x, k: wg.fori_loop(0, 30, lambda i, s: s + x[k + i // 10], 0.0)),
               backend="cuda")  # fmt: skip
    k = np.zeros(N, int)
    with emulated_device():
        assert np.allclose(wg.device_get(f(X, k)), 10.0 * np.sum(X, axis=1))
        k[7] = 1
        with pytest.raises(IndexError, match="index 3 is out of bounds"):
            f(X, k)
