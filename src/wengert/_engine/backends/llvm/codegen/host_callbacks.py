"""Host callbacks: operations that native code calls back in Python, and signals.

    HostCallbacks      operations without lowering or kernel, called back in Python
    handle_signals     lets Python handle signals that have come
    external           declares an external function
    LISTENED           the external functions that this needs; `address_of` returns their addresses

Operations without lowering or kernel (most operations of users) run as in the interpreter, within
native code: the callback acquires the GIL, passes copies of the operands (so that the operation may
keep them), and copies the results to their memory.

If it raises, the exception is stored, the native function returns a status, and the caller of the
native function raises the exception.  Signals that come while native code runs are handled before
the callback begins.  One that comes at its first instruction, before it can catch anything, makes
ctypes drop the exception: so a callback that ends returns a number that is different at each call.

A signal sets a flag that Python checks between its instructions, but native code does not.  It
calls CPython's `PyErr_CheckSignals`; a Python exception that a handler raises there, such as the
KeyboardInterrupt of Ctrl-C, ends the run.
"""

from __future__ import annotations

import ctypes
import math
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert._engine.backends.interpreter import refusal
from wengert._engine.core.graph_classes import local_sizes
from wengert._engine.core.node import Node
from wengert._engine.core.node_properties import sizes_of, substituted
from wengert._engine.core.spec import Spec, at_sizes
from wengert._engine.core.thread_state import call_ignoring_errors
from wengert.errors import ShapeError, at

from ..ir.ir_builder import Function, ModuleBuilder, Section

# ---- signals -------------------------------------------------------------------------------------


RAISED = 2  # the status of a run in which Python code raised
CLOCK = "clock_gettime"
_LOCK, _SIGNALS, _UNLOCK = "PyGILState_Ensure", "PyErr_CheckSignals", "PyGILState_Release"
LISTENED = frozenset({CLOCK, _LOCK, _SIGNALS, _UNLOCK})


def handle_signals(section: Section) -> str:
    """Let Python handle signals; the status is nonzero if that raised an exception."""
    module = section.function.module
    lock = section.value(f"call i32 {external(module, _LOCK, 'i32', [])}()")
    raised = section.value(f"call i32 {external(module, _SIGNALS, 'i32', [])}()")
    release = external(module, _UNLOCK, "void", ["i32"])
    section.write(f"call void {release}(i32 {lock})")
    has = section.value(f"icmp ne i32 {raised}, 0")
    return str(section.value(f"select i1 {has}, i64 {RAISED}, i64 0"))


def external(module: ModuleBuilder, name: str, result: str, arguments: list[str]) -> str:
    """Declare an external function; returns ``@name``."""
    module.symbols[name] = address_of(name)
    return module.declare(name, result, arguments, "nounwind")


def address_of(name: str) -> int:
    """The address of an external function."""
    library: ctypes.CDLL = ctypes.CDLL(None) if name == CLOCK else ctypes.pythonapi
    address = ctypes.cast(getattr(library, name), ctypes.c_void_p).value
    assert address is not None
    return address


# ---- callbacks -----------------------------------------------------------------------------------


_DOUBLE, _INT64 = np.dtype(np.float64), np.dtype(np.int64)
_CALLBACK = ctypes.CFUNCTYPE(
    ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64
)


