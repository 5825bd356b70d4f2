"""One program for all sizes where that can be, one for each shape where it cannot; never wrong."""

import numpy as np
import pytest

import wengert as wg
from wengert._engine.jit import compiled_program


def check(f, *shapes, programs=None, traces=None):
    """Calls with arrays of these shapes agree with the function itself."""
    j = wg.jit(f)
    gen = np.random.default_rng(0)
    for shape in shapes:
        args = [gen.normal(size=s) for s in shape]
        np.testing.assert_allclose(j(*args), f(*args), rtol=1e-13)
    info = j.cache_info()
    assert programs is None or info.programs == programs
    assert traces is None or info.traces == traces
    return j


def test_one_program_for_all_batches():
    f = lambda x, w: np.sum(np.tanh(x @ w), axis=1)  # noqa: E731
    sizes = (32, 7, 9, 1, 100, 2)
    check(f, *[((n, 3), (3, 2)) for n in sizes], programs=2, traces=2)


def test_equal_pairs_share_a_name():
    f = lambda x, y: x + y  # noqa: E731
    check(f, *[((n,), (n,)) for n in (3, 5, 8, 3, 1)], programs=2)


def test_lengths_that_are_equal_no_more():
    f = lambda x, y: np.sum(x) + np.sum(y)  # noqa: E731
    j = check(f, ((3,), (3,)), ((5,), (5,)), ((5,), (7,)), ((2,), (9,)))
    assert j.cache_info().traces == 3


def test_zero_lengths_are_compiled_for_themselves():
    f = lambda x: np.sum(x * 2.0, axis=0)  # noqa: E731
    check(f, ((3, 2),), ((0, 2),), ((5, 2),), ((0, 2),), ((6, 2),), programs=3)


def test_broadcasting_of_one():
    f = lambda x, y: x * y  # noqa: E731
    check(f, ((3,), (3,)), ((1,), (3,)), ((3,), (1,)), ((5,), (5,)), ((1,), (1,)), ((1,), (4,)))


def test_loops_over_rows():
    def f(x):
        total = x[0] * 1.0
        for i in range(1, x.shape[0]):
            total = total * x[i]
        return total

    check(f, *[((n,),) for n in (2, 4, 3, 4, 2)], programs=2)


def test_what_the_function_asks_of_a_length():
    def f(x):
        if x.shape[0] == 3:
            return np.sum(x)
        return np.prod(x)

    check(f, ((5,),), ((7,),), ((9,),), ((3,),), ((4,),))

    def g(x):
        return np.sum(x) if x.shape in ((2, 2), (3, 3)) else np.prod(x)

    check(g, ((4, 4),), ((5, 5),), ((5, 6),), ((3, 3),), ((2, 2),), ((2, 3),))

    def h(x, y):
        return np.sum(x) * np.sum(y) if len(x) == len(y) else np.sum(x) - np.sum(y)

    check(h, ((4,), (5,)), ((6,), (7,)), ((3,), (3,)), ((8,), (2,)))


def test_constants_of_fixed_length():
    k = np.arange(5.0)
    j = wg.jit(lambda x: x * k)
    np.testing.assert_array_equal(j(np.ones(5)), k)
    np.testing.assert_array_equal(j(np.ones(1)), k)
    with pytest.raises(ValueError):
        j(np.ones(4))
    np.testing.assert_array_equal(j(np.ones(5)), k)


def test_requirements():
    f = lambda x: x[3:]  # noqa: E731
    check(f, ((5,),), ((9,),), ((2,),), ((3,),), ((4,),))
    g = lambda x: np.diff(x, 2)  # noqa: E731
    check(g, ((5,),), ((9,),), ((2,),), ((1,),), ((4,),))
    reshaped = lambda x: np.reshape(x, (2, -1))  # noqa: E731
    check(reshaped, ((4,),), ((6,),), ((8,),), ((2,),))


def test_errors_for_some_sizes_stay_errors():
    j = wg.jit(lambda x: np.reshape(x, (2, -1)))
    j(np.ones(4))
    j(np.ones(6))
    with pytest.raises(ValueError):
        j(np.ones(5))
    np.testing.assert_array_equal(j(np.ones(8)), np.ones((2, 4)))


def test_gradients_of_all_sizes():
    loss = lambda w, x: np.mean(np.tanh(x @ w) ** 2)  # noqa: E731
    j = wg.jit(wg.grad(loss))
    w = np.array([0.5, -1.0])
    for n in (4, 8, 3, 1):
        x = np.arange(2.0 * n).reshape(n, 2)
        np.testing.assert_allclose(j(w, x), wg.grad(loss)(w, x), rtol=1e-12)
    assert j.cache_info().programs == 2
    compiled = wg.jit(loss)
    for n in (4, 8, 3, 1):  # the line's own rules, too
        x = np.arange(2.0 * n).reshape(n, 2)
        np.testing.assert_allclose(wg.grad(compiled)(w, x), wg.grad(loss)(w, x), rtol=1e-12)


@pytest.mark.sample(1)
def test_programs_for_one_shape_are_bounded():
    def f(x):
        return np.sum(x) * int(x.shape[0])  # an int of Python, so the length must be known

    j = wg.jit(f)
    for n in range(1, compiled_program.EXACT + 10):
        assert j(np.ones(n)) == n * n
    assert j.cache_info().programs == compiled_program.EXACT
    assert j(np.ones(1)) == 1.0


@pytest.mark.sample(7)
@pytest.mark.parametrize("seed", range(8))
def test_random_shapes(seed):
    gen = np.random.default_rng(seed)

    def f(x, y):
        s = np.sum(x, axis=1, keepdims=True) - np.mean(y)
        return np.concatenate([x * s, np.ones((2, x.shape[1]))]) / x.shape[0]

    j = wg.jit(f)
    for _ in range(12):
        n, m, k = gen.integers(0, 4, 3)
        x, y = gen.normal(size=(n, m)), gen.normal(size=k + 1)
        if n:
            np.testing.assert_allclose(j(x, y), f(x, y), rtol=1e-13)
