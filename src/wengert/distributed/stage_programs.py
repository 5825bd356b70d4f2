"""The compiled programs of one stage of a pipeline.

The stage and the derivative of its result are traced as one graph, and simplified.  The graph is
then cut in two: the forward program has the nodes that the result needs, the updates of buffers and
random streams among them, and the backward program has all others.  Values of the first that the
second uses are its residuals, which the stage stores between the two.  So nothing is computed
twice, and random numbers are drawn once.

    TwoPrograms   a stage that sends its result to the next one
    LastProgram   the last stage, with the loss: value and gradient in one program
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wengert._engine.backends import Executable
from wengert._engine.backends import backend as backend_of
from wengert._engine.core.dispatch import PART
from wengert._engine.core.graph_copies import rebuilt
from wengert._engine.core.handle import Handle, shape_of
from wengert._engine.core.node import INPUT, LeafOp, Node, is_variable
from wengert._engine.core.spec import Spec
from wengert._engine.core.tracing import placeholder
from wengert._engine.graphs import Graph, gradients, trace
from wengert._engine.jit.compiled_operation import run_of, with_inlined_calls
from wengert._engine.jit.compiled_program import preferred_backend
from wengert.errors import NotScalarError, at, user_line

from .stages import output_of

Stage = Callable[[Any], Any]
_FLOAT = np.dtype(np.float64)


class TwoPrograms:
    """The forward and the backward program of a stage, for one shape of microbatches.

    Parameters
    ----------
    stage : callable
    parameters : sequence of Parameter
        The gradients with respect to them are results of the backward program.
    x : Spec
        What the stage receives.
    wants_input : bool
        Whether the cotangent of what it receives is needed.

    Attributes
    ----------
    result : Spec
        What the stage sends.
    has_cotangent : bool
        Whether the next stage sends a cotangent of it; not of integers.
    residual_bytes : int
        The size of the residuals of one microbatch.
    """

    def __init__(self, stage: Stage, parameters: Sequence[Any], x: Spec, wants_input: bool) -> None:
        self.result: Spec = output_of(trace(stage)(x), "a stage").spec
        self.wants_input = wants_input and x.dtype.kind in "fc"
        self.has_cotangent = self.result.dtype.kind in "fc"
        self._parameters = parameters

        def both(x: Any, t: Any) -> Any:
            y = stage(x)
            wanted = [x, *parameters] if self.wants_input else [*parameters]
            return [y, *gradients(y, wanted, t)] if wanted and self.has_cotangent else [y]

        cotangent = Spec(self.result.shape, self.result.dtype if self.has_cotangent else _FLOAT)
        graph = with_inlined_calls(trace(both)(x, cotangent).simplify(), True)
        forward, backward = _cut(graph)
        self._forward, self._backward = _program(forward), _program(backward)
        self.residual_bytes = sum(
            int(np.prod(n.spec.shape, dtype=np.int64)) * n.spec.dtype.itemsize
            for n in forward.outputs[1:]
        )

    def forward(self, x: Any) -> tuple[Any, list[Any]]:
        """The result, and what the backward program needs."""
        y, *residuals = self._forward([x])
        return y, [x, *residuals]

    def backward(self, saved: list[Any], t: Any) -> tuple[Any, list[Any]]:
        """The cotangent of what the stage received, or None, and those of the parameters.

        `t` is None if the next stage sends no cotangent.
        """
        if not self.has_cotangent:
            zeros = [np.zeros(p.shape, p.dtype) for p in self._parameters]
            return np.zeros_like(saved[0]) if self.wants_input else None, zeros
        found = self._backward([saved[0], t, *saved[1:]])
        return (found[0], found[1:]) if self.wants_input else (None, found)


class LastProgram:
    """The value and the gradient of the loss in one program, for one shape of microbatches.

    Parameters
    ----------
    stage : callable
    loss : callable
        A function of the prediction and the targets.
    parameters, x, wants_input
        As for `TwoPrograms`.
    targets : sequence of Spec
    restored : callable
        Makes the targets from a list of arrays.
    """

    def __init__(
        self,
        stage: Stage,
        loss: Callable[..., Any],
        parameters: Sequence[Any],
        x: Spec,
        wants_input: bool,
        targets: Sequence[Spec],
        restored: Callable[[Sequence[Any]], Any],
    ) -> None:
        self.wants_input = wants_input and x.dtype.kind in "fc"

        def both(x: Any, weight: Any, *targets: Any) -> Any:
            value = loss(stage(x), restored(targets))
            if not isinstance(value, Handle) or shape_of(value) != ():
                raise NotScalarError(
                    "pipeline: the loss of a microbatch must be a number that is computed from the "
                    f"prediction, got shape {shape_of(value)}. Take its mean{at(user_line())}."
                )
            value = value * weight.astype(value.node.spec.dtype)
            wanted = [x, *parameters] if self.wants_input else [*parameters]
            return [value, *(gradients(value, wanted) if wanted else [])]

        weight = Spec((), np.dtype(np.float64))
        graph = trace(both)(x, weight, *targets).simplify()
        self._run = _program(with_inlined_calls(graph, True))

    def run(self, x: Any, weight: float, targets: Sequence[Any]) -> tuple[Any, Any, list[Any]]:
        """The loss times a weight, the cotangent of what was received, those of the parameters."""
        value, *found = self._run([x, np.float64(weight), *targets])
        return (value, found[0], found[1:]) if self.wants_input else (value, None, found)


def _program(graph: Graph) -> Callable[[Sequence[Any]], list[Any]]:
    run = run_of(Executable(graph, backend_of(preferred_backend())), single=False)
    return lambda values: list(run(values))


def _cut(graph: Graph) -> tuple[Graph, Graph]:
    """The forward program, and the backward program from its residuals.

    The inputs of the graph are x and the cotangent t of its first output.
    """
    x, t = graph.inputs
    y, *cotangents = graph.outputs
    roots = [y, *graph.updates.values(), *graph.effects]
    first: set[Node] = set(graph.ancestors(*roots)) | {x}
    second = [n for n in graph.nodes if n not in first and not isinstance(n.op, LeafOp)]
    first |= {n for n in second if n.op is PART and n.inputs[0] in first}  # of several outputs
    second = [n for n in second if n not in first]
    written = set(graph.updates)
    used = {a: None for n in second for a in n.inputs} | dict.fromkeys(cotangents)
    residuals = [n for n in used if n in first and n is not x and _changes(n, written)]
    placeholders = {n: placeholder(n.spec, n.name) for n in residuals}
    copies = rebuilt(second, placeholders)
    forward = Graph(
        y, *residuals, inputs=[x], updates=graph.updates, effects=graph.effects,
        name=f"{graph.name}, forward",
    )  # fmt: skip
    backward = Graph(
        *[copies.get(n, n) for n in cotangents],
        inputs=[x, t, *placeholders.values()],
        name=f"{graph.name}, backward",
    )
    return forward, backward


def _changes(node: Node, written: set[Node]) -> bool:
    """Whether the value may be another one when the backward program runs."""
    if not isinstance(node.op, LeafOp):
        return True
    return node in written if is_variable(node) else node.op is INPUT
