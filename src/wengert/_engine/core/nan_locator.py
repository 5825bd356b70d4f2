"""Inside: which line of a list, a loop or a choice made the first NaN or infinity.

A line of the function itself that makes a bad number of good ones is told at once.  Lines of
derivatives are guarded where a slope is infinite and what was not chosen is NaN, so they are told
only if a result comes of them.

A loop is one operation to whoever looks at values (nonfinite_checks.py).  When what it gives is
bad, it is run once more, line by line, and the search stops at the first line whose operands are
good.

    Watch          a list that is being run, line by line
    look_inside    run a loop again, and tell of the line
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from .dispatch import PART
from .node import Leaf, Node
from .nonfinite_checks import Checks
from .subgraph import Body, evaluated

Values = Sequence[Any]


class Watch:
    """What is seen of the lines of a list while it runs.

    Parameters
    ----------
    checks : Checks
    """

    def __init__(self, checks: Checks) -> None:
        self._checks = checks
        self._bad: set[Node] = set()
        self._born: dict[Node, Callable[[], None]] = {}

    def saw(self, node: Node, params: Any, operands: Values, out: Any) -> None:
        """A line gave a value; `params` are its parameters, or None if it ran in another way.

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
        """Tell of the first line of a derivative that a bad result was computed from.

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


def look_inside(checks: Checks, op: Any, params: dict[str, Any], values: Values) -> None:
    """Run a loop or choice again, line by line, and tell of the line that made it.

    Parameters
    ----------
    checks : Checks
    op, params, values
        The operation, its parameters and its operands.

    Raises
    ------
    NotFiniteError
        Naming that line, and the step of the loop.
    """
    _Walk(checks).run(op, params, values)


class _Walk:
    """One run, line by line."""

    def __init__(self, checks: Checks) -> None:
        self._checks = checks
        self._step = ""

    def run(self, op: Any, params: dict[str, Any], values: Values) -> Any:
        """What a loop or choice gives."""
        outer = self._step

        def visit(number: int, _: Any) -> None:
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
            if isinstance(node.op, Leaf):
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
