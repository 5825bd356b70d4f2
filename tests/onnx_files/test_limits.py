"""Small files that describe large arrays."""

import tracemalloc

import numpy as np
import pytest

import wengert as wg
from wengert.errors import FileError

from .running import onnx

HUGE = 1 << 40
EDGES = [0, HUGE]


def file_of(*nodes, outputs=("y",), inputs=()):
    """A file with these nodes; each is (operator, inputs, outputs, attributes)."""
    h, kinds = onnx.helper, onnx.TensorProto
    made, fixed = [], []
    for k, (kind, given, results, attributes) in enumerate(nodes):
        names = []
        for i, x in enumerate(given):
            if not isinstance(x, str):
                fixed.append(onnx.numpy_helper.from_array(np.asarray(x), f"c{k}_{i}"))
                x = f"c{k}_{i}"
            names.append(x)
        made.append(h.make_node(kind, names, list(results), **attributes))
    heads = [h.make_tensor_value_info(n, kinds.FLOAT, s) for n, s in inputs]
    ends = [h.make_tensor_value_info(n, kinds.FLOAT, ["m"]) for n in outputs]
    graph = h.make_graph(made, "g", heads, ends, fixed)
    model = h.make_model(graph, opset_imports=[h.make_opsetid("", 17)], ir_version=8)
    return model.SerializeToString()


ONE, ROW, COLUMN = np.ones(1, "f4"), np.ones((1, 1 << 20), "f4"), np.ones((1 << 20, 1), "f4")
IMAGE = np.ones((1, 1, 4, 4), "f4")


def loop(body_outputs):
    h, kinds = onnx.helper, onnx.TensorProto
    value = h.make_tensor_value_info
    nodes = [h.make_node("Identity", ["on"], ["again"]), h.make_node("Identity", ["a"], ["b"])]
    if body_outputs > 2:
        nodes.append(h.make_node("Identity", ["a"], ["row"]))
    ends = [value("again", kinds.BOOL, []), value("b", kinds.FLOAT, [1])]
    if body_outputs > 2:
        ends.append(value("row", kinds.FLOAT, [1]))
    heads = [
        value("i", kinds.INT64, []),
        value("on", kinds.BOOL, []),
        value("a", kinds.FLOAT, [1]),
    ]
    return h.make_graph(nodes, "body", heads, ends)


HOSTILE = {
    "ConstantOfShape": [("ConstantOfShape", [[HUGE]], ["y"], {})],
    "ConstantOfShape in axes": [("ConstantOfShape", [[1 << 20, 1 << 20]], ["y"], {})],
    "Range": [("Range", [np.int64(0), np.int64(HUGE), np.int64(1)], ["y"], {})],
    "Range of floats": [("Range", [np.float32(0), np.float32(1), np.float32(1e-12)], ["y"], {})],
    "Pad": [("Pad", [ONE, EDGES], ["y"], {})],
    "OneHot": [("OneHot", [np.array([1]), np.int64(HUGE), np.array([0.0, 1.0], "f4")], ["y"], {})],
    "Tile": [("Tile", [ONE, [HUGE]], ["y"], {})],
    "Expand and more": [("Expand", [ONE, [HUGE]], ["x"], {}), ("Neg", ["x"], ["y"], {})],
    "EyeLike": [("Expand", [ONE, [1 << 14, 1 << 14]], ["x"], {}), ("EyeLike", ["x"], ["y"], {})],
    "outer product": [("MatMul", [COLUMN, ROW], ["y"], {})],
    "broadcasting": [("Add", [COLUMN, ROW], ["y"], {})],
    "Gather": [
        ("Expand", [np.int64(0), [1 << 20]], ["i"], {}),
        ("Gather", [ROW, "i"], ["y"], {}),
    ],
    "Einsum": [("Einsum", [COLUMN, ROW], ["y"], {"equation": "ij,jk->ik"})],
    "Conv": [("Conv", [IMAGE, np.ones((1, 1, 1, 1), "f4")], ["y"], {"pads": [0, 0, HUGE, 0]})],
    "ConvTranspose": [
        ("ConvTranspose", [IMAGE, np.ones((1, 1, 1, 1), "f4")], ["y"], {"strides": [HUGE, 1]})
    ],
    "AveragePool": [
        ("AveragePool", [IMAGE], ["y"], {"kernel_shape": [1, 1], "pads": [0, 0, HUGE, 0]})
    ],
    "MaxPool": [("MaxPool", [IMAGE], ["y"], {"kernel_shape": [1, 1], "pads": [0, 0, HUGE, 0]})],
    "LRN": [("LRN", [IMAGE], ["y"], {"size": HUGE})],
    "doubling": [
        *[("Concat", [f"x{k}"] * 2, [f"x{k + 1}"], {"axis": 0}) for k in range(1, 40)],
        ("Identity", ["x40"], ["y"], {}),
    ],
    "many": [("ConstantOfShape", [[1 << 21]], [f"y{k}"], {}) for k in range(4)],
}


@pytest.mark.sample(8)
@pytest.mark.parametrize("name", HOSTILE)
def test_small_files_cannot_allocate_unlimited_memory(name):
    nodes = list(HOSTILE[name])
    outputs = ["y"]
    if name == "doubling":
        nodes.insert(0, ("Identity", [ONE], ["x1"], {}))
    if name == "many":
        outputs = [f"y{k}" for k in range(4)]
    data = file_of(*nodes, outputs=outputs)
    tracemalloc.start()
    try:
        with pytest.raises(FileError, match=r"limit=16777216.*raise the limit.*test_limits\.py"):
            wg.onnx.load(data, limit=1 << 24, constants=True)
        assert tracemalloc.get_traced_memory()[1] < 1 << 26
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("outputs", [2, 3])
def test_loop_with_many_steps(outputs):
    attributes = {"body": loop(outputs)}
    results = ["y", "rows"][: outputs - 1]
    node = ("Loop", [np.int64(HUGE), np.array(True), ONE], results, attributes)
    with pytest.raises(FileError, match="limit"):
        wg.onnx.load(file_of(node), constants=True)


def test_limit_is_1_gib_and_can_be_raised():
    data = file_of(("ConstantOfShape", [[1 << 29]], ["y"], {}))
    with pytest.raises(FileError, match=r"2\.15 GB .*1\.07 GB are left"):
        wg.onnx.load(data)
    data = file_of(("ConstantOfShape", [[1 << 10]], ["y"], {}))
    with pytest.raises(FileError, match="limit=4095"):
        wg.onnx.load(data, limit=4095)
    assert wg.onnx.load(data, limit=4096)().shape == (1 << 10,)


def test_arrays_computed_at_run_time_are_not_limited():
    pads = np.array([0, 1 << 20])
    data = file_of(("Pad", ["x", pads], ["y"], {}), inputs=[("x", ["n"])])
    graph = wg.onnx.load(data, limit=1 << 23)
    assert graph(np.ones(1 << 22, "f4")).shape == ((1 << 22) + (1 << 20),)
