"""Every layer, activation and loss of wengert.nn compiles without calling back into Python.

Values and gradients are those of the eager run; training mode and evaluation, with a Stream for
what is dropped; classes as numbers and as probabilities.
"""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import wengert as wg
from wengert import nn
from wengert.nn import functional as F

GEN = np.random.default_rng(0)
X = GEN.normal(size=(5, 4))
UNIT = GEN.uniform(0.05, 0.95, (5, 4))
CLASSES = GEN.integers(0, 4, 5)
SHARES = UNIT / UNIT.sum(axis=1, keepdims=True)

MORE = np.random.default_rng(1)
ROWS = MORE.normal(size=(3, 4, 8))  # sequences, or signals of four channels
PICTURES = MORE.normal(size=(2, 4, 6, 6))
BODIES = MORE.normal(size=(2, 4, 4, 4, 4))
OF_SIZE = {"1d": ROWS, "2d": PICTURES, "3d": BODIES}

LAYERS = {
    "Linear": (lambda: nn.Linear(4, 3, rng=0), X),
    "Bilinear": (lambda: Twice(nn.Bilinear(4, 4, 2, rng=0)), X),
    "Maxout": (lambda: nn.Maxout(2), X),
    "GLU": (nn.GLU, X),
    "PReLU": (nn.PReLU, X),
    "Threshold": (lambda: nn.Threshold(0.1, -1.0), X),
    "LeakyReLU": (lambda: nn.LeakyReLU(0.2), X),
    "RReLU": (lambda: nn.RReLU(rng=wg.random.Stream(1)), X),
    **{
        name: (getattr(nn, name), X)
        for name in """ReLU Tanh Sigmoid Softplus Softmax LogSoftmax Flatten Identity ELU CELU SELU
        GELU SiLU Mish ReLU6 Hardtanh Hardsigmoid Hardswish Hardshrink Softshrink Softsign Softmin
        Tanhshrink LogSigmoid""".split()
    },
    **{
        f"{kind}{size}": (lambda kind=kind, size=size: getattr(nn, kind + size)(4, 2, 3, rng=0), x)
        for kind in ("Conv", "ConvTranspose")
        for size, x in OF_SIZE.items()
    },
    **{
        f"{kind}{size}": (lambda kind=kind, size=size: getattr(nn, kind + size)(2), x)
        for kind in """MaxPool AvgPool AdaptiveMaxPool AdaptiveAvgPool ZeroPad ReflectionPad
        ReplicationPad CircularPad""".split()
        for size, x in OF_SIZE.items()
    },
    **{
        f"{kind}{size}": (lambda kind=kind, size=size: getattr(nn, kind + size)(2, 2), x)
        for kind in ("LPPool", "ConstantPad")
        for size, x in OF_SIZE.items()
    },
    **{
        f"{kind}{size}": (lambda kind=kind, size=size: getattr(nn, kind + size)(4), x)
        for kind in ("BatchNorm", "InstanceNorm")
        for size, x in OF_SIZE.items()
    },
    **{
        f"Dropout{size}": (
            lambda size=size: getattr(nn, f"Dropout{size}")(0.4, wg.random.Stream(1)),
            x,
        )
        for size, x in {"": X, **OF_SIZE}.items()
    },
    "AlphaDropout": (lambda: nn.AlphaDropout(0.4, wg.random.Stream(1)), X),
    "LayerNorm": (lambda: nn.LayerNorm(4), X),
    "RMSNorm": (lambda: nn.RMSNorm(4), X),
    "GroupNorm": (lambda: nn.GroupNorm(2, 4), PICTURES),
    "Upsample": (lambda: nn.Upsample(scale_factor=2), PICTURES),
    "Unflatten": (lambda: nn.Unflatten(1, (2, 2)), X),
    "PixelShuffle": (lambda: nn.PixelShuffle(2), PICTURES),
    "PixelUnshuffle": (lambda: nn.PixelUnshuffle(2), PICTURES),
    "ChannelShuffle": (lambda: nn.ChannelShuffle(2), PICTURES),
    "Unfold": (lambda: nn.Unfold(2), PICTURES),
    "Fold": (lambda: nn.Sequential(nn.Unfold(2), nn.Fold(PICTURES.shape[2:], 2)), PICTURES),
    "LocalResponseNorm": (lambda: nn.LocalResponseNorm(3, alpha=0.5), PICTURES),
    "UpsamplingNearest2d": (lambda: nn.UpsamplingNearest2d(3), PICTURES),
    "UpsamplingBilinear2d": (lambda: nn.UpsamplingBilinear2d(3), PICTURES),
    "CosineSimilarity": (lambda: Twice(nn.CosineSimilarity()), X),
    "PairwiseDistance": (lambda: Twice(nn.PairwiseDistance()), X),
    "Sequential": (lambda: nn.Sequential(nn.Linear(4, 2, rng=0), nn.Tanh()), X),
    "Parallel": (lambda: nn.Parallel(nn.Linear(4, 2, rng=0), nn.Tanh()), X),
    "Residual": (lambda: nn.Residual(nn.Linear(4, 4, rng=0)), X),
    "RNNCell": (lambda: nn.RNNCell(4, 3, rng=0), X),
    "GRUCell": (lambda: nn.GRUCell(4, 3, rng=0), X),
    "RNN": (lambda: First(nn.RNN(8, 3, rng=0)), ROWS),
    "GRU": (lambda: First(nn.GRU(8, 3, rng=0)), ROWS),
    "LSTM": (lambda: First(nn.LSTM(8, 3, rng=0)), ROWS),
    "LSTMCell": (lambda: First(nn.LSTMCell(4, 3, rng=0)), X),
    "PositionalEncoding": (lambda: nn.PositionalEncoding(8), ROWS),
    "LearnedPositions": (lambda: nn.LearnedPositions(10, 8, rng=0), ROWS),
    "RotaryEmbedding": (lambda: nn.RotaryEmbedding(8), ROWS),
}
# In tests of their own, native too: of integers, of several operands, containers.
ELSEWHERE = """Embedding MaxUnpool1d MaxUnpool2d MaxUnpool3d MultiheadAttention Transformer
TransformerDecoder TransformerDecoderLayer TransformerEncoder TransformerEncoderLayer CTCLoss
ModuleDict ModuleList ParameterDict ParameterList CosineEmbeddingLoss DiceLoss GaussianNLLLoss
HingeEmbeddingLoss HingeLoss HuberLoss KLDivLoss MarginRankingLoss MultiLabelMarginLoss
MultiLabelSoftMarginLoss MultiMarginLoss PoissonNLLLoss SigmoidFocalLoss SmoothL1Loss
SoftMarginLoss SquaredHingeLoss TripletMarginLoss""".split()


