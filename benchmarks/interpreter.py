"""What the interpreter adds to the NumPy calls that a graph consists of.

    python benchmarks/interpreter.py            measure, print, write results/interpreter.json
    python benchmarks/interpreter.py --quick    fewer repetitions, nothing written
    python benchmarks/interpreter.py --render   write docs/benchmarks-interpreter.md

*The chain* is a traced graph of 10,000 elementwise lines on arrays of 5 elements, multiplications
by a number and additions of one in turn.  "numpy" is a straight-line loop over the same NumPy
functions and operands, bound beforehand.  The difference, divided by the number of lines, is what
the interpreter costs for each line; the target is 0.5 us.

*One call* of a computation of a single line: what stands around the run (inputs checked, results
owned) costs.

*Large arrays*: a chain of ten elementwise lines on 1,000,000 elements and its gradient, with and
without memory that is used again during the run.  "numpy" is the same program, eager and plain.

Everything runs on one thread, and its processor time is counted, so that neighbors on the machine
disturb little.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from time import thread_time
from typing import Any

import numpy as np

import wengert as wg
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
from wengert._engine.backends import interpreter

LINES = 10_000
LARGE = 1_000_000
TARGET = 0.5  # us for each line
PACKAGES = ("wengert", "numpy")
PAGE = "benchmarks-interpreter.md"  # under docs


def chain(x: Any) -> Any:
    """The chain of small arrays."""
    for _ in range(LINES // 2):
        x = x * 1.0001
        x = x + 0.001
    return x


def straight(steps: list[tuple[Any, float]]) -> Callable[[Any], Any]:
    """The same NumPy calls in a loop."""

    def run(x: Any) -> Any:
        for function, operand in steps:
            x = function(x, operand)
        return x

    return run


def large(x: Any) -> Any:
    """A program on large arrays."""
    a = np.sin(x)
    b = a * x + 1.0
    c = np.exp(b * b * 0.01)
    return np.sum((c * b + a) / (1.0 + x * x))


def timed(call: Callable[[], Any]) -> Callable[[], float]:
    """A contestant: seconds of one call."""

    def run() -> float:
        start = thread_time()
        call()
        return thread_time() - start

    return run


def small_chain(repetitions: int) -> dict[str, Any]:
    """Microseconds for each line."""
    x = np.ones(5)
    graph = wg.trace(chain)(x)
    run = wg.computation(graph)
    plain = straight([(np.multiply, 1.0001), (np.add, 0.001)] * (LINES // 2))
    assert np.array_equal(run(x), plain(x))
    settle()
    samples = interleave(
        {"interpreter": timed(lambda: run(x)), "numpy": timed(lambda: plain(x))}, repetitions
    )
    differences = [a - b for a, b in zip(samples["interpreter"], samples["numpy"], strict=True)]
    scale = 1e6 / LINES
    return {
        "interpreter": spread(samples["interpreter"], scale),
        "numpy": spread(samples["numpy"], scale),
        "overhead": spread(differences, scale),
    }


def one_call(repetitions: int) -> dict[str, Any]:
    """Microseconds of a call of one line."""
    x, z = np.ones(5), wg.input("z", shape=5)
    run = wg.computation(np.sin(z), z)
    many = range(1000)
    contestants = {
        "computation": timed(lambda: [run(x) for _ in many]),
        "numpy": timed(lambda: [np.sin(x) for _ in many]),
    }
    return {k: spread(v, 1e6 / 1000) for k, v in interleave(contestants, repetitions).items()}


def large_arrays(repetitions: int) -> dict[str, Any]:
    """Milliseconds of a program on large arrays, and of its gradient."""
    x = np.linspace(0.0, 1.0, LARGE)
    runs: dict[str, Any] = {"value": {"numpy": large}, "gradient": {"eager": wg.grad(large)}}
    limit = interpreter.LIMIT
    for name, least in (("interpreter", limit), ("interpreter, fresh memory", 1 << 62)):
        interpreter.LIMIT = least
        try:
            for what, f in (("value", large), ("gradient", wg.grad(large))):
                runs[what][name] = wg.computation(wg.trace(f)(x))
                runs[what][name](x)  # compiled while the limit holds
        finally:
            interpreter.LIMIT = limit
    found = {}
    for what, contestants in runs.items():
        first, *others = [f(x) for f in contestants.values()]
        assert all(np.allclose(first, other, rtol=1e-13) for other in others)
        calls = {k: timed(lambda f=f: f(x)) for k, f in contestants.items()}
        found[what] = {k: spread(v, 1e3) for k, v in interleave(calls, repetitions).items()}
    return found


def rows(found: dict[str, Any], unit: str) -> str:
    """One measurement as a table."""
    cells = [[name, s["median"], f"{s['low']:.3g} to {s['high']:.3g}"] for name, s in found.items()]
    return table(["", f"median, {unit}", "quartiles"], cells)


def render(results: dict[str, Any]) -> str:
    """Return docs/benchmarks-interpreter.md for saved results."""
    added = results["chain"]["overhead"]["median"]
    parts = [
        "# Benchmarks of the interpreter",
        "Written by `python benchmarks/interpreter.py --render` from "
        "`benchmarks/results/interpreter.json`; `make bench` measures again. Processor time of one "
        "thread; read the ratios.",
        machine_line(results["machine"]),
        "## A line",
        f"A graph of {LINES:,} elementwise lines on arrays of 5 elements, and the same NumPy calls "
        f"in a straight-line loop. Target: at most {TARGET} us added for each line; it is "
        f"{added:.3f} us.",
        rows(results["chain"], "us for each line"),
        "## A call",
        "A computation of one line, `np.sin` of 5 elements: inputs checked, floating-point "
        "warnings switched off, results owned.",
        rows(results["call"], "us"),
        "## Large arrays",
        f"A program of ten lines on {LARGE:,} elements, and its gradient. *Fresh memory* is the "
        "interpreter without the use of memory that has become free during the run.",
    ]
    for what, found in results["large"].items():
        parts += [f"### {what.capitalize()}", rows(found, "ms")]
    return "\n\n".join(parts) + "\n"


def main() -> None:
    """Measure or render."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="fewer repetitions, nothing written")
    parser.add_argument("--render", action="store_true", help=f"write docs/{PAGE}")
    options = parser.parse_args()
    if options.render:
        if not (RESULTS / "interpreter.json").exists():
            print("nothing measured yet; `make bench` measures")
            return
        (PAGES / PAGE).write_text(render(load("interpreter")))
        print(f"wrote docs/{PAGE}")
        return
    quick = options.quick
    results = {
        "machine": machine(PACKAGES),
        "chain": small_chain(5 if quick else 41),
        "call": one_call(5 if quick else 41),
        "large": large_arrays(3 if quick else 21),
    }
    print(render(results))
    if not quick:
        save("interpreter", results)
        print("wrote benchmarks/results/interpreter.json")


if __name__ == "__main__":
    main()
