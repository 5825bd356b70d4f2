"""The node that produced the first NaN or infinity, under `wengert.debug(nan=True)`.

A node of the function itself whose value is not finite although its operands are is reported
immediately.  Values of nodes of derivatives may be NaN or infinite without effect, in branches that
were not taken, so these nodes are reported only if a result is computed from them.

A loop is one operation; if its result is not finite, it is run again, node by node, up to the first
node that is to be reported.  An eager derivative is likewise run again if a result is not finite.

These are the functions of `core.runtime_checks.Locator`:

    NodeWatch          check a graph that runs, node by node
    rerun              run a loop or a branch again
    run_checked        run a graph with the interpreter, and check every value
    report_backward    report an operation of a backward pass; report_forward: of a forward pass
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.autodiff.tape import Tape
from wengert._engine.backends.interpreter import InterpretedProgram, Interpreter
from wengert._engine.backends.registry import Run
from wengert._engine.core.dispatch import PART
from wengert._engine.core.graph import BaseGraph
from wengert._engine.core.graph_classes import Body, evaluated
from wengert._engine.core.handle import value_of
from wengert._engine.core.node import LeafOp, Node
from wengert._engine.core.node_properties import substituted
from wengert._engine.core.runtime_checks import Checks, short
from wengert.errors import at

from .recorded_pass import backward_steps, tangents

if TYPE_CHECKING:
    from wengert._engine.control_flow.operations import Control
    from wengert._engine.core.types import Array, Operand

Known = Mapping[Node, Any]
Values = Sequence[Any]


class NodeWatch:
    """Checks the nodes of a graph while it runs.

    Parameters
    ----------
    checks : Checks
    """

    def __init__(self, checks: Checks) -> None:
        self._checks = checks
        self._nonfinite: set[Node] = set()
        self._origins: dict[Node, Callable[[], None]] = {}

    def check(
        self,
        node: Node,
        params: dict[Any, Any] | None,
        operands: Values,
        out: Array | tuple[Array, ...] | None,
    ) -> None:
        """Check the value of a node; `params` are its parameters, or None if it was not applied.

        Raises
        ------
        NotFiniteError
        """
        checks = self._checks
        if not checks.is_nonfinite(out):
            return
        self._nonfinite.add(node)
        if not node.level:
            self._report(node, params, operands, out)
        elif not checks.is_nonfinite(tuple(operands)):
            self._origins[node] = lambda: self._report(node, params, operands, out)

    def finish(self, nodes: Sequence[Node], outputs: Iterable[Node]) -> None:
        """Report the first node of a derivative that a nonfinite output was computed from.

        Raises
        ------
        NotFiniteError
        """
        live = self._nonfinite.intersection(outputs)
        for node in reversed(nodes):
            if node in live:
                live.update(a for a in node.args if isinstance(a, Node) and a in self._nonfinite)
        for node in nodes:
            if node in live and node in self._origins:
                self._origins[node]()
                return

    def _report(self, node: Node, params: Any, operands: Values, out: Any) -> None:
        op: Any = node.op
        if op.kind == "control" and params is not None:
            rerun(self._checks, op, params, operands)
        name = f"in the derivative, {op.name}" if node.level else op.name
        self._checks.report_result(name, operands, out, node.where)


def rerun(checks: Checks, op: Control, params: dict[str, Any], values: Values) -> None:
    """Run a loop or branch again, node by node, and report the node that produced a NaN.

    Parameters
    ----------
    checks : Checks
    op, params, values
        The operation, its parameters and its operands.

    Raises
    ------
    NotFiniteError
        With the user's line, and the step of the loop.
    """
    _LocatorRun(checks).run(op, params, values)


class _LocatorRun:
    """One run of a loop or branch, node by node."""

    def __init__(self, checks: Checks) -> None:
        self._checks = checks
        self._step = ""

    def run(self, op: Control, params: dict[str, Any], values: Values) -> Any:
        """The results of a loop or branch."""
        outer = self._step

        def visit(number: int, _: list[Operand]) -> None:
            self._step = f"{outer}step {number} of {op.name}, "

        if hasattr(op, "walked"):
            out = op.walked(self._compiled, values, params, visit)
        else:
            out = op.run_by(self._compiled, *values, **params)
        self._step = outer
        return out

    def _compiled(self, body: Body) -> Callable[[Values], list[Any]]:
        if body.size_names:
            return evaluated(body)
        return lambda values: self._run_nodes(body, values)

    def _run_nodes(self, body: Body, values: Values) -> list[Any]:
        known: dict[Node, Any] = dict(zip(body.inputs, values, strict=True))
        for node in body.nodes:
            if node in known:
                continue
            if isinstance(node.op, LeafOp):
                known[node] = node.value
                continue
            operands = [known[a] for a in node.inputs]
            known[node] = value = self._run_node(node, operands)
            if self._checks.is_nonfinite(value) and not self._checks.is_nonfinite(tuple(operands)):
                self._checks.report_result(
                    f"{self._step}{node.op.name}", operands, value, node.where
                )
        return [known[n] for n in body.outputs]

    def _run_node(self, node: Node, operands: Values) -> Any:
        op: Any = node.op
        if op is PART:
            return operands[0][node.params["index"]]
        if op.kind == "control":
            return self.run(op, node.params, operands)
        return op.run(*operands, **node.params)


# ---- graphs


def run_checked(
    graph: BaseGraph, sizes: Mapping[str, int], values: Sequence[Any], checks: Checks
) -> list[Any]:
    """The results of a graph, with a check of each node.

    Parameters
    ----------
    graph, sizes, values
        The graph, the numbers of its named sizes, and values of its inputs and variables.
    checks : Checks

    Raises
    ------
    NotFiniteError
    """
    return _CheckingInterpreter(checks).compile(graph, sizes)(values)


class _CheckingInterpreter(Interpreter):
    """The interpreter, with a check of every value; one object per run."""

    def __init__(self, checks: Checks) -> None:
        self._watch = NodeWatch(checks)

    def compile(self, graph: BaseGraph, sizes: Mapping[str, int]) -> Run:
        """The interpreter's steps, each followed by a check."""
        program = InterpretedProgram(self, graph, sizes, reuses=False)
        program.steps = [
            (self._checked(run, graph.nodes[node], sizes), a, b, slot)
            for (run, a, b, slot), node in zip(program.steps, program.node_indices, strict=True)
        ]

        def run(values: Sequence[Any]) -> list[Any]:
            results = program.run(values)
            self._watch.finish(graph.nodes, (*graph.outputs, *graph.updates.values()))
            return results

        return run

    def _checked(
        self, run: Callable[..., Any], node: Node, sizes: Mapping[str, int]
    ) -> Callable[..., Any]:
        def step(*operands: Any) -> Any:
            out = run(*operands)
            self._watch.check(node, substituted(node.params, sizes), operands, out)
            return out

        return step


