"""Random numbers on a device: the bits of the host, for any size and number of threads."""

import numpy as np
import pytest
from tests.backends.cuda.counting_device import Recording
from tests.backends.cuda.test_ptx import assemble, assembler
from wengert.backends import emulated_device

import wengert as wg
from wengert import random
from wengert._engine.backends.cuda import normal_kernels
from wengert._engine.backends.cuda.current_device import using
from wengert._engine.core.op import lookup

KEY, KEYS = np.array([3, 5], np.uint64), np.array([[k + 1, 7 * k] for k in range(40)], np.uint64)


def same(op, key, threads=5, **params):
    """Whether an operation has the same bits on a device and on the host."""
    params = {"number": 2, **params, "dtype": np.dtype(params["dtype"])}
    with emulated_device(threads=threads):
        got = wg.device_get(wg.jit(lambda k: lookup(op)(k, **params), backend="cuda")(key))
    wanted = np.asarray(lookup(op).run(key, **params))
    return got.shape == wanted.shape and got.dtype == wanted.dtype and np.array_equal(got, wanted)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("shape", [(), (1,), (257,), (300, 401)])
def test_normal_numbers(dtype, shape, no_host_callbacks):
    assert same("random_normal", KEY, shape=shape, dtype=dtype)
    assert same("random_normal", KEY, shape=shape, dtype=dtype, threads=1)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_normal_numbers_of_many_keys(dtype, no_host_callbacks):
    for shape in ((), (3,), (600,)):
        assert same("random_normal", KEYS, shape=shape, dtype=dtype)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_long_streams(seed, dtype, no_host_callbacks):
    key = np.array([seed, 11], np.uint64)
    assert same("random_normal", key, shape=(10**6,), dtype=dtype, threads=64)


def test_draws_of_many_words(monkeypatch):
    """What a chain does not hold is computed by the host."""
    method = normal_kernels.ziggurat_of(np.dtype(float))
    draw, asked = method.draw, []

    def long(words):
        asked.append(words)
        return draw(words)[0], 16

    monkeypatch.setattr(method, "draw", long)
    assert same("random_normal", KEY, shape=(10**5,), dtype=np.float64)
    assert asked
    monkeypatch.setattr(normal_kernels, "ziggurat_of", lambda dtype: None)
    assert same("random_normal", KEY, shape=(7,), dtype=np.float64)


def test_words_of_a_number():
    """The words that the method is given suffice, with a margin of ten standard deviations."""
    used = []
    for seed in range(20):
        bits = np.random.Philox(key=seed)
        np.random.Generator(bits).standard_normal(10**5)
        used.append(4 * int(bits.state["state"]["counter"][0]) / 1e5 - 1.0)
    assert abs(np.mean(used) - normal_kernels._EXTRA) < 5e-4
    assert 1e5 * np.var(used) < normal_kernels._VARIANCE * 2.0


RANGES = [(0, 1), (0, 10), (0, 100), (0, 127), (5, 70)]
WIDE = [(0, 1 << 32), (0, (1 << 31) + 1), (-(1 << 63), 1 << 63), (-4, (1 << 62) + 9)]


@pytest.mark.parametrize("dtype", ["i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1"])
def test_integers(dtype, no_host_callbacks):
    info = np.iinfo(dtype)
    ranges = [*RANGES, (int(info.min), int(info.max) + 1), (int(info.min) + 1, int(info.max))]
    for low, high in [*ranges, *(WIDE if dtype == "i8" else ())]:
        for key, shape in ((KEY, (401,)), (KEYS[:3], (7, 3))):
            params = {"shape": shape, "dtype": dtype, "low": low, "high": high}
            assert same("random_integers", key, **params), (low, high)


FUNCTIONS = {
    "split": lambda k: random.split(k, (2, 3)),
    "fold": lambda k: random.fold_in(k, np.arange(5)),
    "randint": lambda k: random.randint(k, (9, 11), np.array(-3), 2**61),
    "permutation": lambda k: random.permutation(k, 100),
    "choice": lambda k: random.choice(k, np.linspace(0.0, 1.0, 9), (20,)),
    "without replacement": lambda k: random.choice(k, 100, (20,), replace=False),
    "probabilities": lambda k: random.choice(k, 4, (20,), p=np.array([0.1, 0.2, 0.3, 0.4])),
    "categorical": lambda k: random.categorical(k, np.log(np.array([0.1, 0.6, 0.3]))),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_keys(name, no_host_callbacks):
    f = FUNCTIONS[name]
    for function, key in ((f, KEY), (wg.vmap(f), KEYS[:4])):
        with emulated_device(threads=5):
            got = wg.device_get(wg.jit(function, backend="cuda")(key))
        assert np.array_equal(got, wg.jit(function, backend="interpret")(key))


def test_a_stream_continues(no_host_callbacks):
    numbers = []
    for backend in ("cuda", "interpret"):
        stream = random.Stream(7)
        draw = wg.jit(
            lambda s=stream: (s.normal(shape=(50,)), s.integers(0, 9, (5,))), backend=backend
        )
        with emulated_device():
            numbers.append([wg.device_get(draw()) for _ in range(3)])
    for a, b in zip(*numbers, strict=True):
        assert all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))
    assert not np.array_equal(numbers[0][0][0], numbers[0][1][0])


@pytest.mark.slow
@pytest.mark.skipif(assembler() is None, reason="needs nvidia-cuda-nvcc-cu12")
def test_kernels_are_assembled(tmp_path):
    with using(Recording()) as device:
        for dtype in (np.dtype(np.float64), np.dtype(np.float32)):
            options = {"number": 0, "shape": (9000,), "dtype": dtype}
            wg.jit(lambda k, o=options: lookup("random_normal")(k, **o), backend="cuda")(KEY)
        for dtype, high in (("i8", 10), ("i8", 1 << 40), ("i4", 10), ("i2", 10), ("u1", 10)):
            options = {"number": 0, "shape": (9,), "dtype": np.dtype(dtype), "low": 0, "high": high}
            wg.jit(lambda k, o=options: lookup("random_integers")(k, **o), backend="cuda")(KEY)
        for f in FUNCTIONS.values():
            wg.jit(f, backend="cuda")(KEY)
    names = [k.name for k in device.kernels]
    own = [k for k in device.kernels if names.count(k.name) == 1]
    assert len(own) > 12
    assemble(own, tmp_path)
