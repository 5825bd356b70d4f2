"""Exported files: onnxruntime gives the results of the program, for several sizes."""

import numpy as np
import pytest

import wengert as wg
from wengert import nn

from .running import agree, draw, exported, flat, onnx, run

S = wg.spec
IMAGE, ROWS, WORDS = ("n", 2, 6, 6), ("n", 6), ("n", 5)

MODELS = {
    "linear": (lambda: nn.Linear(6, 4, rng=0), [ROWS]),
    "conv": (lambda: nn.Conv2d(2, 4, 3, stride=2, padding=1, groups=2, rng=0), [IMAGE]),
    "conv1d": (lambda: nn.Conv1d(2, 3, 3, dilation=2, rng=0), [("n", 2, 8)]),
    "transposed": (lambda: nn.ConvTranspose2d(2, 3, 3, 2, 1, 1, rng=0), [IMAGE]),
    "max pool": (lambda: nn.MaxPool2d(3, 2, 1), [IMAGE]),
    "average pool": (lambda: nn.AvgPool2d(3, 2, 1, count_include_pad=False), [IMAGE]),
    "adaptive pool": (lambda: nn.AdaptiveAvgPool2d(4), [IMAGE]),
    "batch norm": (lambda: nn.BatchNorm2d(2), [IMAGE]),
    "instance norm": (lambda: nn.InstanceNorm2d(2), [IMAGE]),
    "layer norm": (lambda: nn.LayerNorm(6), [ROWS]),
    "group norm": (lambda: nn.GroupNorm(2, 6), [("n", 6, 3)]),
    "rms norm": (lambda: nn.RMSNorm(6), [ROWS]),
    "bilinear": (lambda: nn.Bilinear(6, 3, 2, rng=0), [ROWS, ("n", 3)]),
    "attention": (lambda: nn.MultiheadAttention(4, 2, rng=0), [("n", 3, 4)] * 3),
    "encoder": (lambda: nn.TransformerEncoderLayer(4, 2, 8, rng=0), [("n", 3, 4)]),
    "lstm": (lambda: nn.LSTM(3, 4, rng=0), [(5, "n", 3)]),
    "gru": (lambda: nn.GRU(3, 4, 2, bidirectional=True, rng=0), [(5, "n", 3)]),
    "rnn": (lambda: nn.RNN(3, 4, rng=0), [("t", 2, 3)]),
    "upsample": (lambda: nn.Upsample(scale_factor=2, mode="bilinear"), [IMAGE]),
    "shuffle": (lambda: nn.Sequential(nn.Upsample(scale_factor=2), nn.Flatten()), [IMAGE]),
}
ACTIVATIONS = (
    "GELU SiLU Softplus ReLU Softmax LogSoftmax Dropout CELU ELU SELU Hardshrink Hardsigmoid "
    "Hardswish Hardtanh LeakyReLU LogSigmoid Mish PReLU RReLU ReLU6 Sigmoid Softmin Softshrink "
    "Softsign Tanh Tanhshrink GLU"
).split()
FAST = {"conv", "average pool", "batch norm", "encoder", "lstm"}


def check(what, specs, dtype, sizes=(2, 3)):
    data = exported(what, *specs)
    for size in sizes:
        rng = np.random.default_rng(size)
        arrays = [draw(s, size, rng) for s in specs]
        agree(run(data, *arrays), flat(what(*arrays)), dtype)


