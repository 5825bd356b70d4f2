"""Losses: hand-computed values, gradients against finite differences, extremes, errors."""

import numpy as np
import pytest

import wengert as wg
import wengert.nn.functional as F
from wengert import errors, nn
from wengert.testing import check_grads, check_op

CLASSES = np.array([2, 0, 1, 2, 2])
ONE_HOT = np.eye(3)[CLASSES]


def softmax_by_hand(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_operations_keep_the_laws(name):
    check_op(wg._engine.core.op.lookup(name))


@pytest.mark.sample(6)
@pytest.mark.parametrize("reduction", ["mean", "sum"])
@pytest.mark.parametrize(
    ("loss", "target"),
    [
        (F.mse_loss, "numbers"),
        (F.l1_loss, "numbers"),
        (F.cross_entropy, "classes"),
        (F.cross_entropy, "probabilities"),
        (F.nll_loss, "classes"),
        (F.binary_cross_entropy_with_logits, "probabilities"),
    ],
)
def test_gradients_to_order_two(loss, target, reduction, rng):
    x = rng.normal(size=(5, 3))
    y = {
        "numbers": rng.normal(size=(5, 3)),
        "classes": CLASSES,
        "probabilities": softmax_by_hand(rng.normal(size=(5, 3))),
    }[target]
    check_grads(lambda x: 1.7 * loss(x, y, reduction), (x,), order=2, entries=False)
    if target != "classes":
        check_grads(lambda y: loss(x, y, reduction), (y,), order=2, entries=False)


def test_binary_cross_entropy_of_probabilities(rng):
    p, y = rng.uniform(0.1, 0.9, (2, 6))
    by_hand = -(y * np.log(p) + (1 - y) * np.log(1 - p))
    np.testing.assert_allclose(F.binary_cross_entropy(p, y, "none"), by_hand, rtol=1e-14)
    check_grads(F.binary_cross_entropy, (p, y), order=2, entries=False)


@pytest.mark.parametrize("target", [CLASSES, ONE_HOT], ids=["classes", "probabilities"])
def test_cross_entropy_has_gradient_softmax_minus_onehot(target, rng):
    x = rng.normal(size=(5, 3)) * 4
    by_hand = -np.log(softmax_by_hand(x)[np.arange(5), CLASSES])
    np.testing.assert_allclose(F.cross_entropy(x, target, "none"), by_hand, rtol=1e-13)
    gradient = wg.grad(F.cross_entropy)(x, target)
    np.testing.assert_allclose(gradient, (softmax_by_hand(x) - ONE_HOT) / 5, atol=1e-16)


def test_second_derivative_of_cross_entropy_is_the_covariance_of_the_softmax(rng):
    x = rng.normal(size=3)
    p = softmax_by_hand(x)
    hessian = wg.hessian(lambda x: F.cross_entropy(x, np.array(1)))(x)
    np.testing.assert_allclose(hessian, np.diag(p) - np.outer(p, p), atol=1e-15)


@pytest.mark.parametrize("loss", [nn.MSELoss, nn.L1Loss, nn.BCEWithLogitsLoss, nn.CrossEntropyLoss])
def test_the_upstream_gradient_is_multiplied_in(loss, rng):
    x, y = rng.normal(size=(4, 3)), softmax_by_hand(rng.normal(size=(4, 3)))
    once = wg.grad(lambda x: loss()(x, y))(x)
    scaled = wg.grad(lambda x: np.exp(0.3 * loss()(x, y)))(x)
    factor = 0.3 * np.exp(0.3 * loss()(x, y))
    np.testing.assert_allclose(scaled, factor * once, rtol=1e-13)


def test_extreme_logits_stay_finite():
    x = np.array([[1e4, 0.0, -1e4], [-1e4, 0.0, 1e4]])
    losses, gradient = F.cross_entropy(x, np.array([2, 2]), "none"), None
    np.testing.assert_allclose(losses, [2e4, 0.0])
    gradient = wg.grad(F.cross_entropy)(x, np.array([2, 2]), "sum")
    np.testing.assert_allclose(gradient, [[1, 0, -1], [0, 0, 0]])
    x = np.array([-800.0, 800.0])
    for y, loss in ((np.array([0.0, 1.0]), [0.0, 0.0]), (np.array([1.0, 0.0]), [800.0, 800.0])):
        np.testing.assert_allclose(F.binary_cross_entropy_with_logits(x, y, "none"), loss)
        g = wg.grad(F.binary_cross_entropy_with_logits)(x, y, "sum")
        np.testing.assert_allclose(g, np.array([0.0, 1.0]) - y)


def test_a_masked_class_has_probability_and_gradient_zero():
    x = np.array([[0.5, -np.inf, 1.5]])
    np.testing.assert_allclose(F.softmax(x), [[0.26894142137, 0.0, 0.73105857863]])
    gradient = wg.grad(F.cross_entropy)(x, np.array([0]))
    np.testing.assert_allclose(gradient, [[0.26894142137 - 1.0, 0.0, 0.73105857863]])
    spread = wg.grad(F.cross_entropy)(x, np.array([[1.0, 0.0, 0.0]]))
    np.testing.assert_array_equal(spread, gradient)


def test_zero_times_the_logarithm_of_zero_is_zero():
    p = np.array([0.0, 1.0])
    value, gradient = wg.value_and_grad(F.binary_cross_entropy)(p, np.array([0.0, 1.0]))
    assert value == 0.0
    np.testing.assert_array_equal(gradient, [0.5, -0.5])  # one-sided, toward the wrong answer


def test_reductions_agree(rng):
    x = rng.normal(size=(5, 3))
    each = F.cross_entropy(x, CLASSES, "none")
    assert each.shape == (5,)
    assert F.cross_entropy(x, CLASSES, "sum") == pytest.approx(each.sum())
    assert F.cross_entropy(x, CLASSES) == pytest.approx(each.mean())
    assert F.mse_loss(x, 2 * x, "none").shape == (5, 3)


def test_classes_on_another_axis(rng):
    x, y = rng.normal(size=(2, 3, 4)), rng.integers(0, 3, size=(2, 4))
    by_hand = F.cross_entropy(np.moveaxis(x, 1, -1), y)
    assert F.cross_entropy(x, y, axis=1) == pytest.approx(by_hand)
    check_grads(lambda x: F.cross_entropy(x, y, axis=1), (x,), order=1, entries=False)


def test_single_precision_is_kept(rng):
    x = rng.normal(size=(5, 3)).astype(np.float32)
    for loss, y in [
        (F.cross_entropy, CLASSES),
        (F.mse_loss, np.zeros_like(x)),
        (F.binary_cross_entropy_with_logits, np.zeros_like(x)),
    ]:
        value, gradient = wg.value_and_grad(loss)(x, y)
        assert value.dtype == gradient.dtype == np.float32


def test_plain_arrays_give_plain_numbers(rng):
    value = F.cross_entropy(rng.normal(size=(5, 3)), CLASSES)
    assert not isinstance(value, wg.Tensor)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: F.mse_loss(x, x[0]), errors.ShapeError, "broadcasting would compare all pairs"),
        (lambda x: F.cross_entropy(x, CLASSES[:4]), errors.ShapeError, "one class for each sample"),
        (lambda x: F.cross_entropy(x, CLASSES + 1), errors.ArgumentError, "from 1 to 3"),
        (lambda x: F.cross_entropy(x, CLASSES - 1), errors.ArgumentError, "from -1 to 1"),
        (lambda x: F.cross_entropy(x, CLASSES > 1), errors.DtypeError, "bool"),
        (lambda x: F.mse_loss(x, x, "average"), errors.ArgumentError, "'average'"),
        (lambda x: nn.MSELoss("average"), errors.ArgumentError, "'average'"),
    ],
)
def test_refusals(call, error, message):
    with pytest.raises(error, match=message) as caught:
        call(np.zeros((5, 3)))
    assert "test_losses.py" in str(caught.value)


