"""A graphics card, by CuPy: memory, libraries, and the kernels that it is given as PTX.

    CupyDevice     a card
    cupy_device    the current card of CuPy, or an error that says what is missing

CuPy is imported when a device is used. Its linear algebra is asked to raise errors for singular
matrices, as NumPy does, which it does not by default.
"""

from __future__ import annotations

import functools
import itertools
import os
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from wengert._engine.core.device_arrays import MemoryInfo, is_on_device
from wengert._engine.core.thread_state import lock
from wengert.errors import BackendError, at, user_line

from .device import Launch
from .kernel_codegen import DeviceKernel
from .ptx import ptx_of

_BLOCK = 256  # threads of a block
_BLOCKS = 8  # blocks for each multiprocessor
_INSTALL = "Install it for the CUDA version of your driver: pip install 'wengert[cuda]'"
_DEVICES: dict[tuple[int, int], CupyDevice] = {}
_LOCK = lock()


class CupyDevice:
    """A graphics card.

    Parameters
    ----------
    cupy : module
    number : int
        The number of the card.
    """

    name = "cuda"
    block = _BLOCK
    shared_bytes = 48 << 10  # what a block has unasked

    def __init__(self, cupy: Any, number: int) -> None:
        self._cupy, self.number, self._process = cupy, number, os.getpid()
        facts = cupy.cuda.runtime.getDeviceProperties(number)
        self.capability = 10 * int(facts["major"]) + int(facts["minor"])
        self.blocks = _BLOCKS * int(facts["multiProcessorCount"])
        self.threads = _BLOCK * self.blocks
        self.most_shared_bytes = int(facts.get("sharedMemPerBlockOptin", self.shared_bytes))

    def owns(self, x: Any) -> bool:
        """Whether an object is an array of CuPy."""
        return isinstance(x, self._cupy.ndarray)

    def empty(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
        """A new array in C order, from CuPy's memory pool."""
        return self._cupy.empty(shape, dtype)

    def put(self, x: Any) -> Any:
        """An array on the card; one of another library that is there is not copied."""
        self._check_process()
        if self.owns(x):
            return x
        if is_on_device(x):
            # DLPack makes the current stream wait for the array.
            has_dlpack = hasattr(x, "__dlpack__")
            return self._cupy.from_dlpack(x) if has_dlpack else self._cupy.asarray(x)
        return self._cupy.array(x, order="C")

    def get(self, x: Any) -> np.ndarray[Any, Any]:
        """The values of an array on the host, when they have been computed."""
        self._check_process()
        found: np.ndarray[Any, Any] = self._cupy.asnumpy(x)
        return found

    def _check_process(self) -> None:
        """Raise in a process that was forked after its parent had used the card."""
        if os.getpid() != self._process:
            raise _forked()

    def address(self, x: Any) -> int:
        """The address of the first element of an array."""
        return int(x.data.ptr)

    def contiguous(self, x: Any) -> Any:
        """The array in C order."""
        return self._cupy.ascontiguousarray(x) if x.ndim else x

    def strided(self, x: Any, offset: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> Any:
        """A view of an array."""
        flat = x.reshape(-1)[offset:]
        size = x.dtype.itemsize
        return self._cupy.lib.stride_tricks.as_strided(flat, shape, [n * size for n in strides])

    def triangular_solution(self, a: Any, b: Any, lower: bool, trans: int, unit: bool) -> Any:
        """x with op(a) @ x = b, by cuBLAS: one call for a batch."""
        run = import_module("cupyx.scipy.linalg").solve_triangular
        return run(a, b, trans=trans, lower=lower, unit_diagonal=unit)

    def packed_factors(self, a: Any) -> tuple[Any, Any]:
        """The LU factors of one matrix, transposed, and LAPACK's pivots, counted from 1."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a singular matrix is an error where it is used
            run = import_module("cupyx.scipy.linalg").lu_factor
            factors, pivots = run(a, check_finite=False)
        return factors.T, pivots + 1

    def place(self, x: Any) -> int:
        """The number of the card that an array is on."""
        return int(x.device.id)

    def memory(self) -> MemoryInfo:
        """The memory of the card, and of CuPy's pool."""
        pool = self._cupy.get_default_memory_pool()
        free, total = self._cupy.cuda.runtime.memGetInfo()
        used, reserved = int(pool.used_bytes()), int(pool.total_bytes())
        return MemoryInfo(used, reserved, int(free) + reserved - used, int(total))

    def mark(self) -> Any:
        """An event in the current stream."""
        event = self._cupy.cuda.Event()
        event.record(self._cupy.cuda.get_current_stream())
        return event

    def seconds(self, marks: Sequence[Any]) -> list[float]:
        """The seconds between consecutive events."""
        marks[-1].synchronize()
        elapsed = self._cupy.cuda.get_elapsed_time
        return [float(elapsed(a, b)) * 1e-3 for a, b in itertools.pairwise(marks)]

    def wait(self) -> None:
        """Wait for the current stream."""
        self._cupy.cuda.get_current_stream().synchronize()

    @contextmanager
    def calling(self) -> Iterator[None]:
        """A block in which library functions raise errors as NumPy's do."""
        with import_module("cupyx").errstate(linalg="raise"):
            yield

    def load(self, kernels: Sequence[DeviceKernel]) -> list[Launch]:
        """Kernels, compiled by the driver, which keeps them on disk."""
        if not kernels:
            return []
        with tempfile.TemporaryDirectory(prefix="wengert-ptx-") as folder:
            path = Path(folder, "kernels.ptx")
            path.write_text(ptx_of(kernels, self.capability))
            module = self._cupy.RawModule(path=str(path))
            functions = [module.get_function(kernel.name) for kernel in kernels]
        return [functools.partial(self._launch, f) for f in functions]

    def _launch(
        self, function: Any, arguments: Sequence[Any], threads: int, shared_bytes: int = 0
    ) -> None:
        blocks = min(-(-threads // _BLOCK), self.blocks)
        given = [x for a in arguments for x in _arguments(a)]
        if shared_bytes > self.shared_bytes:  # CUDA wants to be asked for more
            function.max_dynamic_shared_size_bytes = shared_bytes
        function((blocks,), (_BLOCK,), tuple(given), shared_mem=shared_bytes)


def _arguments(x: Any) -> list[Any]:
    """An argument as CuPy passes it; a complex number is two numbers."""
    if isinstance(x, np.complexfloating):
        return [x.real, x.imag]
    return [x]


def _forked() -> BackendError:
    return BackendError(
        "this process was forked from one that had used the graphics card, which CUDA does not "
        f"support. Start processes with multiprocessing.get_context('spawn'){at(user_line())}."
    )


def cupy_device() -> CupyDevice:
    """The current card of CuPy.

    Raises
    ------
    BackendError
        CuPy is not installed, or there is no card or no driver; or this process was forked after
        its parent had used the card.
    """
    try:
        cupy = import_module("cupy")
    except ImportError as error:
        raise BackendError(
            f"backend='cuda' needs CuPy, which is not installed ({error}). {_INSTALL}"
            f"{at(user_line())}."
        ) from error
    try:
        number = int(cupy.cuda.runtime.getDevice())
        key = os.getpid(), number
        with _LOCK:
            if any(process != key[0] for process, _ in _DEVICES):
                raise _forked()
            if key not in _DEVICES:
                _DEVICES[key] = CupyDevice(cupy, number)
            return _DEVICES[key]
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise BackendError(
            f"backend='cuda' found no graphics card that it can use ({error}). Check the driver "
            f"with nvidia-smi, or use backend='llvm'{at(user_line())}."
        ) from error
