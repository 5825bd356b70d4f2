"""Losses with options: weights, masks, ignored samples, margins; in graphs; errors.

Values and gradients are compared with PyTorch in test_against_torch.py.
"""

import numpy as np
import pytest

import wengert as wg
import wengert.nn.functional as F
from wengert import errors, nn
from wengert.testing import check_grads

INF = np.inf
SIGNS = np.array([1.0, -1.0, 1.0, -1.0])


def test_hinges_by_hand(rng):
    x = np.array([2.0, 0.5, 0.25, -3.0])
    np.testing.assert_allclose(F.hinge_loss(x, SIGNS, "none"), [0, 1.5, 0.75, 0])
    np.testing.assert_allclose(F.squared_hinge_loss(x, SIGNS, "sum"), 1.5**2 + 0.75**2)
    np.testing.assert_allclose(F.hinge_loss(x, SIGNS, "none", margin=3.0), [1, 3.5, 2.75, 0])
    slope = wg.grad(F.squared_hinge_loss)(x, SIGNS, "sum")
    np.testing.assert_allclose(slope, [0, 3.0, -1.5, 0])


def test_focal_and_dice_by_hand(rng):
    x, y = rng.normal(size=6), np.array([1.0, 0, 0, 1, 1, 0])
    right = np.where(y == 1, F.sigmoid(x), F.sigmoid(-x))
    by_hand = -np.where(y == 1, 0.25, 0.75) * (1 - right) ** 2 * np.log(right)
    np.testing.assert_allclose(F.sigmoid_focal_loss(x, y, reduction="none"), by_hand, rtol=1e-12)
    plain = F.binary_cross_entropy_with_logits(x, y)
    np.testing.assert_allclose(F.sigmoid_focal_loss(x, y, alpha=-1.0, gamma=0.0), plain)
    p, t = rng.uniform(size=(2, 3, 4))
    dice = 1 - (2 * (p * t).sum(axis=1) + 1) / (p.sum(axis=1) + t.sum(axis=1) + 1)
    np.testing.assert_allclose(F.dice_loss(p, t, "none"), dice)
    assert F.dice_loss(np.zeros((2, 3)), np.zeros((2, 3))) == 0


def test_weights_of_zero_leave_out_what_is_no_number(rng):
    x, y = rng.normal(size=(2, 3, 2))
    x[1] = np.nan
    kept = np.array([[1.0], [0.0], [1.0]])
    want = np.mean((x - y)[[0, 2]] ** 2)
    np.testing.assert_allclose(F.mse_loss(x, y, weight=kept), want)
    slope = wg.grad(F.mse_loss)(x, y, weight=kept)
    np.testing.assert_allclose(slope[[0, 2]], (x - y)[[0, 2]] / 2)
    np.testing.assert_array_equal(slope[1], 0)
    assert np.isfinite(F.l1_loss(x, y, "sum", kept)) and np.isfinite(
        F.huber_loss(x, y, weight=kept)
    )
    loss = nn.MSELoss("none")
    np.testing.assert_array_equal(loss(x, y)[0], (x - y)[0] ** 2)


def test_ignored_samples_count_nothing(rng):
    x, y = rng.normal(size=(6, 3)), np.array([0, -100, 2, -100, 1, 1])
    kept = y >= 0
    loss = nn.CrossEntropyLoss(ignore_index=-100)
    np.testing.assert_allclose(loss(x, y), F.cross_entropy(x[kept], y[kept]), rtol=1e-14)
    slope = wg.grad(lambda x: loss(x, y))(x)
    np.testing.assert_array_equal(slope[~kept], 0)
    np.testing.assert_allclose(slope[kept], wg.grad(F.cross_entropy)(x[kept], y[kept]), rtol=1e-13)
    with pytest.raises(errors.ArgumentError, match=r"from -100 to 2.*ignore_index=-100"):
        F.cross_entropy(x, y)
    x[~kept] = np.nan
    assert np.isfinite(loss(x, y)) and np.all(np.isfinite(wg.jit(lambda x: loss(x, y))(x)))
    with np.errstate(invalid="ignore"):
        assert np.isnan(loss(x, np.full(6, -100)))
    assert loss.function is not None and F.nll_loss(x, y, "sum", ignore_index=-100) is not None


