"""A training step in one compiled function: zero_grad, backward, step, a rate that changes."""

import copy
import pickle

import numpy as np
import pytest

import wengert as wg
from wengert import nn, optim
from wengert.errors import ArgumentError, TraceError


class Nothing:
    """Instead of jit."""

    def __call__(self, f):
        return f


EAGER = Nothing()


def data(count=12, dtype=float):
    gen = np.random.default_rng(1)
    for k in range(count):
        n = 5 + k % 3
        yield gen.normal(size=(n, 4)).astype(dtype), gen.integers(0, 3, n)


def network(dtype=float, dropout=0.0):
    gen = np.random.default_rng(0)
    return nn.Sequential(
        nn.Linear(4, 5, rng=gen, dtype=dtype),
        nn.ReLU(),
        nn.Dropout(dropout, wg.random.Stream(3)),
        nn.Linear(5, 3, rng=gen, dtype=dtype),
    )


OPTIMISERS = {
    "sgd": lambda p: optim.SGD(p, lr=0.1),
    "momentum": lambda p: optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True, weight_decay=1e-3),
    "adam": lambda p: optim.Adam(p, lr=0.1, weight_decay=1e-3),
    "adamw": lambda p: optim.AdamW(p, lr=0.1),
    "groups": lambda p: optim.Adam([{"params": list(p)[:2], "lr": 0.01}, {"params": []}]),
}


