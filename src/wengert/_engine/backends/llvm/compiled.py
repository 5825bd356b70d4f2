"""The program of one graph as machine code in memory, and its entry point for Python.

LoadedProgram  runs the kernel with values of inputs and variables
entry_of       a built-in function that calls it
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.core.symbolic.dim import replaced
from wengert.errors import CommunicationError, at, user_line

from .abi import is_available, make_entry
from .abi.guarded_entries import layout_of
from .abi.ports import Port, sends_messages
from .codegen.host_callbacks import RAISED
from .ir import execution_engine
from .ir.index_analysis import size_of
from .program_cache import CachedProgram, object_files_of
from .runtime.runtime_library import handler
from .tuning import thresholds

if TYPE_CHECKING:  # not needed for a cached program
    from wengert._engine.core.types import Array, Operand

    from .program import Program

_KERNEL = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)


class LoadedProgram:
    """The program of one graph, in memory."""

    def __init__(self, program: Program | CachedProgram) -> None:
        images, self.program = object_files_of(program)
        self.code = execution_engine.Code(images, self.program.symbols)
        self._kernel = _KERNEL(self.code.address("kernel"))

    def run(self, values: Sequence[Any], sizes: Mapping[str, int]) -> list[Any] | None:
        """The results for values of inputs and variables; None if the run fails."""
        program = self.program
        frame = np.zeros(max(program.slots, 1), np.int64)
        arrays = []  # keeps them alive
        for value, port in zip(values, program.inputs, strict=True):
            array = _converted(value, port)
            arrays.append(array)
            frame[port.slot] = array.ctypes.data
            if port.strided:
                frame[port.slot + 1 : port.slot + 1 + array.ndim] = array.strides
        for name, slot in zip(program.sizes, program.size_slots, strict=True):
            frame[slot] = sizes[name]
        results = []
        for port in program.outputs:
            shape = tuple(replaced(n, sizes) for n in port.spec.shape)
            array = np.empty(shape, port.spec.dtype)
            results.append(array)
            frame[port.slot] = array.ctypes.data
        for slot, array in program.constants:
            frame[slot] = array.ctypes.data
        try:
            status = self._kernel(frame.ctypes.data)
        except SystemError as error:  # SciPy has raised (scipy.special.seterr)
            if error.__cause__ is None:
                raise
            raise error.__cause__ from None
        if status == RAISED:
            raise program.callbacks.take_error()
        if status:
            refuse_repetition(program)
            return None
        found = iter([r if r.ndim else r[()] for r in results])
        return [
            tuple([next(found) for _ in range(n)]) if n else next(found) for n in program.counts
        ]


def _converted(value: Operand, port: Port) -> Any:
    """A value in the dtype and layout of its port, copied if necessary."""
    array = np.asarray(value, port.spec.dtype)
    if port.strided and layout_of(array, port.spec) != "-":
        return array
    return np.require(array, port.spec.dtype, ["F" if port.fortran else "C", "A"])


def refuse_repetition(program: Program | CachedProgram) -> None:
    """Raise if the interpreter cannot repeat a run that failed, because it sent messages."""
    if sends_messages(program):
        raise CommunicationError(
            "a compiled function that exchanges messages with other processes failed: they do not "
            "run the same program (operations, shapes, dtypes and numbers of steps must agree), a "
            "message could not be sent or has another size, a communicator has been freed, or an "
            "operation was given values that it refuses. Run it without wengert.jit "
            f"to see which{at(user_line())}."
        )


def has_entry(program: Program | CachedProgram) -> bool:
    """Whether Python can call it through an entry point."""
    return is_available() and not any(program.counts)


def entry_of(
    compiled: LoadedProgram,
    miss: Callable[..., Any],
    otherwise: Callable[..., Any],
    gate: Array | None = None,
    symbol: str = "entry",
) -> Callable[..., Any]:
    """The entry point of a loaded program; see `Native.entry`."""
    program = compiled.program

    def failed(*args: Any) -> Any:
        refuse_repetition(program)
        return otherwise(*args)

    def callback_error() -> None:
        raise program.callbacks.take_error()

    return make_entry(
        program,
        compiled.code,
        miss,
        failed,
        callback_error,
        handler=handler() if _may_be_large(program) else None,
        gate=gate,
        symbol=symbol,
    )


def _may_be_large(program: Program | CachedProgram) -> bool:
    sizes = [size_of(p.spec.shape) * p.spec.dtype.itemsize for p in program.outputs]
    return any(type(n) is not int or n >= thresholds.pooled_result_bytes for n in sizes)
