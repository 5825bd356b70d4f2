"""C written by hand, compiled when first asked for.

A source of benchmarks/c is written for a type REAL and compiled for float64 or float32 with the
flags below: those of a programmer who wants speed and knows that no NaN comes.  Linked without
-ffast-math, because that would change the arithmetic of the whole process.  Compiled files are
kept by content in the folder for temporary files.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import shutil
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .case import Cannot
from .environment import SCRATCH, threads

SOURCES = Path(__file__).resolve().parent.parent / "c"
FLAGS = "-O3 -march=native -ffast-math -fopenmp-simd -fPIC -Wall -Werror".split()
STRICT = "-O3 -march=native -fPIC -Wall -Werror".split()  # rounds as the source says
LONGEST, MOST = 40, 10_000_000  # seconds and characters for generated C
REAL = {"float64": "double", "float32": "float"}


class NoCompiler(Exception):
    """There is no gcc."""


def library(name: str, dtype: str = "float64", flags: Sequence[str] = FLAGS) -> ctypes.CDLL:
    """Compile benchmarks/c/<name>.c for a dtype and load it."""
    gcc = shutil.which("gcc")
    if gcc is None:
        raise NoCompiler("gcc")
    source = SOURCES / f"{name}.c"
    openmp = ["-fopenmp"] if threads() > 1 else []
    flags = [*flags, *openmp, f"-DREAL={REAL[dtype]}"]
    key = hashlib.sha256(source.read_bytes() + " ".join(flags).encode()).hexdigest()[:16]
    target = SCRATCH / "c" / f"{name}-{key}.so"
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        objects = target.with_suffix(".o")
        subprocess.run([gcc, *flags, "-c", str(source), "-o", str(objects)], check=True)
        linked = target.with_suffix(".linking")
        subprocess.run(
            [gcc, "-shared", *openmp, str(objects), "-o", str(linked), "-lmvec", "-lm"], check=True
        )
        linked.rename(target)
    return ctypes.CDLL(str(target))


def generated(source: str) -> Path:
    """Compile C that a library has written, and return the file to load.

    ``Cannot`` if gcc needs longer than LONGEST, as it does for one long function without loops, or
    if there is more than MOST of it.
    """
    if len(source) > MOST:
        raise Cannot(f"gcc -O3 is not given {len(source) / 1e6:.0f} MB of C")
    gcc = shutil.which("gcc")
    if gcc is None:
        raise NoCompiler("gcc")
    key = hashlib.sha256(source.encode()).hexdigest()[:16]
    target = SCRATCH / "generated" / f"{key}.so"
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        written, linked = target.with_suffix(".c"), target.with_suffix(".linking")
        written.write_text(source)
        flags = "-O3 -march=native -fPIC -shared".split()
        command = [gcc, *flags, str(written), "-o", str(linked), "-lm"]
        # gcc starts the compiler proper, which may outlive it, so the whole group is ended; a limit
        # of processor time (ulimit -t) is not enforced on every system.
        memory = f'ulimit -v {4 * 1024 * 1024}; exec "$@"'
        running = subprocess.Popen(
            ["sh", "-c", memory, "sh", *command], stderr=subprocess.DEVNULL, start_new_session=True
        )
        try:
            running.wait(LONGEST)
        except subprocess.TimeoutExpired:
            os.killpg(running.pid, signal.SIGKILL)
            running.wait()
        if running.returncode:
            size = len(source) / 1e6
            raise Cannot(f"gcc -O3 gives nothing for {size:.1f} MB of C in {LONGEST} s and 4 GB")
        linked.rename(target)
    return target


def address(array: np.ndarray[Any, Any]) -> ctypes.c_void_p:
    """Return the address of an array's data, which keeps the array alive."""
    assert array.flags.c_contiguous
    pointer = ctypes.c_void_p(array.ctypes.data)
    pointer.array = array  # type: ignore[attr-defined]
    return pointer


def size(n: int) -> ctypes.c_size_t:
    """Return a length as C takes it."""
    return ctypes.c_size_t(n)


def real(value: float, dtype: str) -> Any:
    """Return a number as C takes it."""
    return (ctypes.c_double if dtype == "float64" else ctypes.c_float)(value)


def blas(name: str) -> ctypes.c_void_p:
    """Return the address of a function of the BLAS that SciPy carries."""
    from scipy.linalg import cython_blas

    capsule = cython_blas.__pyx_capi__[name]
    api = ctypes.pythonapi
    api.PyCapsule_GetName.restype = ctypes.c_char_p
    api.PyCapsule_GetName.argtypes = [ctypes.py_object]
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    return ctypes.c_void_p(api.PyCapsule_GetPointer(capsule, api.PyCapsule_GetName(capsule)))
