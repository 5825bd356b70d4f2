"""Trace a block, the body of a loop or a branch, separately from its function.

The block runs once, on placeholders.  This shows which arrays, created before the block, it
modifies.  All its changes of variables, arrays and objects are undone afterwards.

    TracedBlock         the results: values of variables, modified arrays, assigned targets, checks
    traced              trace a block
    SliceLengths        lengths of slices that are known only inside of a block
    with_slice_lengths  trace with such lengths or, if that is not possible, with masks
    arrays_of           the handles that own the memory of values
    refuse_references   reject values that contain objects which a block changes

Stores to elements in a branch, moved behind it.

    if c:                            v, i = cond(c, lambda: (v, i), lambda: (0, 0))
        A[i] = v           ->        A[i] = where(c, v, A[i])

Otherwise the whole array would be a result of the conditional, and be copied.  Stores of both
branches to the same elements are one store:

    if c: A[i] = u                   v = cond(c, lambda: u, lambda: w)
    else: A[i] = w         ->        A[i] = v

    stores_of       the stores by which a branch modified an array, if there are few
    store_outs      the results of a branch that represent its stores
    apply_stores    the array after the stores of the branch that was taken
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

import numpy as np

from wengert._engine.core.branch_aliases import forget_all
from wengert._engine.core.graph_classes import local_sizes
from wengert._engine.core.handle import Handle, owner_of_memory, refresh_views, wrap
from wengert._engine.core.implicit_conversions import IntegersWanted, want
from wengert._engine.core.loop_rows import LoopRow, row_of_array, source_of
from wengert._engine.core.message_order import OrderWanted
from wengert._engine.core.node import Node, constant
from wengert._engine.core.op import lookup
from wengert._engine.core.recording import Session, current_trace, tracing_body
from wengert._engine.core.replaced_errors import hidden, raised_at
from wengert._engine.core.runtime_checks import Check, RuntimeChecks
from wengert._engine.core.spec import Spec
from wengert._engine.core.symbolic.constraints import LengthsDiffer
from wengert._engine.frontend.assignment_targets import AssignmentTarget, containers
from wengert._engine.frontend.state import (
    ChangeLog,
    NotTraceable,
    SharedVariables,
    Speculation,
    subject,
)
from wengert._engine.ops.casts import astype
from wengert.errors import ShapeError, WengertError

from .values import PartitionedValue, placeholder_value

T = TypeVar("T")


class TracedBlock(NamedTuple):
    """The results of tracing a block.

    Attributes
    ----------
    result : object
        The return value.
    values : dict
        The final values of the variables.
    arrays : dict
        The modified arrays, with the nodes of their final values.
    since : int
        The serial number of the first node of the block.
    checks : list of Check
        Conditions that raise an exception when the graph runs.
    error : Exception or None
        The exception that the block raised.
    lengths : mapping
        The lengths of slices that are known only inside of the block, by name.
    targets : mapping
        The assignment targets that it assigns, with their final values.
    log : ChangeLog or None
        The objects that it creates and changes.
    final : mapping
        The final nodes of modified arrays that existed before the block, and of their views.
    aliased : sequence of weak references
        Its arrays that share memory on conditions; `forget_all` separates them once the results
        have been recorded.
    """

    result: Any
    values: dict[str, Any]
    arrays: dict[Handle, Node]
    since: int
    checks: list[Check]
    error: Exception | None = None
    lengths: Mapping[str, Node] = MappingProxyType({})
    targets: Mapping[AssignmentTarget, Any] = MappingProxyType({})
    log: ChangeLog | None = None
    final: Mapping[Handle, Node] = MappingProxyType({})
    aliased: Sequence[Any] = ()

    def at_end(self, value: Any) -> Any:
        """A value with arrays from before the block as they are at its end.

        The arrays themselves have been restored.
        """
        if not self.final:
            return value
        parts = PartitionedValue.of(value)
        numbers = [
            x if node is None else wrap(node)
            for x in parts.numeric_leaves
            for node in [self._final_node(x)]
        ]
        same = all(a is b for a, b in zip(numbers, parts.numeric_leaves, strict=True))
        return value if same else parts.rebuild(numbers)

    def _final_node(self, x: object) -> Node | None:
        """The final node of an array from before the block, or of a row of one; None for others."""
        if not isinstance(x, Handle):
            return None
        if x not in self.final and isinstance(x, LoopRow) and source_of(x) in self.final:
            return row_of_array(x, self.final[source_of(x)])
        return self.final.get(x)


def traced(
    block: Callable[[], Any],
    variables: SharedVariables,
    arrays: Sequence[tuple[Handle, Node]] = (),
    since: int | None = None,
    may_raise: bool = False,
    slices: SliceLengths | None = None,
) -> TracedBlock:
    """Trace a block, and undo all its changes.

    Parameters
    ----------
    block : callable
    variables : SharedVariables
        The variables that it shares with the function.
    arrays : sequence of (Handle, Node)
        Arrays, and the placeholders that represent them while the block is traced.
    since : int, optional
        The serial number of the first placeholder; older nodes are captured.
    may_raise : bool
        Whether an exception of the block is returned as its `error`.
    slices : SliceLengths, optional
        If given, slices with computed bounds have lengths that are known only inside of the block;
        otherwise they become masks (ops/indexing/windows.py).

    Raises
    ------
    NotTraceable
        The block cannot be traced separately from its function. The cause is the original error.
    RecursionError
        A function calls itself without end, because it ends for some values only.
    """
    with tracing_body() as session:
        session.since = session.since if since is None else since
        if slices is not None:
            session.lengths, session.around = slices.names, slices.around
        with (
            Speculation.block(variables) as log,
            _with_nodes(arrays),
            RuntimeChecks.collected() as checks,
        ):
            try:
                result = block()
            except (NotTraceable, RecursionError, IntegersWanted, OrderWanted):
                forget_all(session.aliased)
                raise
            except Exception as error:
                forget_all(session.aliased)
                error = hidden(error) or error
                if may_raise and not isinstance(error, WengertError):
                    _note_place(error)
                    return TracedBlock(None, {}, {}, session.since, checks, error)
                raise NotTraceable(_reason(error), isinstance(error, NameError)) from error
            _refuse_side_effects(session)
            values = variables.read()
            known_arrays = [h for h, _ in arrays]
            modified = {h: h.node for h in known_arrays}
            for handle in session.written:
                owner = owner_of_memory(handle)
                modified[owner] = owner.node
            targets = log.assigned_targets()
            final = {h: h.node for h in (*session.written, *session.views, *known_arrays)}
    lengths = session.lengths or {}
    rest = lengths, targets, log, final, session.aliased
    return TracedBlock(result, values, modified, session.since, checks, None, *rest)


def refuse_references(block: TracedBlock, values: Iterable[tuple[str, Any]]) -> None:
    """Reject values that contain a list, dict or object that the block changes.

    The containers would be rebuilt, and so would not have the changes.

    Raises
    ------
    NotTraceable
    """
    changes = block.log.changes if block.log is not None else {}
    for name, value in values if changes else ():
        if any(id(x) in changes for x in containers(value)):
            raise NotTraceable(f"{subject(name)} refers to an object that it changes")


class SliceLengths:
    """The lengths of slices with computed bounds in one block.

    Parameters
    ----------
    around : Session, optional
        The session of the enclosing block, whose names for lengths are used for slices that are
        as long as there.
    """

    def __init__(self, around: Session | None = None) -> None:
        self.names: dict[str, Node] = {}
        self.around = around


class _MaskedBlocks(threading.local):
    """The blocks whose slices became masks, while a block around them is traced."""

    codes: set[object] | None = None


_masked = _MaskedBlocks()


def with_slice_lengths(trace: Callable[[SliceLengths | None], T], block: Callable[..., Any]) -> T:
    """Trace a block whose slices have computed lengths or, if that is not possible, masks.

    Parameters
    ----------
    trace : callable
        Traces the block; called again after NotTraceable, at most twice.
    block : callable
        The block.  If its slices have become masks once, they do so at once when a block around it
        is traced again: nested blocks would be traced exponentially often.

    Raises
    ------
    IntegersWanted
        With the values of integer arguments masks are not needed.
    """
    code = getattr(block, "__code__", block)
    if _masked.codes is not None:
        return _with_lengths_or_masks(trace, code, _masked.codes)
    _masked.codes = set()
    try:
        return _with_lengths_or_masks(trace, code, _masked.codes)
    finally:
        _masked.codes = None


def _with_lengths_or_masks(
    trace: Callable[[SliceLengths | None], T], code: object, masked: set[object]
) -> T:
    if code in masked:
        return trace(None)
    outside = current_trace()
    slices = SliceLengths()
    try:
        return trace(slices)
    except NotTraceable as error:
        if not slices.names:
            raise
        differ = _lengths_differ(error)
    if differ and outside is not None and outside.lengths:
        try:
            return trace(SliceLengths(outside))
        except NotTraceable:
            pass
    if differ:
        want(slices.names.values())
    masked.add(code)
    return trace(None)


def _lengths_differ(error: BaseException) -> bool:
    """Whether the cause is a combination of slices whose lengths are not known to be equal."""
    cause = error.__cause__
    return isinstance(cause, ShapeError) and isinstance(cause.__cause__, LengthsDiffer)


def _note_place(error: Exception) -> None:
    """Add the user's line to an exception that will be raised when the graph runs."""
    place = raised_at(error)
    if place is not None and not hasattr(error, "__notes__"):
        error.add_note(f"It was raised at {place}.")


