"""Exported sampling functions, losses and Fourier transforms, with their derivatives."""

import numpy as np
import pytest

import wengert as wg
import wengert.nn.functional as F
from wengert import nn
from wengert.errors import BackendError

from .running import exported
from .test_export import S, check

IMAGE = ("n", 2, 6, 6)
LABELS, SOME = np.array([0, 1, 1]), np.array([0, 1, -100])
MODES = ("nearest", "nearest-exact", "bilinear", "bicubic", "area")


def sampled(x, grid):
    return (
        F.grid_sample(x, grid),
        F.grid_sample(x, grid, "nearest", "border"),
        F.grid_sample(x, grid, "bicubic", "reflection", True),
    )


def warped(x, theta):
    return F.grid_sample(x, F.affine_grid(theta, (2, 2, 6, 6)))


def resized(x):
    smooth = [F.interpolate(x, (4, 3), mode=m, antialias=True) for m in ("bilinear", "bicubic")]
    return (*smooth, *[F.interpolate(x, (4, 9), mode=m) for m in MODES])


def rearranged(x):
    columns = F.unfold(x, 2, padding=1)
    return (F.channel_shuffle(x, 2), columns, F.fold(columns, 6, 2, padding=1))


def pooled(x):
    largest, where = F.max_pool2d(x, 2, return_indices=True)
    return F.local_response_norm(x, 2, 0.5), where, F.max_unpool2d(largest, where, 2)


def distances(x):
    return F.pdist(x), F.pdist(x, 1.0), F.pdist(x, 3.0)


def losses(x):
    return (
        F.cross_entropy(x, LABELS),
        F.nll_loss(x, LABELS, reduction="sum"),
        F.cross_entropy(x, SOME, ignore_index=-100),
    )


def rotated(x):
    return nn.RotaryEmbedding(8)(x)


def attended(q, k, v):
    mask = np.array([[True, False, False]] * 3)
    return (
        F.scaled_dot_product_attention(q, k, v, is_causal=True),
        F.scaled_dot_product_attention(q, k, v, mask),
    )


def waves(x, h):
    one, two = np.fft.rfft(x), np.fft.rfft(h, 8)
    whole = np.fft.fft(x, 6, axis=0, norm="forward")
    return (
        *(np.abs(one) ** 2, np.fft.irfft(one * np.conj(two) + one, 8), np.real(np.fft.fft(x, 10))),
        *(np.imag(np.fft.ifft(1j * one - one / 2)), np.imag(np.sum(one**3, axis=1))),
        *(np.fft.irfft(one / (two + 3.0), 7, norm="ortho"), np.imag(-one)),
        np.real(np.fft.ifft(whole, axis=0, norm="ortho")),
    )


def slopes_of_waves(x, h):
    return wg.grad(lambda x, h: sum(np.sum(np.sin(y)) for y in waves(0.3 * x, h)), (0, 1))(x, h)


CASES = {
    "sampled": (sampled, [IMAGE, ("n", 3, 2, 2)]),
    "warped": (warped, [(2, 2, 6, 6), (2, 2, 3)]),
    "resized": (resized, [IMAGE]),
    "rearranged": (rearranged, [IMAGE]),
    "pooled": (pooled, [IMAGE]),
    "distances": (distances, [(4, 3)]),
    "losses": (losses, [(3, 4)]),
    "rotated": (rotated, [("n", 5, 8)]),
    "attended": (attended, [("n", 3, 4)] * 3),
    "waves": (waves, [(4, 8), (8,)]),
    "slopes of waves": (slopes_of_waves, [(4, 8), (8,)]),
}


@pytest.mark.sample(5)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", CASES)
def test_exported_functions(name, dtype):
    function, shapes = CASES[name]
    check(function, [S(shape, dtype) for shape in shapes], dtype)


def test_derivatives_of_samples_are_exported():
    def slopes(x, grid):
        return wg.grad(lambda x, g: np.sum(np.sin(F.grid_sample(x, g))), (0, 1))(x, grid)

    check(slopes, [S((2, 1, 3, 4)), S((2, 2, 2, 2))], np.float64)


def test_complex_numbers_that_are_refused():
    for f, message in (
        (lambda x: np.real(np.exp(np.fft.rfft(x))), "exp of complex numbers has no counterpart"),
        (lambda x: np.real(np.fft.rfft(x) ** 2.5), "except by the integers 1 to 16"),
        (lambda x: np.fft.rfft(x), "a result has dtype complex128"),
    ):
        with pytest.raises(BackendError, match=message):
            exported(f, S(8))
    with pytest.raises(BackendError, match="an input has dtype complex64"):
        exported(np.real, S(8, np.complex64))
    with pytest.raises(BackendError, match="symbolic length"):
        exported(lambda x: np.real(np.fft.fft(x)), S("n"))
