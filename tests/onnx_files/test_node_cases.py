"""ONNX's own cases for every operator that is read; some of them always, all in the slow tests.

A case counts if all of its operators are read.  What is refused in it is refused by name, and for
one of the reasons below; anything else is a failure.
"""

import importlib
import warnings

import numpy as np
import pytest

import wengert as wg
from wengert.errors import BackendError
from wengert.onnx.importer import imported, static_inputs

from .running import onnx

cases_of = pytest.importorskip("onnx.backend.test.case.node")
# Modules of onnx with the cases of an operator each; importing all takes ten seconds.
SAMPLE = """add softmax gemm reducesum slice conv layernormalization gathernd split where resize
gridsample dft rotaryembedding nonmaxsuppression negativeloglikelihoodloss""".split()
REASONS = [
    "which NumPy does not have",  # float8, bfloat16, integers of two or four bits
    "not a numeric array",  # the same as inputs; sequences, strings
    "the operator SequenceConstruct is not supported",  # in the body of a loop
    "are unknown during the import",  # a shape that is computed from values
    "their number is unknown",  # a loop that collects while it searches its end
    "in training mode is not supported",
    "may differ from",  # operators before opset 13
    "with reduction=",
    "with storage_order=1",
]


def plain(x):
    return onnx.numpy_helper.to_array(x) if isinstance(x, onnx.TensorProto) else x


def run_case(case):
    """Whether it passed; False if it is unsupported."""
    nodes, heads = case.model.graph.node, [i.name for i in case.model.graph.input]
    static = {n.input[k] for n in nodes for k in static_inputs(n.op_type) if k < len(n.input)}
    for inputs, outputs in case.data_sets:
        fed = dict(zip(heads, map(plain, inputs), strict=False))
        given = {name: value for name, value in fed.items() if name in static}
        try:
            graph = wg.onnx.load(case.model.SerializeToString(), given=given)
        except BackendError as error:
            assert any(reason in str(error) for reason in REASONS), f"{case.name}: {error}"
            return False
        found = graph(*[value for name, value in fed.items() if name not in static])
        found = found if isinstance(found, tuple) else (found,)
        for a, b in zip(found, map(plain, outputs), strict=True):
            a, b = np.asarray(a), np.asarray(b)
            assert a.dtype == b.dtype and a.shape == b.shape, case.name
            np.testing.assert_allclose(a, b, rtol=case.rtol, atol=case.atol, err_msg=case.name)
    return True


def collected(modules):
    """The cases of given modules, or of all (None), whose operators are all supported."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in modules or ():
            importlib.import_module(f"{cases_of.__name__}.{name}")
        cases = cases_of._NodeTestCases if modules else cases_of.collect_testcases()
    known = set(imported())
    return [
        c for c in cases if all(n.op_type in known and not n.domain for n in c.model.graph.node)
    ]


def run_all(cases):
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return [run_case(c) for c in cases]


def test_some_operators():
    passed = run_all(collected(SAMPLE)[::2])  # every other one
    assert sum(passed) >= 130


@pytest.mark.slow
def test_every_operator():
    cases = collected(None)
    passed = run_all(cases)
    assert sum(passed) >= 1430
    seen = {
        c.model.graph.node[0].op_type
        for c, ok in zip(cases, passed, strict=True)
        if ok and len(c.model.graph.node) == 1
    }
    # All cases of Loop need a shape computed in a step; test_import.py tests loops.
    assert set(imported()) - seen == {"Loop"}