def test_options_in_graphs_with_named_sizes(rng):
    w = np.array([0.5, 1.0, 2.0])

    def every(x, c, y):
        return [
            F.cross_entropy(x, c, weight=w, ignore_index=-1, label_smoothing=0.1),
            F.multi_margin_loss(x, np.maximum(c, 0), weight=w),
            F.binary_cross_entropy_with_logits(x, y, weight=w, pos_weight=w),
            F.huber_loss(x, y, weight=y),
            F.kl_div(x, y, "batchmean"),
            F.gaussian_nll_loss(x, y, np.exp(x)),
            F.triplet_margin_loss(x, y, 2 * x),
            F.cosine_embedding_loss(x, y, np.where(c > 0, 1.0, -1.0)),
            F.multilabel_margin_loss(x, np.where(y > 0.5, 1, -1)),
        ]

    graph = wg.trace(every)(wg.spec(("n", 3)), wg.spec("n", int), wg.spec(("n", 3)))
    for n in (2, 5):
        x, c, y = rng.normal(size=(n, 3)), rng.integers(-1, 3, n), rng.random((n, 3))
        c[0] = 1
        for got, want in zip(graph(x, c, y), every(x, c, y), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-12)
    with pytest.raises(errors.ArgumentError, match="number 3 of 3 classes"):
        graph(x, np.full(5, 3), y)


def test_classes_that_do_not_exist_in_graphs():
    """They raise an error that names the function and the class, as in eager mode."""
    x = np.zeros((2, 3))
    for f in (F.multi_margin_loss, F.nll_loss, lambda x, y: F.one_hot(y, 3)):
        graph = wg.trace(f)(x, np.array([1, 0]))
        assert np.all(np.isfinite(graph(x, np.array([1, 0]))))
        for wrong in ([0, 3], [-1, 0]):
            named = f"number {min(wrong) or 3} of 3 classes"
            with pytest.raises(errors.ArgumentError, match=named):
                graph(x, np.array(wrong))
    several = wg.trace(F.multilabel_margin_loss)(x, np.zeros((2, 3), int))
    assert np.isfinite(several(x, np.array([[0, -1, 9], [1, 2, -1]])))
    with pytest.raises(errors.ArgumentError, match="multilabel_margin_loss was asked for number 3"):
        several(x, np.array([[0, -1, 9], [3, 2, -1]]))


def test_images_with_classes_on_axis_one(rng):
    x, y = rng.normal(size=(2, 3, 4, 5)), rng.integers(0, 3, (2, 4, 5))
    w = np.array([1.0, 2.0, 0.5])
    moved = np.moveaxis(x, 1, -1)
    for options in ({}, {"weight": w}, {"weight": w, "label_smoothing": 0.3, "ignore_index": 0}):
        np.testing.assert_allclose(
            F.cross_entropy(x, y, axis=1, **options), F.cross_entropy(moved, y, **options)
        )
    shares = np.moveaxis(rng.dirichlet(np.ones(3), (2, 4, 5)), -1, 1)
    one = F.cross_entropy(x, shares, axis=1, weight=w)
    np.testing.assert_allclose(one, F.cross_entropy(moved, np.moveaxis(shares, 1, -1), weight=w))


