"""Resampling, sampling and rearranging functions: values and gradients of PyTorch, and errors.

The numbers in sampling_of_torch.json were written by sampling_cases.py with PyTorch 2.13.
"""

import json

import numpy as np
import pytest

import wengert as wg
import wengert.nn.functional as F
from wengert import errors, nn
from wengert.testing import check_grads

from .sampling_cases import CASES, IMAGE, POINTS, VALUES, VOLUME, upstream

WANTED = json.loads(VALUES.read_text())
CLOSE = {"rtol": 1e-10, "atol": 1e-11}


def floats(arrays):
    return tuple(k for k, a in enumerate(arrays) if a.dtype.kind == "f")


def weighed(name):
    f, *arrays = CASES[name]

    def total(*arrays):
        y = f(F, *arrays)
        return np.sum(y * upstream(np.shape(y))), y

    return wg.value_and_grad(total, floats(arrays), has_aux=True), arrays


def checked(name, value, slopes):
    want = WANTED[name]
    np.testing.assert_allclose(value, want["value"], **CLOSE, err_msg=name)
    for got, there in zip(slopes, want["gradients"], strict=True):
        np.testing.assert_allclose(got, there, **CLOSE, err_msg=name)


def test_values_and_gradients():
    assert list(WANTED) == list(CASES)
    for name in CASES:
        derived, arrays = weighed(name)
        (_, value), slopes = derived(*arrays)
        checked(name, value, slopes)


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", CASES)
def test_compiled_and_batched(name):
    """One native program without host callbacks; and a batch axis added by vmap."""
    derived, arrays = weighed(name)
    (_, value), slopes = wg.jit(derived, host_callbacks="forbid")(*arrays)
    checked(name, value, slopes)
    f = CASES[name][0]
    two = wg.vmap(lambda *a: f(F, *a))(*[np.stack([a, a]) for a in arrays])
    np.testing.assert_allclose(two, [WANTED[name]["value"]] * 2, **CLOSE)


def test_single_precision():
    for name, (f, *arrays) in CASES.items():
        y = f(F, *[a.astype(np.float32) if a.dtype.kind == "f" else a for a in arrays])
        assert y.dtype == np.float32, name
        np.testing.assert_allclose(y, WANTED[name]["value"], rtol=2e-4, atol=1e-4, err_msg=name)


@pytest.mark.sample(6)
@pytest.mark.parametrize("name", [n for n in CASES if "nearest" not in n and n != "pdist 0.0"])
def test_second_order(name):
    f, *arrays = CASES[name]
    where = floats(arrays)

    def total(*given):
        whole = list(arrays)
        for k, a in zip(where, given, strict=True):
            whole[k] = a
        return np.sum(np.sin(f(F, *whole)))

    check_grads(total, tuple(arrays[k] for k in where), order=2, entries=False)


def test_points_that_are_not_finite():
    """As in PyTorch."""
    x = np.arange(1.0, 5.0).reshape(1, 1, 2, 2)
    with np.errstate(invalid="ignore"):
        for bad in (np.nan, np.inf):
            point = np.full((1, 1, 1, 2), bad)
            assert np.isnan(F.grid_sample(x, point))
            assert F.grid_sample(x, point, "nearest") == 0.0
            assert F.grid_sample(x, point, "bilinear", "reflection") == 1.0
            assert F.grid_sample(x, point, padding_mode="border") == (1 if np.isnan(bad) else 4)
    x[0, 0, 0, 0] = np.nan  # an element that is not read
    assert F.grid_sample(x, np.ones((1, 1, 1, 2)), align_corners=True) == 4.0
    half = F.grid_sample(IMAGE.astype(np.float16), POINTS.astype(np.float16))
    assert half.dtype == np.float16


