"""The time of one workload: wengert's, PyTorch's and JAX's, each in its best form.

    measured      a row of the table
    copy_speed    the speed of a copy on the card

A run is the time between two moments at which the card has nothing to do; a cell is the median.
Before, small arguments are compared with wengert's results on the processor; the results of all
contestants are compared with each other at full size. A peer that fails is left out, with its
error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any

import numpy as np

import wengert as wg
from _harness import interleave, spread

from .case import Workload

QUICK = 1e-4  # of the sizes
_SECONDS = 4.0  # for the runs of a workload
_MOST, _LEAST = 30, 3


def measured(w: Workload, quick: bool, emulate: bool, copied: float | None) -> dict[str, Any]:
    """A row.

    Raises
    ------
    AssertionError
        Results differ from those of the processor.
    """
    row: dict[str, Any] = dict.fromkeys(("first", "ours", "torch", "jax", "share"))
    small = w.arguments(QUICK)
    _compare(w, wg.jit(w.ours, backend="cuda")(*map(wg.device_put, small)), wg.jit(w.ours)(*small))
    if emulate:
        return row
    host = w.arguments(QUICK if quick else 1.0)
    given, ours = [wg.device_put(x) for x in host], wg.jit(w.ours, backend="cuda")
    start = perf_counter()
    results = {"ours": flat(wg.device_get(ours(*given)))}
    row["first"] = 1e3 * (perf_counter() - start)
    contestants = {"ours": _timed(ours, given, _wait_for_all)}
    for name, peer in (("torch", _torch), ("jax", _jax)):
        try:
            function, arguments, wait = peer(w, host)
            results[name] = [_host(x) for x in flat(function(*arguments))]
            _compare(w, results["ours"], results[name], max(w.tolerance, 1e-6))
            contestants[name] = _timed(function, arguments, wait)
        except ImportError:
            continue
        except Exception as error:
            row[f"{name}_error"] = f"{type(error).__name__}: {error}"[:300]
    once = sum([run() for run in contestants.values()])
    repetitions = max(_LEAST, min(_MOST, int(_SECONDS / max(once, 1e-9))))
    for name, times in interleave(contestants, repetitions).items():
        row[name] = spread(times, 1e3)["median"]
    if w.bytes is not None and copied:
        row["share"] = w.bytes(*host) / (row["ours"] * 1e-3) / copied
    _freed()
    return row


def flat(x: Any) -> list[Any]:
    """The arrays of nested tuples."""
    return [z for y in x for z in flat(y)] if isinstance(x, tuple | list) else [x]


def copy_speed(count: float = 1e8) -> float:
    """Bytes that a copy on the card reads and writes in a second."""
    import cupy

    x = cupy.ones(int(count))
    y = cupy.empty_like(x)
    run = _timed(lambda: cupy.copyto(y, x), (), _wait_for_all)
    return float(2 * x.nbytes / min(run() for _ in range(10)))


def card_name() -> str:
    """The name of the card, and the version of its driver."""
    import cupy

    runtime = cupy.cuda.runtime
    name = runtime.getDeviceProperties(runtime.getDevice())["name"].decode()
    return f"{name}, CUDA {runtime.driverGetVersion() // 1000}"


def _compare(w: Workload, got: Any, wanted: Any, tolerance: float | None = None) -> None:
    within = tolerance or w.tolerance
    for a, b in zip(flat(wg.device_get(got)), flat(wanted), strict=True):
        size = np.max(np.abs(b), initial=1e-300)
        distance = float(np.max(np.abs(np.asarray(a) - b), initial=0.0) / size)
        assert np.shape(a) == np.shape(b), f"{w.name}: shapes {np.shape(a)} and {np.shape(b)}"
        assert distance <= within, f"{w.name}: results differ by {distance:.2g}"


def _timed(
    function: Callable[..., Any], given: Sequence[Any], wait: Callable[[Any], Any]
) -> Callable[[], float]:
    """A function that returns the seconds of one run."""

    def run() -> float:
        _wait_for_all()
        start = perf_counter()
        wait(function(*given))
        return perf_counter() - start

    return run


def _wait_for_all(result: Any = None) -> None:
    import cupy

    cupy.cuda.runtime.deviceSynchronize()


def _host(x: Any) -> Any:
    return x.detach().cpu().numpy() if hasattr(x, "detach") else np.asarray(x)


def _torch(w: Workload, host: Sequence[Any]) -> Any:
    import torch

    if not torch.cuda.is_available():
        raise ImportError
    tensors = [torch.from_numpy(x).cuda() for x in host]
    return w.torch(torch), tensors, _wait_for_all


def _jax(w: Workload, host: Sequence[Any]) -> Any:
    import jax

    if jax.default_backend() != "gpu":
        raise ImportError
    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_default_matmul_precision", "highest")  # no TF32, as the others
    arrays = [jax.device_put(x) for x in host]
    return w.jax(jax), arrays, jax.block_until_ready


def _freed() -> None:
    """Return what libraries keep of the memory of the card."""
    import sys

    import cupy

    cupy.get_default_memory_pool().free_all_blocks()
    if "torch" in sys.modules:
        sys.modules["torch"].cuda.empty_cache()
