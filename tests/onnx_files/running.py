"""Run ONNX files by onnxruntime, or by the reference implementation of onnx without a kernel."""

import io

import numpy as np
import pytest

import wengert as wg

onnx = pytest.importorskip("onnx")
reference_of = pytest.importorskip("onnx.reference")
onnxruntime = pytest.importorskip("onnxruntime")
# For these onnxruntime has no float64 kernels, so the reference implementation runs the file.
NO_DOUBLES = set("Conv ConvTranspose AveragePool Tan Sinh Cosh Asin Acos Atan Asinh".split())


def exported(what, *specs, **options):
    file = io.BytesIO()
    wg.onnx.export(what, file, *specs, **options)
    data = file.getvalue()
    onnx.checker.check_model(onnx.load_from_string(data), full_check=True)
    return data


def has_kernels(data):
    model = onnx.load_from_string(data)
    doubles = any(i.type.tensor_type.elem_type == 11 for i in model.graph.input)
    return not (doubles and NO_DOUBLES & {n.op_type for n in model.graph.node})


def run(data, *arrays):
    if not has_kernels(data):
        reference = reference_of.ReferenceEvaluator(onnx.load_from_string(data))
        return reference.run(None, dict(zip(reference.input_names, arrays, strict=True)))
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    names = [i.name for i in session.get_inputs()]
    return session.run(None, dict(zip(names, arrays, strict=True)))


def draw(spec, size, rng):
    shape = tuple(n if isinstance(n, int) else size for n in spec.shape)
    if spec.dtype.kind == "f":
        return rng.normal(size=shape).astype(spec.dtype)
    return rng.integers(0, 2, size=shape).astype(spec.dtype)


def flat(results):
    if isinstance(results, tuple | list):
        return [leaf for r in results for leaf in flat(r)]
    return [np.asarray(results.numpy() if isinstance(results, wg.Tensor) else results)]


def agree(found, wanted, dtype):
    tolerance = 2e-5 if dtype == np.float32 else 1e-11
    for a, b in zip(found, wanted, strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)
