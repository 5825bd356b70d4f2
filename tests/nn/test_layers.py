"""Layers: embedding, dropout, shapes, resampling, initial values, files, errors."""

import io
import json

import numpy as np
import pytest
import safetensors.numpy

import wengert as wg
from wengert import errors, nn
from wengert.nn import functional as F
from wengert.nn import init
from wengert.testing import check_grads
from wengert.testing.op_checks import check_traced

# ---- embedding ---------------------------------------------------------------------------------


def test_embedding_adds_up_what_is_read_twice(rng):
    table, x = rng.normal(size=(5, 3)), np.array([[4, 0, 4], [1, 4, 0]])
    t = rng.normal(size=(2, 3, 3))
    by_hand = np.zeros((5, 3))
    np.add.at(by_hand, x, t)
    slope = wg.grad(lambda w: np.sum(F.embedding(x, w) * t))
    np.testing.assert_allclose(slope(table), by_hand)
    np.testing.assert_allclose(wg.jit(slope)(table), by_hand)
    by_hand[4] = 0
    quiet = wg.grad(lambda w: np.sum(F.embedding(x, w, padding_idx=-1) * t))
    np.testing.assert_allclose(quiet(table), by_hand)
    np.testing.assert_allclose(wg.jit(quiet)(table), by_hand)
    check_grads(lambda w: np.sum(np.sin(F.embedding(x[0], w))), (table,), order=2, entries=False)
    check_traced(lambda x, w: F.embedding(x, w, 1), [x, table])
    rows = wg.vmap(F.embedding, in_axes=(0, None))(x, table)
    np.testing.assert_array_equal(rows, table[x])


def test_embedding_as_a_layer(rng):
    layer = nn.Embedding(6, 4, padding_idx=2, rng=0)
    assert not layer.weight.numpy()[2].any() and layer.weight.numpy()[1].all()
    np.sum(layer(np.array([2, 1, 1]))).backward()
    np.testing.assert_array_equal(layer.weight.grad.numpy().sum(axis=1), [0, 8, 0, 0, 0, 0])
    fixed = nn.Embedding.from_pretrained(np.eye(3, dtype=np.float32))
    assert not fixed.weight.requires_grad and fixed.weight.dtype == np.float32
    assert layer(np.zeros((0,), int)).shape == (0, 4)
    graph = wg.trace(layer)(wg.spec("n", int))
    np.testing.assert_array_equal(graph(np.array([5, 0])), layer.weight.numpy()[[5, 0]])
    for wrong in (6, -1):
        with pytest.raises(errors.ArgumentError, match=rf"embedding.*number {wrong} of 6 rows"):
            graph(np.array([wrong]))


def test_one_hot():
    np.testing.assert_array_equal(F.one_hot([[1], [0]], 2), [[[0, 1]], [[1, 0]]])
    assert F.one_hot(np.array([0]), 3, dtype=np.float32).dtype == np.float32


# ---- dropout -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("layer", "shape", "together"),
    [
        (nn.Dropout, (400, 5), ()),
        (nn.Dropout1d, (400, 5, 3), (2,)),
        (nn.Dropout2d, (400, 5, 2, 2), (2, 3)),
        (nn.Dropout3d, (400, 5, 2, 1, 2), (2, 3, 4)),
    ],
)
def test_dropout_drops_whole_channels(layer, shape, together):
    model = layer(0.25, rng=wg.random.Stream(1))
    for y in map(np.asarray, (model(np.ones(shape)), wg.jit(model)(np.ones(shape)))):
        assert set(np.unique(y)) == {0.0, 1 / 0.75}
        assert np.all(np.min(y, axis=together) == np.max(y, axis=together))
        assert np.mean(y == 0) == pytest.approx(0.25, abs=0.04)
    assert np.any(model(np.ones(shape)) != y)
    assert np.all(model.eval()(np.ones(shape)) == 1)


