"""Integers that are known while a pattern is found: constants, and what is computed from them.

Which elements a loop reads, `x[k : k + 3]`, depends on its counter, which is different in each step
but does not depend on data.  The rules of loops give the counter of each step to the body; other
integers are computed from it when a rule asks for them.  Numbers are never computed here, since
their last bits, and so an index that is a rounded number, may differ in compiled code.

    KnownValues     the known values of the nodes of one graph
    body_that_runs  the branch that is known to be taken
    LoopValues      those of the body of a loop, in each step
    StepDependent   raised if a rule asks for a value that is different in each step
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import repeat
from typing import Any

import numpy as np

from wengert._engine.core.dispatch import PART
from wengert._engine.core.graph_classes import Body
from wengert._engine.core.node import CONSTANT, ConstantLeaf, Node, is_variable
from wengert._engine.core.spec import Spec
from wengert.errors import WengertError

EVALUATED = frozenset({"elementwise", "view", "indexing", "reduction", "creation"})
ELEMENTS = 1 << 20  # of an array that is computed
STEPS = 1 << 12  # of a loop whose integers are computed
NODE_VISITS = 1 << 15  # of bodies whose steps differ, for one pattern: about two seconds
Ask = Callable[[], Any]


class StepDependent(Exception):
    """A rule asked for a value that is different in each step of a loop.

    Parameters
    ----------
    loop : LoopValues
    """

    def __init__(self, loop: LoopValues) -> None:
        super().__init__("the pattern of a step depends on the number of the step")
        self.loop = loop


class Allowance:
    """The number of nodes that may still be visited in steps that differ from each other."""

    def __init__(self) -> None:
        self.left = NODE_VISITS

    def permits(self, visits: int) -> bool:
        """Whether so many are left; if so, they are used."""
        if visits > self.left:
            return False
        self.left -= visits
        return True


class KnownValues:
    """The values of nodes that do not depend on data; None for all others.

    Parameters
    ----------
    inputs : mapping from Node to callable, optional
        Functions that give the value of an input of the graph, or None.
    allowance : Allowance, optional
        That of the graph that contains this one.
    """

    def __init__(
        self, inputs: Mapping[Node, Ask] | None = None, allowance: Allowance | None = None
    ) -> None:
        self._inputs = inputs or {}
        self._values: dict[Node, Any] = {}
        self.allowance = allowance or Allowance()

    def inside(self, inputs: Iterable[Node], operands: Iterable[Node]) -> KnownValues:
        """The known values of a body with these operands."""
        pairs = zip(inputs, operands, strict=True)
        return KnownValues({n: self.asking(a) for n, a in pairs}, self.allowance)

    def asking(self, node: Node) -> Ask:
        """A function that gives the value of a node."""
        return lambda: self.of(node)

    def of(self, node: Node) -> Any:
        """The value of a node, if it is known; else None."""
        if node.op is CONSTANT and isinstance(node, ConstantLeaf):
            return None if is_variable(node) else node.value
        todo = [node]  # a chain of nodes may be longer than Python's recursion limit
        while todo:
            last = todo[-1]
            missing = [] if last in self._values else self._missing(last)
            if missing:
                todo += missing
                continue
            if last not in self._values:
                self._values[last] = self._found(last)
            todo.pop()
        return self._values[node]

    def _missing(self, node: Node) -> list[Node]:
        if node in self._inputs or not _is_computed(node):
            return []
        return [a for a in node.inputs if a.op is not CONSTANT and a not in self._values]

    def _found(self, node: Node) -> Any:
        if node in self._inputs:
            return self._inputs[node]()
        if node.op is PART:
            return self._part(node.inputs[0], node.params["index"]) if _is_integer(node) else None
        if not _is_computed(node):
            return self.of(node) if node.op is CONSTANT else None
        values = []
        for a in node.inputs:
            value = self.of(a) if a.op is CONSTANT else self._values[a]
            if value is None or np.asarray(value).dtype.kind not in "iub":
                return None
            values.append(value)
        op: Any = node.op
        try:
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return op.run(*values, **node.params)
        except (WengertError, ArithmeticError, LookupError, ValueError):
            return None  # in a branch that is not taken

    def _part(self, node: Node, index: int) -> Any:
        """The value of one of the results of a loop or branch."""
        params, name = node.params, node.op.name
        if name in ("cond", "switch", "sized"):
            body, inputs = body_that_runs(node, self), node.inputs[1:]
            if body is None:
                return None
            return self.inside(body.inputs, inputs).of(body.outputs[index])
        if name not in ("scan", "while") or index >= params["carried"]:
            return None
        loop = LoopValues.of(node, self)
        if name == "while":
            steps = loop.steps_while(params["condition"])
        else:
            steps = self.of(node.inputs[0]) if params["counted"] else params["length"]
        if not isinstance(steps, (int, np.integer)) or steps > STEPS:
            return None
        order = range(max(int(steps), 0))
        return loop.carry_after(order[::-1] if params.get("reverse") else order)[index]


def body_that_runs(node: Node, values: KnownValues) -> Body | None:
    """The branch that is taken, or the body with its lengths; None if that is not known."""
    which, branches = values.of(node.inputs[0]), node.params["branches"]
    if which is None:
        return None
    if node.op.name == "sized":
        sizes = {name: int(n) for name, n in zip(node.params["names"], which, strict=True)}
        return branches[0].at_sizes(sizes)  # type: ignore[no-any-return]
    return branches[min(max(int(which), 0), len(branches) - 1)]  # type: ignore[no-any-return]


def _is_computed(node: Node) -> bool:
    """Whether the value of a node follows from those of its operands: integers, not too many."""
    if node.is_leaf or not node.args or node.op.kind not in EVALUATED:
        return False
    spec = node.spec
    if type(spec) is not Spec or spec.dtype.kind not in "iub":
        return False
    return isinstance(spec.size, int) and spec.size <= ELEMENTS


class LoopValues:
    """The known values of the nodes of a loop's body.

    Parameters
    ----------
    known : KnownValues
        Of the graph that contains the loop.
    body : Body
    operands : sequence of Node
        Constants, carry before the first step, and arrays of which each step gets a row.
    carried, rows : int
        The number of carried values, and of such arrays.
    """

    def __init__(
        self, known: KnownValues, body: Body, operands: Sequence[Node], carried: int, rows: int
    ) -> None:
        self._known, self._body = known, body
        fixed = len(operands) - carried - rows
        pairs = list(zip(body.inputs, operands, strict=True))
        self._fixed = {n: known.asking(a) for n, a in pairs[:fixed]}
        self._carry = [n for n, _ in pairs[fixed : fixed + carried]]
        self._start = [a for _, a in pairs[fixed : fixed + carried]]
        self._rows = pairs[fixed + carried :]
        self._next = body.outputs[:carried]

    @classmethod
    def of(cls, node: Node, known: KnownValues) -> LoopValues:
        """Those of a node, `scan` or `while`."""
        params = node.params
        operands = node.inputs[int(params.get("counted", False)) :]
        return cls(known, params["body"], operands, params["carried"], params.get("stacked", 0))

    def of_all_steps(self) -> KnownValues:
        """Those that are the same in all steps."""
        return KnownValues(self._fixed, self._known.allowance)

    def of_no_step(self) -> KnownValues:
        """The same; `StepDependent` is raised for those that are different in each step."""

        def ask() -> Any:
            raise StepDependent(self)

        differing = [n for n in (*self._carry, *[n for n, _ in self._rows]) if _is_integer(n)]
        return KnownValues({**self._fixed, **dict.fromkeys(differing, ask)}, self._known.allowance)

    def of_each_step(self, numbers: Iterable[int]) -> Iterator[KnownValues]:
        """Those of each step; `numbers` are the rows that the steps get."""
        carry = [self._known.of(a) if _is_integer(a) else None for a in self._start]
        for k in numbers:
            values = self._in_step(carry, k)
            yield values
            carry = self._after(values)

    def carry_after(self, numbers: Iterable[int]) -> list[Any]:
        """The carry after these steps."""
        carry = [self._known.of(a) if _is_integer(a) else None for a in self._start]
        for k in numbers:
            carry = self._after(self._in_step(carry, k))
        return carry

    def _in_step(self, carry: Sequence[Any], k: int) -> KnownValues:
        inputs = dict(self._fixed)
        inputs.update((n, _giving(value)) for n, value in zip(self._carry, carry, strict=True))
        inputs.update((n, self._row(a, k)) for n, a in self._rows)
        return KnownValues(inputs, self._known.allowance)

    def _after(self, values: KnownValues) -> list[Any]:
        return [values.of(n) if _is_integer(n) else None for n in self._next]

    def _row(self, operand: Node, k: int) -> Ask:
        def ask() -> Any:
            value = self._known.of(operand) if _is_integer(operand) else None
            return None if value is None else value[k]

        return ask

    def steps_while(self, condition: Body) -> int | None:
        """The number of steps until a condition is false; None if unknown, or above a limit."""
        for step, values in enumerate(self.of_each_step(repeat(0, STEPS + 1))):
            again = values.inside(condition.inputs, self._body.inputs).of(condition.outputs[0])
            if again is None:
                return None
            if not again:
                return step
        return None


def _giving(value: Any) -> Ask:
    return lambda: value


def _is_integer(node: Node) -> bool:
    return type(node.spec) is Spec and node.spec.dtype.kind in "iub"