class Twice(nn.Module):
    """A layer of two operands, given one and its reverse."""

    def __init__(self, layer):
        self.layer = layer

    def forward(self, x):
        return self.layer(x, x[::-1])


class First(nn.Module):
    """The first of a layer's results."""

    def __init__(self, layer):
        self.layer = layer

    def forward(self, x):
        return self.layer(x)[0]


LOSSES = {
    "MSELoss": [(X, UNIT)],
    "L1Loss": [(X, UNIT)],
    "CrossEntropyLoss": [(X, CLASSES), (X, SHARES)],
    "NLLLoss": [(np.log(SHARES), CLASSES), (np.log(SHARES), SHARES)],
    "BCEWithLogitsLoss": [(X, UNIT)],
    "BCELoss": [(UNIT, UNIT[::-1])],
}
SAME = {"MSE": "MSELoss"}  # other names
FUNCTIONS = {
    **dict.fromkeys(
        ("leaky_relu", "log_sigmoid", "log_softmax", "relu", "sigmoid", "silu", "softmax"), (X,)
    ),
    **dict.fromkeys(("softplus", "tanh"), (X,)),
    "linear": (X, GEN.normal(size=(3, 4)), GEN.normal(size=3)),
}


def agree(make, *args):
    """Value and gradient, compiled and not; `make` is asked for both."""

    def weighed(f):
        def total(*args):
            y = f(*args)
            return np.sum(y * np.cos(np.arange(y.size)).reshape(y.shape).astype(y.dtype))

        return wg.value_and_grad(total)

    wanted = weighed(make())(*args)
    found = wg.jit(weighed(make()), backend="llvm", host_callbacks="forbid")(*args)
    for a, b in zip(wanted, found, strict=True):
        a, b = (x.numpy() if isinstance(x, wg.Tensor) else np.asarray(x) for x in (a, b))
        assert a.shape == b.shape and a.dtype == b.dtype
        rough = {2: 1e-2, 4: 1e-5, 8: 1e-12}[a.itemsize]
        np.testing.assert_allclose(b, a, rtol=rough, atol=rough * np.abs(a).max())


