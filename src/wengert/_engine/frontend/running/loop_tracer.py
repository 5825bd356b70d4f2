"""Loop tracer: a loop of a user function as a node of the graph.

The body is traced once, on placeholders of the counter, of variables that an iteration reads before
it assigns them, of the arrays that it modifies, and of the elements and attributes of objects that
it assigns (assignment_targets.py), which are treated as variables.  It is traced again if it
modifies others,
or if a variable changes its dtype.

    LoopTracer    traces a loop, makes its node, and sets the variables to the values after it
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wengert._engine.control_flow.closure_conversion import (
    Closed,
    cut,
    operand,
    output,
    together,
    with_lengths_grouped,
)
from wengert._engine.control_flow.loops import recorded, scan_node
from wengert._engine.control_flow.operations import while_op
from wengert._engine.core.handle import Handle, describe, make_ambiguous, rebind, wrap
from wengert._engine.core.node import INPUT, Node, next_serial
from wengert._engine.core.op import lookup
from wengert._engine.core.runtime_checks import RuntimeChecks
from wengert._engine.core.spec import Spec
from wengert._engine.core.symbolic.dim import Dim, bounds
from wengert._engine.core.tracing import placeholder, record, size_value
from wengert._engine.ops.casts import astype
from wengert.errors import TraceError

from ..assignment_targets import containers
from ..state import UNBOUND, NotTraceable, SharedVariables, Speculation, cell_value, subject
from .block_tracing import SliceLengths, TracedBlock, arrays_of, refuse_references, traced
from .booleans import and_, not_
from .iterables import Items, note_counter_range, size_or_value
from .list_appends import Collecting
from .loop_facts import LoopFacts, is_unknown, stopped
from .values import (
    MaybeUnbound,
    PartitionedValue,
    as_bool,
    cast,
    joined_spec,
    like_spec,
    maybe_unbound,
    placeholder_value,
)

_INTEGER = np.dtype(np.int64)
_COUNTER = Spec((), _INTEGER, weak=True)
_TRUTH = Spec((), np.dtype(np.bool_))
_ROUNDS = 12  # the body is traced at most that often
_SEARCHES = 3  # of these because it assigned elements or attributes that were not known


class LoopTracer:
    """A loop that becomes a node.

    Parameters
    ----------
    body : callable
    items : Items or None
        Of a ``for`` loop.
    test : callable or None
        Of a ``while`` loop.
    facts : LoopFacts
    variables : SharedVariables
    slices : SliceLengths, optional
        As for `traced`.
    """

    def __init__(
        self,
        body: Callable[..., None],
        items: Items | None,
        test: Callable[[], Any] | None,
        facts: LoopFacts,
        variables: SharedVariables,
        slices: SliceLengths | None = None,
    ) -> None:
        self._slices = slices
        if facts.refusal is not None:
            raise NotTraceable(facts.refusal)
        self._body, self._items, self._test = body, items, test
        self._facts, self._variables = facts, variables.of(facts.assigned)
        self._before = variables.read()
        self._kept: set[str] = set()  # variables whose objects it changes, and which refer to them
        self._searches = 0
        updated = [self._before[n] for n in facts.updated if n in self._before]
        stored = [
            self._before[n]
            for n in facts.stored
            if n in self._before and (n not in facts.assigned or n in facts.updated)
        ]
        modified = [x for x in (*updated, *stored) if isinstance(x, Handle) and _is_array(x)]
        self._arrays = arrays_of(modified)
        in_place = {
            n
            for n in facts.updated
            if n in self._before and self._before[n] in _Identities(modified)
        }
        names = [n for n in facts.assigned if n in (*facts.carried, *facts.live)]
        self._parts = {
            n: PartitionedValue.of(self._before[n])
            for n in names
            if n not in in_place and self._before[n] is not UNBOUND
        }
        self._specs = {n: p.specs for n, p in self._parts.items()}
        self._new = [n for n in facts.live if n in self._before and self._before[n] is UNBOUND]
        self._fresh: dict[str, PartitionedValue] = {}
        counted = items is not None and type(items.length) is int and not facts.stops
        why = None if counted else "it appends to a list, whose length would depend on values"
        self._filled = Collecting([self._before.get(n) for n in facts.filled], why)

    def run(self) -> None:
        """Trace the body, make the node, and set the variables to the values after the loop."""
        for _ in range(_ROUNDS):
            if (attempt := self._attempt()) is not None:
                self._finish(*attempt)
                return
        raise NotTraceable("its variables change their dtypes in each trip")

    # ---- one attempt ---------------------------------------------------------------------------

    def _attempt(self) -> Any:
        """Trace the body once; None if it must be traced again."""
        since = next_serial()
        self._counter = placeholder(_COUNTER)
        if self._items is not None:
            note_counter_range(self._counter, self._items)
        self._inputs = [self._counter] if self._items is not None else []
        values: dict[str, Any] = dict.fromkeys(self._facts.assigned, UNBOUND)
        values = {n: v for n, v in values.items() if n in self._before}
        for n in self._before:
            if n in values and n not in self._parts and self._before[n] is not UNBOUND:
                values[n] = self._before[n] if n in self._facts.updated else UNBOUND
        placeholders: dict[str, list[Node]] = {}
        for name, specs in self._specs.items():
            placeholders[name] = [placeholder(s) for s in specs]
            self._inputs += placeholders[name]
        arrays = [
            (a, placeholder(Spec(a.node.spec.shape, a.node.spec.dtype))) for a in self._arrays
        ]
        self._inputs += [node for _, node in arrays]
        condition: Any = None
        handles: dict[str, list[Any]] = {}

        def trip() -> None:
            nonlocal condition
            for name, nodes in placeholders.items():
                handles[name] = [
                    _handle(n, x)
                    for n, x in zip(nodes, self._parts[name].numeric_leaves, strict=True)
                ]
                note = functools.partial(Speculation.note_built, name=name)
                values[name] = self._parts[name].rebuild(list(handles[name]), note)
            self._variables.write(values)
            condition = self._condition()
            if self._items is None:
                self._body()
            else:
                self._body(self._items.item(_number(self._counter)))

        if self._slices is not None:
            self._slices.names.clear()
        with self._filled.block():
            block = traced(trip, self._variables, arrays, since, slices=self._slices)
        known = _Identities(self._arrays)
        new = [a for a in block.arrays if a not in known]
        self._arrays += new
        if not self._knows_objects(block) or new or not self._agree(block):
            return None
        return block, condition, placeholders, handles

    def _condition(self) -> Any:
        """Whether there is another trip; None if that is known from their number."""
        stop = stopped(self._facts, self._variables)
        if self._test is not None:
            found = self._test() if stop is False else and_(not_(stop), self._test)
        elif not self._facts.stops:
            return None
        else:
            items = self._items
            assert items is not None
            end = size_or_value(items.start) + size_or_value(items.length) * items.step
            counter = wrap(self._counter)
            found = counter < end if items.step > 0 else counter > end
            found = and_(not_(stop), lambda: found) if stop is not False else found
        if not is_unknown(found):
            raise NotTraceable("its condition does not change")
        return as_bool(found)

    def _knows_objects(self, block: TracedBlock) -> bool:
        """Whether the elements and attributes that it assigns were known; they are afterwards.

        A variable that refers to an object whose parts are assigned keeps referring to it.
        """
        assert block.frame is not None
        changes, known = block.frame.changes, self._variables.places
        new = [p for p in block.places if p not in known]
        kept = block.frame.modified | {
            n for n in self._parts if any(id(x) in changes for x in containers(self._before[n]))
        }
        kept -= self._kept
        for name in kept:
            self._parts[name], self._specs[name] = PartitionedValue.opaque(self._before[name]), []
        self._kept |= kept
        for place, value in block.places.items():
            if value is UNBOUND:
                raise NotTraceable(f"it deletes {place}")
            before = cell_value(place)
            if before is UNBOUND:
                is_list = type(place.owner) is list
                what = "which changes its length" if is_list else "which had no value before"
                raise NotTraceable(f"it assigns {place}, {what}", not is_list)
            if place in new:
                name = self._variables.add(place)
                self._before[name], self._parts[name] = before, PartitionedValue.of(before)
                self._specs[name] = self._parts[name].specs
        self._searches += bool(new)
        if self._searches > _SEARCHES:
            raise NotTraceable(f"it assigns {new[0]}, of another object in each trip")
        return not new and not kept

    def _agree(self, block: TracedBlock) -> bool:
        """Whether the variables have the specs that they had; else these are widened."""
        right = True
        appended = [("a list", v) for v in self._filled.values]
        names = [n for n in (*self._parts, *self._new) if n not in self._kept]
        refuse_references(block, [*appended, *[(n, block.values[n]) for n in names]])
        for n in names:
            block.values[n] = block.at_end(block.values[n])
        for name, parts in self._parts.items():
            after = self._after(block, name)
            parts.check_like(after, name)
            wanted = [
                joined_spec(a, b, name) for a, b in zip(self._specs[name], after.specs, strict=True)
            ]
            if wanted != self._specs[name]:
                self._specs[name], right = wanted, False
        for name in list(self._new):
            value = block.values[name]
            if value is UNBOUND:
                continue
            if type(value) is MaybeUnbound or not (name.startswith("__wg_") or self._has_a_trip()):
                start = maybe_unbound(UNBOUND, value)
                self._parts[name] = PartitionedValue.of(start._replace(defined=np.False_))
                self._specs[name] = self._parts[name].specs
                self._new.remove(name)
                right = False
                continue
            after = PartitionedValue.of(value)
            if not all(after.numeric):
                raise NotTraceable(f"the variable {name} becomes a {type(value).__name__}")
            self._fresh[name] = after
        for array in self._arrays:
            spec, now = array.node.spec, block.arrays[array].spec
            if (spec.shape, spec.dtype) != (now.shape, now.dtype):
                raise NotTraceable(f"an array {spec} becomes {now}")
        return right

    def _after(self, block: TracedBlock, name: str) -> PartitionedValue:
        """The value of a variable at the end of an iteration."""
        value = block.values[name]
        start = self._parts[name]
        if name in self._kept:
            return PartitionedValue.opaque(value)
        is_maybe = start.structure is not None and isinstance(
            start.rebuild(start.numeric_leaves), MaybeUnbound
        )
        if is_maybe and type(value) is not MaybeUnbound:
            value = maybe_unbound(value, start.rebuild(start.numeric_leaves))
            value = value._replace(defined=np.bool_(value.defined))
        return PartitionedValue.of(value)

    def _has_a_trip(self) -> bool:
        if self._items is None:
            return False
        length = self._items.length
        if isinstance(length, Dim):
            return (bounds(length)[0] or 0) >= 1
        return type(length) is int and length >= 1

    # ---- the node ------------------------------------------------------------------------------

    def _finish(
        self,
        block: TracedBlock,
        condition: Any,
        placeholders: dict[str, list[Node]],
        handles: dict[str, list[Any]],
    ) -> None:
        outputs: list[Node] = []
        start: list[Any] = []
        if self._items is not None:
            outputs.append(output(wrap(self._counter) + self._items.step, "loop"))
            start.append(astype(_strong(self._items.start), _INTEGER))
        ambiguous = []
        for name, parts in self._parts.items():
            after = self._after(block, name)
            for x, y, spec, node, handle in zip(
                parts.numeric_leaves,
                after.numeric_leaves,
                self._specs[name],
                placeholders[name],
                handles[name],
                strict=True,
            ):
                outputs.append(output(_strong(cast(y, spec)), "loop"))
                start.append(_strong(cast(x, spec)))
                if spec.shape and handle.node is not node and isinstance(x, Handle):
                    ambiguous.append(x)
                elif spec.shape and handle.node is not node:
                    raise NotTraceable(
                        f"it modifies {subject(name)}, a plain array, and assigns it"
                    )
        for array in self._arrays:
            outputs.append(block.arrays[array])
            start.append(wrap(array.node))
        inputs = list(self._inputs)
        for check in block.checks:
            before = placeholder(_TRUTH)
            outputs.append(output(lookup("logical_or")(wrap(before), check.failed), "loop"))
            start.append(np.False_)
            inputs.append(before)
        for parts in self._fresh.values():
            for x, spec in zip(parts.numeric_leaves, parts.specs, strict=True):
                outputs.append(output(_strong(x), "loop"))
                start.append(_strong(placeholder_value(spec)))
                inputs.append(placeholder(Spec(spec.shape, spec.dtype)))
        if self._filled.appends_any(self._arrays, block.since) or (
            ambiguous and self._filled.has_arrays
        ):
            raise NotTraceable("it appends an array that it modifies, or that was made before it")
        rows = self._filled.rows()
        outputs += [output(_strong(x), "loop") for r in rows for x in r.numeric_leaves]
        outs = self._node(outputs, inputs, start, condition, block)
        self._assign(outs, ambiguous, block)
        stacked = iter(outs[len(start) :])
        for r in rows:
            r.finish([next(stacked) for _ in r.numeric_leaves], self._items.length)  # type: ignore[union-attr]

    def _node(
        self,
        outputs: list[Node],
        inputs: list[Node],
        start: list[Any],
        condition: Any,
        block: TracedBlock,
    ) -> list[Any]:
        outputs = self._grouped(outputs, inputs, block)
        since = block.since
        body, outside = cut(outputs, inputs, since, "loop", hoist=True)
        closed = Closed(body, [operand(n) for n in outside], None, ())
        if condition is None:
            assert self._items is not None
            length = self._items.length
            count = None
            if isinstance(length, Dim) and (bounds(length)[0] or -1) < 0:
                length = size_value(length)
            if isinstance(length, Handle):
                count = lookup("maximum")(astype(length, _INTEGER), np.int64(0))
                length = None
            return scan_node(closed, start, [], length, False, count)
        tests = self._grouped([output(condition, "loop")], inputs, block)
        test, more = cut(tests, inputs, since, "loop", hoist=True)
        both, captured = together([closed, Closed(test, [operand(n) for n in more], None, ())])
        params = {
            "body": both[0],
            "condition": both[1],
            "carried": len(start),
            "limit": None,
            "length": None,
        }
        return list(recorded(while_op, [*captured, *start], params))[: len(start)]

    def _grouped(self, outputs: list[Node], inputs: list[Node], block: TracedBlock) -> list[Node]:
        """The outputs, with what uses slices of computed lengths in nodes of their own."""
        try:
            return with_lengths_grouped(outputs, inputs, block.since, block.lengths, "loop")
        except TraceError as error:
            raise NotTraceable(str(error).rstrip(".")) from error

    def _assign(self, outs: list[Any], ambiguous: list[Handle], block: TracedBlock) -> None:
        rest = iter(outs[1:] if self._items is not None else outs)
        values: dict[str, Any] = {}
        for name, parts in self._parts.items():
            numbers = [like_spec(next(rest), spec) for spec in self._specs[name]]
            values[name] = parts.rebuild(numbers)
        for array in self._arrays:
            rebind(array, next(rest).node)
        for check in block.checks:
            RuntimeChecks.add(next(rest), check.error)
        for name, parts in self._fresh.items():
            values[name] = parts.rebuild([like_spec(next(rest), s) for s in parts.specs])
        for handle in ambiguous:
            make_ambiguous(handle)
        names = {*self._facts.assigned, *self._variables.places.values()}
        self._variables.write({n: v for n, v in values.items() if n in names})


class _Identities:
    """A set of objects that compares by identity."""

    def __init__(self, values: Sequence[Any]) -> None:
        self._known = {id(v) for v in values}

    def __contains__(self, x: Any) -> bool:
        return id(x) in self._known


def _is_array(x: Handle) -> bool:
    return bool(x.node.spec.shape) or x.node.op is INPUT or hasattr(x, "_link")


def _handle(node: Node, given: Any) -> Any:
    """A placeholder as a value; a number must not be modified in place."""
    if node.spec.shape or (isinstance(given, Handle) and _is_array(given)):
        return wrap(node)
    return _number(node)


def _number(node: Node) -> Any:
    return record(lookup("cast"), [node], {"dtype": node.spec.dtype}, weak=True)


def _strong(x: object) -> Any:
    """An operand of the loop: an array or a number with a dtype."""
    if isinstance(x, Dim):
        return astype(size_value(x), _INTEGER)
    if isinstance(x, Handle):
        spec = describe(x)
        return astype(x, spec.dtype) if spec.weak else x
    return np.asarray(x)[()]
