"""Backward passes of loops inside of loops, of a batch: kernels, memory that grows, launches."""

import numpy as np
import pytest
from tests.backends.cuda.counting_device import counts
from tests.backends.cuda.test_loop_kernels import agrees, programs
from wengert.backends import emulated_device

import wengert as wg
from wengert._engine.core import pytree

RNG = np.random.default_rng(4)
N = 36
X, P = RNG.normal(size=(N, 2)), RNG.uniform(0.1, 1.2, N)
TIMES = np.linspace(0.0, 1.0, 4)


def shrunk(x, p):
    """A loop with a condition in each step."""

    def step(i, s):
        return wg.while_loop(lambda u: np.sum(u * u) > 0.3, lambda u: 0.7 * np.sin(u) * p, s + 1.0)

    return wg.fori_loop(0, 5, step, x)


def counted(x, p):
    """A number of steps of each row, which differs between the steps."""

    def step(i, s):
        n = (np.floor(p * 3.0 + np.abs(s[0]))).astype(int)
        return wg.fori_loop(0, n, lambda j, u: np.sin(u) * p + 0.3 * s, s)

    return wg.fori_loop(0, 4, step, x)


def oscillator(x, p, method="RK45", **options):
    def slope(t, s):
        return np.stack([s[1], p * (1.0 - s[0] ** 2) * s[1] - s[0]])

    options = {"rtol": 1e-6, "t_eval": TIMES, "method": method, **options}
    return wg.scipy.integrate.solve_ivp(slope, (0.0, 1.0), x, **options).y[:, -1]


def stiff(x, p):
    return oscillator(x, p, "BDF", rtol=1e-4)


def ending(x, p):
    """A loop with a condition, in one with a condition."""

    def step(s):
        u = wg.while_loop(lambda u: u[0] > p, lambda u: 0.6 * u * np.cos(u), s[0] + p)
        return u, s[1] + 0.3 + 0.1 * np.tanh(u[1])

    return wg.while_loop(lambda s: s[1] < 1.0 + p, step, (x, 0.0))[0]


def of_rows(f, *argnums):
    """The gradient of each row."""
    return wg.vmap(wg.grad(lambda x, p: np.sum(np.sin(f(x, p))), argnums=argnums))


def of_sums(f, axes):
    """The gradient of a sum over rows."""

    def total(x, p):
        return np.sum(np.sin(wg.vmap(f, in_axes=axes)(x, p)))

    return wg.grad(total, argnums=(0, 1))


PROGRAMS = {
    "a condition": shrunk,
    "numbers of steps": counted,
    "solve_ivp": oscillator,
    "two conditions": ending,
}


def each_program():
    """Programs and kinds of gradients; most are slow."""
    quick = {("numbers of steps", "rows"), ("two conditions", "shared")}
    for name in PROGRAMS:
        for kind in ("rows", "sums", "shared"):
            marks = [] if (name, kind) in quick else [pytest.mark.slow]
            yield pytest.param(name, kind, marks=marks)


@pytest.mark.parametrize(("name", "kind"), list(each_program()))
def test_gradients_of_loops_inside_are_kernels(name, kind):
    f, p = PROGRAMS[name], 0.7 if kind == "shared" else P
    axes = (0, None if kind == "shared" else 0)
    run = of_rows(f, 0, 1) if kind == "rows" else of_sums(f, axes)
    loops, kernels = programs(run, X, p)
    assert loops == kernels == 2
    assert agrees(run, X, p, threads=7)


@pytest.mark.slow
def test_gradients_of_stiff_equations_are_kernels():
    for run, p in ((of_rows(stiff, 0, 1), P), (of_sums(stiff, (0, None)), 0.7)):
        loops, kernels = programs(run, X, p)
        assert loops == kernels == 2
        wanted = wg.jit(run, backend="interpret")(X, p)
        with emulated_device(threads=40, seed=3):
            got = wg.device_get(wg.jit(run, backend="cuda")(X, p))
        for a, b in zip(pytree.flatten(got)[0], pytree.flatten(wanted)[0], strict=True):
            assert np.allclose(a, b, rtol=1e-10, atol=1e-13)


@pytest.mark.slow
def test_the_gradient_of_solve_ivp_by_differences():
    with emulated_device():
        slopes = wg.device_get(wg.jit(of_rows(oscillator, 1), backend="cuda")(X, P))[0]
    h = 1e-5
    value = lambda p: np.sum(np.sin(wg.vmap(oscillator)(X, p)), axis=1)  # noqa: E731
    differences = (value(P + h) - value(P - h)) / (2.0 * h)
    # The step sizes of the solver depend on p as well, so values have jumps of the tolerance.
    exact = np.isclose(slopes, differences, rtol=1e-4, atol=1e-5)
    assert np.mean(exact) > 0.9


def test_the_number_of_launches_does_not_depend_on_the_number_of_steps():
    def steps(n):
        def f(x, p):
            def step(i, s):
                return wg.while_loop(lambda u: u[0] > 0.1, lambda u: np.sin(u) * p * 0.7, s + 1.0)

            return wg.fori_loop(0, n, step, x)

        return of_rows(f, 0)

    few, many = [counts(steps(n), X, P) for n in (3, 30)]
    assert few == many
    assert few.launches <= 5
    assert few.waits == 2  # whether the memory was enough, and whether an index was out of range


def test_memory_for_the_results_of_steps_grows():
    def f(x, p):
        def step(i, s):
            return wg.while_loop(
                lambda u: u[0] < 40.0 + 20.0 * i, lambda u: u + p * np.cosh(0.01 * u), s
            )

        return wg.fori_loop(0, 3, step, x)

    p = np.full(N, 0.9)
    run = of_rows(lambda x, p: np.exp(-0.01 * f(x, p)), 0, 1)
    first = counts(run, X, p, warm=False)
    later = counts(run, X, p)
    assert first.launches > later.launches
    assert agrees(run, X, p)


APART = {
    "rows go on": lambda i, k, s: np.where((i < k)[:, None], s * 1.1, s * 0.9),
    "one step more": lambda i, k, s: np.where((i < k + 1)[:, None], s * 1.1, s),
    "one step less": lambda i, k, s: np.where((i + 1 < k)[:, None], s * 1.1, s),
    "the last steps": lambda i, k, s: np.where((i >= np.max(k) - k)[:, None], np.sin(s), s),
    "of another row": lambda i, k, s: np.where((i < k[::-1])[:, None], s * 1.1, s),
    "kept": lambda i, k, s: np.where((i < k)[:, None], s * 1.1, s),
    "the number of all rows": lambda i, k, s: np.where((i < k)[:, None], s + 0.1 * np.max(k), s),
}


@pytest.mark.parametrize("name", APART)
def test_steps_after_the_last_one_of_a_row(name):
    """Loops that run as often as one row needs, which are not always those of rows."""

    def f(x):
        def step(j, s):
            k = (np.floor(np.abs(s[:, 0]) * 3.0)).astype(int)
            return wg.fori_loop(0, np.max(k), lambda i, u: APART[name](i, k, u), s) + 0.01 * j

        return wg.fori_loop(0, 3, step, x)

    assert programs(f, X)[1] == (name == "kept")
    assert agrees(f, X, threads=5)