def test_none_is_forgotten():
    classes = {n for n, c in vars(nn).items() if inspect.isclass(c) and issubclass(c, nn.Module)}
    assert classes - {"Module", *SAME} == {*LAYERS, *LOSSES, *ELSEWHERE}


@pytest.mark.sample(16)
@pytest.mark.parametrize("mode", ["train", "eval"])
@pytest.mark.parametrize("name", LAYERS)
def test_layers(name, mode):
    make, x = LAYERS[name]
    agree(lambda: getattr(make(), mode)(), x)


@pytest.mark.sample(5)
@pytest.mark.parametrize("reduction", ["mean", "none"])
@pytest.mark.parametrize("name", LOSSES)
def test_losses(name, reduction):
    for prediction, target in LOSSES[name]:
        agree(lambda: getattr(nn, name)(reduction), prediction, target)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name):
    agree(lambda: getattr(F, name), *FUNCTIONS[name])


@pytest.mark.sample(2)
@pytest.mark.parametrize("dtype", ["f8", "f4", "f2"])
@pytest.mark.parametrize("f", [F.softmax, F.log_softmax])
def test_softmax_along_any_axis(f, dtype):
    x = (20 * GEN.normal(size=(3, 4, 5))).astype(dtype)
    for axis in range(3):
        agree(lambda axis=axis: lambda x: f(x, axis), x)
    agree(lambda: lambda x: f(x.ravel(), 0), x)


@pytest.mark.parametrize("f", [F.softmax, F.log_softmax])
def test_softmax_of_special_values(f):
    compiled = wg.jit(f, backend="llvm", host_callbacks="forbid")
    nan, inf = np.nan, np.inf
    x = np.array([[nan, 1, 2], [inf, 0, 1], [-inf] * 3, [-inf, 2, 3], [1e300, 0, -1e300]])
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(compiled(x), f(x), rtol=1e-14)
    whole = np.arange(6).reshape(2, 3)
    np.testing.assert_allclose(compiled(whole), f(whole), rtol=1e-14)
    assert compiled(np.zeros((2, 0))).shape == (2, 0)
    assert compiled(np.zeros((0, 2))).shape == (0, 2)


def test_softmax_for_rows_of_any_number():
    compiled = wg.jit(F.log_softmax, backend="llvm", host_callbacks="forbid")
    for rows in (3, 5, 1, 64):
        x = GEN.normal(size=(rows, 7))
        np.testing.assert_allclose(compiled(x), F.log_softmax(x), rtol=1e-13)
    assert compiled.cache_info().programs <= 3


def test_a_step_of_training_is_all_native():
    """With Adam and something dropped: nothing of it is called back."""
    model = nn.Sequential(
        nn.Linear(4, 6, rng=0),
        nn.ReLU(),
        nn.Dropout(0.3, wg.random.Stream(0)),
        nn.Linear(6, 4, rng=1),
    )
    optimizer = wg.optim.Adam(model.parameters(), lr=0.01, weight_decay=1e-3)

    @wg.jit(backend="llvm", host_callbacks="forbid")
    def step(x, y):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    losses = [step(X, CLASSES).item() for _ in range(50)]
    assert losses[-1] < losses[0]
