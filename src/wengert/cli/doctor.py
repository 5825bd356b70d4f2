"""Versions, hardware, and whether native code works on this machine.

A trial compiles a function and its gradient and compares both with NumPy; then the same with all
threads.  The output is meant to be included in bug reports.
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
    "matplotlib": "show", "rich": "demo", "scikit-learn": "learn",
    "safetensors": "dev", "torch": "bench", "jax": "bench",
}  # fmt: skip


def run(_: Any) -> bool:
    """Print the report; False if a trial failed."""
    for title, lines in (
        ("machine", _machine()),
        ("versions", _versions()),
        ("native code", _native()),
    ):
        print(title)
        for name, value in lines:
            print(f"  {name:<18} {value}")
    print("trials")
    works = True
    for name, fault in _trials():
        print(f"  {name:<18} {'works' if fault is None else 'FAILS: ' + fault}")
        works = works and fault is None
    return works


def _machine() -> Iterator[tuple[str, Any]]:
    yield "system", f"{platform.system()} {platform.release()}, {platform.machine()}"
    yield "python", f"{platform.python_version()} ({sys.executable})"
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    yield "processors", f"{allowed} of {os.cpu_count()} may be used"
    found = shutil.which("nvidia-smi")
    yield "GPU", f"{'one may be here' if found else 'none found'}; wengert computes on processors"


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
    where = cache.directory if cache.enabled else "switched off"
    yield "cache", f"{where}, {cache.files} files, {cache.bytes / 2**20:.0f} MiB"
    yield "memory kept", f"{memory.kept / 2**20:.0f} of at most {memory.limit / 2**20:.0f} MiB"


def _trials() -> Iterator[tuple[str, str | None]]:
    x = np.linspace(-2.0, 2.0, 100_000)
    want = np.cos(x) * np.exp(-x * x) - 2 * x * np.sin(x) * np.exp(-x * x)

    def f(x: Any) -> Any:
        return np.sum(np.sin(x) * np.exp(-x * x))

    yield "gradient, eager", _fault(lambda: wg.grad(f)(x), want)
    yield "gradient, native", _fault(lambda: wg.jit(wg.grad(f))(x), want)
    count = os.cpu_count() or 1
    yield f"{count} threads", _fault(lambda: wg.jit(wg.grad(f), threads=count)(x), want)


def _fault(run: Any, want: Any) -> str | None:
    try:
        error = float(np.max(np.abs(run() - want)))
    except Exception as fault:  # any error is part of the report
        return f"{type(fault).__name__}: {fault}"
    return None if error < 1e-12 else f"deviates by {error:.1e}"
