"""Host callbacks: operations that native code calls back in Python.

Operations without lowering or kernel (most operations of users) run as in the interpreter, within
native code: the callback acquires the GIL, passes copies of the operands (so that the operation may
keep them), and copies the results to their memory.

If it raises, the exception is stored, the native function returns a status, and the caller of the
native function raises the exception.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert._engine.backends.interpreter.interpreter import refusal
from wengert._engine.core.node import Node
from wengert._engine.core.spec import Spec, at_sizes
from wengert._engine.core.static_params import substituted
from wengert._engine.core.subgraph import local_sizes
from wengert._engine.core.types import Array
from wengert.errors import ShapeError, at

from ..ir.ir_builder import Function, Section

RAISED = 2  # the status of a run in which a host callback raised
_CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)


class HostCallbacks:
    """The host callbacks of one program.

    Attributes
    ----------
    nodes : list of Node
        Their graph nodes.
    pointer : numpy.ndarray
        One number: the address that native code calls.
    """

    def __init__(
        self,
        graph_nodes: Sequence[Node],
        sizes: Sequence[str],
        size_slots: Sequence[int],
        nodes: Sequence[Node] = (),
    ) -> None:
        self._positions = {node: k for k, node in enumerate(graph_nodes)}
        self.nodes: list[Any] = list(nodes)
        self._sizes, self._slots = tuple(sizes), tuple(size_slots)
        self._callback = _CALLBACK(self._called)
        address = ctypes.cast(self._callback, ctypes.c_void_p).value
        self.pointer = np.array([address], np.uint64)
        self._raised = threading.local()

    def add(self, node: Node) -> int:
        """Add a host callback; returns its number."""
        self.nodes.append(node)
        return len(self.nodes) - 1

    def take_error(self) -> BaseException:
        """The exception that a callback raised in this thread."""
        error: BaseException = self._raised.error
        self._raised.error = None
        return error

    def _called(self, k: int, table: int, frame: int) -> int:
        try:
            slots = ctypes.cast(frame, ctypes.POINTER(ctypes.c_int64))
            sizes = {n: slots[s] for n, s in zip(self._sizes, self._slots, strict=True)}
            self._run(self.nodes[k], ctypes.cast(table, ctypes.POINTER(ctypes.c_void_p)), sizes)
        except Exception as error:
            node = self.nodes[k]
            self._raised.error = refusal(node, self._positions.get(node, 0), error)
            return RAISED
        except BaseException as error:  # such as KeyboardInterrupt; the caller of the run raises it
            self._raised.error = error
            return RAISED
        return 0

    def _run(self, node: Node, table: Any, sizes: dict[str, int]) -> None:
        several = isinstance(node.spec, tuple)
        count = len(node.inputs) + (len(node.spec) if several else 1)
        for n, name in enumerate(lengths_of(node), count):
            sizes[name] = ctypes.cast(table[n], ctypes.POINTER(ctypes.c_int64))[0]
        operands = [_value(table[n], at_sizes(a.spec, sizes)) for n, a in enumerate(node.inputs)]
        op = node.op
        run = op.placed(node) if op.effects.side_effect and hasattr(op, "placed") else op.run
        with np.errstate(all="ignore"):
            found = run(*operands, **substituted(node.params, sizes))
        specs = at_sizes(node.spec, sizes)
        results = list(found) if several else [found]
        for n, (value, spec) in enumerate(
            zip(results, specs if several else (specs,), strict=True), len(operands)
        ):
            _write(table[n], value, spec, node)


def is_conditional(node: Node) -> bool:
    """Whether a node needs its callback only if its operand, a boolean, is true."""
    is_flag = isinstance(node.spec, Spec) and not node.spec.shape and node.spec.dtype == bool
    return is_flag and node.op.effects.only_if_true


def copied_flag(body: Section, operand: str, result: str) -> str:
    """Copy a boolean; returns whether it is true, as an i1."""
    value = body.value(f"load i8, ptr {operand}")
    body.write(f"store i8 {value}, ptr {result}")
    return str(body.value(f"icmp ne i8 {value}, 0"))


def table_of(function: Function, body: Section, pointers: Sequence[str]) -> str:
    """A table of addresses: of the operands, the results and the lengths."""
    table = function.slot(f"[{max(len(pointers), 1)} x ptr]", 8)
    for n, pointer in enumerate(pointers):
        place = body.value(f"getelementptr ptr, ptr {table}, i64 {n}")
        body.write(f"store ptr {pointer}, ptr {place}")
    return table


def lengths_of(node: Node) -> list[str]:
    """The sizes local to a loop step; their addresses follow those of operands and results."""
    return sorted(frozenset().union(*map(local_sizes, (node, *node.inputs))))


def _array(address: int, spec: Spec) -> np.ndarray[Any, Any]:
    """The memory at an address as an array."""
    size = int(np.prod(spec.shape, dtype=np.int64)) * spec.dtype.itemsize
    if size == 0:
        return np.empty(spec.shape, spec.dtype)
    memory = (ctypes.c_char * size).from_address(address)
    flat: np.ndarray[Any, Any] = np.frombuffer(memoryview(memory), np.uint8).view(spec.dtype)
    return flat.reshape(spec.shape)


def _value(address: int, spec: Spec) -> Any:
    """A copy of an operand; a number if it is 0-d."""
    value = _array(address, spec).copy()
    if value.ndim:
        return value
    return value.item() if spec.weak else value[()]


def _write(address: int, value: Array, spec: Spec, node: Node) -> None:
    value = np.asarray(value)
    if value.shape != spec.shape or not np.can_cast(value.dtype, spec.dtype, "same_kind"):
        raise ShapeError(
            f"{node.op.name} returned {value.dtype}{list(value.shape)} where the graph expects "
            f"{spec}: its shape or dtype follows another rule at these sizes{at(node.where)}."
        )
    _array(address, spec)[...] = value
