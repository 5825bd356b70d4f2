"""Convolution and pooling layers: PyTorch's reprs, names, initial values; padding; errors."""

import copy
import pickle

import numpy as np
import pytest

import wengert as wg
import wengert.nn.functional as F
from wengert import errors, nn, optim


@pytest.mark.parametrize(
    ("layer", "text"),
    [
        (lambda: nn.Conv1d(4, 6, 3), "Conv1d(4, 6, kernel_size=(3,), stride=(1,))"),
        (
            lambda: nn.Conv2d(4, 6, (3, 1), padding="same", bias=False, padding_mode="circular"),
            "Conv2d(4, 6, kernel_size=(3, 1), stride=(1, 1), padding=same, bias=False, "
            "padding_mode=circular)",
        ),
        (
            lambda: nn.Conv3d(4, 6, 3, 2, 1, 2, 2),
            "Conv3d(4, 6, kernel_size=(3, 3, 3), stride=(2, 2, 2), padding=(1, 1, 1), "
            "dilation=(2, 2, 2), groups=2)",
        ),
        (
            lambda: nn.ConvTranspose2d(4, 6, 3, 2, 1, 1),
            "ConvTranspose2d(4, 6, kernel_size=(3, 3), stride=(2, 2), padding=(1, 1), "
            "output_padding=(1, 1))",
        ),
        (
            lambda: nn.MaxPool2d((2, 3), stride=1, padding=1, ceil_mode=True),
            "MaxPool2d(kernel_size=(2, 3), stride=1, padding=1, dilation=1, ceil_mode=True)",
        ),
        (lambda: nn.AvgPool3d(3, 2, 1), "AvgPool3d(kernel_size=3, stride=2, padding=1)"),
        (lambda: nn.AdaptiveAvgPool2d((1, 2)), "AdaptiveAvgPool2d(output_size=(1, 2))"),
    ],
)
def test_they_are_written_as_torch_writes_them(layer, text):
    assert repr(layer()) == text


@pytest.mark.parametrize("kind", ["Conv", "ConvTranspose"])
@pytest.mark.parametrize("axes", [1, 2, 3])
def test_parameters_have_torchs_names_shapes_and_bounds(kind, axes):
    layer = getattr(nn, f"{kind}{axes}d")(4, 6, 3, groups=2, rng=0, dtype=np.float32)
    state = layer.state_dict()
    first = (6, 2) if kind == "Conv" else (4, 3)
    assert list(state) == ["weight", "bias"]
    assert state["weight"].shape == (*first, *[3] * axes) and state["bias"].shape == (6,)
    bound = 1.0 / np.sqrt(first[1] * 3**axes)
    for value in state.values():
        assert value.dtype == np.float32 and np.abs(value).max() <= bound
    assert np.abs(state["weight"]).max() > 0.8 * bound
    twin = getattr(nn, f"{kind}{axes}d")(4, 6, 3, groups=2, rng=1)
    twin.load_state_dict(state)
    np.testing.assert_array_equal(twin.weight.numpy(), layer.weight.numpy())


@pytest.mark.parametrize(
    ("mode", "numpys"), [("reflect", "reflect"), ("replicate", "edge"), ("circular", "wrap")]
)
def test_what_stands_around(rng, mode, numpys):
    x = rng.normal(size=(2, 3, 5, 6))
    layer = nn.Conv2d(3, 4, 3, padding=(1, 2), padding_mode=mode, rng=0)
    around = np.pad(x, [(0, 0), (0, 0), (1, 1), (2, 2)], mode=numpys)
    expected = F.conv2d(around, layer.weight.numpy(), layer.bias.numpy())
    np.testing.assert_allclose(layer(x).numpy(), expected, rtol=1e-12)
    same = nn.Conv2d(3, 4, 4, padding="same", padding_mode=mode, rng=0)
    assert same(x).shape == (2, 4, 5, 6)


