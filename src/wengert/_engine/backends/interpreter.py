"""Interpreter: a graph run by NumPy, node by node; the reference semantics.

    Interpreter         the backend; base class of others that run node by node
    InterpretedProgram  one graph at given sizes
    refusal             an exception of a node, as an error that names the node
    into_free_memory    a step that computes into the memory of an operand, or into a free array
    set_aside           a step that frees a value and keeps its memory for reuse

A program is a list of steps, executed in order.  A slot is reused as soon as its value is no longer
needed (liveness.py), which also frees the value.

Large arrays are computed into memory that was freed during the same run: fresh memory costs more
than the arithmetic (a page fault for each 4 KiB).  The steps that do so take the list of all slots,
whose last element is a dictionary from (shape, dtype) to free arrays.  An array is free if its slot
has the only reference to it and it is not a view: a view of it, a user's variable, a value kept by
an operation would each have a reference, so an array with other references is never overwritten.
"""

from __future__ import annotations

import functools
import operator
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from wengert._engine.backends.liveness import last_uses, specs_at, writes_anywhere
from wengert._engine.backends.registry import Backend, Run, register_backend
from wengert._engine.core.dispatch import PART
from wengert._engine.core.graph import BaseGraph
from wengert._engine.core.graph_classes import Body, located
from wengert._engine.core.node import LeafOp, Node, is_variable
from wengert._engine.core.node_properties import substituted
from wengert._engine.core.op import Op
from wengert._engine.core.replaced_errors import as_users, is_users, mark, raise_for
from wengert._engine.core.runtime_checks import lookup_error
from wengert._engine.core.spec import Spec
from wengert._engine.core.symbolic.dim import is_open
from wengert._engine.core.thread_state import errors_ignored
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

# ---- reuse of large arrays -----------------------------------------------------------------------


LIMIT = 1 << 16  # bytes; below it the allocator is faster than the check of references

Held = list[Any]


def _is_free(held: Held, slot: int, shape: Any, dtype: Any) -> bool:
    if sys.getrefcount(held[slot]) > _ALONE:
        return False
    x = held[slot]
    if type(x) is not np.ndarray or x.base is not None or not x.flags.owndata:
        return False
    return bool(x.shape == shape and x.dtype == dtype and x.flags.writeable)


# The reference count of an array with a single reference depends on the Python interpreter: it is
# measured once.
_ALONE = 0
_ALONE = next(n for n in range(1, 20) if [_ALONE := n] and _is_free([np.empty(1)], 0, (1,), float))


def into_free_memory(
    ufunc: Callable[..., Any],
    slots: Sequence[int],
    dying: Sequence[int],
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
) -> Callable[[Held], Any]:
    """A step of a ufunc with operands in `slots`, and a result of this shape and dtype.

    dying : the slots of operands of this shape and dtype that have their last use here.
    """
    key, dying, slots = (shape, dtype), tuple(dying), tuple(slots)

    def run(held: Held) -> Any:
        for k in dying:
            if _is_free(held, k, shape, dtype):
                return ufunc(*[held[s] for s in slots], out=held[k])
        spare = held[-1].get(key)
        if spare:
            return ufunc(*[held[s] for s in slots], out=spare.pop())
        return ufunc(*[held[s] for s in slots])

    return run


def set_aside(slot: int, key: tuple[Any, ...]) -> Callable[[Held], None]:
    """A step that clears a slot, and keeps its array for reuse if it is free."""
    shape, dtype = key

    def run(held: Held) -> None:
        if _is_free(held, slot, shape, dtype):
            held[-1].setdefault(key, []).append(held[slot])

    return run


# ---- programs ------------------------------------------------------------------------------------


# A function, the slots of its operands, and the slot of its result.
Step = tuple[Callable[..., Any], Any, int, int]
# The second operand of a step with one operand.
UNARY, VARIADIC, HELD = -1, -2, -3


class Interpreter(Backend):
    """Runs a graph node by node with NumPy; see `Backend`.

    A backend that runs node by node with other functions derives from this class and overrides
    `function`.
    """

    __module__ = "wengert.backends"

    name = "interpret"

    def function(self, op: Op) -> Callable[..., Any] | None:
        """The function of values (and, by name, parameters) that runs an operation, or None.

        An implementation of the operation for this backend (`Op.implement`) has precedence.
        """
        return op.run

    def implementation(self, op: Op) -> Callable[..., Any] | None:
        """The function that runs an operation; None if this backend lacks it."""
        own = op.implementations.get(self.name)
        return self.function(op) if own is None else own

    def lacks(self, op: Op) -> bool:
        """Whether an operation has no function; loops and branches need none."""
        if op is PART or _has_bodies(op):
            return False
        return self.implementation(op) is None

    def compile(self, graph: BaseGraph, sizes: Mapping[str, int]) -> Run:
        """The steps of a graph."""
        return InterpretedProgram(self, graph, sizes).run

    def compile_body(self, body: Body, sizes: Mapping[str, int]) -> Run:
        """The steps of the body of a loop or branch."""
        return InterpretedProgram(self, body, sizes).walk


