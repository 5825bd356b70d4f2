"""Recurrent layers: lengths, directions, modes, errors; training of a character model."""

import copy
import pickle

import numpy as np
import pytest

import wengert as wg
from wengert import nn, optim
from wengert.errors import ArgumentError, DtypeError, ShapeError
from wengert.nn import functional as F

KINDS = [nn.RNN, nn.GRU, nn.LSTM]


def plain(x):
    return np.asarray(x.numpy() if hasattr(x, "numpy") else x)


@pytest.mark.parametrize("kind", KINDS)
def test_a_layer_is_its_cell_step_by_step(kind, rng):
    layer = kind(3, 4, rng=0)
    cell = {nn.RNN: nn.RNNCell, nn.GRU: nn.GRUCell, nn.LSTM: nn.LSTMCell}[kind](3, 4)
    cell.load_state_dict({n.removesuffix("_l0"): x for n, x in layer.state_dict().items()})
    x, state, outputs = rng.normal(size=(5, 2, 3)), None, []
    for row in x:
        state = cell(row, state)
        outputs.append(plain(state[0] if kind is nn.LSTM else state))
    found, last = layer(x)
    np.testing.assert_allclose(plain(found), np.stack(outputs), rtol=1e-13)
    for a, b in zip(last, state, strict=True) if kind is nn.LSTM else [(last, state)]:
        np.testing.assert_allclose(plain(a)[0], plain(b), rtol=1e-13)


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("kind", [nn.GRU, pytest.param(nn.LSTM, marks=pytest.mark.slow)])
def test_a_padded_sequence_is_the_sequence_alone(kind, compiled, rng):
    layer = kind(2, 3, num_layers=2, bidirectional=True, rng=0)
    lengths = np.array([4, 1, 0, 3])
    x = rng.normal(size=(4, 4, 2))
    for k, n in enumerate(lengths):
        x[n:, k] = np.nan  # padding is ignored

    def run(x, lengths):
        return layer(x, lengths=lengths)

    def loss(x, lengths):
        output, last = run(x, lengths)
        return np.sum(np.sin(output)) + sum(np.sum(np.cos(s)) for s in last)

    f, g = (wg.jit(run), wg.jit(wg.grad(loss))) if compiled else (run, wg.grad(loss))
    output, last = f(x, lengths)
    bar = plain(g(x, lengths))
    last = last if kind is nn.LSTM else (last,)
    for k, n in enumerate(lengths):
        alone, end = layer(x[:n, k : k + 1])
        np.testing.assert_allclose(plain(output)[:n, k], plain(alone)[:, 0], rtol=1e-12)
        assert np.all(plain(output)[n:, k] == 0.0)
        for a, b in zip(last, end if kind is nn.LSTM else (end,), strict=True):
            np.testing.assert_allclose(plain(a)[:, k], plain(b)[:, 0], rtol=1e-12)
        np.testing.assert_allclose(bar[:n, k : k + 1], plain(wg.grad(loss)(x[:n, k : k + 1], None)))
        assert np.all(bar[n:, k] == 0.0)


def test_parameters_of_padding_are_not_nan(rng):
    layer = nn.LSTM(2, 3, rng=0)
    x = rng.normal(size=(4, 2, 2))
    x[2:, 1] = np.nan
    f = lambda p: np.sum(nn.functional_call(layer, p, x, lengths=[4, 2])[0])  # noqa: E731
    clean = np.where(np.isnan(x), 7.0, x)
    g = lambda p: np.sum(nn.functional_call(layer, p, clean, lengths=[4, 2])[0])  # noqa: E731
    for way in (wg.grad, lambda f: wg.jit(wg.grad(f))):
        a, b = way(f)(layer.state_dict()), way(g)(layer.state_dict())
        for name in a:
            np.testing.assert_array_equal(a[name], b[name])