def test_far_out_losses_stay_finite():
    far = np.array([-1e4, 1e4])
    with np.errstate(all="raise", under="ignore"):
        for y in (np.array([1.0, -1.0]), np.array([-1.0, 1.0])):
            np.testing.assert_allclose(F.soft_margin_loss(far, y, "none"), np.maximum(0, -y * far))
        np.testing.assert_allclose(F.huber_loss(np.array([1e200]), np.zeros(1)), 1e200)
        np.testing.assert_allclose(wg.grad(F.smooth_l1_loss)(np.array([1e200]), np.zeros(1)), 1)
        for gamma in (2.0, 0.5):
            loss = F.sigmoid_focal_loss(far, np.array([1.0, 1.0]), gamma=gamma, reduction="none")
            np.testing.assert_allclose(loss, [2500, 0], atol=1e-300)
        np.testing.assert_array_equal(F.kl_div(np.array([-INF, 0.0]), np.array([0.0, 1.0])), 0)
        logs = np.array([-INF, 0.0])
        np.testing.assert_array_equal(F.kl_div(logs, logs, log_target=True), 0)
        slope = wg.grad(F.kl_div)(np.array([-5.0, 0.0]), np.array([0.0, 1.0]), "sum")
        np.testing.assert_array_equal(slope, [0, -1])
    masked = np.array([[0.5, -INF, 1.5]])
    for target in (np.array([0]), np.array([[0.4, 0.0, 0.6]])):
        assert np.isfinite(F.cross_entropy(masked, target, weight=np.array([1.0, 0.0, 2.0])))


def test_losses_as_layers(rng):
    x, y, z = rng.normal(size=(3, 4, 5))
    np.testing.assert_array_equal(
        nn.TripletMarginLoss(margin=2.0)(x, y, z), F.triplet_margin_loss(x, y, z, margin=2.0)
    )
    np.testing.assert_array_equal(
        nn.GaussianNLLLoss(full=True)(x, y, z**2), F.gaussian_nll_loss(x, y, z**2, full=True)
    )
    np.testing.assert_array_equal(
        nn.KLDivLoss("batchmean")(x, z**2), F.kl_div(x, z**2, "batchmean")
    )
    loss = nn.BCEWithLogitsLoss(pos_weight=[1.0, 2.0, 3.0, 4.0, 5.0])
    assert list(loss.state_dict()) == ["pos_weight"] and "pos_weight=..." in repr(loss)
    value = loss(x, np.ones_like(x))
    assert value == pytest.approx(np.mean(np.arange(1.0, 6.0) * F.softplus(-x)))
    with pytest.raises(errors.ArgumentError, match=r"no options \['wieght'\].*'pos_weight'"):
        nn.BCEWithLogitsLoss(wieght=1.0)
    with pytest.raises(errors.ArgumentError, match="Other options are keyword arguments"):
        nn.CrossEntropyLoss(np.ones(3))


def test_kinks_keep_their_conventions():
    x = np.zeros(2)
    np.testing.assert_array_equal(wg.grad(F.l1_loss)(x, x), 0)
    hessian = wg.hessian(lambda x: F.huber_loss(x, np.zeros(2), "sum"))(x)
    np.testing.assert_array_equal(hessian, np.eye(2))
    at_the_width = wg.grad(lambda x: F.huber_loss(x, np.zeros(1), "sum"))(np.ones(1))
    np.testing.assert_array_equal(at_the_width, 1)
    check_grads(
        lambda x: F.smooth_l1_loss(x, np.array([0.2, 3.0]), beta=0.5), (x,), order=2, entries=False
    )


