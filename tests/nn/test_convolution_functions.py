"""Convolution and pooling functions: PyTorch's and SciPy's values, derivatives, batches, graphs.

convolutions_of_torch.json has, for each case, the sum of waves * y**2 and the products of its
gradients with other waves, computed with PyTorch 2.13 in float64.
"""

import json
from pathlib import Path

import numpy as np
import pytest
import scipy.signal

import wengert as wg
import wengert.nn.functional as F
from wengert import errors
from wengert.testing import check_grads

STORED = json.loads((Path(__file__).parent / "convolutions_of_torch.json").read_text())
NAMES = [f"{k}-{case['function']}" for k, case in enumerate(STORED)]


def waves(shape, k):
    count = int(np.prod(shape))
    return np.sin(1.0 + k + 0.7 * np.arange(count) ** 1.1).reshape(shape)


def prepared(case):
    """The loss of a case as a function, and its operands."""
    function = getattr(F, case["function"])
    options = {k: tuple(v) if isinstance(v, list) else v for k, v in case["options"].items()}

    def loss(*operands):
        y = function(*operands, **options)
        return np.sum(waves(case["shape"], 9) * y * y)

    operands = [waves(shape, k) for k, shape in enumerate(case["shapes"])]
    return loss, operands, tuple(range(len(operands)))


def compare(case, value, gradients, rtol=1e-11):
    along = [np.sum(g * waves(g.shape, 5 + k)) for k, g in enumerate(gradients)]
    np.testing.assert_allclose(value, case["loss"], rtol=rtol, atol=1e-12)
    np.testing.assert_allclose(along, case["gradients"], rtol=rtol, atol=1e-11)


@pytest.mark.parametrize("case", STORED, ids=NAMES)
def test_values_and_gradients_are_those_of_torch(case):
    loss, operands, argnums = prepared(case)
    compare(case, *wg.value_and_grad(loss, argnums)(*operands))


@pytest.mark.sample(3)
@pytest.mark.parametrize("k", [3, 7, 12, 17, 21])
def test_compiled_they_are_the_same(k):
    loss, operands, argnums = prepared(STORED[k])
    compare(STORED[k], *wg.jit(wg.value_and_grad(loss, argnums))(*operands))


@pytest.mark.slow
@pytest.mark.parametrize("case", STORED, ids=NAMES)
def test_all_are_the_same_compiled(case):
    loss, operands, argnums = prepared(case)
    compare(case, *wg.jit(wg.value_and_grad(loss, argnums))(*operands))


@pytest.mark.parametrize("mode", ["valid", "same"])
def test_one_channel_is_scipys_correlation(rng, mode):
    x, w = rng.normal(size=(7, 9)), rng.normal(size=(3, 5))
    y = F.conv2d(x[None, None], w[None, None], padding=mode)
    np.testing.assert_allclose(y[0, 0], scipy.signal.correlate(x, w, mode), rtol=1e-12)


def test_the_transposed_one_is_the_transpose(rng):
    x, w = rng.normal(size=(2, 3, 7, 8)), rng.normal(size=(4, 3, 3, 2))
    y = F.conv2d(x, w, stride=2, padding=1)
    t = rng.normal(size=y.shape)
    back = F.conv_transpose2d(t, w, stride=2, padding=1, output_padding=(0, 0))
    _, pull = wg.vjp(lambda x: F.conv2d(x, w, stride=2, padding=1), x)
    found = pull(t)[0]
    shared = tuple(slice(min(a, b)) for a, b in zip(back.shape, found.shape, strict=True))
    np.testing.assert_allclose(found[shared], back[shared], rtol=1e-12, atol=1e-12)


def test_gradients_to_order_two(rng):
    x, w = rng.normal(size=(1, 2, 3, 2)), rng.normal(size=(2, 1, 2, 1))

    def loss(x, w):
        y = F.conv2d(x, w, stride=(2, 1), padding=1, groups=2)
        return np.sum(np.sin(F.max_pool2d(y, 2, 1)) * F.avg_pool2d(y, 2, 1, 0))

    check_grads(loss, (x, w), order=2, entries=False)


def test_the_gradient_of_each_sample(rng):
    xs, w = rng.normal(size=(3, 2, 5, 4)), rng.normal(size=(4, 2, 3, 3))

    def loss(w, x):
        return np.sum(np.tanh(F.max_pool2d(F.conv2d(x, w, padding=1), 2)) ** 2)

    each = wg.vmap(wg.grad(loss), in_axes=(None, 0))(w, xs)
    np.testing.assert_allclose(each, [wg.grad(loss)(w, x) for x in xs], rtol=1e-10, atol=1e-13)


def test_precision_is_kept(rng):
    x, w = rng.normal(size=(2, 3, 8)).astype("f"), rng.normal(size=(4, 3, 3)).astype("f")
    y = F.max_pool1d(F.avg_pool1d(F.conv1d(x, w, padding=1), 2, 1, 1, count_include_pad=False), 2)
    assert y.dtype == np.float32
    assert F.adaptive_avg_pool1d(x, 3).dtype == np.float32


def test_operands_may_differ_in_precision(rng):
    x, w = rng.normal(size=(2, 3, 6, 6)).astype("f"), rng.normal(size=(4, 3, 3, 3))
    f = wg.grad(lambda x, w: np.sum(F.conv2d(x, w) ** 2), (0, 1))
    eager, native = f(x, w), wg.jit(f, host_callbacks="forbid")(x, w)
    assert [g.dtype for g in eager] == [g.dtype for g in native] == [np.float32, np.float64]
    for one, other in zip(eager, native, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)
    assert F.conv1d([[[1.0, 2.0, 4.0]]], [[[-1.0, 1.0]]]).tolist() == [[[1.0, 2.0]]]


