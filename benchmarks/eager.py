"""What one eager operation costs: time, memory and import, beside NumPy, PyTorch and autograd.

    python benchmarks/eager.py             measure, print, write results/eager.json
    python benchmarks/eager.py --quick     fewer repetitions, nothing written
    python benchmarks/eager.py --render    write docs/benchmarks-eager.md from results/eager.json

*The chain* is the same 1,000 operations in every library, and one sum that makes it a scalar:

    x = x0
    250 times:  x = sin(x);  x = x * 0.5;  x = x + x0;  x = x * x
    J = sum(x)

With x0 in (0.2, 0.3) each round stays in (0, 0.65) and shrinks a perturbation to about a third, so
neither values nor derivatives overflow or become denormal; `x + x0` makes 250 paths meet in x0, so
accumulation is measured, and `x * x` uses one operand twice.  The arrays are float64 of 1 and of
100 elements: there the libraries cost more than the arithmetic.  "numpy" is the same chain with its
adjoint written by hand, the least that a tape on NumPy could cost.  Before timing, every gradient
is compared with it.

All contestants run in one process, in turn, on one thread; a number is the median over
repetitions.  A library that is not installed is skipped by name.
"""

from __future__ import annotations

import argparse
import compileall
import json
import os
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import Any

from _harness import (
    PAGES,
    RESULTS,
    interleave,
    load,
    machine,
    machine_line,
    save,
    settle,
    spread,
    table,
)

ROUNDS = 250
OPERATIONS = 4 * ROUNDS
SCALE = 0.5
SIZES = (1, 100)
PACKAGES = ("wengert", "numpy", "scipy", "torch", "autograd")
PAGE = "benchmarks-eager.md"  # under docs
TARGET_PLAIN = 0.3  # us that an operation on plain arrays may add to NumPy's own call
TARGET_IMPORT = 2.5  # times NumPy's import
Timed = Callable[[], tuple[float, float, Any]]  # seconds forward, seconds in all, gradient


def start(size: int) -> Any:
    """Return x0, evenly spaced in (0.2, 0.3)."""
    import numpy as np

    return 0.2 + 0.1 * (np.arange(size) + 0.5) / size


def chain(x0: Any, sin: Callable[[Any], Any]) -> Any:
    """Run the 1,000 operations, in any library that overloads ``*`` and ``+``."""
    x = x0
    for _ in range(ROUNDS):
        x = sin(x)
        x = x * SCALE
        x = x + x0
        x = x * x
    return x


# ---- the contestants: each returns a function that runs and times one gradient ------------------


def with_numpy(x0: Any) -> Timed:
    """Keep what the adjoint needs in a list; walk back over it."""
    import numpy as np

    def run() -> tuple[float, float, Any]:
        begin = perf_counter()
        saved = []
        x = x0
        for _ in range(ROUNDS):
            before = x
            x = np.sin(x)
            x = x * SCALE
            x = x + x0
            saved.append((before, x))
            x = x * x
        x.sum()
        forward = perf_counter() - begin
        x_bar = np.ones_like(x0)
        x0_bar = np.zeros_like(x0)
        for before, after in reversed(saved):
            x_bar = x_bar * (2.0 * after)
            x0_bar = x0_bar + x_bar
            x_bar = x_bar * SCALE
            x_bar = x_bar * np.cos(before)
        x0_bar = x0_bar + x_bar
        return forward, perf_counter() - begin, x0_bar

    return run


def with_wengert_grad(x0: Any) -> Timed:
    """``wg.grad(f)(x0)``, which does not show where forward ends."""
    import wengert as wg
    import wengert.numpy as wnp

    gradient = wg.grad(lambda x: chain(x, wnp.sin).sum())

    def run() -> tuple[float, float, Any]:
        begin = perf_counter()
        x0_bar = gradient(x0)
        return float("nan"), perf_counter() - begin, x0_bar

    return run