@pytest.mark.parametrize(
    ("f", "by_hand"),
    [
        (F.relu, lambda x: np.maximum(x, 0)),
        (F.leaky_relu, lambda x: np.where(x > 0, x, 0.01 * x)),
        (F.sigmoid, lambda x: 1 / (1 + np.exp(-x))),
        (F.log_sigmoid, lambda x: -np.log1p(np.exp(-x))),
        (F.softplus, lambda x: np.log1p(np.exp(x))),
        (F.silu, lambda x: x / (1 + np.exp(-x))),
        (F.tanh, np.tanh),
        (F.softmax, softmax_by_hand),
    ],
)
def test_activations(f, by_hand, rng):
    x = rng.normal(size=(4, 3)) + 0.01
    np.testing.assert_allclose(f(x), by_hand(x), rtol=1e-13)
    check_grads(f, (x,), order=2, entries=False)


def test_dropout_keeps_the_expectation():
    x = np.ones(20_000)
    dropped = F.dropout(x, 0.3, rng=0)
    assert set(np.unique(dropped)) == {0.0, 1 / 0.7}
    assert dropped.mean() == pytest.approx(1.0, abs=0.02)
    np.testing.assert_array_equal(F.dropout(x, 0.3, training=False), x)
    np.testing.assert_array_equal(F.dropout(x, 1.0), 0.0)
    gradient = wg.grad(lambda x: np.sum(F.dropout(x, 0.3, rng=0)))(x)
    np.testing.assert_array_equal(gradient, dropped)
    with pytest.raises(errors.ArgumentError, match=r"p=1\.5"):
        F.dropout(x, 1.5)


def test_options_of_a_loss_are_those_of_its_function():
    weight = np.array([1.0, 3.0])
    x, y = np.array([1.0, 2.0]), np.array([0.0, 4.0])
    loss = nn.MSELoss(weight=weight)
    assert float(loss(x, y)) == float(F.mse_loss(x, y, weight=weight))
    assert list(loss.state_dict()) == ["weight"]
    assert repr(nn.SmoothL1Loss(beta=0.5)) == "SmoothL1Loss(reduction='mean', beta=0.5)"