def _reason(error: Exception) -> str:
    text = str(error) if isinstance(error, WengertError) else f"{type(error).__name__}: {error}"
    return text.rstrip(".")


def _refuse_side_effects(session: Session) -> None:
    if session.effects:
        raise NotTraceable(
            f"it prints, checks or has another side effect ({session.effects[0].op})"
        )
    if session.grads_left():
        raise NotTraceable("it calls backward()")


@contextmanager
def _with_nodes(arrays: Sequence[tuple[Handle, Node]]) -> Iterator[None]:
    """A context in which arrays have other nodes."""
    before: dict[Handle, Node] = {}
    for handle, _ in arrays:
        _save_nodes(handle, before)
    try:
        for handle, node in arrays:
            handle.node = node
            refresh_views(handle)
        yield
    finally:
        for handle, node in before.items():
            handle.node = node


def _save_nodes(handle: Handle, saved: dict[Handle, Node]) -> None:
    saved[handle] = handle.node
    for ref in getattr(handle, "_views", None) or ():
        view = ref()
        if view is not None and view not in saved:
            _save_nodes(view, saved)


def arrays_of(values: Sequence[Any]) -> list[Handle]:
    """The handles that own the memory of values, without duplicates."""
    return list(dict.fromkeys([owner_of_memory(x) for x in values if isinstance(x, Handle)]))