def with_wengert_tensor(x0: Any) -> Timed:
    """``J.backward()`` and ``x.grad``."""
    import numpy as np

    import wengert as wg
    import wengert.numpy as wnp

    def run() -> tuple[float, float, Any]:
        begin = perf_counter()
        x = wg.tensor(x0, requires_grad=True)
        value = chain(x, wnp.sin).sum()
        forward = perf_counter() - begin
        value.backward()
        return forward, perf_counter() - begin, np.asarray(x.grad)

    return run


def with_torch(x0: Any) -> Timed:
    """PyTorch's eager mode on one thread."""
    import torch

    torch.set_num_threads(1)

    def run() -> tuple[float, float, Any]:
        begin = perf_counter()
        x = torch.tensor(x0, requires_grad=True)
        value = chain(x, torch.sin).sum()
        forward = perf_counter() - begin
        value.backward()
        return forward, perf_counter() - begin, x.grad.numpy()

    return run


def with_autograd(x0: Any) -> Timed:
    """HIPS autograd; ``make_vjp`` is what its ``grad`` is made of."""
    import autograd.numpy as anp
    from autograd import make_vjp

    prepare = make_vjp(lambda x: anp.sum(chain(x, anp.sin)))

    def run() -> tuple[float, float, Any]:
        begin = perf_counter()
        vjp, _value = prepare(x0)
        forward = perf_counter() - begin
        x0_bar = vjp(1.0)
        return forward, perf_counter() - begin, x0_bar

    return run


CONTESTANTS: dict[str, tuple[str, Callable[[Any], Timed]]] = {
    "numpy, adjoint by hand": ("numpy", with_numpy),
    "wengert, grad(f)(x)": ("wengert", with_wengert_grad),
    "wengert, J.backward()": ("wengert", with_wengert_tensor),
    "torch, eager": ("torch", with_torch),
    "autograd": ("autograd", with_autograd),
}


# ---- the measurements ----------------------------------------------------------------------------


def time_chains(repetitions: int) -> dict[str, Any]:
    """Us per operation, forward and in all, by size and contestant."""
    import numpy as np

    results: dict[str, Any] = {}
    for size in SIZES:
        x0 = start(size)
        runs = {name: make(x0) for name, (lib, make) in CONTESTANTS.items() if find_spec(lib)}
        reference = with_numpy(x0)()[2]
        for name, run in runs.items():
            np.testing.assert_allclose(run()[2], reference, rtol=1e-12, err_msg=name)
        settle()
        results[str(size)] = {}
        for name, samples in interleave(runs, repetitions).items():
            forward, total, _ = zip(*samples, strict=True)
            results[str(size)][name] = {
                "forward": None if forward[0] != forward[0] else spread(forward, 1e6 / OPERATIONS),
                "total": spread(total, 1e6 / OPERATIONS),
            }
    return results


def time_plain(repetitions: int) -> dict[str, Any]:
    """Us per call of wengert's functions on plain arrays, beside NumPy's."""
    if not find_spec("wengert"):
        return {}
    import numpy as np

    import wengert.numpy as wnp

    x, y = start(1), start(1) + 1.0
    matrix = np.eye(2)
    calls: dict[str, tuple[Any, ...]] = {
        "sin": (x,),
        "exp": (x,),
        "add": (x, y),
        "multiply": (x, y),
        "maximum": (x, y),
        "where": (x > 0.25, x, y),
        "sum": (x,),
        "reshape": (x, (1, 1)),
        "matmul": (matrix, matrix),
    }
    runs = {}
    for name, args in calls.items():
        for library, module in (("numpy", np), ("wengert", wnp)):
            if hasattr(wnp, name):
                runs[f"{library} {name}"] = _many_calls(getattr(module, name), args)
    settle()
    medians = {name: spread(s, 1e6)["median"] for name, s in interleave(runs, repetitions).items()}
    return {
        name: {"numpy": medians[f"numpy {name}"], "wengert": medians[f"wengert {name}"]}
        for name in calls
        if f"wengert {name}" in medians
    }