class HostCallbacks:
    """The host callbacks of one program.

    Attributes
    ----------
    nodes : list of Node
        Their graph nodes.
    pointer : numpy.ndarray
        The address that native code calls, and the number of calls.
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
        self.pointer = np.array([address, 0], np.uint64)
        self._raised = threading.local()
        self._calls: dict[int, _CallOfNode] = {}

    def add(self, node: Node) -> int:
        """Add a host callback; returns its number."""
        self.nodes.append(node)
        return len(self.nodes) - 1

    def take_error(self) -> BaseException:
        """The exception that a callback raised in this thread."""
        error: BaseException | None = getattr(self._raised, "error", None)
        self._raised.error = None
        return KeyboardInterrupt() if error is None else error

    def _called(self, k: int, table: int, frame: int, number: int) -> int:
        try:
            call = self._calls.get(k)
            if call is None:
                call = self._calls[k] = _CallOfNode(self.nodes[k])
            sizes: dict[str, int] = {}
            if not call.is_fixed:
                slots = ctypes.cast(frame, ctypes.POINTER(ctypes.c_int64))
                sizes = {n: slots[s] for n, s in zip(self._sizes, self._slots, strict=True)}
            call(ctypes.cast(table, ctypes.POINTER(ctypes.c_void_p)), sizes)
        except Exception as error:
            node = self.nodes[k]
            self._raised.error = refusal(node, self._positions.get(node, 0), error)
            return 0
        except BaseException as error:  # such as KeyboardInterrupt; the caller of the run raises it
            self._raised.error = error
            return 0
        return number


class _CallOfNode:
    """The call of one node.

    is_fixed : whether it contains no symbolic sizes.
    """

    def __init__(self, node: Node) -> None:
        self._node = node
        self._several = isinstance(node.spec, tuple)
        self._operands = [a.spec for a in node.inputs]
        self._results: Any = tuple(node.spec) if self._several else (node.spec,)
        self._lengths = lengths_of(node)
        shapes = tuple([s.shape for s in (*self._operands, *self._results)])
        self.is_fixed = not (self._lengths or sizes_of(shapes) or sizes_of(node.params))
        # The sizes of the last call, and what follows from them.
        self._last: tuple[dict[str, int], Any, Any, Any] | None = None

    def _at(self, sizes: dict[str, int]) -> tuple[Any, Any, Any]:
        """The specs of operands and results, and the parameters, for some sizes."""
        last = self._last
        if last is None or last[0] != sizes:
            operands = [at_sizes(s, sizes) for s in self._operands]
            results = at_sizes(self._results, sizes)
            last = dict(sizes), operands, results, substituted(self._node.params, sizes)
            self._last = last
        return last[1:]

    def __call__(self, table: Any, sizes: dict[str, int]) -> None:
        """Run the operation: `table` has the addresses of operands, results and lengths."""
        node, operand_specs, result_specs = self._node, self._operands, self._results
        params = node.params
        for n, name in enumerate(self._lengths, len(operand_specs) + len(result_specs)):
            sizes[name] = ctypes.cast(table[n], ctypes.POINTER(ctypes.c_int64))[0]
        if not self.is_fixed:
            operand_specs, result_specs, params = self._at(sizes)
        operands = [_value(table[n], spec) for n, spec in enumerate(operand_specs)]
        op = node.op
        run = op.placed(node) if op.effects.side_effect and hasattr(op, "placed") else op.run
        found = call_ignoring_errors(run, *operands, **params)
        results = list(found) if self._several else [found]
        for n, (value, spec) in enumerate(zip(results, result_specs, strict=True), len(operands)):
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


def called(body: Section, cell: str, k: int, table: str, frame: str) -> str:
    """Call a callback by its number; `cell` is the address of `HostCallbacks.pointer`.

    Returns the status.
    """
    status = body.function.slot("i64")
    found = handle_signals(body)
    body.write(f"store i64 {found}, ptr {status}")
    with body.when(body.value(f"icmp eq i64 {found}, 0")) as inner:
        function = inner.value(f"load ptr, ptr {cell}")
        counter = inner.value(f"getelementptr i64, ptr {cell}, i64 1")
        count = inner.value(f"atomicrmw add ptr {counter}, i64 1 monotonic")
        # Other programs have other addresses: no number is returned twice.
        place = inner.value(f"shl i64 {inner.value(f'ptrtoint ptr {cell} to i64')}, 16")
        number = inner.value(f"add i64 {place}, {inner.value(f'add i64 {count}, 1')}")
        arguments = f"i64 {k}, ptr {table}, ptr {frame}, i64 {number}"
        result = inner.value(f"call i64 {function}({arguments})")
        has_ended = inner.value(f"icmp eq i64 {result}, {number}")
        inner.write(
            f"store i64 {inner.value(f'select i1 {has_ended}, i64 0, i64 {RAISED}')}, ptr {status}"
        )
    return str(body.value(f"load i64, ptr {status}"))


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
    size = math.prod(spec.shape) * spec.dtype.itemsize
    if size == 0:
        return np.empty(spec.shape, spec.dtype)
    memory = (ctypes.c_char * size).from_address(address)
    flat: np.ndarray[Any, Any] = np.frombuffer(memoryview(memory), np.uint8).view(spec.dtype)
    return flat.reshape(spec.shape)


def _value(address: int, spec: Spec) -> Any:
    """A copy of an operand; a number if it is 0-d."""
    if not spec.shape and spec.dtype == _DOUBLE:
        number = ctypes.c_double.from_address(address).value
        return number if spec.weak else np.float64(number)
    value = _array(address, spec).copy()
    if value.ndim:
        return value
    return value.item() if spec.weak else value[()]


def _write(address: int, value: Any, spec: Spec, node: Node) -> None:
    if type(value) is np.float64 and not spec.shape and spec.dtype == _DOUBLE:
        ctypes.c_double.from_address(address).value = value
        return
    if type(value) is np.int64 and not spec.shape and spec.dtype == _INT64:
        ctypes.c_int64.from_address(address).value = int(value)
        return
    value = np.asarray(value)
    if value.shape != spec.shape or not np.can_cast(value.dtype, spec.dtype, "same_kind"):
        raise ShapeError(
            f"{node.op.name} returned {value.dtype}{list(value.shape)} where the graph expects "
            f"{spec}: its shape or dtype follows another rule at these sizes{at(node.where)}."
        )
    _array(address, spec)[...] = value