def test_alpha_dropout_keeps_mean_and_variance(rng):
    x = rng.normal(size=200_000)
    y = nn.AlphaDropout(0.3, rng=0)(x)
    assert np.mean(y) == pytest.approx(0, abs=0.02) and np.std(y) == pytest.approx(1, abs=0.02)
    of_ones = F.alpha_dropout(np.ones(10_000), 0.3, rng=0)
    assert np.mean(of_ones == of_ones.min()) == pytest.approx(0.3, abs=0.02)
    np.testing.assert_array_equal(F.alpha_dropout(x, 1.0), 0 * x)


# ---- shapes ------------------------------------------------------------------------------------


def test_flatten_and_unflatten(rng):
    x = rng.normal(size=(2, 3, 4, 5))
    assert nn.Flatten()(x).shape == (2, 60) and nn.Flatten(0, -2)(x).shape == (24, 5)
    assert nn.Unflatten(-1, (5, 1))(x).shape == (2, 3, 4, 5, 1)
    assert nn.Unflatten(2, (2, -1))(x).shape == (2, 3, 2, 2, 5)
    graph = wg.trace(nn.Sequential(nn.Flatten(), nn.Unflatten(1, (3, 20))))(wg.spec(("n", 3, 4, 5)))
    assert graph(x).shape == (2, 3, 20)
    assert nn.Identity(3, any="thing")(x) is x


def test_resampling_to_order_two_and_in_graphs(rng):
    x = rng.normal(size=(1, 1, 2, 3))
    up = nn.Upsample(scale_factor=2, mode="bilinear")
    check_grads(lambda x: np.sum(np.sin(up(x))), (x,), order=2, entries=False)
    np.testing.assert_allclose(wg.jit(up)(x), up(x), rtol=1e-15)
    graph = wg.trace(up)(wg.spec(("n", "c", 2, 3)))
    np.testing.assert_allclose(graph(np.tile(x, (2, 3, 1, 1)))[1, 2], up(x)[0, 0], rtol=1e-15)
    with pytest.raises(errors.ShapeError, match="sizes are not known"):
        wg.trace(up)(wg.spec((1, 1, "h", 3)))
    np.testing.assert_array_equal(
        F.pixel_unshuffle(F.pixel_shuffle(np.tile(x, (1, 4, 1, 1)), 2), 2), np.tile(x, (1, 4, 1, 1))
    )


def test_pixels_are_shuffled_there_and_back(rng):
    x = rng.normal(size=(2, 8, 3, 2))
    y = nn.PixelShuffle(2)(x)
    assert y.shape == (2, 2, 6, 4) and y[1, 1, 3, 2] == x[1, 4 + 2, 1, 1]
    np.testing.assert_array_equal(nn.PixelUnshuffle(2)(y), x)


def test_cosine_and_distance_layers(rng):
    x, y = rng.normal(size=(2, 3, 4))
    cosine = np.sum(x * y, axis=1) / np.linalg.norm(x, axis=1) / np.linalg.norm(y, axis=1)
    np.testing.assert_allclose(nn.CosineSimilarity()(x, y), cosine)
    far = nn.PairwiseDistance(keepdims=True)(x, y)
    np.testing.assert_allclose(far[:, 0], np.linalg.norm(x - y, axis=1), rtol=1e-5)
    slope = wg.grad(lambda x: np.sum(nn.PairwiseDistance()(x, x)))(x)
    assert np.all(np.isfinite(slope))


# ---- initial values ----------------------------------------------------------------------------


def test_initial_values_have_their_moments():
    shape = (60, 50, 2, 2)
    for made, std in (
        (init.xavier_normal(shape, 0, gain=2.0), 2.0 * np.sqrt(2 / (200 + 240))),
        (init.xavier_uniform(shape, 0), np.sqrt(2 / (200 + 240))),
        (init.kaiming_normal(shape, 0), np.sqrt(2 / 200)),
        (init.normal(shape, 0.3, 0), 0.3),
        (
            init.kaiming_uniform_(np.zeros(shape), mode="fan_out", nonlinearity="relu", rng=0),
            np.sqrt(2 / 240),
        ),
        (init.kaiming_normal_(np.zeros(shape), a=0.5, rng=0), np.sqrt(2 / 1.25 / 200)),
        (init.xavier_normal_(np.zeros(shape), rng=0), np.sqrt(2 / 440)),
        (init.uniform_(np.zeros(shape), -1.0, 1.0, rng=0), np.sqrt(1 / 3)),
    ):
        assert made.std() == pytest.approx(std, rel=0.02) and abs(made.mean()) < 0.02 * std * 2
    assert init.normal_(np.zeros(5000), 3.0, 0.1, rng=0).mean() == pytest.approx(3.0, abs=0.01)