class InterpretedProgram:
    """The steps of one graph at given sizes.

    Attributes
    ----------
    start : list
        The initial contents of the slots: constants, sizes. The last slot is for free memory.
    fed : list of int
        The slots of the arguments.
    steps : list of Step
    node_indices : list of int
        The node of each step.
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
        # The last large node of each shape and dtype.
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
        # Equal numbers share a slot, for locality.
        key = type(value), repr(value)
        if key not in self._numbers:
            self._numbers[key] = self._new_slot(value)
        return self._numbers[key]

    def _is_known(self, node: Node, i: int) -> bool:
        """Whether the value is the same in each run, and small."""
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
        """Add a step for a node, and steps that free values; `gone` are the freed nodes."""
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
        # The result takes the slot of an operand with its last use here, unless its memory is
        # kept for reuse.
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
        if i in gone:  # its value is not used
            self._step(i, (_nothing, (), VARIADIC, slot))
            self._free.append(slot)

    def _is_light(self, k: int) -> bool:
        """Whether a value may stay until its slot is reused: a number without shared memory."""
        spec = self._specs[k]
        return type(spec) is Spec and spec.shape == () and self.graph[k].op.kind == "elementwise"

    def _step(self, index: int, step: Step) -> None:
        self.steps.append(self._known.setdefault(step, step))
        self.node_indices.append(index)

    # ---- running -------------------------------------------------------------------------------

    @errors_ignored
    def run(self, values: Sequence[Any]) -> list[Any]:
        """Execute the steps."""
        return self.walk(values)

    def walk(self, values: Sequence[Any]) -> list[Any]:
        """Execute the steps; the caller has disabled NumPy's warnings."""
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
            # The position of the iterator gives the failed step: no counter is needed.
            step = len(self.steps) - operator.length_hint(ahead) - 1
            index = self.node_indices[step]
            raise_for(error, refusal(self.graph.nodes[index], index, error))
        return [held[k] for k in self.results]


def _is_large(spec: Spec) -> bool:
    return not any(map(is_open, spec.shape)) and bytes_of(spec) >= LIMIT


def _operands(node: Node) -> str:
    return ", ".join(str(a.spec) for a in node.inputs)


def refusal(node: Node, index: int, error: Exception) -> Exception:
    """The exception as an error that names the node, its operation and the user's line."""
    if getattr(node.op, "is_users_exception", False):
        note = getattr(node.op, "exception_note", None)
        if note is not None and node.where:
            return as_users(error, note.format(node.where))
        mark(error, True)
        return error
    if is_users(error):
        return as_users(error, f"in {node.op.name} of {_operands(node)}{at(node.where)}")
    if isinstance(error, GuardError | BackendError):  # these already name the node
        return located(error, node)
    if isinstance(error, IndexError) and (known := lookup_error(node, error)) is not None:
        return known
    text = f"%{index} = {node.op.name} of {_operands(node)}: {error}"
    text += "" if text.endswith(".") else "."
    where = at(node.where)
    if isinstance(error, WengertError):
        copy = type(error)(f"{text}{where}")
        vars(copy).update(vars(error))
        return copy
    if isinstance(error, np.linalg.LinAlgError):
        return MatrixError(f"{text}{where}")
    if type(error) in (ValueError, TypeError):
        return (ShapeError if type(error) is ValueError else DtypeError)(f"{text}{where}")
    if type(error) is IndexError and node.where and " (at " not in str(error):
        located_error = IndexError(f"{error}{where}")
        located_error.add_note(f"in node %{index} = {node.op.name} of {_operands(node)}")
        return located_error
    error.add_note(f"in node %{index} = {node.op.name} of {_operands(node)}{where}")
    return error


def _addressed(slots: tuple[int, ...]) -> tuple[Any, int]:
    """The operands of a step in its encoding."""
    if len(slots) == 2:
        return slots
    return (slots[0], UNARY) if len(slots) == 1 else (slots, VARIADIC)


def _nothing() -> None:
    """The content of a cleared slot."""


def _has_bodies(op: Op) -> bool:
    """Whether an operation runs bodies: a loop, a branch, a call (control_flow/operations.py)."""
    return hasattr(op, "run_by")


def _run_of(backend: Interpreter, node: Node, sizes: Mapping[str, int]) -> Callable[..., Any]:
    """The function of the operands that computes the value of a node."""
    op = node.op
    assert isinstance(op, Op)
    if op is PART:
        return operator.itemgetter(node.params["index"])
    if _has_bodies(op) and backend.name not in op.implementations:
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
    if "names" in params:  # its lengths are known when it runs
        compiled = functools.lru_cache(maxsize=256)(lambda body: backend.compile_body(body, sizes))
        return functools.partial(op.run_by, compiled, **params)
    bodies = [b for x in params.values() for b in (x if type(x) is tuple else (x,))]
    runs = {b: backend.compile_body(b, sizes) for b in bodies if isinstance(b, Body)}
    return functools.partial(op.run_by, runs.__getitem__, **params)


def _weak(run: Callable[..., Any]) -> Callable[..., Any]:
    def number(*xs: Any) -> Any:
        out = run(*xs)
        return out.item() if isinstance(out, np.generic | np.ndarray) else out

    return number


def _checked(run: Callable[..., Any], node: Node, sizes: Mapping[str, int]) -> Callable[..., Any]:
    """A function with a check of its shape, which was inferred by probing."""
    specs = node.spec if type(node.spec) is tuple else (node.spec,)
    expected = [tuple(substituted(s.shape, sizes)) for s in specs]

    def checked(*xs: Any) -> Any:
        out = run(*xs)
        shapes = [np.shape(v) for v in (out if type(out) is tuple else (out,))]
        if shapes != expected:
            raise ShapeError(
                f"it gave shapes {shapes} at the sizes {dict(sizes)}, but the graph was built for "
                f"{expected}: its shape follows another rule at these sizes. Trace with numbers "
                "instead of names."
            )
        return out

    return checked


register_backend(Interpreter())
