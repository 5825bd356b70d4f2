"""Encoders and transforms: inverses, constant columns, seeds, gradients, errors."""

import numpy as np
import pytest

import wengert as wg
from wengert import errors
from wengert.data import DataLoader, TensorDataset, transforms
from wengert.data.encoders import Encoder, MinMax, OneHot, Standard
from wengert.data.transforms import (
    AsFloat,
    CenterCrop,
    Compose,
    Flatten,
    GaussianNoise,
    Normalize,
    RandomApply,
    RandomCrop,
    RandomErasing,
    RandomHorizontalFlip,
    RandomVerticalFlip,
)


@pytest.mark.parametrize("dtype", ["float64", "float32", "int16", "bool"])
@pytest.mark.parametrize("make", [Standard, MinMax, lambda: MinMax((-2.0, 3.0))])
def test_inverse_transform_recovers_columns(rng, make, dtype):
    x = (rng.normal(size=(50, 4)) * [1, 10, 100, 0] + [0, 5, -70, 3]).astype(dtype)
    encoder = make()
    z = encoder.fit_transform(x)
    assert z.dtype == ("float32" if dtype == "float32" else "float64") and encoder(x) is not None
    rows, moving = z.astype(float), np.ptp(x.astype(float), axis=0) > 0
    tol = 1e-5 if dtype == "float32" else 1e-12
    if make is Standard:
        np.testing.assert_allclose(rows[:, moving].mean(axis=0), 0.0, atol=10 * tol)
        np.testing.assert_allclose(rows[:, moving].std(axis=0), 1.0, rtol=tol)
        assert not rows[:, ~moving].any()
    else:
        low, high = encoder.feature_range
        np.testing.assert_allclose(rows[:, moving].min(axis=0), low, atol=10 * tol)
        np.testing.assert_allclose(rows[:, moving].max(axis=0), high, rtol=10 * tol)
        assert (rows[:, ~moving] == low).all()
    back = encoder.inverse_transform(z)
    np.testing.assert_allclose(back, x.astype(float), rtol=10 * tol, atol=100 * tol)
    np.testing.assert_array_equal(back[:, ~moving], x[:, ~moving].astype(z.dtype))


@pytest.mark.parametrize("value", [0.1, -1e300, 1e-310, 7])
def test_constant_columns_are_recovered_exactly(value):
    x = np.full((7, 2), value)
    for encoder in (Standard(), MinMax()):
        z = encoder.fit_transform(x)
        assert np.array_equal(z, np.zeros((7, 2)))
        assert np.array_equal(encoder.inverse_transform(z), x.astype(float))


def test_extreme_columns_keep_their_precision():
    x = np.array([[1e200, 1e-200], [3e200, 3e-200]])
    scaler = Standard().fit(x)
    np.testing.assert_allclose(scaler.scale_, [1e200, 1e-200], rtol=1e-14)
    np.testing.assert_allclose(scaler.transform(x), [[-1, -1], [1, 1]], rtol=1e-14)
    with pytest.raises(errors.ArgumentError, match="overflows float64"):
        MinMax().fit(np.array([[-1.7e308], [1.7e308]]))
    small = MinMax().fit(np.array([[-128], [127]], np.int8))
    assert small.scale_ == [255.0]


def test_scalers_agree_with_scikit_learn(rng):
    preprocessing = pytest.importorskip("sklearn.preprocessing", reason="needs the extra `demo`")
    x = rng.normal(3.0, [1.0, 7.0, 0.0], size=(30, 3))
    for mine, theirs in (
        (Standard(), preprocessing.StandardScaler()),
        (MinMax((2.0, 5.0)), preprocessing.MinMaxScaler((2.0, 5.0))),
    ):
        np.testing.assert_allclose(mine.fit_transform(x), theirs.fit_transform(x), rtol=1e-12)
    words = np.array([["a", "x"], ["c", "y"], ["b", "x"]])
    theirs = preprocessing.OneHotEncoder(sparse_output=False)
    np.testing.assert_array_equal(OneHot().fit_transform(words), theirs.fit_transform(words))


def test_vectors_and_more_axes():
    line = Standard().fit(np.array([1.0, 3.0]))
    np.testing.assert_array_equal(line.transform([1.0, 3.0, 5.0]), [-1.0, 1.0, 3.0])
    cube = MinMax().fit(np.arange(24.0).reshape(2, 3, 4))
    assert cube.transform(np.zeros((5, 4))).shape == (5, 4)
    assert "4 columns" in repr(cube) and repr(Standard()) == "Standard(not fitted)"


