"""Gradient clipping, moving averages, ReduceLROnPlateau: eager, compiled, errors."""

import pickle

import numpy as np
import pytest

import wengert as wg
from wengert import errors, nn, optim


def parameters(*gradients):
    made = []
    for g in gradients:
        p = wg.tensor(np.ones_like(g), requires_grad=True)
        np.sum(p * g).backward()
        made.append(p)
    return made


def gradients(params):
    return [np.asarray(p.grad) for p in params]


G = [np.array([[3.0, -4.0], [0.0, 12.0]]), np.array([84.0])]  # of norm 85


@pytest.mark.parametrize("order", [1.0, 2.0, 3.0, np.inf])
def test_norm_is_that_of_all_elements(order):
    flat = np.concatenate([g.reshape(-1) for g in G])
    norm = np.linalg.norm(flat, order)
    params = parameters(*G)
    found = optim.clip_grad_norm_(params, 2.0, norm_type=order)
    assert found == pytest.approx(norm, rel=1e-15)
    for g, clipped in zip(G, gradients(params), strict=True):
        np.testing.assert_allclose(clipped, g * (2.0 / norm), rtol=1e-15)


def test_short_gradients_are_unchanged():
    params = parameters(*G)
    assert optim.clip_grad_norm_(params, 85.0) == 85.0
    assert all(np.array_equal(a, b) for a, b in zip(gradients(params), G, strict=True))
    zero = parameters(np.zeros(3))
    assert optim.clip_grad_norm_(zero, 1.0) == 0.0 and not gradients(zero)[0].any()


def test_large_float32_does_not_overflow_and_stays_float32():
    (p,) = parameters(np.array([3e30, 4e30], np.float32))
    assert optim.clip_grad_norm_(p, 1.0) == pytest.approx(5e30)
    assert p.grad.dtype == np.float32
    np.testing.assert_allclose(np.asarray(p.grad), [0.6, 0.8], rtol=1e-6)


def test_nonfinite_norms():
    params = parameters(np.array([1.0, np.inf]), np.ones(2))
    with pytest.raises(errors.NotFiniteError, match="norm of the gradients is inf"):
        optim.clip_grad_norm_(params, 1.0, error_if_nonfinite=True)
    assert optim.clip_grad_norm_(params, 1.0) == np.inf
    np.testing.assert_array_equal(np.asarray(params[1].grad), 0.0)
    (p,) = parameters(np.array([1.0, np.nan]))
    assert np.isnan(optim.clip_grad_norm_([p], 1.0)) and np.isnan(np.asarray(p.grad)).all()


def test_without_gradients_nothing_happens():
    p = wg.tensor([1.0], requires_grad=True)
    assert optim.clip_grad_norm_([p], 1.0) == 0.0
    optim.clip_grad_value_([p], 1.0)
    assert p.grad is None


def test_values_are_clipped():
    params = parameters(*G)
    optim.clip_grad_value_(iter(params), 5.0)
    for g, clipped in zip(G, gradients(params), strict=True):
        np.testing.assert_array_equal(clipped, np.clip(g, -5.0, 5.0))


def trained(decorate, clip, dtype):
    rng = np.random.default_rng(0)
    model = nn.Sequential(
        nn.Linear(3, 8, rng=rng, dtype=dtype), nn.ReLU(), nn.Linear(8, 1, rng=rng, dtype=dtype)
    )
    optimizer = optim.Adam(model.parameters(), lr=0.05)
    average = optim.EMA(model.parameters(), 0.8, warmup=True)
    x = rng.normal(size=(16, 3)).astype(dtype)
    y = 100.0 * np.sum(x, axis=1, keepdims=True)

    def step(x, y):
        optimizer.zero_grad()
        loss = nn.MSELoss()(model(x), y)
        loss.backward()
        norm = clip(list(model.parameters()))
        optimizer.step()
        average.update()
        return loss, norm

    step = decorate(step)
    said = [[v.item() if hasattr(v, "item") else v for v in step(x, y)] for _ in range(5)]
    return said, [p.numpy() for p in model.parameters()], average.state_dict()


@pytest.mark.sample(2)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(
    "clip",
    [
        lambda p: optim.clip_grad_norm_(p, 0.5),
        lambda p: optim.clip_grad_value_(p, 0.1) or 0.0,
    ],
    ids=["norm", "value"],
)
def test_compiled_clipping_and_averaging_agree_with_eager(clip, dtype):
    said, values, averages = trained(lambda f: f, clip, dtype)
    same, twins, other = trained(wg.jit, clip, dtype)
    rtol = 1e-11 if dtype == "float64" else 2e-4
    np.testing.assert_allclose(same, said, rtol=rtol)
    pairs = [*zip(values, twins, strict=True)]
    pairs += zip(averages["averages"], other["averages"], strict=True)
    for a, b in pairs:
        assert a.dtype == b.dtype == dtype
        np.testing.assert_allclose(b, a, rtol=rtol, atol=rtol)
    assert averages["count"] == other["count"] == 5


