"""Tracing session: one run of a Python function with traced arguments, which records its graph.

    built            the graph of a function for given arguments, for `trace` and transformations
    parameter_names  the names of positional arguments

Specs, arrays and numbers in the arguments are replaced by placeholders.  Variables that the
function writes to are restored when it returns, and become updates of the graph.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from wengert._engine.autodiff.arguments import name_of
from wengert._engine.core import pytree, traced_inputs
from wengert._engine.core.assigned_parts import AssignedPart, assigned_parts
from wengert._engine.core.conversion_hook import converted, object_changes
from wengert._engine.core.device_arrays import device_spec, is_on_device, refuse_on_device
from wengert._engine.core.graph import BaseGraph
from wengert._engine.core.graph_copies import settled
from wengert._engine.core.handle import Handle, describe, refuse_ambiguous, wrap
from wengert._engine.core.implicit_conversions import chosen
from wengert._engine.core.lazy_import import LazyModule
from wengert._engine.core.loop_variants import from_variants
from wengert._engine.core.message_order import OrderWanted, is_used
from wengert._engine.core.node import Node, next_serial
from wengert._engine.core.other_libraries import Labelled, is_labelled, values_of
from wengert._engine.core.recording import Session, enable_grad, tracing
from wengert._engine.core.replaced_errors import recursed_at
from wengert._engine.core.spec import Spec
from wengert._engine.core.traced_inputs import note_scalar_inputs
from wengert._engine.core.tracing import placeholder
from wengert._engine.core.user_functions import known_signature
from wengert._engine.core.validation import refuse_unknown_length
from wengert._engine.ops.messages import with_messages
from wengert.errors import DtypeError, StructureError, TraceError, at, user_line

from .pytree_signature import ResultStructure, Signature, Static

if TYPE_CHECKING:
    from wengert._engine.control_flow import message_carry
else:  # for programs of several processes
    message_carry = LazyModule("wengert._engine.control_flow.message_carry")

AnyGraph = TypeVar("AnyGraph", bound=BaseGraph)
P = ParamSpec("P")
R = TypeVar("R")


def infinite_recursion(what: str, error: RecursionError) -> TraceError:
    """The error of a function that calls itself without end while it is traced."""
    where = recursed_at(error) or user_line()
    return TraceError(
        f"{what} recurses infinitely while it is traced: the end of a recursion may depend on "
        "static arguments and shapes, but not on values. Make its depth a static argument "
        f"(static_argnames=), or write a loop{at(where)}."
    )


def _again_in_order(build: Callable[P, R]) -> Callable[P, R]:
    """Trace a second time, with tokens, what asks for them when they are not yet in use."""

    @functools.wraps(build)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        was_used = is_used()
        try:
            return build(*args, **kwargs)
        except OrderWanted:
            if was_used:
                raise
        return build(*args, **kwargs)

    return run


@_again_in_order
def built(
    cls: type[AnyGraph],
    fun: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    *,
    positions: set[Any] | frozenset[Any] = frozenset(),
    static: set[Any] | frozenset[Any] = frozenset(),
    names: Sequence[str] | None = None,
    name: str | None = None,
    guards: list[Any] | None = None,
    grads: list[Any] | None = None,
    written: list[int] | None = None,
    assigned: list[AssignedPart] | None = None,
    numbers: list[int] | None = None,
    original: Callable[[Any], Any] = lambda x: x,
    constants: int | None = None,
) -> AnyGraph:
    """The graph of a function for given arguments.

    Parameters
    ----------
    cls : type
        The class of the graph.
    fun, args, kwargs
        The function and its arguments; specs, arrays and numbers are replaced by inputs.
    positions, static : collections
        The static arguments, by position and by name.
    names : sequence of str, optional
        The names of the positional arguments; by default those of `fun`.
    name : str, optional
        The name of the graph; by default that of `fun`.
    guards : list, optional
        Receives the guards of the trace (`Session.guards`).
    grads : list, optional
        Receives the tensors whose ``.grad`` it writes to, each with whether it sets a gradient, and
        whether one was set before. The gradients are additional outputs, after the others.
    written : list, optional
        Receives the positions of the inputs that it modifies in place. Their new values are
        additional outputs, after all others.
    assigned : list, optional
        Receives the parts of objects from outside that it assigns (assigned_parts.py). Their values
        are additional outputs, after all others; if None, such assignments are refused.
    numbers : list, optional
        Receives the positions of the inputs that in-place operators replaced, as they do numbers.
    original : callable
        The object that a replacement of a captured one stands for.
    constants : int, optional
        The position of an argument with respect to which no derivative can be taken.
    """
    what = name or name_of(fun)
    since = next_serial()
    arg_names = list(names) if names is not None else parameter_names(fun, len(args))
    inputs = _Inputs()
    positional = inputs.take_all(args, arg_names, positions, constants)
    # Inputs are in the order of the names, like the leaves of a dict; the function is called with
    # the order of the caller.
    by_name = {k: inputs.take(v, k, k in static) for k, v in sorted(kwargs.items())}
    keywords = {k: by_name[k] for k in kwargs}
    signature = inputs.signature(arg_names, positional, keywords)
    with (
        inputs.belonging_to(what), tracing() as session, enable_grad(), object_changes() as changes
    ):  # fmt: skip
        session.general = True
        try:
            out = with_messages(lambda: converted(fun)(*positional, **keywords), inputs.handles)
        except RecursionError as error:
            raise infinite_recursion(what, error) from error
        updates = _updates(session)
        extra_outputs = _gradients(session, what, grads)
        if written is not None:
            written += inputs.written()
            extra_outputs += [inputs.handles[k] for k in written]
        if changes is not None:
            arguments = tuple(positional), keywords
            extra_outputs += assigned_parts(changes, arguments, what, since, assigned, original)
    if numbers is not None:
        numbers += inputs.updated_numbers()
    if guards is not None:
        guards += session.guards
    leaves, structure = pytree.flatten(out)
    is_output = tuple(_is_output(x, what) for x in leaves)
    graph = cls(
        *[x for x, is_live in zip(leaves, is_output, strict=True) if is_live],
        *extra_outputs,
        inputs=inputs.nodes,
        updates=updates,
        effects=session.effects,
        structure=(signature, ResultStructure(structure, is_output)),
        name=what,
    )
    return _checked(graph, what, since)


def _checked(graph: AnyGraph, what: str, since: int) -> AnyGraph:
    """The graph of a function, with what it uses from before the trace."""
    traced_inputs.refuse(graph.nodes, graph.inputs, what)
    if is_used():
        new = from_variants(graph.outputs)
        graph = graph.with_nodes(new) if new else graph
        message_carry.check_decisions(graph)
    return settled(graph, since)


class _Inputs:
    """The inputs of a graph, and for each leaf of the arguments whether it is one of them."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.handles: list[Any] = []
        self.fed: list[bool] = []
        self.passed: list[str] = []
        self._updated: set[Node] = set()

    def take_all(
        self,
        args: Sequence[Any],
        names: Sequence[str],
        static: set[Any] | frozenset[Any],
        constants: int | None,
    ) -> list[Any]:
        """The positional arguments, with new input tensors."""
        pairs = enumerate(zip(args, names, strict=False))
        return [
            self.take(a, name, i in static, False if i == constants else None)
            for i, (a, name) in pairs
        ]

    def take(
        self, argument: Any, name: str, static: bool, differentiable: bool | None = None
    ) -> Any:
        """An argument with new input tensors in place of specs, arrays and numbers."""
        leaves, structure = pytree.flatten(argument)
        paths = [""] if len(leaves) == 1 and leaves[0] is argument else pytree.paths(argument)
        policy = chosen()
        new_leaves = []
        for x, path in zip(leaves, paths, strict=True):
            spec = x if isinstance(x, Spec) else describe(x)
            if spec is None and not static and is_on_device(x):
                spec = device_spec(x)
            is_fed = isinstance(spec, Spec) and not static and not _is_foreign(x)
            if is_fed and spec.dtype.kind not in "biufc":
                raise DtypeError(
                    f"{name + path} is {spec}, whose elements are not numbers. Make it a static "
                    f"argument, static_argnames={name!r}{at(user_line())}."
                )
            if not is_fed and is_labelled(x) and not static:
                raise Labelled(x)  # as a constant, it would be the same in each run
            self.fed.append(is_fed)
            self.passed.append("" if is_fed or isinstance(x, Handle) else str(Static.of(x)))
            if is_fed:
                self.nodes.append(placeholder(spec, name + path, differentiable))
                x = wrap(self.nodes[-1])
                self.handles.append(x)
                x = x if policy is None else policy.capped(x)
            new_leaves.append(x)
        return pytree.unflatten(structure, new_leaves)

    def written(self) -> list[int]:
        """The positions of the inputs that have been modified."""
        pairs = enumerate(zip(self.handles, self.nodes, strict=True))
        modified = [k for k, (handle, node) in pairs if handle.node is not node]
        for k in modified:
            refuse_ambiguous(self.handles[k].node)
        return modified

    def updated_numbers(self) -> list[int]:
        """The positions of the numbers to which in-place operators have been applied."""
        return [k for k, node in enumerate(self.nodes) if node in self._updated]

    @contextmanager
    def belonging_to(self, what: str) -> Iterator[None]:
        """A context at whose end the inputs are marked as leaked tracers if they are still used."""
        self._updated = note_scalar_inputs(self.nodes)
        try:
            yield
        finally:
            traced_inputs.mark_ended(self.nodes, what)

    def signature(
        self, arg_names: Sequence[str], args: list[Any], kwargs: dict[Any, Any]
    ) -> Signature:
        """The signature of the graph."""
        structure = pytree.flatten((tuple(args), kwargs))[1]
        arg_names = arg_names[: len(args)]
        return Signature(tuple(arg_names), structure, tuple(self.fed), tuple(self.passed))


