"""Whether NPBench's programs have the right values and gradients, and how long first calls take.

    NPBENCH=path python benchmarks/npbench.py --check tiny              all programs, small sizes
    NPBENCH=path python benchmarks/npbench.py --check tiny --only adi   some (may be repeated)
    NPBENCH=path python benchmarks/npbench.py --check S                 at size S (M, L, paper)
    NPBENCH=path python benchmarks/npbench.py --check S --json FILE     write the results

Each program runs in a process of its own, so that first calls are cold; a program that fails or
takes longer than the limit is one line of the table.

Values are compared with NumPy's, gradients (of a weighted sum of all results and modified
arguments) with central differences along one direction.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

from .one_program import in_process
from .program import Program, agrees, difference, listed, names, program, results


def value_check(given: Program) -> dict[str, Any]:
    """The first and second call of the compiled program, and its error."""
    import wengert as wg

    fun = given.implementation("numpy")
    wanted = results(fun, given.copied())
    start = time.perf_counter()
    compiled = wg.jit(fun)
    found = results(compiled, given.copied())
    first = time.perf_counter() - start
    again = given.copied()
    start = time.perf_counter()
    compiled(*again)
    second = time.perf_counter() - start
    again = given.copied()
    start = time.perf_counter()
    fun(*again)
    numpy = time.perf_counter() - start
    error = max([difference(a, b) for a, b in zip(found, wanted, strict=True)], default=0.0)
    right = agrees(found, wanted, given.stated_limit)
    return {"first": first, "again": second, "numpy": numpy, "error": error, "right": right}


def gradient_check(program: Program, eager: bool) -> dict[str, Any]:
    """The first and second call of a gradient, and its error against central differences."""
    import wengert as wg

    fun, args = program.implementation("numpy"), program.arguments
    names = [k for k, a in args.items() if isinstance(a, np.ndarray) and a.dtype.kind in "fc"]
    numbers = list(args)
    if not names:
        return {"none": True}
    weights: dict[tuple[int, tuple[int, ...]], Any] = {}
    rng = np.random.default_rng(0)

    def total(*arrays: Any) -> Any:
        given = dict(args)
        given.update(
            {
                k: v.copy() if isinstance(v, np.ndarray) else v * 1
                for k, v in zip(names, arrays, strict=True)
            }
        )
        values = list(given.values())
        out = listed(fun(*values)) + [given[k] for k in names]
        s: Any = 0.0
        for k, x in enumerate(out):
            if not hasattr(x, "dtype") or x.dtype.kind not in "fc":
                continue
            shape = tuple(x.shape)
            if (k, shape) not in weights:
                weights[k, shape] = rng.uniform(0.5, 1.5, shape)
            s = s + np.sum(x.real * weights[k, shape])
            if x.dtype.kind == "c":
                s = s + np.sum(x.imag * weights[k, shape])
        return s

    arrays = [args[k] for k in names]
    total(*[a.copy() for a in arrays])  # all weights exist
    g = wg.grad(total, argnums=tuple(range(len(names))))
    if not eager:
        g = wg.jit(g)
    start = time.perf_counter()
    found = g(*[a.copy() for a in arrays])
    first = time.perf_counter() - start
    start = time.perf_counter()
    g(*[a.copy() for a in arrays])
    second = time.perf_counter() - start
    step = [rng.normal(size=a.shape) * (np.abs(a) + 1e-3) for a in arrays]
    analytic = sum(float(np.sum(np.real(d) * s)) for d, s in zip(found, step, strict=True))
    best = float("inf")
    for h in (1e-4, 1e-5, 1e-6, 1e-7):
        up = total(*[a + h * s for a, s in zip(arrays, step, strict=True)])
        down = total(*[a - h * s for a, s in zip(arrays, step, strict=True)])
        numeric = float(up - down) / (2 * h)
        best = min(best, abs(numeric - analytic) / max(abs(numeric), abs(analytic), 1e-12))
    return {"first": first, "again": second, "error": best, "of": len(numbers)}


def one(name: str, size: str, what: str) -> dict[str, Any]:
    """Check one program in this process."""
    given = program(name, size)
    if what == "value":
        return value_check(given)
    return gradient_check(given, what == "eager")


def shown(what: str, row: dict[str, Any]) -> str:
    """One line of the table."""
    if "failed" in row:
        return f"{what:8} FAILED {row['failed'][:170]}"
    if "none" in row:
        return f"{what:8} has no real input"
    times = "  ".join(f"{k} {row[k] * 1e3:.2f} ms" for k in ("first", "again", "numpy") if k in row)
    right = row.get("right", row["error"] < 1e-4)
    return f"{what:8} {'right' if right else 'WRONG'}  error {row['error']:.1e}  {times}"


def main(arguments: list[str]) -> int:
    """Check the programs and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", metavar="SIZE")
    parser.add_argument("--only", action="append")
    parser.add_argument("--what", action="append", choices=("value", "gradient", "eager"))
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(arguments)
    found: dict[str, Any] = {}
    for name in options.only or names():
        for what in options.what or ("value", "gradient"):
            row = in_process("check", name, options.check, what)
            found[f"{name} {what}"] = row
            print(f"{name:28}", shown(what, row), flush=True)
    if options.json:
        options.json.write_text(json.dumps(found, indent=1))
    return 0
