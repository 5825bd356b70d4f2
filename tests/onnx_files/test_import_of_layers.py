"""Imported attention, resizing, sampling, losses, Fourier transforms: derivatives, any sizes.

Their values are checked with ONNX's own cases in test_node_cases.py.
"""

import numpy as np
import pytest

import wengert as wg
import wengert.nn.functional as F
from wengert.errors import BackendError, FileError

from .running import onnx

rng = np.random.default_rng(5)
D = wg.spec


def file(kind, heads, constants=(), results=1, **attributes):
    """A file with one node: inputs (dtype code, shape), then constants."""
    helper = onnx.helper
    names = [f"x{k}" for k in range(len(heads))]
    given = [n if a is not None else "" for n, a in zip("abcdef", constants, strict=False)]
    tensors = [
        onnx.numpy_helper.from_array(np.asarray(a), n)
        for n, a in zip("abcdef", constants, strict=False)
        if a is not None
    ]
    outputs = [f"y{k}" for k in range(results)]
    node = helper.make_node(kind, [*names, *given], outputs, **attributes)
    graph = helper.make_graph(
        [node],
        "one",
        [helper.make_tensor_value_info(n, c, s) for n, (c, s) in zip(names, heads, strict=True)],
        [helper.make_tensor_value_info(n, 11, []) for n in outputs],
        tensors,
    )
    opsets = [helper.make_opsetid("", 23)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString()


def loaded(*args, **attributes):
    return wg.onnx.load(file(*args, **attributes), constants=True)


DOUBLE, INT = 11, 7
IMAGE = rng.normal(size=(2, 3, 4, 5))


def same_everywhere(graph, wanted, *arrays):
    """Value, compiled value and gradients agree with a function."""
    np.testing.assert_allclose(graph(*arrays), wanted(*arrays), rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(wg.jit(graph)(*arrays), wanted(*arrays), rtol=1e-12, atol=1e-13)
    which = tuple(k for k, a in enumerate(arrays) if a.dtype.kind == "f")

    def slopes(f):
        return wg.grad(lambda *a: np.sum(np.sin(f(*a))), which)(*arrays)

    for a, b in zip(slopes(graph), slopes(wanted), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("causal", [0, 1])
def test_attention(causal):
    q, k, v = (rng.normal(size=s) for s in ((2, 4, 3, 6), (2, 2, 5, 6), (2, 2, 5, 7)))
    heads = [(DOUBLE, ("n", *a.shape[1:])) for a in (q, k, v)]
    graph = loaded("Attention", heads, is_causal=causal)
    same_everywhere(
        graph,
        lambda q, k, v: F.scaled_dot_product_attention(
            q, k, v, is_causal=bool(causal), enable_gqa=True
        ),
        *(q, k, v),
    )


def test_attention_with_masks():
    q, mask = rng.normal(size=(1, 3, 8)), rng.normal(size=(3, 3))
    mask[1] = -np.inf  # a query without any key
    heads = [(DOUBLE, ("n", "t", 8))] * 3 + [(DOUBLE, ("t", "t"))]
    graph = loaded("Attention", heads, q_num_heads=2, kv_num_heads=2)

    def by_hand(q, k, v, mask):
        q, k, v = (np.swapaxes(np.reshape(x, (1, 3, 2, 4)), 1, 2) for x in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v, mask)
        return np.reshape(np.swapaxes(y, 1, 2), (1, 3, 8))

    found = graph(q, q, q, mask)
    np.testing.assert_allclose(found, by_hand(q, q, q, mask), rtol=1e-12, atol=1e-14)
    assert not found[0, 1].any()
    slope = wg.grad(lambda q: np.sum(graph(q, q, q, mask) ** 2))(q)
    assert np.all(np.isfinite(slope))


def test_rotary_embedding_is_a_rotation():
    x, angle = rng.normal(size=(2, 3, 5, 4)), rng.normal(size=(7, 2))
    places = rng.integers(0, 7, size=(2, 5))
    graph = loaded(
        "RotaryEmbedding", [(DOUBLE, (2, 3, 5, 4))], (np.cos(angle), np.sin(angle), places)
    )
    y = graph(x)
    np.testing.assert_allclose(np.sum(y**2, -1), np.sum(x**2, -1), rtol=1e-13)
    z = (x[..., :2] + 1j * x[..., 2:]) * np.exp(1j * angle[places])[:, None]
    np.testing.assert_allclose(y, np.concatenate([z.real, z.imag], -1), rtol=1e-12)
    wg.check_grads(lambda x: np.sum(np.sin(graph(x))), (x,), entries=False)


RESIZED = {
    "nearest": ({"mode": "nearest", "nearest_mode": "floor"}, {"mode": "nearest"}),
    "linear": ({"mode": "linear"}, {"mode": "bilinear"}),
    "cubic": ({"mode": "cubic"}, {"mode": "bicubic"}),
    "aligned": (
        {"mode": "linear"},
        {"mode": "bilinear", "align_corners": True},
    ),
}


@pytest.mark.parametrize("name", RESIZED)
def test_resize(name):
    theirs, ours = RESIZED[name]
    mode = "align_corners" if name == "aligned" else "half_pixel"
    mode = "asymmetric" if name == "nearest" else mode
    sizes = np.array([2, 3, 7, 3])
    graph = loaded(
        "Resize",
        [(DOUBLE, (2, 3, 4, 5))],
        (None, None, sizes),
        coordinate_transformation_mode=mode,
        **theirs,
    )
    same_everywhere(graph, lambda x: F.interpolate(x, (7, 3), **ours), IMAGE)


def test_resize_of_a_batch_of_any_size():
    scales = np.array([1.0, 1.0, 2.0, 0.6], np.float32)
    head = [(DOUBLE, ("n", 3, 4, 5))]
    graph = loaded("Resize", head, (None, scales), mode="linear", antialias=1)
    assert graph(IMAGE).shape == (2, 3, 8, 3) and graph(IMAGE[:1]).shape == (1, 3, 8, 3)
    with pytest.raises(BackendError, match="axis of symbolic length"):
        loaded("Resize", [(DOUBLE, (1, 1, "h", 5))], (None, scales), mode="linear")
    huge = np.array([1.0, 1.0, 1e9, 1.0], np.float32)
    with pytest.raises(FileError, match="of limit="):
        loaded("Resize", head, (None, huge), mode="linear")


@pytest.mark.parametrize("mode", ["linear", "cubic", "nearest"])
def test_grid_sample(mode):
    grid = rng.uniform(-1.4, 1.4, size=(2, 2, 3, 2))
    heads = [(DOUBLE, ("n", 3, 4, 5)), (DOUBLE, ("n", 2, 3, 2))]
    graph = loaded("GridSample", heads, mode=mode, padding_mode="border")
    ours = {"linear": "bilinear", "cubic": "bicubic"}.get(mode, mode)
    same_everywhere(graph, lambda x, g: F.grid_sample(x, g, ours, "border"), IMAGE, grid)


def test_losses():
    x, y = rng.normal(size=(4, 3)), np.array([0, 2, 1, 2])
    weight = np.array([1.0, 0.5, 2.0])
    heads = [(DOUBLE, ("n", 3)), (INT, ("n",))]
    graph = loaded("SoftmaxCrossEntropyLoss", heads, (weight,), 2, ignore_index=1)
    wanted = lambda x, y: F.cross_entropy(x, y, weight=weight, ignore_index=1)  # noqa: E731
    same_everywhere(lambda x, y: graph(x, y)[0], wanted, x, y)
    graph = loaded("NegativeLogLikelihoodLoss", heads, reduction="none")
    same_everywhere(graph, lambda x, y: F.nll_loss(x, y, reduction="none"), x, y)


def test_fourier_transforms():
    x = rng.normal(size=(2, 6, 1))
    graph = loaded("DFT", [(DOUBLE, ("n", 6, 1))], (np.array(8), np.array(1)), onesided=1)
    there = np.fft.rfft(x[..., 0], 8, 1)
    np.testing.assert_allclose(graph(x), np.stack([there.real, there.imag], -1), atol=1e-13)
    wg.check_grads(lambda x: np.sum(np.sin(graph(x))), (x,), order=2, entries=False)
    z = rng.normal(size=(2, 6, 2))
    graph = loaded("DFT", [(DOUBLE, ("n", 6, 2))], (None, np.array(-2)), inverse=1)
    there = np.fft.ifft(z[..., 0] + 1j * z[..., 1], axis=1)
    np.testing.assert_allclose(graph(z), np.stack([there.real, there.imag], -1), atol=1e-13)
    wg.check_grads(lambda z: np.sum(np.sin(graph(z))), (z,), entries=False)


def test_selected_boxes_must_be_known():
    boxes = rng.uniform(size=(1, 4, 4))
    heads = [(DOUBLE, (1, 4, 4)), (DOUBLE, (1, 2, 4))]
    with pytest.raises(BackendError, match=r"known only when it runs.*non_max_suppression"):
        loaded("NonMaxSuppression", heads, (np.array([3]), np.array([0.5], np.float32)))
    boxes = np.array([[[0, 0, 1, 1], [0, 0.1, 1, 1.1], [5, 5, 6, 6], [0, 0, 0, 0]]])
    scores = np.array([[[0.5, 0.9, 0.2, 0.7]]])
    found = wg.onnx.non_max_suppression(boxes, scores, 9, 0.5, 0.1)
    assert found.tolist() == [[0, 0, 1], [0, 0, 3], [0, 0, 2]]
    assert wg.onnx.non_max_suppression(boxes, scores).shape == (0, 3)
    centers = np.concatenate(
        [(boxes[..., 1::-1] + boxes[..., 3:1:-1]) / 2, (boxes[..., 3:1:-1] - boxes[..., 1::-1])], -1
    )
    again = wg.onnx.non_max_suppression(centers, scores, 9, 0.5, 0.1, center_point_box=True)
    assert again.tolist() == found.tolist()
