"""Collective operations: calls of MPI (wengert.distributed).

The functions of MPI are called by their addresses, and its communicators, datatypes and operations
are read when the program runs, so code in the disk cache does not depend on the process.

    mpi.allreduce, mpi.bcast ...    one message each
    mpi.start, mpi.wait             a message between two processes
    mpi.progress                    let MPI move what is pending
    mpi.complete                    wait for messages when a run ends early
    first_token                     all processes run programs with the same messages
    tied, joined                    values that wait for messages
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from wengert._engine.core.symbolic.dim import Length
from wengert._engine.kinds.collective import HASH_FACTOR, HASH_MASK

from ..ir.ir_builder import Name, Section
from ..ir.llvm_types import Dtype
from ..runtime import library_symbols
from .fortran_calls import check_lengths
from .kernel_call import ArrayPointer, KernelCall, kernel
from .loop_helpers import clear, copy, copy_unless_same

_STATUS_BYTES = 64  # of an MPI_Status: 20 in MPICH, 24 in Open MPI


class _Mpi:
    """The MPI calls of one kernel."""

    def __init__(self, call: KernelCall) -> None:
        self.call, self.section = call, call.section
        comm = call.params["comm"]
        self.handle_kind = comm.native_handle_kind
        self.key = comm.key

    def handle(self, name: str) -> str:
        """A handle of MPI as an argument: of a communicator, a datatype or an operation."""
        symbol = f"mpi.handle.{name}"
        cell = self.call.external(symbol, library_symbols.address_of(symbol), "void", [])
        value = self.section.value(f"load {self.handle_kind}, ptr {cell}")
        return f"{self.handle_kind} {value}"

    def communicator(self, for_collectives: bool = True) -> str:
        return self.handle(f"{'collective' if for_collectives else 'direct'}.{self.key}")

    def datatype(self, dtype: Dtype) -> str:
        return self.handle(f"type.{dtype.str[1:]}")

    def count(self, shape: Sequence[Length]) -> str:
        """The number of elements of an array, as an argument."""
        size = self.call.number(math.prod(shape, start=1))
        check_lengths(self.call, size)
        if size.isdigit():
            return f"i32 {size}"
        return f"i32 {self.section.value(f'trunc i64 {size} to i32')}"

    def run(self, function: str, *arguments: str) -> None:
        """Call a function; the kernel fails if it does."""
        symbol = f"mpi.function.{function}"
        kinds = [a.split()[0] for a in arguments]
        callee = self.call.external(symbol, library_symbols.address_of(symbol), "i32", kinds)
        status = self.section.value(f"call i32 {callee}({', '.join(arguments)})")
        self.call.fail_if(self.section.value(f"icmp ne i32 {status}, 0"))


def _message(name: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Register a function that emits the call for one operation (a decorator)."""

    def register(emit: Callable[[_Mpi, ArrayPointer, ArrayPointer], None]) -> Any:
        def write(call: KernelCall) -> None:
            x, (y, token) = call.operands[0], call.results
            emit(_Mpi(call), x, y)
            call.section.write(f"store i16 0, ptr {token.pointer}")

        kernel(f"mpi.{name}")(write)
        return emit

    return register


def _reduction(name: str, operation: str) -> None:
    @_message(name)
    def reduce_all(mpi: _Mpi, x: ArrayPointer, y: ArrayPointer) -> None:
        mpi.run(
            "MPI_Allreduce",
            f"ptr {x.pointer}",
            f"ptr {y.pointer}",
            mpi.count(x.shape),
            mpi.datatype(x.dtype),
            mpi.handle(f"op.{operation}"),
            mpi.communicator(),
        )


for _name, _operation in {
    "allreduce": "SUM",
    "allreduce_max": "MAX",
    "allreduce_min": "MIN",
    "allreduce_prod": "PROD",
    "allreduce_any": "LOR",
    "allreduce_all": "LAND",
}.items():
    _reduction(_name, _operation)


