"""``if`` statements and conditional expressions.

If the condition is known, Python runs one branch.  If it is traced, both branches are traced from
the same state, and each variable that one of them assigns becomes a result of a ``cond`` node.

    if c: ... else: ...    if_(c, then, other, ...)
    a if c else b          if_expression(c, lambda: a, lambda: b)
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from wengert._engine.core.branch_aliases import forget_all
from wengert._engine.core.handle import AMBIGUOUS, Handle, is_traced, make_ambiguous, rebind
from wengert._engine.core.lazy_import import LazyModule
from wengert._engine.core.node import Node
from wengert._engine.core.op import lookup
from wengert._engine.core.recording import current_trace, tracing_body
from wengert._engine.core.runtime_checks import Check, RuntimeChecks
from wengert._engine.core.spec import Spec
from wengert.errors import TraceError, at, user_place, user_source

from ..state import UNBOUND, NotTraceable, SharedVariables, cell_value
from .block_tracing import (
    BranchStore,
    SliceLengths,
    TracedBlock,
    apply_stores,
    refuse_references,
    store_outs,
    stores_of,
    traced,
    with_slice_lengths,
)
from .filled_lists import RowPiece, tested
from .list_appends import Collecting, append_, append_unknown
from .shared_memory import BranchMemory
from .stacked_lists import ListNeeded
from .values import (
    MaybeUnbound,
    PartitionedValue,
    as_bool,
    cast,
    joined_spec,
    like_spec,
    maybe_unbound,
)

if TYPE_CHECKING:
    from wengert._engine.control_flow import closure_conversion, operations
else:  # for branches that become nodes
    closure_conversion, operations = (
        LazyModule("wengert._engine.control_flow.closure_conversion"),
        LazyModule("wengert._engine.control_flow.operations"),
    )

Thunk = Callable[[], Any]


def if_(
    test: object,
    then: Thunk,
    other: Thunk | None,
    assigned: Sequence[str],
    live: Sequence[str],
    refusal: str | None,
    filled: Sequence[str] = (),
    shared: Sequence[str] = (),
) -> None:
    """An ``if`` statement."""
    test = tested(test)
    if not is_traced(test) or current_trace() is None:
        if test:
            then()
        elif other is not None:
            other()
        return
    variables = SharedVariables([then, other], assigned)
    try:
        if refusal is not None:
            raise NotTraceable(refusal)
        lists = SharedVariables([then, other], filled)
        for name in shared:
            lists.fixed.add(name)
        _conditional(as_bool(test), then, other or _nothing, variables, live, lists)
    except NotTraceable as error:
        raise _trace_error(error) from error.__cause__


def _trace_error(error: NotTraceable) -> Exception:
    if isinstance(error, ListNeeded):
        return error
    if error.__cause__ is not None and type(error.__cause__).__module__ != "builtins":
        return error.__cause__  # type: ignore[return-value]
    return TraceError(
        f"a branch on a value that is not known while a graph is built: {error}. Both branches "
        f"are computed in the graph; use np.where(condition, x, y), or make the argument that "
        f"decides a static one{at(user_place())}.{user_source()}"
    )


def _nothing() -> None:
    pass


class _TracedBranches(NamedTuple):
    """Both branches, and the results of the conditional.

    Attributes
    ----------
    blocks : list of TracedBlock
        The else branch, and the if branch.
    names : list of str
        The variables that a branch assigns, and values that are appended to lists.
    lists_of : dict
        The lists of these values.
    shapes, specs : list
        The structure of the variables' values, and the specs of their numbers and arrays.
    failures : list of Check
    memory : BranchMemory
    stores : dict
        For each modified array the stores by which it was modified, or None.
    ambiguous : list of Handle
        The arrays that a branch may or may not have modified.
    outs : list
        The results of the node.
    """

    blocks: list[TracedBlock]
    names: list[str]
    lists_of: dict[str, Any]
    shapes: list[PartitionedValue]
    specs: list[Spec]
    failures: list[Check]
    memory: BranchMemory
    stores: dict[Handle, list[BranchStore] | None]
    ambiguous: list[Handle]
    outs: list[Any]


def _conditional(
    test: Any,
    then: Thunk,
    other: Thunk,
    variables: SharedVariables,
    live: Sequence[str],
    lists: SharedVariables | None = None,
    block: Thunk | None = None,
) -> None:
    """Trace both branches, and give variables and arrays the values of the selected one.

    Values that the branches append to `lists` become results of the node too.  `block` identifies
    the statement, as `then` does by default.
    """
    filled, aliased = lists or SharedVariables(()), list[Any]()
    runs = other, then
    try:
        found = with_slice_lengths(
            lambda slices: _traced_branches(test, runs, variables, live, filled, slices, aliased),
            block or then,
        )
        if isinstance(found, _TracedBranches):
            _assign_results(found, test, variables, filled)
    finally:
        forget_all(aliased)
    if not isinstance(found, _TracedBranches):
        _continue_with_other(test, found, runs)


def _assign_results(
    found: _TracedBranches, test: Any, variables: SharedVariables, filled: SharedVariables
) -> None:
    remaining = iter(found.outs)
    spec = iter(found.specs)
    results_of: dict[str, list[Any]] = {}
    for name, shape in zip(found.names, found.shapes, strict=True):
        numbers = [like_spec(next(remaining), next(spec)) for _ in shape.numeric_leaves]
        results_of[name] = numbers = found.memory.same(name, numbers)
        if name in found.lists_of:
            _append(found.lists_of, name, shape.rebuild(numbers), filled)
        else:
            variables.write({name: shape.rebuild(numbers)})
    for check in found.failures:
        RuntimeChecks.add(next(remaining), check.error)
    for_memory = [next(remaining) for _ in found.memory.outputs(0)]
    for array, known in found.stores.items():
        if known is None:
            rebind(array, next(remaining).node)
        else:
            rebind(array, apply_stores(array.node, known, remaining, test))
    found.memory.record(results_of, test, for_memory)
    for array in found.ambiguous:
        make_ambiguous(array)


def _traced_branches(
    test: Any,
    runs: Sequence[Thunk],
    variables: SharedVariables,
    live: Sequence[str],
    lists: SharedVariables,
    slices: SliceLengths | None,
    aliased: list[Any],
) -> _TracedBranches | list[TracedBlock]:
    """Trace both branches, and add the node; only the branches if one of them raises."""
    blocks, appended, collecting = [], [], Collecting(list(lists.read().values()))
    for run in runs:
        lengths = None if slices is None else SliceLengths(slices.around)
        try:
            with collecting.block():
                blocks.append(traced(run, variables, may_raise=True, slices=lengths))
            aliased += blocks[-1].aliased
        finally:
            if slices is not None and lengths is not None:
                slices.names.update(lengths.names)
        appended.append(collecting.values)
    if any(b.error is not None for b in blocks):
        return blocks
    lists_of = _appended_values(blocks, collecting.lists, appended)
    names = [
        *_changed([*live, *_assigned_targets(blocks, variables)], blocks, variables),
        *lists_of,
    ]
    for block in blocks:
        refuse_references(block, [(n, block.values[n]) for n in names])
    outputs_of: list[list[Any]] = [[], []]
    with tracing_body():
        memory = BranchMemory(blocks, names)
        shapes, specs = _add_values(names, blocks, outputs_of)
        failures = _add_checks(blocks, outputs_of)
        for k, outputs in enumerate(outputs_of):
            outputs += memory.outputs(k)
        ambiguous = {
            array: None
            for b in blocks
            for array, node in (*b.arrays.items(), *b.final.items())
            if node.op is AMBIGUOUS and array.node.serial < b.since
        }
        stores = {
            array: _branch_stores(array, blocks)
            for b in blocks
            for array in b.arrays
            if array not in ambiguous
        }
        for array, known in stores.items():
            for k, (block, outputs) in enumerate(zip(blocks, outputs_of, strict=True)):
                outputs += (
                    [block.arrays.get(array, array.node)] if known is None else store_outs(known, k)
                )
    outs = _conditional_outputs(test, blocks, outputs_of)
    return _TracedBranches(
        blocks, names, lists_of, shapes, specs, failures, memory, stores, list(ambiguous), outs
    )


def _add_checks(blocks: Sequence[TracedBlock], outputs_of: Sequence[list[Any]]) -> list[Check]:
    """Add whether the checks of the branches failed to their outputs; return the checks."""
    failures = [(k, check) for k, b in enumerate(blocks) for check in b.checks]
    for k, check in failures:
        outputs_of[k].append(check.failed)
        outputs_of[1 - k].append(np.False_)
    return [check for _, check in failures]


def _add_values(
    names: Sequence[str], blocks: Sequence[TracedBlock], outputs_of: Sequence[list[Any]]
) -> tuple[list[PartitionedValue], list[Spec]]:
    """Add the values of variables to the outputs of each branch.

    Returns the values, for their structure, and the specs of the outputs.
    """
    shapes: list[PartitionedValue] = []
    specs: list[Spec] = []
    for name in names:
        parts = _common_parts([b.at_end(b.values[name]) for b in blocks], name)
        pairs = zip(parts[0].specs, parts[1].specs, strict=True)
        joined = [joined_spec(a, b, name) for a, b in pairs]
        specs += joined
        shapes.append(parts[0])
        for partitioned, outputs in zip(parts, outputs_of, strict=True):
            outputs += [cast(x, s) for x, s in zip(partitioned.numeric_leaves, joined, strict=True)]
    return shapes, specs


def _changed(
    names: Sequence[str], blocks: Sequence[TracedBlock], variables: SharedVariables
) -> list[str]:
    """The variables, among these, that one of the branches assigns."""
    before = variables.read()
    return [n for n in names if any(b.values[n] is not before[n] for b in blocks)]


def _assigned_targets(blocks: Sequence[TracedBlock], variables: SharedVariables) -> list[str]:
    """The names of elements and attributes that one of the branches assigns."""
    names: list[str] = []
    for target in {t: None for b in blocks for t in b.targets}:
        value_before = cell_value(target)
        values = [b.targets.get(target, value_before) for b in blocks]
        if any(v is UNBOUND for v in values) and not all(v is UNBOUND for v in values):
            raise NotTraceable(
                f"{target} has a value after one of the branches only; assign it before, or in both"
            )
        names.append(variables.add(target))
        for block, value in zip(blocks, values, strict=True):
            block.values[names[-1]] = value
    return names


def _appended_values(
    blocks: Sequence[TracedBlock], lists: Sequence[Any], values: Sequence[list[list[Any]]]
) -> dict[str, Any]:
    """For each value that one of the branches appends: a name, and the list."""
    lists_of: dict[str, Any] = {}
    for target, *columns in zip(lists, *values, strict=True):
        if any(isinstance(v, RowPiece) for v in (*columns[0], *columns[1])):
            raise NotTraceable("a loop in it appends to a list in some iterations only")
        for pair in itertools.zip_longest(*columns, fillvalue=UNBOUND):
            name = f"value {len(lists_of)} that is appended to a list"
            lists_of[name] = target
            for block, value in zip(blocks, pair, strict=True):
                block.values[name] = value
    return lists_of


def _append(lists_of: dict[str, Any], name: str, value: object, variables: SharedVariables) -> None:
    """Append the result for a value that the branches append to a list."""
    target = lists_of[name]
    if type(value) is not MaybeUnbound:
        append_(target, value)
        return
    filled = append_unknown(target, value, variables)
    for other, same in lists_of.items():
        if same is target:
            lists_of[other] = filled


def _branch_stores(array: Handle, blocks: Sequence[TracedBlock]) -> list[BranchStore] | None:
    """The stores by which the branches modified an array; None if it was modified otherwise."""
    stores: list[BranchStore] = []
    for k, block in enumerate(blocks):
        stores_of_branch = stores_of(k, block.arrays.get(array, array.node), array.node)
        if stores_of_branch is None:
            return None
        stores += stores_of_branch
    return stores


def _continue_with_other(test: Any, blocks: Sequence[TracedBlock], runs: Sequence[Thunk]) -> None:
    """Add a check that raises if the branch that raises is taken, and run the other one."""
    other, then = blocks
    if other.error is not None and then.error is not None:
        RuntimeChecks.add(test, then.error)
        raise other.error
    if then.error is not None:
        RuntimeChecks.add(test, then.error)
        runs[0]()
    elif other.error is not None:
        RuntimeChecks.add(lookup("logical_not")(test), other.error)
        runs[1]()


def _common_parts(values: list[Any], name: str) -> list[PartitionedValue]:
    """The values of a variable after both branches, with the same structure."""
    if any(x is UNBOUND or type(x) is MaybeUnbound for x in values):
        bound_values = [x for x in values if x is not UNBOUND]
        if not bound_values:
            return [PartitionedValue.of(x) for x in values]
        maybe_values: list[Any] = [maybe_unbound(x, bound_values[0]) for x in values]
        values = [x.value for x in maybe_values] if name.startswith("__wg_") else maybe_values
        if name.startswith("__wg_"):
            return _checked_parts(values, name)
        parts = [PartitionedValue.of(x.value) for x in maybe_values]
        if not all(all(p.numeric) for p in parts):
            raise NotTraceable(f"the variable {name} has a value in one of the branches only")
        return _checked_parts(
            [
                MaybeUnbound(x.value, np.bool_(x.defined) if type(x.defined) is bool else x.defined)
                for x in maybe_values
            ],
            name,
        )
    return _checked_parts(values, name)


def _checked_parts(values: list[Any], name: str) -> list[PartitionedValue]:
    parts = [PartitionedValue.of(x) for x in values]
    parts[0].check_like(parts[1], name)
    return parts


def _conditional_outputs(
    test: Any, blocks: Sequence[TracedBlock], values: Sequence[Sequence[Any]]
) -> list[Any]:
    """Add the node of a conditional, and return its outputs.

    `values` are the outputs of the else branch, and those of the if branch.
    """
    closures = []
    for block, leaves, name in zip(blocks, values, ("else", "if"), strict=True):
        nodes = [x if isinstance(x, Node) else closure_conversion.output(x, name) for x in leaves]
        try:
            nodes = closure_conversion.with_lengths_grouped(
                nodes, [], block.since, block.lengths, name
            )
        except TraceError as error:
            raise NotTraceable(str(error).rstrip(".")) from error
        body, outside = closure_conversion.cut(nodes, [], block.since, name, hoist=False)
        closures.append(
            closure_conversion.Closed(
                body, [closure_conversion.operand(n) for n in outside], None, ()
            )
        )
    if not closures[0].body.outputs:
        return []
    bodies, captured = closure_conversion.together(closures)
    return list(operations.cond_op(test, *captured, branches=tuple(bodies)))


def if_expression(test: object, then: Thunk, other: Thunk) -> Any:
    """The expression ``then if test else other``."""
    test = tested(test)
    if not is_traced(test) or current_trace() is None:
        return then() if test else other()
    try:
        return conditional_value(as_bool(test), then, other)
    except NotTraceable as error:
        raise _trace_error(error) from error.__cause__


def conditional_value(test: Any, then: Thunk, other: Thunk) -> Any:
    """The value of one of two expressions, selected by a traced boolean."""
    __wg_chosen__: Any = UNBOUND

    def first() -> None:
        nonlocal __wg_chosen__
        __wg_chosen__ = then()

    def second() -> None:
        nonlocal __wg_chosen__
        __wg_chosen__ = other()

    variables = SharedVariables([first, second], ["__wg_chosen__"])
    _conditional(test, first, second, variables, ["__wg_chosen__"], block=then)
    return __wg_chosen__
