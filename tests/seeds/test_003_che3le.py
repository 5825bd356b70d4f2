"""What was wrong in che3le, one test for each fault (SEED_SYSTEMS 003.4)."""

import numpy as np
import pytest

import wengert as wg
from wengert import nn, optim
from wengert.nn import functional


def test_a_value_used_twice_is_visited_once_and_late():
    """1: x*3 -> (.5) + (.7) gave 57, truth 36."""
    x = wg.tensor(1.0, requires_grad=True)
    y = x * 3.0
    (y * 5.0 + y * 7.0).backward()
    assert x.grad.item() == 36.0


def test_chained_diamonds_are_right_and_take_linear_time(calls):
    """1: 10 diamonds gave 3.5e17 instead of 1024; each doubled the time."""

    def diamonds(n):
        x = y = wg.tensor(1.0, requires_grad=True)
        for _ in range(n):
            y = y * 1.0 + y * 1.0
        y.backward()
        return x.grad.item()

    assert diamonds(10) == 1024.0
    assert diamonds(1000) == 2.0**1000
    assert calls(diamonds, 1000) < 11 * calls(diamonds, 100)


def test_losses_multiply_the_upstream_gradient_in(rng):
    """2: 10 * mse had the gradient of mse."""
    p, y = rng.normal(size=(3, 5)), rng.normal(size=(3, 5))
    for loss in (functional.mse_loss, functional.binary_cross_entropy_with_logits):
        once = wg.grad(loss)(p, np.abs(np.tanh(y)))
        ten = wg.grad(lambda p, y, f=loss: 10.0 * f(p, y))(p, np.abs(np.tanh(y)))
        np.testing.assert_allclose(ten, 10.0 * once, rtol=1e-14)


def test_the_factor_of_mse():
    """3: 0.667 for a (3, 5) input, truth 0.133."""
    got = wg.grad(functional.mse_loss)(np.ones((3, 5)), np.zeros((3, 5)))
    np.testing.assert_allclose(got, 2.0 / 15.0, rtol=1e-15)


def test_unary_power_and_reflected_operators():
    """4: -x, mean, sum and the gradient of ** raised TypeError; 2 * x and 1 - x failed."""
    x = wg.tensor([1.0, 2.0], requires_grad=True)
    y = (-x).sum() + x.mean() + (x**2).sum() + (2.0 * x).sum() + (1.0 - x).sum() + (3.0 / x).sum()
    (y + (2.0**x).sum()).backward()
    v = np.array([1.0, 2.0])
    want = -1.0 + 0.5 + 2 * v + 2.0 - 1.0 - 3.0 / v**2 + 2.0**v * np.log(2.0)
    np.testing.assert_allclose(x.grad.numpy(), want, rtol=1e-14)


@pytest.mark.parametrize("shape", [(1, 3), (2, 1), (3,), (), (1, 1)])
def test_broadcast_gradients_have_the_shape_of_the_value(shape):
    """5: a (1, 3) row bias got a (2, 1) gradient; inner values kept the wrong shape."""
    b = wg.tensor(np.ones(shape), requires_grad=True)
    inner = b * 2.0
    inner.retain_grad()
    (wg.tensor(np.arange(6.0).reshape(2, 3)) * inner).sum().backward()
    assert b.grad.shape == inner.grad.shape == shape
    x = np.arange(6.0).reshape(2, 3)
    shown = {(1, 3): x.sum(0, keepdims=True), (2, 1): x.sum(1, keepdims=True), (3,): x.sum(0)}
    want = shown.get(shape, np.full(shape, x.sum()))
    np.testing.assert_array_equal(inner.grad.numpy(), want)
    np.testing.assert_array_equal(b.grad.numpy(), 2.0 * want)


def test_a_second_backward_starts_afresh():
    """6: gradients of inner values and the seed stayed: 6 after zeroing, truth 3."""
    x = wg.tensor(2.0, requires_grad=True)
    y = x * 3.0
    z = y * 1.0
    z.backward()
    x.zero_grad()
    z.backward()
    assert x.grad.item() == 3.0
    z.backward()
    assert x.grad.item() == 6.0  # added to, as documented


def test_a_target_may_require_a_gradient():
    """6: crashed."""
    p = wg.tensor([1.0, 2.0], requires_grad=True)
    t = wg.tensor([0.0, 0.0], requires_grad=True)
    functional.mse_loss(p, t).backward()
    np.testing.assert_array_equal(t.grad.numpy(), -p.grad.numpy())


def test_losses_at_impossible_probabilities():
    """7: inf at p = 0; layouts of softmax, CE and NLL disagreed."""
    logits, classes = np.array([[-1000.0, 1000.0], [0.0, 0.0]]), np.array([0, 1])
    value, grad = wg.value_and_grad(functional.cross_entropy)(logits, classes)
    assert float(value) == pytest.approx((2000.0 + np.log(2.0)) / 2)
    np.testing.assert_allclose(grad, [[-0.5, 0.5], [0.25, -0.25]])
    with_nll = functional.nll_loss(functional.log_softmax(logits, -1), classes)
    assert float(with_nll) == float(value)


def test_dtypes_are_applied_and_shapes_stay_in_the_graph():
    """8: dtype was ignored; T and [] left the graph; view worked in place."""
    x = wg.tensor([[1, 2], [3, 4]], dtype="float32", requires_grad=True)
    assert x.dtype == np.float32
    (x.T[0] * 2.0 + x.reshape(4)[:2]).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [[3.0, 1.0], [2.0, 0.0]])
    assert x.shape == (2, 2) and x.grad.dtype == np.float32
    assert wg.numpy.zeros((2,)).shape == (2,)


def test_modules_in_lists_and_modes():
    """9: layers in a list had no parameters; eval() was not recursive, and nothing read it."""

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = [nn.Linear(2, 3), nn.Sequential(nn.Dropout(0.5), nn.Linear(3, 1))]

    net = Net()
    assert len(list(net.parameters())) == 4
    net.eval()
    assert not any(m.training for m in net.modules())
    x = np.ones((4, 3))
    np.testing.assert_array_equal(net.layers[1][0](x), x)
    assert len(net.state_dict()) == 4


def test_the_optimizer_accepts_parameters_without_gradient():
    """10: crashed."""
    a, b = nn.Parameter(np.ones(2)), nn.Parameter(np.ones(2))
    (a * a).sum().backward()
    optim.SGD([a, b], lr=0.1, momentum=0.9).step()
    np.testing.assert_allclose(a.numpy(), 0.8)
    np.testing.assert_array_equal(b.numpy(), 1.0)


def test_the_same_run_gives_the_same_bits():
    """13: sets of objects were walked in random order; no no_grad, no second order."""

    def run():
        rng = np.random.default_rng(0)
        w = wg.tensor(rng.normal(size=(20, 20)), requires_grad=True)
        y = w
        for _ in range(10):
            y = np.tanh(y @ w) + y * w
        y.sum().backward()
        return w.grad.numpy()

    first = run()
    for _ in range(3):
        np.testing.assert_array_equal(run(), first)
    x = wg.tensor(2.0, requires_grad=True)
    with wg.no_grad():
        assert not (x * x).requires_grad
    (x**3).backward(create_graph=True)
    slope = x.grad
    x.zero_grad()
    slope.backward()
    assert x.grad.item() == 12.0
