"""Loops of a batch as one kernel, and loops whose rows depend on each other, which are not."""

import numpy as np
import pytest
from wengert.backends import emulated_device

import wengert as wg
from wengert._engine.backends.cuda import EmulatedDevice
from wengert._engine.backends.cuda.program import DeviceProgram
from wengert._engine.core import pytree
from wengert.errors import GuardError

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


def newton(a):
    def goes_on(s):
        return np.abs(s[0] ** 2 - a) > 1e-10

    def step(s):
        return s[0] - (s[0] ** 2 - a) / (2.0 * s[0]), s[1] + 1

    return wg.while_loop(goes_on, step, (1.0 + 0.0 * a, 0))


def halved(x, k):
    """A loop inside of a loop, a branch, and a store to a position of the row."""

    def step(i, s):
        s = wg.while_loop(lambda u: np.sum(u * u) > 4.0, lambda u: 0.5 * u, s + 1.0)
        s = wg.cond(s[0] > 1.0, lambda u: np.sin(u), lambda u: u * u, s)
        s = wg.cond(i % 2 == 0, lambda u: u * 1.1, lambda u: u, s)
        s = s * 1.0
        s[(k + i) % 3] = s[0] + i
        return wg.fori_loop(0, k, lambda j, u: u * 0.9 + 0.1 * j, s)

    return wg.fori_loop(0, 5, step, x)


def adaptive(y, p):
    def slope(t, s):
        return np.stack([s[1], p * (1.0 - s[0] ** 2) * s[1] - s[0]])

    times = np.linspace(0.0, 1.0, 4)
    return wg.scipy.integrate.solve_ivp(slope, (0.0, 1.0), y, t_eval=times, rtol=1e-6).y


def shared(f, argument):
    """The gradient with respect to an argument that all rows share."""

    def total(a, x):
        return np.sum(np.sin(wg.vmap(f, in_axes=(None, 0))(a, x)))

    return wg.grad(total, argnums=(0, 1)), argument


def network(w, x):
    def step(s, t):
        return np.tanh(np.sum(w * s, axis=1) + 0.1 * t), np.sum(s)

    s, sums = wg.scan(step, x, np.linspace(0.0, 1.0, 7))
    return np.sum(s * s) + np.sum(sums)


def programs(f, *args):
    """The numbers of loops of a compiled function, and of those that are kernels."""
    graph = wg.trace(f)(*args).simplify()
    loops = [n for n in graph.nodes if n.op.name in ("scan", "while")]
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
    "Newton's iteration": (wg.vmap(newton), np.abs(X[:, 0])),
    "its derivative": (wg.vmap(wg.grad(lambda a: newton(a)[0])), np.abs(X[:, 0])),
    "adaptive steps": (wg.vmap(adaptive), X[:, :2], np.abs(X[:, 2])),
    "loops inside": (wg.vmap(halved), X, np.arange(N) % 4),
    "shared numbers": (*shared(lambda r, x: lorenz(x, r), 28.0), X),
    "shared by while loops": (*shared(lambda r, x: newton(r * x)[0], 1.3), np.abs(X[:, 0])),
    "shared matrices": (*shared(network, SQUARE[:3, :3] * 9.0), X),
    "shared series": (
        wg.grad(lambda t, x: np.sum(np.cos(wg.vmap(garch, in_axes=(None, 0))(t, x)))),
        SERIES[0],
        COEFFICIENTS,
    ),
    "shared, in loops inside": (
        *shared(lambda r, x: wg.fori_loop(0, 3, lambda i, s: lorenz(s, r + i) * 0.1, x), 28.0),
        X,
    ),
}


@pytest.mark.parametrize("name", KERNELS)
def test_loops_of_a_batch_are_kernels(name):
    f, *args = KERNELS[name]
    loops, kernels = programs(f, *args)
    assert loops == kernels > 0
    assert agrees(f, *args)
    assert agrees(f, *args, threads=64)


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
    "ends together": lambda x: wg.while_loop(
        lambda s: np.any(np.abs(s) > 0.01), lambda s: s * 0.5, x
    ),
    "ends by a sum": lambda x: wg.while_loop(lambda s: np.sum(s * s) > 0.5, np.sin, x),
    "square of a sum": lambda x: wg.fori_loop(
        0, 5, lambda i, s: (s[0] * 0.9, s[1] + np.sum(s[0], axis=0) ** 2), (x, x[0] * 0.0)
    ),
    "a sum that rows read": lambda x: wg.fori_loop(
        0, 5, lambda i, s: (s[0] * 0.5 + s[1], s[1] + np.sum(s[0], axis=0)), (x, x[0] * 0.0)
    ),
    "each sum": lambda x: wg.scan(
        lambda s, t: (s * 0.9, t * np.sum(s, axis=0)), x, np.linspace(0.0, 1.0, 4)
    ),
    "a product over rows": lambda x: wg.fori_loop(
        0, 5, lambda i, s: (s[0] * 0.9, s[1] + np.prod(s[0], axis=0)), (x, x[0] * 0.0)
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


def test_sums_over_rows_do_not_depend_on_threads():
    f, r = shared(network, SQUARE[:3, :3] * 9.0)
    run, found = wg.jit(f, backend="cuda"), []
    for threads, seed in ((1, 0), (7, 1), (64, 2)):
        with emulated_device(threads=threads, seed=seed):
            found.append(wg.device_get(run(r, X)))
    for other in found[1:]:
        assert all(np.array_equal(a, b) for a, b in zip(other, found[0], strict=True))


def test_derivatives_by_differences():
    f, w = shared(network, SQUARE[:3, :3] * 9.0)
    total = lambda w: np.sum(np.sin(wg.vmap(network, in_axes=(None, 0))(w, X)))  # noqa: E731
    with emulated_device():
        slope = wg.device_get(wg.jit(f, backend="cuda")(w, X))[0]
    v, h = SQUARE[3:6, 3:6], 1e-5
    difference = (total(w + h * v) - total(w - h * v)) / (2.0 * h)
    assert np.isclose(np.sum(slope * v), difference, rtol=1e-8)


def test_a_loop_that_does_not_end():
    def f(x):
        return wg.while_loop(lambda s: s > 0.0, lambda s: s * 0.5, x, max_steps=20)

    run = wg.jit(wg.vmap(f), backend="cuda")
    x = np.full(N, -1.0)
    with emulated_device():
        assert np.array_equal(wg.device_get(run(x)), x)
        x[5] = 1.0
        with pytest.raises(GuardError, match="max_steps=20"):
            run(x)


def test_a_position_out_of_range_in_a_step():
    def f(x, k):
        def step(i, s):
            s = s * 1.0
            s[k] = 2.0
            return s

        return wg.fori_loop(0, 3, step, x)

    run = wg.jit(wg.vmap(f), backend="cuda")
    k = np.arange(N) % 6 - 3
    with emulated_device():
        assert np.array_equal(wg.device_get(run(X, k)), wg.vmap(f)(X, k))
        k[9] = 3
        with pytest.raises(IndexError, match="index 3 is out of bounds"):
            run(X, k)


def test_no_steps():
    run = wg.jit(wg.vmap(lambda a: newton(a)[0]), backend="cuda")
    ended = wg.jit(wg.vmap(wg.grad(lambda a: newton(a)[0])), backend="cuda")
    with emulated_device():
        assert wg.device_get(run(np.ones(N))).tolist() == [1.0] * N
        assert wg.device_get(ended(np.ones(N))).tolist() == [0.0] * N


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
