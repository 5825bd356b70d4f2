"""Adagrad, RMSprop, Adadelta and Lion: hand-computed steps, compiled steps, saved states."""

import pickle

import numpy as np
import pytest

import wengert as wg
from wengert import errors, nn, optim

P0 = np.array([1.0, -2.0, 0.5])
G = [np.array([0.5, -1.0, 2.0]), np.array([-1.0, 0.25, 1.0]), np.array([3.0, 0.0, -0.5])]

MAKERS = {
    "adagrad": lambda p: optim.Adagrad(p, 0.1),
    "adagrad, all options": lambda p: optim.Adagrad(p, 0.1, 0.2, 0.3, 0.4, 1e-3),
    "rmsprop": lambda p: optim.RMSprop(p, 0.1),
    "rmsprop, all options": lambda p: optim.RMSprop(p, 0.1, 0.9, 1e-3, 0.2, 0.5, True),
    "adadelta": lambda p: optim.Adadelta(p),
    "adadelta, all options": lambda p: optim.Adadelta(p, 0.5, 0.8, 1e-3, 0.2),
    "lion": lambda p: optim.Lion(p, 0.1),
    "lion, all options": lambda p: optim.Lion(p, 0.1, (0.8, 0.6), 0.3),
}


def path(make, gradients=G, dtype=float):
    """The parameters after each step with the given gradients."""
    p = nn.Parameter(P0, dtype=dtype)
    optimizer = make([p])
    positions = []
    for g in gradients:
        p.grad = g.astype(dtype)
        optimizer.step()
        positions.append(p.numpy().copy())
    return positions


def test_adagrad():
    lr, lr_decay, decay, start, eps = 0.1, 0.2, 0.3, 0.4, 1e-3
    p, total, want = P0, start, []
    for k, g in enumerate(G):
        g = g + decay * p
        total = total + g**2
        p = p - lr / (1 + k * lr_decay) * g / (np.sqrt(total) + eps)
        want.append(p)
    np.testing.assert_allclose(path(MAKERS["adagrad, all options"]), want, rtol=1e-14)


def test_rmsprop():
    lr, a, eps, decay, momentum = 0.1, 0.9, 1e-3, 0.2, 0.5
    p, square, mean, velocity, want = P0, 0.0, 0.0, 0.0, []
    for g in G:
        g = g + decay * p
        square = a * square + (1 - a) * g**2
        mean = a * mean + (1 - a) * g
        velocity = momentum * velocity + g / (np.sqrt(square - mean**2) + eps)
        p = p - lr * velocity
        want.append(p)
    np.testing.assert_allclose(path(MAKERS["rmsprop, all options"]), want, rtol=1e-13)


def test_adadelta():
    lr, rho, eps, decay = 0.5, 0.8, 1e-3, 0.2
    p, square, moved, want = P0, 0.0, 0.0, []
    for g in G:
        g = g + decay * p
        square = rho * square + (1 - rho) * g**2
        change = -np.sqrt(moved + eps) / np.sqrt(square + eps) * g
        moved = rho * moved + (1 - rho) * change**2
        p = p + lr * change
        want.append(p)
    np.testing.assert_allclose(path(MAKERS["adadelta, all options"]), want, rtol=1e-13)


def test_lion():
    lr, (b1, b2), decay = 0.1, (0.8, 0.6), 0.3
    p, mean, want = P0, 0.0, []
    for g in G:
        p = p - lr * (np.sign(b1 * mean + (1 - b1) * g) + decay * p)
        mean = b2 * mean + (1 - b2) * g
        want.append(p)
    np.testing.assert_allclose(path(MAKERS["lion, all options"]), want, rtol=1e-14)


def test_equal_gradients_give_no_negative_variance():
    steps = path(lambda p: optim.RMSprop(p, 1e-3, 0.5, centered=True), [G[0]] * 80)
    assert np.all(np.isfinite(steps))


@pytest.mark.sample(4)
@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_compiled_steps_agree_with_eager(make):
    target = np.array([0.3, 0.1, -0.2])

    def train(compiled):
        p = nn.Parameter(P0)
        optimizer = make([p])

        def step():
            optimizer.zero_grad()
            loss = np.sum((p - target) ** 4)
            loss.backward()
            optimizer.step()
            return loss

        step = wg.jit(step) if compiled else step
        losses = [step().item() for _ in range(4)]
        return losses, p.numpy()

    for got, want in zip(train(True), train(False), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12)


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_single_precision_is_kept(make):
    single = path(make, dtype=np.float32)
    assert single[-1].dtype == np.float32
    np.testing.assert_allclose(single, path(make), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_saved_states_make_the_same_steps(make):
    p = nn.Parameter(P0)
    optimizer = make([p])
    p.grad = G[0]
    optimizer.step()
    q = nn.Parameter(p.numpy())
    other = make([q])
    other.load_state_dict(pickle.loads(pickle.dumps(optimizer.state_dict())))
    for g in G[1:]:
        p.grad = q.grad = g
        optimizer.step()
        other.step()
    np.testing.assert_array_equal(q.numpy(), p.numpy())


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda p: optim.Adagrad([p], lr_decay=-1.0), "lr_decay must be"),
        (lambda p: optim.RMSprop([p], alpha=1.5), "alpha must be"),
        (lambda p: optim.RMSprop([p], momentum=-0.1), "momentum must be"),
        (lambda p: optim.Adadelta([p], eps=0.0), "eps must be"),
        (lambda p: optim.Adadelta([p], rho=2.0), "rho must be"),
        (lambda p: optim.Lion([p], betas=(0.9,)), "betas must be"),
    ],
)
def test_errors(make, message):
    with pytest.raises(errors.ArgumentError, match=message) as caught:
        make(nn.Parameter(P0))
    assert "test_adaptive_optimizers.py" in str(caught.value)


def test_steps_of_complex_parameters_decrease_the_loss():
    for make, rate in ((optim.Adagrad, 0.5), (optim.RMSprop, 0.02)):
        p = nn.Parameter(np.array([1.0 + 2.0j]))
        optimizer = make([p], lr=rate)
        for _ in range(400):
            optimizer.zero_grad()
            np.sum(np.abs(p - (0.5 - 0.5j)) ** 2).backward()
            optimizer.step()
        assert abs(p.numpy()[0] - (0.5 - 0.5j)) < 0.05