def _many_calls(f: Callable[..., Any], args: tuple[Any, ...], count: int = 1000) -> Any:
    def run() -> float:
        loop = range(count)
        begin = perf_counter()
        for _ in loop:
            f(*args)
        return (perf_counter() - begin) / count

    return run


def time_imports(repetitions: int) -> dict[str, Any]:
    """Milliseconds to import each library in a fresh process, the interpreter's start left out."""

    def importing(name: str) -> Callable[[], float]:
        code = f"from time import perf_counter as t; b = t(); import {name}; print((t() - b) * 1e3)"
        return lambda: float(_child("-c", code))

    # Installed packages are compiled by pip; an editable one in a setting that keeps no bytecode
    # would be compiled at every import.
    source = Path(__file__).resolve().parent.parent / "src" / "wengert"
    compileall.compile_dir(source, quiet=1)
    names = [name for name in ("numpy", "wengert", "autograd", "torch") if find_spec(name)]
    samples = interleave({name: importing(name) for name in names}, repetitions, warmup=1)
    return {name: spread(values) for name, values in samples.items()}


def memory(held: int = 20) -> dict[str, Any]:
    """Bytes an operation's history takes beside its value; each library in a fresh process.

    ``traced`` is Python's own count for one chain (tracemalloc; it cannot see PyTorch's C++
    objects); ``resident`` is the growth of the process over ``held`` chains kept alive.
    """
    libraries = [name for name in ("wengert", "torch", "autograd") if find_spec(name)]
    return {
        name: json.loads(_child(__file__, "--memory-of", name, str(held))) for name in libraries
    }


def memory_of(library: str, held: int) -> dict[str, float | None]:
    """Measure one library in this process; the arrays that hold the values are left out."""
    import numpy as np

    x0 = start(1)
    record = _recorder(library, x0)

    def values() -> Any:
        return [x0 + i for i in range(OPERATIONS)]

    def traced(make: Callable[[], Any]) -> int:
        make()
        tracemalloc.start()
        kept = make()
        size = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        del kept
        return size

    def resident(make: Callable[[], Any]) -> float | None:
        make()
        before = _resident()
        kept = [make() for _ in range(held)]
        after = _resident()
        del kept
        return None if before is None or after is None else (after - before) / held

    assert np.shape(x0) == (1,)
    python = None if library == "torch" else (traced(record) - traced(values)) / OPERATIONS
    grown = resident(record)
    return {
        "traced": python,
        "resident": None if grown is None else (grown - traced(values)) / OPERATIONS,
    }


def _recorder(library: str, x0: Any) -> Callable[[], Any]:
    """Return a function that runs the chain and returns whatever keeps its history alive."""
    if library == "torch":
        import torch

        torch.set_num_threads(1)
        return lambda: chain(torch.tensor(x0, requires_grad=True), torch.sin)
    if library == "autograd":
        import autograd.numpy as anp
        from autograd import make_vjp

        return lambda: make_vjp(lambda x: chain(x, anp.sin))(x0)
    import wengert as wg
    import wengert.numpy as wnp

    return lambda: chain(wg.tensor(x0, requires_grad=True), wnp.sin)


def _resident() -> int | None:
    try:
        with open("/proc/self/statm") as statm:
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return None


def _child(*arguments: str) -> str:
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"python {' '.join(arguments)} failed:\n{done.stderr}")
    return done.stdout


# ---- the page ------------------------------------------------------------------------------------


