"""NPBench's programs, source unchanged: values, gradients and first-call times.

    NPBENCH=path python benchmarks/npbench.py              all programs, at small sizes
    NPBENCH=path python benchmarks/npbench.py --only adi   some programs (may be repeated)
    NPBENCH=path python benchmarks/npbench.py --size S     at NPBench's size S (M, L, paper)
    NPBENCH=path python benchmarks/npbench.py --json FILE  write the results

`NPBENCH` is a checkout of github.com/spcl/npbench, of which no file is committed here.  Each
program runs in a process of its own, so that first calls are cold; a program that fails or takes
longer than the limit is one line of the table.

Values are compared with NumPy's, gradients (of a weighted sum of all results and modified
arguments) with central differences along one direction.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

LIMIT = 120  # seconds for each program
# Sizes at which NumPy takes milliseconds, by NPBench's names of parameters.
SMALL = {
    "S": {},
    "tiny": {
        "N": 16, "M": 20, "NI": 12, "NJ": 13, "NK": 14, "NL": 15, "NM": 11, "NR": 8, "NQ": 9,
        "NP": 10, "TSTEPS": 3, "TMAX": 3, "NX": 12, "NY": 14, "W": 28, "H": 28, "nx": 11, "ny": 11,
        "nt": 3, "nit": 3, "I": 8, "J": 9, "K": 7, "npt": 10, "nnz": 40, "XN": 12, "YN": 12,
        "maxiter": 10, "S0": 30, "S1": 20, "S2": 20, "SM": 8, "tEnd": 0.5,
    },
}  # fmt: skip
KEPT = {"lenet": ("H", "W"), "sthamfft": ("R", "K"), "conv2d": ("K",), "sselfeng": ()}


def program(root: Path, name: str, size: str) -> tuple[Any, dict[str, Any], dict[str, Any]]:
    """The function of a program, its arguments by name, and its description."""
    info = json.loads((root / "bench_info" / f"{name}.json").read_text())["benchmark"]
    sys.path.insert(0, str(root))
    base = "npbench.benchmarks." + info["relative_path"].replace("/", ".")
    module = info["module_name"]
    values = dict(info["parameters"]["S" if size == "tiny" else size])
    if size == "tiny":
        kept = KEPT.get(info["short_name"], ())
        values.update({k: v for k, v in SMALL["tiny"].items() if k in values and k not in kept})
        if info["short_name"] == "sthamfft":
            values["K"] = 6
    if info.get("init"):
        init = getattr(importlib.import_module(f"{base}.{module}"), info["init"]["func_name"])
        made = init(*[values[a] for a in info["init"]["input_args"]])
        made = made if isinstance(made, tuple) else (made,)
        values.update(zip(info["init"]["output_args"], made, strict=True))
    fun = getattr(importlib.import_module(f"{base}.{module}_numpy"), info["func_name"])
    return fun, {a: values[a] for a in info["input_args"]}, info


def copied(args: dict[str, Any]) -> list[Any]:
    """Arguments that a program may modify."""
    return [a.copy() if isinstance(a, np.ndarray) else a for a in args.values()]


def results(fun: Any, args: list[Any]) -> list[Any]:
    """What a program returns, and the arrays that it was given, which it may have modified."""
    out = fun(*args)
    out = list(out) if isinstance(out, tuple | list) else [] if out is None else [out]
    return [
        x for x in [*out, *args] if isinstance(x, np.ndarray | np.generic | float | complex | int)
    ]


def difference(a: Any, b: Any) -> float:
    """The largest difference, relative to the largest element."""
    a, b = np.atleast_1d(a), np.atleast_1d(b)
    if a.shape != b.shape:
        return float("inf")
    if not a.size:
        return 0.0
    if a.dtype == bool:
        return float((a != b).any())
    with np.errstate(all="ignore"):
        gap = np.abs(a - b)
        gap[(a == b) | (np.isnan(a) & np.isnan(b))] = 0
        return float(gap.max() / max(np.abs(b[np.isfinite(b)]).max(initial=0), 1e-300))


def value_check(fun: Any, args: dict[str, Any]) -> dict[str, Any]:
    """The first and second call of the compiled program, and its error."""
    import wengert as wg

    wanted = results(fun, copied(args))
    start = time.perf_counter()
    compiled = wg.jit(fun)
    found = results(compiled, copied(args))
    first = time.perf_counter() - start
    again = copied(args)
    start = time.perf_counter()
    compiled(*again)
    second = time.perf_counter() - start
    again = copied(args)
    start = time.perf_counter()
    fun(*again)
    numpy = time.perf_counter() - start
    error = max([difference(a, b) for a, b in zip(found, wanted, strict=True)], default=0.0)
    return {"first": first, "again": second, "numpy": numpy, "error": error}


def gradient_check(fun: Any, args: dict[str, Any], eager: bool) -> dict[str, Any]:
    """The first and second call of a gradient, and its error against central differences."""
    import wengert as wg

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
        out = fun(*values)
        out = list(out) if isinstance(out, tuple | list) else [] if out is None else [out]
        out += [given[k] for k in names]
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


def measured(root: Path, name: str, size: str, what: str) -> dict[str, Any]:
    """One program in this process."""
    fun, args, _ = program(root, name, size)
    if what == "value":
        return value_check(fun, args)
    return gradient_check(fun, args, what == "eager")


def apart(name: str, size: str, what: str) -> dict[str, Any]:
    """One program in a process of its own."""
    command = [sys.executable, __file__, "--worker", name, "--size", size, "--what", what]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=False)
    except subprocess.TimeoutExpired:
        return {"failed": f"not in {LIMIT} s"}
    lines = done.stdout.strip().splitlines()
    if done.returncode == 0 and lines:
        found: dict[str, Any] = json.loads(lines[-1])
        return found
    text = [x for x in done.stderr.strip().splitlines() if x and not x.startswith(" ")]
    return {"failed": text[-1] if text else f"exit status {done.returncode}"}


def shown(what: str, row: dict[str, Any]) -> str:
    """One line of the table."""
    if "failed" in row:
        return f"{what:8} FAILED {row['failed'][:170]}"
    if "none" in row:
        return f"{what:8} has no real input"
    times = "  ".join(f"{k} {row[k] * 1e3:.2f} ms" for k in ("first", "again", "numpy") if k in row)
    right = row["error"] < (1e-6 if what == "value" else 1e-4)
    return f"{what:8} {'right' if right else 'WRONG'}  error {row['error']:.1e}  {times}"


def main() -> None:
    """Run the programs and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", action="append")
    parser.add_argument("--size", default="tiny")
    parser.add_argument("--what", action="append", choices=("value", "gradient", "eager"))
    parser.add_argument("--json", type=Path)
    parser.add_argument("--worker")
    options = parser.parse_args()
    root = Path(os.environ["NPBENCH"])
    if options.worker:
        print(json.dumps(measured(root, options.worker, options.size, options.what[0])))
        return
    names = options.only or sorted(p.stem for p in (root / "bench_info").glob("*.json"))
    found: dict[str, Any] = {}
    for name in names:
        for what in options.what or ("value", "gradient"):
            row = found[f"{name} {what}"] = apart(name, options.size, what)
            print(f"{name:28}", shown(what, row), flush=True)
    if options.json:
        options.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
