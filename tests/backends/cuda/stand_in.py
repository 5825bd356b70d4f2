"""A stand-in for the module cupy: its names that the backend uses, over NumPy.

Kernels are not run: what they are launched with is compared with the parameters of the PTX, and
recorded in `LAUNCHES`.
"""

import re
import types
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from numpy.lib.stride_tricks import as_strided

from wengert._engine.backends.cuda.device_emulation import DeviceArray

LAUNCHES = []
SHARED = []  # the shared memory of launches, in bytes
STREAM = 77  # the address of the current stream
_BYTES = {"b8": 1, "u8": 1, "b16": 2, "b32": 4, "f32": 4, "b64": 8, "f64": 8, "u64": 8, "u32": 4}
_ENTRY = re.compile(r"\.entry (\w+)\((.*?)\)", re.DOTALL)
_PARAMETER = re.compile(
    r"\.param\s+(?:\.align \d+ )?\.(\w+)(?:\s+\.ptr(?:\s+\.\w+)*(?:\s+\d+)?)?\s+\w+"
)


class CUDARuntimeError(RuntimeError):
    """As CuPy's."""


class Array(DeviceArray):
    """An array with the number of its card."""

    __slots__ = ("device",)

    def __init__(self, host, card=0):
        super().__init__(host)
        self.device = types.SimpleNamespace(id=card)


class Foreign:
    """An array of another library on a card, with DLPack only."""

    def __init__(self, values, card=0):
        self.shape, self.dtype, self.streams = values.shape, f"torch.{values.dtype}", []
        self._values, self._card = values, card

    def __dlpack_device__(self):
        return 2, self._card

    def __dlpack__(self, *, stream=None):
        self.streams.append(stream)
        return self._values, self._card


class Event:
    """An event, which counts what was recorded before it."""

    count = 0

    def record(self, stream):
        """Record in the current stream."""
        assert stream.ptr == STREAM
        Event.count += 1
        self.number = Event.count

    def synchronize(self):
        """Wait."""


class RawModule:
    """A module of kernels, read from PTX."""

    def __init__(self, path):
        self.parameters = {
            name: [_BYTES[kind] for kind in _PARAMETER.findall(listed)]
            for name, listed in _ENTRY.findall(Path(path).read_text())
        }

    def get_function(self, name):
        expected = self.parameters[name]

        def launch(grid, block, args, shared_mem=0):
            given = [8 if isinstance(x, DeviceArray) else x.dtype.itemsize for x in args]
            assert given == expected, (name, given, expected)
            assert all(0 < n < 2**31 for n in grid)
            assert 0 <= shared_mem <= getattr(launch, "max_dynamic_shared_size_bytes", 48 << 10)
            LAUNCHES.append((name, grid, block))
            SHARED.append(shared_mem)

        return launch


def from_dlpack(x):
    """An array of another library, which is given the current stream."""
    return Array(*x.__dlpack__(stream=STREAM))


def module(cards=1, capability=(9, 0)):
    """The stand-in, with a number of cards."""
    cupy = types.ModuleType("cupy")

    def get_device():
        if not cards:
            raise CUDARuntimeError("cudaErrorNoDevice: no CUDA-capable device is detected")
        return 0

    runtime = types.SimpleNamespace(
        CUDARuntimeError=CUDARuntimeError,
        getDevice=get_device,
        memGetInfo=lambda: (6 * 10**9, 8 * 10**9),
        getDeviceProperties=lambda number: {
            "major": capability[0],
            "minor": capability[1],
            "multiProcessorCount": 2,
            "sharedMemPerBlockOptin": 227 << 10,
        },
    )
    strided = lambda x, shape, strides: DeviceArray(as_strided(x.get(), shape, strides))  # noqa: E731
    vars(cupy).update(
        cuda=types.SimpleNamespace(
            runtime=runtime,
            Event=Event,
            get_elapsed_time=lambda a, b: 2.0 * (b.number - a.number),
            get_current_stream=lambda: types.SimpleNamespace(ptr=STREAM, synchronize=lambda: None),
        ),
        get_default_memory_pool=lambda: types.SimpleNamespace(
            used_bytes=lambda: 3 * 10**8, total_bytes=lambda: 5 * 10**8
        ),
        from_dlpack=from_dlpack,
        ndarray=DeviceArray,
        empty=lambda shape, dtype: Array(np.zeros(shape, dtype)),
        array=lambda x, order: Array(np.array(x, order=order)),
        asarray=lambda x: x if isinstance(x, DeviceArray) else Array(x),
        asnumpy=lambda x: x.get(),
        ascontiguousarray=lambda x: DeviceArray(np.ascontiguousarray(x.get())),
        lib=types.SimpleNamespace(stride_tricks=types.SimpleNamespace(as_strided=strided)),
        RawModule=RawModule,
    )
    return cupy


def cupyx():
    """The module cupyx, of which one function is used."""

    @contextmanager
    def errstate(linalg):
        assert linalg == "raise"
        yield

    found = types.ModuleType("cupyx")
    found.errstate = errstate
    return found