@pytest.mark.parametrize("kind", [nn.GRU, nn.LSTM])
def test_one_graph_for_all_sizes(kind, rng):
    layer = kind(3, 4, bidirectional=True, rng=0)

    def loss(x, lengths):
        return np.sum(np.sin(layer(x, lengths=lengths)[0]))

    graph = wg.trace(wg.value_and_grad(loss))(wg.spec(("steps", "batch", 3)), wg.spec("batch", int))
    for steps, batch in ((5, 2), (1, 4)):
        x, lengths = rng.normal(size=(steps, batch, 3)), rng.integers(0, steps + 1, batch)
        for a, b in zip(graph(x, lengths), wg.value_and_grad(loss)(x, lengths), strict=True):
            np.testing.assert_allclose(plain(a), plain(b), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("kind", [nn.GRU, nn.LSTM])
def test_second_derivatives(kind, rng):
    layer = kind(1, 2, rng=0)
    x, v = rng.normal(size=(3, 1)), rng.normal(size=(3, 1))

    def loss(x):
        return np.sum(np.square(layer(x)[0]))

    step = 1e-5
    slopes = [plain(wg.grad(loss)(x + s * step * v)) for s in (1, -1)]
    wanted = (slopes[0] - slopes[1]) / (2 * step)
    for way in (lambda f: f, wg.jit):
        found = way(lambda x, v: wg.hvp(loss, (x,), (v,)))(x, v)
        np.testing.assert_allclose(plain(found), wanted, rtol=1e-6, atol=1e-9)


def test_rows_by_vmap(rng):
    layer = nn.LSTM(3, 4, rng=0)
    x = rng.normal(size=(6, 2, 3))
    rows = wg.vmap(lambda x: layer(x)[0], in_axes=1, out_axes=1)(x)
    np.testing.assert_allclose(plain(rows), plain(layer(x)[0]), rtol=1e-13)


def test_float32_is_kept(rng):
    layer = nn.GRU(3, 4, bidirectional=True, rng=0, dtype="float32")
    x = rng.normal(size=(5, 2, 3)).astype("float32")
    for way in (lambda f: f, wg.jit):
        output, last = way(lambda x: layer(x, lengths=np.array([5, 3])))(x)
        assert output.dtype == last.dtype == "float32"
        bar = way(wg.grad(lambda x: np.sum(layer(x)[0])))(x)
        assert bar.dtype == "float32"


def test_no_steps_and_copies():
    layer = nn.LSTM(3, 4, rng=0)
    output, (h, c) = layer(np.zeros((0, 2, 3)))
    assert output.shape == (0, 2, 4) and not np.any(plain(h)) and not np.any(plain(c))
    x = np.ones((2, 1, 3))
    dropped = nn.LSTM(3, 4, 2, dropout=0.5, rng=0)
    for twin in (copy.deepcopy(dropped), pickle.loads(pickle.dumps(dropped))):
        np.testing.assert_array_equal(plain(twin.eval()(x)[0]), plain(dropped.eval()(x)[0]))
    assert repr(dropped) == "LSTM(3, 4, num_layers=2, dropout=0.5)"


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_dropout_between_layers_differs_from_run_to_run(compiled):
    layer = nn.RNN(2, 30, 2, dropout=0.5, rng=0)
    run = wg.jit(lambda x: layer(x)[0]) if compiled else lambda x: layer(x)[0]
    x = np.ones((2, 1, 2))
    first, second = plain(run(x)), plain(run(x))
    assert np.any(first != second)
    layer.eval()
    np.testing.assert_array_equal(plain(run(x)), plain(run(x)))


def test_refusals():
    layer = nn.LSTM(3, 4, rng=0)
    x = np.zeros((5, 2, 3))
    with pytest.raises(ShapeError, match=r"\(5, 2, 4\).*\(steps, batch, 3\)"):
        layer(np.zeros((5, 2, 4)))
    with pytest.raises(ShapeError, match=r"must have shape \(1, 2, 4\)"):
        layer(x, (np.zeros((2, 4)), np.zeros((2, 4))))
    with pytest.raises(ShapeError, match="one length for each"):
        layer(x, lengths=[5])
    with pytest.raises(ArgumentError, match="from 0 to 5"):
        layer(x, lengths=[6, 2])
    with pytest.raises(DtypeError, match="must be integers"):
        layer(x, lengths=[1.0, 2.0])
    with pytest.raises(ArgumentError, match="nonlinearity"):
        nn.RNN(2, 3, nonlinearity="sin")
    with pytest.raises(ArgumentError, match="less than hidden_size"):
        nn.LSTM(2, 3, proj_size=3)
    with pytest.raises(ArgumentError, match=r"num_layers must be .*at least 1, got 0"):
        nn.GRU(2, 3, num_layers=0)
    with pytest.raises(ArgumentError, match="probability"):
        nn.GRU(2, 3, dropout=2)
    with pytest.raises(ShapeError, match="last axis"):
        nn.GRUCell(2, 3)(np.zeros((5, 3)))
    with pytest.raises(ShapeError, match=r"state must have shape \(5, 3\)"):
        nn.LSTMCell(2, 3)(np.zeros((5, 2)), (np.zeros((5, 3)), np.zeros((4, 3))))


def test_a_model_of_characters_learns():
    text = "the rain in spain stays mainly in the plain. " * 4
    letters = sorted(set(text))
    codes = np.array([letters.index(c) for c in text])
    rng = np.random.default_rng(0)
    n = len(letters)
    layer, head = nn.LSTM(n, 24, rng=rng), nn.Linear(24, n, rng=rng)
    optimizer = optim.Adam([*layer.parameters(), *head.parameters()], lr=0.02)
    inputs, targets = np.eye(n)[codes[:-1]], codes[1:]

    @wg.jit
    def step(x, y):
        optimizer.zero_grad()
        loss = F.cross_entropy(head(layer(x)[0]), y)
        loss.backward()
        optimizer.step()
        return loss

    losses = [step(inputs, targets).item() for _ in range(80)]
    assert losses[0] > 2.0 and losses[-1] < 0.4
