"""Traced models: one graph for all batch sizes, parameters read at each run, names and scopes."""

import numpy as np
import pytest

import wengert as wg
from wengert import nn
from wengert.errors import ArgumentError, DtypeError, ShapeError, TraceError
from wengert.nn import functional as F
from wengert.testing.op_checks import check_traced


def net(rng=0, dropout=None):
    gen = np.random.default_rng(rng)
    steps = [nn.Linear(4, 5, rng=gen), nn.ReLU(), nn.Linear(5, 3, rng=gen)]
    if dropout is not None:
        steps.insert(2, dropout)
    return nn.Sequential(*steps)


ACTIVATIONS = [F.relu, F.leaky_relu, F.sigmoid, F.log_sigmoid, F.softplus, F.silu, F.tanh]


@pytest.mark.parametrize("f", ACTIVATIONS, ids=lambda f: f.__name__)
def test_activations(f, rng):
    check_traced(f, [rng.normal(size=(3, 4))])


@pytest.mark.parametrize("f", [F.softmax, F.log_softmax], ids=lambda f: f.__name__)
@pytest.mark.parametrize("axis", [0, -1])
def test_softmax(f, axis, rng):
    check_traced(lambda x: f(x, axis), [rng.normal(size=(3, 4))])


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_losses(reduction, rng):
    x, y = rng.normal(size=(3, 4)), rng.random((3, 4))
    p = rng.random((3, 4))
    check_traced(lambda x, y: F.mse_loss(x, y, reduction), [x, y])
    check_traced(lambda x, y: F.l1_loss(x, y, reduction), [x, y])
    check_traced(lambda x, y: F.cross_entropy(x, y, reduction), [x, y])
    check_traced(lambda x, y: F.binary_cross_entropy_with_logits(x, y, reduction), [x, y])
    check_traced(lambda p, y: F.binary_cross_entropy(p, y, reduction), [p, y])
    sure = np.round(p)
    with np.errstate(divide="ignore"):  # log(0) in branches that are not selected
        check_traced(lambda p: F.binary_cross_entropy(p, np.round(p), reduction), [sure])
    classes = rng.integers(0, 4, 3)
    check_traced(lambda x, c: F.cross_entropy(x, c, reduction), [x, classes])
    check_traced(lambda x, c: F.nll_loss(F.log_softmax(x), c, reduction), [x, classes])
    images, pixels = rng.normal(size=(2, 5, 3)), rng.integers(0, 5, (2, 3))
    check_traced(lambda x, c: F.cross_entropy(x, c, reduction, axis=1), [images, pixels])


def test_classes_that_do_not_exist():
    graph = wg.trace(F.cross_entropy)(wg.spec(("n", 4)), wg.spec("n", int))
    x = np.zeros((2, 4))
    assert float(graph(x, np.array([0, 3]))) == pytest.approx(np.log(4))
    for wrong in ([0, 4], [-1, 0]):
        with pytest.raises(ArgumentError, match=f"number {min(wrong) or 4} of 4 classes"):
            graph(x, np.array(wrong))


def test_losses_refuse_shapes():
    with pytest.raises(ShapeError, match="equal sizes one name"):
        wg.trace(F.mse_loss)(wg.spec(("n", 2)), wg.spec(("m", 2)))
    with pytest.raises(ShapeError, match=r"shape \(n,\)"):
        wg.trace(F.cross_entropy)(wg.spec(("n", 4)), wg.spec(("n", 1), int))
    with pytest.raises(DtypeError, match="bool"):
        wg.trace(F.cross_entropy)(wg.spec(("n", 4)), wg.spec("n", bool))
    with pytest.raises(ShapeError, match=r"\(n, 3\)"):
        wg.trace(net())(wg.spec(("n", 3)))


def test_one_graph_for_every_batch(rng):
    model = net()
    graph = wg.trace(model)(wg.spec(("batch", 4)))
    for batch in (1, 2, 17):
        x = rng.normal(size=(batch, 4))
        np.testing.assert_allclose(graph(x), model(x).numpy(), rtol=1e-14)


def test_flatten_has_a_symbolic_batch(rng):
    model = nn.Sequential(nn.Flatten(), nn.Linear(6, 2, rng=0))
    graph = wg.trace(model)(wg.spec(("batch", 2, 3)))
    x = rng.normal(size=(5, 2, 3))
    np.testing.assert_allclose(graph(x), model(x).numpy(), rtol=1e-14)


def test_updates_of_parameters_are_seen(rng):
    model = net()
    model.steps[0].requires_grad_(False)
    graph = wg.trace(model)(wg.spec(("batch", 4)))
    assert [p.requires_grad for p in model.parameters()] == [False, False, True, True]
    x = rng.normal(size=(3, 4))
    with wg.no_grad():
        for p in model.parameters():
            p += 0.5
    np.testing.assert_allclose(graph(x), model(x).numpy(), rtol=1e-14)
    model.load_state_dict(net(rng=7).state_dict())
    np.testing.assert_allclose(graph(x), net(rng=7)(x).numpy(), rtol=1e-14)


def test_names_and_scopes():
    model = nn.Sequential(net(), nn.Tanh())
    graph = wg.trace(model)(wg.spec(("batch", 4)))
    names = [n.name for n in graph.variables]
    assert sorted(names) == sorted(name for name, _ in model.named_parameters())
    scopes = {n.op.name: n.scope for n in graph.nodes if n.args}
    assert scopes["tanh"] == "Sequential/1"
    assert {n.scope for n in graph.nodes if n.op.name in ("einsum", "matmul", "dot")} == {
        "Sequential/0/0",
        "Sequential/0/2",
    }