def test_truncated_gaussians():
    cut = init.trunc_normal((20_000,), 0.5, 2.0, -1.0, 1.0, rng=0)
    assert cut.min() >= -1 and cut.max() <= 1
    far = init.trunc_normal((20_000,), 0.0, 1.0, 9.0, 10.0, rng=0, dtype=np.float32)
    assert far.min() >= 9 and far.dtype == np.float32
    assert far.mean() == pytest.approx(9.1088, abs=0.005)  # phi(9) / Phi(-9): DLMF 7.12
    with pytest.raises(errors.ArgumentError, match="a must be less than b"):
        init.trunc_normal((2,), a=1.0, b=1.0)


def test_orthogonal_sparse_dirac_and_constants():
    for shape in ((4, 7), (7, 4), (4, 2, 3)):
        q = init.orthogonal(shape, 0, gain=2.0).reshape(shape[0], -1)
        square = q @ q.T if q.shape[0] <= q.shape[1] else q.T @ q
        np.testing.assert_allclose(square, 4.0 * np.eye(len(square)), atol=1e-13)
    thin = init.sparse((10, 6), 0.25, rng=0)
    np.testing.assert_array_equal(np.sum(thin == 0, axis=0), 3)
    x = np.random.default_rng(0).normal(size=(2, 4, 5))
    kernel = init.dirac_(np.zeros((4, 2, 3)), groups=2)
    passed = F.conv1d(x, kernel, padding=1, groups=2)
    np.testing.assert_allclose(passed, x, atol=1e-15)
    p = nn.Parameter(np.zeros((2, 3), np.float32))
    assert init.eye_(p) is p and p.dtype == np.float32 and p.is_leaf and p.requires_grad
    np.testing.assert_array_equal(p.numpy(), np.eye(2, 3))
    assert init.ones_(np.zeros(2)).all() and not init.zeros_(np.ones(2)).any()
    np.testing.assert_array_equal(init.constant_(np.zeros(2), 0.5), 0.5)
    np.testing.assert_array_equal(init.constant((2,), 3.0), [3.0, 3.0])
    assert init.ones((2,)).all() and not init.zeros((2,)).any()
    assert init.calculate_gain("tanh") == 5 / 3 and init.calculate_gain("conv2d") == 1
    assert init.calculate_gain("leaky_relu", 1.0) == 1 and init.calculate_gain("selu") == 0.75
    one, two = (init.orthogonal_(nn.Parameter(np.zeros((3, 3))), rng=5).numpy() for _ in "ab")
    np.testing.assert_array_equal(one, two)
    assert init.sparse_(np.ones((4, 4)), 1.0).any() == 0
    assert (
        init.trunc_normal_(np.zeros(9), rng=1).any()
        and init.xavier_uniform_(np.zeros((2, 2))).any()
    )


# ---- files -------------------------------------------------------------------------------------


def test_weights_as_safetensors(tmp_path):
    model = nn.Sequential(nn.Linear(3, 2, rng=0, dtype=np.float32), nn.BatchNorm1d(2))
    path = tmp_path / "model.safetensors"
    nn.save_safetensors(model, path, {"format": "pt", "author": "ö"})
    theirs = safetensors.numpy.load_file(path)
    ours = nn.load_safetensors(path)
    for name, value in model.state_dict().items():
        for read in (theirs, ours):
            assert read[name].dtype == value.dtype
            np.testing.assert_array_equal(read[name], value)
    assert wg.keep.inspect(path).metadata == {"format": "pt", "author": "ö"}
    safetensors.numpy.save_file(theirs, path)
    twin = nn.Sequential(nn.Linear(3, 2, rng=1, dtype=np.float32), nn.BatchNorm1d(2))
    twin.load_state_dict(nn.load_safetensors(path))
    np.testing.assert_array_equal(twin[0].weight.numpy(), model[0].weight.numpy())
    wg.save(model.state_dict(), path)  # wengert.save writes safetensors files, too
    assert nn.load_safetensors(path).keys() >= {"0.weight", "1.running_mean"}


