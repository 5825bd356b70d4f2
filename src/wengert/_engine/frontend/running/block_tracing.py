"""Blocks: a part of a function traced separately, as the body of a loop or a branch.

The block runs once, on placeholders.  Arrays that it modifies and that were made before it are
found by running it.

    TracedBlock         the results of a block: values of variables and of modified arrays
    traced              trace a block
    SliceLengths        lengths of slices that are known inside a block only
    with_slice_lengths  trace with such lengths, or else with masks
    arrays_of           handles that own the memory of values
    refuse_references   reject values that contain objects which a block changes
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

from wengert._engine.core.handle import Handle, owner_of_memory, refresh_views, wrap
from wengert._engine.core.node import Node
from wengert._engine.core.recording import Session, current_trace, enable_grad, tracing
from wengert._engine.core.runtime_checks import Check, RuntimeChecks
from wengert._engine.core.symbolic.constraints import LengthsDiffer
from wengert.errors import ShapeError, WengertError

from ..assignment_targets import AssignmentTarget, containers
from ..state import ChangeLog, NotTraceable, SharedVariables, Speculation, subject
from .values import PartitionedValue

T = TypeVar("T")


class TracedBlock(NamedTuple):
    """The results of a block.

    result : its return value.
    values : of its variables, at its end.
    arrays : the modified arrays, with the node of their value at its end.
    since : the serial number at which it began.
    checks : conditions that raise.
    error : the exception that it raised.
    lengths : the lengths of its slices that are known inside only, by name.
    targets : elements and attributes of objects that it assigns, with their values at its end.
    log : the objects that it creates and changes.
    final : the nodes at its end of arrays from outside that it modifies, and of their views.
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

    def at_end(self, value: Any) -> Any:
        """A value with arrays from outside as they are at its end: afterwards they are restored."""
        if not self.final:
            return value
        parts = PartitionedValue.of(value)
        numbers = [
            wrap(self.final[x]) if isinstance(x, Handle) and x in self.final else x
            for x in parts.numeric_leaves
        ]
        same = all(a is b for a, b in zip(numbers, parts.numeric_leaves, strict=True))
        return value if same else parts.rebuild(numbers)


def traced(
    block: Callable[[], Any],
    variables: SharedVariables,
    arrays: Sequence[tuple[Handle, Node]] = (),
    since: int | None = None,
    may_raise: bool = False,
    slices: SliceLengths | None = None,
) -> TracedBlock:
    """Trace a block, and restore all that it changed.

    Parameters
    ----------
    block : callable
    variables : SharedVariables
        The variables that it shares with the function.
    arrays : sequence of (Handle, Node)
        Arrays, and the placeholders that they have while it is traced.
    since : int, optional
        The serial number of the first placeholder; older nodes are captured.
    may_raise : bool
        Whether an exception is a result, rather than an error.
    slices : SliceLengths, optional
        If given, slices with computed bounds have lengths that are known inside the block only;
        otherwise they are masks (ops/indexing/windows.py).

    Raises
    ------
    NotTraceable
        It cannot be traced separately from its function; the cause is the original error.
    """
    with tracing() as opened, enable_grad():
        opened.isolated = opened.general = True
        opened.since = opened.since if since is None else since
        if slices is not None:
            opened.lengths, opened.around = slices.names, slices.around
        with (
            Speculation.block(variables) as log,
            _replaced(arrays),
            RuntimeChecks.collected() as checks,
        ):
            try:
                result = block()
            except NotTraceable:
                raise
            except Exception as error:
                if may_raise and not isinstance(error, WengertError):
                    return TracedBlock(None, {}, {}, opened.since, checks, error)
                raise NotTraceable(_reason(error), isinstance(error, NameError)) from error
            _check(opened)
            values = variables.read()
            known = [h for h, _ in arrays]
            modified = {h: h.node for h in known}
            for handle in opened.written:
                owner = owner_of_memory(handle)
                modified[owner] = owner.node
            targets = log.assigned_targets()
            final = {h: h.node for h in (*opened.written, *opened.views, *known)}
    lengths = opened.lengths or {}
    return TracedBlock(
        result, values, modified, opened.since, checks, None, lengths, targets, log, final
    )


def refuse_references(block: TracedBlock, values: Iterable[tuple[str, Any]]) -> None:
    """Reject values that contain a list, dict or object that the block changes.

    They would be built again, so that its changes would not reach them.

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
        The session of the block outside, whose names its slices share if they are as long.
    """

    def __init__(self, around: Session | None = None) -> None:
        self.names: dict[str, Node] = {}
        self.around = around


def with_slice_lengths(trace: Callable[[SliceLengths | None], T]) -> T:
    """Trace a block whose slices have computed lengths, or masks where that is not possible.

    Parameters
    ----------
    trace : callable
        Traces the block; it may be called several times, until one call does not raise.
    """
    outside = current_trace()
    slices = SliceLengths()
    try:
        return trace(slices)
    except NotTraceable as error:
        if not slices.names:
            raise
        shared = _lengths_differ(error) and outside is not None and bool(outside.lengths)
    if shared:
        try:
            return trace(SliceLengths(outside))
        except NotTraceable:
            pass
    return trace(None)


def _lengths_differ(error: BaseException) -> bool:
    """Whether two slices are combined that are not known to be of one length."""
    cause = error.__cause__
    return isinstance(cause, ShapeError) and isinstance(cause.__cause__, LengthsDiffer)


def _reason(error: Exception) -> str:
    text = str(error) if isinstance(error, WengertError) else f"{type(error).__name__}: {error}"
    return text.rstrip(".")


def _check(opened: Session) -> None:
    if opened.effects:
        raise NotTraceable(f"it prints, checks or has another side effect ({opened.effects[0].op})")
    if opened.grads_left():
        raise NotTraceable("it calls backward()")


@contextmanager
def _replaced(arrays: Sequence[tuple[Handle, Node]]) -> Iterator[None]:
    """A block in which arrays have other nodes."""
    before: dict[Handle, Node] = {}
    for handle, _ in arrays:
        _note(handle, before)
    try:
        for handle, node in arrays:
            handle.node = node
            refresh_views(handle)
        yield
    finally:
        for handle, node in before.items():
            handle.node = node


def _note(handle: Handle, found: dict[Handle, Node]) -> None:
    found[handle] = handle.node
    for ref in getattr(handle, "_views", None) or ():
        view = ref()
        if view is not None and view not in found:
            _note(view, found)


def arrays_of(values: Sequence[Any]) -> list[Handle]:
    """The handles that own the memory of values, each once."""
    return list(dict.fromkeys([owner_of_memory(x) for x in values if isinstance(x, Handle)]))