@pytest.mark.sample(4)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "name", [n if n in FAST else pytest.param(n, marks=pytest.mark.slow) for n in MODELS]
)
def test_layers(name, dtype):
    make, shapes = MODELS[name]
    module = make().to(dtype).eval()
    check(module, [S(s, dtype) for s in shapes], dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_activations_in_one_file(dtype):
    layers = [getattr(nn, name)().to(dtype).eval() for name in ACTIVATIONS]
    check(lambda x: tuple([f(x) for f in layers]), [S(ROWS, dtype)], dtype)


def test_embedding_and_language_model():
    model = nn.Sequential(nn.Embedding(2, 4, rng=0), nn.Linear(4, 3, rng=1), nn.LogSoftmax())
    check(model.eval(), [S(WORDS, np.int64)], np.float64)


def elementary(x):
    return (
        *(np.log1p(1e-9 * x) * 1e9, np.expm1(1e-9 * x) * 1e9, np.log2(abs(x)), np.exp2(x)),
        *(np.hypot(x, 2 * x), np.arctan2(x, x + 1), np.cbrt(x), np.logaddexp(x, 2), np.sinc(x)),
        *(x // 0.3, x % 0.3, x % -0.7, np.fmod(x, 0.4), np.round(x, 2), np.trunc(3 * x)),
        *(np.heaviside(x, 0.5), np.clip(x, -0.5, 0.5), x**2 + abs(x) ** 1.5 + 2.0**x),
        *(np.isnan(x) | np.isfinite(x) & ~np.isinf(x), np.where(x > 0, x, 0), np.copysign(x, -1)),
        *(x.astype(np.int32) // 2, (x * 10).astype(np.int64) % -3),
    )


def trigonometric(x):
    return np.tan(x) / np.cosh(x), np.sinh(x), np.arctan(x), np.arcsin(np.tanh(x)), np.arcsinh(x)


def reduced(x):
    return (
        *(np.sum(x, (0, 2)), np.mean(x), np.prod(x, 1, keepdims=True), np.max(x, 0), np.min(x)),
        *(np.var(x, 1, ddof=1), np.std(x), np.any(x > 1, 0), np.all(x > 0), np.cumsum(x, 1)),
        *(np.argmax(x), np.argmin(x, 1), np.count_nonzero(x > 0), np.mean(x > 0), np.sum(x > 0)),
        *(np.linalg.norm(x, axis=-1), wg.scipy.special.logsumexp(1e3 * x, axis=1)),
        wg.scipy.special.softmax(x, axis=(1, 2)),
    )


def shaped(x):
    return (
        *(x[1:, ::2], x[..., None, ::-1], x[:, -1], x[:, 1:3, None, 2], np.flip(x, (0, 2)), x.T),
        *(np.roll(x, 2, 1), np.stack([x, x], -1), np.concatenate([x, x], 1), np.diff(x, axis=0)),
        *(x.reshape(x.shape[0] * 2, -1), np.reshape(x, (-1, 2), order="F"), x.shape[0] * x),
        *(np.pad(x, ((0, 0), (1, 2), (0, 0))), np.tril(x), wg.numpy.arange(x.shape[0])),
        *(np.einsum("nij,nkj->nik", x, x), x @ x.transpose(0, 2, 1), np.dot(x[0], x[0].T)),
        *(np.tensordot(x, x, ((1, 2), (1, 2))), np.eye(4, dtype=x.dtype) @ x),
    )


def indexed(x, i):
    y = x * 1.0
    y[:, 1:3] = 7.0
    z = x * 1.0
    z[:, i] = -x[:, i]
    return (
        *(x[i], x[:, i], x[:, i, i], x[i, :, i], x[:, None, i, 1:], x[0, :, i], x[i[:, None], i]),
        *(x[:, i[:, None], i, None], np.take(x, i, 1), y, z),
    )


@pytest.mark.sample(4)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("function", [elementary, trigonometric, reduced, shaped, indexed])
def test_functions(function, dtype):
    specs = [S(("n", 4, 5), dtype)] + [S(2, np.int64)] * (function is indexed)
    with np.errstate(all="ignore"):
        check(function, specs, dtype)


def loops(x):
    def total(carry, row):
        return carry + row, carry * row

    return (
        wg.scan(total, x[0], x)[1],
        wg.scan(total, x[0], x, reverse=True)[1],
        wg.fori_loop(0, 3, lambda i, c: c * 2.0 + np.sin(c), x),
        wg.while_loop(lambda c: np.sum(c) < 100.0, lambda c: abs(c) * 2.0, x),
        wg.cond(np.sum(x) > 0, lambda x: x * 2.0, lambda x: x - 1.0, x),
    )


def test_loops():
    check(loops, [S(("n", 3))], np.float64)


def test_gradient_graphs():
    def f(x, i):
        return np.sum(np.tanh(x[1:] * x[:-1])) + np.sum(x[:, i] ** 3)

    graph = wg.trace(f)(S(("n", 5)), S(2, np.int64)).grad()
    rng = np.random.default_rng(0)
    data = exported(graph)
    for size in (2, 4):
        x, i = rng.normal(size=(size, 5)), np.array([1, 3])
        agree(run(data, x, i), [graph(x, i)], np.float64)


def test_symbolic_sizes_are_computed_from_input_shapes():
    data = exported(lambda x: x[: x.shape[0] // 3] + x.shape[0], S(("6*n + 3",)))
    for size in (9, 15):
        x = np.arange(size * 1.0)
        agree(run(data, x), [x[: size // 3] + size], np.float64)
    with pytest.raises(wg.errors.BackendError, match=r"the size . is not the length"):
        exported(lambda x: x * x.shape[0], S(("n*m",)))


def test_names_and_versions():
    for opset in (21, 22, 23, 24):
        data = exported(
            lambda x: (x + 1.0, x * 2.0), S("n"), opset=opset, inputs=["a"], outputs=["b", "c"]
        )
        model = onnx.load_from_string(data)
        assert model.opset_import[0].version == opset
        assert [o.name for o in model.graph.output] == ["b", "c"]
        assert model.graph.input[0].type.tensor_type.shape.dim[0].dim_param == "n"


def test_parameters_are_the_initializers():
    module = nn.Sequential(nn.Linear(3, 2), nn.LayerNorm(2))
    model = onnx.load_from_string(exported(module, S(("n", 3))))
    assert {t.name for t in model.graph.initializer} == set(module.state_dict())
    assert module.training


def test_unsupported_operations_are_named(tmp_path):
    with pytest.raises(wg.errors.BackendError, match=r"argsort has no counterpart.*test_export.py"):
        exported(lambda x: np.sort(x), S(3))
    with pytest.raises(wg.errors.BackendError, match=r"special\.jv needs special\.jv"):
        exported(lambda x: wg.scipy.special.jv(1.0, x), S(3))
    with pytest.raises(wg.errors.BackendError, match="complex"):
        exported(lambda x: np.real(np.exp(x * 1j)), S(3))
    with pytest.raises(wg.errors.ArgumentError, match="opset=12"):
        exported(np.sin, S(3), opset=12)
    with pytest.raises(wg.errors.ArgumentError, match="inputs="):
        exported(lambda x: x + 1.0, S(3), inputs=["a", "b"])
    with pytest.raises(wg.errors.ArgumentError, match="not a graph, function"):
        exported(3.0, S(3))
    path = tmp_path / "kept.onnx"
    wg.onnx.export(lambda x: x + 1.0, path, S(3))
    before = path.read_bytes()
    with pytest.raises(wg.errors.BackendError):
        wg.onnx.export(lambda x: np.sort(x), path, S(3))
    assert path.read_bytes() == before