@_message("reduce")
def _reduce(mpi: _Mpi, x: ArrayPointer, y: ArrayPointer) -> None:
    call, root = mpi.call, mpi.call.params["root"]
    if call.params["comm"].rank != root:
        clear(call, call.section, y.pointer, math.prod(y.shape, start=1), y.dtype)
    mpi.run(
        "MPI_Reduce",
        f"ptr {x.pointer}",
        f"ptr {y.pointer}",
        mpi.count(x.shape),
        mpi.datatype(x.dtype),
        mpi.handle("op.SUM"),
        f"i32 {root}",
        mpi.communicator(),
    )


@_message("bcast")
def _bcast(mpi: _Mpi, x: ArrayPointer, y: ArrayPointer) -> None:
    copy(mpi.call, mpi.section, y, x)
    mpi.run(
        "MPI_Bcast",
        f"ptr {y.pointer}",
        mpi.count(y.shape),
        mpi.datatype(y.dtype),
        f"i32 {mpi.call.params['root']}",
        mpi.communicator(),
    )


@_message("replicated")
def _replicated(mpi: _Mpi, x: ArrayPointer, y: ArrayPointer) -> None:
    copy(mpi.call, mpi.section, y, x)


@_message("varying")
def _varying(mpi: _Mpi, x: ArrayPointer, y: ArrayPointer) -> None:
    copy(mpi.call, mpi.section, y, x)


@_message("barrier")
def _barrier(mpi: _Mpi, x: ArrayPointer, y: ArrayPointer) -> None:
    copy(mpi.call, mpi.section, y, x)
    mpi.run("MPI_Barrier", mpi.communicator())


@_message("same")
def _same(mpi: _Mpi, x: ArrayPointer, y: ArrayPointer) -> None:
    """Fail unless the greatest and the least of each byte are equal."""
    call, s = mpi.call, mpi.section
    size: Length = math.prod(x.shape, start=x.dtype.itemsize)
    count = call.number(size)
    mine, greatest = call.scratch(2 * size), call.scratch(2 * size)
    complement = s.value(f"getelementptr i8, ptr {mine}, i64 {count}")
    with s.loop("0", count) as (t, i):
        byte = t.value(f"load i8, ptr {_byte(t, x.pointer, i)}")
        t.write(f"store i8 {byte}, ptr {_byte(t, mine, i)}")
        t.write(f"store i8 {t.value(f'xor i8 {byte}, -1')}, ptr {_byte(t, complement, i)}")
    mpi.run(
        "MPI_Allreduce",
        f"ptr {mine}",
        f"ptr {greatest}",
        mpi.count((2 * size,)),
        mpi.handle("type.i1"),
        mpi.handle("op.MAX"),
        mpi.communicator(),
    )
    second = s.value(f"getelementptr i8, ptr {greatest}, i64 {count}")
    with s.loop("0", count) as (t, i):
        most = t.value(f"load i8, ptr {_byte(t, greatest, i)}")
        least = t.value(f"xor i8 {t.value(f'load i8, ptr {_byte(t, second, i)}')}, -1")
        call.fail_if(t.value(f"icmp ne i8 {most}, {least}"), 1, t)
    copy(call, s, y, x)


def _byte(s: Section, pointer: Name, index: Name) -> Name:
    return s.value(f"getelementptr i8, ptr {pointer}, i64 {index}")


@_message("reduce_scatter")
def _reduce_scatter(mpi: _Mpi, x: ArrayPointer, y: ArrayPointer) -> None:
    mpi.run(
        "MPI_Reduce_scatter_block",
        f"ptr {x.pointer}",
        f"ptr {y.pointer}",
        mpi.count(y.shape),
        mpi.datatype(y.dtype),
        mpi.handle("op.SUM"),
        mpi.communicator(),
    )


