"""Memory between inaccessible pages, to find accesses outside of an array.

    Guarded     places arrays so that their last byte, or their first, is beside such a page
    guarded     the program of a graph, whose own memory is guarded as well

A read or write outside kills the process, so this runs in one of its own: as a script it runs the
random bundles of some seeds (test_guard_pages.py).  Memory that a program asks for is filled with
ones, which as floating-point numbers are no numbers: what it reads and has not written shows.
"""

import ctypes
import faulthandler
import functools
import mmap
import sys

import numpy as np

import wengert as wg
from wengert._engine.backends.llvm import program, tuning
from wengert._engine.backends.llvm.ir import execution_engine
from wengert._engine.core.symbolic.dim import replaced

from .random_programs import Bundle, differing, is_differentiable, laid

PAGE = mmap.PAGESIZE
_LIBC = ctypes.CDLL(None)
_ALLOC = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_int64)
_FREE = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Guarded:
    """Arrays and blocks, each between two pages without access.

    Parameters
    ----------
    at_end : bool
        Whether the last byte is beside a page, or the first.
    """

    def __init__(self, at_end):
        self.at_end = at_end
        self._maps, self._blocks = [], {}
        self.asked = 0
        self._calls = _ALLOC(self._alloc), _FREE(self._free)

    def room(self, size, align, fill=0xFF):
        """The address of so many bytes, and what keeps them."""
        pages = -(-max(size, 1) // PAGE)
        made = mmap.mmap(-1, (pages + 2) * PAGE)
        first = ctypes.addressof(ctypes.c_char.from_buffer(made))
        ctypes.memset(first, fill, (pages + 2) * PAGE)
        inside = first + PAGE
        address = inside + ((pages * PAGE - size) // align * align if self.at_end else 0)
        for guard in (first, inside + pages * PAGE):
            if _LIBC.mprotect(ctypes.c_void_p(guard), PAGE, 0):
                raise OSError("mprotect")
        return address, (made, first, pages)

    def place(self, array):
        """The address of a copy; an array of this address, to be read later."""
        array = np.ascontiguousarray(array).reshape(np.shape(array))
        part = array.dtype.itemsize // 2 if array.dtype.kind == "c" else array.dtype.itemsize
        address, held = self.room(array.nbytes, part)
        self._maps.append(held)
        ctypes.memmove(address, array.ctypes.data, array.nbytes)
        return address

    def array(self, address, shape, dtype):
        """What lies at an address."""
        size = int(np.prod(shape)) * dtype.itemsize
        return np.frombuffer(ctypes.string_at(address, size), dtype).reshape(shape)

    def _alloc(self, size):
        address, held = self.room(size, 64)
        self._blocks[address] = held
        self.asked += 1
        return address

    def _free(self, address):
        if address:
            self._blocks.pop(address)  # what is freed twice is not there

    @property
    def symbols(self):
        """What a program calls instead of wengert's own memory."""
        names = ("wengert_alloc", "wengert_free")
        return {
            name: ctypes.cast(call, ctypes.c_void_p).value
            for name, call in zip(names, self._calls, strict=True)
        }

    def close(self):
        """Nothing that was asked for may be left."""
        left = len(self._blocks)
        self._maps.clear()
        assert left == 0, f"{left} blocks were not given back"


object_of = functools.lru_cache(4)(
    execution_engine.object_of
)  # the same code serves both ends of pages


class guarded:
    """The program of a graph, with memory of its own that is guarded."""

    def __init__(self, graph, at_end, layouts="", threads=1, memory=None):
        self.program = program.Program(graph, threads, layouts)
        self.memory = memory or Guarded(at_end)
        image = object_of(self.program.text)
        own = self.program.symbols
        instead = {k: v for k, v in self.memory.symbols.items() if k in own}
        self.code = execution_engine.Code(image, {**own, **instead})
        self._kernel = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(
            self.code.address("kernel")
        )

    def __call__(self, values, sizes):
        """The results; None where there are none."""
        made, memory = self.program, self.memory
        frame = np.zeros(max(made.slots, 1), np.int64)
        rng = np.random.default_rng(0)
        for value, port in zip(values, made.inputs, strict=True):
            layout = "S" if port.strided else "F" if port.fortran else "C"
            view, base = laid(np.asarray(value, port.spec.dtype), layout, rng)
            begin = memory.place(base)
            frame[port.slot] = begin + view.ctypes.data - base.ctypes.data if view.size else begin
            if port.strided:
                frame[port.slot + 1 : port.slot + 1 + view.ndim] = view.strides
        for name, slot in zip(made.sizes, made.size_slots, strict=True):
            frame[slot] = sizes[name]
        results = []
        for port in made.outputs:
            shape = tuple(replaced(n, sizes) for n in port.spec.shape)
            frame[port.slot] = memory.place(np.full(shape, 0, port.spec.dtype))
            results.append((int(frame[port.slot]), shape, port.spec.dtype))
        for slot, array in made.constants:
            is_called_back = array is made.callbacks.pointer
            frame[slot] = array.ctypes.data if is_called_back else memory.place(array)
        status = self._kernel(memory.place(frame))
        found = [memory.array(*r) for r in results]
        memory.close()
        return None if status else found


def without_stack():
    """All memory between loops is asked for, so that it is guarded too."""
    tuning.install({"workspace_stack_bytes": -1, "row_stack_bytes": -1})


def check(bundle, function, factor, eps, differing):
    """Run a function of a bundle at both ends of pages."""
    graph = wg.trace(function)(*bundle.specs)
    for world in bundle.worlds:
        try:
            with np.errstate(all="ignore"):
                wanted = graph(*world)
        except wg.errors.ShapeError as error:  # a diagonal, of rows no longer than columns
            assert "is not valid for" in str(error)
            continue
        for at_end in (True, False):
            layouts = bundle.layouts() if bundle.seed % 3 == 0 else ""
            found = guarded(graph, at_end, layouts)(world, bundle.sizes(world))
            assert found is not None, f"no result\n{bundle}"
            bad = differing(found, wanted, eps, factor)
            assert not bad, f"{bad}\n{bundle}"


def touch(how):
    """Do what must not be done, to see that it is found."""
    address = Guarded(at_end=how != "before").place(np.zeros(3))
    if how == "before":
        ctypes.string_at(address - 1, 1)
    elif how == "read":
        ctypes.string_at(address + 24, 1)
    else:
        ctypes.memset(address + 24, 0, 1)


def main(first, last=0, *what):
    faulthandler.enable()
    if not first.isdigit():
        touch(first)
        return
    for k, seed in enumerate(range(int(first), int(last))):
        bundle = Bundle(seed, named=seed % 3 == 2)
        if k % 2:
            without_stack()
        print(seed, flush=True)
        if "values" in what:
            check(bundle, bundle.values, 1, bundle.eps, differing)
        if "gradient" in what and is_differentiable(bundle):
            check(bundle, bundle.gradient, 50, bundle.coarse, differing)


if __name__ == "__main__":
    main(*sys.argv[1:])