def test_the_same_module_twice_and_others_outside(rng):
    shared = nn.Linear(4, 4, rng=0)

    def f(x):
        return shared(np.tanh(shared(x)))

    graph = wg.trace(f)(wg.spec(("batch", 4)))
    assert len(graph.variables) == 2
    x = rng.normal(size=(3, 4))
    np.testing.assert_allclose(graph(x), f(x).numpy(), rtol=1e-14)


def test_gradient_with_respect_to_parameters(rng):
    model = net()
    x, y = rng.normal(size=(6, 4)), rng.normal(size=(6, 3))

    def loss(p, x, y):
        return F.mse_loss(nn.functional_call(model, p, x), y)

    state = model.state_dict()
    graph = wg.trace(wg.grad(loss))(state, wg.spec(("batch", 4)), wg.spec(("batch", 3)))
    for n in (6, 2):
        got, want = graph(state, x[:n], y[:n]), wg.grad(loss)(state, x[:n], y[:n])
        for name in state:
            np.testing.assert_allclose(got[name], want[name], rtol=1e-12, atol=1e-15)


def test_gradient_with_respect_to_the_input_sees_the_parameters(rng):
    model = net()
    graph = wg.trace(wg.grad(lambda x: np.sum(model(x) ** 2)))(wg.spec(("batch", 4)))
    x = rng.normal(size=(3, 4))
    for rng_ in (0, 5):
        model.load_state_dict(net(rng=rng_).state_dict())
        want = wg.grad(lambda x: np.sum(model(x) ** 2))(x)
        np.testing.assert_allclose(graph(x), want.numpy(), rtol=1e-12)


def test_built_by_hand(rng):
    model = net()
    x = wg.input("x", shape=("batch", 4))
    f = wg.computation(model(x), x)
    a = rng.normal(size=(2, 4))
    np.testing.assert_allclose(f(a), model(a).numpy(), rtol=1e-14)


class Normalize(nn.Module):
    """A layer with a running mean, updated by each call in training."""

    def __init__(self, features):
        self.mean = wg.variable(np.zeros(features), "mean", differentiable=False)
        self.scale = nn.Parameter(np.ones(features))

    def forward(self, x):
        if not self.training:
            return (x - self.mean) * self.scale
        now = np.mean(x, axis=0)
        self.mean[...] = 0.9 * self.mean + 0.1 * now
        return (x - now) * self.scale


def test_running_statistics_are_updates(rng):
    eager, model = Normalize(3), Normalize(3)
    graph = wg.trace(model)(wg.spec(("batch", 3)))
    assert not np.any(model.mean.numpy())
    for n in (2, 5):
        x = rng.normal(size=(n, 3))
        np.testing.assert_allclose(graph(x), eager(x).numpy(), rtol=1e-14)
        np.testing.assert_allclose(model.mean.numpy(), eager.mean.numpy(), rtol=1e-14)
    model.eval(), eager.eval()
    evaluated = wg.trace(model)(wg.spec(("batch", 3)))
    np.testing.assert_allclose(evaluated(x), eager(x).numpy(), rtol=1e-14)


def test_dropout(rng):
    x = np.ones((50, 4))
    with pytest.raises(TraceError, match=r"rng=wengert\.random\.Stream\(seed\).*model\.eval\(\)"):
        wg.trace(net(dropout=nn.Dropout(rng=0)))(wg.spec(("batch", 4)))
    with pytest.raises(TraceError, match="dropout"):
        F.dropout(wg.input("x", shape=3))
    still = net(dropout=nn.Dropout(rng=0)).eval()
    np.testing.assert_allclose(wg.trace(still)(x)(x), still(x).numpy(), rtol=1e-14)

    model = nn.Sequential(nn.Dropout(0.25, rng=wg.random.Stream(3)))
    graph = wg.trace(model)(wg.spec(("batch", 4)))
    first, second = graph(x), graph(x)
    assert np.any(first != second)
    assert set(np.unique(first)) == {0.0, 1.0 / 0.75}
    again = nn.Sequential(nn.Dropout(0.25, rng=wg.random.Stream(3)))
    np.testing.assert_array_equal(again(x), first)
    np.testing.assert_array_equal(again(x), second)


def test_a_training_step_is_a_graph(rng):
    x, y = rng.normal(size=(8, 4)), rng.normal(size=(8, 3))
    model, twin = net(), net()

    def step(x, y):
        state = {name: p.detach() for name, p in model.named_parameters()}
        value, slopes = wg.value_and_grad(lambda p: F.mse_loss(nn.functional_call(model, p, x), y))(
            state
        )
        with wg.no_grad():
            for name, p in model.named_parameters():
                p -= 0.1 * slopes[name]
        return value

    graph = wg.trace(step)(wg.spec(("batch", 4)), wg.spec(("batch", 3)))
    losses = [float(graph(x, y)) for _ in range(3)]
    for expected in losses:
        twin.zero_grad()
        loss = F.mse_loss(twin(x), y)
        loss.backward()
        with wg.no_grad():
            for p in twin.parameters():
                p -= 0.1 * p.grad
        assert expected == pytest.approx(loss.item(), rel=1e-12)
    for p, q in zip(model.parameters(), twin.parameters(), strict=True):
        np.testing.assert_allclose(p.numpy(), q.numpy(), rtol=1e-12)


def test_one_sample_has_no_variance_in_compiled_steps_either(rng):
    """The program for batches of any size is not used for a batch of one."""
    norm = nn.BatchNorm1d(3)
    step = wg.jit(norm)
    for count in (5, 4):
        step(rng.normal(size=(count, 3)))
    with pytest.raises(ShapeError, match="variance of 1 value"):
        step(rng.normal(size=(1, 3)))
    assert np.all(np.isfinite(norm.running_var.numpy()))
    step(rng.normal(size=(6, 3)))
