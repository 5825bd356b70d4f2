"""Interpreter: a graph run by NumPy, node by node; the reference semantics.

Compiling makes a list of steps; running walks along it.  A step is ``(run, a, b, slot)``: a
function, where its operands are, and where its result goes.  Values live in slots, and a slot is
used again as soon as its value is no longer needed (liveness.py), so that values are let go in time
without a word about it.

Large arrays are computed into memory that has become free during the same run: into that of an
operand, or of a value let go before.  Fresh memory costs more than the arithmetic (a page fault for
each 4 KiB).  Whether memory is free is asked of the interpreter itself (reference counts), so that
nothing that anybody can still see is ever overwritten.

    Interpreter         the backend; derive from it for others that go line by line
    InterpretedProgram  one graph at given sizes
    refusal             what goes wrong in a node, as an error that names it
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from wengert._engine.control_flow.operations import Control
from wengert._engine.core.dispatch import PART
from wengert._engine.core.graph import BaseGraph
from wengert._engine.core.index_errors import complaint
from wengert._engine.core.node import LeafOp, Node, is_variable
from wengert._engine.core.op import Op
from wengert._engine.core.spec import Spec
from wengert._engine.core.static_params import substituted
from wengert._engine.core.subgraph import Body, located
from wengert._engine.core.symbolic.dim import is_open
from wengert._engine.core.tracing import SIZE
from wengert._engine.core.types import Operand
from wengert._engine.ops.cost_model import bytes_of
from wengert.errors import (
    BackendError,
    DtypeError,
    GuardError,
    MatrixError,
    ShapeError,
    WengertError,
    at,
)

from ..liveness import last_uses, specs_at, writes_anywhere
from ..registry import Backend, Run, register_backend
from .buffer_reuse import LIMIT, into_free_memory, set_aside

Step = tuple[Callable[..., Any], Any, int, int]
# What stands in the place of the second operand, where there is none.
UNARY, VARIADIC, HELD = -1, -2, -3


class Interpreter(Backend):
    """Runs a graph by NumPy, line by line; see `Backend`.

    A backend that goes line by line too, with functions of its own, derives from this class and
    overrides `function`.
    """

    __module__ = "wengert.backends"

    name = "interpret"

    def function(self, op: Op) -> Callable[..., Any] | None:
        """The function of values (and, by name, parameters) that runs an operation, or None.

        What an operation says itself for this backend (`Op.implement`) comes before it.
        """
        return op.run

    def implementation(self, op: Op) -> Callable[..., Any] | None:
        """What runs an operation; None if this backend lacks it."""
        own = op.implementations.get(self.name)
        return self.function(op) if own is None else own

    def lacks(self, op: Op) -> bool:
        """Whether there is not a function for an operation; loops and branches need none."""
        if op is PART or isinstance(op, Control):
            return False
        return self.implementation(op) is None

    def compile(self, graph: BaseGraph, sizes: Mapping[str, int]) -> Run:
        """Steps to walk along."""
        return InterpretedProgram(self, graph, sizes).run

    def compile_body(self, body: Body, sizes: Mapping[str, int]) -> Run:
        """Steps of what a loop or branch does, to walk along while its node runs."""
        return InterpretedProgram(self, body, sizes).walk


class InterpretedProgram:
    """The steps of one graph at given sizes.

    Attributes
    ----------
    start : list
        What stands in each slot before the first step: constants, sizes. The last slot is for
        memory that has become free.
    fed : list of int
        The slots of the values fed.
    steps : list of Step
    node_indices : list of int
        For each step the node of the graph that it belongs to.
    results : list of int
        The slots of the results.
    """

    def __init__(
        self, backend: Interpreter, graph: BaseGraph, sizes: Mapping[str, int], reuses: bool = True
    ) -> None:
        self.graph, self.backend, self.sizes = graph, backend, sizes
        self.start: list[Any] = []
        self.steps: list[Step] = []
        self.node_indices: list[int] = []
        self._slot: dict[Node, int] = {}
        self._free: list[int] = []
        self._numbers: dict[Any, int] = {}
        self._known: dict[Step, Step] = {}
        self._specs = specs_at(graph, sizes)
        none: list[Any] = [None] * len(graph.nodes)
        self._large = self._large_results() if reuses else none
        # For the shape and dtype of large nodes the last such node.
        self._wanted = {key: i for i, key in enumerate(self._large)}
        for i, (node, gone) in enumerate(zip(graph.nodes, last_uses(graph), strict=True)):
            if isinstance(node.op, LeafOp):
                self._slot[node] = self._slot_of_leaf(node)
            elif self._is_known(node, i):
                self._slot[node] = self._new_slot(_run_of(backend, node, sizes)())
            else:
                self._add(i, node, gone)
        self.fed = [self._slot[n] for n in (*graph.inputs, *graph.variables)]
        self.results = [self._slot[n] for n in (*graph.outputs, *graph.updates.values())]

    # ---- making steps --------------------------------------------------------------------------

    def _new_slot(self, value: Operand | None = None) -> int:
        self.start.append(value)
        return len(self.start) - 1

    def _slot_of_leaf(self, node: Node) -> int:
        if node.op is SIZE:
            return self._new_slot(node.params["size"](self.sizes))
        if node.is_traced or is_variable(node):
            return self._new_slot()
        value = node.value
        if type(value) not in (int, float):
            return self._new_slot(value)
        # Equal numbers share a slot: what lies close together is found faster.
        key = type(value), repr(value)
        if key not in self._numbers:
            self._numbers[key] = self._new_slot(value)
        return self._numbers[key]

    def _is_known(self, node: Node, i: int) -> bool:
        """Whether the value is the same at each run, and takes little memory."""
        if node.inputs or node.op.kind != "creation":
            return False
        return bool(node.op.aliasing.uniform or bytes_of(self._specs[i]) < LIMIT)

    def _large_results(self) -> list[Any]:
        """Shape and dtype of each node whose large result can be written to a given array."""
        sizes: dict[Any, bool] = {}
        for spec in self._specs:
            if spec not in sizes:
                sizes[spec] = type(spec) is Spec and spec.shape != () and _is_large(spec)
        return [
            (spec.shape, spec.dtype) if sizes[spec] and self._is_told_where(node) else None
            for spec, node in zip(self._specs, self.graph.nodes, strict=True)
        ]

    def _is_told_where(self, node: Node) -> bool:
        if isinstance(node.op, LeafOp) or not writes_anywhere(node):
            return False
        return self.backend.implementation(node.op) is node.op.run

    def _add(self, i: int, node: Node, gone: Sequence[int]) -> None:
        """A step for a node, and steps that let values go; `gone` are nodes."""
        slots = tuple([self._slot[a] for a in node.inputs])
        # For the slots of values that are let go here the shape and dtype, if a later node, or
        # this one, can use the memory.
        leaving: dict[int, Any] = {}
        light: set[int] = set()
        for k in gone:
            if k != i:
                if self._is_light(k):
                    light.add(self._slot[self.graph.nodes[k]])
                key = self._large[k]
                worth = key is not None and self._wanted[key] >= i
                leaving[self._slot[self.graph.nodes[k]]] = key if worth else None
        if self._large[i] is not None:
            op: Any = node.op
            mine = [s for s, key in leaving.items() if key and op.kind == "elementwise"]
            run, a, b = into_free_memory(op.run, slots, mine, *self._large[i]), 0, HELD
        else:
            run = _run_of(self.backend, node, self.sizes)
            a, b = _addressed(slots)
        # The result takes the slot of an operand that is not needed any more, but for memory that
        # is to be set aside.
        taken = next((s for s, key in leaving.items() if key is None), None)
        slot = taken if taken is not None else self._free.pop() if self._free else self._new_slot()
        self._step(i, (run, a, b, slot))
        self._slot[node] = slot
        for s, key in leaving.items():
            if s != slot:
                if key:
                    self._step(i, (set_aside(s, key), 0, HELD, s))
                elif s not in light:
                    self._step(i, (_nothing, (), VARIADIC, s))
                self._free.append(s)
        if i in gone:  # nobody uses its value
            self._step(i, (_nothing, (), VARIADIC, slot))
            self._free.append(slot)

    def _is_light(self, k: int) -> bool:
        """Whether a value may stay until its slot is used again: a number of its own."""
        spec = self._specs[k]
        return type(spec) is Spec and spec.shape == () and self.graph[k].op.kind == "elementwise"

    def _step(self, index: int, step: Step) -> None:
        self.steps.append(self._known.setdefault(step, step))
        self.node_indices.append(index)

    # ---- running -------------------------------------------------------------------------------

    def run(self, values: Sequence[Any]) -> list[Any]:
        """Execute the steps."""
        with np.errstate(all="ignore"):
            return self.walk(values)

    def walk(self, values: Sequence[Any]) -> list[Any]:
        """The same, where NumPy has been told already not to complain."""
        held = self.start.copy()
        for slot, value in zip(self.fed, values, strict=True):
            held[slot] = value
        held.append({})
        ahead = iter(self.steps)
        try:
            for run, a, b, slot in ahead:
                if b >= 0:
                    held[slot] = run(held[a], held[b])
                elif b == UNARY:
                    held[slot] = run(held[a])
                elif b == HELD:
                    held[slot] = run(held)
                else:
                    held[slot] = run(*[held[k] for k in a])
        except Exception as error:
            # The iterator knows how far it has come: nothing has to be counted on the way.
            step = len(self.steps) - operator.length_hint(ahead) - 1
            index = self.node_indices[step]
            raise refusal(self.graph.nodes[index], index, error) from error
        return [held[k] for k in self.results]


def _is_large(spec: Spec) -> bool:
    return not any(map(is_open, spec.shape)) and bytes_of(spec) >= LIMIT


def refusal(node: Node, index: int, error: Exception) -> Exception:
    """What went wrong, as an error that names the node, its operation and the user's line."""
    if isinstance(error, GuardError | BackendError):  # which name the node themselves
        return located(error, node)
    if isinstance(error, IndexError) and (known := complaint(node, error)) is not None:
        return known
    operands = ", ".join(str(a.spec) for a in node.inputs)
    text = f"%{index} = {node.op.name} of {operands}: {error}"
    text += "" if text.endswith(".") else "."
    where = at(node.where)
    if isinstance(error, np.linalg.LinAlgError):
        return MatrixError(f"{text}{where}")
    if isinstance(error, WengertError):
        return type(error)(f"{text}{where}")
    if type(error) in (ValueError, TypeError):
        return (ShapeError if type(error) is ValueError else DtypeError)(f"{text}{where}")
    error.add_note(f"in node %{index} = {node.op.name} of {operands}{where}")
    return error


