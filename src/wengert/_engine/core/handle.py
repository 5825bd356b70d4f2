"""Handle: the mutable reference to a node that users hold.

Because the handle is not the node, `x[i] = v` and `x += 1` make the handle point to a new node;
the old node, which derivatives may need, is unchanged.

The class `Tensor` (tensor/tensor.py) is the only handle class; it registers itself here, so that
lower layers can make handles without importing it.

In NumPy basic slices, reshapes and transposes share memory with their base: a write to one changes
the other.  Handles implement this by links: a view refers to its base and to the function that
takes the view of it; a base has weak references to its views.  `rebind` updates in both directions.
"""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from wengert.errors import ReadOnlyError, TraceError, at, user_line

from .node import INPUT, NO_PARAMS, DiscreteLeaf, LeafOp, Node, is_variable, owner_of
from .node_properties import NodeInfo
from .op import lookup
from .recording import Session, current_trace, enable_grad, is_recording
from .spec import Spec, spec_of

H = TypeVar("H", bound="Handle")


class Handle:
    """A mutable reference to a node; the base of `Tensor`."""

    __slots__ = ("__weakref__", "_aliases", "_link", "_views", "node")

    node: Node

    def other_nodes(self) -> Sequence[Node]:
        """Nodes other than `node` that have its value."""
        return ()


class _Class:
    """The class of the handles that `wrap` makes, set once by tensor/tensor.py."""

    handle: type[Handle] = Handle
    aliases: Callable[[Handle], None] | None = None  # set when arrays have aliases on conditions


def register_handle(cls: type[H]) -> type[H]:
    """Make `cls` the class of all handles (a class decorator)."""
    _Class.handle = cls
    return cls


def register_aliases(written: Callable[[Handle], None]) -> None:
    """Set what is called after a write to an array (branch_aliases.py)."""
    _Class.aliases = written


def wrap(node: Node) -> Any:
    """A new handle of a node."""
    handle = object.__new__(_Class.handle)
    handle.node = node
    return handle


def value_of(x: Any) -> Any:
    """The plain value of a handle or node; anything else unchanged.

    A traced value gives a handle with the gradient stopped, so that a mask or an index computed
    from it becomes part of the graph.
    """
    if isinstance(x, Handle):
        x = x.node
    elif not isinstance(x, Node):
        return x
    value = x.value
    return stopped(x) if value is None or is_general(x) else value


def is_general(node: Node) -> bool:
    """Whether it is a variable of a graph being built, which may have other values in its runs."""
    session = current_trace()
    return session is not None and session.general and is_variable(node)


def stopped(node: Node) -> Any:
    """A traced node as a handle with the gradient stopped."""
    refuse_ambiguous(node)
    if type(node) is not Node and node.value is None:
        return wrap(node)
    if node.value is not None:
        info = NodeInfo(node.spec, held=True)
    else:
        info = node.info_with(held=True, linear=())  # `linear` describes its own operands
    return wrap(DiscreteLeaf(lookup("stop_gradient"), (node,), NO_PARAMS, None, info))


def is_traced(x: Any) -> bool:
    """Whether a handle or node has a spec but no value."""
    if isinstance(x, Handle):
        x = x.node
    return isinstance(x, Node) and (x.value is None or is_general(x))


def describe(x: Any) -> Any:
    """The spec of an operand."""
    if isinstance(x, Handle):
        return x.node.spec
    return x.spec if isinstance(x, Node) else spec_of(x)


def shape_of(x: Any) -> tuple[Any, ...]:
    """The shape of an operand: a handle, an array, a number, a list."""
    if isinstance(x, Handle):
        node = x.node
        value = node.value if node.version is None else None  # it may be on a device
        if type(value) is np.ndarray:
            return value.shape  # type: ignore[no-any-return]
        return node.spec.shape if value is None else np.shape(value)
    return np.shape(x)


def dtype_of(x: Any) -> np.dtype[Any]:
    """The dtype of an operand."""
    if isinstance(x, Handle):
        node = x.node
        value = node.value if node.version is None else None  # it may be on a device
        if value is None:
            return node.spec.dtype  # type: ignore[no-any-return]
        x = value
    return x.dtype if hasattr(x, "dtype") else np.asarray(x).dtype


def possibly(condition: Any) -> bool:
    """Whether some element is true or, for a traced value, may be."""
    return True if isinstance(condition, Handle) else bool(np.any(condition))


def leaf(value: Any, owner: Handle, differentiable: bool = True) -> Node:
    """A leaf whose value belongs to `owner`, which also gets its gradient."""
    cls = Node if differentiable else DiscreteLeaf
    return cls(INPUT, (), NO_PARAMS, value, NodeInfo(owner=weakref.ref(owner)))


def leaf_like(old: Node, value: Any, owner: Handle) -> Node:
    """A leaf that replaces another and keeps its name and hooks."""
    cls = Node if type(old) is Node else DiscreteLeaf
    return cls(INPUT, (), NO_PARAMS, value, old.info_with(owner=weakref.ref(owner)))


