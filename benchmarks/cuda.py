"""Graphics cards: correctness of all operations on a card, and workloads beside PyTorch.

    python benchmarks/cuda.py              check and measure, print, write results/cuda.json and
                                           docs/benchmarks-cuda.md
    python benchmarks/cuda.py --quick      small sizes, some operations, nothing written
    python benchmarks/cuda.py --emulated   the same on the emulated device, for tests: no times
    python benchmarks/cuda.py --render     write the page from results/cuda.json

It needs CuPy and a card; PyTorch is measured if it has CUDA. Both compute the same numbers, which
are compared first; then they take turns. A run is the time between two synchronizations of the
card, arrays are on it before; a cell is the median. The share of bandwidth is that of the bytes
that a run must move, of the speed of a copy on the card in the same process.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any

from _harness import PAGES, interleave, load, machine, machine_line, save, settle, spread, table

PAGE = "benchmarks-cuda.md"
PACKAGES = ("wengert", "numpy", "cupy-cuda12x", "cupy-cuda13x", "llvmlite", "torch")
SOME = ("exp", "sum", "matmul", "getitem", "scatter", "solve_triangular", "random_uniform")
REPETITIONS, REPETITIONS_QUICK = 20, 3
QUICK = 1e-4  # of the sizes


def main(arguments: Sequence[str]) -> int:
    """The exit status: 0 if nothing differs."""
    parser = argparse.ArgumentParser(description="Graphics cards.")
    for flag in ("--quick", "--emulated", "--render"):
        parser.add_argument(flag, action="store_true")
    options = parser.parse_args(arguments)
    if options.render:
        (PAGES / PAGE).write_text(render(load("cuda")), encoding="utf-8")
        return 0
    results = measured(options.quick or options.emulated, options.emulated)
    print(render(results))
    if not (options.quick or options.emulated):
        save("cuda", results)
        (PAGES / PAGE).write_text(render(results), encoding="utf-8")
    return int(bool(results["checks"]["differing"]))


def measured(quick: bool, emulated: bool) -> dict[str, Any]:
    """The checks, and the times of all workloads."""
    from wengert.backends import emulated_device

    from cuda_cases.correctness import check
    from cuda_cases.workloads import WORKLOADS

    block: Any = emulated_device(threads=64) if emulated else contextlib.nullcontext()
    with block:
        torch = None if emulated else torch_with_cuda()
        checks = check(SOME if quick else ())
        scale = QUICK if quick else 1.0
        copied = None if emulated else copy_speed(scale)
        settle()
        rows = [one(w, scale, torch, copied, emulated, quick) for w in WORKLOADS]
    card = "emulated by the processor" if emulated else card_name()
    return {"machine": machine(PACKAGES), "card": card, "checks": checks, "rows": rows}


def one(w: Any, scale: float, torch: Any, copied: Any, emulated: bool, quick: bool) -> Any:
    """The times of one workload in milliseconds; None for what was not measured."""
    import numpy as np

    import wengert as wg

    host = w.arguments(scale)
    given = [wg.device_put(x) for x in host]
    ours = wg.jit(w.ours, backend="cuda")
    start = perf_counter()
    found = flat(wg.device_get(ours(*given)))
    first = perf_counter() - start
    wanted = flat(wg.jit(w.ours)(*host))
    for a, b in zip(found, wanted, strict=True):
        assert np.allclose(a, b, rtol=1e-4 if a.dtype == np.float32 else 1e-9), w.name
    row = {"name": w.name, "first": 1e3 * first, "ours": None, "torch": None, "share": None}
    if emulated:
        return row
    contestants = {"ours": timed(ours, given)}
    if torch is not None:
        tensors = [torch.from_numpy(x).cuda() for x in host]
        theirs = w.theirs(torch)
        for a, b in zip(flat(theirs(*tensors)), found, strict=True):
            assert np.allclose(a.cpu().numpy(), b, rtol=1e-3), w.name
        contestants["torch"] = timed(theirs, tensors)
    samples = interleave(contestants, REPETITIONS_QUICK if quick else REPETITIONS)
    for name, times in samples.items():
        row[name] = spread(times, 1e3)["median"]
    if w.bytes is not None:
        row["share"] = w.bytes(*host) / (row["ours"] * 1e-3) / copied
    return row


def flat(x: Any) -> list[Any]:
    """The arrays of nested tuples."""
    return [z for y in x for z in flat(y)] if isinstance(x, tuple | list) else [x]


def timed(function: Callable[..., Any], given: Sequence[Any]) -> Callable[[], float]:
    """A function that returns the seconds of one run."""
    import cupy

    def run() -> float:
        cupy.cuda.runtime.deviceSynchronize()
        start = perf_counter()
        function(*given)
        cupy.cuda.runtime.deviceSynchronize()
        return perf_counter() - start

    return run


def copy_speed(scale: float) -> float:
    """Bytes that a copy on the card reads and writes in a second."""
    import cupy

    x = cupy.zeros(max(int(5e7 * scale), 1000))
    y = cupy.empty_like(x)
    run = timed(lambda: cupy.copyto(y, x), ())
    return float(2 * x.nbytes / min(run() for _ in range(10)))


def torch_with_cuda() -> Any:
    """PyTorch, if it is installed and has CUDA."""
    try:
        import torch
    except ImportError:
        return None
    return torch if torch.cuda.is_available() else None


def card_name() -> str:
    """The name of the card."""
    import cupy

    properties = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.runtime.getDevice())
    return str(properties["name"].decode())


def render(results: dict[str, Any]) -> str:
    """The page of the results."""
    checks = results["checks"]
    rows = [
        [
            row["name"],
            cell(row["ours"]),
            cell(row["torch"]),
            ratio(row["torch"], row["ours"]),
            "-" if row["share"] is None else f"{100 * row['share']:.0f} %",
            cell(row["first"]),
        ]
        for row in results["rows"]
    ]
    head = ["workload", "wengert, ms", "PyTorch, ms", "PyTorch / wengert", "bandwidth", "first, ms"]
    differing = [f"* {name}: {text}" for name, text in checks["differing"].items()]
    parts = [
        "# Benchmarks: graphics cards",
        "Written by `python benchmarks/cuda.py`. A ratio above one: wengert is faster.",
        f"Card: {results['card']}. {machine_line(results['machine'])}",
        f"{checks['operations']} operations were compared with eager execution in all dtypes, "
        f"shapes and layouts; {len(differing)} differ.",
        *differing,
        table(head, rows),
    ]
    return "\n\n".join(parts) + "\n"


def cell(value: float | None) -> str:
    """Milliseconds with three digits."""
    return "-" if value is None else f"{value:.3g}"


def ratio(a: float | None, b: float | None) -> str:
    """A ratio with three digits."""
    return "-" if a is None or b is None else f"{a / b:.2f}"


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    sys.exit(main(sys.argv[1:]))
