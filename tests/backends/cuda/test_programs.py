"""Whole programs on an emulated device: values and gradients are those of eager execution."""

import numpy as np
import pytest
from tests.backends.llvm.random_programs import Bundle, differing, is_differentiable
from wengert.backends import emulated_device

import wengert as wg
from wengert.errors import ShapeError


@pytest.mark.sample(1)
@pytest.mark.parametrize("seed", range(100, 124))
@pytest.mark.parametrize("kind", ["values", "gradient"])
def test_random_programs(seed, kind):
    bundle = Bundle(seed, named=seed % 3 == 2)
    if kind == "gradient" and not is_differentiable(bundle):
        pytest.skip("NumPy has no gradient")
    function = getattr(bundle, kind)
    graph = wg.trace(lambda *xs: function(*xs))(*bundle.specs).simplify()
    run = wg.computation(graph, backend="cuda")
    for world in bundle.worlds:
        with np.errstate(all="ignore"):
            wanted = function(*world)
        with emulated_device(threads=5, seed=seed):
            try:
                got = wg.device_get(run(*world))
            except ShapeError as error:  # assumed of the sizes that it was traced for
                assert "not valid for the sizes" in str(error)
                continue
        wanted = list(wanted) if isinstance(wanted, tuple | list) else [wanted]
        eps = bundle.eps if kind == "values" else bundle.coarse
        assert not differing(got, wanted, eps), str(bundle)


def rows(x, w):
    y = np.tanh(x @ w)
    y = y - np.max(y, axis=1, keepdims=True)
    p = np.exp(y) / np.sum(np.exp(y), axis=1, keepdims=True)
    return np.sum(p * y) + np.sum(np.sort(x, axis=0)[1:] ** 2)


def lorenz(x, w):
    def step(i, s):
        return s + 0.01 * np.stack([10.0 * (s[1] - s[0]), s[0] * (28.0 - s[2]), s[0] * s[1]])

    return np.sum(wg.fori_loop(0, 20, step, x[0, :3]) ** 2)


def branches(x, w):
    steps = wg.while_loop(
        lambda s: np.sum(s[0]) < 50.0, lambda s: (s[0] * 1.5, s[1] + 1), (x**2, 0)
    )
    return wg.cond(np.sum(x) > 0, lambda y: np.sum(np.sin(y)), lambda y: np.sum(np.cos(y)), x) + (
        np.sum(steps[0]) * 0.1
    )


def solved(x, w):
    a = x.T @ x + 2.0 * np.eye(4)
    return np.sum(np.linalg.solve(a, w) ** 2) + np.log(np.linalg.det(a))


def gathered(x, w):
    i = np.array([0, 2, 2, 5])
    return np.sum(x[i] ** 3) + np.sum(np.cumsum(x, axis=0)[3])


@pytest.mark.sample(3)
@pytest.mark.parametrize("function", [rows, lorenz, branches, solved, gathered])
def test_values_and_gradients(function):
    rng = np.random.default_rng(4)
    x, w = rng.normal(size=(6, 4)), rng.normal(size=(4, 3))
    both = wg.value_and_grad(function, argnums=0)
    wanted = both(x, w)
    with emulated_device():
        value, slope = wg.device_get(wg.jit(both, backend="cuda")(x, w))
    assert np.allclose(value, wanted[0], rtol=1e-12)
    assert np.allclose(slope, wanted[1], rtol=1e-11, atol=1e-12)


def test_results_do_not_depend_on_the_order_of_threads():
    x = np.random.default_rng(1).normal(size=(200, 7))
    f = wg.jit(
        lambda x: (np.sum(x), np.sum(x, axis=0), np.max(x, axis=1), np.exp(x).T @ x),
        backend="cuda",
    )
    found = []
    for seed in range(4):
        with emulated_device(threads=11, seed=seed):
            found.append(wg.device_get(f(x)))
    for other in found[1:]:
        assert all(np.array_equal(a, b) for a, b in zip(other, found[0], strict=True))


@pytest.mark.parametrize("threads", [1, 2, 64, 1000])
def test_any_number_of_threads(threads):
    x = np.random.default_rng(1).normal(size=(300, 3))
    f = lambda x: (np.sum(x, axis=0), np.prod(x[:, 0]), np.sum(x), np.min(x, axis=1), x.T + 1.0)  # noqa: E731
    with emulated_device(threads=threads):
        got = wg.device_get(wg.jit(f, backend="cuda")(x))
    for a, b in zip(got, f(x), strict=True):
        assert np.allclose(a, b, rtol=1e-13, atol=0)


def test_one_program_for_all_sizes():
    f = wg.trace(wg.grad(lambda x: np.sum(np.sin(x[1:]) * x[:-1])))(wg.spec("n"))
    run = wg.computation(f, backend="cuda")
    for n in (2, 5, 300):
        x = np.linspace(0.0, 1.0, n)
        with emulated_device():
            assert np.allclose(wg.device_get(run(x)), f(x), rtol=1e-14)