def owners_of(variables: Sequence[Node]) -> list[Any]:
    """The tensors that variables belong to; new ones for tensors that were freed."""
    owners = []
    for node in variables:
        owner = owner_of(node)
        if owner is None:
            owner = wrap(node)
            node.note(owner=weakref.ref(owner))
        owners.append(owner)
    return owners


# ---- shared memory -----------------------------------------------------------------------------

Take = Callable[[Any], Any]
Put = Callable[[Any, Any], Any]


def link(view: Handle, base: Handle, take: Take, put: Put | None, shares: bool = False) -> None:
    """Record that `view = take(base)` shares memory; `put(base, view)` is the base after a write.

    Nothing is recorded if NumPy made a copy; with `shares` this is not checked.
    """
    value = view.node.value
    if value is None:
        put = put if shares or is_shared_view(view.node, base.node) else _unknown_layout
    elif type(value) is not np.ndarray or not (
        shares or np.may_share_memory(value, base.node.value)
    ):
        return
    view._link = (base, take, put)  # type: ignore[attr-defined]
    views = getattr(base, "_views", None)
    if views is None:
        base._views = [weakref.ref(view)]  # type: ignore[attr-defined]
        return
    if len(views) >= 8 and len(views) & (len(views) - 1) == 0:  # at powers of two: amortised
        views[:] = [ref for ref in views if ref() is not None]
    views.append(weakref.ref(view))


def become_view(handle: Handle, take: Take, put: Put) -> None:
    """Make a handle a view of its own memory, as ``x.shape = shape`` does.

    Parameters
    ----------
    handle : Handle
    take, put : callable
        The view of a base, and the base after a write to the view, as in `link`.
    """
    base = wrap(handle.node)
    for name in ("_link", "_views"):
        if hasattr(handle, name):
            setattr(base, name, getattr(handle, name))
    shared = getattr(base, "_link", None)
    if shared is not None:
        views = [ref for ref in shared[0]._views if ref() is not handle]
        shared[0]._views = [*views, weakref.ref(base)]
    view = take(base)
    expect_views(base)
    base._views.append(weakref.ref(handle))
    handle.node, handle._link = view.node, (base, take, put)  # type: ignore[attr-defined]
    handle._views = []  # type: ignore[attr-defined]


def expect_views(handle: Handle) -> None:
    """Create the list of views, so that repeated checks avoid an AttributeError."""
    if getattr(handle, "_views", None) is None:
        handle._views = []  # type: ignore[attr-defined]


def is_shared_view(node: Node, base: Node) -> bool:
    """Whether a traced view shares memory with its base for every memory layout.

    A reshape may not, unless it only adds or removes axes of length one, or the array has one axis
    or is known to be contiguous.
    """
    if isinstance(node.op, LeafOp) or not node.op.aliasing.may_copy:
        return True
    if len(base.spec.shape) == 1:
        return True
    if _keeps_order(node) and is_contiguous(base):
        return True
    return [n for n in node.spec.shape if n != 1] == [n for n in base.spec.shape if n != 1]


_contiguous: weakref.WeakSet[Node] = weakref.WeakSet()


def note_contiguous(handle: Handle) -> None:
    """Note that a traced array is contiguous, in the order of C, for every layout of arguments."""
    _contiguous.add(handle.node)


def is_contiguous(node: Node) -> bool:
    """Whether a traced array is known to be contiguous in the order of C, also after stores."""
    while node not in _contiguous:
        if isinstance(node.op, LeafOp):
            return False
        operand = 0 if _keeps_order(node) else node.op.updated_operand(node, 0)
        if operand is None or node.spec.dtype != node.inputs[operand].spec.dtype:
            return False
        node = node.inputs[operand]
    return True


def _keeps_order(node: Node) -> bool:
    return bool(node.op.aliasing.may_copy) and node.params.get("order", "C") == "C"


def _unknown_layout(base: Any, view: Any) -> Any:
    """Update the base of a view that may or may not share memory with it.

    Raises
    ------
    TraceError
        The base was made before the trace began, so it may be used after the trace.
    """
    raise TraceError(
        "writing to a reshaped array while a graph is built: whether NumPy would also write to "
        "the array that was reshaped depends on its memory layout. Copy it first, "
        f"x.reshape(...).copy(){at(user_line())}."
    )


def note_unknown_layout(view: Handle) -> None:
    """Note that a traced view may be a copy in NumPy, depending on the layout of its base."""
    shared = getattr(view, "_link", None)
    if shared is not None:
        view._link = (*shared[:2], _unknown_layout)  # type: ignore[attr-defined]