_MAX_STORES = 4


class BranchStore(NamedTuple):
    """A store to elements of an array.

    Attributes
    ----------
    branch : int
        0 for the else branch, 1 for the if branch.
    template : object
        The index, with placeholders for its operands.
    operands : tuple of Node
        The integers in the index.
    value : Tensor
        The stored value, with the dtype of the array.
    """

    branch: int
    template: Any
    operands: tuple[Node, ...]
    value: Any


def stores_of(branch: int, after: Node, before: Node) -> list[BranchStore] | None:
    """The stores that transform an array into its value after a branch; None if not suitable."""
    stores: list[BranchStore] = []
    setitem, node = lookup("setitem"), after
    while node is not before:
        if node.op is not setitem or len(stores) == _MAX_STORES:
            return None
        array, value, *operands = node.args
        specs = [x.spec if isinstance(x, Node) else None for x in operands]
        if any(s is None or s.shape or s.dtype.kind not in "iu" for s in specs):
            return None
        if local_sizes(node) or (isinstance(value, Node) and local_sizes(value)):
            return None  # a length that is known in the branch only
        value = wrap(value if isinstance(value, Node) else constant(np.asarray(value)[()]))
        stored_value = (
            astype(value, before.spec.dtype) if value.dtype != before.spec.dtype else value
        )
        stores.append(BranchStore(branch, node.params["index"], tuple(operands), stored_value))
        node = array
    return stores[::-1]


def _in_both(stores: Sequence[BranchStore]) -> list[BranchStore]:
    """The stores of the first branch, if those of the other are to the same elements; or none."""
    own = [[s for s in stores if s.branch == k] for k in range(2)]
    places = [[(s.template, s.operands) for s in part] for part in own]
    return own[0] if places[0] == places[1] else []


def store_outs(stores: Sequence[BranchStore], branch: int) -> list[Any]:
    """The value and the index of each store; zeros for the stores of the other branch.

    Only the values if both branches store to the same elements: their indices are those of before
    the branch.
    """
    if _in_both(stores):
        return [s.value for s in stores if s.branch == branch]
    values: list[Any] = []
    for store in stores:
        spec = store.value.node.spec
        if store.branch == branch:
            values += [store.value, *store.operands]
            continue
        values.append(placeholder_value(Spec(spec.shape, spec.dtype)))
        values += [np.zeros((), x.spec.dtype)[()] for x in store.operands]
    return values


def apply_stores(
    array: Node, stores: Sequence[BranchStore], outs: Iterator[Any], test: Any
) -> Node:
    """An array after the stores of the branch that was taken.

    Parameters
    ----------
    array : Node
    stores : sequence of BranchStore
    outs : iterator
        The results of the conditional, for `store_outs`.
    test : Tensor
        Whether branch 1 is taken.
    """
    current = wrap(array)
    shared = _in_both(stores)
    for store in shared:
        current = lookup("setitem")(current, next(outs), *store.operands, index=store.template)
    for store in () if shared else stores:
        value = next(outs)
        operands = [next(outs) for _ in store.operands]
        is_taken = test if store.branch == 1 else lookup("logical_not")(test)
        current_value = lookup("getitem")(current, *operands, index=store.template)
        value = lookup("where")(is_taken, value, current_value)
        current = lookup("setitem")(current, value, *operands, index=store.template)
    result: Node = current.node
    return result
