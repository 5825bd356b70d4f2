"""Kernels of single operations: random bits, and writes to computed positions, as on the host."""

import numpy as np
import pytest
from wengert.backends import emulated_device

import wengert as wg
from wengert import random


def bits(f, *args, threads=5):
    """The results of a function on a device and on the host."""
    with emulated_device(threads=threads):
        got = wg.device_get(wg.jit(f, backend="cuda")(*map(np.array, args)))
    return got, wg.jit(f, backend="interpret")(*map(np.array, args))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("shape", [(), (1,), (3,), (7, 9), (1001,)])
def test_uniform_numbers_have_the_same_bits(dtype, shape, no_host_callbacks):
    f = lambda key: random.uniform(key, shape, dtype=dtype)  # noqa: E731
    got, wanted = bits(f, random.key(3))
    assert np.asarray(got).dtype == dtype
    assert np.array_equal(got, wanted)


def test_numbers_of_many_keys(no_host_callbacks):
    keys = random.split(random.key(5), 33)
    got, wanted = bits(wg.vmap(lambda key: random.uniform(key, (10,))), keys)
    assert np.array_equal(got, wanted)


def test_normal_numbers_of_a_stream_are_those_of_the_host():
    got, wanted = bits(lambda: random.Stream(1).normal(shape=(100,)))
    assert np.array_equal(got, wanted)


@pytest.mark.sample(4)
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.complex128, np.int64, np.int16])
@pytest.mark.parametrize("threads", [1, 64])
def test_repeated_positions_are_added_in_order(dtype, threads, no_host_callbacks):
    rng = np.random.default_rng(2)
    x = (rng.normal(size=(6, 5)) * 100).astype(dtype)
    v = (rng.normal(size=(40, 5)) * 100).astype(dtype)
    k = rng.integers(-6, 6, 40)

    def add(x, k, v):
        np.add.at(x, k, v)
        return x

    def put(x, k, v):
        x[k] = v
        return x

    def both(x, k, v):
        x[k, k % 5] += v[:, 0]
        return x

    for f in (add, put, both):
        got, wanted = bits(f, x, k, v, threads=threads)
        assert np.array_equal(got, wanted), f.__name__


def test_gradients_of_gathers(no_host_callbacks):
    rng = np.random.default_rng(2)
    x, k = rng.normal(size=(50, 3)), rng.integers(0, 50, 200)
    got, wanted = bits(wg.grad(lambda x, k: np.sum(np.sin(x[k]) ** 2)), x, k)
    assert np.allclose(got, wanted, rtol=1e-14)


def test_positions_out_of_range():
    def put(x, k):
        x[k] = 1.0
        return x

    f = wg.jit(put, backend="cuda")
    for bad in (6, -7):
        with emulated_device(), pytest.raises(IndexError, match=f"index {bad} is out of bounds"):
            f(np.zeros(6), np.array([0, bad]))
    with emulated_device():
        assert np.array_equal(wg.device_get(f(np.zeros(6), np.array([-6, 5]))), [1, 0, 0, 0, 0, 1])


def test_masks_and_empty_positions(no_host_callbacks):
    x = np.arange(6.0)
    f = wg.grad(lambda x, k: np.sum(x[k] ** 2))
    got, wanted = bits(f, x, np.zeros(0, int))
    assert np.array_equal(got, wanted)
    g = wg.trace(wg.grad(lambda x: np.sum(x[np.array([True, False] * 3)] ** 2)))(x)
    with emulated_device():
        assert np.array_equal(wg.device_get(wg.computation(g, backend="cuda")(x)), g(x))