def test_an_output_size_is_chosen(rng):
    x = rng.normal(size=(2, 3, 5, 6))
    down, up = nn.Conv2d(3, 4, 3, 2, 1, rng=0), nn.ConvTranspose2d(4, 3, 3, 2, 1, rng=1)
    y = down(x)
    assert up(y).shape == (2, 3, 5, 5) and up(y, output_size=x.shape).shape == x.shape
    with pytest.raises(errors.ArgumentError, match=r"from \(5, 5\) to \(6, 6\)"):
        up(y, output_size=(9, 9))


def test_a_network_learns_compiled_as_it_does_eagerly(rng):
    def network():
        return nn.Sequential(
            nn.Conv2d(1, 3, 3, padding=1, rng=0), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(3, 4, 3, rng=1), nn.AvgPool2d(2), nn.Flatten(), nn.Linear(4, 3, rng=2),
        )  # fmt: skip

    model, x, labels = network(), rng.normal(size=(5, 1, 8, 8)), np.array([0, 1, 2, 1, 0])
    state = model.state_dict()

    def loss(state):
        return F.cross_entropy(nn.functional_call(model, state, x), labels)

    value, slopes = wg.value_and_grad(loss)(state)
    again, found = wg.jit(wg.value_and_grad(loss))(state)
    np.testing.assert_allclose(again, value, rtol=1e-12)
    for name, slope in slopes.items():
        np.testing.assert_allclose(found[name], slope, rtol=1e-10, atol=1e-13)
    twin = pickle.loads(pickle.dumps(copy.deepcopy(model)))
    np.testing.assert_array_equal(twin(x).numpy(), model(x).numpy())


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: nn.Conv2d(3, 4, 3)(np.ones((2, 1, 8, 8))), r"Conv2d\(3, 4, .*\(samples, 3, heig"),
        (lambda: nn.Conv1d(3, 4, 3)(np.ones((2, 8, 8, 8))), r"Conv1d.*length\)"),
        (lambda: nn.Conv2d(3, 4, 9)(np.ones((2, 3, 8, 8))), r"Conv2d.*\(8, 8\).*spans"),
        (lambda: nn.Conv2d(3, 4, 3, groups=2), "groups=2"),
        (lambda: nn.Conv2d(3, 4, 3, padding=-1), "padding must be at least 0, got -1"),
        (lambda: nn.Conv2d(3, 4, 3, padding_mode="mirror"), "mirror"),
        (lambda: nn.ConvTranspose2d(3, 4, 3, padding_mode="reflect"), 'supports only "zeros"'),
        (lambda: nn.ConvTranspose2d(3, 4, 3, padding="same"), "padding must be .*got 'same'"),
        (lambda: nn.MaxPool2d(2)(np.ones((8, 8))), r"MaxPool2d.*\(samples, channels, height"),
        (lambda: nn.AvgPool1d((2, 2)), "kernel_size"),
    ],
)
def test_what_does_not_fit_is_named(call, words):
    with pytest.raises((errors.ShapeError, errors.ArgumentError), match=words) as caught:
        call()
    assert "test_convolution_layers.py" in str(caught.value)


def test_a_compiled_step_is_the_eager_one():
    """A weight's gradient that flows through a `where` is detached before the optimizer uses it."""
    x = np.random.default_rng(0).normal(size=(2, 1, 6, 6))
    first, second = (
        nn.Sequential(nn.Conv2d(1, 2, 3, rng=1), nn.ReLU(), nn.Conv2d(2, 3, 4, rng=2), nn.Flatten())
        for _ in range(2)
    )
    eager, compiled = (optim.Adam(m.parameters(), lr=0.1) for m in (first, second))

    def step(model, optimizer):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), np.array([0, 2]))
        loss.backward()
        optimizer.step()
        return loss.detach()

    run = wg.jit(lambda: step(second, compiled))
    np.testing.assert_allclose(run(), step(first, eager), rtol=1e-12)
    for a, b in zip(first.parameters(), second.parameters(), strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-9)
