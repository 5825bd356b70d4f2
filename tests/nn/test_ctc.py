"""Connectionist temporal classification: enumeration of alignments, edge cases, errors."""

from itertools import groupby, product

import numpy as np
import pytest

import wengert as wg
from wengert import nn
from wengert.errors import ArgumentError, DtypeError, ShapeError, TraceError
from wengert.nn import functional as F

WAYS = [pytest.param(lambda f: f, id="eager"), pytest.param(wg.jit, id="compiled")]


def one_by_one(log_probs, target, blank=0):
    """The loss, by enumeration of all alignments."""
    steps, classes = log_probs.shape
    total = 0.0
    for way in product(range(classes), repeat=steps):
        merged = [k for k, _ in groupby(way) if k != blank]
        if merged == list(target):
            total = total + np.exp(sum(log_probs[k, c] for k, c in enumerate(way)))
    return -np.log(total)


def alone(target, blank=0):
    what = np.array(target, int)
    return lambda x: F.ctc_loss(x, what, len(x), len(what), blank, "sum")


@pytest.mark.sample(1)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("target", "blank"), [([1, 1], 0), ([0, 1], 2)])
def test_all_alignments_one_by_one(target, blank, way, rng):
    x = np.log(rng.dirichlet(np.ones(3), size=3))
    f, g = alone(target, blank), lambda x: one_by_one(x, target, blank)
    np.testing.assert_allclose(plain(way(f)(x)), g(x), rtol=1e-13)
    np.testing.assert_allclose(way(wg.grad(f))(x), wg.grad(g)(x), rtol=1e-11, atol=1e-14)
    np.testing.assert_allclose(way(wg.hessian(f))(x), wg.hessian(g)(x), rtol=1e-10, atol=1e-13)


@pytest.mark.sample(1)
@pytest.mark.parametrize("way", WAYS)
def test_an_impossible_class_is_no_nan(way, rng):
    x = np.log(rng.dirichlet(np.ones(3), size=4))
    x[1, 2] = -np.inf
    for target in ([2, 1], [1, 2]):
        f, g = alone(target), lambda x, t=target: one_by_one(x, t)
        np.testing.assert_allclose(plain(way(f)(x)), g(x), rtol=1e-13)
        np.testing.assert_allclose(way(wg.grad(f))(x), wg.grad(g)(x), rtol=1e-11, atol=1e-14)
    assert np.all(np.isfinite(way(wg.hessian(f))(x)))
    x[:, 1] = -np.inf
    assert plain(way(alone([1]))(x)) == np.inf
    np.testing.assert_array_equal(way(wg.grad(alone([1])))(x), 0.0)


def plain(x):
    return np.asarray(x.numpy() if hasattr(x, "numpy") else x)


def test_forms_of_targets_and_lengths(rng):
    x = F.log_softmax(rng.normal(size=(6, 3, 4)), -1)
    rows = np.array([[1, 2, 9], [3, -1, 5], [2, 2, 1]])
    steps, lengths = [6, 4, 5], [2, 1, 3]
    each = [
        F.ctc_loss(x[:n, k], rows[k, :m], n, m, reduction="none")
        for k, (n, m) in enumerate(zip(steps, lengths, strict=True))
    ]
    given = (steps, lengths)
    for targets in (rows, np.concatenate([rows[k, :n] for k, n in enumerate(lengths)])):
        np.testing.assert_allclose(F.ctc_loss(x, targets, *given, reduction="none"), each)
        assert np.isclose(F.ctc_loss(x, targets, *given, reduction="sum"), np.sum(each))
        mean = np.mean(np.array(each) / lengths)
        assert np.isclose(nn.CTCLoss()(x, targets, *given), mean)
    graph = wg.trace(lambda *args: F.ctc_loss(*args, reduction="none"))(
        wg.spec(("steps", "batch", 4)), wg.spec(("batch", "longest"), int),
        wg.spec("batch", int), wg.spec("batch", int),
    )  # fmt: skip
    np.testing.assert_allclose(graph(x, rows, np.array(steps), np.array(lengths)), each)
    np.testing.assert_allclose(graph(x[:, :1], rows[:1, :2], *np.array([[6], [2]])), each[:1])
    out_of_range = np.array([[1, 4]])
    with pytest.raises(ArgumentError, match="number 4 of 4 classes"):
        graph(x[:, :1], out_of_range, *np.array([[6], [2]]))


def test_nothing_to_spell_and_no_steps():
    x = np.log(np.full((3, 2, 2), 0.5))
    np.testing.assert_allclose(
        F.ctc_loss(x, np.zeros((2, 0), int), [3, 0], [0, 0], reduction="none"),
        [3 * np.log(2), 0.0],
        atol=1e-15,
    )
    assert F.ctc_loss(x, [[1], [1]], [3, 0], [1, 1], reduction="none")[1] == np.inf
    assert F.ctc_loss(x, [[1], [1]], [3, 0], [1, 1], 0, "none", True)[1] == 0.0


@pytest.mark.sample(1)
@pytest.mark.parametrize("way", WAYS)
def test_long_sequences_and_float32(way, rng):
    x = rng.normal(size=(400, 2, 5)).astype("float32")
    targets = rng.integers(1, 5, size=(2, 60))

    def loss(x):
        return F.ctc_loss(F.log_softmax(x, -1), targets, [400, 250], [60, 40], reduction="sum")

    if way is not wg.jit:
        x = x[:60]
        loss = lambda x: F.ctc_loss(F.log_softmax(x, -1), targets, [60, 50], [20, 10])  # noqa: E731
    value, bar = way(wg.value_and_grad(loss))(x)
    wide, wide_bar = wg.jit(wg.value_and_grad(loss))(x.astype(float))
    assert value.dtype == bar.dtype == "float32"
    np.testing.assert_allclose(value, wide, rtol=1e-5)
    np.testing.assert_allclose(bar, wide_bar, atol=2e-4)


def test_refusals():
    x = np.zeros((4, 2, 3))
    for error, text, args in (
        (ShapeError, r"log_probs must be .*got shape \(3,\)", (x[0, 0], [[1]], [4], [1])),
        (ArgumentError, "blank=3", (x, [[1], [1]], [4, 4], [1, 1], 3)),
        (ArgumentError, "is the blank", (x, [[1], [0]], [4, 4], [1, 1])),
        (ArgumentError, "numbered from 0", (x, [[1], [3]], [4, 4], [1, 1])),
        (ArgumentError, "from 0 to 4", (x, [[1], [1]], [4, 5], [1, 1])),
        (ArgumentError, "to 1, the number of labels", (x, [[1], [1]], [4, 4], [1, 2])),
        (ShapeError, "each of 2 sequences", (x, [[1], [1]], [4], [1, 1])),
        (ShapeError, r"sum\(target_lengths\)", (x, [1, 1, 1], [4, 4], [1, 1])),
        (DtypeError, "integers", (x, [[1.0], [1.0]], [4, 4], [1, 1])),
        (ArgumentError, "reduction", (x, [[1], [1]], [4, 4], [1, 1], 0, "all")),
    ):
        with pytest.raises(error, match=text):
            F.ctc_loss(*args)
    with pytest.raises(TraceError, match="concatenated targets"):
        wg.jit(lambda n: F.ctc_loss(x, [1, 2, 1], [4, 4], n))(np.array([2, 1]))
    with pytest.raises(ArgumentError, match="reduction"):
        nn.CTCLoss(reduction="all")