def test_scalers_are_differentiable():
    scaler = Standard().fit(np.array([[0.0], [4.0]]))
    slope = wg.grad(lambda x: np.sum(scaler.transform(x) ** 2))(np.array([[6.0]]))
    np.testing.assert_allclose(slope, [[2 * 2.0 / 2.0]])
    back = wg.grad(lambda z: np.sum(scaler.inverse_transform(z)))(np.array([[6.0]]))
    np.testing.assert_allclose(back, [[2.0]])


@pytest.mark.parametrize("labels", [[3, 1, 3], ["b", "a", "b"], [True, False, True], [0.5, 0, 1]])
def test_inverse_transform_recovers_labels(labels):
    encoder = OneHot(np.float32)
    z = encoder.fit_transform(labels)
    assert z.dtype == np.float32 and np.array_equal(z.sum(axis=1), np.ones(3))
    np.testing.assert_array_equal(encoder.inverse_transform(z), labels)
    np.testing.assert_array_equal(encoder.inverse_transform(0.1 + 0.5 * z), labels)


def test_several_columns_of_categories():
    x = np.array([["a", "x"], ["b", "x"]], object)
    encoder = OneHot()
    np.testing.assert_array_equal(encoder.fit_transform(x), [[1, 0, 1], [0, 1, 1]])
    np.testing.assert_array_equal(encoder.inverse_transform([[0, 1, 1]]), [["b", "x"]])
    assert repr(encoder) == "OneHot([2, 1] categories)" and repr(OneHot()) == "OneHot(not fitted)"
    ignoring = OneHot(unknown="ignore").fit([1, 2])
    np.testing.assert_array_equal(ignoring.transform([2, 9]), [[0, 1], [0, 0]])
    ignoring.fit(x)
    np.testing.assert_array_equal(ignoring.inverse_transform([[0, 1, 1]]), [["b", "x"]])


PICTURE = np.arange(2 * 4 * 5, dtype=np.uint8).reshape(2, 4, 5)


def test_deterministic_transforms():
    np.testing.assert_array_equal(CenterCrop(2)(PICTURE), PICTURE[:, 1:3, 1:3])
    np.testing.assert_array_equal(CenterCrop((2, 1), (0, 1))(PICTURE), PICTURE[:, 1:2])
    assert Flatten()(PICTURE).shape == (40,)
    unit = AsFloat()(PICTURE)
    assert unit.dtype == np.float32 and unit.max() == np.float32(39) / np.float32(255)
    assert AsFloat("float64")(np.array([2.5])).tolist() == [2.5]
    normal = Normalize([1.0, 2.0], [2.0, 4.0])
    z = normal(PICTURE.astype(float))
    np.testing.assert_allclose(z[1], (PICTURE[1] - 2.0) / 4.0)
    np.testing.assert_allclose(normal.inverse(z), PICTURE)
    assert Normalize(0.0, 1.0)(PICTURE).dtype == np.float32
    assert "Normalize(mean=" in repr(Compose([normal])) and not Compose([normal]).random


def test_random_transforms_depend_on_the_seed_only():
    crop = RandomCrop((2, 3), padding=1, fill=99)
    assert np.array_equal(crop(PICTURE, 5), crop(PICTURE, np.random.default_rng(5)))
    key = np.asarray(wg.random.key(3))
    assert np.array_equal(crop(PICTURE, key), crop(PICTURE, key))
    places = {crop(PICTURE, seed).tobytes() for seed in range(300)}
    assert len(places) == 25  # a 2 x 3 window has 5 x 5 positions in 6 x 7
    parts = np.lib.stride_tricks.sliding_window_view(PICTURE[0], (2, 3)).reshape(-1, 2, 3)
    whole = RandomCrop((2, 3))(PICTURE, 1)[0]
    assert any(np.array_equal(whole, part) for part in parts)


def test_flips_erasing_noise_and_random_apply():
    np.testing.assert_array_equal(RandomHorizontalFlip(1.0)(PICTURE, 0), PICTURE[..., ::-1])
    np.testing.assert_array_equal(RandomVerticalFlip(1.0)(PICTURE, 0), PICTURE[:, ::-1])
    flip = RandomHorizontalFlip(0.25)
    share = np.mean([flip(PICTURE, k)[0, 0, 0] == 4 for k in range(400)])
    assert abs(share - 0.25) < 0.08
    erased = RandomErasing(2, p=1.0, fill=200)(PICTURE, 1)
    hole = (erased == 200).all(axis=0)
    assert 1 <= hole.sum() <= 4 and np.array_equal(erased[:, ~hole], PICTURE[:, ~hole])
    assert np.array_equal(RandomErasing(2, p=0.0)(PICTURE, 1), PICTURE)
    noisy = GaussianNoise(0.5)(np.zeros(4000, np.float32), 0)
    assert noisy.dtype == np.float32 and abs(noisy.std() - 0.5) < 0.03
    assert RandomApply(Flatten(), 1.0)(PICTURE, 0).shape == (40,)
    assert RandomApply(flip, 0.0)(PICTURE, 0) is PICTURE
    assert RandomApply(RandomVerticalFlip(1.0), 1.0)(PICTURE, 0)[0, 0, 0] == 15


