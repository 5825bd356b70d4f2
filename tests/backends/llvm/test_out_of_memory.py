"""Out of memory for what a program allocates itself: no crash, no leak, no wrong number.

The k-th time that it asks it gets none, for every k.  Such a run ends with a status, and then the
interpreter says what is the matter, or goes on in a way that needs less.
"""

import errno
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import wengert as wg
from wengert._engine.backends.llvm.ir import execution_engine

from .guard_pages import Guarded, guarded


class Scarce(Guarded):
    """Memory of which the k-th block is not there."""

    def __init__(self, missing):
        super().__init__(at_end=True)
        self.missing = missing

    def _alloc(self, size):
        self.asked += 1
        if self.asked == self.missing + 1:
            return None
        self.asked -= 1
        return super()._alloc(size)


def softmax(x):
    e = np.exp(x - np.max(x, axis=1, keepdims=True))
    return e / np.sum(e, axis=1, keepdims=True)


FUNCTIONS = {
    "kept between stages": (lambda x: np.cumsum(np.exp(x), axis=0) @ np.ones((90, 90)), (90, 90)),
    "rows": (softmax, (3, 70_000)),
    "rows of several threads": (softmax, (40, 9_000)),
    "parts": (lambda x: (np.sum(np.exp(x)), np.max(np.sin(x))), (300_000,)),
    "sorted": (lambda x: np.sort(np.exp(x), axis=0) + np.sum(x), (500, 40)),
    "solved": (lambda x: np.linalg.solve(x @ x.T + np.eye(90), x), (90, 90)),
}


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_memory_that_is_not_there(name, rng):
    f, shape = FUNCTIONS[name]
    x = rng.normal(size=shape)
    graph = wg.trace(f)(x)
    wanted = graph(x)
    wanted = wanted if isinstance(wanted, tuple) else (wanted,)
    for missing in range(40):
        memory = Scarce(missing)
        found = guarded(graph, True, threads=2, memory=memory)([x], {})
        if memory.asked <= missing:
            break
        if found is not None:
            for a, b in zip(found, wanted, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)
    assert memory.asked == missing > 0, "it asks for none, or never ends to ask"
    assert found is not None


NO_MAPPINGS = """
import ctypes, itertools
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import wengert as wg

def compiled(k):
    return wg.jit(lambda x: np.sum(np.sin(x * k) * x))

x = np.linspace(0.0, 1.0, 5)
compiled(1.0)(x)
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
places = []
for k in itertools.count():  # neighbors of different protection, until there are no more
    place = libc.mmap(None, 4096, 1 + 2 * (k % 2), 0x22, -1, 0)
    if place in (None, 2**64 - 1):
        break
    places.append(place)
try:
    compiled(2.0)(x)
except MemoryError as error:
    print("refused", "max_map_count" in str(error))
for place in places:
    libc.munmap(ctypes.c_void_p(place), ctypes.c_size_t(4096))
print(np.isclose(compiled(3.0)(x), np.sum(np.sin(x * 3.0) * x)))
"""


def test_memory_for_machine_code_that_is_not_there_is_an_error(monkeypatch):
    def refuse(*args):
        raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))

    with monkeypatch.context() as patch:
        patch.setattr(execution_engine.mmap, "mmap", refuse)
        with pytest.raises(MemoryError, match="max_map_count"):
            wg.jit(lambda x: np.sum(x * 2.125))(np.ones(3))
    assert wg.jit(lambda x: np.sum(x * 2.125))(np.ones(3)) == 6.375


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="maps memory as Linux does")
def test_without_mappings_for_machine_code_there_is_an_error() -> None:
    """LLVM itself would end the process."""
    limit = int(Path("/proc/sys/vm/max_map_count").read_text())
    if limit > 1 << 17:
        pytest.skip(f"{limit} mappings take too long to make")
    done = subprocess.run(
        [sys.executable, "-c", NO_MAPPINGS],
        env={**os.environ, "WENGERT_CACHE": "0"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.split() == ["refused", "True", "True"], done.stderr