ONES = np.ones((2, 3))
REFUSED = [
    (lambda: F.hinge_loss(np.ones(2), np.array([0.0, 1.0])), r"got 0\.0.*2 \* y - 1"),
    (lambda: F.soft_margin_loss(ONES, ONES[0]), r"soft_margin_loss: the prediction has shape"),
    (lambda: F.smooth_l1_loss(ONES, ONES, beta=-1.0), "beta must not be negative, got -1.0"),
    (lambda: F.huber_loss(ONES, ONES, delta=0.0), "delta must be positive, got 0.0"),
    (lambda: F.gaussian_nll_loss(ONES, ONES, -ONES), "a variance is negative"),
    (lambda: F.gaussian_nll_loss(ONES, ONES, np.ones(3)), r"variances of shape \(3,\)"),
    (lambda: F.cross_entropy(ONES, np.array([0, 3])), "classes from 0 to 3, but there are 3"),
    (
        lambda: F.cross_entropy(ONES, np.array([0, 1]), weight=np.ones(2)),
        r"one weight for each of 3 classes, got shape \(2,\)",
    ),
    (
        lambda: F.cross_entropy(ONES, ONES / 3, ignore_index=0),
        "target of probabilities",
    ),
    (
        lambda: F.cross_entropy(ONES, np.array([0, 1]), label_smoothing=2.0),
        "between 0 and 1, got 2.0",
    ),
    (lambda: F.cross_entropy(ONES, np.array([0, 1]), axis=2), "no axis 2"),
    (lambda: F.cross_entropy(ONES, np.array([0, 1]), "avg"), "reduction must be .*got 'avg'"),
    (lambda: F.multi_margin_loss(ONES, np.array([0, 3])), "classes from 0 to 3"),
    (lambda: F.multi_margin_loss(ONES, np.array([0.0, 1.0])), "as integers, got float64"),
    (lambda: F.multi_margin_loss(ONES, np.array([0])), r"target of shape \(2,\)"),
    (lambda: F.multi_margin_loss(ONES, np.array([0, 1]), p=3), "p must be 1 or 2, got 3"),
    (lambda: F.multilabel_margin_loss(ONES, np.full((2, 3), 3)), "has class 3"),
    (lambda: F.cosine_embedding_loss(ONES, ONES, np.ones(3)), r"target of shape \(2,\)"),
    (lambda: F.binary_cross_entropy(ONES[0], ONES[0], weight=ONES), r"weights of shape \(2, 3\)"),
]


@pytest.mark.parametrize("case", range(len(REFUSED)))
def test_refusals(case):
    call, words = REFUSED[case]
    with pytest.raises(errors.WengertError, match=rf"{words}.*test_margins_and_weights\.py"):
        call()


def cosine(x, y, axis, eps=1e-8):
    """PyTorch's documented formula, for operands of equal shape."""
    x, y = np.broadcast_arrays(x, y)
    sizes = [np.maximum(np.sqrt(np.sum(v * v, axis=axis)), eps) for v in (x, y)]
    return np.sum(x * y, axis=axis) / (sizes[0] * sizes[1])


@pytest.mark.sample(4)
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(
    ("one", "two", "axis"),
    [
        ((3,), (1,), 0),
        ((2, 3), (2, 1), 1),
        ((2, 3), (3,), 1),
        ((2, 1), (3,), -1),
        ((2, 3), (1, 3), 1),
    ],
)
def test_cosine_similarity_broadcasts_along_its_own_axis(one, two, axis, compiled):
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=one), rng.normal(size=two)
    f = lambda x, y: F.cosine_similarity(x, y, axis=axis)  # noqa: E731
    run = wg.jit if compiled else lambda g: g
    np.testing.assert_allclose(run(f)(x, y), cosine(x, y, axis), rtol=1e-14)
    got = run(wg.jacobian(f, argnums=(0, 1)))(x, y)
    for k, given in enumerate((x, y)):
        for place in np.ndindex(given.shape):
            moved = [x + 0j, y + 0j]
            moved[k][place] += 1e-100j
            step = cosine_along(*moved, axis).imag / 1e-100
            np.testing.assert_allclose(got[k][(..., *place)], step, rtol=1e-12, atol=1e-14)


def cosine_along(x, y, axis):
    """`cosine` for complex numbers, for complex-step derivatives."""
    x, y = np.broadcast_arrays(x, y)
    sizes = [np.sqrt(np.sum(v * v, axis=axis)) for v in (x, y)]
    return np.sum(x * y, axis=axis) / (sizes[0] * sizes[1])