def test_nearest_inputs_of_scale_factors_and_sizes():
    """Rounding errors of a ratio do not move a position that is an integer."""
    line = np.arange(49.0)[None, None]
    for scale in (1.2, 1.2000000000000002, 0.6, 0.6000000000000001, 2.8):
        tenths = round(10 * scale)
        wanted = np.arange(int(40 * scale)) * 10 // tenths
        found = F.interpolate(line[..., :40], scale_factor=scale)
        np.testing.assert_array_equal(found[0, 0], wanted)
    for size in (3, 7, 49, 147):
        found = F.interpolate(line, size)[0, 0]
        np.testing.assert_array_equal(found, np.arange(size) * 49 // size)


def test_identity_grid_and_unpooled_maxima(rng):
    for x in (IMAGE, VOLUME):
        axes = x.ndim - 2
        maps = np.tile(np.eye(axes, axes + 1), (len(x), 1, 1))
        for align in (True, False):
            grid = F.affine_grid(maps, x.shape, align_corners=align)
            np.testing.assert_allclose(F.grid_sample(x, grid, align_corners=align), x, atol=1e-15)
    x = rng.normal(size=(2, 3, 4, 6))
    largest, where = nn.MaxPool2d(2, return_indices=True)(x)
    back = nn.MaxUnpool2d(2)(largest, where)
    assert np.sum(back != 0) == largest.size
    np.testing.assert_array_equal(back[back != 0], x[back != 0])
    np.testing.assert_array_equal(F.max_pool2d(back, 2), np.maximum(largest, 0))


def test_layers(rng):
    x = rng.normal(size=(1, 6, 4, 4))
    pairs = [
        (nn.UpsamplingNearest2d(2), F.interpolate(x, 2)),
        (nn.UpsamplingNearest2d(scale_factor=2), F.upsample(x, scale_factor=2)),
        (
            nn.UpsamplingBilinear2d((3, 5)),
            F.interpolate(x, (3, 5), mode="bilinear", align_corners=True),
        ),
        (nn.Upsample(6, mode="bicubic"), F.interpolate(x, 6, mode="bicubic")),
        (nn.ChannelShuffle(2), F.channel_shuffle(x, 2)),
        (nn.LocalResponseNorm(2, alpha=0.5), F.local_response_norm(x, 2, 0.5)),
        (nn.ZeroPad2d((1, 2, 0, 0)), F.pad(x, (1, 2))),
        (nn.ConstantPad2d(1, 2.0), F.pad(x, (1, 1, 1, 1), value=2.0)),
        (nn.ReflectionPad2d(1), F.pad(x, (1, 1, 1, 1), "reflect")),
        (nn.ReplicationPad2d(5), F.pad(x, (5,) * 4, "replicate")),
        (nn.CircularPad2d(2), F.pad(x, (2, 2, 2, 2), "circular")),
        (nn.LPPool2d(2, 2), F.lp_pool2d(x, 2, 2)),
        (nn.Unfold(2, stride=2), F.unfold(x, 2, stride=2)),
        (nn.Sequential(nn.Unfold(2), nn.Fold(4, 2)), F.fold(F.unfold(x, 2), 4, 2)),
    ]
    for layer, wanted in pairs:
        np.testing.assert_array_equal(layer(x), wanted)
    assert repr(nn.Fold(4, 2)) == (
        "Fold(output_size=4, kernel_size=2, dilation=1, padding=0, stride=1)"
    )


ONES, PAIR = np.ones((1, 1, 2, 2)), np.ones((1, 2, 2, 2))
WRONG = {
    "interpolate(4, nearest, aligned)": (
        lambda: F.interpolate(ONES, 4, align_corners=False), "align_corners=False is an option of"
    ),
    "antialias": (lambda: F.interpolate(ONES, 4, antialias=True), "option of the modes bilinear"),
    "recompute": (
        lambda: F.interpolate(ONES, 4, recompute_scale_factor=True), "needs scale_factor"
    ),
    "bicubic volume": (lambda: F.interpolate(VOLUME, 4, mode="bicubic"), "3 spatial axes"),
    "grid mode": (lambda: F.grid_sample(ONES, PAIR, "cubic"), "mode must be one of bilinear"),
    "grid padding": (
        lambda: F.grid_sample(ONES, PAIR, padding_mode="wrap"), "padding_mode must be one of"
    ),
    "grid coordinates": (lambda: F.grid_sample(ONES, np.ones((1, 2, 2, 3))), r"expected \(batch"),
    "grid batch": (lambda: F.grid_sample(ONES, np.ones((3, 2, 2, 2))), "1 images and 3 grids"),
    "grid dtype": (lambda: F.grid_sample(ONES, PAIR.astype(int)), "floating-point elements"),
    "grid bicubic": (
        lambda: F.grid_sample(np.ones((1, 1, 2, 2, 2)), np.ones((1, 2, 2, 2, 3)), "bicubic"),
        "two spatial axes",
    ),
    "pad": (lambda: F.pad(ONES, (1, 2, 3)), "must be pairs of integers"),
    "pad axes": (lambda: F.pad(np.ones(2), (1, 1, 1, 1)), "2 pairs of widths for the 1 axes"),
    "pad mode": (lambda: F.pad(ONES, (1, 1), "wrap"), "mode must be one of constant"),
    "pad value": (lambda: F.pad(ONES, (1, 1), "reflect", 2.0), "option of the mode constant"),
    "pad length": (lambda: F.pad(ONES, (2, 0), "reflect"), "must be at most 1"),
    "pad layer": (lambda: nn.ZeroPad2d((1, 2, 3)), "an integer or 4 integers"),
    "pad layer shape": (lambda: nn.ZeroPad2d(1)(np.ones(3)), "expected shape"),
    "power pool": (lambda: F.lp_pool1d(ONES[0], 0.0, 2), "norm_type must be above 0"),
    "theta": (lambda: F.affine_grid(np.ones((1, 3, 3)), (1, 1, 2, 2)), "theta of shape"),
    "theta batch": (lambda: F.affine_grid(np.ones((2, 2, 3)), (1, 1, 2, 2)), "2 matrices for 1"),
    "response": (lambda: F.local_response_norm(np.ones((2, 3)), 3), "spatial axes, got shape"),
    "response size": (lambda: F.local_response_norm(ONES, 0), "size must be at least 1"),
    "shuffle": (lambda: F.channel_shuffle(ONES, 2), "groups must divide the 1 channels"),
    "shuffle axes": (lambda: F.channel_shuffle(np.ones((2, 2)), 2), "at least one spatial"),
    "unfold": (lambda: F.unfold(ONES, 3), "shorter than its window"),
    "fold": (lambda: F.fold(np.ones((1, 5, 1)), 2, 2), "axis 1 must be a multiple of 4"),
    "pdist": (lambda: F.pdist(np.ones(3)), r"expected shape \(m, n\)"),
    "pdist p": (lambda: F.pdist(np.ones((3, 2)), -1.0), "p must not be negative"),
    "unpool shape": (
        lambda: F.max_unpool2d(ONES, np.zeros((1, 1, 2, 3), int), 2), "must have the same shape"
    ),
    "unpool dtype": (lambda: F.max_unpool2d(ONES, ONES, 2), "indices must be integers"),
    "unpool index": (
        lambda: F.max_unpool2d(ONES, np.full((1, 1, 2, 2), 16), 2), "position 16 is outside"
    ),
    "unpool negative": (
        lambda: F.max_unpool2d(ONES, np.full((1, 1, 2, 2), -1), 2), "position -1 is outside"
    ),
    "unpool size": (
        lambda: F.max_unpool2d(ONES, np.zeros((1, 1, 2, 2), int), 2, output_size=(7, 4)),
        "must differ from",
    ),
}  # fmt: skip


def test_errors():
    for make, message in WRONG.values():
        with pytest.raises((errors.ArgumentError, errors.OperandError), match=message):
            make()