def test_average_follows_its_formula():
    p = wg.tensor(np.array([1.0, 2.0]), requires_grad=True)
    average, expected = optim.EMA(p, 0.9), np.array([1.0, 2.0])
    for k in range(4):
        p.data = np.array([k, -k], float)
        average.update()
        expected = 0.9 * expected + 0.1 * p.numpy()
    np.testing.assert_allclose(average.state_dict()["averages"][0], expected, rtol=1e-14)
    with pytest.raises(RuntimeError, match="x"), average.applied():
        np.testing.assert_allclose(p.numpy(), expected, rtol=1e-14)
        raise RuntimeError("x")
    np.testing.assert_array_equal(p.numpy(), [3.0, -3.0])
    twin = optim.EMA(p, 0.9)
    twin.load_state_dict(average.state_dict())
    twin.copy_to()
    np.testing.assert_allclose(p.numpy(), expected, rtol=1e-14)
    assert repr(twin) == "EMA(decay=0.9, 1 parameters, 4 updates)"


def test_warmup_reduces_the_weight_of_initial_values():
    p = wg.tensor(np.zeros(1), requires_grad=True)
    average, expected = optim.EMA([p], 0.5, warmup=True), 0.0
    p.data = np.ones(1)
    for n in range(12):
        average.update()
        keep = min(0.5, (1 + n) / (10 + n))
        expected = keep * expected + (1 - keep)
    np.testing.assert_allclose(average.state_dict()["averages"][0], expected, rtol=1e-14)


def test_rate_is_reduced_on_a_plateau_as_in_pytorch():
    # Learning rates and best values of torch 2.13's ReduceLROnPlateau for the same figures.
    optimizer = optim.SGD([wg.tensor([1.0], requires_grad=True)], lr=1.0)
    plateau = optim.ReduceLROnPlateau(optimizer, factor=0.5, patience=1, cooldown=1, min_lr=0.2)
    rates = []
    for loss in (5, 4, 4, 4, 4, 4, 4, 3.9999, 4, 4, float("nan"), 4, 1):
        plateau.step(loss)
        rates.append(optimizer.lr)
    assert rates == TORCH_RATES
    assert plateau.best == 1.0
    twin = optim.ReduceLROnPlateau(optimizer)
    twin.load_state_dict(pickle.loads(pickle.dumps(plateau.state_dict())))
    assert twin.state_dict() == plateau.state_dict() and "best=1" in repr(twin)


TORCH_RATES = [1.0, 1.0, 1.0, 0.5, 0.5, 0.5, 0.25, 0.25, 0.25, 0.2, 0.2, 0.2, 0.2]


def test_plateau_of_a_metric_to_maximize():
    optimizer = optim.SGD([wg.tensor([1.0], requires_grad=True)], lr=1.0)
    plateau = optim.ReduceLROnPlateau(
        optimizer, "max", patience=0, threshold=0.1, threshold_mode="abs"
    )
    for share in (0.5, 0.59, 0.7):
        plateau.step(share)
    assert optimizer.lr == pytest.approx(0.1) and plateau.best == 0.7


def refusals():
    p = wg.tensor([1.0], requires_grad=True)
    sgd = optim.SGD([p], lr=1.0)
    timed = optim.SGD([p], lr=optim.schedules.Linear(1.0, 0.0, 5))
    average = optim.EMA([p])
    return [
        (lambda: optim.clip_grad_norm_([p], 0.0), errors.ArgumentError, "max_norm=0.0"),
        (lambda: optim.clip_grad_norm_([p], 1.0, 0.5), errors.ArgumentError, "norm_type=0.5"),
        (lambda: optim.clip_grad_norm_([1.0], 1.0), errors.ArgumentError, "a float"),
        (lambda: optim.clip_grad_value_([p], -1.0), errors.ArgumentError, "clip_value=-1.0"),
        (lambda: optim.EMA([]), errors.ArgumentError, "no parameters"),
        (lambda: optim.EMA([1.0]), errors.ArgumentError, "a float"),
        (lambda: optim.EMA([p], 1.0), errors.ArgumentError, "decay=1.0"),
        (
            lambda: average.load_state_dict({"averages": [], "count": 0}),
            errors.StructureError,
            "0 parameters",
        ),
        (
            lambda: average.load_state_dict({"averages": [np.ones(2)], "count": 0}),
            errors.ShapeError,
            "parameter 0",
        ),
        (lambda: optim.ReduceLROnPlateau(sgd, "best"), errors.ArgumentError, "mode='best'"),
        (lambda: optim.ReduceLROnPlateau(sgd, factor=1), errors.ArgumentError, "factor=1"),
        (lambda: optim.ReduceLROnPlateau(timed), errors.ArgumentError, "schedule"),
    ]


@pytest.mark.parametrize("case", range(12))
def test_errors(case):
    act, error, message = refusals()[case]
    with pytest.raises(error, match=message):
        act()
