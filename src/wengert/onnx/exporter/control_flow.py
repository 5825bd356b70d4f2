"""Loops and branches: `scan` as Scan or Loop, `while` as Loop, `cond` as If, with their bodies.

Bodies refer to outer values by name, so their inputs are only carries and the elements of scanned
arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert._engine.core.graph import BaseGraph
from wengert._engine.core.node import Node
from wengert._engine.core.spec import Spec

from ..onnx_library import onnx
from .graph_writer import GraphWriter, value_info
from .registry import exports, unsupported


def _write_body(w: GraphWriter, body: BaseGraph, fixed: dict[Node, str]) -> tuple[Any, list[str]]:
    """Write the nodes of a body; return the writer and the names of its inputs."""
    inner = GraphWriter(w.outside, w)
    inner.names.update(fixed)
    given = [n for n in body.inputs if n not in fixed]
    for n in given:
        inner.names[n] = w.outside.fresh("inside")
    inner.write(body)
    return inner, [inner.names[n] for n in given]


def _body_graph(inner: Any, body: BaseGraph, given: Sequence[Any], name: str) -> Any:
    """The ONNX graph of a body; every result has a unique name."""
    results = [
        value_info(inner.op("Identity", inner.names[n]), n.spec, inner.outside)
        for n in body.outputs
    ]
    return onnx().helper.make_graph(inner.nodes, name, list(given), results)


@exports("scan")
def _scan(w: GraphWriter, node: Node, *names: str) -> Any:
    p = node.params
    body, carried, stacked = p["body"], p["carried"], p["stacked"]
    names = names[1:] if p["counted"] else names
    if not stacked:
        return _fixed_loop(w, node, names)
    fixed = len(names) - carried - stacked
    inner, given = _write_body(w, body, dict(zip(body.inputs[:fixed], names[:fixed], strict=True)))
    inputs = [
        value_info(name, n.spec, w.outside)
        for name, n in zip(given, body.inputs[fixed:], strict=True)
    ]
    graph = _body_graph(inner, body, inputs, w.outside.fresh("scan"))
    direction = int(bool(p["reverse"]))
    out = w.op(
        "Scan",
        *names[fixed:],
        outputs=len(body.outputs),
        body=graph,
        num_scan_inputs=stacked,
        scan_input_directions=[direction] * stacked,
        scan_output_directions=[direction] * (len(body.outputs) - carried) or None,
    )
    return out if isinstance(out, tuple) else (out,)


def _fixed_loop(w: GraphWriter, node: Node, names: Sequence[str]) -> Any:
    """A scan without scanned arrays: a Loop with a fixed number of steps."""
    p = node.params
    body, carried = p["body"], p["carried"]
    if p["reverse"] and len(body.outputs) > carried:
        raise unsupported(node, "in reverse without a scanned array has no counterpart in ONNX")
    fixed = len(names) - carried
    inner, given = _write_body(w, body, dict(zip(body.inputs[:fixed], names[:fixed], strict=True)))
    inputs = [
        value_info(n, a.spec, w.outside) for n, a in zip(given, body.inputs[fixed:], strict=True)
    ]
    goes_on = inner.op("Identity", w.constant(True))
    graph = _body_graph(inner, body, [*_counters(w), *inputs], w.outside.fresh("loop"))
    graph.output.insert(0, value_info(goes_on, _TRUTH, w.outside))
    steps = w.op("Squeeze", w.length(p["length"]), w.ints([0]))
    count = len(body.outputs)
    out = w.op("Loop", steps, "", *names[fixed:], outputs=count, body=graph)
    return out if isinstance(out, tuple) else (out,)


_TRUTH = Spec((), np.dtype(bool))
_NUMBER = Spec((), np.dtype(np.int64))


def _counters(w: GraphWriter) -> list[Any]:
    """The inputs of the body of a Loop before the carries: the step and the condition."""
    step, going = w.outside.fresh("step"), w.outside.fresh("going")
    return [value_info(step, _NUMBER, w.outside), value_info(going, _TRUTH, w.outside)]


@exports("while")
def _while(w: GraphWriter, node: Node, *names: str) -> Any:
    p = node.params
    body, condition, carried = p["body"], p["condition"], p["carried"]
    if len(body.outputs) > carried:
        raise unsupported(node, "that stacks results of every step has no counterpart in ONNX")
    fixed = len(names) - carried
    inner, given = _write_body(w, body, dict(zip(body.inputs[:fixed], names[:fixed], strict=True)))
    inputs = [
        value_info(n, a.spec, w.outside) for n, a in zip(given, body.inputs[fixed:], strict=True)
    ]
    carry = [inner.names[n] for n in body.outputs]
    goes_on = _inlined(inner, condition, [*names[:fixed], *carry])
    before = w.outside.fresh("inside")
    count = inner.op("Add", before, w.constant(1, np.int64))
    inputs.append(value_info(before, _NUMBER, w.outside))
    graph = _body_graph(inner, body, [*_counters(w), *inputs], w.outside.fresh("loop"))
    graph.output.insert(0, value_info(inner.op("Identity", goes_on), _TRUTH, w.outside))
    graph.node.append(inner.nodes[-1])
    graph.output.append(value_info(count, _NUMBER, w.outside))
    first = _inlined(w, condition, names)
    start = w.constant(0, np.int64)
    return w.op("Loop", "", first, *names[fixed:], start, outputs=len(body.outputs) + 1, body=graph)


def _inlined(w: GraphWriter, body: BaseGraph, names: Sequence[str]) -> Any:
    """The result of a body, written inline for the given operands."""
    before = dict(w.names)
    for n in body.nodes:
        w.names.pop(n, None)
    w.names.update(zip(body.inputs, names, strict=True))
    w.write(body)
    out = w.names[body.outputs[0]]
    w.names.clear()
    w.names.update(before)
    return w.cast(out, body.outputs[0].spec.dtype, bool)


@exports("cond")
def _cond(w: GraphWriter, node: Node, which: str, *names: str) -> Any:
    first, second = node.params["branches"]
    made = []
    for body in (second, first):
        inner, _ = _write_body(w, body, dict(zip(body.inputs, names, strict=True)))
        made.append(_body_graph(inner, body, [], w.outside.fresh("branch")))
    which = w.cast(which, node.inputs[0].spec.dtype, bool)
    out = w.op("If", which, outputs=len(first.outputs), then_branch=made[0], else_branch=made[1])
    return out if isinstance(out, tuple) else (out,)