def test_bfloat16_is_read_as_single_precision():
    words = {"a": {"dtype": "BF16", "shape": [2, 2], "data_offsets": [0, 8]}}
    header = json.dumps(words).encode()
    values = np.array([[1.5, -2.25], [3.0e38, 0.0]], np.float32)
    halves = (values.view(np.uint32) >> 16).astype("<u2")
    data = len(header).to_bytes(8, "little") + header + halves.tobytes()
    read = nn.load_safetensors(io.BytesIO(data))["a"]
    np.testing.assert_array_equal(read, (halves.astype(np.uint32) << 16).view(np.float32))
    np.testing.assert_allclose(read, values, rtol=2**-8)
    assert str(wg.keep.inspect(io.BytesIO(data)).arrays["a"]) == "float32[2,2]"


def test_files_that_are_refused(tmp_path):
    path = tmp_path / "model.safetensors"
    nn.save_safetensors({"a": np.ones(3)}, path)
    before = path.read_bytes()
    path.write_bytes(before[:-1])
    with pytest.raises(errors.FileError, match=r"model\.safetensors: 24 bytes of data"):
        nn.load_safetensors(path)
    for wrong, words in (
        ({"a": np.ones(2) * 1j}, "a has dtype complex128"),
        ({"__metadata__": np.ones(2)}, "not a valid name"),
        (np.ones(2), "got ndarray"),
    ):
        with pytest.raises(errors.WengertError, match=words):
            nn.save_safetensors(wrong, path)
    with pytest.raises(errors.ArgumentError, match="metadata must map strings"):
        nn.save_safetensors({}, path, {"epoch": 3})
    assert path.read_bytes() == before[:-1]


# ---- errors ------------------------------------------------------------------------------------