def run(compiled, make=OPTIMISERS["adam"], dtype=float, dropout=0.0):
    """Losses of some steps, and the parameters at their end."""
    model, loss_fn = network(dtype, dropout), nn.CrossEntropyLoss()
    optimizer = make(model.parameters())

    @compiled
    def step(x, y):
        optimizer.zero_grad()
        loss = loss_fn(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    losses = []
    for k, (x, y) in enumerate(data(dtype=dtype)):
        optimizer.lr = 0.1 / (1 + k)
        losses.append(step(x, y).item())
    return losses, model.state_dict(), model, optimizer, step


def agree(a, b, rtol=1e-11):
    np.testing.assert_allclose(a[0], b[0], rtol=rtol)
    for name in a[1]:
        assert a[1][name].dtype == b[1][name].dtype
        np.testing.assert_allclose(a[1][name], b[1][name], rtol=rtol, atol=rtol)


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", OPTIMISERS)
def test_steps_agree_with_eager_ones(name):
    got, want = run(wg.jit, OPTIMISERS[name]), run(EAGER, OPTIMISERS[name])
    agree(got, want)
    for p, q in zip(got[2].parameters(), want[2].parameters(), strict=True):
        np.testing.assert_allclose(p.grad.numpy(), q.grad.numpy(), rtol=1e-9, atol=1e-12)
        assert not p.grad.node.is_traced and p.is_leaf and p.requires_grad
    assert got[4].cache_info().programs <= 2


def test_single_precision_stays():
    agree(run(wg.jit, dtype="f4"), run(EAGER, dtype="f4"), rtol=2e-4)


def test_dropout_drops_the_same():
    agree(run(wg.jit, dropout=0.4), run(EAGER, dropout=0.4))


def test_eager_and_compiled_steps_take_turns():
    model, other = network(), network()
    a, b = optim.Adam(model.parameters(), lr=0.1), optim.Adam(other.parameters(), lr=0.1)

    def step_of(model, optimizer):
        def step(x):
            optimizer.zero_grad()
            loss = np.sum(model(x) ** 2)
            loss.backward()
            optimizer.step()
            return loss

        return step

    eager, compiled, want = step_of(model, a), wg.jit(step_of(model, a)), step_of(other, b)
    x = np.ones((2, 4))
    for way in (eager, compiled, compiled, eager, eager, compiled):
        np.testing.assert_allclose(way(x).item(), want(x).item(), rtol=1e-11)
    for p, q in zip(model.parameters(), other.parameters(), strict=True):
        np.testing.assert_allclose(p.numpy(), q.numpy(), rtol=1e-11)


def test_state_of_a_compiled_optimizer():
    *_, model, optimizer, step = run(wg.jit)
    state = optimizer.state_dict()
    assert all(type(s["step"]) is int and s["step"] == 12 for s in state["states"])
    assert all(type(s["mean"]) is np.ndarray for s in state["states"])
    weights = model.state_dict()
    x, y = next(data())
    after = step(x, y).item()
    step(x, y)
    optimizer.load_state_dict(state)
    model.load_state_dict(weights)
    assert step(x, y).item() == after
    again = pickle.loads(pickle.dumps(optimizer))
    assert again.state_dict()["states"][0]["step"] == 13
    assert repr(copy.deepcopy(optimizer)) == repr(optimizer)


def test_the_rate_as_an_argument():
    p = nn.Parameter([1.0, 2.0])
    optimizer = optim.SGD([p], lr=1.0)

    @wg.jit
    def step(rate):
        optimizer.lr = rate
        optimizer.zero_grad()
        np.sum(p * p).backward()
        optimizer.step()

    want = np.array([1.0, 2.0])
    for rate in (0.1, 0.2, 0.0):
        step(rate)
        want = want - rate * 2.0 * want
        np.testing.assert_allclose(p.numpy(), want)
        assert optimizer.lr == rate
    assert step.cache_info().traces == 1
    assert optimizer.state_dict()["groups"][0]["lr"] == 0.0


def test_options_that_change_are_noticed():
    p = nn.Parameter([1.0, 2.0])
    optimizer = optim.SGD([p], lr=0.1)

    @wg.jit
    def step():
        optimizer.zero_grad()
        np.sum(p * p).backward()
        optimizer.step()

    step()
    optimizer.param_groups[0]["weight_decay"] = 1.0
    step()
    np.testing.assert_allclose(p.numpy(), np.array([1.0, 2.0]) * 0.8 * 0.7)
    optimizer.param_groups[0].update(lr=0.5, weight_decay=0.0)
    step()
    np.testing.assert_allclose(p.numpy(), [0.0, 0.0], atol=1e-15)


def test_gradients_add_up_as_they_do_eagerly():
    def pair():
        return nn.Parameter([1.0, 2.0]), nn.Parameter([3.0, 4.0])

    def way(decorate):
        p, q = pair()

        @decorate
        def f(x):
            loss = np.sum(p * x)
            loss.backward()
            return loss

        @decorate
        def g(x):
            q.zero_grad()
            np.sum(q * x).backward()
            np.sum(q * q).backward()
            norm = np.sum(q.grad**2)
            return norm

        @decorate
        def h(x):
            np.sum(p * x).backward()
            p.zero_grad()

        out = [f(np.ones(2)), f(np.array([2.0, 3.0])), g(np.ones(2)), g(np.ones(2))]
        grads = [p.grad.numpy(), q.grad.numpy()]
        h(np.ones(2))
        return [x.item() for x in out], grads, p.grad

    got, want = way(wg.jit), way(EAGER)
    assert got[0] == want[0] and got[2] is want[2] is None
    np.testing.assert_array_equal(got[1], want[1])


def test_backward_refusals():
    p = nn.Parameter([1.0, 2.0])
    optimizer = optim.SGD([p], lr=0.1)

    @wg.jit
    def without_zero_grad():
        np.sum(p * p).backward()
        optimizer.step()

    with pytest.raises(TraceError, match=r"zero_grad\(\)"):
        without_zero_grad()
    with pytest.raises(TraceError, match=r"zero_grad\(\)"):
        wg.jit(lambda: p.grad * 2.0)()
    loss = np.sum(p * p)
    with pytest.raises(TraceError, match="run once"):
        wg.jit(lambda x: loss.backward())(1.0)
    with pytest.raises(TraceError, match=r"wengert\.jit"):
        wg.trace(lambda: np.sum(p * p).backward())()
    with pytest.raises(TraceError, match="differentiable gradients"):
        wg.jit(lambda: np.sum(p**3).backward(create_graph=True))()
    assert p.grad is None and not p.node.is_traced
    with pytest.raises(TraceError, match=r"x\.detach\(\)"):
        f = wg.jit(lambda x: np.sum(p * x).backward())
        f(wg.tensor([1.0, 2.0], requires_grad=True))

    class Stateful(optim.Optimizer):
        def update(self, p, g, state, options):
            state["old"] = g
            return -options["lr"] * g

    own = Stateful([p], lr=0.1, weight_decay=0.0)

    @wg.jit
    def step():
        own.zero_grad()
        np.sum(p * p).backward()
        own.step()

    with pytest.raises(ArgumentError, match="begin"):
        step()


def test_second_order_inside():
    p = nn.Parameter([1.0, 2.0])

    def f(x):
        p.zero_grad()
        np.sum(p**3 * x).backward(create_graph=True)
        first = p.grad
        p.zero_grad()
        np.sum(first**2).backward()

    x = np.array([1.0, -1.0])
    f(x)
    want = p.grad.numpy()
    wg.jit(f)(x)
    np.testing.assert_allclose(p.grad.numpy(), want)


def test_backward_by_some_inputs_and_from_a_cotangent():
    p, q = nn.Parameter([1.0, 2.0]), nn.Parameter([3.0, 4.0])

    @wg.jit
    def f(t):
        p.zero_grad()
        (p * q).backward(t, inputs=[p])

    f(np.array([1.0, 10.0]))
    np.testing.assert_array_equal(p.grad.numpy(), [3.0, 40.0])
    assert q.grad is None