def _is_foreign(x: Any) -> bool:
    """Whether it belongs to an outer graph that is being built."""
    return isinstance(x, Handle) and x.node.is_traced


def _is_output(x: Any, what: str) -> bool:
    if x is None:
        return False
    if describe(x) is None:
        refuse_unknown_length(x)
        if is_labelled(x):
            raise Labelled(x, is_result=True)
        refuse_on_device(x, f"a result of {what}, which does not depend on its arguments,")
        remedy = values_of(x, is_result=True) or "Return arrays, numbers, None and containers"
        raise StructureError(
            f"{what} returned a {type(x).__name__}, which cannot be the output of a graph. "
            f"{remedy}{at(user_line())}."
        )
    if isinstance(x, Handle):
        refuse_ambiguous(x.node)
    return True


def _updates(session: Session) -> dict[Node, Node]:
    """For each variable written while tracing: its node and the node of its new value."""
    return {old: handle.node for handle, old in session.written.items()}


def _gradients(session: Session, what: str, grads: list[Any] | None) -> list[Any]:
    """The gradients that the function stores in captured tensors, as outputs."""
    grads_left = session.grads_left()
    gradients = [g for _, g, _ in grads_left if g is not None]
    if gradients and grads is None:
        raise TraceError(
            f"{what} stores gradients in .grad of captured tensors, which a graph cannot do. "
            "Return them and call zero_grad(), or compile the function with wengert.jit"
            f"{at(user_line())}."
        )
    if any(type(g.node) is Node and g.node.args for g in gradients):
        raise TraceError(
            f"{what} stores differentiable gradients (create_graph=True) in .grad, where a "
            "compiled function can only store values. Call zero_grad() at its end"
            f"{at(user_line())}."
        )
    if grads is not None:
        grads += [(x, g is not None, was_set) for x, g, was_set in grads_left]
    return gradients


def parameter_names(fun: Any, count: int) -> list[str]:
    """The names of the function's positional arguments."""
    names: list[str] = []
    signature = known_signature(fun)
    for p in signature.parameters.values() if signature is not None else ():
        if p.kind is p.VAR_POSITIONAL:
            names += [f"{p.name}{i}" for i in range(count - len(names))]
        elif p.kind is not p.KEYWORD_ONLY:
            names.append(p.name)
    if not names and count == 1:
        return ["x"]
    return names + [f"x{i}" for i in range(len(names), count)]
