"""An emulated device: kernels run on the processor, thread by thread, in random order.

It needs no graphics card: the LLVM IR of kernels is compiled for this computer, and each thread is
a call. A kernel whose result depends on the order of its threads gives another result in each run.
Its arrays refuse, as those of CuPy do, to become NumPy arrays unasked; so an operation that would
need a copy to the host is found here as well.

    emulated_device   a block in which it is used
    EmulatedDevice    the device
    DeviceArray       its arrays
"""

from __future__ import annotations

import ctypes
import itertools
import math
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from time import perf_counter
from types import SimpleNamespace
from typing import Any

import numpy as np
import scipy  # scipy.linalg is loaded at first use
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.lib.stride_tricks import as_strided

from wengert._engine.core.device_arrays import MemoryInfo

from ..llvm.ir.execution_engine import Code, heading, object_of
from ..llvm.ir.ir_builder import ModuleBuilder
from .current_device import using
from .device import Launch
from .emulated_blocks import block_object, run_blocks
from .emulated_limits import EmulatedMemory, has_function, has_ufunc
from .kernel_codegen import DeviceKernel

_NUMBERS = {
    "b1": ctypes.c_int8,
    "i1": ctypes.c_int8,
    "i2": ctypes.c_int16,
    "i4": ctypes.c_int32,
    "i8": ctypes.c_int64,
    "u1": ctypes.c_uint8,
    "u2": ctypes.c_uint16,
    "u4": ctypes.c_uint32,
    "u8": ctypes.c_uint64,
    "f4": ctypes.c_float,
    "f8": ctypes.c_double,
}


class DeviceArray(NDArrayOperatorsMixin):
    """An array of an emulated device; `get` copies it to the host."""

    __slots__ = ("_host",)
    __array_priority__ = 100

    def __init__(self, host: Any) -> None:
        self._host = np.asarray(host)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """Its shape and dtype; the address is one of the host."""
        facts = self._host.__array_interface__
        return {k: facts[k] for k in ("shape", "typestr", "data", "strides", "version")}

    @property
    def data(self) -> Any:
        """Its memory, of which `ptr` is the address."""
        return SimpleNamespace(ptr=int(self._host.ctypes.data))

    def get(self) -> np.ndarray[Any, Any]:
        """A copy on the host."""
        return self._host.copy()

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise TypeError(
            "an array of a device is not converted to a NumPy array implicitly. Use its method get."
        )

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        out = kwargs.get("out")
        if out is not None:
            kwargs["out"] = tuple([_host(x) for x in out])
        if any(isinstance(x, np.ndarray) and x.ndim for x in inputs):
            return NotImplemented  # CuPy takes numbers of the host, but no arrays
        if any(getattr(x, "__array_priority__", 0) > self.__array_priority__ for x in inputs):
            return NotImplemented  # of another library, such as tensors
        if not has_ufunc(ufunc, method):
            raise NotImplementedError(f"CuPy has no {ufunc.__name__}.{method}")
        return _wrapped(getattr(ufunc, method)(*map(_host, inputs), **_hosted(kwargs)))

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if any(issubclass(t, np.ndarray) for t in types) or not has_function(function, kwargs):
            return NotImplemented
        return _wrapped(function(*_hosted(args), **_hosted(kwargs)))

    def __getattr__(self, name: str) -> Any:
        if name in ("shape", "dtype", "ndim", "size", "strides", "itemsize", "nbytes", "flags"):
            return getattr(self._host, name)
        if name in ("T", "mT", "real", "imag"):
            return DeviceArray(getattr(self._host, name))
        if name in _METHODS:
            method = getattr(self._host, name)
            return lambda *args, **kwargs: _wrapped(method(*_hosted(args), **_hosted(kwargs)))
        raise AttributeError(f"an array of a device has no attribute {name!r}")

    def __getitem__(self, index: Any) -> Any:
        return DeviceArray(self._host[_hosted(index)])

    def __setitem__(self, index: Any, value: Any) -> None:
        if isinstance(value, np.ndarray) and value.ndim:
            raise TypeError("a NumPy array is not copied to a device implicitly")
        self._host[_hosted(index)] = _host(value)

    def __len__(self) -> int:
        return len(self._host)

    def __iter__(self) -> Any:
        return iter([DeviceArray(x) for x in self._host])

    def __bool__(self) -> bool:
        return bool(self._host)

    def __int__(self) -> int:
        return int(self._host)

    def __index__(self) -> int:
        return int(self._host.__index__())

    def __float__(self) -> float:
        return float(self._host)

    def __complex__(self) -> complex:
        return complex(self._host)

    def __repr__(self) -> str:
        return f"DeviceArray({self._host!r})"


