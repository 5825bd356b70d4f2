"""Settings of `jit`: the default backend, and the sizes of caches.

All caches are bounded: a function that is always called with new signatures is compiled each time,
but its memory does not grow.

Compiled program: one compiled graph and its inputs, outputs, updates and effects.

With plain arrays, the results are plain arrays.  If a tensor is involved (an argument, a variable
or parameter that the function reads), the results are tensors, as without compilation, and the call
is recorded as one node (compiled_operation.py).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.backends import Backend, Executable
from wengert._engine.backends.registry import is_backend
from wengert._engine.core import pytree
from wengert._engine.core.assigned_parts import Arguments, AssignedPart
from wengert._engine.core.device_arrays import (
    DeviceValue,
    host_values,
    is_on_device,
    load_fingerprints,
    values_together,
    with_value,
)
from wengert._engine.core.dispatch import part
from wengert._engine.core.graph import BaseGraph
from wengert._engine.core.graph_classes import completed, result_specs
from wengert._engine.core.graph_copies import CAPTURED, rebuilt
from wengert._engine.core.handle import Handle, owners_of, wrap
from wengert._engine.core.lazy_import import LazyModule
from wengert._engine.core.node import (
    INPUT,
    ConstantLeaf,
    DiscreteLeaf,
    Fingerprints,
    Node,
    constant,
    keep,
)
from wengert._engine.core.recording import Changes, is_recording, switches
from wengert._engine.core.spec import unweakened
from wengert._engine.graphs import Graph
from wengert._engine.graphs.pytree_signature import ResultStructure, restored
from wengert._engine.ops.messages import first_token
from wengert.errors import TraceError, at, user_line

from .compiled_operation import (
    GraphOperation,
    Written,
    closed,
    entry_of,
    extras_of,
    run_of,
    writing_entry_of,
)

PREFERRED = ("llvm", "interpret")

CALLS = 256  # signatures with a direct lookup, per state of captured values
EXACT = 32  # programs for one shape each, per family
FAMILIES = 64  # signatures that differ in more than sizes, per state
MODES = 8  # modes of modules (training, evaluation), per family; captured values, per OBJECTS
OBJECTS = 32  # sets of objects in the arguments, such as the `self` of a method
ENTRIES = 4  # programs whose native entry points are tried in turn, per signature or structure
ROUTES = 16  # signatures with native entry points
STRUCTURES = 3  # structures of containers that are tried in turn


def preferred_backend() -> str:
    """The name of the default backend."""
    return next(name for name in PREFERRED if is_backend(name))


if TYPE_CHECKING:
    from wengert._engine.backends import interpreter_profile
    from wengert._engine.core.types import Operand
    from wengert._engine.profiling.record import Timing
else:
    interpreter_profile = LazyModule("wengert._engine.backends.interpreter_profile")

_node = attrgetter("node")
Grads = Sequence[tuple[Any, bool, bool]]  # tensor, whether it gets a gradient, whether one was set
Guards = Sequence[tuple[Callable[[], Any], Any]]


class CompiledProgram:
    """A compiled graph.

    Attributes
    ----------
    results : ResultStructure
        The containers of the results.
    is_plain : bool
        Whether there are no captured leaves.
    assumes_inequalities : bool
        True if tracing assumed inequalities of sizes that must be checked again at each call
        (programs.py).
    is_inline : bool
        Whether it is part of a graph built by hand, and cannot run.
    numbers : tuple of int
        The inputs that in-place operators replaced, as they do numbers (core/traced_inputs.py).
    """

    def __init__(
        self,
        graph: BaseGraph,
        executed: BaseGraph,
        backend: Backend,
        simplify: bool,
        guards: Guards = (),
        grads: Grads = (),
        written: Sequence[int] = (),
        assigned: Sequence[AssignedPart] = (),
        numbers: Sequence[int] = (),
    ) -> None:
        self._graph, self._executed, self.backend = graph, executed, backend
        self._simplify, self._guards, self._grads = simplify, guards, grads
        self.numbers = tuple(numbers)
        self._written, self.assigned = tuple(written), assigned
        self._seen = -1, False  # the count of changes at the last check, and its result
        self.assumes_inequalities = False
        # A deferred graph has no leaves but inputs and constants.
        nodes, inputs = () if graph.is_deferred else graph.nodes, set(graph.inputs)
        self.is_inline = any(
            n.is_traced and (n.op is CAPTURED or (n.op is INPUT and n not in inputs)) for n in nodes
        )
        self._extras = () if graph.is_deferred else extras_of(graph)
        self._has_other_effects = bool(graph.updates or graph.effects or grads or assigned)
        # Conditions that raise have no effect on a run that succeeds; arguments are not modified
        # by one that raises.
        self._raises_only = not (graph.updates or grads or assigned) and all(
            n.op.effects.only_if_true and not written for n in graph.effects
        )
        self._has_side_effects = self._has_other_effects or bool(written)
        self.is_plain = not self._extras
        self.results: ResultStructure = graph.structure[1]
        if self.is_inline:
            return
        if self._extras:
            captured = {n: constant(n.value) for n in executed.nodes if n.op is CAPTURED}
            if captured:
                executed = executed.with_nodes(rebuilt(executed.nodes, captured))
        self._executable = Executable(executed, backend)
        self._owners = owners_of(graph.variables)
        self._operation: GraphOperation | None = None
        self.is_single = self.results.structure.is_leaf() and self.results.live[0]
        count = len(result_specs(graph))
        self._returns_one = self.is_single and count == 1 and not graph.updates
        count = len(self.results.live)
        self._is_tuple = 0 < count == sum(
            self.results.live
        ) and self.results.structure == _flat_structure(count)
        self._count = sum(self.results.live)  # gradients follow
        self._sources = [_outer_node(n) for n in self._extras if n.op is CAPTURED]
        self._dependencies: dict[Any, list[set[type]]] = {}  # classes of leaves, for each output
        # Whether derivatives need the values of variables before the run.
        self._keeps_old = not graph.updates or Node in map(type, graph.outputs[: self._count])
        self._native = run_of(self._executable, self._returns_one, not self._keeps_old)
        # Results of other backends are on the host.
        self._result = None if type(backend).result is Backend.result else backend.result

    @functools.cached_property
    def graph(self) -> Graph:
        """The traced graph, simplified, from which derivatives are derived."""
        return completed(self._graph)  # type: ignore[no-any-return]

    @functools.cached_property
    def executed(self) -> Graph:
        """The same with custom calls inlined (`rewrite.without_calls`)."""
        return completed(self._executed)  # type: ignore[no-any-return]

    @functools.cached_property
    def sends_messages(self) -> bool:
        """Whether a run exchanges messages with other processes."""
        return any(n.op is first_token or n.op.kind == "collective" for n in self.graph.nodes)

    def is_recorded(self, fed: Sequence[Any]) -> bool:
        """Whether a result can be differentiated with respect to these inputs, or to a variable."""
        if self._has_other_effects or Node not in map(type, self.graph.outputs[: self._count]):
            return False
        nodes = [x.node for x in fed if isinstance(x, Handle)]
        nodes += [*map(_node, self._owners), *self._sources]
        return is_recording() and Node in map(type, nodes)

    def entry(
        self, otherwise: Callable[..., Any], flat: bool = False, fed: Sequence[Any] = ()
    ) -> Callable[..., Any] | None:
        """A native entry point that takes the leaves by position, if the backend makes one.

        Parameters
        ----------
        otherwise : callable
            Called with arguments that it does not support: tensors, other dtypes and shapes,
            keywords.
        flat : bool
            Whether it returns the outputs in a flat tuple.
        fed : sequence
            Examples of the arguments, for their memory layouts.
        """
        if not self.may_have_entry:
            return None
        if self._written:
            returns_none = self.results.structure.is_leaf() and not self.results.live[0]
            if not (flat or self.is_single or self._is_tuple or returns_none):
                return None
            is_tuple = not self.is_single and (flat or self._is_tuple)
            written = Written(self._written, self._count, is_tuple)
            return writing_entry_of(self._executable, otherwise, written, fed)
        nested = not (flat or self.is_single or self._is_tuple)
        return entry_of(self._executable, self._returns_one, otherwise, nested, fed=fed)

    @property
    def may_have_entry(self) -> bool:
        """Whether all that it does besides computing results is to modify arguments."""
        return not (
            not self._raises_only
            or bool(self.numbers)
            or self.is_inline
            or self.assumes_inequalities
            or self._guards
            or not self.is_plain
        )

    def is_valid(self) -> bool:
        """Whether everything that the function read besides its arguments is unchanged."""
        if self._seen[0] != Changes.count:
            count = Changes.count
            self._seen = count, all(read() == expected for read, expected in self._guards)
        return self._seen[1]

    def run(self, fed: Sequence[Any], handles: bool, arguments: Arguments = ((), {})) -> Any:
        """The result for given inputs; `handles` is whether there are tensors.

        `arguments` are those of the call, for the parts of them that are assigned.
        """
        if handles or self._extras:
            return self._with_history(fed)
        results = self._native(fed)
        if self._grads or self._written or self.assigned:
            results = self._store_extra_outputs(results, fed, arguments)
        if self.is_single:
            return results[0]
        return tuple(results) if self._is_tuple else restored(self.results, results)

    def timed(self, fed: Sequence[Any], repeats: int | None, call: Callable[[], object]) -> Timing:
        """Time a run for given inputs, without side effects.

        `call` is the user's call; it is timed too if it has no side effects.
        """
        values = [_plain(x.node) if isinstance(x, Handle) else x for x in fed]
        reference_call = None if self._has_side_effects else call
        return interpreter_profile.timed(
            self._executable, values, repeats, reference_call, not self._keeps_old
        )

    def _with_history(self, fed: Sequence[Any]) -> Any:
        """The result as tensors, recorded if any input is."""
        if self._grads and any(isinstance(x, Handle) and type(x.node) is Node for x in fed):
            raise TraceError(
                f"{self.graph.name} calls backward(), and was given a tensor that requires a "
                "gradient, which would get none. Pass x.detach(), or let the function capture the "
                f"tensor, as it does parameters{at(user_line())}."
            )
        inputs: list[Any] = [x.node if isinstance(x, Handle) else x for x in fed]
        values = list(map(_plain if self._result is None else self._argument, inputs))
        inputs += map(_node, self._owners)  # their values before the run
        inputs += self._sources
        kinds = tuple(map(type, inputs))
        saved: list[Any] = []
        if not self._keeps_old:
            inputs = []  # values without other references are updated in place
        elif self._result is not None and Node in kinds and is_recording():
            placed = list(map(self.backend.placed, values))  # once, also for the backward pass
            saved = [x if x is not y else None for x, y in zip(placed, values, strict=True)]
            values = placed
        found = self._native(values)
        results = self._store_extra_outputs(found, values)
        if self._count:
            results = self._recorded(inputs, kinds, results, saved)
        return results[0] if self.is_single else restored(self.results, results)

    def _argument(self, x: Operand | Node) -> Any:
        return unweakened(self.backend.argument(x)) if isinstance(x, Node) else x

    def _recorded(
        self,
        inputs: Sequence[Any],
        kinds: tuple[Any, ...],
        values: list[Any],
        saved: Sequence[Any] = (),
    ) -> Any:
        """The results with the types of an uncompiled call, recorded as one node if necessary.

        `saved` are copies of operands on a device, or None for those that have none.
        """
        if self._result is not None:
            values = list(map(self._result, values))
        call: Any = None
        if inputs and Node in kinds and is_recording():
            if self._operation is None:
                graph = closed(self.graph, self._count)
                self._operation = GraphOperation(graph, self.backend, self._simplify)
            elif Fingerprints.native is None:
                load_fingerprints()
            args = tuple([_kept(x) for x in inputs])
            value = values_together(values) if self._operation.several else values[0]
            call = with_value(Node(self._operation, args), value)
            if any([x is not None for x in saved]):
                call.note(saved=tuple(saved))
        classes_of = self._dependencies.get(kinds)
        if classes_of is None:
            leaves = (*self.graph.inputs, *self._extras)
            classes_of = self._dependencies[kinds] = _dependencies(self.graph, leaves, kinds)
        results: list[Any] = []
        for i, (x, classes) in enumerate(zip(values, classes_of, strict=False)):
            if classes and (call is None or classes == {ConstantLeaf}):
                x = wrap(with_value(constant(None), x))
            elif classes:
                node = part(call, i) if self._operation and self._operation.several else call
                if Node not in classes or type(self.graph.outputs[i]) is not Node:
                    node = with_value(DiscreteLeaf(node.op, node.args, node.params), x)
                x = wrap(node)
            elif type(x) is DeviceValue:
                x = x.array
            results.append(x)
        return results

    def _store_extra_outputs(
        self, values: list[Any], fed: Sequence[Any], arguments: Arguments = ((), {})
    ) -> list[Any]:
        """The results of a run; stores the values that follow them.

        These are gradients that the function sets, then new values of modified arguments, then
        those of parts of objects.
        """
        if not self._grads and not self._written and not self.assigned:
            return values
        stored = iter(values[self._count :])
        for tensor, has_gradient, was_set in self._grads:
            gradient = self._gradient(next(stored)) if has_gradient else None
            if gradient is None and not was_set:
                continue
            accumulated = None if was_set else tensor.grad
            if accumulated is not None:
                tensor.grad = accumulated + gradient
            elif switches.count:
                tensor.grad = gradient
            else:
                tensor._grad = gradient  # without the checks: its shape is right
        for k in self._written:
            value = next(stored)
            if type(fed[k]) is np.ndarray:  # numbers of Python and NumPy are immutable
                fed[k][...] = host_values(value)
            elif is_on_device(fed[k]):
                fed[k][...] = value
        for assigned in self.assigned:
            assigned.assign(stored, arguments)
        return values[: self._count]

    def _gradient(self, value: Any) -> Any:
        if self._result is not None:
            value = self._result(value)
        return wrap(with_value(constant(None), value))

    def has_array_for_number(self, fed: Sequence[Any]) -> bool:
        """Whether an in-place operator would modify an array that was traced as a number."""
        return any(type(fed[k]) is np.ndarray for k in self.numbers)

    def writes_to_unshared(self, fed: Sequence[Any], handles: bool) -> bool:
        """Whether arguments that are modified in place share no memory with other arguments.

        If they do, or if some argument is a tensor, the function itself must be called.
        """
        arrays = [(k, x) for k, x in enumerate(fed) if type(x) is np.ndarray]
        return not handles and not any(
            np.may_share_memory(fed[k], x)
            for k in self._written
            for i, x in arrays
            if i != k and type(fed[k]) is np.ndarray
        )

    def assigns_without_history(self, handles: bool) -> bool:
        """Whether parts of objects that it assigns have values only, and no tensors are involved.

        Otherwise the function itself must be called.
        """
        return not self.assigned or (self.is_plain and not handles)

    @property
    def writes(self) -> bool:
        """Whether it modifies arguments in place."""
        return bool(self._written)


def _flat_structure(count: int) -> Any:
    return pytree.flatten((0,) * count)[1]


def _plain(x: Operand | Node) -> Any:
    return unweakened(x.value) if isinstance(x, Node) else x


def _kept(x: Any) -> Any:
    """An operand of a recorded call, whose later changes are harmless or detected."""
    if type(x) is np.ndarray:
        return keep(x)
    return x.copy() if not isinstance(x, Node) and is_on_device(x) else x


def _outer_node(node: Node) -> Any:
    """The outer node that a captured leaf stands for."""
    assert node.info is not None
    return node.info.source


def _dependencies(graph: Graph, leaves: Sequence[Node], kinds: Sequence[type]) -> list[set[type]]:
    """For each output, the node classes of the tensors that it depends on."""
    classes = list({kind for kind in kinds if issubclass(kind, Node)})
    masks: dict[Node, int] = {}  # sets, as bits
    for leaf, kind in zip(leaves, kinds, strict=True):
        masks[leaf] = 1 << classes.index(kind) if kind in classes else 0
    for node in graph.nodes:
        if node not in masks:
            bits = 0
            for a in node.inputs:
                bits |= masks.get(a, 0)
            masks[node] = bits
    return [{c for k, c in enumerate(classes) if masks[n] >> k & 1} for n in graph.outputs]
