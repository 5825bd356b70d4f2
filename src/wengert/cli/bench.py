"""Timings of a few derivatives, compared with derivatives written in NumPy.

Both are run in turn and their medians compared; above one, wengert is faster.  The benchmarks
beside other libraries are in the repository (docs/benchmarks.md).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import wengert as wg
from wengert._engine.backends.llvm.ir import execution_engine


def run(options: Any) -> None:
    """Measure and print."""
    print(
        f"{execution_engine.cpu()}, {wg.get_threads()} thread(s), "
        f"{8 * execution_engine.vector_bytes()} bit vectors"
    )
    print(f"{'gradient of':<38}{'wengert':>12}{'NumPy':>12}{'ratio':>8}")
    for name, ours, by_hand in _cases(options.quick):
        a, b = _medians(ours, by_hand, 0.2 if options.quick else 1.0)
        print(f"{name:<38}{_text(a):>12}{_text(b):>12}{b / a:>8.1f}")


def _cases(quick: bool) -> Iterator[tuple[str, Callable[[], Any], Callable[[], Any]]]:
    rng = np.random.default_rng(0)
    small = rng.normal(size=10)
    rosenbrock = wg.jit(
        wg.grad(lambda x: np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2))
    )
    yield "Rosenbrock, 10 numbers", lambda: rosenbrock(small), lambda: _rosenbrock(small)

    n = 10_000 if quick else 1_000_000
    x = rng.normal(size=n)
    wave = wg.jit(wg.grad(lambda x: np.sum(np.tanh(x) * np.exp(-x * x))))
    yield f"sum(tanh(x) exp(-x²)), {n:,} numbers", lambda: wave(x), lambda: _wave(x)

    rows = 64 if quick else 512
    logits, label = rng.normal(size=(rows, 1000)), rng.integers(0, 1000, rows)
    entropy = wg.jit(
        wg.grad(lambda z: -np.mean(wg.numpy.log_softmax(z, 1)[np.arange(rows), label]))
    )
    yield (
        f"cross-entropy, {rows} rows of 1,000", lambda: entropy(logits),
        lambda: _entropy(logits, label),
    )  # fmt: skip


def _rosenbrock(x: Any) -> Any:
    inner = x[1:] - x[:-1] ** 2
    slope = np.zeros_like(x)
    slope[:-1] = -400 * x[:-1] * inner - 2 * (1 - x[:-1])
    slope[1:] += 200 * inner
    return slope


def _wave(x: Any) -> Any:
    t, e = np.tanh(x), np.exp(-x * x)
    return e * (1 - t * t - 2 * x * t)


def _entropy(z: Any, label: Any) -> Any:
    e = np.exp(z - z.max(axis=1, keepdims=True))
    e /= e.sum(axis=1, keepdims=True)
    e[np.arange(len(z)), label] -= 1
    return e / len(z)


def _medians(ours: Callable[[], Any], by_hand: Callable[[], Any], seconds: float) -> Any:
    np.testing.assert_allclose(ours(), by_hand(), rtol=1e-9, atol=1e-12)
    times: tuple[list[float], list[float]] = ([], [])
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times[0]) < 3:
        for f, kept in zip((ours, by_hand), times, strict=True):
            begin = time.perf_counter()
            f()
            kept.append(time.perf_counter() - begin)
    return tuple(float(np.median(kept)) for kept in times)


def _text(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"
