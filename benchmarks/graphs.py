"""What it costs to build graphs: trace, gradient and simplification, from 1,000 to 100,000 lines.

    python benchmarks/graphs.py            measure, print, write results/graphs.json
    python benchmarks/graphs.py --quick    up to 10,000 lines, nothing written
    python benchmarks/graphs.py --render   write docs/benchmarks-graphs.md from results/graphs.json

Functions of a vector of 8 numbers, each a long chain:

    plain      x -> sin(x) * 0.9 + x0              nothing in it can be simplified
    unstable   x -> log(1 + exp(x)) * 1.0 + x0     two rules for each link, and more in its gradient
    layers     x -> tanh(w @ x) * 1.0 + x0         products and subscripts

"lines" are those of the function; its gradient has about three times as many.  Times are seconds
of the processor, the median of several runs, so that a busy machine counts as little as it can;
memory that the collector walks over is part of it.

Target: trace, gradient and simplification of a function of 10,000 lines within 1.0 s, and linear.
"""

from __future__ import annotations

import argparse
import gc
import statistics
from collections.abc import Callable
from time import process_time
from typing import Any

import numpy as np
from wengert.rewrite import simplify

import wengert as wg
from _harness import (
    PAGES,
    RESULTS,
    load,
    machine,
    machine_line,
    save,
    settle,
    table,
)

PAGE = "benchmarks-graphs.md"  # under docs
LINES = (1_000, 3_000, 10_000, 30_000, 100_000)
TARGET = 1.0  # seconds, of 10,000 lines
WEIGHTS = np.eye(8) * 0.5


def plain(x: Any, x0: Any) -> Any:
    """Three lines."""
    return np.sin(x) * 0.9 + x0


def unstable(x: Any, x0: Any) -> Any:
    """Five lines."""
    return np.log(1 + np.exp(x)) * 1.0 + x0


def layers(x: Any, x0: Any) -> Any:
    """Four lines."""
    return np.tanh(WEIGHTS @ x) * 1.0 + x0


LINKS = {"plain": (plain, 3), "unstable": (unstable, 5), "layers": (layers, 4)}


def chain(link: Callable[..., Any], count: int) -> Callable[..., Any]:
    """The sum at the end of a chain."""

    def f(x0: Any) -> Any:
        x = x0
        for _ in range(count):
            x = link(x, x0)
        return np.sum(x)

    return f


def seconds(make: Callable[[], Any], repetitions: int) -> tuple[float, Any]:
    """Processor time of a call, and what it returned."""
    samples = []
    for _ in range(repetitions):
        gc.collect()
        start = process_time()
        made = make()
        samples.append(process_time() - start)
    return statistics.median(samples), made


def measure(name: str, lines: int) -> dict[str, Any]:
    """One function of about that many lines."""
    link, each = LINKS[name]
    f, spec = chain(link, lines // each), wg.spec(8)
    repetitions = 5 if lines <= 10_000 else 2
    trace, graph = seconds(lambda: wg.trace(f)(spec), repetitions)
    both, gradient = seconds(lambda: wg.trace(wg.grad(f))(spec), repetitions)
    simpler, after = seconds(lambda: simplify(gradient), repetitions)
    return {
        "function": name,
        "lines": len(graph),
        "gradient": len(gradient),
        "simplified": len(after),
        "trace": trace,
        "trace and gradient": both,
        "simplify": simpler,
        "in all": both + simpler,
    }


def render(results: dict[str, Any]) -> str:
    """The results as Markdown."""
    rows = [
        [
            row["function"],
            row["lines"],
            row["gradient"],
            row["simplified"],
            row["trace"],
            row["trace and gradient"],
            row["simplify"],
            row["in all"],
            1e6 * row["in all"] / row["lines"],
        ]
        for row in results["rows"]
    ]
    head = [
        "function", "lines", "of the gradient", "simplified", "trace, s", "with gradient, s",
        "simplify, s", "in all, s", "us a line",
    ]  # fmt: skip
    parts = [
        "# Benchmarks: building graphs",
        "Written by `python benchmarks/graphs.py --render` from `benchmarks/results/graphs.json`. "
        "Read the ratios: times are one machine's.",
        machine_line(results["machine"]),
        "Long chains of operations on a vector of 8 numbers: *plain* has nothing to simplify, "
        "*unstable* has overflowing logarithms of exponentials in every link, *layers* products "
        "with a matrix. Traced; traced with the gradient; that simplified, every line verified. "
        "*lines* are those of the function, constants among them. Seconds of the processor, "
        f"medians. Target: a function of 10,000 lines within {TARGET} s in all, and linear.",
        table(head, rows),
    ]
    return "\n\n".join(parts) + "\n"


def main() -> None:
    """Measure, or render."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="few lines, nothing written")
    parser.add_argument("--render", action="store_true", help=f"write docs/{PAGE}")
    options = parser.parse_args()
    if options.render:
        if not (RESULTS / "graphs.json").exists():
            print("nothing measured yet; `make bench` measures")
            return
        (PAGES / PAGE).write_text(render(load("graphs")))
        print(f"wrote docs/{PAGE}")
        return
    sizes = [n for n in LINES if n <= 10_000] if options.quick else LINES
    for name in LINKS:
        measure(name, 100)
    settle()
    results = {
        "machine": machine(["numpy"]),
        "rows": [measure(name, n) for name in LINKS for n in sizes],
    }
    print(render(results))
    if not options.quick:
        save("graphs", results)
        print("\nwrote benchmarks/results/graphs.json")


if __name__ == "__main__":
    main()