_METHODS = frozenset(
    "all any argmax argmin argsort astype clip conj conjugate copy cumprod cumsum diagonal dot "
    "fill flatten item max mean min nonzero prod ravel repeat reshape round searchsorted sort "
    "squeeze std sum swapaxes take tolist trace transpose var view".split()
)


def _host(x: Any) -> Any:
    return x._host if isinstance(x, DeviceArray) else x


def _hosted(x: Any) -> Any:
    """Containers with arrays of the host in place of those of the device."""
    if isinstance(x, tuple | list):
        return type(x)([_hosted(y) for y in x])
    if isinstance(x, dict):
        return {k: _hosted(y) for k, y in x.items()}
    return _host(x)


def _wrapped(x: Any) -> Any:
    if isinstance(x, np.ndarray | np.generic):
        return DeviceArray(x)
    if isinstance(x, tuple):
        parts = [_wrapped(y) for y in x]
        return type(x)(*parts) if hasattr(x, "_fields") else tuple(parts)
    return [_wrapped(y) for y in x] if isinstance(x, list) else x


class EmulatedDevice:
    """A device that is emulated by the processor.

    Parameters
    ----------
    threads : int
        The number of threads of a kernel, which run one after the other.
    seed : int
        Of the order in which they run.
    memory : int, optional
        The bytes for arrays of kernels and uploads.

    Attributes
    ----------
    block, blocks : int
        Of kernels whose threads work together.
    shared_bytes, most_shared_bytes : int
        So few that rows of some hundred elements do not fit.
    """

    name = "emulated"
    number = 0
    block, blocks, shared_bytes, most_shared_bytes = 64, 3, 8192, 10240

    def __init__(self, threads: int = 7, seed: int = 0, memory: int | None = None) -> None:
        self.threads = threads
        self._memory = EmulatedMemory(memory)
        self._order = np.random.default_rng(seed)

    def owns(self, x: Any) -> bool:
        """Whether an object is an array of this device."""
        return isinstance(x, DeviceArray)

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> DeviceArray:
        """A new array, filled with values that are not its own."""
        self._memory.check(math.prod(shape) * np.dtype(dtype).itemsize)
        made = np.empty(shape, dtype)
        self._memory.add(made)
        made.view(np.uint8 if made.ndim else dtype)[...] = 0xA5 if made.ndim else 1
        return DeviceArray(made)

    def put(self, x: Any) -> DeviceArray:
        """An array on the device."""
        if isinstance(x, DeviceArray):
            return x
        made = np.array(x, order="C")
        self._memory.check(made.nbytes)
        self._memory.add(made)
        return DeviceArray(made)

    def get(self, x: Any) -> np.ndarray[Any, Any]:
        """The values of an array on the host."""
        found: np.ndarray[Any, Any] = x.get()
        return found

    def address(self, x: DeviceArray) -> int:
        """The address of the first element of an array."""
        return int(x.data.ptr)

    def contiguous(self, x: DeviceArray) -> DeviceArray:
        """The array in C order."""
        return DeviceArray(np.ascontiguousarray(x._host)) if x.ndim else x

    def strided(
        self, x: DeviceArray, offset: int, shape: tuple[int, ...], strides: tuple[int, ...]
    ) -> DeviceArray:
        """A view of an array."""
        size = x.itemsize
        flat = x._host.reshape(-1)[offset:]
        return DeviceArray(as_strided(flat, shape, [n * size for n in strides]))

    def triangular_solution(
        self, a: DeviceArray, b: DeviceArray, lower: bool, trans: int, unit: bool
    ) -> DeviceArray:
        """x with op(a) @ x = b, by BLAS, which does not look for zeros on the diagonal."""
        x = np.empty(b.shape, b.dtype)
        trsm = scipy.linalg.get_blas_funcs("trsm", (a._host, b._host))
        for i in np.ndindex(*b.shape[:-2]):
            x[i] = trsm(1.0, a._host[i], b._host[i], lower=lower, trans_a=trans, diag=unit)
        return DeviceArray(x)

    def packed_factors(self, a: DeviceArray) -> tuple[DeviceArray, DeviceArray]:
        """The LU factors of one matrix, transposed, and LAPACK's pivots, counted from 1."""
        getrf = scipy.linalg.get_lapack_funcs("getrf", (a._host,))
        factors, pivots, _ = getrf(a._host)
        return DeviceArray(factors.T), DeviceArray(pivots.astype(np.int32) + np.int32(1))

    def place(self, x: DeviceArray) -> int:
        """The number of the device that an array is on."""
        return self.number

    def memory(self) -> MemoryInfo:
        """The memory of arrays of kernels and uploads."""
        return self._memory.info

    def mark(self) -> float:
        """The time."""
        return perf_counter()

    def seconds(self, marks: Sequence[float]) -> list[float]:
        """The seconds between marks."""
        return [b - a for a, b in itertools.pairwise(marks)]

    def wait(self) -> None:
        """Nothing: kernels have ended when they return."""

    def calling(self) -> AbstractContextManager[None]:
        """A block in which library functions raise errors as NumPy's do: they are NumPy's."""
        return nullcontext()

    def load(self, kernels: Sequence[DeviceKernel]) -> list[Launch]:
        """Kernels, compiled for the processor."""
        module = ModuleBuilder()
        alone = [kernel for kernel in kernels if not kernel.is_by_blocks]
        for kernel in alone:
            module.include(kernel.text)
        code = Code(object_of(module.text(heading())), {}) if alone else None
        whole = [(kernel.name, kernel.text) for kernel in kernels if kernel.is_by_blocks]
        blocks = Code(block_object(whole), {}) if whole else None
        return [
            self._launch_blocks(blocks, kernel)
            if kernel.is_by_blocks
            else self._launch(code, kernel)
            for kernel in kernels
        ]

    def _launch(self, code: Any, kernel: DeviceKernel) -> Launch:
        address = code.address(kernel.name)

        def launch(arguments: Sequence[Any], threads: int, shared_bytes: int = 0) -> None:
            assert code is not None  # keeps it in memory
            given = [x for a in arguments for x in _arguments(a)]
            kinds = [type(x) for x in given]
            function = ctypes.CFUNCTYPE(None, *kinds, ctypes.c_int64, ctypes.c_int64)(address)
            count = max(min(self.threads, threads), 1)
            for first in self._order.permutation(count):
                function(*given, int(first), count)

        return launch

    def _launch_blocks(self, code: Any, kernel: DeviceKernel) -> Launch:
        def launch(arguments: Sequence[Any], threads: int, shared_bytes: int = 0) -> None:
            given = [x for a in arguments for x in _arguments(a)]
            blocks = min(-(-threads // self.block), self.blocks)
            lanes = int(arguments[-3])  # of the numbers of a BlockLaunch
            shape = blocks, self.block, shared_bytes
            run_blocks(code, kernel.name, given, shape, lanes, self._order)

        return launch


def _arguments(x: Any) -> list[Any]:
    """An argument as C values."""
    if isinstance(x, DeviceArray):
        return [ctypes.c_void_p(x._host.ctypes.data)]
    if x.dtype.kind == "c":
        kind = _NUMBERS[f"f{x.dtype.itemsize // 2}"]
        return [kind(x.real), kind(x.imag)]
    if x.dtype == np.float16:
        x = x.view(np.uint16)
    return [_NUMBERS[x.dtype.str[1:]](x.item())]


@contextmanager
def emulated_device(
    threads: int = 7, seed: int = 0, memory: int | None = None
) -> Iterator[EmulatedDevice]:
    """A block in which ``backend="cuda"`` runs on the processor, without a graphics card.

    For tests and for teaching: a thread of a kernel is a call of a function, one after the other in
    random order. It takes far more time than ``backend="llvm"``.

    Parameters
    ----------
    threads : int
        The number of threads of a kernel.
    seed : int
        Of the order in which they run.
    memory : int, optional
        The bytes that it has for arrays, to test what happens when they do not suffice.

    Examples
    --------
    >>> import numpy as np, wengert as wg
    >>> from wengert.backends import emulated_device
    >>> f = wg.jit(lambda x: np.sum(np.sin(x) ** 2), backend="cuda")
    >>> with emulated_device():
    ...     y = f(np.linspace(0.0, 1.0, 5))
    ...     print(float(y))
    1.4637...
    """
    with using(EmulatedDevice(threads, seed, memory)) as device:
        yield device