REFUSED = [
    (
        lambda: nn.BatchNorm2d(3)(np.ones((2, 4, 5, 5))),
        r"BatchNorm2d\(3,.*\(2, 4, 5, 5\).*\(batch, 3, height",
    ),
    (
        lambda: nn.BatchNorm1d(3)(np.ones((1, 3))),
        r"shape \(1, 3\): .* 1 value per channel",
    ),
    (
        lambda: nn.BatchNorm1d(0),
        "BatchNorm1d: num_features must be .*at least 1, got 0",
    ),
    (lambda: nn.Linear(-1, 3), "Linear: in_features must be .*got -1"),
    (lambda: nn.Linear(3, 2.5), "Linear: out_features must be .*got 2.5"),
    (lambda: nn.Bilinear(3, "4", 5), "Bilinear: in2_features must be .*got '4'"),
    (lambda: nn.Embedding(-2, 3), "Embedding: num_embeddings must be .*got -2"),
    (lambda: nn.LSTM("3", 4), "LSTM: input_size must be .*got '3'"),
    (lambda: nn.GRU(3, 4, num_layers=0), "GRU: num_layers must be .*got 0"),
    (lambda: nn.LayerNorm("ab"), r"LayerNorm: normalized_shape must be integers.*got \('ab',\)"),
    (lambda: nn.RMSNorm((2, -1)), r"RMSNorm: normalized_shape must be integers.*got \(2, -1\)"),
    (lambda: nn.Linear(2, 3).load_state_dict(None), "Linear: expected .*got None"),
    (lambda: nn.InstanceNorm1d(3)(np.ones((2, 4, 5))), r"\(2, 4, 5\).*\(batch, 3, length\)"),
    (lambda: nn.InstanceNorm1d(3)(np.ones(3)), r"shape \(3,\)"),
    (lambda: nn.InstanceNorm2d(3)(np.ones((1, 3, 1, 1))), "1 value per channel"),
    (lambda: nn.GroupNorm(3, 4), "multiple of num_groups"),
    (lambda: nn.GroupNorm(2, 4)(np.ones((2, 3))), r"shape \(2, 3\).*\(batch, 4"),
    (lambda: nn.LayerNorm((2, 3))(np.ones((4, 3))), r"shape \(4, 3\).*end with \(2, 3\)"),
    (lambda: nn.LayerNorm((2, 3))(np.ones(3)), r"shape \(3,\)"),
    (lambda: nn.RMSNorm(4)(np.ones((4, 3))), r"end with \(4,\)"),
    (lambda: F.layer_norm(np.ones(3), 4), r"layer_norm over \(4,\).*\(3,\)"),
    (
        lambda: F.batch_norm(np.ones((4, 3)), weight=np.ones(4)),
        r"3 channels, got shape \(4,\)",
    ),
    (lambda: F.batch_norm(np.ones(4)), "channels on axis 1"),
    (lambda: F.group_norm(np.ones((4, 3)), 2), "cannot be divided into 2 groups"),
    (lambda: F.normalize(np.ones((1, 2)), eps=0.0), "eps must be positive, got 0.0"),
    (lambda: nn.Embedding(3, 2)(np.array([3])), "rows are from 3 to 3, but there are 3"),
    (lambda: nn.Embedding(3, 2)(np.array([1.0])), "indices of rows must be integers, got float64"),
    (lambda: nn.Embedding(3, 2, padding_idx=3), "padding_idx=3 is out of range"),
    (
        lambda: F.embedding(np.array([0]), np.ones(3)),
        r"\(count, size\), got \(3,\)",
    ),
    (lambda: F.embedding(np.array([0]), np.ones((3, 1)), 3), "padding_idx=3"),
    (lambda: nn.Embedding.from_pretrained(np.ones(3)), r"\(count, size\), got \(3,\)"),
    (lambda: F.one_hot(np.array([4]), 3), "classes are from 4"),
    (lambda: nn.Bilinear(2, 3, 1)(np.ones(2), np.ones(2)), "lengths 2 and 3"),
    (lambda: nn.Flatten(3)(np.ones((2, 3))), "no axis 3"),
    (lambda: nn.Flatten(1, 0)(np.ones((2, 3))), "axis 1 is after axis 0"),
    (lambda: nn.Unflatten(1, (2, 2))(np.ones((2, 3))), "length 3 cannot be split"),
    (lambda: nn.Unflatten(5, (2, 2))(np.ones((2, 3))), "no axis 5"),
    (lambda: nn.Upsample(), "exactly one of the two"),
    (
        lambda: F.interpolate(np.ones((1, 1, 2)), size=4, mode="cubic"),
        "nearest.*got 'cubic'",
    ),
    (lambda: F.interpolate(np.ones((1, 1, 2)), size=4, mode="bilinear"), "1 spatial axes"),
    (lambda: F.interpolate(np.ones((1, 1, 2)), size=0), r"at least 1, got \[0\]"),
    (lambda: F.interpolate(np.ones((1, 1, 2)), size=(2, 2)), "2 sizes for 1 spatial axes"),
    (lambda: F.pixel_shuffle(np.ones((3, 2, 2)), 2), "multiple of 4"),
    (lambda: F.pixel_unshuffle(np.ones((1, 3, 2)), 2), "multiples of 2"),
    (lambda: nn.Dropout2d(1.5), r"Dropout2d with p=1.5"),
    (lambda: F.dropout2d(np.ones(3)), r"dropout2d: expected .*got \(3,\)"),
    (lambda: F.alpha_dropout(np.ones(3), -1.0), "p=-1.0"),
    (lambda: init.calculate_gain("sine"), "must be one of linear.*got 'sine'"),
    (lambda: init.kaiming_uniform_(np.ones((2, 2)), mode="fan"), "mode must be .*got 'fan'"),
    (lambda: init.orthogonal((3,)), "at least 2 axes"),
    (lambda: init.eye((3,)), "shape of a matrix"),
    (lambda: init.dirac((3, 3)), "weights of a convolution"),
    (lambda: init.sparse((3, 3), 2.0), "sparsity=2.0"),
]


@pytest.mark.parametrize("case", range(len(REFUSED)))
def test_refusals(case):
    call, words = REFUSED[case]
    with pytest.raises(errors.WengertError, match=rf"{words}.*test_layers\.py"):
        call()