def _rows(name: str, function: str, has_root: bool) -> None:
    """An operation whose operand or result has a row for each process."""

    @_message(name)
    def emit(mpi: _Mpi, x: ArrayPointer, y: ArrayPointer) -> None:
        params = mpi.call.params
        row = {"mpi.scatter": y.shape, "mpi.alltoall": x.shape[1:]}.get(f"mpi.{name}", x.shape)
        count, datatype = mpi.count(row), mpi.datatype(x.dtype)
        root = [f"i32 {params['root']}"] if has_root else []
        sent, received = f"ptr {x.pointer}", f"ptr {y.pointer}"
        mpi.run(
            function, sent, count, datatype, received, count, datatype, *root, mpi.communicator()
        )


_rows("allgather", "MPI_Allgather", False)
_rows("alltoall", "MPI_Alltoall", False)
_rows("gather", "MPI_Gather", True)
_rows("scatter", "MPI_Scatter", True)


_RECEIVING, _SENDING = 1, 2  # bits of the flags beside the requests


@kernel("mpi.start")
def _start(call: KernelCall) -> None:
    """Start to receive and to send."""
    x, (y, token, requests) = call.operands[0], call.results
    mpi, s, params = _Mpi(call), call.section, call.params
    comm, tag = mpi.communicator(for_collectives=False), f"i32 {params['tag']}"
    source, dest = params["source"], params["dest"]
    pending = 0
    if source is None:
        clear(call, s, y.pointer, math.prod(y.shape, start=1), y.dtype)
    else:
        array = f"ptr {y.pointer}", mpi.count(y.shape), mpi.datatype(y.dtype)
        request = f"ptr {_word(s, requests.pointer, 0)}"
        mpi.run("MPI_Irecv", *array, f"i32 {source}", tag, comm, request)
        pending = _RECEIVING
        _set_pending(s, requests, pending)
    if dest is not None:
        array = f"ptr {x.pointer}", mpi.count(x.shape), mpi.datatype(x.dtype)
        request = f"ptr {_word(s, requests.pointer, 1)}"
        mpi.run("MPI_Isend", *array, f"i32 {dest}", tag, comm, request)
        _set_pending(s, requests, pending | _SENDING)
    s.write(f"store i16 0, ptr {token.pointer}")


@kernel("mpi.wait", updates=lambda params: True)
def _wait(call: KernelCall) -> None:
    """Wait for what was started; fail if something else arrives than was expected."""
    (y, requests, _), (result,) = call.operands, call.results
    mpi, s, params = _Mpi(call), call.section, call.params
    source, dest = params["source"], params["dest"]
    status = call.function.slot(f"[{_STATUS_BYTES} x i8]", 8)
    arrived = call.function.slot("i32")
    if source is not None:
        _set_pending(s, requests, 0 if dest is None else _SENDING)
        mpi.run("MPI_Wait", f"ptr {_word(s, requests.pointer, 0)}", f"ptr {status}")
        mpi.run("MPI_Get_count", f"ptr {status}", mpi.datatype(y.dtype), f"ptr {arrived}")
    if dest is not None:
        _set_pending(s, requests, 0)
        status = call.function.slot(f"[{_STATUS_BYTES} x i8]", 8)
        mpi.run("MPI_Wait", f"ptr {_word(s, requests.pointer, 1)}", f"ptr {status}")
    if source is not None:
        expected = mpi.count(y.shape).split()[1]
        count = s.value(f"load i32, ptr {arrived}")
        call.fail_if(s.value(f"icmp ne i32 {count}, {expected}"))
    copy_unless_same(call, s, result, y)