def rebind(handle: Handle, node: Node) -> None:
    """Point a handle to a new node, and update all handles that share its memory.

    A leaf that requires a gradient and is written to under `no_grad` stays such a leaf.
    """
    shared = getattr(handle, "_link", None)
    while shared is not None:  # a view: update its base, and so on to the owner
        base, _, put = shared
        if put is None:
            raise ReadOnlyError(
                "assignment to a read-only view: results of broadcast_to, diagonal, "
                "sliding_window_view and the imaginary part of a real array are read-only, as in "
                "NumPy. "
                f"Copy it first (x.copy()){at(user_line())}."
            )
        if put is _unknown_layout and _is_of_this_trace(base):
            make_ambiguous(owner_of_memory(base), except_for=handle)
            break
        node = put(wrap(base.node), wrap(node)).node
        handle = base
        shared = getattr(handle, "_link", None)
    old = handle.node
    if node.value is None or _is_state(handle, old):
        _note_written(handle, old)
        handle.node = node
        refresh_views(handle)
        if _Class.aliases is not None:
            _Class.aliases(handle)
        return
    if not old.is_outdated and type(old.value) is np.ndarray:
        node.value = _with_strides_of(node.value, old.value)
    if is_variable(old) and (type(old) is DiscreteLeaf or not is_recording()):
        node = leaf_like(old, node.value, handle)
    handle.node = node
    refresh_views(handle)
    if _Class.aliases is not None and current_trace() is not None:  # only traces have aliases
        _Class.aliases(handle)


def _is_state(handle: Handle, old: Node) -> bool:
    """Whether a variable is written to while a graph is built, so its new value is a node."""
    session = current_trace()
    return session is not None and (
        is_variable(old) or handle in session.written or _is_captured(old, session)
    )


def _is_captured(old: Node, session: Session) -> bool:
    """Whether it is a value made outside of the body of a loop or branch."""
    return session.isolated and old.serial < session.since


def _note_written(handle: Handle, old: Node) -> None:
    """Note in the current trace that a handle that is older than it has been written to."""
    session = current_trace()
    if session is None:
        return
    if _is_captured(old, session):
        session.written.setdefault(handle, old)
        return
    if old.value is None:
        return
    if old.info is None or old.info.owner is None:
        if old.serial > session.since:
            return
        raise TraceError(
            "a tensor made outside of the traced function is written to while a graph is built, "
            "but in the graph it is a constant. Make it a variable of the graph "
            f"(wengert.variable), or require its gradient{at(user_line())}."
        )
    session.written.setdefault(handle, old)


def _with_strides_of(value: Any, old: np.ndarray[Any, Any]) -> Any:
    """An equal array with the memory layout of the old one.

    The layout decides which reshapes are views; and a zero-dimensional array that was written to
    must not become an immutable scalar.
    """
    if type(value) is np.ndarray and value.strides == old.strides:
        return value
    new = np.empty_like(old)
    new[...] = value
    return new


def refresh_views(base: Handle) -> None:
    """Update all views of a tensor to its current value."""
    session = current_trace()
    stack = [base]
    while stack:
        source = stack.pop()
        for ref in getattr(source, "_views", None) or ():
            view = ref()
            if view is not None:
                _, take, put = view._link
                if session is not None and (
                    view.node.value is not None or _is_captured(view.node, session)
                ):
                    session.views.setdefault(view, view.node)
                if put is _unknown_layout and view.node.value is None:
                    make_ambiguous(view)
                    continue
                recorded = type(view.node) is Node
                with enable_grad() if recorded else contextlib.nullcontext():
                    view.node = take(wrap(source.node)).node
                stack.append(view)


AMBIGUOUS = LeafOp("ambiguous")


def ambiguous_node(spec: Spec) -> Node:
    """The node of an array which a write at the current line may or may not have changed."""
    return DiscreteLeaf(AMBIGUOUS, (), NO_PARAMS, None, NodeInfo(spec, where=user_line()))


def make_ambiguous(handle: Handle, except_for: Handle | None = None) -> None:
    """Make it an error to use a handle or its views, which a write may or may not have changed."""
    if handle is except_for:
        return
    session = current_trace()
    old = handle.node
    if session is not None and (old.value is not None or _is_captured(old, session)):
        session.views.setdefault(handle, old)
    handle.node = ambiguous_node(old.spec)
    for ref in getattr(handle, "_views", None) or ():
        view = ref()
        if view is not None:
            make_ambiguous(view, except_for)


def owner_of_memory(handle: Handle) -> Handle:
    """The handle at the end of a chain of views."""
    while (shared := getattr(handle, "_link", None)) is not None:
        handle = shared[0]
    return handle


def _is_of_this_trace(handle: Handle) -> bool:
    """Whether the owner of a handle's memory was made in the trace, which then records all uses."""
    owner, session = owner_of_memory(handle), current_trace()
    node = owner.node
    if session is None or node.value is not None or owner in session.written:
        return False
    return node.serial >= session.since or not session.isolated


def refuse_ambiguous(node: Node) -> None:
    """Raise TraceError if the value of a traced array is ambiguous (`make_ambiguous`)."""
    if node.op is AMBIGUOUS:
        raise TraceError(
            f"an array {node.spec} is used after a write to another that may share its memory"
            f"{at(node.where)}. One is a reshape or ravel of the other, of which NumPy makes a "
            "view or a copy depending on the memory layout, or a variable or element of a list "
            "that a loop or branch may have made another name of it; neither is known while a "
            f"graph is built. Copy it first, x.reshape(...).copy() or x.copy(){at(user_line())}."
        )
