"""Buffers: eager, compiled, as arguments of functions."""

import copy
import io
import pickle

import numpy as np
import pytest

import wengert as wg
from wengert import errors, nn, optim
from wengert.nn import functional as F


class Counting(nn.Module):
    def __init__(self):
        self.register_buffer("calls", 0)
        self.register_buffer("mask", [1.0, 0.0], persistent=False)
        self.register_buffer("nothing", None)
        self.inner = [nn.BatchNorm1d(2)]

    def forward(self, x):
        self.calls = self.calls + 1
        return self.inner[0](x) * self.mask


def plainly(f):
    return f


def test_buffers_are_found_and_saved():
    model = Counting()
    names = ["calls", "mask", *(f"inner.0.{n}" for n in ("running_mean", "running_var"))]
    assert [n for n, _ in model.named_buffers()] == [*names, "inner.0.num_batches_tracked"]
    assert len(list(model.buffers())) == 5 and model.nothing is None
    state = model.state_dict()
    assert "mask" not in state and state["calls"].dtype == int
    assert "inner.0.running_mean" in state and "inner.0.weight" in state
    assert [n for n, _ in model.named_parameters()] == ["inner.0.weight", "inner.0.bias"]
    assert model.get_buffer("inner.0.running_var") is model.inner[0].running_var
    with pytest.raises(errors.StructureError, match=r"Counting has no buffer 'call'.*'calls'"):
        model.get_buffer("call")


@pytest.mark.parametrize("compiled", [plainly, wg.jit], ids=["eager", "jit"])
def test_what_forward_assigns_is_written(compiled, rng):
    model = Counting()
    held = model.calls
    f = compiled(model)
    for _ in range(3):
        f(rng.normal(size=(4, 2)))
    assert model.calls is held and int(held) == 3 and not held.requires_grad
    with pytest.raises(errors.ShapeError, match=r"Counting\.calls has shape \(\).*\(2,\)"):
        model.calls = np.zeros(2)
    model.calls = nn.Buffer([1, 2])
    assert model.calls is not held and model.calls.shape == (2,)


@pytest.mark.parametrize(
    "duplicate",
    [
        copy.deepcopy,
        lambda m: pickle.loads(pickle.dumps(m)),
        lambda m: (lambda twin: (twin.load_state_dict(m.state_dict()), twin)[1])(Counting()),
    ],
    ids=["deepcopy", "pickle", "state"],
)
def test_copies_stand_alone(duplicate, rng):
    model, x = Counting(), rng.normal(size=(5, 2))
    model(x)
    twin = duplicate(model)
    assert all(isinstance(b, nn.Buffer) for b in twin.buffers()) and not twin.mask.persistent
    for a, b in zip(model.buffers(), twin.buffers(), strict=True):
        assert a is not b and a.dtype == b.dtype
        np.testing.assert_array_equal(a.numpy(), b.numpy())
    twin(x)
    assert int(model.calls) == 1 and int(twin.calls) == 2
    assert int(wg.jit(twin)(x) is not None) and int(twin.calls) == 3


def test_buffers_are_kept_in_files():
    file = io.BytesIO()
    wg.save([nn.Buffer([1.0, 2.0])], file)
    file.seek(0)
    (again,) = wg.load(file)
    assert isinstance(again, nn.Buffer)
    np.testing.assert_array_equal(again.numpy(), [1.0, 2.0])


# ---- running statistics ------------------------------------------------------------------------


def network(momentum=0.1, dtype=float):
    gen = np.random.default_rng(1)
    return nn.Sequential(
        nn.Linear(4, 6, bias=False, rng=gen, dtype=dtype),
        nn.BatchNorm1d(6, momentum=momentum, dtype=dtype),
        nn.Tanh(),
        nn.Linear(6, 3, rng=gen, dtype=dtype),
    )


def trained(compiled, momentum, dtype=float):
    model, rng = network(momentum, dtype), np.random.default_rng(2)
    optimizer = optim.SGD(model.parameters(), lr=0.1)

    @compiled
    def step(x, y):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    losses = []
    for k in range(5):
        x = rng.normal(size=(6 + k % 2, 4)).astype(dtype)
        losses.append(step(x, rng.integers(0, 3, len(x))).item())
    model.eval()
    return losses, model.state_dict(), np.asarray(compiled(lambda x: model(x).detach())(x))


@pytest.mark.sample(1)
@pytest.mark.parametrize(("momentum", "dtype"), [(0.3, float), (None, np.float32)])
def test_compiled_steps_move_running_statistics_as_eager_ones_do(momentum, dtype):
    one, other = trained(plainly, momentum, dtype), trained(wg.jit, momentum, dtype)
    rtol = 1e-11 if dtype is float else 1e-3
    np.testing.assert_allclose(one[0], other[0], rtol=rtol)
    for name, value in one[1].items():
        assert value.dtype == other[1][name].dtype
        np.testing.assert_allclose(value, other[1][name], rtol=rtol, atol=rtol)
    np.testing.assert_allclose(one[2], other[2], rtol=rtol, atol=rtol)
    assert one[1]["1.num_batches_tracked"] == other[1]["1.num_batches_tracked"] == 5


