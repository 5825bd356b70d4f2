"""Convolution and pooling on a device: values and derivatives are those of the interpreter."""

import numpy as np
import pytest
from wengert.backends import emulated_device

import wengert as wg
from wengert._engine.backends.cuda import convolutions
from wengert.nn import functional as F

pytestmark = pytest.mark.usefixtures("no_host_callbacks")
RNG = np.random.default_rng(0)


def agree(f, *args, threads=7, rtol=1e-12):
    """A function and its vjp agree with eager execution."""

    def both(*xs):
        y, pull = wg.vjp(f, *xs)
        return y, pull(np.cos(y) if y.dtype.kind != "c" else y)

    wanted = both(*args)
    with emulated_device(threads=threads):
        found = wg.device_get(wg.jit(both, backend="cuda")(*args))
    for got, want in zip(wg.tree.leaves(found), wg.tree.leaves(wanted), strict=True):
        assert got.dtype == want.dtype
        assert got.shape == want.shape
        scale = np.max(np.abs(want), initial=1.0)
        assert np.allclose(got, want, rtol=0, atol=rtol * scale)


CONVOLUTIONS = {
    "a line": ((3, 2, 9), (4, 2, 3), {}),
    "stride and padding": ((2, 3, 8, 7), (4, 3, 3, 2), {"stride": (2, 3), "padding": (2, 1)}),
    "dilation": ((2, 2, 9, 9), (2, 2, 3, 3), {"dilation": (2, 3), "padding": 3}),
    "groups": ((2, 6, 5, 5), (4, 3, 3, 3), {"groups": 2}),
    "each channel": ((2, 4, 6, 6), (4, 1, 3, 3), {"groups": 4, "padding": "same"}),
    "one tap": ((3, 4, 5, 5), (2, 4, 1, 1), {}),
    "one tap, stride": ((3, 4, 5, 5), (2, 4, 1, 1), {"stride": 2}),
    "volumes": ((1, 2, 4, 5, 3), (2, 2, 2, 3, 2), {"stride": (1, 2, 1)}),
    "no samples": ((0, 2, 6), (3, 2, 3), {}),
}


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolutions(name):
    shape, kernel, options = CONVOLUTIONS[name]
    x, w = RNG.normal(size=shape), RNG.normal(size=kernel)
    agree(lambda x, w: getattr(F, f"conv{len(shape) - 2}d")(x, w, **options), x, w)


@pytest.mark.parametrize("options", [{}, {"stride": 2, "padding": 1, "output_padding": 1}])
def test_transposed_convolutions(options):
    x, w = RNG.normal(size=(2, 3, 5, 4)), RNG.normal(size=(3, 2, 3, 3))
    agree(lambda x, w: F.conv_transpose2d(x, w, **options), x, w)


@pytest.mark.parametrize(
    ("dtype", "rtol"), [(np.float32, 1e-5), (np.complex128, 1e-12), (np.float16, 1e-2)]
)
def test_convolutions_of_dtypes(dtype, rtol):
    x, w = RNG.normal(size=(2, 3, 7)).astype(dtype), RNG.normal(size=(4, 3, 3)).astype(dtype)
    if dtype == np.complex128:
        x, w = x * (1 + 2j), w * (2 - 1j)
    agree(lambda x, w: F.conv1d(x, w, padding=1), x, w, rtol=rtol)


def test_samples_in_several_parts(monkeypatch):
    monkeypatch.setattr(convolutions, "_MOST_BYTES", 4000)
    x, w = RNG.normal(size=(7, 2, 6, 6)), RNG.normal(size=(3, 2, 3, 3))
    agree(lambda x, w: F.conv2d(x, w, padding=1), x, w)


POOLINGS = {
    "largest": lambda x: F.max_pool2d(x, 2),
    "largest, overlapping": lambda x: F.max_pool2d(x, 3, stride=1, padding=1),
    "largest, dilated": lambda x: F.max_pool2d(x, 2, stride=2, dilation=2, padding=1),
    "mean": lambda x: F.avg_pool2d(x, 2),
    "mean, overlapping": lambda x: F.avg_pool2d(x, (3, 2), stride=(1, 2), padding=1),
    "of a line": lambda x: F.max_pool1d(x[0], 3, stride=2),
    "norm": lambda x: F.lp_pool2d(np.abs(x) + 1.0, 2.0, 2),
    "adaptive": lambda x: F.adaptive_avg_pool2d(x, 2),
}


@pytest.mark.parametrize("name", POOLINGS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_poolings(name, dtype):
    x = RNG.normal(size=(2, 3, 8, 6)).astype(dtype)
    agree(POOLINGS[name], x, rtol=1e-12 if dtype == np.float64 else 1e-5)


def test_equal_elements_infinities_and_nan():
    x = np.array([1.0, 1.0, -np.inf, -np.inf, np.nan, 3.0, np.inf, np.nan, np.nan, 2.0, 2.0, 5.0])
    x = np.stack([x, x[::-1]])[:, None]
    for options in ({"kernel_size": 2}, {"kernel_size": 3, "stride": 1, "padding": 1}):

        def both(x, options=options):
            y, places = F.max_pool1d(x, **options, return_indices=True)
            pull = wg.vjp(lambda x: F.max_pool1d(x, **options), x)[1]
            ahead = wg.jvp(
                lambda x: F.max_pool1d(x, **options), (x,), (np.arange(24.0).reshape(2, 1, 12),)
            )
            return y, places, pull(np.ones(y.shape)), ahead[1]

        wanted = both(x)
        with emulated_device():
            found = wg.device_get(wg.jit(both, backend="cuda")(x))
        for got, want in zip(found, wanted, strict=True):
            assert np.array_equal(got, want, equal_nan=True)


def test_gradients_do_not_depend_on_the_order_of_threads():
    x, w = RNG.normal(size=(2, 3, 9, 9)), RNG.normal(size=(4, 3, 3, 3))
    f = wg.jit(
        wg.grad(lambda x, w: np.sum(F.max_pool2d(F.conv2d(x, w), 3, stride=1) ** 2), (0, 1)),
        backend="cuda",
    )
    found = []
    for seed in range(3):
        with emulated_device(threads=11, seed=seed):
            found.append(wg.device_get(f(x, w)))
    for other in found[1:]:
        assert all(np.array_equal(a, b) for a, b in zip(other, found[0], strict=True))


def test_a_batch_of_convolutions():
    x, w = RNG.normal(size=(3, 2, 2, 6)), RNG.normal(size=(3, 2, 2, 3))
    agree(wg.vmap(F.conv1d), x, w)
    agree(lambda x, w: wg.vmap(lambda w: F.conv1d(x[0], w))(w), x, w)