def render(results: dict[str, Any]) -> str:
    """Return docs/benchmarks-eager.md for saved results."""
    parts = [
        "# Benchmarks: eager operations",
        "Written by `python benchmarks/eager.py --render` from `benchmarks/results/eager.json`; "
        "`make bench` measures again. Read the ratios: times are one machine's.",
        machine_line(results["machine"]),
        "## Eager: a chain of 1,000 small operations, forward and backward",
        "Microseconds per operation: the median, and in brackets the quartiles. The chain is 250 "
        "times `sin(x)`, `x * 0.5`, `x + x0`, `x * x`, then a sum; float64, one thread, all "
        "libraries in turn in one process. *numpy* is the same chain with its adjoint written by "
        "hand: the least that a tape on NumPy could cost. Target: at most half of torch and 40 % "
        "of autograd. The first is missed; where the time goes and what was tried is in "
        "[design/0003-eager-speed.md](design/0003-eager-speed.md).",
    ]
    for size, chains in results["chain"].items():
        parts += [f"### {size} element{'s' * (size != '1')}", _chain_table(chains)]
    if results["plain"]:
        parts += [
            "## Plain arrays",
            "Microseconds per call of a function of `wengert.numpy` on plain arrays, where nothing "
            f"is recorded, beside NumPy's own. Target: at most {TARGET_PLAIN} added.",
            table(
                ["function", "numpy", "wengert", "added"],
                [[n, t["numpy"], t["wengert"], t["wengert"] - t["numpy"]]
                 for n, t in results["plain"].items()],
            ),
        ]  # fmt: skip
    base = results["imports"]["numpy"]["median"]
    parts += [
        "## Import",
        "Milliseconds to import, in a fresh process, the start of the interpreter left out. "
        f"Target: at most {TARGET_IMPORT} times NumPy's.",
        table(
            ["library", "ms", "over numpy"],
            [[n, t["median"], t["median"] / base] for n, t in results["imports"].items()],
        ),
        "## Memory",
        "Bytes per recorded operation, less the bytes of one array for its value (so a library "
        "that drops the values it will not need gets credit): by Python's own count, which cannot "
        "see PyTorch's C++ objects, and by growth of the process.",
        table(
            ["library", "counted", "grown"],
            [[n, m["traced"], m["resident"]] for n, m in results["memory"].items()],
        ),
    ]
    return "\n\n".join(parts) + "\n"


def _chain_table(chains: dict[str, Any]) -> str:
    peers = {name: c["total"]["median"] for name, c in chains.items()}
    hand = peers["numpy, adjoint by hand"]
    torch = peers.get("torch, eager")
    rows = []
    for name, c in chains.items():
        forward, total = c["forward"], c["total"]
        rows.append(
            [
                name,
                forward and forward["median"],
                forward and total["median"] - forward["median"],
                f"{total['median']:.2f} ({total['low']:.2f}-{total['high']:.2f})",
                total["median"] / hand,
                torch and total["median"] / torch,
            ]
        )
    head = ["library", "forward", "backward", "in all", "over numpy", "over torch"]
    return table(head, rows)


def main() -> None:
    """Measure, render, or (for a child process) measure the memory of one library."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="few repetitions, nothing written")
    parser.add_argument("--render", action="store_true", help=f"write docs/{PAGE}")
    parser.add_argument("--memory-of", nargs=2, metavar=("LIBRARY", "CHAINS"), help="internal")
    options = parser.parse_args()
    if options.memory_of:
        library, held = options.memory_of
        print(json.dumps(memory_of(library, int(held))))
        return
    if options.render:
        if not (RESULTS / "eager.json").exists():
            print("nothing measured yet; `make bench` measures")
            return
        PAGES.mkdir(exist_ok=True)
        (PAGES / PAGE).write_text(render(load("eager")))
        print(f"wrote docs/{PAGE}")
        return
    many = 20 if options.quick else 200
    results = {
        "machine": machine(PACKAGES),
        "chain": time_chains(many),
        "plain": time_plain(many),
        "imports": time_imports(3 if options.quick else 15),
        "memory": memory(),
    }
    print(render(results))
    if not options.quick:
        save("eager", results)
        print("wrote benchmarks/results/eager.json")


if __name__ == "__main__":
    main()
