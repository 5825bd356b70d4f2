"""Ranges of the integers in loops: the indices that are in bounds need no check when the loop runs.

    for i in range(n - 1, -1, -1):        0 <= i <= n - 1
        for j in range(i + 1, n):         1 <= j <= n - 1;  i <= n - 2, since there is a step
            A[i, j] += A[i + 1, j - 1]    all are in bounds

An integer is an unknown plus a number; counters of loops are unknowns with a range.  The difference
of two integers, as the number of steps of a loop, relates their unknowns.  Lengths of arrays may be
symbolic: bounds are compared only if their difference is a number.

    IntegerRange    the least and the largest value, None if not known
    Integers        the integers of a graph
    InputFacts      what is known of the inputs of a body
    loop_facts      what is known of the inputs of the body of a loop
    is_inside       whether a range is inside of an axis
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from wengert._engine.core.dispatch import PART
from wengert._engine.core.graph_classes import Body, bodies_of
from wengert._engine.core.handle import value_of, wrap
from wengert._engine.core.node import CONSTANT, Node
from wengert._engine.core.op_facts import BRANCH
from wengert._engine.core.symbolic.dim import Length
from wengert._engine.core.tracing import SIZE

_I64 = np.dtype(np.int64)
_COMPARISONS = frozenset("less less_equal greater greater_equal".split())


class IntegerRange(NamedTuple):
    """The least and the largest value of an integer; None if not known."""

    low: Length | None = None
    high: Length | None = None


ANY = IntegerRange()


class OffsetInteger(NamedTuple):
    """An integer: an unknown, by its number, plus an offset."""

    unknown: int | None
    offset: Length


class Gap(NamedTuple):
    """The difference of two integers, or zero if that is negative and `clipped`."""

    stop: OffsetInteger
    start: OffsetInteger
    clipped: bool


Value = OffsetInteger | Gap


class InputFacts(NamedTuple):
    """What is known of the inputs of a body: their values, and the ranges of the unknowns."""

    inputs: tuple[Value | None, ...]
    ranges: tuple[IntegerRange, ...]


class Integers:
    """The integers of a graph, and the comparisons of them that are known.

    Parameters
    ----------
    nodes : iterable of Node
        Operands first.
    facts : mapping from Node to Value, optional
        What is known of inputs.
    ranges : iterable of IntegerRange
        Of the unknowns in the facts.

    Attributes
    ----------
    ranges : list of IntegerRange
    truths : dict from Node to bool
    """

    def __init__(
        self,
        nodes: Iterable[Node],
        facts: Mapping[Node, Value] | None = None,
        ranges: Iterable[IntegerRange] = (),
    ) -> None:
        self.ranges = list(ranges)
        self._values: dict[Node, Value] = dict(facts or {})
        self.truths: dict[Node, bool] = {}
        self._branches: dict[Node, list[Integers]] = {}
        for node in nodes:
            if type(node.spec) is tuple or node.spec.shape:
                continue
            if node.spec.dtype.kind == "b":
                truth = self._truth(node)
                if truth is not None:
                    self.truths[node] = truth
            elif node.spec.dtype == _I64 and node not in self._values:
                self._values[node] = self._value(node)

    @classmethod
    def of_body(cls, body: Body, facts: InputFacts | None) -> Integers:
        """The integers of a body."""
        if facts is None:
            return cls(body.nodes)
        pairs = zip(body.inputs, facts.inputs, strict=True)
        return cls(body.nodes, {n: x for n, x in pairs if x is not None}, facts.ranges)

    def value(self, node: Node) -> Value | None:
        """The value of a node; None if it is no integer."""
        return self._values.get(node)

    def range_of(self, node: Node) -> IntegerRange:
        """The range of a node."""
        found = self._values.get(node)
        return ANY if found is None else self.range(found)

    def range(self, x: Value) -> IntegerRange:
        """The range of a value."""
        if isinstance(x, OffsetInteger):
            if x.unknown is None:
                return IntegerRange(x.offset, x.offset)
            return IntegerRange(*[_plus(b, x.offset) for b in self.ranges[x.unknown]])
        stop, start = self.range(x.stop), self.range(x.start)
        low, high = _minus(stop.low, start.high), _minus(stop.high, start.low)
        return _at_least(IntegerRange(low, high), 0) if x.clipped else IntegerRange(low, high)

    # ---- nodes -----------------------------------------------------------------------------------

    def _fresh(self, found: IntegerRange = ANY) -> OffsetInteger:
        self.ranges.append(found)
        return OffsetInteger(len(self.ranges) - 1, 0)

    def _value(self, node: Node) -> Value:
        name = node.op.name
        if node.op is CONSTANT:
            return OffsetInteger(None, int(value_of(wrap(node))))
        if node.op is SIZE:
            return OffsetInteger(None, node.params["size"])
        if node.op is PART:
            return self._fresh(self._result(node))
        operands = [self._values.get(a) for a in node.inputs]
        if not operands or None in operands:
            return self._fresh()
        if name in ("discretise", "copy", "cast") and len(operands) == 1:
            return operands[0]  # type: ignore[return-value]
        if len(operands) == 2:
            found = self._of_two(name, *operands)  # type: ignore[arg-type]
            if found is not None:
                return found
        return self._fresh()

    def _of_two(self, name: str, a: Value, b: Value) -> Value | None:
        if name == "maximum":
            for x, y in ((a, b), (b, a)):
                if isinstance(x, Gap) and y == OffsetInteger(None, 0):
                    return x._replace(clipped=True)
                if isinstance(y, OffsetInteger) and y.unknown is None:
                    return self._fresh(_at_least(self.range(x), y.offset))
        if not isinstance(a, OffsetInteger) or not isinstance(b, OffsetInteger):
            return None
        if name == "add":
            first, second = (b, a) if a.unknown is None else (a, b)
            if second.unknown is None:
                return OffsetInteger(first.unknown, first.offset + second.offset)
        if name == "subtract":
            if b.unknown is None:
                return OffsetInteger(a.unknown, a.offset - b.offset)
            if a.unknown == b.unknown:
                return OffsetInteger(None, a.offset - b.offset)
            return Gap(a, b, False)
        if name == "remainder" and b.unknown is None and _is_at_least(b.offset, 1):
            return self._fresh(IntegerRange(0, b.offset - 1))
        return None

    # ---- branches --------------------------------------------------------------------------------

    def _inside(self, node: Node) -> list[Integers]:
        """The integers of the branches of a conditional; none of other nodes."""
        found = self._branches.get(node)
        if found is None:
            bodies = node.params["branches"] if node.op.control_flow == BRANCH else ()
            facts = self.facts_of([self._values.get(x) for x in node.inputs[1:]], self.ranges)
            found = self._branches[node] = [Integers.of_body(b, facts) for b in bodies]
        return found

    def _result(self, node: Node) -> IntegerRange:
        """The range of a result of a conditional: that of its branches together."""
        (whole,) = node.inputs
        inside = self._inside(whole)
        if not inside:
            return ANY
        bodies = whole.params["branches"]
        ranges = [
            x.range_of(b.outputs[node.params["index"]]) for x, b in zip(inside, bodies, strict=True)
        ]
        low, high = ranges[0]
        for x in ranges[1:]:
            low = x.low if _is_at_least(low, x.low) else low if _is_at_least(x.low, low) else None
            high = (
                x.high
                if _is_at_least(x.high, high)
                else high
                if _is_at_least(high, x.high)
                else None
            )
        return IntegerRange(low, high)

    def _truth(self, node: Node) -> bool | None:
        """Whether a condition holds; None if that is not known."""
        if node.op.name in _COMPARISONS:
            return self._comparison(node)
        if node.op.name == "cast":
            return self.truths.get(node.inputs[0])
        if node.op is PART and node.inputs[0].op.name == "cond":
            (whole,) = node.inputs
            taken = self.truths.get(whole.inputs[0])
            if taken is not None:
                body = whole.params["branches"][int(taken)]
                return self._inside(whole)[int(taken)].truths.get(
                    body.outputs[node.params["index"]]
                )
        return None

    def _comparison(self, node: Node) -> bool | None:
        a, b = [self._values.get(x) for x in node.inputs]
        if a is None or b is None:
            return None
        if node.op.name.startswith("greater"):
            a, b = b, a
        strict = int(not node.op.name.endswith("equal"))  # a + strict <= b
        first, second = self.range(a), self.range(b)
        least, most = _minus(second.low, first.high), _minus(second.high, first.low)
        if _is_at_least(least, strict):
            return True
        return False if most is not None and _is_at_least(strict - 1 - most, 0) else None

    # ---- bodies ----------------------------------------------------------------------------------

    def facts_of(
        self, values: Sequence[Value | None], ranges: Sequence[IntegerRange]
    ) -> InputFacts:
        """Values as facts of a body, with its own numbers of unknowns."""
        numbers: dict[int, int] = {}

        def renamed(x: OffsetInteger) -> OffsetInteger:
            if x.unknown is None:
                return x
            return OffsetInteger(numbers.setdefault(x.unknown, len(numbers)), x.offset)

        found: list[Value | None] = []
        for x in values:
            if isinstance(x, Gap):
                found.append(Gap(renamed(x.stop), renamed(x.start), x.clipped))
            else:
                found.append(None if x is None else renamed(x))
        return InputFacts(tuple(found), tuple([ranges[k] for k in numbers]))


def loop_facts(known: Integers, node: Node, body: Body, carried: int) -> InputFacts | None:
    """What is known of the inputs of the body of a scan; None if it has no computed indices.

    Parameters
    ----------
    known : Integers
        Those of the graph of the node.
    body : Body
        Of the node; it may have more carried values, which are last.
    """
    if not _has_indices(body):
        return None
    params, operands = node.params, list(node.inputs)
    count: Value | None = None
    if params["counted"]:
        count = known.value(operands.pop(0))
    elif params["length"] is not None:
        count = OffsetInteger(None, params["length"])
    fixed = len(body.inputs) - carried - params.get("stacked", 0)
    values: list[Value | None] = [known.value(a) for a in operands[: fixed + params["carried"]]]
    ranges = list(known.ranges)
    steps = _steps(body, fixed, carried)
    for k in range(params["carried"]):
        start, step = values[fixed + k], steps[k]
        if step == 0:
            continue
        values[fixed + k] = None
        if isinstance(start, OffsetInteger) and step is not None:
            ranges.append(_counter(known, start, step, count))
            values[fixed + k] = OffsetInteger(len(ranges) - 1, 0)
    if isinstance(count, Gap):  # start < stop, as there is a step
        low, high = known.range(count.start).low, known.range(count.stop).high
        _raise(ranges, count.stop, _plus(low, 1))
        _reduce(ranges, count.start, _plus(high, -1))
    values += [None] * (len(body.inputs) - len(values))
    return known.facts_of(values, ranges)


@functools.lru_cache(maxsize=512)
def _has_indices(body: Body) -> bool:
    """Whether a body, or one inside, reads or stores elements at indices that it computes."""
    return any(
        ("index" in n.params and any(a.spec.dtype == _I64 for a in n.inputs[1:]))
        or any(map(_has_indices, bodies_of(n)))
        for n in body.nodes
    )


@functools.lru_cache(maxsize=512)
def _steps(body: Body, fixed: int, carried: int) -> list[int | None]:
    """By how much each carried integer grows in a step; None if that is not known."""
    inside = Integers(body.nodes)
    found: list[int | None] = []
    for k in range(carried):
        before, after = inside.value(body.inputs[fixed + k]), inside.value(body.outputs[k])
        step = None
        if (
            isinstance(before, OffsetInteger)
            and isinstance(after, OffsetInteger)
            and before.unknown is not None
        ):
            is_counter = before.unknown == after.unknown and type(after.offset) is int
            step = after.offset if is_counter else None
        found.append(step)  # type: ignore[arg-type]
    return found


def _counter(known: Integers, start: OffsetInteger, step: int, count: Value | None) -> IntegerRange:
    """The range of a counter."""
    first = known.range(start)
    last: Length | None = None  # of the steps, counted from 0
    if isinstance(count, OffsetInteger) and count.unknown is None:
        last = count.offset - 1
    elif count is not None:
        last = _plus(known.range(count).high, -1)
    if step > 0:
        if isinstance(count, Gap) and step == 1 and count.start == start:
            return IntegerRange(first.low, _plus(known.range(count.stop).high, -1))
        return IntegerRange(first.low, None if last is None else _plus(first.high, step * last))
    if isinstance(count, OffsetInteger) and count.unknown == start.unknown and step == -1:
        return IntegerRange(start.offset - count.offset + 1, first.high)
    return IntegerRange(None if last is None else _plus(first.low, step * last), first.high)


def _raise(ranges: list[IntegerRange], x: OffsetInteger, low: Length | None) -> None:
    """Note a lower bound of a form."""
    if x.unknown is not None and low is not None:
        old = ranges[x.unknown]
        new = low - x.offset
        if old.low is None or _is_at_least(new, old.low):
            ranges[x.unknown] = IntegerRange(new, old.high)


def _reduce(ranges: list[IntegerRange], x: OffsetInteger, high: Length | None) -> None:
    """Note an upper bound of a form."""
    if x.unknown is not None and high is not None:
        old = ranges[x.unknown]
        new = high - x.offset
        if old.high is None or _is_at_least(old.high, new):
            ranges[x.unknown] = IntegerRange(old.low, new)


def is_inside(x: IntegerRange, length: Length) -> bool:
    """Whether a range is inside of an axis."""
    return _is_at_least(x.low, 0) and x.high is not None and _is_at_least(length - 1, x.high)


def is_natural(x: IntegerRange) -> bool:
    """Whether there are no negative numbers in a range."""
    return _is_at_least(x.low, 0)


def _is_at_least(a: Length | None, b: Length | None) -> bool:
    """Whether a >= b for all sizes."""
    if a is None or b is None:
        return False
    gap = a - b
    return type(gap) is int and gap >= 0


def _at_least(x: IntegerRange, least: Length) -> IntegerRange:
    """The range of the larger of an integer and a number."""
    low = x.low if _is_at_least(x.low, least) else least
    if x.high is None or _is_at_least(x.high, least):
        return IntegerRange(low, x.high)
    return IntegerRange(low, least if _is_at_least(least, x.high) else None)


def _plus(a: Length | None, b: Length) -> Length | None:
    return None if a is None else a + b


def _minus(a: Length | None, b: Length | None) -> Length | None:
    return None if a is None or b is None else a - b
