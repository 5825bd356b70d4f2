"""The node that produced the first NaN or infinity, under `wengert.debug(nan=True)`.

A node of the function itself whose value is bad (NaN or infinite) although its operands are good is
reported immediately.  Nodes of derivatives may be bad without effect, in branches that were not
taken, so they are reported only if a result is computed from them.

A loop is one operation; if its result is bad, it is run again, node by node, up to the first bad
node whose operands are good.  An eager derivative is likewise run again if a result is bad.

These are the functions of `core.nonfinite_checks.Locator`:

    NodeWatch          a graph that runs, node by node
    look_inside        run a loop or a branch again
    run_checked        run a graph with the interpreter, looking at every value
    report_backward    the first operation of a backward pass; report_forward of a forward pass
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.autodiff.tape import Tape
from wengert._engine.backends.interpreter.interpreter import InterpretedProgram, Interpreter
from wengert._engine.backends.registry import Run
from wengert._engine.core.dispatch import PART
from wengert._engine.core.graph import BaseGraph
from wengert._engine.core.handle import value_of
from wengert._engine.core.node import LeafOp, Node
from wengert._engine.core.nonfinite_checks import Checks, short
from wengert._engine.core.static_params import substituted
from wengert._engine.core.subgraph import Body, evaluated
from wengert.errors import at

from .recorded_pass import tangents, watched

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
        self._bad: set[Node] = set()
        self._born: dict[Node, Callable[[], None]] = {}

    def saw(
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
        if not checks.is_bad(out):
            return
        self._bad.add(node)
        if not node.level:
            self._tell(node, params, operands, out)
        elif not checks.is_bad(tuple(operands)):
            self._born[node] = lambda: self._tell(node, params, operands, out)

    def ended(self, nodes: Sequence[Node], outputs: Iterable[Node]) -> None:
        """Report the first node of a derivative that a bad result was computed from.

        Raises
        ------
        NotFiniteError
        """
        live = self._bad.intersection(outputs)
        for node in reversed(nodes):
            if node in live:
                live.update(a for a in node.args if isinstance(a, Node) and a in self._bad)
        for node in nodes:
            if node in live and node in self._born:
                self._born[node]()
                return

    def _tell(self, node: Node, params: Any, operands: Values, out: Any) -> None:
        op: Any = node.op
        if op.kind == "control" and params is not None:
            look_inside(self._checks, op, params, operands)
        name = f"in the derivative, {op.name}" if node.level else op.name
        self._checks.tell(name, operands, out, node.where)


def look_inside(checks: Checks, op: Control, params: dict[str, Any], values: Values) -> None:
    """Run a loop or branch again, node by node, and report the first bad node.

    Parameters
    ----------
    checks : Checks
    op, params, values
        The operation, its parameters and its operands.

    Raises
    ------
    NotFiniteError
        Naming the user's line, and the step of the loop.
    """
    _LocatorRun(checks).run(op, params, values)


class _LocatorRun:
    """One run, node by node."""

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
        return lambda values: self._lines(body, values)

    def _lines(self, body: Body, values: Values) -> list[Any]:
        held: dict[Node, Any] = dict(zip(body.inputs, values, strict=True))
        for node in body.nodes:
            if node in held:
                continue
            if isinstance(node.op, LeafOp):
                held[node] = node.value
                continue
            operands = [held[a] for a in node.inputs]
            held[node] = value = self._value(node, operands)
            if self._checks.is_bad(value) and not self._checks.is_bad(tuple(operands)):
                self._checks.tell(f"{self._step}{node.op.name}", operands, value, node.where)
        return [held[n] for n in body.outputs]

    def _value(self, node: Node, operands: Values) -> Any:
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
    return _Checked(checks).compile(graph, sizes)(values)


class _Checked(Interpreter):
    """The interpreter, with a check of every value; one object per run."""

    def __init__(self, checks: Checks) -> None:
        self._watch = NodeWatch(checks)

    def compile(self, graph: BaseGraph, sizes: Mapping[str, int]) -> Run:
        """The interpreter's steps, each followed by a check."""
        program = InterpretedProgram(self, graph, sizes, reuses=False)
        program.steps = [
            (self._looked_at(run, graph.nodes[node], sizes), a, b, slot)
            for (run, a, b, slot), node in zip(program.steps, program.node_indices, strict=True)
        ]

        def run(values: Sequence[Any]) -> list[Any]:
            found = program.run(values)
            self._watch.ended(graph.nodes, (*graph.outputs, *graph.updates.values()))
            return found

        return run

    def _looked_at(
        self, run: Callable[..., Any], node: Node, sizes: Mapping[str, int]
    ) -> Callable[..., Any]:
        def step(*operands: Any) -> Any:
            out = run(*operands)
            self._watch.saw(node, substituted(node.params, sizes), operands, out)
            return out

        return step


# ---- derivatives with values


def report_backward(checks: Checks, tape: Tape, seeds: Known, results: Sequence[Any]) -> None:
    """Report the first operation whose cotangents are bad, if a result is bad."""
    if not any(checks.is_bad(value_of(r)) for r in results):
        return
    plain = {n: value_of(t) for n, t in seeds.items()}
    infinite: Node | None = None
    finite = Checks(nan=True, inf=True, raises=False, locator=checks.locator)
    with np.errstate(all="ignore"):
        for step in watched(tape, plain, guarded=True):
            if checks.is_bad(step.cotangent):
                continue  # reported before, or part of the seed
            for i, bar in enumerate(step.passed):
                if checks.is_bad(bar):
                    began = infinite if finite.is_bad(step.cotangent) else None
                    what = f"gradient with respect to operand {i}"
                    _report(checks, step.node, what, bar, step.cotangent, began)
                    return
                if infinite is None and finite.is_bad(bar):
                    infinite = step.node


def report_forward(
    checks: Checks, tape: Tape, given: Known, outputs: Sequence[Node], results: Sequence[Any]
) -> None:
    """Report the first operation whose tangent is bad, if a result is bad."""
    if not any(checks.is_bad(value_of(r)) for r in results):
        return
    with np.errstate(all="ignore"):
        dots = tangents(tape, {n: value_of(t) for n, t in given.items()})
    live = {n for n, r in zip(outputs, results, strict=True) if checks.is_bad(value_of(r))}
    for node in reversed(tape.nodes):  # those that a bad result was computed from
        if node in live:
            live.update(a for a in node.args_as_nodes() if checks.is_bad(dots.get(a)))
    for node in tape.nodes:
        before = [dots[a] for a in node.args_as_nodes() if a in dots]
        if node in live and node.args and not checks.is_bad(tuple(before)):
            _report(checks, node, "derivative", dots[node], tuple(before), None)
            return


def _report(
    checks: Checks,
    node: Node,
    what: str,
    bad: Array,
    given: Array | tuple[Array, ...],
    infinite: Node | None,
) -> None:
    element, index = checks.first(bad) or (None, ())
    place = f" at index {index}" if index else ""
    operands = "; ".join(short(a.value if isinstance(a, Node) else a) for a in node.args)
    began = ""
    if infinite is not None:
        began = f", first infinite in the gradient of {infinite.op.name}{at(infinite.where)}"
    checks.report(
        f"the {what} of {node.op.name} is {element}{place}; its operands are {operands}, and it "
        f"was given the derivative {short(given)}{began}. Keep the operands away from points where "
        "the derivative is infinite or undefined (np.where around them, or clip them); wengert.why "
        "tells more",
        node.where,
    )
