"""Trace a loop of a user function, and add it to the graph as a ``scan`` or ``while`` node.

The body is traced on placeholders for the loop counter and the carry: variables that an iteration
reads before it assigns them, arrays that it modifies, and elements and attributes of objects that
it assigns (assignment_targets.py).  If it turns out to modify or assign others, or if a variable
changes its dtype, the carry is extended and the body is traced again.

    LoopTracer    traces a loop, adds its node, and sets the variables to their values after it
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from wengert._engine.control_flow.closure_conversion import output
from wengert._engine.core.branch_aliases import forget_all
from wengert._engine.core.handle import Handle, is_traced, make_ambiguous, rebind, wrap
from wengert._engine.core.node import Node, next_serial
from wengert._engine.core.op import lookup
from wengert._engine.core.runtime_checks import RuntimeChecks
from wengert._engine.core.spec import Spec
from wengert._engine.core.symbolic.dim import Dim, bounds
from wengert._engine.core.traced_inputs import is_array, modified_in_place
from wengert._engine.core.tracing import placeholder, record
from wengert._engine.ops.casts import astype

from ..assignment_targets import containers
from ..state import UNBOUND, NotTraceable, SharedVariables, Speculation, cell_value, subject
from .appended_arrays import relate_appended, writes_appended
from .block_tracing import SliceLengths, TracedBlock, arrays_of, refuse_references, traced
from .builtin_operations import LoopFacts, and_, not_, stopped
from .iterables import Items, note_counter_range, size_or_value
from .list_appends import LoopAppends
from .loop_memory import LoopMemory
from .loop_node import loop_node, strongly_typed
from .stacked_lists import LONGEST_OF_COPIES, ListNeeded, StackedList, stacking
from .values import (
    Identities,
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
_BOOL = Spec((), np.dtype(np.bool_))
_MAX_ATTEMPTS = 12  # times that the body is traced
_MAX_TARGET_SEARCHES = 3  # times that it is traced again because it assigns further targets


class LoopTracer:
    """A loop that becomes a node.

    Parameters
    ----------
    body : callable
    items : Items or None
        The items of a ``for`` loop.
    test : callable or None
        The condition of a ``while`` loop.
    facts : LoopFacts
    variables : SharedVariables
    slices : SliceLengths, optional
        See `block_tracing.traced`.
    runs : Tensor or bool, optional
        Whether a ``while`` loop has an iteration.
    """

    def __init__(
        self,
        body: Callable[..., None],
        items: Items | None,
        test: Callable[[], Any] | None,
        facts: LoopFacts,
        variables: SharedVariables,
        slices: SliceLengths | None = None,
        runs: Any = None,
    ) -> None:
        self._slices, self._runs, self._memory = slices, runs, LoopMemory()
        if facts.refusal is not None:
            raise NotTraceable(facts.refusal)
        self._body, self._items, self._test = body, items, test
        self._facts, self._variables = facts, variables.of(facts.assigned)
        self._before = variables.read()
        self._by_reference: set[str] = set()  # variables that refer to objects which it changes
        self._searches = 0
        self._aliased: list[Any] = []  # arrays of attempts that share memory on conditions
        self._lists: dict[int, StackedList] = {}
        updated = [self._before[n] for n in facts.updated if n in self._before]
        stored = [
            self._before[n]
            for n in facts.stored
            if n in self._before and (n not in facts.assigned or n in facts.updated)
        ]
        modified = [
            x for x in (*updated, *stored) if isinstance(x, Handle) and modified_in_place(x)
        ]
        self._arrays = arrays_of(modified)
        updated_in_place = {
            n
            for n in facts.updated
            if n in self._before and self._before[n] in Identities(modified)
        }
        carried = [n for n in facts.assigned if n in (*facts.carried, *facts.live)]
        self._parts = {
            n: PartitionedValue.of(self._before[n])
            for n in carried
            if n not in updated_in_place and self._before[n] is not UNBOUND
        }
        self._specs = {n: p.specs for n, p in self._parts.items()}
        self._unbound_before = [
            n for n in facts.live if n in self._before and self._before[n] is UNBOUND
        ]
        self._first_assigned: dict[str, PartitionedValue] = {}
        lists = [self._before.get(n) for n in facts.filled]
        self._appends = LoopAppends(lists, items, bool(facts.stops), variables.of(facts.filled))

    def run(self) -> None:
        """Trace the body, make the node, and set the variables to the values after the loop."""
        try:
            for _ in range(_MAX_ATTEMPTS):
                if (attempt := self._attempt()) is not None:
                    self._refuse_copies()
                    self._add_node(*attempt)
                    for stack in self._lists.values():
                        stack.finish()
                    return
        finally:
            self._memory.end()
            forget_all(self._aliased)
        raise NotTraceable("its variables change their dtypes in each iteration")

    # ---- one attempt ---------------------------------------------------------------------------

    def _attempt(self) -> Any:
        """Trace the body once; None if it must be traced again."""
        since = next_serial()
        self._memory.begin(since)
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

        def iteration() -> None:
            nonlocal condition
            for name, nodes in placeholders.items():
                handles[name] = [
                    _handle(n, x)
                    for n, x in zip(nodes, self._parts[name].numeric_leaves, strict=True)
                ]
                note = functools.partial(Speculation.note_built, name=name)
                self._memory.enter(name, self._parts[name], handles[name], nodes)
                values[name] = self._parts[name].rebuild(list(handles[name]), note)
            self._memory.relate()
            self._variables.write(values)
            condition = self._condition()
            if self._items is None:
                self._body()
            else:
                self._body(self._items.item(_number(self._counter)))

        if self._slices is not None:
            self._slices.names.clear()
        try:
            with self._appends.block(), stacking(self, self._lists):
                block = traced(iteration, self._variables, arrays, since, slices=self._slices)
        except ListNeeded as error:
            self._stack(error, since)
            return None
        self._aliased += block.aliased
        known = Identities(self._arrays)
        new = [a for a in block.arrays if a not in known]
        self._arrays += new
        if not self._targets_are_known(block) or new or not self._specs_agree(block):
            return None
        return block, condition, placeholders, handles

    def _stack(self, error: ListNeeded, since: int) -> None:
        """Stack a list that the body uses at a traced index."""
        if error.loop is not self:
            raise error
        stack = self._lists.get(id(error.list))
        if stack is None:
            self._lists[id(error.list)] = StackedList(error.list, since)
            return
        known = Identities(stack.arrays)
        stack.restack()
        self._arrays = [*[a for a in self._arrays if a not in known], *stack.arrays]

    def _refuse_copies(self) -> None:
        """Unroll a short loop that only reads lists of arrays, which would be copied."""
        length = None if self._items is None else self._items.length
        is_short = type(length) is int and length <= LONGEST_OF_COPIES and not self._facts.stops
        if is_short and any(x.copies_much for x in self._lists.values()):
            raise NotTraceable("it reads a list of arrays, which would be copied")

    def _condition(self) -> Any:
        """Whether there is another iteration; None if their number is known before the loop."""
        stop = stopped(self._facts, self._variables)
        if self._test is not None:
            condition = self._test() if stop is False else and_(not_(stop), self._test)
        elif not self._facts.stops:
            return None
        else:
            items = self._items
            assert items is not None
            end = size_or_value(items.start) + size_or_value(items.length) * items.step
            counter = wrap(self._counter)
            condition = counter < end if items.step > 0 else counter > end
            condition = and_(not_(stop), lambda: condition) if stop is not False else condition
        if not is_traced(condition):
            raise NotTraceable("its condition does not change")
        return as_bool(condition)

    def _targets_are_known(self, block: TracedBlock) -> bool:
        """Whether all targets that the body assigns are carried; those that are not are added.

        A variable that refers to an object which the body changes is not carried: it continues to
        refer to that object, whose elements or attributes are carried instead.
        """
        assert block.log is not None
        changes, known = block.log.changes, self._variables.targets
        new = [p for p in block.targets if p not in known]
        referring = block.log.modified | {
            n for n in self._parts if any(id(x) in changes for x in containers(self._before[n]))
        }
        referring -= self._by_reference
        for name in referring:
            self._parts[name], self._specs[name] = PartitionedValue.opaque(self._before[name]), []
        self._by_reference |= referring
        for target, value in block.targets.items():
            if value is UNBOUND:
                raise NotTraceable(f"it deletes {target}")
            value_before = cell_value(target)
            if value_before is UNBOUND:
                is_list = type(target.owner) is list
                what = "which changes its length" if is_list else "which had no value before"
                raise NotTraceable(f"it assigns {target}, {what}", not is_list)
            if target in new:
                name = self._variables.add(target)
                self._before[name], self._parts[name] = (
                    value_before,
                    PartitionedValue.of(value_before),
                )
                self._specs[name] = self._parts[name].specs
                # It was modified as the value of the target, which has a placeholder now.
                owners = Identities(arrays_of(self._parts[name].numeric_leaves))
                self._arrays = [a for a in self._arrays if a not in owners]
        self._searches += bool(new)
        if self._searches > _MAX_TARGET_SEARCHES:
            raise NotTraceable(f"it assigns {new[0]}, of another object in each iteration")
        return not new and not referring

    def _specs_agree(self, block: TracedBlock) -> bool:
        """Whether the carry has the same specs after the body; if not, the specs are widened."""
        appended = [("a list", v) for v in self._appends.values]
        names = [n for n in (*self._parts, *self._unbound_before) if n not in self._by_reference]
        refuse_references(block, [*appended, *[(n, block.values[n]) for n in names]])
        for n in names:
            self._memory.leave(n, block.values[n])
            block.values[n] = block.at_end(block.values[n])
        given = set(map(id, self._inputs))
        rebound = Identities([a for x in self._lists.values() for a in x.rebound])
        modified = {h: n for h, n in block.arrays.items() if id(n) not in given}
        for stack in self._lists.values():
            stack.check(set(map(id, modified)))
        agree = self._memory.is_known({h: n for h, n in modified.items() if h not in rebound})
        for name, parts in self._parts.items():
            after = self._after(block, name)
            parts.check_like(after, name)
            joined = [
                joined_spec(a, b, name) for a, b in zip(self._specs[name], after.specs, strict=True)
            ]
            if joined != self._specs[name]:
                self._specs[name], agree = joined, False
        for name in list(self._unbound_before):
            value = block.values[name]
            if value is UNBOUND:
                continue
            if type(value) is MaybeUnbound or not (
                name.startswith("__wg_") or self._runs_at_least_once()
            ):
                start = maybe_unbound(UNBOUND, value)
                self._parts[name] = PartitionedValue.of(start._replace(defined=np.False_))
                self._specs[name] = self._parts[name].specs
                self._unbound_before.remove(name)
                agree = False
                continue
            after = PartitionedValue.of(value)
            if not all(after.numeric):
                raise NotTraceable(f"the variable {name} becomes a {type(value).__name__}")
            self._first_assigned[name] = after
        for array in self._arrays:
            spec, now = array.node.spec, block.arrays[array].spec
            if (spec.shape, spec.dtype) != (now.shape, now.dtype):
                raise NotTraceable(f"an array {spec} becomes {now}")
        return agree

    def _after(self, block: TracedBlock, name: str) -> PartitionedValue:
        """The value of a variable at the end of an iteration."""
        value = block.values[name]
        start = self._parts[name]
        if name in self._by_reference:
            return PartitionedValue.opaque(value)
        is_maybe = start.structure is not None and isinstance(
            start.rebuild(start.numeric_leaves), MaybeUnbound
        )
        if is_maybe and type(value) is not MaybeUnbound:
            value = maybe_unbound(value, start.rebuild(start.numeric_leaves))
            value = value._replace(defined=np.bool_(value.defined))
        return PartitionedValue.of(value)

    def _runs_at_least_once(self) -> bool:
        if self._items is None:
            return False
        length = self._items.length
        if isinstance(length, Dim):
            return (bounds(length)[0] or 0) >= 1
        return type(length) is int and length >= 1

    def _runs_never(self) -> Any:
        """Whether there is no iteration; None if that is not known."""
        if self._runs_at_least_once() or self._runs is True:
            return False
        if self._items is not None:
            return size_or_value(self._items.length) <= 0
        return None if self._runs is None else not_(self._runs)

    # ---- the node ------------------------------------------------------------------------------

    def _add_node(
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
            start.append(astype(strongly_typed(self._items.start), _INTEGER))
        ambiguous = self._memory.written(block)
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
                outputs.append(output(strongly_typed(cast(y, spec)), "loop"))
                start.append(strongly_typed(cast(x, spec)))
                if spec.shape and handle.node is not node and not isinstance(x, Handle):
                    raise NotTraceable(
                        f"it modifies {subject(name)}, a plain array, and assigns it"
                    )
        for array in self._arrays:
            outputs.append(block.arrays[array])
            start.append(wrap(array.node))
        inputs = list(self._inputs)
        for check in block.checks:
            before = placeholder(_BOOL)
            outputs.append(output(lookup("logical_or")(wrap(before), check.failed), "loop"))
            start.append(np.False_)
            inputs.append(before)
        flags = self._memory.flags(self._runs_at_least_once())
        for flag, value, initial in flags:
            outputs.append(output(value, "loop"))
            start.append(initial)
            inputs.append(flag)
        for parts in self._first_assigned.values():
            for x, spec in zip(parts.numeric_leaves, parts.specs, strict=True):
                outputs.append(output(strongly_typed(x), "loop"))
                start.append(strongly_typed(placeholder_value(spec)))
                inputs.append(placeholder(Spec(spec.shape, spec.dtype)))
        appended = self._appends.arrays
        if appended and (
            ambiguous
            or self._appends.appends_older(block.since)
            or writes_appended(self._memory, appended, self._arrays)
        ):
            raise NotTraceable("it appends an array that it modifies, or that was made before it")
        self._appends.add_outputs(outputs, inputs, start, self._counter)
        outs = loop_node(outputs, inputs, start, condition, self._items, block, self._memory)
        results = self._assign_results(outs, ambiguous, len(flags), block)
        relate_appended(self._memory, self._appends.finish(outs), results)

    def _assign_results(
        self, outs: list[Any], ambiguous: list[Handle], flag_count: int, block: TracedBlock
    ) -> dict[str, list[Any]]:
        rest = iter(outs[1:] if self._items is not None else outs)
        values: dict[str, Any] = {}
        results: dict[str, list[Any]] = {}
        for name, parts in self._parts.items():
            numbers = [like_spec(next(rest), spec) for spec in self._specs[name]]
            results[name] = numbers
            values[name] = parts.rebuild(numbers)
        for array in self._arrays:
            rebind(array, next(rest).node)
        for check in block.checks:
            RuntimeChecks.add(next(rest), check.error)
        flags = [next(rest) for _ in range(flag_count)]
        for name, parts in self._first_assigned.items():
            results[name] = [like_spec(next(rest), s) for s in parts.specs]
            values[name] = parts.rebuild(results[name])
        self._memory.record(results, self._runs_never(), flags)
        for handle in ambiguous:
            make_ambiguous(handle)
        names = {*self._facts.assigned, *self._variables.targets.values()}
        self._variables.write({n: v for n, v in values.items() if n in names})
        return results


def _handle(node: Node, initial: Any) -> Any:
    """The value for a placeholder; a number is a new node, since it cannot be modified in place."""
    if node.spec.shape or (isinstance(initial, Handle) and is_array(initial)):
        return wrap(node)
    return _number(node)


def _number(node: Node) -> Any:
    return record(lookup("cast"), [node], {"dtype": node.spec.dtype}, weak=True)
