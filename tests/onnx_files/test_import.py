"""Imported files: values, derivatives, parameters; damaged and unsupported files."""

import numpy as np
import pytest

import wengert as wg
from wengert import nn
from wengert.errors import ArgumentError, BackendError, FileError, WengertError

from .running import agree, draw, exported, flat, onnx, run
from .test_export import FAST, MODELS, elementary, indexed, loops, reduced, shaped

S = wg.spec


def back(what, specs, sizes=(2, 3)):
    graph = wg.onnx.load(exported(what, *specs))
    for size in sizes:
        rng = np.random.default_rng(size)
        arrays = [draw(s, size, rng) for s in specs]
        agree(flat(graph(*arrays)), flat(what(*arrays)), np.float64)


@pytest.mark.parametrize(
    "name", [n if n in FAST else pytest.param(n, marks=pytest.mark.slow) for n in MODELS]
)
def test_exported_layers_are_imported(name):
    make, shapes = MODELS[name]
    back(make().eval(), [S(s) for s in shapes])


@pytest.mark.sample(3)
@pytest.mark.parametrize("function", [elementary, reduced, shaped, indexed, loops])
def test_exported_functions_are_imported(function):
    specs = [S(("n", 4, 5))] + [S(2, np.int64)] * (function is indexed)
    with np.errstate(all="ignore"):
        back(function, specs)


@pytest.fixture
def model():
    return nn.Sequential(
        *(nn.Conv2d(1, 2, 3, padding=1, rng=0), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()),
        *(nn.Linear(8, 3, rng=1), nn.LogSoftmax()),
    )


def test_derivatives_of_imported_graphs(model):
    spec = S(("batch", 1, 4, 4))
    graph = wg.onnx.load(exported(model, spec))
    x = np.random.default_rng(0).normal(size=(3, 1, 4, 4))
    np.testing.assert_allclose(*flat((wg.jit(graph)(x), graph(x))), rtol=1e-13, atol=1e-14)
    for power in (1, 2):
        found = wg.grad(lambda x, k=power: np.sum(graph(x)[:, 0] ** k))(x)
        wanted = wg.grad(lambda x, k=power: np.sum(model(x)[:, 0] ** k))(x)
        np.testing.assert_allclose(*flat((found, wanted)), rtol=1e-12, atol=1e-14)
    np.sum(graph(wg.tensor(x))[:, 0]).backward()
    np.sum(model(x)[:, 0]).backward()
    found = wg.onnx.parameters(graph)
    for name, p in model.named_parameters():
        np.testing.assert_allclose(found[name].grad, p.grad, rtol=1e-12, atol=1e-14)
    slope = wg.trace(lambda x: np.sum(graph(x)[:, 0]))(spec).grad()
    np.testing.assert_allclose(
        *flat((wg.jit(slope)(x), wg.grad(lambda x: np.sum(model(x)[:, 0]))(x))), rtol=1e-12
    )