@pytest.mark.parametrize("what", [np.zeros((0, 2, 6, 6)), np.zeros((2, 0, 6, 6))])
def test_nothing_gives_nothing(what):
    w = np.ones((3, what.shape[1], 3, 3))

    def f(x, w):
        return np.sum(F.avg_pool2d(F.max_pool2d(F.conv2d(x, w), 2), 2))

    for g, x in zip(wg.grad(f, (0, 1))(what, w), (what, w), strict=True):
        assert g.shape == x.shape and not g.any()
    assert wg.jit(f)(what, w) == 0.0


def test_complex_numbers(rng):
    x, w = rng.normal(size=(2, 1, 2, 5)) + 1j * rng.normal(size=(2, 1, 2, 5))
    y = F.conv1d(x, w[:, :, :3])
    expected = [scipy.signal.convolve(x[0, c], w[0, c, 2::-1], "valid") for c in range(2)]
    np.testing.assert_allclose(y[0, 0], sum(expected), rtol=1e-12)
    check_grads(lambda x, w: np.abs(F.conv1d(x, w)).sum(), (x, w[:, :, :3]), entries=False)


@pytest.mark.parametrize("samples", [1, 5])
def test_a_graph_for_any_number_of_samples(rng, samples):
    w = rng.normal(size=(4, 2, 3, 3))

    def loss(x, w):
        return np.sum(F.max_pool2d(F.conv2d(x, w, padding=1), 2) ** 2)

    graph = wg.trace(wg.grad(loss, (0, 1)))(wg.spec((wg.dim("n"), 2, 6, 6)), w)
    x = rng.normal(size=(samples, 2, 6, 6))
    for found, expected in zip(graph(x, w), wg.grad(loss, (0, 1))(x, w), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-12)


def test_ties_go_to_the_first():
    x = np.ones((1, 1, 4, 4))
    g = wg.grad(lambda x: np.sum(F.max_pool2d(x, 2)))(x)
    assert g[0, 0].tolist() == [[1, 0, 1, 0], [0, 0, 0, 0]] * 2
    _, where = F.max_pool2d(x, 2, return_indices=True)
    assert where[0, 0].tolist() == [[0, 2], [8, 10]]


def test_padding_is_never_the_largest():
    x = np.full((1, 1, 3), -np.inf)
    y, where = F.max_pool1d(x, 3, 1, 1, return_indices=True)
    assert np.all(np.isneginf(y)) and where[0, 0].tolist() == [0, 0, 1]
    eager, native = (
        wrap(wg.grad(lambda x: np.sum(np.exp(F.max_pool1d(x, 3, 1, 1)) + 1e3)))(x)
        for wrap in (lambda f: f, wg.jit)
    )
    np.testing.assert_array_equal(eager, native)
    assert np.isnan(F.max_pool1d(np.array([[[1.0, np.nan, 2.0]]]), 2, 1)).all()


def test_one_sample_without_its_axis(rng):
    x, w = rng.normal(size=(3, 6, 6)), rng.normal(size=(2, 3, 3, 3))
    np.testing.assert_array_equal(F.conv2d(x, w), F.conv2d(x[None], w)[0])
    assert F.max_pool2d(x, 2).shape == F.adaptive_avg_pool2d(x, (3, 3)).shape == (3, 3, 3)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (
            lambda x, w: F.conv2d(x[0, 0], w),
            errors.ShapeError,
            r"conv2d: .*samples.*\(6, 6\)",
        ),
        (lambda x, w: F.conv2d(x, w[:, :2]), errors.ShapeError, r"3 channels.*\(samples, 2, "),
        (lambda x, w: F.conv2d(x, w[0]), errors.ShapeError, r"weight of shape \(3, 3, 3\)"),
        (lambda x, w: F.conv2d(x[..., :2], w), errors.ShapeError, r"\(6, 2\).*\(3, 3\)"),
        (
            lambda x, w: F.conv2d(x, w, stride=0),
            errors.ArgumentError,
            "at least 1, got 0",
        ),
        (
            lambda x, w: F.conv2d(x, w, stride=1.5),
            errors.ArgumentError,
            r"an integer.*got 1\.5",
        ),
        (lambda x, w: F.conv2d(x, w, padding="some"), errors.ArgumentError, '"same" or "valid"'),
        (lambda x, w: F.conv2d(x, w, None, 2, "same"), errors.ArgumentError, "requires stride 1"),
        (lambda x, w: F.conv2d(x, w, groups=3), errors.ArgumentError, "groups must be .*got 3"),
        (lambda x, w: F.max_pool2d(x, 2, padding=2), errors.ArgumentError, "at most half"),
        (lambda x, w: F.max_pool2d(x, 9), errors.ShapeError, "spans 9"),
        (lambda x, w: F.avg_pool2d(x, (2, 2, 2)), errors.ArgumentError, "each of 2 axes"),
        (lambda x, w: F.adaptive_avg_pool2d(x, (2,) * 3), errors.ArgumentError, "output_size"),
        (lambda x, w: F.adaptive_max_pool2d(x, 0), errors.ArgumentError, "output_size"),
        (
            lambda x, w: F.conv_transpose2d(x, w[:3], output_padding=1),
            errors.ArgumentError,
            "output_padding=1 must be less",
        ),
    ],
)
def test_what_does_not_fit_is_named(call, error, words, rng):
    x, w = rng.normal(size=(2, 3, 6, 6)), rng.normal(size=(4, 3, 3, 3))
    with pytest.raises(error, match=words) as caught:
        call(x, w)
    assert "test_convolution_functions.py" in str(caught.value)
