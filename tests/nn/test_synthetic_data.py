"""Synthetic data sets: their geometry, shapes, seeds and errors."""

import numpy as np
import pytest

import wengert as wg
from wengert.data import synthetic
from wengert.errors import ArgumentError

FUNCTIONS = {name: getattr(synthetic, name) for name in synthetic.__all__}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_shapes_seeds_and_dtypes(name):
    make = FUNCTIONS[name]
    x, y = make(41, rng=3)[:2]
    assert len(x) == 41 and x.ndim == 2 and y.shape == (41,) and x.dtype == float
    assert y.dtype.kind in "if"
    again = make(41, rng=np.random.default_rng(3))
    np.testing.assert_array_equal(x, again[0])
    np.testing.assert_array_equal(y, again[1])
    assert np.any(make(41, rng=4)[0] != x)
    key = wg.random.key(5)
    np.testing.assert_array_equal(make(8, rng=key)[0], make(8, rng=key)[0])
    single = make(5, rng=0, dtype=np.float32)
    assert all(a.dtype == np.float32 for a in single if a.dtype.kind == "f")
    assert np.any(np.diff(y) < 0)  # in random order
    with pytest.raises(ArgumentError, match=f"{name}: n_samples must be an integer"):
        make(0, rng=0)


def test_classes():
    x, y = synthetic.make_moons(200, rng=0)
    centers = np.where(y[:, None] == 0, [0.0, 0.0], [1.0, 0.5])
    np.testing.assert_allclose(np.hypot(*(x - centers).T), 1.0)
    assert np.all(((x - centers)[:, 1] >= 0) == (y == 0)) and np.sum(y) == 100
    x, y = synthetic.make_circles(101, factor=0.3, rng=0)
    np.testing.assert_allclose(np.hypot(*x.T), np.where(y == 1, 0.3, 1.0))
    x, y = synthetic.make_spirals(300, classes=3, turns=1.5, rng=0)
    radius, angle = np.hypot(*x.T), np.arctan2(x[:, 1], x[:, 0])
    turn = (angle / (2 * np.pi) - 1.5 * radius - y / 3) % 1.0
    np.testing.assert_allclose(np.minimum(turn, 1 - turn), 0.0, atol=1e-12)
    assert np.bincount(y).tolist() == [100, 100, 100]
    x, y = synthetic.make_checkerboard(500, squares=3, rng=0)
    np.testing.assert_array_equal(y, (np.floor(3 * x[:, 0]) + np.floor(3 * x[:, 1])) % 2)
    x, y = synthetic.make_blobs(3000, 4, centers=3, cluster_std=[0.5, 1.0, 2.0], rng=0)
    spread = [x[y == k].std(axis=0).mean() for k in range(3)]
    np.testing.assert_allclose(spread, [0.5, 1.0, 2.0], rtol=0.05)


def test_values_and_surfaces():
    x, y, coefficients = synthetic.make_regression(50, 6, n_informative=3, noise=0.0, rng=1)
    np.testing.assert_allclose(y, x @ coefficients)
    assert np.sum(coefficients != 0) == 3
    x, y = synthetic.make_friedman(2000, noise=0.5, rng=0)
    exact = 10 * np.sin(np.pi * x[:, 0] * x[:, 1]) + 20 * (x[:, 2] - 0.5) ** 2
    rest = y - (exact + 10 * x[:, 3] + 5 * x[:, 4])
    assert rest.std() == pytest.approx(0.5, rel=0.1) and x.shape == (2000, 10)
    x, y = synthetic.make_sine(periods=2.0, rng=0)
    np.testing.assert_allclose(y, np.sin(2 * np.pi * x[:, 0]))
    x, t = synthetic.make_s_curve(rng=0)
    np.testing.assert_allclose(x[:, 0] ** 2 + (x[:, 2] + np.sign(t)) ** 2, 1.0)
    x, t = synthetic.make_swiss_roll(rng=0)
    np.testing.assert_allclose(np.hypot(x[:, 0], x[:, 2]), t)
    noisy = synthetic.make_swiss_roll(2000, noise=0.2, rng=0)
    off = np.hypot(noisy[0][:, 0], noisy[0][:, 2]) - noisy[1]
    assert off.std() == pytest.approx(0.2, rel=0.1)


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: synthetic.make_moons(9, noise=-1.0), "noise must not be negative"),
        (lambda: synthetic.make_circles(9, factor=1.0), "factor must be from 0"),
        (lambda: synthetic.make_spirals(9, classes=0), "classes must be at least 1"),
        (lambda: synthetic.make_blobs(9, cluster_std=[1.0, 2.0]), "one for each class"),
        (lambda: synthetic.make_checkerboard(9, squares=0), "squares must be at least 1"),
        (lambda: synthetic.make_regression(9, 2, n_informative=3), "from 0 to the number"),
        (lambda: synthetic.make_friedman(9, 4), "at least 5"),
        (lambda: synthetic.make_moons(9, rng="x"), "rng must be an integer"),
    ],
)
def test_errors(make, message):
    with pytest.raises(ArgumentError, match=message):
        make()
