"""Measure thresholds of the compiler on this machine, and store them for other processes.

    run           the command
    best_values   the fastest candidate of each threshold
    seconds       times of compiled programs for a value of a threshold

A threshold keeps its default unless another value is faster by more than `MIN_GAIN`.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

import wengert as wg
from wengert._engine.backends.llvm import cache, tuning
from wengert._engine.backends.llvm.runtime.settings import get_threads
from wengert._engine.cache import disk_cache
from wengert.errors import BackendError
from wengert.nn import functional as F

Measure = Callable[[str, int], Sequence[float]]
Program = tuple[Callable[..., Any], tuple[Any, ...]]

MIN_GAIN = 0.03  # relative; smaller differences are noise
_REPEATS = 7  # runs of a program; the fastest counts
_SECONDS = 0.002  # minimum duration of a run; short programs are called several times


def run(options: Any) -> None:
    """Measure, show or reset the thresholds of this machine."""
    if options.reset:
        removed = cache.remove()
        path = cache.path()
        print(f"deleted {path}" if removed else f"{path} does not exist")
    elif options.show:
        print(_table())
    else:
        _tune()


def _tune() -> None:
    if not disk_cache.enabled():
        raise BackendError(
            "measured thresholds are stored in the cache folder, but the cache is disabled by "
            "WENGERT_CACHE. Unset it, or set it to a folder."
        )
    tuning.install({})
    with _without_cache():
        values = best_values(seconds, _measurable(), report=print)
    cache.save(values)
    print(f"wrote {cache.path()}; new processes use it")


def _table() -> str:
    """A table of all thresholds: value, unit, purpose, and the command that measures it."""
    cache.load()
    lines = [f"# {cache.path()}", "# * differs from the default"]
    for name in tuning.names():
        about, value = tuning.describe(name), getattr(tuning.thresholds, name)
        mark = "*" if value != about.default else " "
        lines.append(f"{mark} {name} = {value} {about.unit}: {about.decides}")
        lines.append(f"      default {about.default}: {about.found}; measure: {about.command}")
    return "\n".join(lines)


# ---- the search --------------------------------------------------------------------------------


def best_values(
    measure: Measure, names: Sequence[str], report: Callable[[str], object] = lambda line: None
) -> dict[str, int]:
    """The fastest candidate of each threshold, if it is not the default.

    Parameters
    ----------
    measure : callable
        ``measure(name, value)`` returns the times of several programs, in seconds.
    names : sequence of str
        Keys of `WORKLOADS`.
    report : callable, optional
        Called with a line of text for each threshold.

    Returns
    -------
    dict from str to int
    """
    found: dict[str, int] = {}
    for name in names:
        about = tuning.describe(name)
        before = measure(name, about.default)
        best, least = about.default, 1.0 - MIN_GAIN
        for value in _candidates(name):
            ratio = _ratio(measure(name, value), before)
            if ratio < least:
                best, least = value, ratio
        if best != about.default:  # measure again to exclude noise
            again = _ratio(measure(name, best), measure(name, about.default))
            best, least = (
                (best, max(least, again)) if again < 1.0 - MIN_GAIN else (about.default, 1.0)
            )
        if best != about.default:
            found[name] = best
            report(f"{name}: {about.default} -> {best} {about.unit} ({1 - least:.0%} faster)")
        else:
            report(f"{name}: {about.default} {about.unit} (unchanged)")
    return found


def _candidates(name: str) -> list[int]:
    """Values around the default, within the range of the threshold."""
    about = tuning.describe(name)
    values = [int(about.default * 2.0**k) for k in (-4, -2, -1, 1, 2, 4)]
    return [v for v in values if about.least <= v <= about.most]


def _ratio(one: Sequence[float], other: Sequence[float]) -> float:
    """The geometric mean of the ratios of times."""
    logs = [math.log(a / b) for a, b in zip(one, other, strict=True)]
    return math.exp(sum(logs) / len(logs))


# ---- the measured programs ---------------------------------------------------------------------


def _loops() -> Iterator[Program]:
    for n in (1 << 13, 1 << 15, 1 << 17, 1 << 19):
        yield lambda x: np.sum(np.exp(x) * x), (np.linspace(0.0, 1.0, n),)
        yield lambda x: np.tanh(x) * x, (np.linspace(0.0, 1.0, n),)


def _products() -> Iterator[Program]:
    for n in (96, 160, 224, 320, 448):
        yield lambda a, b: a @ b, (np.ones((n, n)), np.ones((n, n)))


def _convolutions() -> Iterator[Program]:
    for n in (12, 24, 48):
        yield F.conv2d, (np.ones((4, 8, n, n)), np.ones((16, 8, 3, 3)))


WORKLOADS: dict[str, Callable[[], Iterator[Program]]] = {
    "gemm_cached_bytes": _products,
    "gemm_block_bytes": _products,
    "gemm_packed_rows": _products,
    "parallel_matmul_flops": _products,
    "matmul_block_rows": _products,
    "parallel_loop_work": _loops,
    "parallel_convolution_flops": _convolutions,
}
_ON_THREADS = ("parallel_", "matmul_")


def _measurable() -> list[str]:
    """The thresholds that can be measured; those for threads need more than one thread."""
    alone = get_threads() == 1
    return [n for n in WORKLOADS if not (alone and n.startswith(_ON_THREADS))]


def seconds(name: str, value: int) -> list[float]:
    """Times of the programs for a threshold, compiled with this value."""
    found = []
    threads = None if name.startswith(_ON_THREADS) else 1
    for function, arguments in WORKLOADS[name]():
        with tuning.using(**{name: value}):
            compiled = wg.jit(function, threads=threads)
            compiled(*arguments)
            compiled(*arguments)
        found.append(_fastest(compiled, arguments))
    return found


def _fastest(compiled: Callable[..., Any], arguments: tuple[Any, ...]) -> float:
    """Seconds per call: the minimum of several runs of at least `_SECONDS`."""
    calls, took = 1, 0.0
    while True:
        begin = time.perf_counter()
        for _ in range(calls):
            compiled(*arguments)
        took = time.perf_counter() - begin
        if took >= _SECONDS:
            break
        calls *= 2
    best = took
    for _ in range(_REPEATS):
        begin = time.perf_counter()
        for _ in range(calls):
            compiled(*arguments)
        best = min(best, time.perf_counter() - begin)
    return best / calls


@contextlib.contextmanager
def _without_cache() -> Iterator[None]:
    """Disable the disk cache while candidates are compiled."""
    before = disk_cache.enabled()
    disk_cache.enabled(False)
    try:
        yield
    finally:
        disk_cache.enabled(before)