# ---- derivatives with values


def report_backward(checks: Checks, tape: Tape, seeds: Known, results: Sequence[Any]) -> None:
    """Report the first operation with a NaN among its cotangents, if a result has one."""
    if not any(checks.is_nonfinite(value_of(r)) for r in results):
        return
    plain = {n: value_of(t) for n, t in seeds.items()}
    infinite: Node | None = None
    finite = Checks(nan=True, inf=True, raises=False, locator=checks.locator)
    with np.errstate(all="ignore"):
        for step in backward_steps(tape, plain, guarded=True):
            if checks.is_nonfinite(step.cotangent):
                continue  # reported before, or part of the seed
            for i, bar in enumerate(step.projected):
                if checks.is_nonfinite(bar):
                    first_infinite = infinite if finite.is_nonfinite(step.cotangent) else None
                    what = f"gradient with respect to operand {i}"
                    _report(checks, step.node, what, bar, step.cotangent, first_infinite)
                    return
                if infinite is None and finite.is_nonfinite(bar):
                    infinite = step.node


def report_forward(
    checks: Checks, tape: Tape, seeds: Known, outputs: Sequence[Node], results: Sequence[Any]
) -> None:
    """Report the first operation with a NaN in its tangent, if a result has one."""
    if not any(checks.is_nonfinite(value_of(r)) for r in results):
        return
    with np.errstate(all="ignore"):
        dots = tangents(tape, {n: value_of(t) for n, t in seeds.items()})
    live = {n for n, r in zip(outputs, results, strict=True) if checks.is_nonfinite(value_of(r))}
    for node in reversed(tape.nodes):
        if node in live:
            live.update(a for a in node.args_as_nodes() if checks.is_nonfinite(dots.get(a)))
    for node in tape.nodes:
        received = [dots[a] for a in node.args_as_nodes() if a in dots]
        if node in live and node.args and not checks.is_nonfinite(tuple(received)):
            _report(checks, node, "derivative", dots[node], tuple(received), None)
            return


def _report(
    checks: Checks,
    node: Node,
    what: str,
    derivative: Array,
    received: Array | tuple[Array, ...],
    infinite: Node | None,
) -> None:
    element, index = checks.first(derivative) or (None, ())
    place = f" at index {index}" if index else ""
    operands = "; ".join(short(a.value if isinstance(a, Node) else a) for a in node.args)
    origin = ""
    if infinite is not None:
        origin = f", first infinite in the gradient of {infinite.op.name}{at(infinite.where)}"
    checks.report(
        f"the {what} of {node.op.name} is {element}{place}; its operands are {operands}, and it "
        f"received the derivative {short(received)}{origin}. Keep the operands away from points "
        "where the derivative is infinite or undefined (np.where around them, or clip them); "
        "wengert.why gives details",
        node.where,
    )