@pytest.mark.slow
@pytest.mark.parametrize("kind, gates", [("LSTM", 4), ("GRU", 3), ("RNN", 1)])
def test_recurrent_operators(kind, gates):
    rng, helper = np.random.default_rng(0), onnx.helper
    weights = [rng.normal(size=(2, gates * 3, n)) for n in (2, 3)]
    weights.append(rng.normal(size=(2, 2 * gates * 3)))

    def file(dtype):
        code = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        options = {"hidden_size": 3, "direction": "bidirectional"}
        tensors = [
            onnx.numpy_helper.from_array(a.astype(dtype), n)
            for a, n in zip(weights, "WRB", strict=True)
        ]
        graph = helper.make_graph(
            [helper.make_node(kind, ["X", "W", "R", "B"], ["Y"], **options)],
            "recurrent",
            [helper.make_tensor_value_info("X", code, ["t", "n", 2])],
            [helper.make_tensor_value_info("Y", code, ["t", 2, "n", 3])],
            tensors,
        )
        opset = [helper.make_opsetid("", 21)]
        return helper.make_model(graph, opset_imports=opset, ir_version=10).SerializeToString()

    graph = wg.onnx.load(file(np.float64), constants=True)
    single = wg.onnx.load(file(np.float32), constants=True)
    for length in (1, 4):
        x = rng.normal(size=(length, 2, 2))
        (wanted,) = run(file(np.float32), x.astype(np.float32))
        np.testing.assert_allclose(graph(x), wanted, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(single(x.astype(np.float32)), wanted, rtol=1e-5, atol=1e-6)
    wg.check_grads(lambda x: np.sum(graph(x) ** 2), (x,))


def test_parameters_can_be_modified(model):
    graph = wg.onnx.load(exported(model, S(("batch", 1, 4, 4))))
    x = np.ones((2, 1, 4, 4))
    for p in wg.onnx.parameters(graph).values():
        p[...] = 0.0
    np.testing.assert_allclose(graph(x), np.log(np.full((2, 3), 1 / 3)))
    fixed = wg.onnx.load(exported(model, S(("batch", 1, 4, 4))), constants=True)
    assert wg.onnx.parameters(fixed) == {}


def reshaping():
    helper, kinds = onnx.helper, onnx.TensorProto
    node = helper.make_node("Reshape", ["x", "shape"], ["y"])
    inputs = [
        helper.make_tensor_value_info("x", kinds.DOUBLE, [2, 3]),
        helper.make_tensor_value_info("shape", kinds.INT64, [1]),
    ]
    outputs = [helper.make_tensor_value_info("y", kinds.DOUBLE, ["rows"])]
    graph = helper.make_graph([node], "g", inputs, outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def test_shape_computed_from_values_is_an_error():
    data = reshaping().SerializeToString()
    with pytest.raises(BackendError, match=r"Reshape takes its shape.*`given`"):
        wg.onnx.load(data)
    graph = wg.onnx.load(data, given={"shape": np.array([6])})
    assert graph(np.ones((2, 3))).shape == (6,)
    with pytest.raises(ArgumentError, match="not inputs of the file"):
        wg.onnx.load(data, given={"size": np.array([6])})


def test_unsupported_operators_are_named():
    model = reshaping()
    model.graph.node[0].op_type = "NonZero"
    del model.graph.node[0].input[1:]
    with pytest.raises(BackendError, match="the operator NonZero is not supported"):
        wg.onnx.load(model.SerializeToString())
    model = reshaping()
    model.opset_import[0].version = 99
    with pytest.raises((BackendError, FileError), match=r"opset|version|99"):
        wg.onnx.load(model.SerializeToString())
    model = reshaping()
    model.opset_import[0].version = 12
    with pytest.raises(BackendError, match="opset 12 may differ"):
        wg.onnx.load(model.SerializeToString(), given={"shape": np.array([6])})
    model = reshaping()
    model.graph.input[0].type.tensor_type.elem_type = onnx.TensorProto.BFLOAT16
    with pytest.raises(BackendError, match="not a numeric array"):
        wg.onnx.load(model.SerializeToString())


def test_external_data(model, tmp_path):
    path = tmp_path / "large.onnx"
    proto = onnx.load_from_string(exported(model, S(("batch", 1, 4, 4))))
    onnx.save(proto, path, save_as_external_data=True, size_threshold=0, location="weights")
    x = np.ones((2, 1, 4, 4))
    np.testing.assert_allclose(wg.onnx.load(path)(x), model(x).numpy(), rtol=1e-13)
    whole = (tmp_path / "weights").read_bytes()
    (tmp_path / "weights").write_bytes(whole[:40])
    with pytest.raises(FileError, match=r"large.onnx"):
        wg.onnx.load(path)
    (tmp_path / "weights").unlink()
    with pytest.raises((FileError, FileNotFoundError)):
        wg.onnx.load(path)


def test_arguments_that_are_not_files(tmp_path):
    with pytest.raises(FileNotFoundError):
        wg.onnx.load(tmp_path / "none.onnx")
    for content in (b"", b"PK\x03\x04 not this", bytes(range(256)) * 4):
        with pytest.raises(FileError):
            wg.onnx.load(content)
    (tmp_path / "a.onnx").write_text("Dear reader")
    with pytest.raises(FileError, match=r"a\.onnx"):
        wg.onnx.load(tmp_path / "a.onnx")
    with pytest.raises(ArgumentError, match="is not a file"):
        wg.onnx.load(3)


def damaged(data, rng):
    bad = bytearray(data)
    if rng.random() < 0.4:
        return bytes(bad[: rng.integers(len(bad))])
    for _ in range(rng.integers(1, 4)):
        bad[rng.integers(len(bad))] = rng.integers(256)
    return bytes(bad)


@pytest.mark.parametrize("count", [60, pytest.param(3000, marks=pytest.mark.slow)])
def test_damaged_files_raise_file_errors(model, count):
    data = exported(model, S(("batch", 1, 4, 4)))
    rng, refused = np.random.default_rng(7), 0
    for _ in range(count):
        try:
            wg.onnx.load(damaged(data, rng))
        except WengertError:
            refused += 1
    assert refused > count // 3