def test_images_of_a_loader_depend_on_its_seed_only():
    pictures = np.arange(10 * 36.0).reshape(10, 1, 6, 6)
    change = Compose([RandomCrop(4), RandomHorizontalFlip(), GaussianNoise(0.1)])
    data = TensorDataset(pictures, np.arange(10)).map(change, field=0)

    def seen(seed, **options):
        loader = DataLoader(data, 4, shuffle=True, rng=seed, **options)
        return [np.concatenate([x for x, _ in loader]) for _ in range(2)]

    first, second = seen(0)
    for again in (seen(0), seen(0, prefetch=2)):
        assert np.array_equal(first, again[0]) and np.array_equal(second, again[1])
    assert not np.array_equal(first, seen(1)[0])
    assert np.array_equal(data[3][0], data[3][0]) and np.array_equal(data[-1][0], data[9][0])
    assert not np.array_equal(np.sort(first.ravel()), np.sort(second.ravel()))


@pytest.mark.parametrize(
    ("act", "error", "message"),
    [
        (lambda: Standard().transform([1.0]), errors.StructureError, "fit"),
        (lambda: OneHot().inverse_transform([[1.0]]), errors.StructureError, "fit"),
        (lambda: Standard().fit([[1.0, np.nan]]), errors.ArgumentError, "column 1"),
        (lambda: Standard().fit(["a"]), errors.DtypeError, "real numbers"),
        (lambda: MinMax().fit(np.zeros((0, 3))), errors.ShapeError, "no samples"),
        (lambda: MinMax((1, 1)), errors.ArgumentError, "feature_range"),
        (lambda: Standard().fit(np.eye(3)).transform(np.eye(2)), errors.ShapeError, "3 columns"),
        (lambda: OneHot().fit([1, 2]).transform([3]), errors.ArgumentError, "3.* in column 0"),
        (lambda: OneHot().fit([1, 2]).transform(["a"]), errors.DtypeError, "<U1"),
        (lambda: OneHot().fit(["a"]).transform([1]), errors.DtypeError, "int64"),
        (lambda: OneHot().fit(np.array([1, "a"], object)), errors.DtypeError, "one type"),
        (lambda: OneHot().fit([1.0, np.nan]), errors.ArgumentError, "NaN cannot be a category"),
        (lambda: OneHot().fit([]), errors.ShapeError, "no samples"),
        (lambda: OneHot().fit(np.zeros((1, 1, 1))), errors.ShapeError, "shape"),
        (lambda: OneHot().fit([1, 2]).transform([[1, 2]]), errors.ShapeError, "1 columns"),
        (lambda: OneHot(unknown="x"), errors.ArgumentError, "unknown='x'"),
        (
            lambda: OneHot().fit([1, 2]).inverse_transform([[0.5, 0.5]]),
            errors.ArgumentError,
            "vector 0",
        ),
        (
            lambda: OneHot().fit([1, 2]).inverse_transform([[1, 0, 0]]),
            errors.ShapeError,
            r"\(n, 2\)",
        ),
        (lambda: Encoder().fit(1), errors.StructureError, "not define fit"),
        (lambda: Encoder().transform(1), errors.StructureError, "not define transform"),
        (lambda: Encoder().inverse_transform(1), errors.StructureError, "not define inverse"),
        (lambda: Normalize(0.0, 0.0), errors.ArgumentError, "above 0"),
        (lambda: Normalize([1.0] * 3, 1.0)(PICTURE), errors.ShapeError, "3 channels"),
        (lambda: Normalize([1.0], 1.0)(np.ones(2)), errors.ShapeError, "no axis -3"),
        (lambda: RandomCrop(6)(PICTURE), errors.ShapeError, "smaller"),
        (lambda: RandomCrop(0), errors.ArgumentError, "size=0"),
        (lambda: CenterCrop(1)(np.ones(3)), errors.ShapeError, "no axes"),
        (lambda: RandomHorizontalFlip(1.5), errors.ArgumentError, "p=1.5"),
        (lambda: RandomErasing(0), errors.ArgumentError, "size=0"),
        (lambda: GaussianNoise(-1.0), errors.ArgumentError, "std=-1.0"),
        (lambda: transforms.RandomCrop(2)(PICTURE, "x"), errors.ArgumentError, "rng='x'"),
    ],
)
def test_errors(act, error, message):
    with pytest.raises(error, match=message):
        act()
