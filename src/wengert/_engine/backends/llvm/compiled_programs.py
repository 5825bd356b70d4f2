"""Compiled programs: on disk, for other processes, and as machine code with an entry for Python.

With cached object files only, half of a first call would be spent on scheduling and generating the
LLVM IR.  So the properties of a program that its callers need are cached as well, by the
fingerprint of its graph (program_fingerprint.py): ports, slots, constants, the names of external
functions, and the keys of the object files.  For anything else the program is made again.

The key contains everything that a program depends on: the graph, the options, the thresholds
(tuning.py), the processor, the versions of Python, NumPy, SciPy and LLVM, and the modification
times of wengert's sources.

Simplification is a half of what remains of a first call.  So the program of a simplified graph is
cached by the fingerprint of the traced graph that it was simplified from (`BaseGraph.cache_key`),
unless there are host callbacks, which need nodes of the simplified graph: then the record says
only that.

    LoadedProgram      a program in memory: runs the kernel with values of inputs and variables
    entry_of           a built-in function that calls it
    program_of         the program of a graph, from the disk if possible
    object_files_of    its object files, and the program that they belong to
    traced_key         the key of the program of a graph before simplification
    has_program        whether there is a record for such a key
    CachedProgram      a program read from the disk
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import marshal
import math
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert._engine.cache import disk_cache
from wengert._engine.cache.disk_cache import library_sources
from wengert._engine.core.graph import BaseGraph
from wengert._engine.core.graph_classes import result_specs
from wengert._engine.core.lazy_import import LazyModule
from wengert._engine.core.node import Node
from wengert._engine.core.spec import Spec
from wengert._engine.core.symbolic.dim import replaced
from wengert.errors import CommunicationError, at, user_line

from . import tuning
from .abi import is_available, make_entry
from .abi.guarded_entries import layout_of
from .abi.ports import Port, sends_messages
from .cache import cached_object, compiler_fingerprint, key_of, read_object
from .codegen.host_callbacks import LISTENED, RAISED, HostCallbacks, lengths_of
from .codegen.host_callbacks import address_of as listened_at
from .ir import execution_engine
from .ir.index_analysis import size_of
from .ir.object_symbols import symbols_of
from .program_fingerprint import fingerprint_of, repeated_element, traced_fingerprint_of
from .runtime import runtime_library
from .tuning import thresholds

if TYPE_CHECKING:
    from wengert._engine.core.types import Array, Operand

    from . import program as programs
    from .kernels import index
    from .program import Program
    from .runtime import library_symbols
else:  # not needed for a cached program
    programs = LazyModule("wengert._engine.backends.llvm.program")
    index = LazyModule("wengert._engine.backends.llvm.kernels.index")
    library_symbols = LazyModule("wengert._engine.backends.llvm.runtime.library_symbols")

# ---- programs on disk ----------------------------------------------------------------------------

_KEY = 32  # bytes
# Names of `HOMES` in kernels/index.py, which is imported if a program needs one.
_SHARED = tuple(f"wengert_{x}" for x in ("gemm", "stream", "complex_solve", "lu", "quadpack"))
_CALLED_BACK = b"host callbacks"  # a record: the program is cached by the simplified graph


class CachedProgram:
    """A program read from the disk; other attributes of `Program` make the full program.

    Attributes
    ----------
    inputs, outputs, sizes, size_slots, slots, constants, counts, overwritten, requirements
    is_single, cannot_fail, calls_special_functions, nesting, symbols, callbacks, host_callbacks
        As in `Program`.
    keys : list of bytes
        The keys of the object files.
    """

    def __init__(
        self,
        record: tuple[Any, ...],
        graph: BaseGraph,
        options: tuple[Any, ...],
        nodes: Sequence[Node],
    ) -> None:
        own, inputs, outputs, constants, names, callbacks, self.keys = record
        self.slots, self.counts, overwritten, self.is_single, self.cannot_fail = own[:5]
        self.calls_special_functions, self.nesting = own[5:]
        self.counts, self.overwritten = list(self.counts), dict(overwritten)
        self.inputs, self.outputs = (tuple(map(_port, x)) for x in (inputs, outputs))
        self.constants = [
            (slot, _constant(np.dtype(dtype), shape, x)) for slot, dtype, shape, x in constants
        ]
        self.symbols = addresses_of(names)
        self.sizes: tuple[str, ...] = ()
        self.size_slots: tuple[int, ...] = ()
        self.requirements: Any = ()
        slot, places = callbacks
        if min(places, default=0) < 0:
            raise ValueError("a host callback has no number")
        self.host_callbacks = [nodes[k] for k in places]
        self.callbacks = HostCallbacks(graph.nodes if places else (), (), (), self.host_callbacks)
        if places:
            self.constants.append((slot, self.callbacks.pointer))
        self._graph, self._options = weakref.ref(graph), options

    def is_of(self, graph: BaseGraph) -> bool:
        """Whether the inputs and results have the dtypes and shapes of those of a graph."""
        fed = [*graph.inputs, *graph.variables]
        results: list[Any] = []
        for spec in (*result_specs(graph), *[n.spec for n in graph.updates.values()]):
            results += spec if isinstance(spec, tuple) else [spec]
        slots = [port.slot for port in (*self.inputs, *self.outputs)]
        slots += [slot for slot, _ in self.constants]
        return (
            [n.spec for n in fed] == [port.spec for port in self.inputs]
            and results == [port.spec for port in self.outputs]
            and all(type(k) is int and 0 <= k < self.slots for k in slots)
            and all(type(k) is bytes and len(k) == _KEY for k in self.keys)
            and bool(self.keys)
        )

    @functools.cached_property
    def made(self) -> Program:
        """The full program, made again."""
        graph = self._graph()
        assert graph is not None, "the graph of this program no longer exists"
        return programs.Program(graph, *self._options)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.made, name)


def program_of(
    graph: BaseGraph, threads: int | None, layouts: str = "", overwrites: bool = False
) -> Program | CachedProgram:
    """The program of a graph: from the disk, or a new one, which is written to the disk."""
    options = threads, layouts, overwrites
    if not disk_cache.enabled():
        return programs.Program(graph, *options)
    if graph.cache_key is None:
        return _by_graph(graph, options)
    key = _with_options(graph.cache_key, options)
    found = disk_cache.read(key)
    if found == _CALLED_BACK:
        return _by_graph(graph, options)
    cached = None if found is None else _cached(found, graph, options, ())
    if cached is not None:
        return cached
    made = programs.Program(graph, *options)
    if made.host_callbacks:
        disk_cache.write(key, _CALLED_BACK)
        return _by_graph(graph, options, made)
    record = _record(made, ())
    if record is not None:
        disk_cache.write(key, record)
    return made


def _by_graph(
    graph: BaseGraph, options: tuple[Any, ...], made: Program | None = None
) -> Program | CachedProgram:
    """The program of a graph, by its own fingerprint; `made` is written if there is none."""
    nodes: list[Node] = []
    sources, content = library_sources(), fingerprint_of(graph, nodes)
    if sources is None or content is None:
        return made or programs.Program(graph, *options)
    key = _with_options(_key(b"program", sources, content), options)
    found = None if made is not None else disk_cache.read(key)
    if found is not None:
        cached = _cached(found, graph, options, nodes)
        if cached is not None:
            return cached
    made = made or programs.Program(graph, *options)
    record = _record(made, nodes)
    if record is not None:
        disk_cache.write(key, record)
    return made


def traced_key(graph: BaseGraph) -> bytes | None:
    """The key of a graph before simplification; None if its program is not cached by it."""
    if not disk_cache.enabled():
        return None
    sources = library_sources()
    content = None if sources is None else traced_fingerprint_of(graph)
    if sources is None or content is None:
        return None
    return _key(b"traced", sources, content)


def has_program(key: bytes, threads: int | None) -> bool:
    """Whether there is a record for the key of a graph before simplification."""
    found = disk_cache.read(_with_options(key, (threads, "", False)))
    return found is not None and found != _CALLED_BACK


def object_files_of(
    program: Program | CachedProgram,
) -> tuple[list[bytes], Program | CachedProgram]:
    """The object files of a program, and the program; it is made again if a file is missing."""
    if isinstance(program, CachedProgram):
        found = [read_object(key) for key in program.keys]
        images = [x for x in found if x is not None]
        if len(images) == len(found) and any("kernel" in symbols_of(x)[0] for x in images):
            return images, program
        program = program.made
    return [cached_object(text, quick) for text, quick in program.modules], program


def _cached(
    found: bytes, graph: BaseGraph, options: tuple[Any, ...], nodes: Sequence[Node]
) -> CachedProgram | None:
    """The program of a record; None if it cannot belong to this graph.

    The checksum of a file only detects accidental damage, so the content is checked here.
    """
    try:
        cached = CachedProgram(marshal.loads(found), graph, options, nodes)
        return cached if cached.is_of(graph) else None
    except Exception:  # damaged, or an external function is missing
        return None


# ---- the key -----------------------------------------------------------------------------------


def _key(kind: bytes, sources: bytes, content: bytes) -> bytes:
    made = hashlib.sha256(kind)
    for part in (sources, compiler_fingerprint(), content):
        made.update(hashlib.sha256(part).digest())
    return made.digest()


def _with_options(key: bytes, options: tuple[Any, ...]) -> bytes:
    tuned = tuning.key()  # thresholds may have changed since the graph was traced
    return hashlib.sha256(key + repr((options, tuned)).encode()).digest()


# ---- the record on disk ------------------------------------------------------------------------


def _record(program: Program, nodes: Sequence[Node]) -> bytes | None:
    """The record of a program; None if it depends on this process."""
    names = sorted(program.symbols)
    callbacks = _callback_record(program, nodes)
    kept = [(k, a) for k, a in program.constants if a is not program.callbacks.pointer]
    arrays = [array for _, array in kept]
    repeated = [repeated_element(a) for a in arrays]
    if (
        callbacks is None
        or program.sizes
        or program.requirements
        or sum(a.nbytes for a, element in zip(arrays, repeated, strict=True) if element is None)
        > thresholds.cached_constant_bytes
        or any(a.dtype.kind not in "biufc" for a in arrays)
    ):
        return None
    try:
        if addresses_of(names) != program.symbols:
            return None
    except (KeyError, OSError):
        return None
    own = (
        *(program.slots, tuple(program.counts), tuple(program.overwritten.items())),
        *(program.is_single, program.cannot_fail, program.calls_special_functions, program.nesting),
    )
    constants = [
        (k, a.dtype.str, a.shape, np.ascontiguousarray(a).tobytes() if element is None else element)
        for (k, a), element in zip(kept, repeated, strict=True)
    ]
    keys = [key_of(text, quick) for text, quick in program.modules]
    ports = [[_port_record(p) for p in group] for group in (program.inputs, program.outputs)]
    return marshal.dumps((own, *ports, constants, names, callbacks, keys), 2)


def _callback_record(program: Program, nodes: Sequence[Node]) -> tuple[int, tuple[int, ...]] | None:
    """The slot of the host callbacks, and which nodes are called back; None if not known."""
    if not program.host_callbacks:
        return -1, ()
    places = {node: k for k, node in enumerate(nodes)}
    found = [places.get(node, -1) for node in program.host_callbacks]
    # Several lengths are passed in the order of their names, which are of this process.
    if min(found) < 0 or any(len(lengths_of(node)) > 1 for node in program.host_callbacks):
        return None
    return program.callback_slot(), tuple(found)


def _constant(dtype: np.dtype[Any], shape: tuple[int, ...], data: bytes) -> np.ndarray[Any, Any]:
    """An array of its bytes, or of those of an element that is repeated."""
    found = np.frombuffer(data, dtype)
    if found.size == 1 < math.prod(shape):
        return np.full(shape, found[0])
    return found.reshape(shape)


def _port_record(port: Port) -> tuple[Any, ...]:
    spec = port.spec
    return spec.shape, spec.dtype.str, spec.weak, port.slot, port.strided, port.fortran


def _port(record: tuple[Any, ...]) -> Port:
    shape, dtype, weak, slot, strided, fortran = record
    return Port(Spec(tuple(shape), np.dtype(dtype), weak), slot, strided, fortran)


def addresses_of(names: list[str]) -> dict[str, int]:
    """The addresses of external functions in this process; KeyError if a symbol is unknown."""
    found: dict[str, int] = {}
    for name in names:
        if name.startswith("wengert_blas_"):
            found[name] = library_symbols.blas_symbols()[name]
        elif name.startswith(_SHARED):
            found[name] = index.address_of(name)
        elif name.startswith("wengert_"):
            found[name] = runtime_library.symbols()[name]
        elif name in LISTENED:
            found[name] = listened_at(name)
        else:
            found[name] = library_symbols.address_of(name)
    return found


# ---- programs in memory --------------------------------------------------------------------------


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

    memory = runtime_library.handler() if _may_be_large(program) else None
    slow = miss, failed, callback_error
    return make_entry(program, compiled.code, *slow, handler=memory, gate=gate, symbol=symbol)


def _may_be_large(program: Program | CachedProgram) -> bool:
    sizes = [size_of(p.spec.shape) * p.spec.dtype.itemsize for p in program.outputs]
    return any(type(n) is not int or n >= thresholds.pooled_result_bytes for n in sizes)