def test_running_statistics_by_hand(rng):
    norm, plain = nn.BatchNorm2d(3, momentum=0.25), nn.BatchNorm2d(3, momentum=None)
    batches = rng.normal(size=(3, 4, 3, 2, 5)) * 3 + 1
    mean, var = np.zeros(3), np.ones(3)
    for x in batches:
        norm(x), plain(x)
        mean = 0.75 * mean + 0.25 * x.mean(axis=(0, 2, 3))
        var = 0.75 * var + 0.25 * x.var(axis=(0, 2, 3), ddof=1)
    np.testing.assert_allclose(norm.running_mean.numpy(), mean, rtol=1e-13)
    np.testing.assert_allclose(norm.running_var.numpy(), var, rtol=1e-13)
    each = batches.mean(axis=(1, 3, 4))
    np.testing.assert_allclose(plain.running_mean.numpy(), each.mean(axis=0), rtol=1e-13)
    norm.eval()
    by_hand = (x - mean[:, None, None]) / np.sqrt(var + 1e-5)[:, None, None]
    np.testing.assert_allclose(norm(x).numpy(), by_hand, rtol=1e-12)
    norm.reset_running_stats()
    assert not norm.running_mean.numpy().any() and int(norm.num_batches_tracked) == 0


def test_variance_of_single_precision_far_from_zero(rng):
    x = (1e4 + rng.normal(size=(4000, 1))).astype(np.float32)
    y = nn.BatchNorm1d(1, affine=False, dtype=np.float32)(x)
    exact = x.astype(float)
    exact = (exact - exact.mean()) / exact.std()
    np.testing.assert_allclose(y, exact, atol=2e-3)
    many = (1e3 + rng.normal(size=(100_000, 1))).astype(np.float32)
    exact = many.astype(float)
    exact = (exact - exact.mean()) / exact.std()
    f = lambda x: F.batch_norm(x, training=True)  # noqa: E731
    for y in (f(many), wg.jit(f)(many)):
        np.testing.assert_allclose(y, exact, atol=2e-4)
    assert y.dtype == np.float32
    half = nn.LayerNorm(300, dtype=np.float16)(np.full((2, 300), 300.0, np.float16))
    assert half.dtype == np.float16 and not half.numpy().any()


def test_one_graph_for_every_batch(rng):
    model, twin = network(), network()
    graph = wg.trace(model)(wg.spec(("batch", 4)))
    for n in (3, 8):
        x = rng.normal(size=(n, 4))
        np.testing.assert_allclose(graph(x), twin(x).numpy(), rtol=1e-12)
        np.testing.assert_allclose(
            model[1].running_var.numpy(), twin[1].running_var.numpy(), rtol=1e-12
        )
    assert {"1.running_mean", "1.num_batches_tracked"} <= {n.name for n in graph.variables}


# ---- as arguments ------------------------------------------------------------------------------


def test_functional_call_with_buffers(rng):
    model, x = network(), rng.normal(size=(6, 4))
    before = model.state_dict()
    given = {"1.running_mean": rng.normal(size=6)}
    model.eval()
    out = nn.functional_call(model, given, x)
    model.load_state_dict({**before, **given})
    np.testing.assert_array_equal(out.numpy(), model(x).numpy())
    model.load_state_dict(before)
    model.train()
    nn.functional_call(model, given, x)  # given buffers are not updated, others are
    after = model.state_dict()
    np.testing.assert_array_equal(after["1.running_mean"], before["1.running_mean"])
    assert after["1.running_var"].any() and after["1.num_batches_tracked"] == 1


@pytest.mark.parametrize("compiled", [plainly, wg.jit], ids=["eager", "jit"])
def test_stateful_call_returns_what_buffers_become(compiled, rng):
    model, twin, x = network(), network(), rng.normal(size=(6, 4))
    state = model.state_dict()
    out, after = compiled(lambda s, x: nn.stateful_call(model, s, x))(state, x)
    np.testing.assert_allclose(out, twin(x).numpy(), rtol=1e-12)
    assert list(after) == [n for n, _ in twin.named_buffers()]
    for name, b in twin.named_buffers():
        np.testing.assert_allclose(after[name], b.numpy(), rtol=1e-12)
    for name, value in model.state_dict().items():
        np.testing.assert_array_equal(value, state[name])


def test_many_models_at_once(rng):
    model = network()
    states = [{n: v * k for n, v in model.state_dict().items()} for k in (1, 2)]
    stacked = {n: np.stack([s[n] for s in states]) for n in states[0]}
    xs, y = rng.normal(size=(2, 6, 4)), rng.integers(0, 3, 6)

    def loss(state, x):
        out, after = nn.stateful_call(model, state, x)
        return F.cross_entropy(out, y), after

    def step(weights, held, x):
        f = lambda w: loss({**w, **held}, x)  # noqa: E731
        return wg.value_and_grad(f, has_aux=True)(weights)

    names = [n for n, _ in model.named_parameters()]
    split = lambda s: ({n: s[n] for n in names}, {n: s[n] for n in s if n not in names})  # noqa: E731
    (values, after), slopes = wg.vmap(step)(*split(stacked), xs)
    for k, state in enumerate(states):
        (value, one), slope = step(*split(state), xs[k])
        np.testing.assert_allclose(values[k], value, rtol=1e-12)
        for n in names:
            np.testing.assert_allclose(slopes[n][k], slope[n], rtol=1e-11, atol=1e-14)
        for n in one:
            np.testing.assert_allclose(after[n][k], one[n], rtol=1e-12)
    with pytest.raises(errors.TraceError, match="once for each batch element"):
        wg.vmap(model)(xs)
    with pytest.raises(errors.StructureError, match=r"stateful_call of Sequential.*\['x'\]"):
        nn.stateful_call(model, {"x": 1.0}, xs[0])
