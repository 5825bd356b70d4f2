"""Native kernels beside host callbacks, operation by operation.

    python benchmarks/callbacks.py             measure, print, write results/callbacks.json
    python benchmarks/callbacks.py --quick     little time, nothing written
    python benchmarks/callbacks.py --render    write docs/benchmarks-callbacks.md

An operation without a native kernel still works in a compiled program: the program calls back into
Python, which calls NumPy or SciPy.  Each case is one compiled function on one thread, measured as
it is and with the kernel of the operation removed, in processes of their own without the disk
cache.  Results are compared first.  A kernel is kept if it is at least 1.3 times faster at some
size; where larger matrices are slower natively, its `serves` leaves them to the callback.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator
from time import perf_counter
from typing import Any

from _harness import PAGES, load, machine, machine_line, save, table

PAGE = "benchmarks-callbacks.md"  # under docs
VARIANTS = ("kernel", "callback")
SECONDS, SECONDS_QUICK = 0.1, 0.01  # for each case
ROUNDS = 3  # processes of each variant, in turn; the least median counts
PACKAGES = ("wengert", "numpy", "scipy", "llvmlite")

Case = tuple[str, str, Callable[..., Any], tuple[Any, ...]]  # label, operation, function, arguments


# ---- the cases -----------------------------------------------------------------------------------


def matrix_cases(n: int) -> Iterator[Case]:
    """Functions of one matrix of n rows, and systems."""
    import numpy as np

    import wengert.scipy.linalg as linalg

    rng = np.random.default_rng(n)
    a, b, vector = rng.normal(size=(n, n)), rng.normal(size=(n, n)), rng.normal(size=n)
    near = a / n**0.5 / 3 + 2 * np.eye(n)
    positive = a @ a.T / n + np.eye(n)
    bands = np.array([np.ones(n), 4 * np.ones(n), np.ones(n)])
    column = np.r_[4.0, vector[1:] / n]
    yield "expm", "expm", linalg.expm, (a / n**0.5,)
    yield "sqrtm", "linalg.square_root", linalg.sqrtm, (near,)
    yield "logm", "linalg.logarithm", linalg.logm, (near,)
    yield "signm", "linalg.matrix_sign", linalg.signm, (near,)
    yield "schur", "linalg.schur_form", lambda x: linalg.schur(x)[0], (a,)
    yield "solve_sylvester", "linalg.sylvester", linalg.solve_sylvester, (near, near, b)
    yield "solve_toeplitz", "linalg.toeplitz_solve", linalg.solve_toeplitz, (column, vector)
    yield (
        "solve_banded",
        "linalg.banded_solve",
        lambda x, y: linalg.solve_banded((1, 1), x, y),
        (bands, vector),
    )
    yield "solveh_banded", "linalg.definite_banded_solve", linalg.solveh_banded, (bands[:2], vector)
    yield (
        "solve, positive definite",
        "linalg.structured_solve",
        lambda x, y: linalg.solve(x, y, assume_a="pos"),
        (positive, vector),
    )


def vector_cases(n: int) -> Iterator[Case]:
    """Filters, transforms, sorting and searching of n numbers."""
    import numpy as np

    import wengert.numpy as wnp
    import wengert.scipy.signal as signal
    from wengert.scipy.interpolate import CubicSpline

    rng = np.random.default_rng(n)
    x, few = rng.normal(size=n), rng.integers(0, 9, n)
    edges = np.linspace(-3.0, 3.0, 20)
    yield "lfilter", "signal.lfilter", lambda v: signal.lfilter([0.1, 0.2], [1.0, -0.5], v), (x,)
    yield "np.convolve, 9", "convolve", lambda v: wnp.convolve(v, np.ones(9) / 9), (x,)
    knots = np.sort(x)
    yield "CubicSpline", "interpolate.banded", lambda v: CubicSpline(knots, v)(0.1), (x,)
    yield "fft", "fft", lambda v: wnp.abs(wnp.fft.fft(v)), (x + 0j,)
    yield "rfft", "rfft", wnp.fft.rfft, (x,)
    yield "argsort", "argsort", wnp.argsort, (x,)
    yield "lexsort", "lexsort", lambda u, v: wnp.lexsort((u, v)), (few, few[::-1].copy())
    yield "searchsorted", "searchsorted", wnp.searchsorted, (np.sort(x), x)
    yield "digitize", "digitize", lambda v: wnp.digitize(v, edges), (x,)
    yield (
        "histogram",
        "histogram_counts",
        lambda v: wnp.histogram(v, 20, (-3.0, 3.0))[0],
        (x,),
    )


def image_cases(n: int) -> Iterator[Case]:
    """Convolutions of n by n numbers."""
    import numpy as np

    import wengert.scipy.signal as signal

    x, kernel = np.random.default_rng(n).normal(size=(n, n)), np.ones((3, 3))
    yield (
        "signal.convolve, 3 x 3",
        "signal.convolve",
        lambda v: signal.convolve(v, kernel, mode="same", method="direct"),
        (x,),
    )


SIZES = ((matrix_cases, (3, 10, 100)), (vector_cases, (16, 1024, 65536)), (image_cases, (16, 256)))


# ---- measuring -----------------------------------------------------------------------------------


def worker(variant: str, seconds: float) -> None:
    """Print the medians of one variant, in seconds, and a number that tells of each result."""
    import numpy as np

    import wengert as wg
    from wengert._engine.backends.llvm.kernels import kernel_call

    found = []
    for make, sizes in SIZES:
        for n in sizes:
            for label, operation, function, arguments in make(n):
                saved = kernel_call._kernel_of(operation)
                assert saved is not None, operation
                if variant == "callback":
                    kernel_call.KERNELS[operation] = saved._replace(serves=lambda node: False)
                compiled = wg.jit(lambda *args, function=function: function(*args))
                value = np.asarray(compiled(*arguments))
                times: list[float] = []
                end = perf_counter() + seconds
                while perf_counter() < end or len(times) < 5:
                    begin = perf_counter()
                    compiled(*arguments)
                    times.append(perf_counter() - begin)
                kernel_call.KERNELS[operation] = saved
                total = float(np.abs(value).sum())
                found.append([label, n, statistics.median(times), total])
    print(json.dumps(found))


def measure(quick: bool) -> dict[str, Any]:
    """Both variants in processes of their own; raises where they disagree."""
    environment = {**os.environ, "WENGERT_CACHE": "0", "WENGERT_THREADS": "1"}
    environment |= dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"), "1")
    seconds = SECONDS_QUICK if quick else SECONDS
    rows: dict[str, list[Any]] = {}
    for variant in VARIANTS * ROUNDS:
        command = [sys.executable, __file__, "--worker", variant, "--seconds", str(seconds)]
        done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
        found = json.loads(done.stdout)
        for row, before in zip(found, rows.get(variant, found), strict=True):
            row[2] = min(row[2], before[2])
        rows[variant] = found
    cases = []
    for (label, n, kernel, one), (_, _, callback, two) in zip(
        rows["kernel"], rows["callback"], strict=True
    ):
        if abs(one - two) > 1e-8 * abs(two):
            raise RuntimeError(f"{label}, {n}: the kernel gives {one}, the callback {two}")
        cases.append({"case": label, "size": n, "kernel": kernel, "callback": callback})
    return {"machine": machine(PACKAGES), "cases": cases}


def render(results: dict[str, Any]) -> str:
    """Return docs/benchmarks-callbacks.md for saved results."""
    rows = [
        (c["case"], c["size"], c["kernel"] * 1e6, c["callback"] * 1e6, c["callback"] / c["kernel"])
        for c in sorted(results["cases"], key=lambda c: c["case"])
    ]
    parts = [
        "# Benchmarks: native kernels beside host callbacks",
        "Written by `python benchmarks/callbacks.py --render` from "
        "`benchmarks/results/callbacks.json`. Read the ratios: times are one machine's.",
        machine_line(results["machine"]),
        "An operation without a native kernel runs in a compiled program too: the program calls "
        "back into Python. Each row is one compiled function on one thread, with the native kernel "
        "and with the host callback in its place; times are the least of three medians in "
        "microseconds, *ratio* is callback over kernel. A size is the number of rows of a matrix, "
        "the length of a vector or the side of an image. A kernel is kept if it is at least 1.3 "
        "times faster at some size. SciPy's square roots and logarithms of larger matrices are "
        "faster than the kernels, so compiled programs call back for them: of 100 rows both "
        "columns are callbacks.",
        table(("", "size", "kernel (us)", "callback (us)", "ratio"), rows),
    ]
    return "\n\n".join(parts) + "\n"


def main() -> int:
    """Measure, or render."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="little time, nothing written")
    parser.add_argument("--render", action="store_true", help="write the page, measure nothing")
    parser.add_argument("--worker", choices=VARIANTS, help=argparse.SUPPRESS)
    parser.add_argument("--seconds", type=float, default=SECONDS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        worker(options.worker, options.seconds)
        return 0
    if options.render:
        (PAGES / PAGE).write_text(render(load("callbacks")), encoding="utf-8")
        return 0
    results = measure(options.quick)
    print(render(results))
    if not options.quick:
        save("callbacks", results)
    return 0


if __name__ == "__main__":
    sys.exit(main())