@kernel("mpi.progress")
def _progress(call: KernelCall) -> None:
    """Let MPI move messages that are pending: ask whether one of them has arrived."""
    (requests,), s = call.operands, call.section
    flags = s.value(f"load i64, ptr {_word(s, requests.pointer, 2)}")
    is_sent = s.value(f"icmp eq i64 {flags}, {_SENDING}")
    request = s.value(f"select i1 {is_sent}, i64 1, i64 0")
    request = s.value(f"getelementptr i64, ptr {requests.pointer}, i64 {request}")
    status = call.function.slot(f"[{_STATUS_BYTES} x i8]", 8)
    flag = call.function.slot("i32")
    is_pending = s.value(f"icmp ne i64 {flags}, 0")
    with s.when(is_pending) as t:
        symbol = "mpi.function.MPI_Request_get_status"
        address = library_symbols.address_of(symbol)
        kind = _Mpi(call).handle_kind
        ask = call.external(symbol, address, "i32", [kind, "ptr", "ptr"])
        handle = t.value(f"load {kind}, ptr {request}")
        t.value(f"call i32 {ask}({kind} {handle}, ptr {flag}, ptr {status})")


@kernel("mpi.complete")
def _complete(call: KernelCall) -> None:
    """Wait for messages that are pending when a run ends early."""
    (requests,), s = call.operands, call.section
    flags = s.value(f"load i64, ptr {_word(s, requests.pointer, 2)}")
    _set_pending(s, requests, 0)
    status = call.function.slot(f"[{_STATUS_BYTES} x i8]", 8)
    symbol = "mpi.function.MPI_Wait"
    wait = call.external(symbol, library_symbols.address_of(symbol), "i32", ["ptr", "ptr"])
    for number, bit in enumerate((_RECEIVING, _SENDING)):
        is_pending = s.value(f"icmp ne i64 {s.value(f'and i64 {flags}, {bit}')}, 0")
        with s.when(is_pending) as t:
            request = _word(t, requests.pointer, number)
            t.value(f"call i32 {wait}(ptr {request}, ptr {status})")


def _word(s: Section, pointer: Name, number: int) -> Name:
    """The address of one of a few numbers of 8 bytes."""
    return s.value(f"getelementptr i64, ptr {pointer}, i64 {number}")


def _set_pending(s: Section, requests: ArrayPointer, flags: int) -> None:
    s.write(f"store i64 {flags}, ptr {_word(s, requests.pointer, 2)}")


@kernel("first_token")
def _first_token(call: KernelCall) -> None:
    """Compare numbers that stand for the messages of the program, in each communicator."""
    (token,), s = call.results, call.section
    for comm, (fixed, lengths) in call.options.get("programs", ()):
        call.params["comm"] = comm
        mpi = _Mpi(call)
        mine, greatest = call.function.slot("[2 x i64]", 8), call.function.slot("[2 x i64]", 8)
        number = str(fixed)
        for length in lengths:
            product = s.value(f"mul i64 {number}, {HASH_FACTOR}")
            total = s.value(f"add i64 {product}, {call.number(length)}")
            number = s.value(f"and i64 {total}, {HASH_MASK}")
        _store_pair(s, mine, number)
        mpi.run(
            "MPI_Allreduce",
            f"ptr {mine}",
            f"ptr {greatest}",
            "i32 2",
            mpi.handle("type.i8"),
            mpi.handle("op.MAX"),
            mpi.communicator(),
        )
        first = s.value(f"load i64, ptr {greatest}")
        second = s.value(f"load i64, ptr {_second(s, greatest)}")
        total = s.value(f"add i64 {first}, {second}")
        call.fail_if(s.value(f"icmp ne i64 {total}, 0"))
    s.write(f"store i16 0, ptr {token.pointer}")


def _store_pair(s: Section, pair: Name, number: Name) -> None:
    s.write(f"store i64 {number}, ptr {pair}")
    s.write(f"store i64 {s.value(f'sub i64 0, {number}')}, ptr {_second(s, pair)}")


def _second(s: Section, pair: Name) -> Name:
    return s.value(f"getelementptr i64, ptr {pair}, i64 1")


@kernel("tied", updates=lambda params: True)
def _tied(call: KernelCall) -> None:
    """The first operand, in its own memory if nothing else needs it."""
    copy_unless_same(call, call.section, call.results[0], call.operands[0])


@kernel("joined")
def _joined(call: KernelCall) -> None:
    """The token, once the operands have been computed."""
    call.section.write(f"store i16 0, ptr {call.results[0].pointer}")
