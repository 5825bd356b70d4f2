"""Report versions and hardware, and check that native code works on this machine.

The checks compute a gradient eagerly, compiled, and compiled with all threads, and compare it with
NumPy.  The output is meant to be included in bug reports.
"""

from __future__ import annotations

import os
import platform
import shutil
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

import wengert as wg
from wengert._engine.backends.llvm.ir import execution_engine

REQUIRED = ("wengert", "numpy", "scipy", "llvmlite", "optree")
EXTRAS = {
    "wengert-extras": "all", "matplotlib": "show", "rich": "demo", "scikit-learn": "learn",
    "safetensors": "dev", "torch": "bench", "jax": "bench",
}  # fmt: skip


def run(_: Any) -> bool:
    """Print the report; return False if a check failed."""
    for title, lines in (
        ("machine", _machine()),
        ("versions", _versions()),
        ("native code", _native()),
    ):
        print(title)
        for name, value in lines:
            print(f"  {name:<18} {value}")
    print("checks")
    success = True
    for name, fault in _checks():
        print(f"  {name:<18} {'works' if fault is None else 'FAILS: ' + fault}")
        success = success and fault is None
    return success


def _machine() -> Iterator[tuple[str, Any]]:
    yield "system", f"{platform.system()} {platform.release()}, {platform.machine()}"
    yield "python", f"{platform.python_version()} ({sys.executable})"
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    yield "processors", f"{allowed} of {os.cpu_count()} available to this process"
    found = shutil.which("nvidia-smi")
    yield "GPU", "nvidia-smi found; for backend='cuda'" if found else "nvidia-smi not found"


def _versions() -> Iterator[tuple[str, Any]]:
    for name in REQUIRED:
        yield name, version(name)
    for name, extra in EXTRAS.items():
        try:
            yield name, version(name)
        except PackageNotFoundError:
            yield name, f"not installed (the extra `{extra}`)"


def _native() -> Iterator[tuple[str, Any]]:
    yield "processor", execution_engine.cpu()
    yield "vectors", f"{8 * execution_engine.vector_bytes()} bits"
    yield "threads", wg.get_threads()
    cache, memory = wg.cache.info(), wg.memory.info()
    folder = cache.directory if cache.enabled else "disabled"
    yield "cache", f"{folder}, {cache.files} files, {cache.bytes / 2**20:.0f} MiB"
    yield "memory kept", f"{memory.kept / 2**20:.0f} of at most {memory.limit / 2**20:.0f} MiB"


def _checks() -> Iterator[tuple[str, str | None]]:
    x = np.linspace(-2.0, 2.0, 100_000)
    expected = np.cos(x) * np.exp(-x * x) - 2 * x * np.sin(x) * np.exp(-x * x)

    def f(x: Any) -> Any:
        return np.sum(np.sin(x) * np.exp(-x * x))

    yield "gradient, eager", _fault(lambda: wg.grad(f)(x), expected)
    yield "gradient, native", _fault(lambda: wg.jit(wg.grad(f))(x), expected)
    count = os.cpu_count() or 1
    yield f"{count} threads", _fault(lambda: wg.jit(wg.grad(f), threads=count)(x), expected)


def _fault(run: Any, expected: Any) -> str | None:
    try:
        error = float(np.max(np.abs(run() - expected)))
    except Exception as fault:  # any error is part of the report
        return f"{type(fault).__name__}: {fault}"
    return None if error < 1e-12 else f"deviates by {error:.1e}"
