"""Propagation of sparsity: the inputs that the outputs of a graph depend on, node by node.

An operation without a rule gives `everything` (rule_context.py), so that the pattern is never too
small.  Nodes whose derivative is known to be zero (comparisons, integers, `stop_gradient`) depend
on nothing.

    dependence   of a graph's outputs on some of its inputs, as one boolean matrix
    propagate    the traversal itself, which bodies of loops use too
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any

from wengert._engine.core.dispatch import PART
from wengert._engine.core.graph import BaseGraph
from wengert._engine.core.node import Node
from wengert._engine.core.op import Op
from wengert._engine.kinds.opaque import Opaque

from . import arithmetic_rules, control_flow_rules, indexing_rules
from .dependency_sets import Sets, nothing, places, stacked
from .known_values import KnownValues
from .rule_context import NodeContext, everything, size_of

Rule = Callable[[NodeContext], Any]

_CHOOSING = (
    "broadcast_to concatenate copy diagonal expand_dims flip gather_along getitem reshape"
    " roll shift squeeze stack transpose"
)
_RULES: dict[str, Rule] = {
    **dict.fromkeys(_CHOOSING.split(), indexing_rules.choosing),
    **dict.fromkeys("after cast imag real".split(), indexing_rules.identity),
    **dict.fromkeys("sum_to scatter scatter_along".split(), indexing_rules.adding),
    **dict.fromkeys("cumsum cumprod recurrence running".split(), indexing_rules.sums),
    **dict.fromkeys("fft rfft irfft fft.dct fft.dst".split(), indexing_rules.along),
    **dict.fromkeys("softmax log_softmax".split(), indexing_rules.along),
    **dict.fromkeys(
        "solve inv pinv det det_derivative slogdet cholesky qr eigh eig svd expm".split(),
        indexing_rules.matrices,
    ),
    "setitem": indexing_rules.placed,
    "scatter_add": indexing_rules.added,
    **dict.fromkeys(
        "convolution convolution_input convolution_weight sum_pool sum_pool_adjoint"
        " signal.convolve signal.slide".split(),
        arithmetic_rules.multilinear,
    ),
    **dict.fromkeys("convolve slide".split(), arithmetic_rules.sliding),
}
_KINDS: dict[str, Rule] = {
    "elementwise": arithmetic_rules.elementwise,
    "reduction": arithmetic_rules.reduction,
    "contraction": arithmetic_rules.contraction,
    "view": arithmetic_rules.linear,
}
_LOOPS: dict[str, Callable[..., Any]] = {
    "scan": control_flow_rules.scan,
    "while": control_flow_rules.repeated_while,
    "cond": control_flow_rules.choice,
    "switch": control_flow_rules.choice,
    "sized": control_flow_rules.sized,
    "custom_call": control_flow_rules.custom,
}


def dependence(graph: BaseGraph, inputs: Sequence[Node], first: int = 0) -> Sets:
    """Which elements of some inputs each element of the outputs may depend on, differentiably.

    Parameters
    ----------
    graph : Graph
    inputs : sequence of Node
        The inputs to differentiate with respect to.
    first : int
        The first of the outputs that count.

    Returns
    -------
    csr_array of bool
        A row for each output element, a column for each input element.
    """
    sizes = [size_of(n.spec) for n in inputs]
    ends = [0, *accumulate(sizes)]
    columns = ends[-1]
    given: dict[Node, Sets] = {
        n: places(size, columns, first) for n, size, first in zip(inputs, sizes, ends, strict=False)
    }
    found = propagate(graph, [given.get(n) for n in graph.inputs], columns)
    pairs = zip(found[first:], graph.outputs[first:], strict=True)
    rows = [nothing(size_of(n.spec), columns) if s is None else s for s, n in pairs]
    sets = stacked(rows, columns)
    sets.sum_duplicates()
    return sets


def propagate(
    graph: BaseGraph,
    inputs: Sequence[Sets | None],
    columns: int,
    values: KnownValues | None = None,
) -> list[Sets | None]:
    """The sets of the outputs, for those of the inputs; None for an input without derivative."""
    values = values or KnownValues()
    place: dict[Node, Any] = dict(zip(graph.inputs, inputs, strict=True))
    left = {n: k for k, node in enumerate(graph.nodes) for n in node.inputs}
    kept = set(graph.outputs)
    for k, node in enumerate(graph.nodes):
        if node not in place:
            place[node] = _sets(node, place, columns, values)
        for a in node.inputs:
            if left[a] == k and a not in kept:
                place[a] = None  # no longer needed
    return [place[n] for n in graph.outputs]


def _sets(node: Node, place: dict[Node, Any], columns: int, values: KnownValues) -> Any:
    """The sets of a node; a list for one with several outputs."""
    if type(node) is not Node or not node.args:
        return None
    if node.op is PART:
        whole = place[node.inputs[0]]
        return None if whole is None else whole[node.params["index"]]
    ctx = NodeContext(node, [place[a] for a in node.inputs], columns, values)
    if not ctx.moving:
        return None
    name = node.op.name
    if name in _LOOPS:
        return _LOOPS[name](ctx, propagate)
    return rule_of(node.op)(ctx)


def rule_of(op: Op) -> Rule:
    """The rule of an operation: its own, that of its kind, or `everything`."""
    if op.aliasing.transparent:
        return indexing_rules.identity
    if op.name in _RULES:
        return _RULES[op.name]
    if op.name.startswith("special.") and type(op) is not Opaque:
        return arithmetic_rules.pointwise  # functions of SciPy with hand-written derivatives
    return _KINDS.get(op.kind, everything)