def _addressed(slots: tuple[int, ...]) -> tuple[Any, int]:
    """Where the operands are, as a step says it."""
    if len(slots) == 2:
        return slots
    return (slots[0], UNARY) if len(slots) == 1 else (slots, VARIADIC)


def _nothing() -> None:
    """What is put into a slot whose value is let go."""


def _run_of(backend: Interpreter, node: Node, sizes: Mapping[str, int]) -> Callable[..., Any]:
    """A function of the operands that gives the value of a node."""
    op = node.op
    assert isinstance(op, Op)
    if op is PART:
        return operator.itemgetter(node.params["index"])
    if isinstance(op, Control) and backend.name not in op.implementations:
        return _run_of_bodies(backend, node, sizes)
    run = backend.implementation(op)
    assert run is not None
    if op.effects.side_effect and "placed" in dir(op) and backend.name not in op.implementations:
        run = op.placed(node)  # type: ignore[attr-defined]
    if node.params:
        run = functools.partial(run, **substituted(node.params, sizes))
    spec = node.spec
    if type(spec) is Spec and spec.weak:
        return _weak(run)
    if node.info is not None and node.info.probed:
        return _checked(run, node, sizes)
    return run


def _run_of_bodies(
    backend: Interpreter, node: Node, sizes: Mapping[str, int]
) -> Callable[..., Any]:
    """A loop or branch, whose bodies are run by the same backend."""
    op: Any = node.op
    params = substituted(node.params, sizes)
    bodies = [b for x in params.values() for b in (x if type(x) is tuple else (x,))]
    runs = {b: backend.compile_body(b, sizes) for b in bodies if isinstance(b, Body)}
    return functools.partial(op.run_by, runs.__getitem__, **params)


def _weak(run: Callable[..., Any]) -> Callable[..., Any]:
    def number(*xs: Any) -> Any:
        out = run(*xs)
        return out.item() if isinstance(out, np.generic | np.ndarray) else out

    return number


def _checked(run: Callable[..., Any], node: Node, sizes: Mapping[str, int]) -> Callable[..., Any]:
    """A run whose shape was inferred by probing: it may be another at these sizes."""
    specs = node.spec if type(node.spec) is tuple else (node.spec,)
    expected = [tuple(substituted(s.shape, sizes)) for s in specs]

    def checked(*xs: Any) -> Any:
        out = run(*xs)
        shapes = [np.shape(v) for v in (out if type(out) is tuple else (out,))]
        if shapes != expected:
            raise ShapeError(
                f"it gave shapes {shapes} at the sizes {dict(sizes)}, but the graph was built for "
                f"{expected}: its shape follows another rule at these sizes. Trace with numbers in "
                "place of names."
            )
        return out

    return checked


register_backend(Interpreter())
